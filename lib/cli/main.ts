/**
 * The whole program: arguments in, exit code out.
 *
 * @module
 */
import { COMMANDS } from "./commands.ts";
import { errorText } from "./error_text.ts";
import { EXIT, type ExitCode, exitCodeOf } from "./exit_code.ts";
import type { Host } from "./host.ts";

/** Runs `mailer` with these arguments. Never throws for what a user can cause. */
export async function main(args: readonly string[], host: Host): Promise<ExitCode> {
  try {
    return await obey(args, host);
  } catch (error) {
    const detail = args.includes("--debug") ? "stack" : "message";
    host.stderr.write(errorText(error, { detail }));
    return exitCodeOf(error);
  }
}

async function obey(args: readonly string[], host: Host): Promise<ExitCode> {
  const [name, ...files] = args;
  if (name === "run" && files.length > 0 && files.every(isFile)) {
    // Without options there is nothing to parse, and loading the parser would be a fifth of the time to the first record.
    return await (await import("./run/command.ts")).run({ args: files, flags: {} }, host);
  }
  const { parseArguments } = await import("./program.ts");
  if (name === undefined) {
    parseArguments(["--help"], COMMANDS, { stdout: host.stderr, stderr: host.stderr });
    return EXIT.usage;
  }
  const parsed = parseArguments(
    name === "--version" || name === "-V" ? ["version", ...files] : args,
    COMMANDS,
    host,
  );
  if (parsed.kind === "said") return parsed.code;
  return await (await parsed.command.load())(parsed, host);
}

function isFile(arg: string): boolean {
  return !arg.startsWith("-") && arg !== "";
}
