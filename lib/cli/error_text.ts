/**
 * Errors as people read them: `error:`, the message, and `hint:` with what to do next.
 *
 * @module
 */
import { asError, codeOf, MailerError } from "../errors.ts";
import { refusalOf } from "./permission.ts";

/** `stack` adds where in the program it was raised, with all causes. */
export type ErrorDetail = "stack" | "message";

/** How an error is shown. */
export interface ErrorTextOptions {
  /** Which workflow it is about, where there are several. */
  readonly about?: string | undefined;
  /** Hides secrets. */
  readonly mask?: (text: string) => string;
  /** Default `message`. */
  readonly detail?: ErrorDetail;
}

/** One error as lines of text, each with its line end. */
export function errorText(
  thrown: unknown,
  { about, mask = same, detail = "message" }: ErrorTextOptions = {},
): string {
  const { error, hint } = explained(thrown);
  const lines = [`error: ${about === undefined ? "" : `${about}: `}${error.message}`];
  if (hint !== undefined) lines.push(`hint: ${hint}`);
  if (detail === "stack") lines.push(...stacks(error));
  return mask(lines.map((line) => `${line}\n`).join(""));
}

/** The same as an object. */
export function errorJson(thrown: unknown, detail: ErrorDetail = "message"): Record<string, unknown> {
  const { error, hint } = explained(thrown);
  return {
    code: codeOf(error),
    message: error.message,
    ...(hint === undefined ? {} : { hint }),
    ...(detail === "stack" ? { stack: stacks(error) } : {}),
  };
}

function explained(thrown: unknown): { readonly error: Error; readonly hint: string | undefined } {
  const error = refusalOf(thrown) ?? asError(thrown);
  return { error, hint: error instanceof MailerError ? error.hint : UNEXPECTED };
}

const UNEXPECTED = "--debug shows where this comes from";

function stacks(error: Error): string[] {
  const lines: string[] = [];
  const seen = new Set<unknown>();
  for (let at: unknown = error; at instanceof Error && !seen.has(at); at = at.cause) {
    lines.push(`${at === error ? "" : "caused by "}${at.stack ?? at.message}`);
    seen.add(at);
  }
  return lines;
}

function same(text: string): string {
  return text;
}
