/**
 * Rows an operator makes itself: collected into batches of its own channel.
 *
 * @module
 */
import { Batch, type Channel, type Headers, type WindowOfRow } from "../record.ts";
import type { Receiver } from "../runtime/operator.ts";

/** Most rows in a batch. */
const BATCH_SIZE = 1024;

/** Collects rows and hands them on in batches, in order. */
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
    if (this.#values.length >= BATCH_SIZE) this.flush();
  }

  /** Hands on what has been collected. */
  flush(): void {
    const count = this.#values.length;
    if (count === 0) return;
    const headers = this.#headers;
    if (headers !== undefined) headers.length = count;
    const batch = new Batch(
      this.#values,
      {
        channel: this.channel,
        source: this.source,
        split: this.split,
        timestamps: Float64Array.from(this.#timestamps),
        watermarks: Float64Array.from(this.#watermarks),
        firstOffset: undefined,
        offsets: undefined,
        headers,
        keys: undefined,
        texts: undefined,
        windows: this.#windows,
        bytes: 0,
      },
      undefined,
      this.#keys,
      false,
    );
    this.#values = [];
    this.#keys = [];
    this.#timestamps = [];
    this.#watermarks = [];
    this.#windows = [];
    this.#headers = undefined;
    this.out.batch(batch);
  }
}
