/**
 * Errors of a client: one class, told apart by their codes.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { Refusal } from "../fold/mod.ts";
import type { ExecutionView } from "./view.ts";

/** What may go wrong with what a client is asked. */
export type FlowErrorCode =
  /** What was given can never be right: an id, a name, an input, writes. */
  | "invalid_argument"
  /** There is no such execution. */
  | "execution_not_found"
  /** It is archived: it can be read and forked, and changes no more. */
  | "execution_archived"
  /** It is parked, and nothing of it can be read. */
  | "execution_quarantined"
  /** It has ended. */
  | "execution_ended"
  /** Its id belongs to an execution of another flow. */
  | "execution_conflict"
  /** It was there already, and was not to be. */
  | "execution_exists"
  /** No version of the flow is stored, or not this one. */
  | "unknown_flow"
  /** It does not apply to the execution as it is. */
  | "rejected"
  /** There is no such dead letter. */
  | "dead_letter_not_found"
  /** It is stored, but was not decided in time. */
  | "outcome_unknown"
  /** What was waited for did not come in time. */
  | "wait_timed_out";

/** An error of a client. */
export class FlowClientError extends MailerError {
  /** Which error it is. */
  declare readonly code: FlowErrorCode;
  /** How the execution ended, where it ended before what was waited for. */
  readonly execution: ExecutionView | undefined;

  /** An error with a hint of its own, or the usual one of its code. */
  constructor(
    code: FlowErrorCode,
    message: string,
    { hint = HINTS[code], execution, ...options }: {
      readonly hint?: string;
      readonly cause?: unknown;
      readonly execution?: ExecutionView;
    } = {},
  ) {
    super(code, message, { hint, ...options });
    this.execution = execution;
  }
}

const HINTS: Readonly<Record<FlowErrorCode, string>> = {
  invalid_argument: "correct it and try again",
  execution_not_found: "list the executions to see what there is",
  execution_archived: "fork it to go on from where it was",
  execution_quarantined:
    "see what is wrong with the list of those that are parked; what is stored can be had as it is",
  execution_ended: "rerun it from one of its nodes, or fork it",
  execution_conflict: "choose another id",
  execution_exists: "choose another id, or join the one that is there",
  unknown_flow: "register it first; the list of flows shows what is stored",
  rejected: "look at how the execution stands",
  dead_letter_not_found: "list the dead letters to see what there is",
  wait_timed_out: "wait again, or look at what the execution waits for",
  outcome_unknown: "is an engine running on this store? The same id is safe to use again",
};

/** The error of what the fold refused. */
export function refusalError({ code, message }: Refusal): FlowClientError {
  switch (code) {
    case "not_found":
      return new FlowClientError(
        message.startsWith("there is no flow") ? "unknown_flow" : "execution_not_found",
        message,
      );
    case "invalid":
      return new FlowClientError("invalid_argument", message);
    case "conflict":
      return new FlowClientError("execution_conflict", message);
    case "rejected":
      return new FlowClientError("rejected", message);
  }
}

/** There is no such execution. */
export function notFound(execId: string): FlowClientError {
  return new FlowClientError("execution_not_found", `there is no execution "${execId}"`);
}

/** It has ended. */
export function ended(execId: string, status: string): FlowClientError {
  return new FlowClientError("execution_ended", `execution "${execId}" has ended: ${status}`);
}

/** It is archived. */
export function archivedError(execId: string): FlowClientError {
  return new FlowClientError("execution_archived", `execution "${execId}" is archived`);
}

/** What is stored was not decided in time. */
export function outcomeUnknown(what: string, timeoutMs: number): FlowClientError {
  return new FlowClientError(
    "outcome_unknown",
    `${what} is stored, but was not decided within ${timeoutMs} ms: its outcome is unknown`,
  );
}
