/**
 * Dead letters as people see them, and what they are about.
 *
 * @module
 */
import { parseJson } from "../../json.ts";
import { decodeCommand } from "../fold/mod.ts";
import type { DeadLetter, NewCommand } from "../store/port.ts";
import { FlowClientError } from "./errors.ts";

/** Something that could not be done. */
export interface DeadLetterView {
  /** Later ones are greater. */
  readonly id: string;
  /** `cmd`, `job` or `trigger`. */
  readonly kind: string;
  /** Execution of a command or of a message's start, or id of a job. */
  readonly key: string;
  /** ms */
  readonly time: number;
  /** Why, one sentence. */
  readonly reason: string;
  /** How often it was tried. */
  readonly deliveries?: number;
  /** What it is about: a command, or a job. A text where it is no JSON. */
  readonly body: unknown;
}

interface Stored {
  readonly reason: string;
  readonly deliveries?: number;
  readonly body: string;
}

/** A dead letter, shown. */
export function letterView({ id, kind, key, time, text }: DeadLetter): DeadLetterView {
  const { reason, deliveries, body } = JSON.parse(text) as Stored;
  return {
    id,
    kind,
    key,
    time,
    reason,
    ...(deliveries === undefined ? {} : { deliveries }),
    body: valueOf(body),
  };
}

/** The JSON value of a text, or the text. */
export function valueOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return text; // what was no JSON may be just why it is here
  }
}

/**
 * The command of a dead letter, to be sent again.
 *
 * @throws {FlowClientError} `rejected` where it is about something else, or can never be read.
 */
export function redriven({ kind, id, text }: DeadLetter): NewCommand {
  const { body } = JSON.parse(text) as Stored;
  if (kind !== "cmd" && kind !== "trigger") {
    throw new FlowClientError(
      "rejected",
      `dead letter "${id}" is about a ${kind}, which cannot be done again`,
      {
        hint: "its attempt has failed: rerun the execution from that node",
      },
    );
  }
  try {
    const command = decodeCommand(body);
    return { execId: command.exec_id, id: command.id, text: body };
  } catch (cause) {
    throw new FlowClientError("rejected", `the command of dead letter "${id}" cannot be read`, {
      cause,
      hint: "it would only come back",
    });
  }
}
