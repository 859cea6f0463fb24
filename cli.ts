/**
 * The program `mailer`. `mailer help` shows its commands.
 *
 * @module
 */
import { denoHost, main } from "./lib/cli/mod.ts";

if (import.meta.main) {
  const host = denoHost({ connectors: async () => (await import("./connectors/registry.ts")).connectors });
  Deno.exit(await main(Deno.args, host));
}
