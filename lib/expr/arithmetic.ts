/**
 * `+ - * / %` and the minus in front.
 *
 * A1 Ints are exact within 64 bits and fail beyond; `/` of two ints is exact too: 6 / 3 is the int 2, 7 / 2 the double 3.5.
 * A2 An int beside a double is done in doubles, and the result is a double even where it is whole.
 * A3 A uint goes with uints only.
 * A4 Two plain numbers cost one operation and a few checks; all else goes the slow way below.
 *
 * @module
 */
import { Decimal } from "../json.ts";
import { failure, type Part } from "./errors.ts";
import { addTimes, subtractTimes } from "./times.ts";
import { Double, fitsInt64, isInt64, type Kind, kindOf, shrink, toDouble, Uint, wholeOf } from "./values.ts";

export function add(x: unknown, y: unknown, part: Part): unknown {
  if (typeof x === "number" && typeof y === "number") {
    const sum = x + y;
    if (Number.isSafeInteger(x) && Number.isSafeInteger(y)) {
      if (Number.isSafeInteger(sum)) return sum + 0;
    } else if (!Number.isInteger(x) || !Number.isInteger(y)) return toDouble(sum);
  } else if (typeof x === "string" && typeof y === "string") return x + y;
  else if (Array.isArray(x) && Array.isArray(y)) return x.concat(y);
  return numbers(ADD, x, y) ?? addTimes(x, y, part) ?? addBytes(x, y) ?? mismatch(ADD, x, y, part);
}

export function subtract(x: unknown, y: unknown, part: Part): unknown {
  if (typeof x === "number" && typeof y === "number") {
    const difference = x - y;
    if (Number.isSafeInteger(x) && Number.isSafeInteger(y)) {
      if (Number.isSafeInteger(difference)) return difference + 0;
    } else if (!Number.isInteger(x) || !Number.isInteger(y)) return toDouble(difference);
  }
  return numbers(SUBTRACT, x, y) ?? subtractTimes(x, y, part) ?? mismatch(SUBTRACT, x, y, part);
}

export function multiply(x: unknown, y: unknown, part: Part): unknown {
  if (typeof x === "number" && typeof y === "number") {
    const product = x * y;
    if (Number.isSafeInteger(x) && Number.isSafeInteger(y)) {
      if (Number.isSafeInteger(product)) return product + 0;
    } else if (!Number.isInteger(x) || !Number.isInteger(y)) return toDouble(product);
  }
  return numbers(MULTIPLY, x, y) ?? mismatch(MULTIPLY, x, y, part);
}

export function divide(x: unknown, y: unknown, part: Part): unknown {
  if (typeof x === "number" && typeof y === "number") {
    // Safe ints that do not divide evenly never round to a whole quotient: it is further from one than a double can be off.
    if (Number.isSafeInteger(x) && Number.isSafeInteger(y)) {
      if (y !== 0) return x / y + 0;
    } else if (!Number.isInteger(x) || !Number.isInteger(y)) return toDouble(x / y);
  }
  return numbers(DIVIDE, x, y) ?? mismatch(DIVIDE, x, y, part);
}

export function remainder(x: unknown, y: unknown, part: Part): unknown {
  if (typeof x === "number" && typeof y === "number") {
    if (Number.isSafeInteger(x) && Number.isSafeInteger(y) && y !== 0) return x % y + 0;
  }
  return numbers(REMAINDER, x, y) ?? mismatch(REMAINDER, x, y, part);
}

export function negate(x: unknown, part: Part): unknown {
  if (typeof x === "number") {
    if (Number.isSafeInteger(x)) return 0 - x;
    if (!Number.isInteger(x)) return -x;
  }
  const value = numeric(x);
  if (typeof value === "bigint") return whole(-value, "int") ?? overflow(part);
  if (typeof value === "number") return toDouble(-value);
  throw failure(`cannot negate ${kindOf(x)} in ${part}`);
}

/**
 * The operators on two plain numbers as they leave an expression, where a whole double needs no box; `undefined` where
 * the slow way has to decide.
 */
export const PLAIN: Readonly<Record<"+" | "-" | "*" | "/", (x: number, y: number) => number | undefined>> = {
  "+": (x, y) => plain(x, y, x + y),
  "-": (x, y) => plain(x, y, x - y),
  "*": (x, y) => plain(x, y, x * y),
  "/": (x, y) =>
    y === 0 ? undefined : Number.isSafeInteger(x) && Number.isSafeInteger(y) ? x / y + 0 : plain(x, y, x / y),
};

