/**
 * The orders aggregate functions go by: of numbers and texts, and of records in time.
 *
 * @module
 */
import { compareNumbers, type Numeric } from "../numeric.ts";
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

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i), y = b.charCodeAt(i);
    if (x !== y) return codePointRank(x) < codePointRank(y) ? -1 : 1;
  }
  return a.length < b.length ? -1 : 1;
}

/** Surrogates stand for code points behind all others. */
function codePointRank(unit: number): number {
  return unit < 0xd800 || unit > 0xdfff ? unit : unit + 0x10000;
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
