/**
 * From command-line arguments to a call. The only file that imports `commander`.
 *
 * @module
 */
import { Command as Commander, CommanderError, InvalidArgumentError, Option } from "commander";
import { asError } from "../errors.ts";
import { nearest } from "../expr/mod.ts";
import type { CommandDescription, Flags, OptionDescription } from "./command.ts";
import { EXIT, type ExitCode } from "./exit_code.ts";
import type { Output } from "./host.ts";

/** What the arguments ask for; `said` where that was help, or a complaint, and has been printed. */
export type Parsed =
  | {
    readonly kind: "call";
    readonly command: CommandDescription;
    readonly args: readonly string[];
    readonly flags: Flags;
  }
  | { readonly kind: "said"; readonly code: ExitCode };

/** Where help and complaints go. */
export interface Outputs {
  readonly stdout: Output;
  readonly stderr: Output;
}

const SUMMARY = "Stream processing with event time, windows and durable state in one process.";

/** Reads command-line arguments. */
export function parseArguments(
  args: readonly string[],
  commands: readonly CommandDescription[],
  { stdout, stderr }: Outputs,
): Parsed {
  let called: Parsed | undefined;
  const program = new Commander("mailer")
    .description(SUMMARY)
    .usage("COMMAND [options]")
    .helpCommand("help [COMMAND]", "show the help of a command")
    .helpOption("-h, --help", "show this help")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      getOutHelpWidth: () => stdout.isTerminal ? stdout.columns() : 100,
      getErrHelpWidth: () => stderr.isTerminal ? stderr.columns() : 100,
      outputError: (text, write) => write(complaint(text, args, commands)),
    });
  for (const command of commands) {
    const sub = program.command(command.name).description(command.summary).usage(usageOf(command));
    for (const arg of command.args) sub.argument(arg);
    for (const option of command.options) sub.addOption(optionOf(option));
    if (command.notes !== undefined) sub.addHelpText("after", `\n${command.notes}`);
    sub.helpOption("-h, --help", "show this help");
    sub.action(() => {
      called = { kind: "call", command, args: sub.args, flags: sub.opts<Flags>() };
    });
  }
  const [first, asked] = args;
  if (first === "help" && asked !== undefined && !isKnown(asked, commands)) {
    stderr.write(complaint(`error: unknown command '${asked}'`, [asked], commands)); // Commander shows its help instead
    return { kind: "said", code: EXIT.usage };
  }
  try {
    program.parse(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return { kind: "said", code: error.exitCode === 0 ? EXIT.done : EXIT.usage };
  }
  return called!;
}

function isKnown(name: string, commands: readonly CommandDescription[]): boolean {
  return name.startsWith("-") || name === "help" || commands.some((command) => command.name === name);
}

function usageOf({ args, options }: CommandDescription): string {
  return [
    options.length === 0 ? "" : "[options]",
    ...args.map((arg) => arg.replace("...", "…").replace(/^<(.*)>$/, "$1")),
  ]
    .join(" ").trim();
}

function optionOf({ flags, summary, parse }: OptionDescription): Option {
  const option = new Option(flags, summary);
  if (parse !== undefined) {
    option.argParser((text) => {
      try {
        return parse(text);
      } catch (error) {
        throw new InvalidArgumentError(asError(error).message);
      }
    });
  }
  return option;
}

/** Commander's complaint in our form: `error:` and, on a line of its own, `hint:`. */
function complaint(text: string, args: readonly string[], commands: readonly CommandDescription[]): string {
  const [first, ...rest] = text.trimEnd().split("\n");
  const suggested = rest.map((line) => /^\(Did you mean (?:one of )?(.*?)\?\)$/.exec(line)?.[1]).find((
    found,
  ) => found !== undefined);
  const of = commands.find(({ name }) => name === args[0]);
  const help = `mailer ${of === undefined ? "" : `${of.name} `}--help shows what there is`;
  const hint = hintFor(first!, args, commands) ??
    (suggested === undefined ? help : `did you mean ${suggested}?`);
  return `${first}\nhint: ${hint}\n`;
}

function hintFor(
  message: string,
  args: readonly string[],
  commands: readonly CommandDescription[],
): string | undefined {
  const unknown = /^error: unknown command '(.*)'$/s.exec(message)?.[1];
  if (unknown === undefined) return undefined;
  if (/\.(ya?ml|json)$/i.test(unknown)) return `did you mean: mailer run ${args.join(" ")}`;
  const near = nearest(unknown, commands.map(({ name }) => name));
  return near === undefined
    ? `one of: ${commands.map(({ name }) => name).join(", ")}, help`
    : `did you mean ${near}?`;
}
