/**
 * The program `mailer`. `mailer help` shows its commands.
 *
 * @module
 */
import { denoHost, main } from "./lib/cli/mod.ts";

if (import.meta.main) {
  const host = denoHost({
    connectors: async (types) => await (await import("./connectors/registry.ts")).connectorsFor(types),
  });
  Deno.exit(await main(Deno.args, host));
}
