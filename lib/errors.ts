/**
 * The errors Mailer raises. Every one has a stable `code`, and a `hint` where there is something to do next.
 *
 * A subclass exists only where a caller reacts differently: a document problem has a place in a file, a record
 * error has a position in a source, a stuck stage has a name.
 *
 * @module
 */

/** What an error may carry besides its message. */
export interface ErrorOptionsWithHint {
  /** The error underneath. */
  readonly cause?: unknown;
  /** What to do next, one sentence. */
  readonly hint?: string;
  /** Set where trying the same again would only meet it again: a run that ends of it is not started again. */
  readonly lasting?: boolean;
}

/** Base of all errors raised on purpose. */
export class MailerError extends Error {
  /** Stable, lower_snake_case; safe to branch on. */
  readonly code: string;
  /** What to do next, one sentence, or nothing. */
  readonly hint: string | undefined;
  /** Whether trying the same again would only meet it again. */
  readonly lasting: boolean;

  /**
   * An error a caller can tell by its code.
   *
   * @param code Stable, lower_snake_case.
   * @param message Names the thing, what was expected and what was found; no secret.
   */
  constructor(code: string, message: string, options: ErrorOptionsWithHint = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.hint = options.hint;
    this.lasting = options.lasting ?? false;
  }
}

/** Several mistakes in one pipeline definition, all of them at once. */
export class PipelineError extends MailerError {
  /** One sentence each. */
  readonly problems: readonly string[];

  /** Its code is `invalid_pipeline`. */
  constructor(problems: readonly string[], options: ErrorOptionsWithHint = {}) {
    const list = problems.length === 1 ? problems[0] : `\n${problems.map((p) => `  - ${p}`).join("\n")}`;
    super("invalid_pipeline", `the pipeline cannot run: ${list}`, options);
    this.problems = problems;
  }
}

/** Where in the input a record came from. */
export interface RecordPosition {
  /** Name of the source; of a record made by an operator, the operator's id. */
  readonly source: string;
  /** Split of the source; of a record made by an operator, its partition. */
  readonly split: string;
  /** Offset of the record in its split, or `undefined` for a record made by an operator. */
  readonly offset: number | undefined;
}

/** One record that an operator, source or sink could not handle. Subject to the failure policy. */
export class RecordError extends MailerError {
  /** Id of the operator, source or sink. */
  readonly operator: string;
  /** Where the record came from. */
  readonly position: RecordPosition;

  /** Takes over the code and the hint of `cause`, where it has them. */
  constructor(operator: string, position: RecordPosition, cause: unknown) {
    const inner = asError(cause);
    const { source, split, offset } = position;
    const at = offset === undefined ? `${source}/${split}` : `${source}/${split} at offset ${offset}`;
    super(codeOf(cause), `operator "${operator}": ${inner.message} (record from ${at})`, {
      cause,
      ...(inner instanceof MailerError && inner.hint !== undefined ? { hint: inner.hint } : {}),
    });
    this.operator = operator;
    this.position = position;
  }
}

/** Stages that did not come to an end within the shutdown timeout. */
export class ShutdownTimeoutError extends MailerError {
  /** Ids of the stages that were still at work. */
  readonly stages: readonly string[];

  /**
   * Its code is `shutdown_timeout`.
   *
   * @param timeoutMs How long draining was given, ms.
   */
  constructor(stages: readonly string[], timeoutMs: number) {
    super(
      "shutdown_timeout",
      `not drained within ${timeoutMs} ms: ${stages.map((s) => `"${s}"`).join(", ")} still busy, aborted`,
      { hint: "raise the shutdown timeout, or look at what the named stages wait for" },
    );
    this.stages = stages;
  }
}

/** Any thrown value as an `Error`. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}

/** The stable code of any thrown value; `error` where it has none. */
export function codeOf(thrown: unknown): string {
  return thrown instanceof MailerError ? thrown.code : "error";
}

/** Whether another instance has taken over what this one worked with: by convention the code of such an error ends in `fenced`. */
export function isFenced(thrown: unknown): boolean {
  return /(^|_)fenced$/.test(codeOf(thrown));
}
