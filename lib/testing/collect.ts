/**
 * A sink that keeps what it gets.
 *
 * @module
 */
import type { Sink } from "../connector.ts";
import type { RecordContext } from "../record.ts";

/** A record as it reached a sink. It stays valid. */
export interface Collected<T> extends RecordContext {
  /** The value. */
  readonly value: T;
}

/** A sink and what it has got so far. */
export interface CollectingSink<T> {
  /** Hand it to `toSink`. */
  readonly sink: Sink<T>;
  /** What it has got, as whole records, in order; grows. */
  readonly records: readonly Collected<T>[];
  /** The values of `records`. */
  readonly values: readonly T[];
  /** Writes wait while it is blocked. */
  block(): void;
  /** Lets the writes that wait go on. */
  unblock(): void;
  /** Times the writer was flushed and closed. */
  readonly flushed: number;
  /** Times the writer was closed. */
  readonly closed: number;
}

/** Makes a collecting sink. */
export function collectingSink<T>(): CollectingSink<T> {
  const records: Collected<T>[] = [];
  let gate: PromiseWithResolvers<void> | undefined;
  let flushed = 0, closed = 0;
  return {
    sink: {
      type: "collect",
      handsValuesOut: true,
      describe: () => ({}),
      open: ({ signal }) => ({
        async write(batch) {
          if (gate !== undefined) {
            const aborted = Promise.withResolvers<never>();
            const onAbort = () => aborted.reject(signal.reason);
            signal.addEventListener("abort", onAbort, { once: true });
            try {
              await Promise.race([gate.promise, aborted.promise]);
            } finally {
              signal.removeEventListener("abort", onAbort);
            }
          }
          batch.values.forEach((value, i) =>
            records.push({
              value,
              key: batch.key(i),
              timestamp: batch.timestamp(i),
              headers: batch.headers(i),
              source: batch.origin.source,
              split: batch.origin.split,
              offset: batch.offset(i),
              window: batch.window(i),
            })
          );
        },
        flush: () => {
          flushed++;
        },
        close: () => {
          closed++;
        },
      }),
    },
    records,
    get values() {
      return records.map(({ value }) => value);
    },
    block: () => {
      gate ??= Promise.withResolvers<void>();
    },
    unblock: () => {
      gate?.resolve();
      gate = undefined;
    },
    get flushed() {
      return flushed;
    },
    get closed() {
      return closed;
    },
  };
}
