/**
 * Times given as numbers of milliseconds or seconds since the epoch.
 *
 * @module
 */
import type { Numeric } from "../numeric.ts";

/** What the numbers count. */
export type EpochUnit = "milliseconds" | "seconds";

/** An integer or decimal number as text. */
const NUMBER = /^([+-]?)(\d+)(?:\.(\d*))?$/;

/**
 * Milliseconds, floored; NaN for what is no instant. Decimal places are moved as text: 1.123 s is 1123 ms, although
 * 1.123 · 1000 is a little less.
 */
export function parseEpoch(value: Numeric | string, unit: EpochUnit): number {
  if (typeof value === "number" && Number.isSafeInteger(value)) {
    return withinRange(unit === "seconds" ? value * 1000 : value);
  }
  const match = NUMBER.exec(String(value));
  if (match === null) return typeof value === "string" ? NaN : withinRange(small(Number(value)));
  const [, sign, whole, fraction = ""] = match;
  const places = unit === "seconds" ? 3 : 0;
  const moved = Number(whole! + fraction.slice(0, places).padEnd(places, "0"));
  const cut = /[1-9]/.test(fraction.slice(places));
  return withinRange(sign === "-" ? -moved - (cut ? 1 : 0) : moved);
}

/** A number with an exponent: next to nothing, or far too large. */
function small(value: number): number {
  return Math.abs(value) < 1e-6 ? Math.floor(value) : NaN;
}

function withinRange(ms: number): number {
  return Math.abs(ms) <= 8.64e15 ? ms + 0 : NaN;
}
