/**
 * Rows an operator makes itself: collected into batches of its own channel.
 *
 * @module
 */
import { Batch, type Channel, type Headers, type Origin, type WindowOfRow } from "../record.ts";
import type { Receiver } from "../runtime/operator.ts";

/** Most rows in a batch. */
const BATCH_SIZE = 1024;

/** Collects rows, and hands them on in batches, in order, when it is told to. */
export class RowWriter {
  #values: unknown[] = [];
  #keys: unknown[] = [];
  #timestamps: number[] = [];
  #watermarks: number[] = [];
  #windows: (WindowOfRow | undefined)[] = [];
  #headers: (Headers | undefined)[] | undefined;

  /**
   * @param channel The channel of the rows.
   * @param source Id of the operator.
   * @param split Its partition.
   */
  constructor(
    private readonly out: Receiver,
    private readonly channel: Channel,
    private readonly source: string,
    private readonly split: string,
  ) {}

  /**
   * Adds a row.
   *
   * @param watermark The watermark that holds in the channel before it.
   */
  add(
    value: unknown,
    key: unknown,
    timestamp: number,
    watermark: number,
    window?: WindowOfRow,
    headers?: Headers,
  ): void {
    if (headers !== undefined && headers.length > 0) {
      this.#headers ??= new Array(this.#values.length);
      this.#headers[this.#values.length] = headers;
    }
    this.#values.push(value);
    this.#keys.push(key);
    this.#timestamps.push(timestamp);
    this.#watermarks.push(watermark);
    this.#windows.push(window);
  }

  /** Hands on what has been collected. */
  flush(): void {
    const count = this.#values.length;
    if (count === 0) return;
    const headers = this.#headers;
    if (headers !== undefined) headers.length = count;
    const all: Rows = {
      values: this.#values,
      keys: this.#keys,
      timestamps: this.#timestamps,
      watermarks: this.#watermarks,
      windows: this.#windows,
      headers,
    };
    this.#values = [];
    this.#keys = [];
    this.#timestamps = [];
    this.#watermarks = [];
    this.#windows = [];
    this.#headers = undefined;
    if (count <= BATCH_SIZE) return this.#hand(all);
    for (let from = 0; from < count; from += BATCH_SIZE) this.#hand(part(all, from, from + BATCH_SIZE));
  }

  #hand({ values, keys, timestamps, watermarks, windows, headers }: Rows): void {
    const origin: Origin = {
      channel: this.channel,
      source: this.source,
      split: this.split,
      timestamps: Float64Array.from(timestamps),
      watermarks: Float64Array.from(watermarks),
      firstOffset: undefined,
      offsets: undefined,
      headers,
      keys: undefined,
      texts: undefined,
      windows,
      bytes: 0,
    };
    this.out.batch(new Batch(values, origin, undefined, keys, false));
  }
}

interface Rows {
  readonly values: unknown[];
  readonly keys: unknown[];
  readonly timestamps: readonly number[];
  readonly watermarks: readonly number[];
  readonly windows: readonly (WindowOfRow | undefined)[];
  readonly headers: readonly (Headers | undefined)[] | undefined;
}

function part(rows: Rows, from: number, to: number): Rows {
  return {
    values: rows.values.slice(from, to),
    keys: rows.keys.slice(from, to),
    timestamps: rows.timestamps.slice(from, to),
    watermarks: rows.watermarks.slice(from, to),
    windows: rows.windows.slice(from, to),
    headers: rows.headers?.slice(from, to),
  };
}
