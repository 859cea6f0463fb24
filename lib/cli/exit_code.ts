/**
 * Exit codes of `mailer`, and the errors they belong to.
 *
 * | code | when |
 * |---|---|
 * | 0 | done, dead letters or not; also when whoever read standard output stopped reading it |
 * | 1 | failed |
 * | 2 | usage, or an invalid document |
 * | 3 | the drain deadline passed |
 * | 4 | another instance has taken over |
 * | 130 | interrupted twice |
 *
 * @module
 */
import { codeOf, isFenced, ShutdownTimeoutError } from "../errors.ts";
import { refusalOf } from "./permission.ts";

/** The codes by name. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  drainDeadline: 3,
  fenced: 4,
  interrupted: 130,
} as const;

/** One of {@link EXIT}. */
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Codes of errors that whoever typed the command can mend. */
const USAGE: ReadonlySet<string> = new Set(["usage", "unreadable_document", "unknown_kind", "not_permitted"]);

/** The exit code of the error that ended a command. */
export function exitCodeOf(error: unknown): ExitCode {
  if (error instanceof ShutdownTimeoutError) return EXIT.drainDeadline;
  const code = codeOf(refusalOf(error) ?? error);
  if (isFenced(error)) return EXIT.fenced;
  return USAGE.has(code) ? EXIT.usage : EXIT.failed;
}
