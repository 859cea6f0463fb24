/**
 * From a document on the command line to the checkpoints of its workflow: the one way in for all commands that look at them.
 *
 * @module
 */
import { type Checkpoints, openCheckpoints } from "../../checkpoint/inspect.ts";
import { MailerError } from "../../errors.ts";
import { nearest } from "../../expr/mod.ts";
import { stateBackend } from "../../workflow/build/mod.ts";
import type { WorkflowSpec } from "../../workflow/mod.ts";
import type { Flags } from "../command.ts";
import { dataDirOf, printProblems, readWorkflow } from "../documents.ts";
import { errorText } from "../error_text.ts";
import { EXIT, type ExitCode, exitCodeOf } from "../exit_code.ts";
import type { Host } from "../host.ts";

/** What a command works with. */
export interface Opened {
  readonly spec: WorkflowSpec;
  /** Undefined where the workflow has kept nothing. */
  readonly checkpoints: Checkpoints | undefined;
  /** Where they lie, for people. */
  readonly place: string;
  readonly flags: Flags;
  readonly host: Host;
  /** Writes to standard output, secrets of the document hidden. */
  print(text: string): void;
  /** Writes a line to standard error, secrets of the document hidden. */
  say(line: string): void;
}

/** Opens what the workflow of a document has kept, does `work`, and closes it. Errors are printed, without the document's secrets. */
export async function withCheckpoints(
  file: string,
  flags: Flags,
  host: Host,
  work: (opened: Opened) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { spec, problems, folder, mask } = await readWorkflow(file, host);
  if (spec === undefined) {
    if (flags.json === true) printProblems(problems, "json", host.stdout);
    else printProblems(problems, "text", host.stderr);
    return EXIT.usage;
  }
  try {
    const backend = stateBackend(spec, { folder, dataDir: dataDirOf(flags, host) });
    await using checkpoints = await openCheckpoints(backend, spec.name, host.clock);
    return await work({
      spec,
      checkpoints,
      place: Object.values(backend.describe()).join(" "),
      flags,
      host,
      print: (text) => host.stdout.write(mask(text)),
      say: (line) => host.stderr.write(mask(`${line}\n`)),
    });
  } catch (error) {
    host.stderr.write(errorText(error, { mask, detail: flags.debug === true ? "stack" : "message" }));
    return exitCodeOf(error);
  }
}

/** The error of a command that needs checkpoints where there are none. */
export function nothingKept(opened: Opened): MailerError {
  const [message, hint] = nothing(opened);
  return new MailerError("no_checkpoint", message, { hint });
}

/** Says that nothing is there, which is no failure. */
export function nothingToSay(opened: Opened): ExitCode {
  if (opened.flags.json === true) return EXIT.done;
  const [message, hint] = nothing(opened);
  opened.print(`${message}\n`);
  opened.say(`hint: ${hint}`);
  return EXIT.done;
}

/** That nothing is there, and why that may be. */
function nothing({ spec, place }: Opened): readonly [message: string, hint: string] {
  return [
    `workflow "${spec.name}" has no checkpoints in ${place}`,
    spec.env.checkpointing === undefined
      ? "it takes none: env.checkpointing is not set"
      : "run it first, or name the folder it keeps them in with --data-dir",
  ];
}

/** One of the actions of a command. @throws {MailerError} `usage` */
export function actionOf<A extends string>(given: string, actions: readonly A[], command: string): A {
  const action = actions.find((one) => one === given);
  if (action !== undefined) return action;
  const near = nearest(given, actions);
  throw new MailerError("usage", `mailer ${command} has no action "${given}"`, {
    hint: `${near === undefined ? "" : `did you mean ${near}? `}there are: ${actions.join(", ")}`,
  });
}
