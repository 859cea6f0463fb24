/**
 * Records, and the batches they travel in.
 *
 * A batch is a struct of arrays. What an operator usually touches, the values, is an array of its own; everything a
 * record was read with (timestamp, watermark, offset, headers, source text) stays in the {@link Origin} that all batches
 * derived from one read share. So a filter copies values and row numbers, never timestamps, and nothing is allocated
 * a record.
 *
 * R1 `values[i]` belongs to row `rows[i]` of the origin (to row `i` where `rows` is undefined).
 * R2 An origin is never changed once a batch refers to it. Values belong to whoever receives them.
 * R3 Rows of one origin come from one channel, in the order of that channel.
 * R4 `watermarks[row]` is the watermark that held in the channel just before the record: it never falls within a channel.
 *
 * @module
 */
import type { RecordPosition } from "./errors.ts";

/** Headers in order; a name may repeat. */
export type Headers = readonly (readonly [name: string, value: Uint8Array])[];

/** No records with a smaller timestamp will come: this much of event time is complete, in ms. Before the first record: -Infinity. */
export type Watermark = number;

/**
 * A line of records with a watermark of its own: a split of a source, or one partition of an operator that makes rows.
 * Two ways from one split to one operator are two channels there.
 */
export interface Channel {
  /** Channels that come from one place and open together; an operator waits for each group it expects to open. */
  readonly group: number;
  /** `source/split` or `operator/partition`, for people. */
  readonly name: string;
}

/** What a run of records was read, or made, with. Columns have one entry a row. */
export interface Origin {
  /** The channel all rows belong to; its order is theirs. */
  readonly channel: Channel;
  /** Name of the source; of rows an operator made, its id. */
  readonly source: string;
  /** Split of the source; of rows an operator made, its partition. */
  readonly split: string;
  /** Event time, ms since the epoch. */
  readonly timestamps: Float64Array;
  /** The watermark that held in the channel just before the record. */
  readonly watermarks: Float64Array;
  /** Offset of row 0 where offsets count up by one. */
  readonly firstOffset: number | undefined;
  /** Offsets one by one, where they do not count up; undefined with `firstOffset`, and for rows an operator made. */
  readonly offsets: Float64Array | undefined;
  /** Headers of the records; undefined where no record has any. */
  readonly headers: readonly (Headers | undefined)[] | undefined;
  /** Keys the source read with the records. */
  readonly keys: readonly unknown[] | undefined;
  /** What the source read, as it came: text or bytes. */
  readonly texts: readonly (string | Uint8Array)[] | undefined;
  /** Windows the rows are results of. */
  readonly windows: readonly (WindowOfRow | undefined)[] | undefined;
  /** Bytes read for all rows together, an estimate for bounding memory; 0 = unknown. */
  readonly bytes: number;
}

/** The window a row is a result of; event time in ms, half open. */
export interface WindowOfRow {
  /** First instant, ms since the epoch. */
  readonly start: number;
  /** First instant behind it, ms since the epoch. */
  readonly end: number;
  /** IANA zone that the row's times are printed in; UTC without. */
  readonly timezone?: string;
  /** Set on a row given before the window closed. */
  readonly early?: true;
}

/** Records that travel together as one chunk of an edge. */
export class Batch<T = unknown> {
  /** The values, which belong to whoever receives the batch. */
  readonly values: T[];
  /** Row of the origin for each value; undefined = the same index. */
  readonly rows: Int32Array | undefined;
  /** Keys chosen by a `keyBy`; undefined = the origin's. */
  readonly keys: unknown[] | undefined;
  /** What the records were read with; shared, and never changed. */
  readonly origin: Origin;
  /** Whether each value still stands for exactly one record as the source read it. */
  readonly oneToOne: boolean;

  /** Takes everything over as it is: see R1 for how `values`, `rows` and `origin` belong together. */
  constructor(
    values: T[],
    origin: Origin,
    rows: Int32Array | undefined = undefined,
    keys: unknown[] | undefined = undefined,
    oneToOne = true,
  ) {
    this.values = values;
    this.rows = rows;
    this.keys = keys;
    this.origin = origin;
    this.oneToOne = oneToOne;
  }

  /** Number of records. */
  get length(): number {
    return this.values.length;
  }

