/**
 * What calls take: fields of bodies and of queries, read strictly, and described for the OpenAPI document. One description for both.
 *
 * Q1 A field nobody knows is an error that names those there are: a slip of the pen is never ignored.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { nearest } from "../../expr/mod.ts";
import { TOKEN_PATTERN } from "../definition/mod.ts";
import { type Fields, instantOf, isObject } from "../fold/fields.ts";
import type { Instant } from "../client/mod.ts";

/** A JSON Schema. */
export type Schema = Readonly<Record<string, unknown>>;

/** A field, as it is declared. */
export interface Field<T> {
  /** What it means. */
  readonly summary: string;
  /** For the description of the interface. */
  readonly schema: Schema;
  /** Whether it has to be there. */
  readonly required: boolean;
  /** What it takes, in words: ends "… is no". */
  readonly expected: string;
  /** The value, of JSON; `undefined`: it does not fit. */
  read(value: unknown): T | undefined;
}

/** Fields by name. */
export type FieldsOf = Readonly<Record<string, Field<unknown>>>;

/** Values of fields. */
export type ValuesOf<F extends FieldsOf> =
  & { readonly [K in keyof F as F[K] extends Required ? K : never]: ValueOf<F[K]> }
  & { readonly [K in keyof F as F[K] extends Required ? never : K]?: ValueOf<F[K]> };
type ValueOf<F> = F extends Field<infer T> ? T : never;
interface Required {
  readonly required: true;
}

function field<T>(
  summary: string,
  expected: string,
  schema: Schema,
  read: (value: unknown) => T | undefined,
): Field<T> & { readonly required: false } {
  return { summary, expected, schema, read, required: false };
}

/** The field has to be there. */
export function must<T>(given: Field<T>): Field<T> & { readonly required: true } {
  return { ...given, required: true };
}

/** Any text. */
export function text(summary: string, { max = 65_536 } = {}): Field<string> & { readonly required: false } {
  return field(summary, `text of at most ${max} characters`, { type: "string", maxLength: max }, (value) => {
    return typeof value === "string" && value.length <= max ? value : undefined;
  });
}

/** A name. */
export function token(summary: string): Field<string> & { readonly required: false } {
  const expected = 'a name: 1 to 128 letters, digits, "_" and "-"';
  return field(summary, expected, { type: "string", pattern: TOKEN_PATTERN.source }, (value) => {
    return typeof value === "string" && TOKEN_PATTERN.test(value) ? value : undefined;
  });
}

/** A whole number; in a query as digits. */
export function whole(
  summary: string,
  { min = 0, max = Number.MAX_SAFE_INTEGER, byDefault }: {
    readonly min?: number;
    readonly max?: number;
    readonly byDefault?: number;
  } = {},
): Field<number> & { readonly required: false } {
  const expected = `a whole number from ${min} to ${max}`;
  const schema = {
    type: "integer",
    minimum: min,
    maximum: max,
    ...(byDefault === undefined ? {} : { default: byDefault }),
  };
  return field(summary, expected, schema, (value) => {
    const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
    if (typeof number !== "number" || !Number.isSafeInteger(number)) return undefined;
    return number >= min && number <= max ? number : undefined;
  });
}

/** true or false. */
export function flag(summary: string): Field<boolean> & { readonly required: false } {
  return field(summary, "true or false", { type: "boolean" }, (value) => {
    if (value === "true") return true;
    if (value === "false") return false;
    return typeof value === "boolean" ? value : undefined;
  });
}

/** One of these. */
export function oneOf<T extends string>(
  summary: string,
  ...options: readonly T[]
): Field<T> & { readonly required: false } {
  const expected = `one of ${options.join(", ")}`;
  return field(summary, expected, { enum: options }, (value) => options.find((option) => option === value));
}

/** An object of the caller's own. */
export function object(summary: string): Field<Fields> & { readonly required: false } {
  return field(summary, "an object", { type: "object" }, (value) => isObject(value) ? value : undefined);
}

/** Any JSON value. */
export function any(summary: string): Field<unknown> & { readonly required: false } {
  return field(summary, "a value", {}, (value) => value);
}

