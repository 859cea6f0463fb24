/**
 * Timestamps and durations: text in and out, arithmetic, the parts of a date.
 *
 * T1 Both count nanoseconds. Timestamps lie in the years 1 to 9999, durations within 64 bits (±292 years).
 * T2 A result outside is a failure, never a wrapped value.
 *
 * @module
 */
import { failure, type Part } from "./errors.ts";
import { TimeSpan, Timestamp } from "./values.ts";

const SECOND = 1_000_000_000n, MILLI = 1_000_000n;
const FIRST = -62_135_596_800n * SECOND, LAST = 253_402_300_800n * SECOND - 1n;
const LONGEST = 2n ** 63n - 1n;

const RFC3339 =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/** The instant of an RFC 3339 text, nothing for another text. */
export function parseTimestamp(text: string): Timestamp | undefined {
  const found = RFC3339.exec(text);
  if (found === null) return undefined;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  const [fraction = "", sign, offsetHours = "0", offsetMinutes = "0"] = found.slice(7);
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || day === 0) return undefined;
  if (hour > 23 || minute > 59 || second > 59 || Number(offsetHours) > 23 || Number(offsetMinutes) > 59) {
    return undefined;
  }
  const offset = (Number(offsetHours) * 3600 + Number(offsetMinutes) * 60) * (sign === "-" ? -1 : 1);
  const seconds = date.getTime() / 1000 + hour * 3600 + minute * 60 + second - offset;
  return timestampOf(BigInt(seconds) * SECOND + BigInt(fraction.padEnd(9, "0")));
}

/** The instant so many nanoseconds after the epoch, nothing outside the range. */
export function timestampOf(nanos: bigint): Timestamp | undefined {
  return nanos >= FIRST && nanos <= LAST ? new Timestamp(nanos) : undefined;
}

/** The instant of a number of milliseconds since the epoch, as records carry them. */
export function timestampOfMillis(ms: number): Timestamp | undefined {
  return Number.isFinite(ms) ? timestampOf(BigInt(Math.floor(ms)) * MILLI) : undefined;
}

const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1000n,
  "µs": 1000n,
  ms: MILLI,
  s: SECOND,
  m: 60n * SECOND,
  h: 3600n * SECOND,
  d: 86_400n * SECOND,
};
const DURATION =
  /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h|d)(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|ms|s|m|h|d))*$/;
const DURATION_PART = /(\d*)(?:\.(\d*))?(ns|us|µs|ms|s|m|h|d)/g;

/** A duration such as `1h30m`, `1.5s` or `-3ns`; nothing for another text or one too long. */
export function parseTimeSpan(text: string): TimeSpan | undefined {
  if (text.length > 100) return undefined;
  if (/^[+-]?0$/.test(text)) return new TimeSpan(0n);
  if (!DURATION.test(text)) return undefined;
  let nanos = 0n;
  for (const [, whole = "", fraction = "", unit = ""] of text.matchAll(DURATION_PART)) {
    const size = UNITS[unit]!;
    nanos += BigInt(whole) * size + BigInt(fraction) * size / 10n ** BigInt(fraction.length);
  }
  return timeSpanOf(text.startsWith("-") ? -nanos : nanos);
}

function timeSpanOf(nanos: bigint): TimeSpan | undefined {
  return nanos >= -LONGEST - 1n && nanos <= LONGEST ? new TimeSpan(nanos) : undefined;
}

/**
 * RFC 3339 in UTC.
 *
 * @param digits The least number of digits behind the second.
 */
export function timestampText(time: Timestamp, digits: number): string {
  const millis = floorDivide(time.nanos, MILLI);
  const iso = new Date(Number(millis)).toISOString(); // years 1 to 9999 have four digits
  const below = String(time.nanos - millis * MILLI).padStart(6, "0");
  const fraction = fractionText(iso.slice(20, 23) + below, digits);
  return `${iso.slice(0, 19)}${fraction}Z`;
}

/** Seconds, e.g. `90s` or `-0.25s`. */
export function timeSpanText(span: TimeSpan): string {
  const nanos = span.nanos < 0n ? -span.nanos : span.nanos;
  const fraction = fractionText(String(nanos % SECOND).padStart(9, "0"), 0);
  return `${span.nanos < 0n ? "-" : ""}${nanos / SECOND}${fraction}s`;
}

