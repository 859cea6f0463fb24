/**
 * Both ends of a benchmark pipeline: input that lies in memory, and a black hole that adds up what falls in.
 *
 * @module
 */
import type { RecordsRead, Sink, Source, SourceRead, SourceReader } from "../lib/connector.ts";
import type { Decoder, Payload } from "../lib/format/mod.ts";
import type { Batch } from "../lib/record.ts";

const SPLIT = "memory";
const END: SourceRead<never> = { kind: "end" };

/** Hands out the values of a list, a batch at a time. */
export function memorySource<T>(values: readonly T[]): Source<T> {
  return inBatches((from, to) => ({
    kind: "records",
    split: SPLIT,
    values: values.slice(from, to),
    firstOffset: from,
    position: to,
  }), values.length);
}

/** Decodes payloads of a list, a batch at a time, as a connector does. */
export function payloadSource<T>(payloads: readonly Payload[], decoder: Decoder<T>): Source<T> {
  return inBatches((from, to) => {
    const values: T[] = [], failures: never[] = [];
    decoder.decode(payloads.slice(from, to), { values, failures });
    if (failures.length > 0) throw failures[0];
    return { kind: "records", split: SPLIT, values, firstOffset: from, position: to };
  }, payloads.length);
}

/** Calls `add` for each record of each batch that arrives. */
export function tallySink<T>(add: (batch: Batch<T>, index: number) => void): Sink<T> {
  return {
    type: "tally",
    describe: () => ({}),
    open: () => ({
      write(batch) {
        for (let i = 0; i < batch.length; i++) add(batch, i);
      },
      flush() {},
      close() {},
    }),
  };
}

function inBatches<T>(read: (from: number, to: number) => RecordsRead<T>, length: number): Source<T> {
  return {
    type: "memory",
    describe: () => ({ records: length }),
    open({ batchSize }): SourceReader<T> {
      let from = 0;
      return {
        splits: [SPLIT],
        read() {
          if (from >= length) return END;
          const to = Math.min(from + batchSize, length);
          const records = read(from, to);
          from = to;
          return records;
        },
        close() {},
      };
    },
  };
}
