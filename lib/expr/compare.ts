/**
 * Equality and order of values.
 *
 * C1 Numbers compare by value and exactly, whatever they are: 9007199254740993 is not 9007199254740992.0.
 * C2 NaN equals nothing, and every comparison with it is false.
 * C3 Values of different kinds are unequal, and have no order.
 * C4 Texts are ordered by code point.
 *
 * @module
 */
import { compareTexts } from "../text_order.ts";
import { Decimal } from "../json.ts";
import { failure, type Part } from "./errors.ts";
import { mapEntries, mapGet, mapSize } from "./members.ts";
import { Double, kindOf, splitDecimal, TimeSpan, Timestamp, Uint, wholeOf } from "./values.ts";

/** Deeper values than this are not compared. */
const MAX_DEPTH = 1000;

/**
 * < 0, 0 or > 0 as `x` is before, equal to or behind `y`; NaN where neither (C2).
 *
 * @throws `expression_failed` for values without an order.
 */
export function order(x: unknown, y: unknown, part: Part): number {
  if (typeof x === "string" && typeof y === "string") return compareTexts(x, y);
  if (isNumber(x) && isNumber(y)) return orderNumbers(x, y);
  if (typeof x === "boolean" && typeof y === "boolean") return Number(x) - Number(y);
  if (x instanceof Timestamp && y instanceof Timestamp) return orderNumbers(x.nanos, y.nanos);
  if (x instanceof TimeSpan && y instanceof TimeSpan) return orderNumbers(x.nanos, y.nanos);
  if (x instanceof Uint8Array && y instanceof Uint8Array) return orderBytes(x, y);
  throw failure(`cannot compare ${kindOf(x)} with ${kindOf(y)} in ${part}`);
}

/**
 * @throws `expression_failed` for values nested too deeply to compare.
 */
export function equals(x: unknown, y: unknown, depth: number = 0): boolean {
  if (x === y) return true;
  if (isNumber(x)) return isNumber(y) && orderNumbers(x, y) === 0;
  if (typeof x !== "object" || typeof y !== "object" || x === null || y === null) {
    return (x ?? null) === (y ?? null);
  }
  if (depth > MAX_DEPTH) throw failure(`values nested deeper than ${MAX_DEPTH} levels cannot be compared`);
  if (Array.isArray(x)) {
    return Array.isArray(y) && x.length === y.length && x.every((item, i) => equals(item, y[i], depth + 1));
  }
  switch (kindOf(x)) {
    case "map":
      if (kindOf(y) !== "map" || mapSize(x) !== mapSize(y)) return false;
      for (const [key, value] of mapEntries(x)) {
        const other = mapGet(y, key);
        if (other === undefined || !equals(value, other, depth + 1)) return false;
      }
      return true;
    case "bytes":
      return y instanceof Uint8Array && orderBytes(x as Uint8Array, y) === 0;
    case "timestamp":
      return y instanceof Timestamp && (x as Timestamp).nanos === y.nanos;
    case "duration":
      return y instanceof TimeSpan && (x as TimeSpan).nanos === y.nanos;
    default:
      return false;
  }
}

type AnyNumber = number | bigint | Double | Uint | Decimal;

export function isNumber(x: unknown): x is AnyNumber {
  return typeof x === "number" || typeof x === "bigint" || x instanceof Double || x instanceof Uint ||
    x instanceof Decimal;
}

function orderNumbers(x: AnyNumber, y: AnyNumber): number {
  const a = comparable(x), b = comparable(y);
  if (a instanceof Decimal) return b instanceof Decimal ? orderPlain(a.value, b.value) : orderDecimal(a, b);
  if (b instanceof Decimal) return -orderDecimal(b, a);
  return orderPlain(a, b);
}

/** What the language itself compares exactly; a decimal that is no int stays one. */
function comparable(x: AnyNumber): number | bigint | Decimal {
  if (x instanceof Double) return x.number;
  if (x instanceof Uint) return x.integer;
  if (x instanceof Decimal) return wholeOf(x) ?? x;
  return x;
}

function orderPlain(a: number | bigint, b: number | bigint): number {
  return a < b ? -1 : a > b ? 1 : a <= b ? 0 : NaN;
}

/** A decimal that is no int against a number: exact against whole numbers, else by its double. */
function orderDecimal(decimal: Decimal, other: number | bigint): number {
  const exact = (typeof other === "bigint" || Number.isInteger(other)) && Math.abs(decimal.value) < 2 ** 64;
  if (!exact) return orderPlain(decimal.value, other);
  const { floor, whole } = splitDecimal(decimal);
  return floor < other ? -1 : floor > other || !whole ? 1 : 0;
}

function orderBytes(x: Uint8Array, y: Uint8Array): number {
  const length = Math.min(x.length, y.length);
  for (let i = 0; i < length; i++) {
    if (x[i] !== y[i]) return x[i]! - y[i]!;
  }
  return x.length - y.length;
}
