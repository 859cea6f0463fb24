/**
 * What goes wrong with an expression: in its text ({@link ExpressionError}, when compiled) or on a record
 * (code `expression_failed`, when evaluated).
 *
 * @module
 */
import { MailerError } from "../errors.ts";

/** One mistake in the text of an expression. */
export interface ExpressionProblem {
  /** What is wrong, without the place. */
  readonly message: string;
  /** Index into the text, in UTF-16 units, from 0. */
  readonly offset: number;
  /** Line in the text, from 1. */
  readonly line: number;
  /** Column in that line, from 1. */
  readonly column: number;
  /** The name that was probably meant. */
  readonly suggestion: string | undefined;
  /** What to do next, one sentence. */
  readonly hint: string | undefined;
}

/** An expression that cannot be compiled (code `invalid_expression`). Its own place is that of the first problem. */
export class ExpressionError extends MailerError {
  /** At least one, in the order of the text. */
  readonly problems: readonly ExpressionProblem[];
  /** Index of the first problem into the text, from 0. */
  readonly offset: number;
  /** Line of the first problem, from 1. */
  readonly line: number;
  /** Column of the first problem, from 1. */
  readonly column: number;
  /** The name that was probably meant at the first problem. */
  readonly suggestion: string | undefined;

  /** An error of at least one problem, which are in the order of the text. */
  constructor(problems: readonly ExpressionProblem[]) {
    const first = problems[0]!;
    const message = problems.map((p) => `${p.line}:${p.column}: ${p.message}`).join("; ");
    super("invalid_expression", message, first.hint === undefined ? {} : { hint: first.hint });
    this.problems = problems;
    this.offset = first.offset;
    this.line = first.line;
    this.column = first.column;
    this.suggestion = first.suggestion;
  }
}

/** A problem at `offset` of `text`. */
export function problemAt(
  text: string,
  offset: number,
  message: string,
  help: { readonly suggestion?: string | undefined; readonly hint?: string | undefined } = {},
): ExpressionProblem {
  let line = 1, start = 0;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) {
    line++;
    start = at + 1;
  }
  const { suggestion } = help;
  const hint = help.hint ?? (suggestion === undefined ? undefined : `did you mean "${suggestion}"?`);
  return { message, offset, line, column: offset - start + 1, suggestion, hint };
}

/** A piece of an expression's text, which failures name. */
export class Part {
  readonly #text: string;
  readonly start: number;
  readonly end: number;

  constructor(text: string, start: number, end: number) {
    this.#text = text;
    this.start = start;
    this.end = end;
  }
  /** The piece on one line, shortened where it is long. */
  toString(): string {
    const piece = this.#text.slice(this.start, Math.min(this.end, this.start + 200)).replace(/\s+/g, " ");
    return piece.length <= 80 && this.end - this.start <= 200 ? piece : `${piece.slice(0, 79)}…`;
  }
}

/** A name as messages quote it: shortened where it is long. */
export function quoted(name: string): string {
  return JSON.stringify(name.length <= 60 ? name : `${name.slice(0, 59)}…`);
}

/** The error of an expression that fails on a record. The message never holds a value of the record. */
export function failure(message: string): MailerError {
  return new MailerError("expression_failed", message);
}

/** Whether `thrown` came from an expression failing on its record, which `&&`, `||`, `all` and `exists` may survive. */
export function isFailure(thrown: unknown): thrown is MailerError {
  return thrown instanceof MailerError && thrown.code === "expression_failed";
}
