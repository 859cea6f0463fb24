/**
 * The format `bytes`: the record is its bytes, untouched.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { MailerError } from "../errors.ts";
import type { Decoded, Decoder, Encoder, Format, Payload } from "./format.ts";

/** Bytes as they are. Encoding takes bytes and texts; any other value fails (`not_bytes`). */
export function bytesFormat(): Format<Uint8Array> {
  return { name: "bytes", decoder: () => bytesDecoder, encoder: () => bytesEncoder };
}

const bytesDecoder: Decoder<Uint8Array> = {
  decode(payloads: readonly Payload[], into: Decoded<Uint8Array>): void {
    for (const payload of payloads) {
      into.values.push(typeof payload === "string" ? new Uint8Array(Buffer.from(payload)) : payload);
    }
  },
};

const bytesEncoder: Encoder = {
  encode(value: unknown): Payload {
    if (value instanceof Uint8Array || typeof value === "string") return value;
    throw new MailerError("not_bytes", `the format bytes writes bytes or text, got ${kindOf(value)}`, {
      hint: "map the record to bytes first, or use the format json",
    });
  },
};

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `a value of type ${typeof value}`;
}
