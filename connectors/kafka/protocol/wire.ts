/**
 * The primitive types of Kafka's protocol, written and read. Big endian throughout.
 *
 * @module
 */
import { KafkaError } from "../errors.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Writes the body of a request. */
export class WireWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView;
  #at = 0;

  /** @param capacity Bytes to begin with; it grows. */
  constructor(capacity = 256) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** What was written, a view. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#at);
  }

  #room(more: number): number {
    const at = this.#at;
    const needed = at + more;
    if (needed > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      larger.set(this.#bytes.subarray(0, at));
      this.#bytes = larger;
      this.#view = new DataView(larger.buffer);
    }
    this.#at = needed;
    return at;
  }

  /** 8 bits. */
  int8(value: number): this {
    const at = this.#room(1);
    this.#view.setInt8(at, value);
    return this;
  }
  /** 16 bits. */
  int16(value: number): this {
    const at = this.#room(2);
    this.#view.setInt16(at, value);
    return this;
  }
  /** 32 bits. */
  int32(value: number): this {
    const at = this.#room(4);
    this.#view.setInt32(at, value);
    return this;
  }
  /** 64 bits. */
  int64(value: number): this {
    const at = this.#room(8);
    this.#view.setBigInt64(at, BigInt(value));
    return this;
  }
  /** One byte. */
  bool(value: boolean): this {
    return this.int8(value ? 1 : 0);
  }
  /** Text with a length of 16 bits. */
  string(value: string): this {
    const bytes = encoder.encode(value);
    return this.int16(bytes.length).raw(bytes);
  }
  /** As `string`; undefined = null. */
  nullableString(value: string | undefined): this {
    return value === undefined ? this.int16(-1) : this.string(value);
  }
  /** Bytes with a length of 32 bits. */
  bytes(value: Uint8Array): this {
    return this.int32(value.length).raw(value);
  }
  /** Bytes as they are. */
  raw(value: Uint8Array): this {
    const at = this.#room(value.length);
    this.#bytes.set(value, at);
    return this;
  }
  /** Values with their number, 32 bits, in front. */
  array<T>(values: readonly T[], write: (value: T) => void): this {
    this.int32(values.length);
    for (const value of values) write(value);
    return this;
  }
  /** No array, as against an empty one. */
  nullArray(): this {
    return this.int32(-1);
  }

  /** Unsigned varint. */
  uvarint(value: number): this {
    for (; value > 0x7f; value = Math.floor(value / 128)) this.int8((value & 0x7f) | 0x80);
    return this.int8(value);
  }
  /** As `string`, in flexible versions. */
  compactString(value: string): this {
    const bytes = encoder.encode(value);
    return this.uvarint(bytes.length + 1).raw(bytes);
  }
  /** As `nullableString`, in flexible versions. */
  compactNullableString(value: string | undefined): this {
    return value === undefined ? this.uvarint(0) : this.compactString(value);
  }
  /** As `array`, in flexible versions. */
  compactArray<T>(values: readonly T[], write: (value: T) => void): this {
    this.uvarint(values.length + 1);
    for (const value of values) write(value);
    return this;
  }
  /** No tagged fields: closes every structure of a flexible version. */
  noTags(): this {
    return this.int8(0);
  }
}

/** Reads the body of an answer. What is too short is an error, never zeros. */
export class WireReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  /** Reads from the start of `bytes`. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** Bytes not read yet. */
  get left(): number {
    return this.#bytes.length - this.#at;
  }

  #take(bytes: number): number {
    const at = this.#at;
    if (bytes < 0 || at + bytes > this.#bytes.length) {
      throw new KafkaError(
        "kafka_corrupt",
        `an answer ends at byte ${this.#bytes.length}, ${bytes} more are needed at ${at}`,
      );
    }
    this.#at = at + bytes;
    return at;
  }

  /** 8 bits. */
  int8(): number {
    return this.#view.getInt8(this.#take(1));
  }
  /** 16 bits. */
  int16(): number {
    return this.#view.getInt16(this.#take(2));
  }
  /** 32 bits. */
  int32(): number {
    return this.#view.getInt32(this.#take(4));
  }
  /** 64 bits; what a number cannot hold exactly is refused. */
  int64(): number {
    const value = Number(this.#view.getBigInt64(this.#take(8)));
    if (!Number.isSafeInteger(value)) {
      throw new KafkaError("kafka_corrupt", `an answer has the number ${value}, above 2^53`);
    }
    return value;
  }
  /** 64 bits of time; rounded above 2^53. */
  time(): number {
    return Number(this.#view.getBigInt64(this.#take(8)));
  }
  /** One byte. */
  bool(): boolean {
    return this.int8() !== 0;
  }
  /** Text; null counts as empty. */
  string(): string {
    return this.nullableString() ?? "";
  }
  /** Text; null = undefined. */
  nullableString(): string | undefined {
    const length = this.int16();
    return length < 0 ? undefined : this.#text(length);
  }
  /** Bytes, a view; null counts as empty. */
  bytes(): Uint8Array {
    return this.raw(Math.max(this.int32(), 0));
  }
  /** This many bytes, a view. */
  raw(length: number): Uint8Array {
    const at = this.#take(length);
    return this.#bytes.subarray(at, at + length);
  }
  /** An array; null counts as empty. */
  array<T>(read: () => T): T[] {
    return this.#values(this.int32(), read);
  }

  /** Unsigned varint. */
  uvarint(): number {
    let value = 0;
    for (let factor = 1; factor < 2 ** 35; factor *= 128) {
      const byte = this.#bytes[this.#take(1)]!;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new KafkaError("kafka_corrupt", "an answer has a length of more than 5 bytes");
  }
  /** As `string`, in flexible versions. */
  compactString(): string {
    return this.compactNullableString() ?? "";
  }
  /** As `nullableString`, in flexible versions. */
  compactNullableString(): string | undefined {
    const length = this.uvarint();
    return length === 0 ? undefined : this.#text(length - 1);
  }
  /** As `array`, in flexible versions. */
  compactArray<T>(read: () => T): T[] {
    return this.#values(this.uvarint() - 1, read);
  }
  /** Skips the tagged fields at the end of a structure. */
  skipTags(): void {
    for (let left = this.uvarint(); left > 0; left--) {
      this.uvarint();
      this.#take(this.uvarint());
    }
  }

  #text(length: number): string {
    return decoder.decode(this.raw(length));
  }

  #values<T>(count: number, read: () => T): T[] {
    if (count > this.left) {
      throw new KafkaError(
        "kafka_corrupt",
        `an answer says ${count} entries follow, and has ${this.left} bytes left`,
      );
    }
    const values: T[] = [];
    for (; count > 0; count--) values.push(read());
    return values;
  }
}
