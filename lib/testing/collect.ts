/**
 * A sink that keeps what it gets.
 *
 * @module
 */
import type { Sink } from "../connector.ts";
import type { Headers, WindowOfRow } from "../record.ts";

/** A record as it reached a sink. */
export interface Collected<T> {
  readonly value: T;
  readonly key: unknown;
  readonly timestamp: number;
  readonly headers: Headers;
  readonly source: string;
  readonly split: string;
  readonly offset: number | undefined;
  readonly window: WindowOfRow | undefined;
}

/** A sink and what it has got so far. */
export interface CollectingSink<T> {
  readonly sink: Sink<T>;
  readonly records: readonly Collected<T>[];
  readonly values: readonly T[];
  /** Writes wait while it is blocked. */
  block(): void;
  unblock(): void;
  /** Times the writer was flushed and closed. */
  readonly flushed: number;
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
