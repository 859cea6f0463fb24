/**
 * The records that rank highest (or lowest) by a number or a text. Of equal ones the earlier in event time is better,
 * then the earlier to arrive.
 *
 * A record whose `by` is missing is an error; null has no rank and is skipped.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import type { Numeric } from "../numeric.ts";
import { copyValue } from "../value.ts";
import { type Field, fieldReader, missingField, orderedOrNull, wholeRecord } from "./field.ts";
import type { SteppedFunction } from "./function.ts";
import { compareOrdered, type Entry, isBefore, mergeFirst, sameKind } from "./order.ts";

/** What {@link topN} takes. */
export interface TopOptions<In> {
  /** Records to keep, ≥ 1. */
  readonly n: number;
  /** What ranks: numbers or texts. */
  readonly by: Field<In>;
  /** `desc`: the largest is best. Default `desc`. */
  readonly order?: "asc" | "desc";
  /** What is kept of a record. Default: all of it. */
  readonly field?: Field<In>;
}

/** A record with what it ranks by; never changed. */
export interface RankedEntry extends Entry {
  /** What it ranks by. */
  readonly by: Numeric | string;
}

/**
 * The `n` best records, best first.
 *
 * @throws {MailerError} `invalid_aggregate` for an `n` that is no whole number ≥ 1.
 */
export function topN<In = unknown>(options: TopOptions<In>): SteppedFunction<In, RankedEntry[], unknown[]> {
  const { n, order = "desc" } = options;
  if (!Number.isSafeInteger(n) || n < 1) {
    throw new MailerError("invalid_aggregate", `topN: n must be a whole number, at least 1, found ${n}`);
  }
  const by = fieldReader(options.by);
  const kept = options.field === undefined ? wholeRecord<In>() : fieldReader(options.field);
  const best = order === "desc" ? 1 : -1;
  const isBetter = (a: RankedEntry, b: RankedEntry) => {
    const compared = compareOrdered("topN", a.by, b.by);
    return compared === 0 ? isBefore(a, b) : compared === best;
  };
  /** Index of the first entry that `entry` beats. */
  const placeOf = (acc: RankedEntry[], entry: RankedEntry) => {
    let low = 0, high = acc.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBetter(entry, acc[middle]!)) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const read = (acc: RankedEntry[], value: In) => {
    const rank = orderedOrNull(by.get(value), "topN", by.label);
    if (rank !== null && acc.length > 0) sameKind("topN", acc[0]!.by, rank);
    const found = kept.get(value);
    if (found === undefined) throw missingField("topN", kept.label);
    return { by: rank, value: found };
  };
  const fold = (acc: RankedEntry[], read: unknown, timestamp: number, sequence: number) => {
    const { by: rank, value } = read as { by: Numeric | string | null; value: unknown };
    if (rank === null) return acc;
    const entry = { value, timestamp, sequence, by: rank };
    const at = placeOf(acc, entry);
    if (at === n) return acc;
    acc.splice(at, 0, entry);
    if (acc.length > n) acc.pop();
    return acc;
  };
  return {
    name: "topN",
    fallible: true,
    create: () => [],
    read,
    fold,
    add: (acc, value, timestamp, sequence) => fold(acc, read(acc, value), timestamp, sequence),
    merge: (a, b) => mergeFirst(a, b, n, isBetter),
    result: (acc) => acc.map(({ value }) => copyValue(value)),
  };
}
