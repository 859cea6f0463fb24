/**
 * Reading JSON objects field by field, as events and commands are.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { Decimal } from "../../json.ts";
import { isNumeric, toDouble } from "../../numeric.ts";
import { parseRfc3339 } from "../../time/rfc3339.ts";
import { zoneOf } from "../../time/zone.ts";

/** A JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** Whether a value is a JSON object: no list, no null, no number of many digits. */
export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Decimal);
}

const TOKEN = /^[A-Za-z0-9_-]{1,128}$/;

/** Whether a text can name a flow, node, channel, signal, counter or execution. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** What a kind of field takes; `undefined` is what does not fit. */
export type Reader<T> = (value: unknown) => T | undefined;

/** Any text. */
export const text: Reader<string> = (value) => typeof value === "string" ? value : undefined;
/** A name. */
export const token: Reader<string> = (value) =>
  typeof value === "string" && isToken(value) ? value : undefined;
/** true or false. */
export const flag: Reader<boolean> = (value) => typeof value === "boolean" ? value : undefined;
/** A whole number from 0 on. */
export const count: Reader<number> = (value) =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
/** RFC 3339 text, as milliseconds. */
export const instant: Reader<number> = (value) => typeof value === "string" ? instantOf(value) : undefined;
/** An object. */
export const object: Reader<Fields> = (value) => isObject(value) ? value : undefined;
/** Anything. */
export const any: Reader<unknown> = (value) => value;

/** One of these texts. */
export function oneOf<T extends string>(...options: readonly T[]): Reader<T> {
  return (value) => options.find((option) => option === value);
}

/** A list of what `item` takes. */
export function listOf<T>(item: Reader<T>): Reader<readonly T[]> {
  return (value) => {
    if (!Array.isArray(value)) return undefined;
    const items: T[] = [];
    for (const element of value) {
      const read = item(element);
      if (read === undefined) return undefined;
      items.push(read);
    }
    return items;
  };
}

/** A list of anything. */
export const list: Reader<readonly unknown[]> = (value) => Array.isArray(value) ? value : undefined;

/** Numbers by name; a number of many digits counts as its nearest double. */
export const numbers: Reader<Readonly<Record<string, number>>> = (value) => {
  if (!isObject(value)) return undefined;
  const entries: [string, number][] = [];
  for (const [name, number] of Object.entries(value)) {
    const double = isNumeric(number) ? toDouble(number) : NaN;
    if (!isToken(name) || !Number.isFinite(double)) return undefined;
    entries.push([name, double]);
  }
  return Object.fromEntries(entries);
};

/** Texts by name. */
export const texts: Reader<Readonly<Record<string, string>>> = (value) =>
  isObject(value) && Object.values(value).every((entry) => typeof entry === "string")
    ? value as Readonly<Record<string, string>>
    : undefined;

/** What an object of this kind has: a reader a field, `required` or not. */
export type Shape<T> = { readonly [K in keyof T]-?: Field<Exclude<T[K], undefined>> };

/** How a field is read. */
export interface Field<T> {
  readonly read: Reader<T>;
  readonly required: boolean;
}

/** A field that has to be there. */
export function required<T>(read: Reader<T>): Field<T> {
  return { read, required: true };
}

/** A field that may be missing. */
export function optional<T>(read: Reader<T>): Field<T> {
  return { read, required: false };
}

/**
 * The fields of a shape; unknown ones are left out.
 *
 * @param place Names the object in messages.
 * @throws {MailerError} `code`, naming the first field that is missing or does not fit.
 */
export function readShape<T>(value: unknown, shape: Shape<T>, code: string, place: string): T {
  if (!isObject(value)) throw new MailerError(code, `${place} is no object`);
  const result: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(shape) as [string, Field<unknown>][]) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined;
    if (given === undefined) {
      if (field.required) throw new MailerError(code, `${place} has no "${name}"`);
      continue;
    }
    const read = field.read(given);
    if (read === undefined) throw new MailerError(code, `"${name}" of ${place} is not what it should be`);
    result[name] = read;
  }
  return result as T;
}

/** An object of a shape. */
export function nested<T>(shape: Shape<T>): Reader<T> {
  return (value) => {
    try {
      return readShape(value, shape, "", "");
    } catch {
      return undefined; // the message names the field that holds the object
    }
  };
}

const UTC = zoneOf("UTC");
const OFFSET = /(?:[zZ]|[+-]\d\d:\d\d)$/;

/** Milliseconds of RFC 3339 text with an offset; `undefined` where it is none. */
export function instantOf(value: string): number | undefined {
  const time = OFFSET.test(value) ? parseRfc3339(value, UTC) : NaN;
  return Number.isNaN(time) ? undefined : time;
}

/** RFC 3339 text with milliseconds. */
export function instantText(time: number): string {
  return new Date(time).toISOString();
}
