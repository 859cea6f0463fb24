/**
 * JSON in and out without losing a digit.
 *
 * J1 A number that a double holds exactly enough to print back is a plain `number`.
 * J2 A whole number beyond ±(2^53 − 1) is a `bigint`.
 * J3 Any other number a double would change is a {@link Decimal}, which keeps its text.
 * J4 A text without such numbers costs one `JSON.parse` and a skim over a sixteenth of its characters.
 * J5 `__proto__` is a key like any other.
 *
 * @module
 */
import { MailerError } from "./errors.ts";

/**
 * A decimal number with more digits, or a larger exponent, than a double holds; kept as the text it was written as.
 * Arithmetic takes its {@link Decimal.value}; what passes through untouched comes out as it went in.
 */
export class Decimal {
  /** JSON number text. */
  readonly text: string;
  /** The nearest double; ±Infinity beyond the range of doubles. */
  readonly value: number;

  constructor(text: string) {
    this.text = text;
    this.value = Number(text);
  }
  valueOf(): number {
    return this.value;
  }
  toString(): string {
    return this.text;
  }
  toJSON(): unknown {
    return rawJson(this.text);
  }
}

// `JSON.rawJSON` and the third argument of revivers are in the language (2025) but not yet in TypeScript's library.
const native = JSON as unknown as {
  rawJSON(text: string): unknown;
  parse(
    text: string,
    reviver: (this: unknown, key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
};

/** A value that `JSON.stringify` writes as exactly `text` (which must be a JSON primitive). */
export function rawJson(text: string): unknown {
  return native.rawJSON(text);
}

/**
 * Value of a JSON text.
 *
 * @throws {MailerError} `not_json`, with the position in the text.
 */
export function parseJson(text: string): unknown {
  try {
    return hasLongNumber(text) ? parseExact(text) : JSON.parse(text);
  } catch (cause) {
    throw new MailerError("not_json", `not JSON: ${(cause as Error).message}`, { cause });
  }
}

/** One compact line of JSON. `undefined` and functions at the top are written as `null`. */
export function stringifyJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    // A bigint somewhere, or a cycle, which fails again here.
    return JSON.stringify(value, (_, v) => typeof v === "bigint" ? rawJson(String(v)) : v) ?? "null";
  }
}

/** {@link parseJson} for a text that may hold numbers beyond a double (slower). */
export function parseExact(text: string): unknown {
  return native.parse(text, (_key, value, context) => {
    return typeof value === "number" ? exactNumber(context.source!, value) : value;
  });
}

/** The number written as `text`: plain where a double keeps it, else `bigint` or {@link Decimal}. */
export function exactNumber(text: string, value: number = Number(text)): number | bigint | Decimal {
  if (Number.isSafeInteger(value) && value !== 0 && text.length < 16) return value;
  if (/^-?\d+$/.test(text)) {
    if (Number.isSafeInteger(value)) return value;
    return BigInt(text);
  }
  return sameNumber(text, value) ? value : new Decimal(text);
}

/** Whether `value` prints as the same decimal number as `text`. */
function sameNumber(text: string, value: number): boolean {
  if (!Number.isFinite(value)) return false;
  return digitsOf(text) === digitsOf(String(value));
}

/** A canonical form of a decimal number: significant digits and exponent. */
function digitsOf(text: string): string {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/.exec(
    text,
  )!;
  const all = (whole! + fraction).replace(/^0+/, "");
  const significant = all.replace(/0+$/, "");
  if (significant === "") return "0";
  const scale = BigInt(exponent) - BigInt(fraction.length) + BigInt(all.length - significant.length);
  return `${sign}${significant}e${scale}`;
}

/**
 * Whether `text` may hold a number that a double would change: sixteen digits and points in a row, or an exponent of three digits.
 * A run of sixteen must cover every sixteenth position, so only those are looked at.
 */
export function hasLongNumber(text: string): boolean {
  const length = text.length;
  for (let at = 15; at < length; at += 16) {
    if (!isNumeric(text.charCodeAt(at))) continue;
    let from = at, to = at + 1;
    while (from > 0 && isNumeric(text.charCodeAt(from - 1))) from--;
    while (to < length && isNumeric(text.charCodeAt(to))) to++;
    if (to - from >= 16) return true;
    at = to - 1 - ((to - 1 - 15) % 16); // go on with the next sixteenth behind the run
  }
  return hasLongExponent(text, "e") || hasLongExponent(text, "E");
}

function hasLongExponent(text: string, letter: string): boolean {
  for (let at = text.indexOf(letter, 1); at !== -1; at = text.indexOf(letter, at + 1)) {
    if (!isNumeric(text.charCodeAt(at - 1))) continue;
    let to = at + 1;
    const sign = text.charCodeAt(to);
    if (sign === 43 || sign === 45) to++;
    const first = to;
    while (isNumeric(text.charCodeAt(to))) to++;
    if (to - first >= 3) return true;
  }
  return false;
}

function isNumeric(code: number): boolean {
  return (code >= 48 && code <= 57) || code === 46;
}
