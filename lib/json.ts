/**
 * JSON in and out without losing a digit.
 *
 * J1 A number that a double holds exactly enough to print back is a plain `number`.
 * J2 A whole number beyond ±(2^53 − 1) is a `bigint`.
 * J3 Any other number a double would change is a {@link Decimal}, which keeps its text.
 * J4 A text without such numbers costs one `JSON.parse` and a skim over a sixteenth of its characters; numbers of many
 *    digits that a double prints back (`0.30000000000000004`) cost a look each.
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

  /** Takes the text of a JSON number, which is not checked. */
  constructor(text: string) {
    this.text = text;
    this.value = Number(text);
  }
  /** The nearest double: arithmetic and comparisons take it. */
  valueOf(): number {
    return this.value;
  }
  /** The text as it was written. */
  toString(): string {
    return this.text;
  }
  /** Makes `JSON.stringify` write the text, digit for digit. */
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
    return parseExact(text);
  } catch (cause) {
    throw new MailerError("not_json", `not JSON: ${(cause as Error).message}`, { cause });
  }
}

/** {@link parseJson} that throws what `JSON.parse` throws. */
export function parseExact(text: string): unknown {
  const changed = changedNumbers(text);
  return changed.length === 0 ? JSON.parse(text) : parseMarked(text, changed) ?? parseSlowly(text);
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

/** Whether `text`, if it is JSON, may hold a number that a double would change. Digits inside a string can look like one. */
export function hasLongNumber(text: string): boolean {
  return changedNumbers(text).length > 0;
}

const MARK = "\x7f";
const MARK_ESCAPED = /\\u007f/i;

/**
 * Parses with the numbers at `changed` marked as strings, then puts exact numbers in their place. Undefined where a mark
 * could be mistaken, or a number lies in a string: the quotes of its mark then end that string, and what follows is no JSON.
 */
function parseMarked(text: string, changed: readonly number[]): unknown {
  if (text.includes(MARK) || MARK_ESCAPED.test(text)) return undefined;
  let marked = "", end = 0;
  for (let i = 0; i < changed.length; i += 2) {
    marked += `${text.slice(end, changed[i])}"${MARK}${text.slice(changed[i], changed[i + 1])}"`;
    end = changed[i + 1]!;
  }
  let value: unknown;
  try {
    value = JSON.parse(marked + text.slice(end));
  } catch {
    return undefined; // the slow way parses it, or says what is wrong with the text as it came
  }
  return withoutMarks(value);
}

function withoutMarks(value: unknown): unknown {
  if (typeof value === "string") return value.startsWith(MARK) ? exactNumber(value.slice(1)) : value;
  if (typeof value !== "object" || value === null) return value;
  const parts = value as Record<string, unknown>; // arrays too; `__proto__` is an own property here, and set as one
  for (const key of Object.keys(parts)) {
    const part = parts[key];
    if (typeof part === "string" || typeof part === "object") {
      const exact = withoutMarks(part);
      if (exact !== part) parts[key] = exact;
    }
  }
  return value;
}

function parseSlowly(text: string): unknown {
  return native.parse(text, (_key, value, context) => {
    return typeof value === "number" ? exactNumber(context.source!, value) : value;
  });
}

const NONE: readonly number[] = Object.freeze([]);
// Before and behind a number stand blanks, colon, comma, brackets: digits of a hexadecimal id or a version rarely fit.
const LONG_EXPONENT = /[eE][+-]?[0-9]{3,}(?=[\s,\]}]|$)/g;
const NUMBER = /^-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/**
 * Begin and end of every number of a JSON text that a double would change (J2, J3), in order. What it finds may lie in a
 * string; what it leaves out is certain.
 *
 * Only tokens of sixteen digits and points in a row, or with an exponent of three digits, can be such numbers, and few
 * texts have any. A run of sixteen covers one of every sixteen positions, so only those are looked at.
 */
function changedNumbers(text: string): readonly number[] {
  const { length } = text;
  let found: number[] | undefined, end = 0;
  for (let at = 15; at < length; at += 16) {
    if (!isNumeric(text.charCodeAt(at)) || at < end) continue;
    // A run of sixteen that covers `at` covers a position eight away too, on one side at least.
    if (!isNumeric(text.charCodeAt(at - 8)) && !(at + 8 < length && isNumeric(text.charCodeAt(at + 8)))) {
      continue;
    }
    let from = at;
    while (from > 0 && isNumeric(text.charCodeAt(from - 1))) from--;
    const least = from + 16;
    if (least > length) continue;
    let to = least;
    while (to > at && isNumeric(text.charCodeAt(to - 1))) to--;
    if (to > at) continue;
    end = endOfToken(text, least);
    addChanged(text, startOfToken(text, from), end, found ??= []);
  }
  LONG_EXPONENT.lastIndex = 0;
  return LONG_EXPONENT.test(text) ? withExponents(text, found ?? []) : found ?? NONE;
}

/** Adds the numbers with long exponents to those found before. */
function withExponents(text: string, found: readonly number[]): number[] {
  const ends = new Map<number, number>();
  for (let i = 0; i < found.length; i += 2) ends.set(found[i]!, found[i + 1]!);
  LONG_EXPONENT.lastIndex = 0;
  for (let match = LONG_EXPONENT.exec(text); match !== null; match = LONG_EXPONENT.exec(text)) {
    const more: number[] = [];
    addChanged(text, startOfToken(text, match.index), LONG_EXPONENT.lastIndex, more);
    if (more.length > 0) ends.set(more[0]!, more[1]!);
  }
  return [...ends].sort(([a], [b]) => a - b).flat();
}

/** Adds the token to `found` if it is a JSON number that is to be no plain `number`. */
function addChanged(text: string, from: number, to: number, found: number[]): void {
  if (from > 0 && !isBefore(text.charCodeAt(from - 1))) return;
  if (to < text.length && !isBehind(text.charCodeAt(to))) return;
  const token = text.slice(from, to), value = Number(token);
  if (String(value) === token) {
    // Digits alone only when it is whole and below 1e21; then it is to be a bigint from 2^53 on.
    if (!Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 1e21) return;
  } else {
    const parts = NUMBER.exec(token);
    if (parts === null) return;
    const isWhole = parts[1] === undefined && parts[2] === undefined;
    if (isWhole ? Number.isSafeInteger(value) : sameNumber(token, value)) return;
  }
  found.push(from, to);
}

function startOfToken(text: string, at: number): number {
  while (at > 0 && isTokenPart(text.charCodeAt(at - 1))) at--;
  return at;
}
function endOfToken(text: string, at: number): number {
  while (at < text.length && isTokenPart(text.charCodeAt(at))) at++;
  return at;
}
function isNumeric(code: number): boolean {
  return code <= 57 && code >= 46 && code !== 47;
}
/** Digits, `.`, `+`, `-`, `e`, `E`. */
function isTokenPart(code: number): boolean {
  return isNumeric(code) || code === 43 || code === 45 || code === 101 || code === 69;
}
function isBlank(code: number): boolean {
  return code === 32 || code === 10 || code === 13 || code === 9;
}
/** What may stand before a number: a colon, a comma, an opening bracket, blanks. */
function isBefore(code: number): boolean {
  return code === 58 || code === 44 || code === 91 || isBlank(code);
}
/** What may stand behind a number: a comma, a closing bracket or brace, blanks. */
function isBehind(code: number): boolean {
  return code === 44 || code === 93 || code === 125 || isBlank(code);
}
