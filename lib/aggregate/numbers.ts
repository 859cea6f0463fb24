/**
 * Aggregates of numbers: count, sum, avg, min, max.
 *
 * A missing field, or one that is no number, is an error of the record. Null is skipped: over nothing but nulls a sum
 * is 0, avg, min and max are null.
 *
 * @module
 */
import type { Numeric } from "../numeric.ts";
import { addend, addToSum, meanOf, mergeSums, type Sum, sumResult } from "./exact_sum.ts";
import { type Field, fieldReader, numberOrNull, orderedOrNull } from "./field.ts";
import type { SteppedFunction } from "./function.ts";
import { compareOrdered, sameKind } from "./order.ts";

/** Number of records. */
export function count<In = unknown>(): SteppedFunction<In, number, number> {
  return {
    name: "count",
    create: () => 0,
    read: () => undefined,
    fold: (acc) => acc + 1,
    add: (acc) => acc + 1,
    merge: (a, b) => a + b,
    result: (acc) => acc,
  };
}

/** Sum of a field: exact for whole numbers, the exact sum rounded once where there are fractions. */
export function sum<In = unknown>(field: Field<In>): SteppedFunction<In, Sum, number | bigint> {
  const { get, label } = fieldReader(field);
  const read = (acc: Sum, value: In) => {
    const number = numberOrNull(get(value), "sum", label);
    return number === null ? null : addend(acc, number, "sum");
  };
  const fold = (acc: Sum, addend: unknown) =>
    addend === null ? acc : addToSum(acc, addend as number | bigint);
  return {
    name: "sum",
    fallible: true,
    create: () => 0,
    read,
    fold,
    add(acc, value) {
      const found = get(value);
      if (typeof acc === "number" && typeof found === "number" && Number.isFinite(found)) {
        return addToSum(acc, found);
      }
      return fold(acc, read(acc, value));
    },
    merge: (a, b) => mergeSums(a, b, "sum"),
    result: sumResult,
  };
}

/** What a mean is made of. */
export interface MeanState {
  /** Sum of the numbers. */
  sum: Sum;
  /** How many there are, nulls left out. */
  count: number;
}

/** Mean of a field, a double; null over nothing. */
export function avg<In = unknown>(field: Field<In>): SteppedFunction<In, MeanState, number | null> {
  const { get, label } = fieldReader(field);
  const read = (acc: MeanState, value: In) => {
    const number = numberOrNull(get(value), "avg", label);
    return number === null ? null : addend(acc.sum, number, "avg");
  };
  const fold = (acc: MeanState, addend: unknown) => {
    if (addend === null) return acc;
    acc.sum = addToSum(acc.sum, addend as number | bigint);
    acc.count++;
    return acc;
  };
  return {
    name: "avg",
    fallible: true,
    create: () => ({ sum: 0, count: 0 }),
    read,
    fold,
    add: (acc, value) => fold(acc, read(acc, value)),
    merge: (a, b) => ({ sum: mergeSums(a.sum, b.sum, "avg"), count: a.count + b.count }),
    result: (acc) => acc.count === 0 ? null : meanOf(acc.sum, acc.count),
  };
}

/** A number or a text; null over nothing. */
export type Extreme = Numeric | string | null;

/** The best so far; NaN before the first, so that accumulators of numbers stay plain doubles. */
export type ExtremeSoFar = Numeric | string;

/** Smallest value of a field, of numbers or of texts (by code points); null over nothing. */
export function min<In = unknown>(field: Field<In>): SteppedFunction<In, ExtremeSoFar, Extreme> {
  return extreme("min", field, (a, b) => b < a, -1);
}

/** Largest value of a field, of numbers or of texts (by code points); null over nothing. */
export function max<In = unknown>(field: Field<In>): SteppedFunction<In, ExtremeSoFar, Extreme> {
  return extreme("max", field, (a, b) => b > a, 1);
}

function extreme<In>(
  name: string,
  field: Field<In>,
  isBetter: (a: number, b: number) => boolean,
  wanted: -1 | 1,
): SteppedFunction<In, ExtremeSoFar, Extreme> {
  const { get, label } = fieldReader(field);
  const better = (a: ExtremeSoFar, b: ExtremeSoFar): ExtremeSoFar => {
    // Nearly always two plain numbers.
    if (typeof a === "number" && typeof b === "number") return isBetter(a, b) || a !== a ? b : a;
    if (a !== a) return b;
    if (b !== b) return a;
    return compareOrdered(name, b, a) === wanted ? b : a;
  };
  /** What is to be compared; null where there is nothing. */
  const read = (acc: ExtremeSoFar, value: In): ExtremeSoFar | null => {
    const found = get(value);
    if (typeof found === "number" && typeof acc === "number" && Number.isFinite(found)) return found;
    const checked = orderedOrNull(found, name, label);
    if (acc === acc && checked !== null) sameKind(name, acc, checked);
    return checked;
  };
  const fold = (acc: ExtremeSoFar, found: unknown): ExtremeSoFar =>
    found === null ? acc : better(acc, found as ExtremeSoFar);
  return {
    name,
    fallible: true,
    create: () => NaN,
    read,
    fold,
    add: (acc, value) => fold(acc, read(acc, value)),
    merge: better,
    result: (acc) => acc === acc ? acc : null,
  };
}
