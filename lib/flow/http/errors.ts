/**
 * What may go wrong with a call, as a status and a body: `{"error": {"code", "message", "hint"}}`.
 *
 * N1 What was not raised on purpose says nothing of the inside: it is logged, and the caller gets `internal_error`.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";

/** Statuses by code; all others are 500. */
const STATUS: Readonly<Record<string, number>> = {
  invalid_argument: 400,
  invalid_query: 400,
  invalid_cursor: 400,
  invalid_flow: 400,
  invalid_command: 400,
  wrong_content_type: 400,
  not_json: 400,
  too_deep: 400,
  unauthorized: 401,
  not_found: 404,
  execution_not_found: 404,
  unknown_flow: 404,
  dead_letter_not_found: 404,
  wrong_method: 405,
  execution_archived: 409,
  execution_quarantined: 409,
  execution_ended: 409,
  execution_conflict: 409,
  execution_exists: 409,
  definition_collision: 409,
  rejected: 409,
  too_large: 413,
  text_too_large: 413,
  too_many_requests: 429,
  draining: 503,
  outcome_unknown: 503,
  store_busy: 503,
};

/** All statuses of errors, with what they mean. */
export const ERROR_STATUSES: Readonly<Record<number, string>> = {
  400: "The call is wrong: its body, a field, a name, a flow.",
  401: "No token, or another.",
  404: "There is no such execution, flow, dead letter or path.",
  405: "The path has no such method.",
  409: "It does not apply to the execution as it is: it has ended, is archived, or its id is taken.",
  413: "The body is larger than 4 MiB.",
  429: "Too many calls wait already.",
  500: "Something went wrong inside; it is in the server's log.",
  503:
    "Not now: the server drains, the store is busy, or the outcome is not known yet. The same id is safe to use again.",
};

/** Status of an error. */
export function statusOf(error: unknown): number {
  return error instanceof MailerError ? STATUS[error.code] ?? 500 : 500;
}

/** Body of an error. */
export function errorBody(error: unknown): unknown {
  if (!(error instanceof MailerError)) {
    const message = "something went wrong inside";
    return { error: { code: "internal_error", message, hint: "the server's log says what" } };
  }
  const { code, message, hint } = error;
  return { error: { code, message, ...(hint === undefined ? {} : { hint }) } };
}

/** There is nothing at a path. */
export function noSuchPath(path: string): MailerError {
  return new MailerError("not_found", `there is nothing at ${path.slice(0, 200)}`, {
    hint: "GET /v1/openapi.json lists what there is",
  });
}
