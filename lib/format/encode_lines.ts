/**
 * Batches to lines: what file and stdout sinks write.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { asError } from "../errors.ts";
import type { Batch } from "../record.ts";
import type { Encoder, Payload } from "./format.ts";

const UTF8 = new TextEncoder();

/**
 * The payloads of a batch's values, each with a line break behind it.
 *
 * @param reject Called for a value that cannot be written; it is left out where the call returns.
 */
export function encodeLines(
  encoder: Encoder,
  batch: Batch,
  reject: (batch: Batch, index: number, error: Error) => void,
): Lines {
  const lines = new Lines();
  const { values } = batch;
  for (let i = 0; i < values.length; i++) {
    let payload: Payload;
    try {
      payload = encoder.encode(values[i]);
    } catch (error) {
      reject(batch, i, asError(error));
      continue;
    }
    lines.add(payload);
  }
  return lines;
}

/** Lines that are written together. */
export class Lines {
  #text = "";
  #parts: Uint8Array[] | undefined;

  /** Adds a payload and its line break. */
  add(payload: Payload): void {
    if (typeof payload === "string") {
      this.#text += payload + "\n";
    } else {
      const parts = this.#parts ??= [];
      parts.push(UTF8.encode(this.#text), payload);
      this.#text = "\n";
    }
  }

  /** All of them in UTF-8. */
  bytes(): Uint8Array {
    const text = UTF8.encode(this.#text);
    return this.#parts === undefined ? text : Buffer.concat([...this.#parts, text]);
  }
}
