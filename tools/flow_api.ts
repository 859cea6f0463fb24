/** Prints docs/flow-api.md: `deno run tools/flow_api.ts > docs/flow-api.md && deno fmt docs/flow-api.md`. */
import { apiReference } from "../lib/flow/http/reference.ts";
import { ROUTES } from "../lib/flow/http/routes.ts";

await Deno.stdout.write(new TextEncoder().encode(apiReference(ROUTES)));
