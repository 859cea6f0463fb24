/**
 * Values of records as Postgres reads them.
 *
 * A column of many rows travels as one array literal, `{1,2,NULL,"a \"b\""}`: a text of which the server makes values by its own
 * rules. So every type there is can be written, and no digit is lost.
 *
 * L1 What is missing in a record is NULL. `null` is NULL too, but for `json` and `jsonb`: there it is the JSON value null.
 * L2 Numbers keep all their digits: bigint, long decimals and texts of digits are written as they are.
 * L3 A time is a number of ms since the epoch, a Date or a text; a text without a zone is in UTC.
 * L4 What cannot be meant for the type is refused here, by `invalid_value`; the rest is left to the server, which knows best.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { MailerError } from "../../lib/errors.ts";
import { Decimal, stringifyJson } from "../../lib/json.ts";

/** Makes an element of an array literal. Throws `invalid_value` with what was expected. */
export type Literal = (value: unknown) => string;

/** What the server says of the type of a column. */
export interface ColumnType {
  /** Name of the type, of a domain that of what is under it, e.g. `int8`; of a list that of its elements. */
  readonly base: string;
  /** Whether it is a list, of any number of dimensions. */
  readonly isList: boolean;
}

/** NULL in an array literal. */
export const NULL = "NULL";

/** How values of a type are written. */
export function literalOf({ base, isList }: ColumnType): Literal {
  const scalar = WRITERS[base] ?? otherLiteral;
  const isJson = base === "json" || base === "jsonb";
  const element: Literal = (value) =>
    value === undefined || (value === null && !isJson) ? NULL : scalar(value);
  if (!isList) return element;
  return (value) => value === undefined || value === null ? NULL : quote(listText(value, element));
}

function listText(value: unknown, element: Literal): string {
  if (typeof value === "string" && value.startsWith("{")) return value; // as Postgres writes it
  if (!Array.isArray(value)) throw unfit(value, "a list");
  return `{${value.map((one) => Array.isArray(one) ? listText(one, element) : element(one)).join(",")}}`;
}

const WRITERS: Readonly<Record<string, Literal>> = {
  int2: wholeLiteral(-32768n, 32767n),
  int4: wholeLiteral(-2147483648n, 2147483647n),
  int8: wholeLiteral(-9223372036854775808n, 9223372036854775807n),
  oid: wholeLiteral(0n, 4294967295n),
  float4: numberLiteral,
  float8: numberLiteral,
  numeric: numberLiteral,
  bool: booleanLiteral,
  text: textLiteral,
  varchar: textLiteral,
  bpchar: textLiteral,
  name: textLiteral,
  citext: textLiteral,
  uuid: uuidLiteral,
  timestamptz: timeLiteral,
  timestamp: timeLiteral,
  date: timeLiteral,
  json: jsonLiteral,
  jsonb: jsonLiteral,
  bytea: bytesLiteral,
};

