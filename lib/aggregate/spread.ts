/**
 * Aggregates of how values spread: percentile and distinct. Null is skipped, a missing field is an error of the record.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { keyIdentity } from "../key.ts";
import { compareNumbers, type Numeric } from "../numeric.ts";
import { type Field, fieldReader, missingField, numberOrNull } from "./field.ts";
import type { SteppedFunction } from "./function.ts";

/** Numbers, of which the first `sorted` are in ascending order. */
export interface PercentileState {
  /** All numbers. */
  readonly values: Numeric[];
  /** How many of them are in order. */
  sorted: number;
}

/**
 * The smallest number that at least `p` percent of the numbers do not exceed (nearest rank, exact); null over nothing.
 * Keeps all numbers.
 *
 * @param options `p`: 0 … 100; 0 is the minimum, 50 the median, 100 the maximum.
 * @throws {MailerError} `invalid_aggregate`
 */
export function percentile<In = unknown>(
  field: Field<In>,
  options: { readonly p: number },
): SteppedFunction<In, PercentileState, Numeric | null> {
  const { p } = options;
  if (!(p >= 0 && p <= 100)) {
    throw new MailerError("invalid_aggregate", `percentile: p must be from 0 to 100, found ${p}`);
  }
  const { get, label } = fieldReader(field);
  const read = (_: unknown, value: In) => numberOrNull(get(value), "percentile", label);
  const fold = (acc: PercentileState, number: unknown) => {
    if (number !== null) acc.values.push(number as Numeric);
    return acc;
  };
  return {
    name: "percentile",
    create: () => ({ values: [], sorted: 0 }),
    read,
    fold,
    add: (acc, value) => fold(acc, read(acc, value)),
    merge(a, b) {
      for (const number of b.values) a.values.push(number);
      return a;
    },
    result(acc) {
      const size = acc.values.length;
      if (size === 0) return null;
      sort(acc);
      return acc.values[Math.max(Math.ceil(p * size / 100), 1) - 1]!;
    },
  };
}

/** Sorts what was added since the last time: a few are put in their places, many are sorted with all. */
function sort(state: PercentileState): void {
  const { values } = state;
  if (values.length - state.sorted > 16) sortAll(values);
  else {
    for (let i = state.sorted; i < values.length; i++) {
      const value = values[i]!;
      let low = 0, high = i;
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (compareNumbers(values[middle]!, value) > 0) high = middle;
        else low = middle + 1;
      }
      if (low < i) {
        values.copyWithin(low + 1, low, i);
        values[low] = value;
      }
    }
  }
  state.sorted = values.length;
}

function sortAll(values: Numeric[]): void {
  if (!values.every((value) => typeof value === "number")) values.sort(compareNumbers);
  else Float64Array.from(values).sort().forEach((value, i) => values[i] = value); // five times as fast
}

/** Number of different values of a field; values are equal as keys are, `1` and `1.0`, objects in any order of fields. */
export function distinct<In = unknown>(field: Field<In>): SteppedFunction<In, Set<unknown>, number> {
  const { get, label } = fieldReader(field);
  const read = (_: unknown, value: In) => {
    const found = get(value);
    if (found === undefined) throw missingField("distinct", label);
    return keyIdentity(found);
  };
  const fold = (acc: Set<unknown>, identity: unknown) => {
    if (identity !== null) acc.add(identity);
    return acc;
  };
  return {
    name: "distinct",
    create: () => new Set(),
    read,
    fold,
    add: (acc, value) => fold(acc, read(acc, value)),
    merge(a, b) {
      for (const identity of b) a.add(identity);
      return a;
    },
    result: (acc) => acc.size,
  };
}
