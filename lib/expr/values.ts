/**
 * What expressions work on.
 *
 * V1 A record's values are what JSON gave: `number`, `bigint`, `Decimal`, text, bool, null, array, plain object. They
 *    are used as they are and never copied.
 * V2 A number that is whole and within 64 bits is an int, however it was written: 5, 5.0 and 5e0 of a record are the
 *    int 5. Every other number is a double.
 * V3 What JSON has no form for exists only inside an expression: whole doubles ({@link Double}), unsigned ints
 *    ({@link Uint}), times ({@link Timestamp}, {@link TimeSpan}), types ({@link TypeName}) and maps with keys that are
 *    no text ({@link KeyedMap}).
 * V4 Ints inside an expression are `number` where safe, else `bigint`; -0 is never an int result.
 *
 * @module
 */
import { Decimal } from "../json.ts";

/** A double whose value is whole: without the box it would be an int. */
export class Double {
  readonly #value: number;
  constructor(value: number) {
    this.#value = value;
  }
  get number(): number {
    return this.#value;
  }
}

/** An unsigned 64-bit integer. */
export class Uint {
  readonly #value: bigint;
  constructor(value: bigint) {
    this.#value = value;
  }
  get integer(): bigint {
    return this.#value;
  }
}

/** An instant, to the nanosecond. */
export class Timestamp {
  readonly #nanos: bigint;
  /** @param nanos Nanoseconds since the epoch. */
  constructor(nanos: bigint) {
    this.#nanos = nanos;
  }
  get nanos(): bigint {
    return this.#nanos;
  }
}

/** A length of time, to the nanosecond. */
export class TimeSpan {
  readonly #nanos: bigint;
  constructor(nanos: bigint) {
    this.#nanos = nanos;
  }
  get nanos(): bigint {
    return this.#nanos;
  }
}

/** A type as a value. One object a type, so that `===` compares. */
export class TypeName {
  readonly #name: string;
  constructor(name: string) {
    this.#name = name;
  }
  get typeName(): string {
    return this.#name;
  }
}

/** A map with at least one key that is no text. Keys that are equal (1, 1u, 1.0) are one key. */
export class KeyedMap {
  /** By normalised key: the key as given, and the value. */
  readonly #entries = new Map<unknown, readonly [key: unknown, value: unknown]>();

  get size(): number {
    return this.#entries.size;
  }
  has(key: unknown): boolean {
    return this.#entries.has(normalKey(key));
  }
  get(key: unknown): unknown {
    return this.#entries.get(normalKey(key))?.[1];
  }
  set(key: unknown, value: unknown): void {
    this.#entries.set(normalKey(key), [key, value]);
  }
  entries(): Iterable<readonly [key: unknown, value: unknown]> {
    return this.#entries.values();
  }
}

/** Numbers that are equal as one key (a Map takes -0 for 0 itself). */
function normalKey(key: unknown): unknown {
  if (key instanceof Double) return key.number;
  const integer = key instanceof Uint ? key.integer : key;
  return typeof integer === "bigint" ? shrink(integer) : integer;
}

/** An int in its one form: `number` where safe, else `bigint`. */
export function shrink(value: bigint): number | bigint {
  return value >= -SAFE && value <= SAFE ? Number(value) : value;
}
const SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** A double in its one form: boxed where whole. */
export function toDouble(value: number): number | Double {
  return Number.isInteger(value) ? new Double(value) : value;
}

/** What can stand in the text of an expression as a literal. */
export type Constant = number | bigint | string | boolean | null | Double | Uint | Uint8Array;

/** Kinds of values, as messages name them. `number`: int, double or uint; `any`: not known before evaluation. */
export type Kind =
  | "any"
  | "bool"
  | "int"
  | "uint"
  | "double"
  | "number"
  | "text"
  | "bytes"
  | "null"
  | "list"
  | "map"
  | "timestamp"
  | "duration"
  | "type";

/** Kind of a value. */
export function kindOf(value: unknown): Kind {
  switch (typeof value) {
    case "string":
      return "text";
    case "boolean":
      return "bool";
    case "number":
      return isInt64(value) ? "int" : "double";
    case "bigint":
      return fitsInt64(value) ? "int" : "double";
    case "object":
      if (value === null) return "null";
      if (Array.isArray(value)) return "list";
      if (value instanceof Double) return "double";
      if (value instanceof Decimal) return wholeOf(value) === undefined ? "double" : "int";
      if (value instanceof Uint8Array) return "bytes";
      if (value instanceof Timestamp) return "timestamp";
      if (value instanceof TimeSpan) return "duration";
      if (value instanceof Uint) return "uint";
      if (value instanceof TypeName) return "type";
      return "map";
    default:
      return value === undefined ? "null" : "any";
  }
}

const INT64_END = 2 ** 63;
const INT64_MIN = -(2n ** 63n), INT64_MAX = 2n ** 63n - 1n;

/** Whether a JS number is whole and within 64 bits. */
export function isInt64(value: number): boolean {
  return Number.isInteger(value) && value >= -INT64_END && value < INT64_END;
}
export function fitsInt64(value: bigint): boolean {
  return value >= INT64_MIN && value <= INT64_MAX;
}

/** The int a long decimal stands for, where it is whole and within 64 bits. */
export function wholeOf(decimal: Decimal): bigint | undefined {
  if (!(Math.abs(decimal.value) <= INT64_END)) return undefined;
  const { floor, whole } = splitDecimal(decimal);
  return whole && fitsInt64(floor) ? floor : undefined;
}

/** A long decimal of at most 2^64 as the int below it, and whether that is all of it. */
export function splitDecimal(decimal: Decimal): { readonly floor: bigint; readonly whole: boolean } {
  const [, sign, integer, fraction = "", exponent = "0"] = DECIMAL.exec(decimal.text)!;
  const digits = integer! + fraction, point = integer!.length + Number(exponent);
  // Where the point lies behind all digits, zeros follow: at most some twenty, as the value is bounded.
  const before = point <= 0 ? "" : digits.slice(0, point).padEnd(/[1-9]/.test(digits) ? point : 0, "0");
  const whole = !/[1-9]/.test(point <= 0 ? digits : digits.slice(point));
  const magnitude = BigInt(before === "" ? 0 : before);
  if (sign !== "-") return { floor: magnitude, whole };
  return { floor: whole ? -magnitude : -magnitude - 1n, whole };
}
const DECIMAL = /^(-?)(\d+)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;
