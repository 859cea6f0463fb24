/**
 * Comparing numbers of the three kinds a record can hold: doubles, whole numbers beyond 2^53, long decimals.
 *
 * A double stands for the shortest decimal that reads back as it, which is how it was written and will be. So all three
 * kinds are decimal numbers, and these functions compare those exactly.
 *
 * @module
 */
import { Decimal } from "./json.ts";

/** A number of a record. */
export type Numeric = number | bigint | Decimal;

/** Whether a value is a number, of any kind; NaN is none. */
export function isNumeric(value: unknown): value is Numeric {
  return typeof value === "number" ? value === value : typeof value === "bigint" || value instanceof Decimal;
}

/** The nearest double; ±Infinity beyond their range. */
export function toDouble(value: Numeric): number {
  return typeof value === "number" ? value : typeof value === "bigint" ? Number(value) : value.value;
}

/** −1, 0 or 1, as `a` is less than, equal to or greater than `b`. Exact. */
export function compareNumbers(a: Numeric, b: Numeric): number {
  const x = toDouble(a), y = toDouble(b);
  // Rounding to doubles keeps order, so it decides unless both round to the same one.
  if (x < y) return -1;
  if (x > y) return 1;
  if (typeof a === "number" && typeof b === "number") return 0;
  if (typeof a === "bigint" && typeof b === "bigint") return a < b ? -1 : a > b ? 1 : 0;
  return compareDecimals(decimalOf(a), decimalOf(b));
}

/**
 * A canonical form: equal numbers of any kind give the same, different ones never. Plain doubles where one stands for the
 * number, else its significant digits and exponent (`12345678901234567891e0`).
 */
export function canonicalNumber(value: Numeric): number | string {
  if (typeof value === "number") return value;
  const exact = decimalOf(value), double = toDouble(value);
  if (Number.isFinite(double) && compareDecimals(exact, decimalOf(double)) === 0) return double;
  const { sign, digits, exponent } = exact;
  return `${sign < 0 ? "-" : ""}${digits}e${exponent - BigInt(digits.length)}`;
}

/** `sign · 0.digits · 10^exponent`, without zeros at either end of `digits`; zero has none. */
interface DecimalForm {
  readonly sign: -1 | 0 | 1;
  readonly digits: string;
  readonly exponent: bigint;
}

const NUMBER = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

function decimalOf(value: Numeric): DecimalForm {
  const text = String(value);
  const match = NUMBER.exec(text);
  if (match === null) return { sign: text.startsWith("-") ? -1 : 1, digits: "1", exponent: 1n << 1024n }; // ±Infinity
  const [, sign, whole = "", fraction = "", exponent = "0"] = match;
  const all = whole + fraction;
  const digits = all.replace(/^0+/, "");
  if (digits === "") return { sign: 0, digits: "", exponent: 0n };
  return {
    sign: sign === "-" ? -1 : 1,
    digits: digits.replace(/0+$/, ""),
    exponent: BigInt(exponent) + BigInt(whole.length - (all.length - digits.length)),
  };
}

function compareDecimals(a: DecimalForm, b: DecimalForm): number {
  if (a.sign !== b.sign) return a.sign < b.sign ? -1 : 1;
  if (a.exponent !== b.exponent) return (a.exponent < b.exponent ? -1 : 1) * a.sign;
  // As fractions of one, digits compare like texts.
  return a.digits === b.digits ? 0 : (a.digits < b.digits ? -1 : 1) * a.sign;
}
