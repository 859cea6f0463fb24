/**
 * Sink `collect`: keeps the values it is given, for tests and small results.
 *
 * @module
 */
import type { Sink } from "../../lib/connector.ts";

/** The sink, and the values of all its runs in order. */
export interface CollectSink<T> extends Sink<T> {
  /** In the order they came. */
  readonly values: T[];
}

/** A sink that keeps every value in memory. */
export function collectSink<T = unknown>(): CollectSink<T> {
  const values: T[] = [];
  return {
    type: "collect",
    handsValuesOut: true,
    describe: () => ({}),
    values,
    open: () => ({
      write(batch) {
        for (const value of batch.values) values.push(value);
      },
      flush() {},
      close() {},
    }),
  };
}
