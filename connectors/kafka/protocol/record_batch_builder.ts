/**
 * Encodes records into one record batch (format 2), the unit a producer sends to a partition.
 *
 * Records are written into the buffer as they come, nothing is kept of them. What is only known when the batch is sent (producer,
 * epoch, sequence number, checksum) is stamped on it by `encode`, which may be called again: a retry sends the same bytes.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { Headers } from "../../../lib/record.ts";
import { KafkaError } from "../errors.ts";
import { codecNumber, compress } from "./codecs.ts";
import { crc32c } from "./crc32c.ts";
import type { Codec } from "./types.ts";

/** Bytes in front of the first record. */
export const BATCH_HEADER_BYTES = 61;
/** The checksum covers everything from here on. */
const CHECKED_FROM = 21;

const TRANSACTIONAL = 0x10;
/** Varints of one record outside of its headers: length, attributes, time, offset, key, value, number of headers. */
const RECORD_OVERHEAD = 5 + 1 + 10 + 5 + 5 + 5 + 5;
const LARGEST = 2 ** 31 - 1 - BATCH_HEADER_BYTES;

/** What is stamped on a batch when it is sent. */
export interface BatchStamp {
  /** Number the broker gave the producer; -1 = not idempotent. */
  readonly producerId: number;
  /** -1 = not idempotent. */
  readonly epoch: number;
  /** Number of the first record within producer, epoch and partition; -1 = not idempotent. */
  readonly sequence: number;
  /** Whether it belongs to a transaction. */
  readonly transactional: boolean;
  /** How it is compressed. */
  readonly codec: Codec;
}

/** Stamp of a batch whose producer numbers nothing. */
export const PLAIN_STAMP: BatchStamp = {
  producerId: -1,
  epoch: -1,
  sequence: -1,
  transactional: false,
  codec: "none",
};

const encoder = new TextEncoder();
let scratch = new Uint8Array(4096);

/** Bytes of a text, in a buffer that the next call overwrites. */
function utf8(text: string): Uint8Array {
  if (scratch.length < text.length * 3) scratch = new Uint8Array(text.length * 3);
  return scratch.subarray(0, encoder.encodeInto(text, scratch).written);
}

/** Number of bytes of a zigzag varint. */
function varintBytes(value: number): number {
  const bits = 32 - Math.clz32((value << 1) ^ (value >> 31));
  return bits <= 7 ? 1 : bits <= 14 ? 2 : bits <= 21 ? 3 : bits <= 28 ? 4 : 5;
}

/** One batch in the making. */
export class RecordBatchBuilder {
  #bytes: Uint8Array<ArrayBuffer>;
  #at = BATCH_HEADER_BYTES;
  #count = 0;
  #baseTimestamp = 0;
  #maxTimestamp = 0;
  #compressed: { readonly codec: Codec; readonly bytes: Uint8Array<ArrayBuffer> } | undefined;

  /**
   * An empty batch.
   *
   * @param capacity Bytes to begin with; it grows.
   */
  constructor(capacity: number = 16 * 1024) {
    this.#bytes = new Uint8Array(Math.max(capacity, BATCH_HEADER_BYTES + RECORD_OVERHEAD));
  }

  /** Number of records. */
  get count(): number {
    return this.#count;
  }

  /** Bytes of the batch without compression. */
  get size(): number {
    return this.#at;
  }

  /** The most bytes `append` would add for such a record. */
  static mostBytes(
    key: Uint8Array | string | null,
    value: Uint8Array | string | null,
    headers?: Headers,
  ): number {
    let bytes = RECORD_OVERHEAD + mostBytesOf(key) + mostBytesOf(value);
    if (headers !== undefined) {
      for (const [name, content] of headers) bytes += 10 + mostBytesOf(name) + content.length;
    }
    return bytes;
  }