function plain(x: number, y: number, result: number): number | undefined {
  if (Number.isSafeInteger(x) && Number.isSafeInteger(y)) {
    return Number.isSafeInteger(result) ? result + 0 : undefined;
  }
  return Number.isInteger(x) && Number.isInteger(y) ? undefined : result;
}

/** How an operator treats exact integers and doubles; `ints` gives nothing where it is not defined. */
interface Rule {
  readonly ints: (a: bigint, b: bigint) => bigint | number | Double | undefined;
  readonly doubles: ((a: number, b: number) => number) | undefined;
  readonly words: (x: Kind, y: Kind) => string;
}
const ADD: Rule = {
  ints: (a, b) => a + b,
  doubles: (a, b) => a + b,
  words: (x, y) => `cannot add ${x} and ${y}`,
};
const SUBTRACT: Rule = {
  ints: (a, b) => a - b,
  doubles: (a, b) => a - b,
  words: (x, y) => `cannot subtract ${y} from ${x}`,
};
const MULTIPLY: Rule = {
  ints: (a, b) => a * b,
  doubles: (a, b) => a * b,
  words: (x, y) => `cannot multiply ${x} by ${y}`,
};
const DIVIDE: Rule = {
  ints: (a, b) =>
    b === 0n ? undefined : a % b === 0n ? a / b : toDouble(Number(a / b) + Number(a % b) / Number(b)),
  doubles: (a, b) => a / b,
  words: (x, y) => `cannot divide ${x} by ${y}`,
};
const REMAINDER: Rule = {
  ints: (a, b) => b === 0n ? undefined : a % b,
  doubles: undefined,
  words: (x, y) => `cannot take the remainder of ${x} by ${y}`,
};

/** The result of two numbers, or nothing where the operator does not take these two or has no result. */
function numbers(rule: Rule, x: unknown, y: unknown): unknown {
  const a = numeric(x), b = numeric(y);
  if (a === undefined || b === undefined) return undefined;
  if (a instanceof Uint || b instanceof Uint) {
    if (!(a instanceof Uint && b instanceof Uint)) return undefined;
    const result = rule.ints(a.integer, b.integer);
    return typeof result === "bigint" ? whole(result, "uint") : result;
  }
  if (typeof a === "bigint" && typeof b === "bigint") {
    const result = rule.ints(a, b);
    return typeof result === "bigint" ? whole(result, "int") : result;
  }
  return rule.doubles === undefined ? undefined : toDouble(rule.doubles(Number(a), Number(b)));
}

/** A number as an exact int, a uint or a double; nothing for what is no number. */
export function numeric(x: unknown): bigint | Uint | number | undefined {
  if (typeof x === "number") return isInt64(x) ? BigInt(x) : x;
  if (typeof x === "bigint") return fitsInt64(x) ? x : Number(x);
  if (x instanceof Double) return x.number;
  if (x instanceof Uint) return x;
  if (x instanceof Decimal) return wholeOf(x) ?? x.value;
  return undefined;
}

/** An integer as a value of its kind, or nothing where 64 bits do not hold it. */
function whole(value: bigint, kind: "int" | "uint"): number | bigint | Uint | undefined {
  if (kind === "int") return fitsInt64(value) ? shrink(value) : undefined;
  return value >= 0n && value < 2n ** 64n ? new Uint(value) : undefined;
}

function overflow(part: Part): never {
  throw failure(`${part} does not fit 64 bits`);
}

/** Says why two values have no result. */
function mismatch(rule: Rule, x: unknown, y: unknown, part: Part): never {
  const a = numeric(x), b = numeric(y);
  const integers = typeof a === "bigint" && typeof b === "bigint" || a instanceof Uint && b instanceof Uint;
  if (!integers) throw failure(`${rule.words(kindOf(x), kindOf(y))} in ${part}`);
  if (b === 0n || b instanceof Uint && b.integer === 0n) {
    if (rule === DIVIDE || rule === REMAINDER) throw failure(`division by zero in ${part}`);
  }
  return overflow(part);
}

function addBytes(x: unknown, y: unknown): Uint8Array | undefined {
  if (!(x instanceof Uint8Array && y instanceof Uint8Array)) return undefined;
  const sum = new Uint8Array(x.length + y.length);
  sum.set(x);
  sum.set(y, x.length);
  return sum;
}
