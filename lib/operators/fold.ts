/**
 * What a stateful operator does with the records of a key: the one form that user reducers, aggregate functions and element
 * lists are brought into.
 *
 * @module
 */
import type { AggregateFunction } from "../aggregate/function.ts";
import { copyValue } from "../value.ts";
import { Batch, type Origin, type RecordContext, type WindowOfRow } from "../record.ts";
import type { FailureHandler } from "../runtime/failure.ts";

/** A fold over records. */
export interface Fold<Acc = unknown> {
  create(): Acc;
  /** Adds a record; may change and return `acc`. An `add` that throws has changed nothing. */
  add(acc: Acc, value: unknown, timestamp: number, sequence: number, record: RecordContext): Acc;
  /** Everything in both; `a` came first. May change `a`, never `b`. Missing: only whole records can be added. */
  merge?(a: Acc, b: Acc): Acc;
  /** What goes out. Shares nothing changeable with the accumulator. */
  result(acc: Acc): unknown;
}

/** Makes the value of a row: the default is the result itself. */
export type RowShape = (result: unknown, key: unknown, window: WindowOfRow | undefined) => unknown;

/** The fold of an aggregate function. */
export function aggregateFold(fn: AggregateFunction<unknown, unknown, unknown>): Fold {
  return {
    create: () => fn.create(),
    add: (acc, value, timestamp, sequence) => fn.add(acc, value, timestamp, sequence),
    merge: (a, b) => fn.merge(a, b),
    result: (acc) => fn.result(acc),
  };
}

/** The fold of a reducer that starts from `undefined`. It cannot be merged, unless the user says how. */
export function reduceFold(
  reduce: (acc: unknown, value: unknown, record: RecordContext) => unknown,
  merge?: (a: unknown, b: unknown) => unknown,
): Fold {
  return {
    create: () => undefined,
    add: (acc, value, _timestamp, _sequence, record) => reduce(acc, value, record),
    ...(merge === undefined ? {} : {
      merge: (a: unknown, b: unknown) =>
        a === undefined ? copyValue(b) : b === undefined ? a : merge(a, copyValue(b)),
    }),
    result: copyValue,
  };
}

/** An element of a window, as a window function sees it. */
export interface Element<T = unknown> {
  /** The value of the record. */
  readonly value: T;
  /** Its event time, ms since the epoch. */
  readonly timestamp: number;
}
interface Arrived extends Element {
  readonly sequence: number;
}

/** Keeps all elements, in order of arrival, for a function that wants them together. */
export function elementsFold(finish: (elements: readonly Element[]) => unknown): Fold<readonly Arrived[]> {
  return {
    create: () => [],
    add: (acc, value, timestamp, sequence) => {
      (acc as Arrived[]).push({ value, timestamp, sequence });
      return acc;
    },
    merge: (a, b) => [...a, ...b].sort((x, y) => x.sequence - y.sequence),
    result: (acc) => finish(acc.map(({ value, timestamp }) => ({ value: copyValue(value), timestamp }))),
  };
}

/** A window all of whose records were left out: it gives no row. */
export const NO_RESULT: unique symbol = Symbol("no result");

/**
 * A mergeable form of a fold that is not: it keeps the elements and folds them when asked. For windows that merge (sessions) or
 * share pieces; costs memory a record.
 *
 * @param failed Takes a record that the fold refuses, once: throws, or returns and the record is left out.
 */
export function bufferedFold(fold: Fold, failed: FailureHandler): Fold<readonly Buffered[]> {
  return {
    create: () => [],
    add: (acc, value, timestamp, sequence, record) => {
      const { key, headers, source, split, offset, window } = record;
      (acc as Buffered[]).push({
        value,
        sequence,
        record: { key, timestamp, headers, source, split, offset, window },
        leftOut: false,
      });
      return acc;
    },
    merge: (a, b) => [...a, ...b].sort((x, y) => x.sequence - y.sequence),
    result: (acc) => {
      let result = fold.create(), isEmpty = true;
      for (const element of acc) {
        if (element.leftOut) continue;
        const { value, sequence, record } = element;
        try {
          result = fold.add(result, copyValue(value), record.timestamp, sequence, record);
          isEmpty = false;
        } catch (error) {
          failed(batchOf(element), 0, error);
          element.leftOut = true;
        }
      }
      return isEmpty ? NO_RESULT : fold.result(result);
    },
  };
}
interface Buffered {
  readonly value: unknown;
  readonly sequence: number;
  readonly record: RecordContext;
  leftOut: boolean;
}

/** A kept record as a batch, for the failure policy. */
function batchOf({ value, record }: Buffered): Batch {
  const { key, timestamp, headers, source, split, offset, window } = record;
  const origin: Origin = {
    channel: { group: -1, name: `${source}/${split}` },
    source,
    split,
    timestamps: Float64Array.of(timestamp),
    watermarks: Float64Array.of(-Infinity),
    firstOffset: offset,
    offsets: undefined,
    headers: [headers],
    keys: [key],
    texts: undefined,
    windows: [window],
    bytes: 0,
  };
  return new Batch([value], origin, undefined, undefined, false);
}