const SPECIAL = /["\\\0]/;

/** A text as an element. */
function quote(text: string): string {
  if (!SPECIAL.test(text)) return `"${text}"`;
  if (text.includes("\0")) {
    throw new MailerError("invalid_value", "a text with a NUL character, which Postgres cannot store");
  }
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

function wholeLiteral(least: bigint, most: bigint): Literal {
  const expected = `a whole number from ${least} to ${most}`, low = Number(least), high = Number(most);
  return (value) => {
    if (Number.isSafeInteger(value)) {
      if (value as number >= low && value as number <= high) return String(value);
    } else if (
      typeof value === "bigint" || (typeof value === "string" && /^\s*[+-]?\d{1,40}\s*$/.test(value))
    ) {
      const whole = BigInt(typeof value === "string" ? value.trim().replace("+", "") : value);
      if (whole >= least && whole <= most) return String(whole);
    }
    throw unfit(value, expected);
  };
}

const NUMBER = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*$|^(?:NaN|[+-]?Infinity)$/;

function numberLiteral(value: unknown): string {
  if (typeof value === "number" || typeof value === "bigint" || value instanceof Decimal) {
    return String(value);
  }
  if (typeof value === "string" && NUMBER.test(value)) return value.trim();
  throw unfit(value, "a number");
}

function booleanLiteral(value: unknown): string {
  if (value === true || value === "true" || value === "t") return "t";
  if (value === false || value === "false" || value === "f") return "f";
  throw unfit(value, "true or false");
}

function textLiteral(value: unknown): string {
  return quote(typeof value === "string" ? value : plainText(value));
}

function plainText(value: unknown): string {
  if (typeof value === "number" || typeof value === "boolean" || typeof value === "bigint") {
    return stringifyJson(value); // a number as it stands in JSON
  }
  return value instanceof Date ? isoText(value.getTime()) : stringifyJson(value);
}

/** Types that are not listed: ranges, addresses, times of day, enumerations, types of the user's. */
function otherLiteral(value: unknown): string {
  return textLiteral(value);
}

const UUID = /^\{?(?:[0-9a-f]{4}-?){7}[0-9a-f]{4}\}?$/i;

function uuidLiteral(value: unknown): string {
  if (typeof value === "string" && UUID.test(value)) return quote(value);
  throw unfit(value, "a UUID");
}

function jsonLiteral(value: unknown): string {
  return quote(stringifyJson(value));
}

const DATE_TEXT = /^\d{4,6}-\d{2}-\d{2}(?:[T ]\d|$| BC$)|^-?infinity$/i;
const SIGNED_YEAR = /^[+-]\d{6}-/;
const MOST = 8.64e15;
const YEAR_10000 = 253_402_300_800_000;

function timeLiteral(value: unknown): string {
  if (typeof value === "string") {
    if (DATE_TEXT.test(value)) return quote(value);
    if (SIGNED_YEAR.test(value)) return timeLiteral(new Date(value));
  } else {
    const ms = value instanceof Date
      ? value.getTime()
      : typeof value === "number" || typeof value === "bigint" || value instanceof Decimal
      ? Number(value)
      : NaN;
    if (Math.abs(ms) <= MOST) return quote(isoText(ms));
    if (ms === Infinity || ms === -Infinity) return String(ms).toLowerCase();
  }
  throw unfit(value, "a time: ms since the epoch, a Date, or a text such as 2026-03-01T10:00:05Z");
}

/** RFC 3339 in UTC with microseconds, as far as Postgres reads it. @param ms With fractions. */
function isoText(ms: number): string {
  if (!(Math.abs(ms) <= MOST)) throw unfit(ms, "a time");
  if (ms >= 0 && ms < YEAR_10000 && Number.isInteger(ms)) return plainIsoText(ms);
  const whole = Math.floor(ms), micros = Math.min(999, Math.round((ms - whole) * 1000));
  const [, years, rest] = /^([+-]?\d+)(-.*)Z$/.exec(new Date(whole).toISOString())!;
  const year = Number(years), behind = `${rest}${micros === 0 ? "" : String(micros).padStart(3, "0")}Z`;
  const digits = String(year > 0 ? year : 1 - year).padStart(4, "0"); // there is no year 0
  return `${digits}${behind}${year > 0 ? "" : " BC"}`;
}

const DAY = 86_400_000;
const TWO_DIGITS = Array.from({ length: 60 }, (_, i) => String(i).padStart(2, "0"));
/** Times of a stream lie together: the text of the day that was written last. */
let lastDay = 0, lastDayText = "1970-01-01T";

/** What `Date` gives, in a sixth of its time. @param ms Whole, from 0 to the year 9999. */
function plainIsoText(ms: number): string {
  const day = Math.floor(ms / DAY), inDay = ms - day * DAY;
  if (day !== lastDay) [lastDay, lastDayText] = [day, new Date(day * DAY).toISOString().slice(0, 11)];
  const seconds = Math.floor(inDay / 1000), minutes = Math.floor(seconds / 60);
  const millis = inDay - seconds * 1000;
  const fraction = millis < 10 ? `00${millis}` : millis < 100 ? `0${millis}` : millis;
  return `${lastDayText}${TWO_DIGITS[Math.floor(minutes / 60)]}:${TWO_DIGITS[minutes % 60]}:${
    TWO_DIGITS[seconds % 60]
  }.${fraction}Z`;
}

function bytesLiteral(value: unknown): string {
  if (value instanceof Uint8Array) return hexLiteral(value);
  if (typeof value === "string" && /^\\x(?:[0-9a-f]{2})*$/i.test(value)) return quote(value);
  const base64 = typeof value === "object" && value !== null && "base64" in value ? value.base64 : undefined;
  if (typeof base64 === "string") return hexLiteral(Buffer.from(base64, "base64"));
  throw unfit(value, 'bytes: a Uint8Array, a text such as \\x00ff, or {"base64": "…"}');
}

function hexLiteral(bytes: Uint8Array): string {
  return quote(`\\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex")}`);
}

const SHOWN = 60;

function unfit(value: unknown, expected: string): MailerError {
  let text: string;
  try {
    text = typeof value === "number" ? String(value) : stringifyJson(value);
  } catch {
    text = `a ${typeof value}`; // what is no JSON at all
  }
  const shown = text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
  return new MailerError("invalid_value", `${shown} is not ${expected}`);
}