  /**
   * Adds one record.
   *
   * @param key Bytes, or a text to be written as UTF-8; null = none. Copied.
   * @param value Likewise; null = a tombstone.
   * @param timestamp Ms since the epoch; fractions are cut off.
   * @param headers Written in their order, also repeated names.
   * @throws {KafkaError} `kafka_invalid_record` where the timestamp is no time, `kafka_record_too_large` above 2 GiB.
   */
  append(
    key: Uint8Array | string | null,
    value: Uint8Array | string | null,
    timestamp: number,
    headers?: Headers,
  ): void {
    const time = Math.trunc(timestamp);
    if (!Number.isSafeInteger(time)) {
      throw new KafkaError(
        "kafka_invalid_record",
        `a record has the timestamp ${timestamp}, which is no time`,
        {
          hint: "timestamps are milliseconds since the epoch",
        },
      );
    }
    if (typeof key === "string") key = typeof value === "string" ? encoder.encode(key) : utf8(key);
    if (typeof value === "string") value = utf8(value);
    if (this.#count === 0) this.#baseTimestamp = this.#maxTimestamp = time;
    else if (time > this.#maxTimestamp) this.#maxTimestamp = time;
    this.#write(key, value, time - this.#baseTimestamp, headers);
    this.#count++;
    this.#compressed = undefined;
  }

  #write(
    key: Uint8Array | null,
    value: Uint8Array | null,
    delta: number,
    headers: Headers | undefined,
  ): void {
    const keyLength = key === null ? -1 : key.length;
    const valueLength = value === null ? -1 : value.length;
    const headerBytes = headers === undefined || headers.length === 0 ? 0 : headersBytes(headers);
    const body = 1 + varlongBytes(delta) + varintBytes(this.#count) +
      varintBytes(keyLength) + Math.max(keyLength, 0) +
      varintBytes(valueLength) + Math.max(valueLength, 0) +
      varintBytes(headers?.length ?? 0) + headerBytes;
    this.#ensure(body + 5);
    this.#varint(body);
    this.#bytes[this.#at++] = 0; // attributes, unused
    this.#varlong(delta);
    this.#varint(this.#count);
    this.#field(key);
    this.#field(value);
    this.#varint(headers?.length ?? 0);
    if (headerBytes > 0) this.#headers(headers!);
  }

  #headers(headers: Headers): void {
    for (const [name, content] of headers) {
      this.#field(utf8(name));
      this.#field(content);
    }
  }

  #field(content: Uint8Array | null): void {
    if (content === null) return this.#varint(-1);
    const length = content.length;
    this.#varint(length);
    const bytes = this.#bytes;
    const at = this.#at;
    if (length <= 24) { for (let i = 0; i < length; i++) bytes[at + i] = content[i]!; // cheaper than a call
     } else bytes.set(content, at);
    this.#at = at + length;
  }

  #varint(value: number): void {
    let rest = (value << 1) ^ (value >> 31);
    const bytes = this.#bytes;
    let at = this.#at;
    while ((rest & ~0x7f) !== 0) {
      bytes[at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    bytes[at++] = rest;
    this.#at = at;
  }

  #varlong(value: number): void {
    if (value === (value | 0)) return this.#varint(value);
    let rest = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n));
    for (; rest > 0x7fn; rest >>= 7n) this.#bytes[this.#at++] = Number(rest & 0x7fn) | 0x80;
    this.#bytes[this.#at++] = Number(rest);
  }

  #ensure(more: number): void {
    const needed = this.#at + more;
    if (needed <= this.#bytes.length) return;
    if (needed > LARGEST) {
      throw new KafkaError(
        "kafka_record_too_large",
        `a batch would have ${needed} bytes, more than there can be`,
      );
    }
    const larger = new Uint8Array(Math.min(Math.max(needed, this.#bytes.length * 2), LARGEST));
    larger.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = larger;
  }

  /** The batch as it is sent. The bytes belong to the builder and are good until it is changed or encoded again. */
  encode(stamp: BatchStamp): Uint8Array {
    const batch = stamp.codec === "none" ? this.#bytes.subarray(0, this.#at) : this.#compress(stamp.codec);
    const view = new DataView(batch.buffer, batch.byteOffset, BATCH_HEADER_BYTES);
    view.setBigInt64(0, 0n); // offset: the broker's
    view.setInt32(8, batch.length - 12);
    view.setInt32(12, -1); // leader epoch: the broker's
    view.setInt8(16, 2);
    view.setInt16(21, codecNumber(stamp.codec) | (stamp.transactional ? TRANSACTIONAL : 0));
    view.setInt32(23, this.#count - 1);
    view.setBigInt64(27, BigInt(this.#baseTimestamp));
    view.setBigInt64(35, BigInt(this.#maxTimestamp));
    view.setBigInt64(43, BigInt(stamp.producerId));
    view.setInt16(51, stamp.epoch);
    view.setInt32(53, stamp.sequence);
    view.setInt32(57, this.#count);
    view.setUint32(17, crc32c(batch, CHECKED_FROM));
    return batch;
  }

  #compress(codec: Codec): Uint8Array<ArrayBuffer> {
    if (this.#compressed?.codec === codec) return this.#compressed.bytes;
    const packed = compress(codec, this.#bytes.subarray(BATCH_HEADER_BYTES, this.#at));
    const bytes = new Uint8Array(BATCH_HEADER_BYTES + packed.length);
    bytes.set(packed, BATCH_HEADER_BYTES);
    this.#compressed = { codec, bytes };
    return bytes;
  }
}

const mostBytesOf = (content: Uint8Array | string | null): number =>
  content === null ? 0 : typeof content === "string" ? 3 * content.length : content.length;

function varlongBytes(value: number): number {
  if (value === (value | 0)) return varintBytes(value);
  let rest = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n));
  let bytes = 1;
  for (; rest > 0x7fn; rest >>= 7n) bytes++;
  return bytes;
}

function headersBytes(headers: Headers): number {
  let bytes = 0;
  for (const [name, content] of headers) {
    const length = Buffer.byteLength(name);
    bytes += varintBytes(length) + length + varintBytes(content.length) + content.length;
  }
  return bytes;
}
