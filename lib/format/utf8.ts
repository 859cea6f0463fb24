/**
 * Bytes to text, and no byte lost on the way: what is not UTF-8 is an error, never U+FFFD.
 *
 * @module
 */
import { Buffer, isAscii, isUtf8 } from "node:buffer";
import { MailerError } from "../errors.ts";

// In Node's and Deno's `Buffer`, quicker than `toString` with an encoding, but not in the types.
interface Slices {
  latin1Slice(from?: number, to?: number): string;
  utf8Slice(from?: number, to?: number): string;
}

/** Text of bytes that are ASCII. */
export function asciiText(bytes: Uint8Array, from: number, to: number): string {
  return (Buffer.prototype as unknown as Slices).latin1Slice.call(bytes, from, to);
}

/** Text of bytes that are UTF-8. A byte order mark stays. */
export function validUtf8Text(bytes: Uint8Array, from: number, to: number): string {
  return (Buffer.prototype as unknown as Slices).utf8Slice.call(bytes, from, to);
}

/**
 * Text of bytes. A byte order mark stays.
 *
 * @throws {MailerError} `not_utf8`
 */
export function utf8Text(bytes: Uint8Array): string {
  if (!isUtf8(bytes)) throw notUtf8(bytes);
  return validUtf8Text(bytes, 0, bytes.length);
}

/** What bytes can be read as at once: `bytes` where they are not UTF-8. */
export function encodingOf(bytes: Uint8Array): "ascii" | "utf8" | "bytes" {
  return isAscii(bytes) ? "ascii" : isUtf8(bytes) ? "utf8" : "bytes";
}

/** Text where the bytes are UTF-8, else a copy of the bytes. */
export function textOrBytes(bytes: Uint8Array): string | Uint8Array {
  return isUtf8(bytes) ? validUtf8Text(bytes, 0, bytes.length) : Uint8Array.prototype.slice.call(bytes);
}

/** The error of bytes that are not UTF-8; names the first one that is wrong. */
export function notUtf8(bytes: Uint8Array): MailerError {
  const text = validUtf8Text(bytes, 0, bytes.length);
  let at = text.indexOf("\ufffd"), offset = 0;
  for (let from = 0; at !== -1; at = text.indexOf("\ufffd", from)) {
    offset += Buffer.byteLength(text.slice(from, at));
    if (bytes[offset] !== 0xef || bytes[offset + 1] !== 0xbf || bytes[offset + 2] !== 0xbd) break;
    offset += 3; // the character itself, written out
    from = at + 1;
  }
  return new MailerError("not_utf8", `not UTF-8: wrong at byte ${offset} of ${bytes.length}`);
}
