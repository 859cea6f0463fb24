/**
 * Records as they were read, as columns over the bytes they came in: nothing is copied, and nothing is allocated a record until
 * somebody asks for its key or value.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import type { Headers } from "../../../lib/record.ts";
import type { KafkaRecord } from "./types.ts";

/** A run of records of one partition, in order. All columns have `length` entries. */
export class FetchedRecords {
  /** Number of records; at least one. */
  readonly length: number;
  /** What `keyStarts` and `valueStarts` point into. Not to be changed; kept alive by every key and value taken from it. */
  readonly bytes: Uint8Array;
  /** Offsets, rising, with gaps where records were compacted away. */
  readonly offsets: Float64Array<ArrayBuffer>;
  /** Ms since the epoch: the producer's, or when the broker wrote it, as the topic is set. */
  readonly timestamps: Float64Array<ArrayBuffer>;
  /** Where keys begin. */
  readonly keyStarts: Int32Array;
  /** Bytes of keys; -1 = null. */
  readonly keyLengths: Int32Array;
  /** Where values begin. */
  readonly valueStarts: Int32Array;
  /** Bytes of values; -1 = null. */
  readonly valueLengths: Int32Array;
  /** Headers; undefined where no record has any. A header whose value is null reads as empty. */
  readonly headers: readonly (Headers | undefined)[] | undefined;
  readonly #buffer: Buffer;

  /** Takes everything over as it is. */
  constructor(bytes: Uint8Array, columns: RecordColumns) {
    this.bytes = bytes;
    this.#buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.length = columns.offsets.length;
    this.offsets = columns.offsets;
    this.timestamps = columns.timestamps;
    this.keyStarts = columns.keyStarts;
    this.keyLengths = columns.keyLengths;
    this.valueStarts = columns.valueStarts;
    this.valueLengths = columns.valueLengths;
    this.headers = columns.headers;
  }

  /** Offset of the first record where offsets count up by one, else undefined. */
  get firstOffset(): number | undefined {
    const first = this.offsets[0]!;
    return this.offsets[this.length - 1]! - first === this.length - 1 ? first : undefined;
  }

  /** Key of a record, a view; null = none. */
  key(index: number): Uint8Array | null {
    const length = this.keyLengths[index]!;
    if (length < 0) return null;
    const start = this.keyStarts[index]!;
    return this.bytes.subarray(start, start + length);
  }

  /** Value of a record, a view; null = a tombstone. */
  value(index: number): Uint8Array | null {
    const length = this.valueLengths[index]!;
    if (length < 0) return null;
    const start = this.valueStarts[index]!;
    return this.bytes.subarray(start, start + length);
  }

  /** Key as text, read as UTF-8 (what is none becomes U+FFFD); cheaper than decoding the view. */
  keyText(index: number): string | null {
    const length = this.keyLengths[index]!;
    const start = this.keyStarts[index]!;
    return length < 0 ? null : this.#buffer.toString("utf8", start, start + length);
  }

  /** Value as text, likewise. */
  valueText(index: number): string | null {
    const length = this.valueLengths[index]!;
    const start = this.valueStarts[index]!;
    return length < 0 ? null : this.#buffer.toString("utf8", start, start + length);
  }

  /** One record as an object, for where speed does not matter. */
  record(index: number): KafkaRecord & { readonly offset: number } {
    return {
      offset: this.offsets[index]!,
      timestamp: this.timestamps[index]!,
      key: this.key(index),
      value: this.value(index),
      headers: this.headers?.[index],
    };
  }
}

/** The columns of {@link FetchedRecords}. */
export type RecordColumns = Pick<
  FetchedRecords,
  "offsets" | "timestamps" | "keyStarts" | "keyLengths" | "valueStarts" | "valueLengths" | "headers"
>;
