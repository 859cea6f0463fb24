/**
 * `int(x)`, `uint(x)`, `double(x)`, `string(x)`, `bytes(x)`, `bool(x)`, `timestamp(x)`, `duration(x)`, `type(x)`.
 *
 * @module
 */
import { Decimal } from "../json.ts";
import { numeric } from "./arithmetic.ts";
import { failure, type Part } from "./errors.ts";
import {
  epochSeconds,
  parseTimeSpan,
  parseTimestamp,
  timeSpanText,
  timestampOf,
  timestampText,
} from "./times.ts";
import {
  Double,
  fitsInt64,
  type Kind,
  kindOf,
  shrink,
  TimeSpan,
  Timestamp,
  toDouble,
  TypeName,
  Uint,
} from "./values.ts";

export function toInt(x: unknown, part: Part): number | bigint {
  if (typeof x === "number" && Number.isSafeInteger(x)) return x;
  const value = typeof x === "string"
    ? integerOf(x)
    : x instanceof Timestamp
    ? epochSeconds(x)
    : truncate(x, 63n);
  if (value === undefined || !fitsInt64(value)) throw unconvertible(x, "an int", part);
  return shrink(value);
}

export function toUint(x: unknown, part: Part): Uint {
  const value = typeof x === "string" ? integerOf(x) : truncate(x, 64n);
  if (value === undefined || value < 0n || value >= 2n ** 64n) throw unconvertible(x, "a uint", part);
  return new Uint(value);
}

export function toDoubleValue(x: unknown, part: Part): number | Double {
  if (typeof x === "string") {
    if (!/^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|Infinity|NaN)$/.test(x)) {
      throw unconvertible(x, "a double", part);
    }
    return toDouble(Number(x));
  }
  const value = x instanceof Decimal ? x.value : numeric(x);
  if (value === undefined) throw unconvertible(x, "a double", part);
  return toDouble(Number(value instanceof Uint ? value.integer : value));
}

export function toText(x: unknown, part: Part): string {
  switch (typeof x) {
    case "string":
      return x;
    case "number":
      return String(x + 0);
    case "bigint":
    case "boolean":
      return String(x);
  }
  if (x instanceof Decimal) return x.text;
  if (x instanceof Double) return Object.is(x.number, -0) ? "-0" : String(x.number);
  if (x instanceof Uint) return String(x.integer);
  if (x instanceof Timestamp) return timestampText(x, 0);
  if (x instanceof TimeSpan) return timeSpanText(x);
  if (x instanceof Uint8Array) {
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(x);
    } catch (error) {
      if (error instanceof TypeError) throw failure(`the bytes are not UTF-8 in ${part}`);
      throw error;
    }
  }
  throw unconvertible(x, "text", part);
}

export function toBytes(x: unknown, part: Part): Uint8Array {
  if (x instanceof Uint8Array) return x;
  if (typeof x === "string") return new TextEncoder().encode(x);
  throw unconvertible(x, "bytes", part);
}

const BOOLS: Readonly<Record<string, boolean>> = {
  "1": true,
  t: true,
  T: true,
  true: true,
  True: true,
  TRUE: true,
  "0": false,
  f: false,
  F: false,
  false: false,
  False: false,
  FALSE: false,
};

export function toBool(x: unknown, part: Part): boolean {
  if (typeof x === "boolean") return x;
  if (typeof x === "string" && Object.hasOwn(BOOLS, x)) return BOOLS[x]!;
  throw unconvertible(x, "a bool", part);
}

/** From RFC 3339 text, or whole seconds since the epoch. */
export function toTimestamp(x: unknown, part: Part): Timestamp {
  if (x instanceof Timestamp) return x;
  const number = numeric(x);
  const time = typeof x === "string"
    ? parseTimestamp(x)
    : typeof number === "bigint"
    ? timestampOf(number * 1_000_000_000n)
    : undefined;
  if (time === undefined) throw unconvertible(x, "a timestamp", part);
  return time;
}

export function toTimeSpan(x: unknown, part: Part): TimeSpan {
  const span = x instanceof TimeSpan ? x : typeof x === "string" ? parseTimeSpan(x) : undefined;
  if (span === undefined) throw unconvertible(x, "a duration", part);
  return span;
}

/** The types by the kinds of their values, named as CEL names them. */
const TYPES: Readonly<Record<Exclude<Kind, "any" | "number">, TypeName>> = {
  bool: new TypeName("bool"),
  int: new TypeName("int"),
  uint: new TypeName("uint"),
  double: new TypeName("double"),
  text: new TypeName("string"),
  bytes: new TypeName("bytes"),
  null: new TypeName("null_type"),
  list: new TypeName("list"),
  map: new TypeName("map"),
  timestamp: new TypeName("google.protobuf.Timestamp"),
  duration: new TypeName("google.protobuf.Duration"),
  type: new TypeName("type"),
};

/** Types that can be named in an expression. */
export const TYPE_NAMES: ReadonlyMap<string, TypeName> = new Map(
  Object.values(TYPES).map((type) => [type.typeName, type]),
);

export function typeOf(x: unknown, part: Part): TypeName {
  const kind = kindOf(x);
  if (kind === "any" || kind === "number") throw failure(`${part} has no type`);
  return TYPES[kind];
}

function integerOf(text: string): bigint | undefined {
  return /^[+-]?\d{1,20}$/.test(text) ? BigInt(text.replace("+", "")) : undefined;
}

/** A number without what is behind its point; a double must lie well inside 2^bits, as it may stand for what is outside. */
function truncate(x: unknown, bits: bigint): bigint | undefined {
  const value = numeric(x);
  if (typeof value !== "number") return value instanceof Uint ? value.integer : value;
  return Math.abs(value) < Number(2n ** bits) ? BigInt(Math.trunc(value)) : undefined;
}

function unconvertible(x: unknown, wanted: string, part: Part): Error {
  return failure(`this ${kindOf(x)} cannot become ${wanted}: ${part}`);
}