/** Texts by name. */
export function texts(
  summary: string,
): Field<Readonly<Record<string, string>>> & { readonly required: false } {
  const schema = { type: "object", additionalProperties: { type: "string" } };
  return field(summary, "an object of texts", schema, (value) => {
    const isRight = isObject(value) && Object.values(value).every((entry) => typeof entry === "string");
    return isRight ? value as Readonly<Record<string, string>> : undefined;
  });
}

/** An instant: RFC 3339 text with an offset, or milliseconds since the epoch. */
export function instant(summary: string): Field<Instant> & { readonly required: false } {
  const schema = { oneOf: [{ type: "string", format: "date-time" }, { type: "integer" }] };
  return field(
    summary,
    "a time: RFC 3339 text with an offset, or milliseconds since 1970",
    schema,
    (value) => {
      if (typeof value === "string") return /^\d{1,16}$/.test(value) ? Number(value) : instantOf(value);
      return typeof value === "number" && Number.isSafeInteger(value) ? value : undefined;
    },
  );
}

/** Amounts by name. */
export function amounts(
  summary: string,
): Field<Readonly<Record<string, unknown>>> & { readonly required: false } {
  const schema = { type: "object", additionalProperties: { type: "number" } };
  return field(summary, "an object of numbers", schema, (value) => isObject(value) ? value : undefined);
}

/** A list. */
export function list<T>(
  summary: string,
  item: Field<T>,
  { min = 0, max = 1000 } = {},
): Field<readonly T[]> & { readonly required: false } {
  const expected = `a list of ${min} to ${max} entries, each ${item.expected}`;
  const schema = { type: "array", items: item.schema, minItems: min, maxItems: max };
  return field(summary, expected, schema, (value) => {
    const values = typeof value === "string" ? [value] : value;
    if (!Array.isArray(values) || values.length < min || values.length > max) return undefined;
    const read = values.map((entry) => item.read(entry));
    return read.some((entry) => entry === undefined) ? undefined : read as T[];
  });
}

/** An object of fields. */
export function nested<F extends FieldsOf>(
  summary: string,
  fields: F,
): Field<ValuesOf<F>> & { readonly required: false } {
  const names = Object.keys(fields).join(", ");
  return field(summary, `an object of ${names}`, schemaOf(fields), (value) => {
    return isObject(value) ? readFields(value, fields, summary) : undefined;
  });
}

/** JSON Schema of an object of fields. */
export function schemaOf(fields: FieldsOf): Schema {
  const required = Object.entries(fields).filter(([, field]) => field.required).map(([name]) => name);
  return {
    type: "object",
    properties: Object.fromEntries(
      Object.entries(fields).map((
        [name, { schema, summary }],
      ) => [name, { ...schema, description: summary }]),
    ),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

/**
 * Values of fields.
 *
 * @param place What has them, in words.
 * @throws {MailerError} `invalid_argument`, naming the first that is missing, unknown or does not fit.
 */
export function readFields<F extends FieldsOf>(given: Fields, fields: F, place: string): ValuesOf<F> {
  const values: Record<string, unknown> = {};
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(fields, name)) throw unknown(name, Object.keys(fields), place);
  }
  for (const [name, field] of Object.entries(fields)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
    if (value === undefined) {
      if (!field.required) continue;
      throw invalid(`${place} has no "${name}"`, `"${name}" is ${field.expected}`);
    }
    const read = field.read(value);
    if (read === undefined) {
      throw invalid(`"${name}" of ${place} is not what it should be`, `it is ${field.expected}`);
    }
    values[name] = read;
  }
  return values as ValuesOf<F>;
}

function unknown(name: string, known: readonly string[], place: string): MailerError {
  const shown = JSON.stringify(name.slice(0, 100)), near = nearest(name.slice(0, 100), known);
  if (near !== undefined) return invalid(`${place} has no ${shown}`, `did you mean "${near}"?`);
  return invalid(
    `${place} has no ${shown}`,
    known.length === 0 ? "it has no fields" : `it has ${known.join(", ")}`,
  );
}

function invalid(message: string, hint: string): MailerError {
  return new MailerError("invalid_argument", message, { hint });
}
