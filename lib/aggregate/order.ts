/**
 * The orders aggregate functions go by: of numbers and texts, and of records in time.
 *
 * @module
 */
import { compareNumbers, type Numeric } from "../numeric.ts";
import { compareTexts } from "../text_order.ts";
import { notComparable } from "./field.ts";

/**
 * −1, 0 or 1, as `a` is less than, equal to or greater than `b`: numbers by value, texts by code points.
 *
 * @throws {MailerError} `not_comparable` for a number and a text.
 */
export function compareOrdered(name: string, a: Numeric | string, b: Numeric | string): number {
  if (typeof a === "number" && typeof b === "number") return a < b ? -1 : a > b ? 1 : 0;
  sameKind(name, a, b);
  return typeof a === "string" ? compareTexts(a, b as string) : compareNumbers(a, b as Numeric);
}

/** @throws {MailerError} `not_comparable` for a number and a text. */
export function sameKind(name: string, a: Numeric | string, b: Numeric | string): void {
  if ((typeof a === "string") !== (typeof b === "string")) throw notComparable(name, a, b);
}

/** Something of a record, with its place in time. */
export interface Entry {
  /** The record's value, or what was read from it. */
  readonly value: unknown;
  /** Event time, ms. */
  readonly timestamp: number;
  /** Order of arrival. */
  readonly sequence: number;
}

/** Whether `a` comes before `b`: by event time, then by arrival. */
export function isBefore(a: Entry, b: Entry): boolean {
  return a.timestamp < b.timestamp || (a.timestamp === b.timestamp && a.sequence < b.sequence);
}

/** The first `most` of two lists that are in order; of entries neither of which is first, `b`'s. Neither list is changed. */
export function mergeFirst<E>(
  a: readonly E[],
  b: readonly E[],
  most: number,
  isFirst: (a: E, b: E) => boolean,
): E[] {
  const merged: E[] = [];
  for (let i = 0, j = 0; merged.length < most && (i < a.length || j < b.length);) {
    const x = a[i], y = b[j];
    if (y === undefined || (x !== undefined && isFirst(x, y))) {
      merged.push(x!);
      i++;
    } else {
      merged.push(y);
      j++;
    }
  }
  return merged;
}