/** `.digits` without needless zeros; empty where nothing is left. */
function fractionText(nine: string, least: number): string {
  let length = nine.length;
  while (length > least && nine[length - 1] === "0") length--;
  return length === 0 ? "" : `.${nine.slice(0, length)}`;
}

/** `+` where at least one side is a time; nothing where it is not defined. */
export function addTimes(x: unknown, y: unknown, part: Part): Timestamp | TimeSpan | undefined {
  if (x instanceof Timestamp && y instanceof TimeSpan) return inRange(timestampOf(x.nanos + y.nanos), part);
  if (x instanceof TimeSpan && y instanceof Timestamp) return inRange(timestampOf(x.nanos + y.nanos), part);
  if (x instanceof TimeSpan && y instanceof TimeSpan) return inRange(timeSpanOf(x.nanos + y.nanos), part);
  return undefined;
}

/** `-` where at least one side is a time; nothing where it is not defined. */
export function subtractTimes(x: unknown, y: unknown, part: Part): Timestamp | TimeSpan | undefined {
  if (x instanceof Timestamp && y instanceof TimeSpan) return inRange(timestampOf(x.nanos - y.nanos), part);
  if (x instanceof Timestamp && y instanceof Timestamp) return inRange(timeSpanOf(x.nanos - y.nanos), part);
  if (x instanceof TimeSpan && y instanceof TimeSpan) return inRange(timeSpanOf(x.nanos - y.nanos), part);
  return undefined;
}

function inRange<T>(value: T | undefined, part: Part): T {
  if (value === undefined) throw failure(`${part} is out of the range of its type`);
  return value;
}

/** The parts of a date, by the name of the method that reads them. Months and days of month and year count from 0. */
export const DATE_PARTS: Readonly<Record<string, (local: Date) => number>> = {
  getFullYear: (local) => local.getUTCFullYear(),
  getMonth: (local) => local.getUTCMonth(),
  getDate: (local) => local.getUTCDate(),
  getDayOfMonth: (local) => local.getUTCDate() - 1,
  getDayOfWeek: (local) => local.getUTCDay(),
  getDayOfYear: (local) => {
    const first = new Date(0);
    first.setUTCFullYear(local.getUTCFullYear(), 0, 1);
    return Math.floor((local.getTime() - first.getTime()) / 86_400_000);
  },
  getHours: (local) => local.getUTCHours(),
  getMinutes: (local) => local.getUTCMinutes(),
  getSeconds: (local) => local.getUTCSeconds(),
  getMilliseconds: (local) => local.getUTCMilliseconds(),
};

/** The parts of a duration: all of it in that unit, cut towards zero; milliseconds those below the second. */
export const SPAN_PARTS: Readonly<Record<string, (span: TimeSpan) => number>> = {
  getHours: (span) => Number(span.nanos / (3600n * SECOND)),
  getMinutes: (span) => Number(span.nanos / (60n * SECOND)),
  getSeconds: (span) => Number(span.nanos / SECOND),
  getMilliseconds: (span) => Number(span.nanos % SECOND / MILLI),
};

const OFFSET = /^([+-]?)(\d\d):(\d\d)$/;

/**
 * A date whose UTC fields are the wall clock of `time` in `zone`: UTC without one, else an offset such as `+02:00` or
 * an IANA name. Nothing for an unknown zone.
 */
export function localDate(time: Timestamp, zone: string | undefined): Date | undefined {
  const ms = Number(floorDivide(time.nanos, MILLI));
  if (zone === undefined || zone === "UTC") return new Date(ms);
  const offset = OFFSET.exec(zone);
  if (offset !== null) {
    const [, sign, hours, minutes] = offset;
    return new Date(ms + (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -60_000 : 60_000));
  }
  try {
    const zoned = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone);
    return new Date(ms + zoned.offsetNanoseconds / 1e6);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Whole seconds since the epoch, rounded down. */
export function epochSeconds(time: Timestamp): bigint {
  return floorDivide(time.nanos, SECOND);
}

function floorDivide(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value < 0n && quotient * by !== value ? quotient - 1n : quotient;
}
