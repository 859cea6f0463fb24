/**
 * The types a field of a document can have, as data: what is read from them is validation, the JSON Schema, the
 * reference page and the templates.
 *
 * F1 A description is plain data; only `check` and `finish` of a block are code, for what no schema can say.
 * F2 A type carries the TypeScript type of its value, so a description that does not fit its block does not compile.
 *
 * @module
 */
import type * as blocks from "./blocks.ts";

/** A field of a block. */
export interface Field<T = unknown> {
  readonly type: FieldType<T>;
  /** One sentence for the reference page and for editors, without a full stop at the end. */
  readonly summary: string;
  readonly required?: true;
  /** As it would be written in the document. */
  readonly default?: unknown;
  /** As it would be written in the document. */
  readonly example?: unknown;
  /** Its value, and what came into it by `${…}`, is shown nowhere. */
  readonly secret?: true;
  /** `false`: described and validated, but this build does not run it. */
  readonly carried?: false;
}

/** Descriptions of all fields of a block whose value is a `T`. */
export type Fields<T> = { readonly [K in keyof T]-?: Field<Exclude<T[K], undefined>> };

/** Descriptions of fields, whatever the block. */
export type AnyFields = Readonly<Record<string, Field>>;

/** A condition on a field that could be read: its value, or its default, is (or is not) one of some. */
export interface Condition {
  readonly field: string;
  readonly in?: readonly unknown[];
  readonly notIn?: readonly unknown[];
}

/** A relation between fields that a JSON Schema can say as well. `{value}` in `because` is the value of the condition's field. */
export type Rule =
  /** Fields of exactly one group are there, the required ones of that group all of them. */
  | {
    readonly kind: "oneOf";
    readonly groups: readonly {
      readonly required: readonly string[];
      readonly optional?: readonly string[];
    }[];
  }
  /** At least one of the fields is there. */
  | { readonly kind: "anyOf"; readonly fields: readonly string[] }
  | {
    readonly kind: "requires";
    readonly when: Condition;
    readonly fields: readonly string[];
    readonly because: string;
  }
  | {
    readonly kind: "forbids";
    readonly when: Condition;
    readonly fields: readonly string[];
    readonly because: string;
  };

/** Reports a problem of a block at one of its fields (`[]`: at the block itself). */
export type Report = (
  field: readonly (string | number)[],
  code: string,
  message: string,
  hint?: string,
) => void;

/** What is common to blocks with and without variants. `Read` is the block as read, before `finish`. */
export interface BlockExtras {
  readonly rules?: readonly Rule[];
  /** Rules no schema can say; called only on a block without other problems. */
  check?(value: Readonly<Record<string, unknown>>, report: Report): void;
  /** The block's value from what was read. */
  finish?(value: Readonly<Record<string, unknown>>): unknown;
}

/** One of the forms a block can have, chosen by the value of one of its fields. */
export interface Variant {
  readonly summary: string;
  readonly fields: AnyFields;
  readonly rules?: readonly Rule[];
}

/** All types. */
export type TypeNode =
  | { readonly kind: "text"; readonly pattern?: string; readonly what?: string }
  | { readonly kind: "int"; readonly min?: number; readonly max?: number }
  /** `above`: greater than, and not equal. */
  | { readonly kind: "number"; readonly above?: number; readonly min?: number; readonly max?: number }
  | { readonly kind: "boolean" }
  /** Milliseconds once read. `min` in ms; absent = may be negative. */
  | { readonly kind: "duration"; readonly min?: number }
  /** Bytes once read; a number or a text such as `64MiB`. */
  | { readonly kind: "size" }
  | { readonly kind: "path" }
  /** `same` maps other spellings to a value. */
  | {
    readonly kind: "enum";
    readonly values: readonly string[];
    readonly same?: Readonly<Record<string, string>>;
    /** Values this build runs; all unless given. */
    readonly carried?: readonly string[];
  }
  | { readonly kind: "list"; readonly of: FieldType; readonly min?: number }
  | { readonly kind: "map"; readonly of: FieldType; readonly keys: "text" | "path"; readonly min?: number }
  | { readonly kind: "block"; readonly fields: AnyFields } & BlockExtras
  | {
    readonly kind: "variants";
    readonly by: string;
    readonly summary: string;
    readonly default?: string;
    readonly common: AnyFields;
    readonly variants: Readonly<Record<string, Variant>>;
  } & BlockExtras
  | { readonly kind: "any" }
  /** `gives`: what its value has to be. */
  | { readonly kind: "expression"; readonly gives?: "bool" | "list" | "text" }
  | { readonly kind: "ref" }
  | { readonly kind: "timezone" }
  | { readonly kind: "timeFormat" }
  | { readonly kind: "windowLength" }
  /** One node or several: `a`, `a.late`, `[a, b]`. */
  | { readonly kind: "from" }
  /** A JSON Schema, or another that is an object of JSON, or the path of a file with one. `what` is "a JSON Schema" unless given. */
  | { readonly kind: "schema"; readonly what?: string };

