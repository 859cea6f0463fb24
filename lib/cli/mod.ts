/**
 * The command line.
 *
 * ```ts ignore
 * import { denoHost, main } from "./lib/cli/mod.ts";
 *
 * const host = denoHost({ connectors: async (types) => (await import("./connectors/registry.ts")).connectorsFor(types) });
 * Deno.exit(await main(Deno.args, host));
 * ```
 *
 * @module
 */
export { EXIT, type ExitCode } from "./exit_code.ts";
export { type Carried, denoHost, type Host, type Output } from "./host.ts";
export { codeLoader, type CodeSources } from "./load_code.ts";
export { main } from "./main.ts";
