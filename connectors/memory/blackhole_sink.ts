/**
 * Sink `blackhole`: counts records and forgets them.
 *
 * @module
 */
import type { Sink, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { encodeBatch, type Encoder, type Format, lineLength, readyEncoder } from "../../lib/format/mod.ts";
import type { Batch } from "../../lib/record.ts";

/** Settings of {@link blackholeSink}. */
export interface BlackholeSinkOptions<T> {
  /** Called with every batch, which belongs to the callee. */
  readonly onBatch?: (batch: Batch<T>) => void;
  /** Encodes every record as a sink of this format would; default not at all. */
  readonly format?: Format;
}

/** The sink, and what it has counted over all runs. */
export interface BlackholeSink<T> extends Sink<T> {
  /** Records taken, without those that were rejected. */
  readonly records: number;
  /** Bytes the records would take as lines; 0 without a format. */
  readonly bytes: number;
}

/** A sink that keeps nothing. */
export function blackholeSink<T = unknown>(
  { onBatch, format }: BlackholeSinkOptions<T> = {},
): BlackholeSink<T> {
  const counts = { records: 0, bytes: 0 };
  return {
    type: "blackhole",
    ...(onBatch === undefined ? {} : { handsValuesOut: true as const }),
    describe: () => format === undefined ? {} : { format: format.name },
    open: (context) =>
      new BlackholeWriter(counts, format && readyEncoder(format, "blackhole sink"), onBatch, context),
    get records() {
      return counts.records;
    },
    get bytes() {
      return counts.bytes;
    },
  };
}

class BlackholeWriter<T> implements SinkWriter<T> {
  readonly #counts: { records: number; bytes: number };
  readonly #encoder: Encoder | undefined;
  readonly #onBatch: ((batch: Batch<T>) => void) | undefined;
  readonly #context: SinkContext;

  constructor(
    counts: { records: number; bytes: number },
    encoder: Encoder | undefined,
    onBatch: ((batch: Batch<T>) => void) | undefined,
    context: SinkContext,
  ) {
    this.#counts = counts;
    this.#encoder = encoder;
    this.#onBatch = onBatch;
    this.#context = context;
  }

  write(batch: Batch<T>): void {
    if (this.#encoder === undefined) this.#counts.records += batch.length;
    else {
      const payloads = encodeBatch(this.#encoder, batch, this.#context.reject);
      this.#counts.records += payloads.length;
      for (const payload of payloads) this.#counts.bytes += lineLength(payload);
    }
    this.#onBatch?.(batch);
  }

  flush(): void {}
  close(): void {}
}
