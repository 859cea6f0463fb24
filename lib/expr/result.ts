/**
 * How values leave an expression: as what JSON has a form for.
 *
 * Whole doubles and uints become numbers (`bigint` beyond 2^53), timestamps RFC 3339 text with at least milliseconds,
 * durations text in seconds, types their name, keys of maps text. Bytes stay bytes.
 *
 * @module
 */
import { setOwn } from "../value.ts";
import { toText } from "./convert.ts";
import { failure, Part } from "./errors.ts";
import { mapEntries } from "./members.ts";
import { timeSpanText, timestampText } from "./times.ts";
import { Double, KeyedMap, shrink, TimeSpan, Timestamp, TypeName, Uint } from "./values.ts";

/**
 * Where values that only exist inside expressions may be: `none`, the value itself, or somewhere in its depth too.
 * Known when compiled, so that what comes from a record is never walked.
 */
export type Inner = "none" | "itself" | "deep";

/** What may hold the inner values of both. */
export function joinInner(a: Inner, b: Inner): Inner {
  if (a === b || b === "none") return a;
  return a === "none" ? b : "deep";
}

/** A value that is no container of inner values, on its way out. */
export function leave(value: unknown): unknown {
  if (typeof value !== "object") return value === undefined ? null : value;
  if (value instanceof Double) return value.number;
  if (value instanceof Uint) return shrink(value.integer);
  if (value instanceof Timestamp) return timestampText(value, 3);
  if (value instanceof TimeSpan) return timeSpanText(value);
  return value instanceof TypeName ? value.typeName : value;
}

/**
 * Any value on its way out. Containers are copied.
 *
 * @throws `expression_failed` for a value nested too deeply to walk.
 */
export function leaveDeep(value: unknown, depth: number = 0): unknown {
  if (typeof value !== "object" || value === null) return leave(value);
  if (depth > MAX_DEPTH) throw failure(`the result is nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return value.map((inner) => leaveDeep(inner, depth + 1));
  if (value instanceof KeyedMap || Object.getPrototypeOf(value) === Object.prototype) {
    const out = {};
    for (const [key, inner] of mapEntries(value)) {
      setOwn(out, toText(key, NO_PART), leaveDeep(inner, depth + 1));
    }
    return out;
  }
  return leave(value);
}
const MAX_DEPTH = 1000;
const NO_PART = new Part("", 0, 0);