  /** Row of the origin that value `index` belongs to. */
  row(index: number): number {
    return this.rows === undefined ? index : this.rows[index]!;
  }
  /** Event time of a record, ms since the epoch. */
  timestamp(index: number): number {
    return this.origin.timestamps[this.row(index)]!;
  }
  /** The watermark that held in the channel just before the record. */
  watermark(index: number): Watermark {
    return this.origin.watermarks[this.row(index)]!;
  }
  /** The key chosen by the last `keyBy`, else the source's, else `undefined`. */
  key(index: number): unknown {
    return this.keys === undefined ? this.origin.keys?.[this.row(index)] : this.keys[index];
  }
  /** Headers in their order; empty where there are none. */
  headers(index: number): Headers {
    return this.origin.headers?.[this.row(index)] ?? NO_HEADERS;
  }
  /** Offset in the split; `undefined` for a row an operator made. */
  offset(index: number): number | undefined {
    const { offsets, firstOffset } = this.origin;
    if (offsets !== undefined) return offsets[this.row(index)];
    return firstOffset === undefined ? undefined : firstOffset + this.row(index);
  }
  /** The window the row is a result of, if any. */
  window(index: number): WindowOfRow | undefined {
    return this.origin.windows?.[this.row(index)];
  }
  /** What the source read for this record, while the value still stands for one such record. */
  text(index: number): string | Uint8Array | undefined {
    return this.oneToOne ? this.origin.texts?.[this.row(index)] : undefined;
  }
  /** Where the record came from, for errors and dead letters. */
  position(index: number): RecordPosition {
    return { source: this.origin.source, split: this.origin.split, offset: this.offset(index) };
  }
  /** Estimate of the bytes this batch holds; 0 = unknown. */
  get bytes(): number {
    const { bytes, timestamps } = this.origin;
    return bytes === 0 || timestamps.length === 0 ? 0 : bytes * (this.values.length / timestamps.length);
  }
  /** The same records with other values. */
  withValues<U>(values: U[]): Batch<U> {
    return new Batch(values, this.origin, this.rows, this.keys, this.oneToOne);
  }
  /** The same records under an origin whose rows are numbered as this batch's origin's are. */
  withOrigin(origin: Origin): Batch<T> {
    return new Batch(this.values, origin, this.rows, this.keys, this.oneToOne);
  }
  /** The same records under an origin that has exactly one row for each value. */
  withRows(origin: Origin): Batch<T> {
    return new Batch(this.values, origin, undefined, this.keys, this.oneToOne);
  }
}

const NO_HEADERS: Headers = Object.freeze([]);

/**
 * A record as user functions see it beside its value. One view moves along a batch: it is valid during the call only.
 */
export interface RecordContext {
  /** The key chosen by `keyBy`, else the source's, else `undefined`. */
  readonly key: unknown;
  /** Event time, ms since the epoch. */
  readonly timestamp: number;
  /** Headers in their order; a name may repeat. */
  readonly headers: Headers;
  /** Name of the source; of a row an operator made, the operator's id. */
  readonly source: string;
  /** Split of the source, e.g. a file; of a row an operator made, its partition. */
  readonly split: string;
  /** Offset in the split; `undefined` for a record an operator made. */
  readonly offset: number | undefined;
  /** The window this row is the result of, if any. */
  readonly window: WindowOfRow | undefined;
}

/** The moving view of {@link RecordContext}. Set `batch` once and `index` for every record. */
export class RecordView implements RecordContext {
  batch!: Batch;
  index = 0;

  get key(): unknown {
    return this.batch.key(this.index);
  }
  get timestamp(): number {
    return this.batch.timestamp(this.index);
  }
  get headers(): Headers {
    return this.batch.headers(this.index);
  }
  get source(): string {
    return this.batch.origin.source;
  }
  get split(): string {
    return this.batch.origin.split;
  }
  get offset(): number | undefined {
    return this.batch.offset(this.index);
  }
  get window(): WindowOfRow | undefined {
    return this.batch.window(this.index);
  }
}

/** What travels in-band and is no record. Markers never overtake records of their channel, nor the other way round. */
export type Marker =
  /** All channels of a group that are known so far. A group without channels is idle, not complete. */
  | { readonly kind: "open"; readonly group: number; readonly channels: readonly Channel[] }
  /** Event time of the channel has reached `time`. */
  | { readonly kind: "watermark"; readonly channel: Channel; readonly time: Watermark }
  /** The channel has nothing to read for now: it holds no watermark back until its next record. */
  | { readonly kind: "idle"; readonly channel: Channel }
  /** The channel is complete: it holds no watermark back any more. */
  | { readonly kind: "ended"; readonly channel: Channel }
  /** Nothing more comes on this edge. `complete`: the input itself ended, so open windows close. */
  | { readonly kind: "end"; readonly complete: boolean };
