/**
 * RFC 3339 timestamps: `2026-03-01T10:00:05.123Z`.
 *
 * R1 A space may stand in place of `T`, letters may be small, and the offset may be left out: then it is local time.
 * R2 Digits behind the millisecond are cut off, so a time is never later than it says.
 * R3 A leap second (23:59:60 UTC) counts as the last millisecond of its day: order and day stay right.
 * R4 The date must exist. Years outside 0 … 9999 have a sign and six digits, as in `Date`.
 *
 * @module
 */
import { DAY, dayNumber, daysInMonth } from "./civil.ts";
import type { Zone } from "./zone.ts";

const DASH = 45, COLON = 58, SPACE = 32, POINT = 46, PLUS = 43;
const CAPITAL_T = 84, CAPITAL_Z = 90, SMALL = 32;

/**
 * Milliseconds since the epoch, or NaN if the text is no such timestamp. Written for speed: no pattern, no pieces.
 *
 * @param zone Zone of texts without an offset.
 */
export function parseRfc3339(text: string, zone: Zone): number {
  let at = 4; // behind the year
  let year = digits(text, 0, 4);
  if (year < 0) {
    const sign = text.charCodeAt(0);
    if (sign !== PLUS && sign !== DASH) return NaN;
    year = digits(text, 1, 6);
    if (year < 0 || (year === 0 && sign === DASH)) return NaN;
    if (sign === DASH) year = -year;
    at = 7;
  }
  const month = digits(text, at + 1, 2), day = digits(text, at + 4, 2);
  const hour = digits(text, at + 7, 2), minute = digits(text, at + 10, 2), second = digits(text, at + 13, 2);
  const separator = text.charCodeAt(at + 6);
  if (
    text.charCodeAt(at) !== DASH || text.charCodeAt(at + 3) !== DASH || text.charCodeAt(at + 9) !== COLON ||
    text.charCodeAt(at + 12) !== COLON ||
    (separator !== CAPITAL_T && separator !== SPACE && separator !== CAPITAL_T + SMALL)
  ) return NaN;
  if (month < 1 || month > 12 || day < 1 || (day > 28 && day > daysInMonth(year, month))) return NaN;
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) return NaN;
  at += 15;

  let millisecond = 0;
  if (text.charCodeAt(at) === POINT) {
    const first = ++at;
    let unit = 100;
    for (let digit = digits(text, at, 1); digit >= 0; digit = digits(text, ++at, 1)) {
      millisecond += digit * unit;
      unit = unit === 100 ? 10 : unit === 10 ? 1 : 0;
    }
    if (at === first) return NaN;
  }
  const local = dayNumber(year, month, day) * DAY + hour * 3_600_000 + minute * 60_000 +
    (second === 60 ? 59_999 : second * 1000 + millisecond);

  const instant = atOffset(text, at, local, zone);
  if (second === 60 && instant - Math.floor(instant / DAY) * DAY !== DAY - 1) return NaN;
  return Math.abs(instant) <= 8.64e15 ? instant : NaN;
}

/** Reads the offset, which must be the rest of the text. */
function atOffset(text: string, at: number, local: number, zone: Zone): number {
  const rest = text.length - at;
  if (rest === 0) return zone.instantOf(local);
  const sign = text.charCodeAt(at);
  if (rest === 1) return (sign === CAPITAL_Z || sign === CAPITAL_Z + SMALL) ? local : NaN;
  if (rest !== 6 || (sign !== PLUS && sign !== DASH) || text.charCodeAt(at + 3) !== COLON) return NaN;
  const hours = digits(text, at + 1, 2), minutes = digits(text, at + 4, 2);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return NaN;
  const offset = (hours * 60 + minutes) * 60_000;
  return sign === PLUS ? local - offset : local + offset;
}

/** A number of exactly `count` digits; −1 if they are not all digits. */
function digits(text: string, from: number, count: number): number {
  let number = 0;
  for (let i = from; i < from + count; i++) {
    const digit = text.charCodeAt(i) - 48;
    if (!(digit >= 0 && digit <= 9)) return -1; // also NaN, behind the end
    number = number * 10 + digit;
  }
  return number;
}
