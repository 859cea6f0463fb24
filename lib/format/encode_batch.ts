/**
 * Batches to payloads, and payloads to lines: what sinks that write lines share.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { asError } from "../errors.ts";
import type { Batch } from "../record.ts";
import type { Encoder, Payload } from "./format.ts";

/**
 * The payloads of a batch's values.
 *
 * @param reject Called for a value that cannot be written; it is left out where the call returns.
 */
export function encodeBatch(
  encoder: Encoder,
  batch: Batch,
  reject: (batch: Batch, index: number, error: Error) => void,
): Payload[] {
  const payloads: Payload[] = [], { values } = batch;
  for (let i = 0; i < values.length; i++) {
    let payload: Payload;
    try {
      payload = encoder.encode(values[i]);
    } catch (error) {
      reject(batch, i, asError(error));
      continue;
    }
    payloads.push(payload);
  }
  return payloads;
}

const UTF8 = new TextEncoder();

/** Payloads in UTF-8, each with a line break behind it. */
export function linesOf(payloads: readonly Payload[]): Uint8Array {
  const parts: Uint8Array[] = [];
  let text = "";
  for (const payload of payloads) {
    if (typeof payload === "string") text += payload + "\n";
    else {
      parts.push(UTF8.encode(text), payload);
      text = "\n";
    }
  }
  const last = UTF8.encode(text);
  return parts.length === 0 ? last : Buffer.concat([...parts, last]);
}

/** Bytes a payload takes as a line, its line break included. */
export function lineLength(payload: Payload): number {
  return (typeof payload === "string" ? Buffer.byteLength(payload) : payload.length) + 1;
}