/** A type whose values are `T`s. */
export type FieldType<T = unknown> = TypeNode & { readonly "~value"?: T };

/** Builders of types, one for each kind. */
export const types = {
  text: (): FieldType<string> => ({ kind: "text" }),
  /** Text that matches; `what` completes "expected …". */
  matching: (pattern: RegExp, what: string): FieldType<string> => ({
    kind: "text",
    pattern: pattern.source,
    what,
  }),
  int: (range: { min?: number; max?: number } = {}): FieldType<number> => ({ kind: "int", ...range }),
  number: (range: { above?: number; min?: number; max?: number } = {}): FieldType<number> => ({
    kind: "number",
    ...range,
  }),
  boolean: (): FieldType<boolean> => ({ kind: "boolean" }),
  /** A duration of at least `min` ms. */
  duration: (min = 0): FieldType<number> => ({ kind: "duration", min }),
  /** A duration that may be negative. */
  signedDuration: (): FieldType<number> => ({ kind: "duration" }),
  size: (): FieldType<number> => ({ kind: "size" }),
  path: (): FieldType<string> => ({ kind: "path" }),
  oneOf: <const V extends string>(...values: readonly V[]): FieldType<V> => ({ kind: "enum", values }),
  /** An enum with further spellings of its values, or with values this build does not run. */
  oneOfWith: <const V extends string>(
    values: readonly V[],
    options: { readonly same?: Readonly<Record<string, V>>; readonly carried?: readonly V[] },
  ): FieldType<V> => ({ kind: "enum", values, ...options }),
  list: <T>(of: FieldType<T>, min = 0): FieldType<readonly T[]> => ({ kind: "list", of, min }),
  map: <T>(
    of: FieldType<T>,
    keys: "text" | "path" = "text",
    min = 0,
  ): FieldType<Readonly<Record<string, T>>> => ({
    kind: "map",
    of,
    keys,
    min,
  }),
  /** A block whose value is what its fields give. */
  block: <T>(fields: Fields<T>, extras: BlockExtras = {}): FieldType<T> => ({
    kind: "block",
    fields,
    ...extras,
  }),
  /** A block whose value is made by `finish`, or that has more than a type can say. */
  looseBlock: <T>(fields: AnyFields, extras: BlockExtras = {}): FieldType<T> => ({
    kind: "block",
    fields,
    ...extras,
  }),
  variants: <T>(
    by: string,
    summary: string,
    common: AnyFields,
    variants: Readonly<Record<string, Variant>>,
    extras: BlockExtras & { readonly default?: string } = {},
  ): FieldType<T> => ({ kind: "variants", by, summary, common, variants, ...extras }),
  any: (): FieldType<unknown> => ({ kind: "any" }),
  expression: (): FieldType<string> => ({ kind: "expression" }),
  /** An expression whose value has to be of a kind. */
  expressionOf: (gives: "bool" | "list" | "text"): FieldType<string> => ({ kind: "expression", gives }),
  ref: (): FieldType<blocks.CodeRef> => ({ kind: "ref" }),
  timezone: (): FieldType<string> => ({ kind: "timezone" }),
  timeFormat: (): FieldType<string> => ({ kind: "timeFormat" }),
  windowLength: (): FieldType<blocks.WindowLength> => ({ kind: "windowLength" }),
  from: (): FieldType<readonly string[]> => ({ kind: "from" }),
  schema: (what?: string): FieldType<unknown> => ({
    kind: "schema",
    ...(what === undefined ? {} : { what }),
  }),
} as const;
