/**
 * Sums that do not depend on the order of their parts.
 *
 * X1 Whole numbers are added exactly, however large they get.
 * X2 With fractions among them the result is the exact sum of the doubles, rounded once. So panes, partitions and merged
 *    sessions add up to the same as one run over the records.
 * X3 While the running sum is exact in a double, which it mostly is, it is a plain number and nothing is allocated.
 *
 * A number that is whole and safe counts as whole however it came about, `2.0` or `0.5 + 0.5`. Decimals of more digits
 * than a double holds count as their nearest double.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { type Numeric, toDouble } from "../numeric.ts";

/**
 * A running sum: exact as a number (safe if whole) or as a `bigint` (whole, beyond 2^53), else whole part and doubles
 * beside each other.
 */
export type Sum = number | bigint | MixedSum;

/** `whole + Σ parts`. The parts do not overlap, smallest first (Shewchuk 1997, "Adaptive precision floating-point arithmetic"). */
export interface MixedSum {
  /** Whole numbers beyond 2^53 added up. */
  whole: bigint;
  /** Doubles that add up to the rest. */
  readonly parts: number[];
}

const SAFE = Number.MAX_SAFE_INTEGER;

/**
 * The number as a sum takes it.
 *
 * @throws {MailerError} `number_overflow` if it, or `sum` with it, is beyond the range of doubles.
 */
export function addend(sum: Sum, value: Numeric, name: string): number | bigint {
  const addend = typeof value === "number"
    ? value
    : typeof value === "bigint"
    ? shortened(value)
    : value.value;
  const double = Number(addend);
  const before = typeof sum === "object" ? estimate(sum) : 0;
  if (Number.isFinite(double) && Number.isFinite(before + double)) return addend;
  throw overflow(name);
}

/** `sum + value`; changes `sum` where it is an object. The value comes from {@link addend}. */
export function addToSum(sum: Sum, value: number | bigint): Sum {
  if (typeof sum === "number" && typeof value === "number") {
    const total = sum + value;
    // Subtracting either gives back the other: nothing was rounded away (Knuth's two-sum with an error of zero).
    if (total <= SAFE && total >= -SAFE && total - sum === value && total - value === sum) return total;
  }
  if (typeof sum !== "object" && isWhole(sum) && isWhole(value)) {
    return shortened(BigInt(sum) + BigInt(value));
  }
  const mixed = typeof sum === "object" ? sum : mixedOf(sum);
  if (typeof value === "bigint") mixed.whole += value;
  else grow(mixed.parts, value);
  return mixed;
}

/**
 * `a + b`; changes neither.
 *
 * @throws {MailerError} `number_overflow`
 */
export function mergeSums(a: Sum, b: Sum, name: string): Sum {
  if (typeof b !== "object") return addToSum(copyOf(a), addend(a, b, name));
  if (!Number.isFinite(estimate(b) + (typeof a === "object" ? estimate(a) : Number(a)))) throw overflow(name);
  const mixed = typeof a === "object" ? { whole: a.whole, parts: [...a.parts] } : mixedOf(a);
  mixed.whole += b.whole;
  for (const part of b.parts) grow(mixed.parts, part);
  return mixed;
}

/** The sum as a record holds it: a double, or a `bigint` for a whole number beyond 2^53. */
export function sumResult(sum: Sum): number | bigint {
  if (typeof sum !== "object") return sum;
  const parts = [...sum.parts];
  for (let rest = sum.whole; rest !== 0n;) {
    const high = Number(rest);
    grow(parts, high);
    rest -= BigInt(high);
  }
  const total = rounded(parts);
  // Whole and within 64 bits is an integer, whatever it is made of.
  if (Math.abs(total) >= 2 ** 63 || !parts.every(Number.isInteger)) return total;
  return shortened(parts.reduce((whole, part) => whole + BigInt(part), 0n));
}

function isWhole(value: number | bigint): boolean {
  return typeof value === "bigint" || Number.isSafeInteger(value);
}

/** A plain number where that is exact and safe. */
function shortened(value: bigint): number | bigint {
  return value >= -9007199254740991n && value <= 9007199254740991n ? Number(value) : value;
}

function mixedOf(sum: number | bigint): MixedSum {
  return typeof sum === "bigint" ? { whole: sum, parts: [] } : { whole: 0n, parts: sum === 0 ? [] : [sum] };
}

function copyOf(sum: Sum): Sum {
  return typeof sum === "object" ? { whole: sum.whole, parts: [...sum.parts] } : sum;
}

function estimate({ whole, parts }: MixedSum): number {
  return Number(whole) + (parts.at(-1) ?? 0);
}

/** Adds a double to parts that do not overlap, so that they still do not and lose nothing. */
function grow(parts: number[], value: number): void {
  let kept = 0;
  for (let i = 0; i < parts.length; i++) {
    let small = parts[i]!;
    if (Math.abs(value) < Math.abs(small)) [value, small] = [small, value];
    const high = value + small;
    const low = small - (high - value);
    if (low !== 0) parts[kept++] = low;
    value = high;
  }
  parts.length = kept;
  if (value !== 0) parts.push(value);
}

/** The double nearest to the sum of parts that do not overlap; of two equally near ones the even one. */
function rounded(parts: readonly number[]): number {
  let at = parts.length - 1;
  let high = parts[at] ?? 0, low = 0;
  while (at > 0) {
    const before = high, small = parts[--at]!;
    high = before + small;
    low = small - (high - before);
    if (low !== 0) break;
  }
  // Exactly half way, and what is left says on which side: adding the error twice steps there if that is exact.
  if (at > 0 && low !== 0 && Math.sign(low) === Math.sign(parts[at - 1]!)) {
    const twice = low * 2, stepped = high + twice;
    if (stepped - high === twice) high = stepped;
  }
  return high;
}

function overflow(name: string): MailerError {
  return new MailerError("number_overflow", `${name}: the sum is beyond the range of doubles`);
}

/** A mean: the exact sum divided once. */
export function meanOf(sum: Sum, count: number): number {
  return toDouble(sumResult(sum)) / count;
}
