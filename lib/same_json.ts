/**
 * Equality of JSON values: numbers by exact decimal value, keys of objects in any order.
 *
 * @module
 */
import { canonicalNumber, isNumeric } from "./numeric.ts";

/** A text that equal JSON values, and no others, share. */
export function canonicalText(value: unknown): string {
  if (isNumeric(value)) return `#${canonicalNumber(value)}`.replace(/^#-0$/, "#0");
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  if (isObject(value)) {
    const keys = Object.keys(value).sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalText(value[key])}`).join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/** Whether two values are equal as JSON. */
export function sameJson(a: unknown, b: unknown): boolean {
  return canonicalText(a) === canonicalText(b);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isNumeric(value);
}
