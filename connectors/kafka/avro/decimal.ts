/**
 * Decimals of Avro: a whole number in two's complement, and how many of its digits stand behind the point.
 *
 * @module
 */
import { Decimal, exactNumber } from "../../../lib/json.ts";

/** The number that `unscaled` bytes, the highest first, stand for: exact, in the form JSON would give it. */
export function decimalOf(unscaled: Uint8Array, scale: number): number | bigint | Decimal {
  let magnitude = 0n;
  for (const byte of unscaled) magnitude = (magnitude << 8n) | BigInt(byte);
  const whole = BigInt.asIntN(8 * unscaled.length, magnitude);
  if (scale === 0) return exactNumber(String(whole));
  const sign = whole < 0n ? "-" : "", digits = String(whole < 0n ? -whole : whole).padStart(scale + 1, "0");
  const point = digits.length - scale;
  return exactNumber(`${sign}${digits.slice(0, point)}.${digits.slice(point)}`);
}

const NUMBER = /^(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;
/** No decimal that is in use has so large an exponent; it would be written out. */
const LARGEST_EXPONENT = 10_000;

/**
 * The whole number that a decimal is written as; undefined for what is no number, or has other digits than `scale` behind the
 * point, or more than `precision` of them.
 */
export function unscaledOf(value: unknown, precision: number, scale: number): bigint | undefined {
  if (typeof value !== "number" && typeof value !== "bigint" && !(value instanceof Decimal)) return undefined;
  const match = NUMBER.exec(String(value));
  if (match === null) return undefined; // NaN, infinite
  const [, sign, whole, fraction = "", exponent = "0"] = match;
  let digits = whole! + fraction, shift = Number(exponent) - fraction.length + scale;
  if (Math.abs(shift) > LARGEST_EXPONENT) return undefined;
  for (; shift < 0 && digits.endsWith("0"); shift++) digits = digits.slice(0, -1) || "0";
  if (shift < 0) return /^0*$/.test(digits) ? 0n : undefined;
  digits = (digits + "0".repeat(shift)).replace(/^0+/, "");
  if (digits.length > precision) return undefined;
  return BigInt(`${sign}${digits === "" ? "0" : digits}`);
}

/** Two's complement, the highest byte first: as few bytes as it needs, or `length`. Undefined where these are too few. */
export function bytesOf(unscaled: bigint, length?: number): Uint8Array | undefined {
  let size = 1;
  while (BigInt.asIntN(8 * size, unscaled) !== unscaled) size++;
  if (length !== undefined && size > length) return undefined;
  const bytes = new Uint8Array(length ?? size);
  let rest = unscaled;
  for (let at = bytes.length - 1; at >= 0; at--, rest >>= 8n) bytes[at] = Number(rest & 0xffn);
  return bytes;
}
