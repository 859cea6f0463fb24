/**
 * Bytes that grow at their end, and reading them again.
 *
 * @module
 */
import { Buffer } from "node:buffer";

/** Bytes behind each other. `bytes` and `view` are replaced when it grows: take them anew after every `reserve`. */
export class ByteWriter {
  /** What has been written, up to `at`; behind that, room. */
  bytes: Uint8Array<ArrayBuffer>;
  /** The same memory. */
  view: DataView<ArrayBuffer>;
  /** Where the next byte goes. */
  at = 0;
  #buffer: Buffer;

  /** @param room Bytes to begin with. */
  constructor(room = 1024) {
    this.bytes = new Uint8Array(room);
    this.view = new DataView(this.bytes.buffer);
    this.#buffer = Buffer.from(this.bytes.buffer);
  }

  /** Makes room for `more` bytes. */
  reserve(more: number): void {
    const needed = this.at + more;
    if (needed <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, this.bytes.length * 2));
    grown.set(this.bytes.subarray(0, this.at));
    this.bytes = grown;
    this.view = new DataView(grown.buffer);
    this.#buffer = Buffer.from(grown.buffer);
  }

  /** One byte. There must be room. */
  byte(value: number): void {
    this.bytes[this.at++] = value;
  }

  /** A whole number from 0 to 2^53 − 1, in seven bits a byte, the lowest first. Makes its own room. */
  varint(value: number): void {
    this.reserve(8);
    const { bytes } = this;
    let at = this.at, rest = value;
    while (rest > 0x7fff_ffff) {
      bytes[at++] = (rest % 128) | 0x80;
      rest = Math.floor(rest / 128);
    }
    while (rest > 127) {
      bytes[at++] = (rest & 127) | 0x80;
      rest >>>= 7;
    }
    bytes[at++] = rest;
    this.at = at;
  }

  /** A double. Makes its own room. */
  double(value: number): void {
    this.reserve(8);
    this.view.setFloat64(this.at, value, true);
    this.at += 8;
  }

  /** Other bytes, copied. Makes its own room. */
  copy(source: Uint8Array): void {
    this.reserve(source.length);
    this.bytes.set(source, this.at);
    this.at += source.length;
  }

  /** A text of units up to U+00FF, a byte each. Makes its own room. */
  latin1(text: string): void {
    this.reserve(text.length);
    this.at += this.#buffer.write(text, this.at, "latin1");
  }

  /** A text, two bytes a unit. Makes its own room. */
  utf16(text: string): void {
    this.reserve(text.length * 2);
    this.at += this.#buffer.write(text, this.at, "utf16le");
  }

  /** A copy of what has been written. */
  taken(): Uint8Array<ArrayBuffer> {
    return this.bytes.slice(0, this.at);
  }
}

/** Reads what a {@link ByteWriter} has written. Reading past the end is a RangeError. */
export class ByteReader {
  bytes: Uint8Array;
  view: DataView;
  /** The next byte. */
  at: number;
  #buffer: Buffer | undefined;

  constructor(bytes: Uint8Array, at = 0) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = at;
  }

  byte(): number {
    return this.view.getUint8(this.at++);
  }

  varint(): number {
    let value = 0, scale = 1, byte;
    do {
      byte = this.view.getUint8(this.at++);
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    return value;
  }

  double(): number {
    const value = this.view.getFloat64(this.at, true);
    this.at += 8;
    return value;
  }

  /** The next `length` bytes, copied. */
  copied(length: number): Uint8Array<ArrayBuffer> {
    return Uint8Array.from(this.bytes.subarray(this.at, this.#pass(length)));
  }

  latin1(length: number): string {
    return this.#text().toString("latin1", this.at, this.#pass(length));
  }

  /** @param length In units. */
  utf16(length: number): string {
    return this.#text().toString("utf16le", this.at, this.#pass(length * 2));
  }

  #text(): Buffer {
    const { buffer, byteOffset, byteLength } = this.bytes;
    return this.#buffer ??= Buffer.from(buffer, byteOffset, byteLength);
  }

  #pass(length: number): number {
    if (this.at + length > this.bytes.length) {
      throw new RangeError(`${length} bytes at ${this.at} of ${this.bytes.length}`);
    }
    return this.at += length;
  }
}

/** Copies bytes `from` … `to` − 1 to the end of `target`. For few of them four at a time are faster than a call. */
export function copyShort(
  source: Uint8Array,
  view: DataView,
  from: number,
  to: number,
  target: ByteWriter,
): void {
  const length = to - from;
  target.reserve(length);
  if (length > 96) {
    target.bytes.set(source.subarray(from, to), target.at);
    target.at += length;
    return;
  }
  const { bytes, view: targetView, at } = target;
  let i = 0;
  for (; i + 4 <= length; i += 4) targetView.setUint32(at + i, view.getUint32(from + i));
  for (; i < length; i++) bytes[at + i] = source[from + i]!;
  target.at = at + length;
}
