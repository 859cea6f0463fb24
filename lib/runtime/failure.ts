/**
 * What becomes of a record that an operator, source or sink cannot handle.
 *
 * F1 Nothing is dropped in silence: `drop` and `dlq` count, under the operator's name.
 * F2 A dead letter carries what came in (text or bytes while there is one such record, else the value), where it came from, and the error.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { Clock } from "../clock.ts";
import { asError, codeOf, RecordError } from "../errors.ts";
import { stringifyJson } from "../json.ts";
import { Batch, type Headers } from "../record.ts";
import type { OperatorCounters } from "./counters.ts";
import type { Receiver } from "./operator.ts";
import { isTimestamp } from "./watermarks.ts";

/** `fail` ends the run (the default), `drop` leaves the record out, `dlq` sends it to the dead-letter sink. */
export type OnError = "fail" | "drop" | "dlq";

/** How often a failing call is made again before the failure policy applies. */
export interface RetryPolicy {
  /** Calls in all, ≥ 1. */
  readonly attempts: number;
  /** Wait before each further call, ms. */
  readonly delay: number;
}

/** A record that could not be handled, as the dead-letter sink gets it. */
export interface DeadLetter {
  /** Why it is here: `error`. */
  readonly reason: string;
  /** Id of the operator, source or sink that could not handle it. */
  readonly operator: string;
  /** What went wrong; the code is stable. */
  readonly error: { readonly code: string; readonly message: string };
  /** Name of the source it was read from; of a row an operator made, that operator. */
  readonly source: string;
  /** Split it was read from; of a row an operator made, the partition. */
  readonly split: string;
  /** Offset in the split; null where the record has none. */
  readonly offset: number | null;
  /** Event time, RFC 3339; null where the record has none. */
  readonly timestamp: string | null;
  /** Its key; null where it has none. */
  readonly key: unknown;
  /** The record as it came: text, or `{"base64": …}` for bytes that are no UTF-8 text. */
  readonly value: unknown;
  /** Its headers in order: text, or `{"base64": …}` for bytes that are no UTF-8 text. */
  readonly headers: readonly (readonly [string, unknown])[];
  /** When it was given up, RFC 3339. */
  readonly at: string;
}

/** Decides what happens to a failed record. Returns when the record is to be left out; throws when the run is to end. */
export type FailureHandler = (batch: Batch, index: number, error: unknown) => void;

/** The handler of one operator. */
export function failureHandler(
  operator: string,
  onError: OnError,
  counters: OperatorCounters,
  clock: Clock,
  deadLetters: () => Receiver | undefined,
): FailureHandler {
  return (batch, index, error) => {
    counters.errors++;
    if (onError === "fail") {
      if (error instanceof RecordError) throw error;
      throw new RecordError(operator, batch.position(index), error);
    }
    if (onError === "drop") {
      counters.drop("error", 1);
      return;
    }
    counters.deadLetters++;
    const letter = deadLetter(operator, batch, index, error, clock.now());
    const rows = Int32Array.of(batch.row(index));
    deadLetters()!.batch(new Batch<unknown>([letter], batch.origin, rows, [batch.key(index)], false));
  };
}

/** The dead letter of one record. */
export function deadLetter(
  operator: string,
  batch: Batch,
  index: number,
  thrown: unknown,
  now: number,
): DeadLetter {
  const error = asError(thrown);
  const { source, split, offset } = batch.position(index);
  const timestamp = batch.timestamp(index);
  return {
    reason: "error",
    operator,
    error: { code: codeOf(thrown), message: error.message },
    source,
    split,
    offset: offset ?? null,
    timestamp: isTimestamp(timestamp) ? new Date(timestamp).toISOString() : null,
    key: batch.key(index) ?? null,
    value: asItCame(batch.text(index) ?? batch.values[index]),
    headers: readableHeaders(batch.headers(index)),
    at: new Date(now).toISOString(),
  };
}

function asItCame(value: unknown): unknown {
  if (typeof value === "string") return value;
  if (value instanceof Uint8Array) return bytesAsText(value);
  try {
    return stringifyJson(value);
  } catch (error) {
    return `(not JSON: ${asError(error).message})`;
  }
}

function readableHeaders(headers: Headers): readonly (readonly [string, unknown])[] {
  return headers.map(([name, value]) => [name, bytesAsText(value)] as const);
}

/** Bytes as text where they are UTF-8, else as base64. */
function bytesAsText(bytes: Uint8Array): unknown {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const text = buffer.toString("utf8");
  return Buffer.from(text, "utf8").equals(buffer) ? text : { base64: buffer.toString("base64") };
}
