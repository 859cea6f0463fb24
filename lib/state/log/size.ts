/**
 * About how much memory a value takes.
 *
 * @module
 */

/** Members that are looked at; the rest counts as their average. */
const LOOKED_AT = 8;

/** Bytes, roughly: a few members stand for all, and nothing is looked at that lies deep. */
export function roughSize(value: unknown, depth = 0): number {
  if (typeof value === "string") return 24 + value.length;
  if (typeof value !== "object" || value === null) return 8;
  if (ArrayBuffer.isView(value)) return 100 + value.byteLength;
  if (value instanceof ArrayBuffer) return 50 + value.byteLength;
  if (depth > 4) return 64;
  if (Array.isArray(value)) return 32 + averageOf(value, value.length, depth);
  if (value instanceof Map || value instanceof Set) return 64 + averageOf(value, value.size, depth);
  const fields = Object.values(value);
  return 32 + averageOf(fields, fields.length, depth);
}

function averageOf(members: Iterable<unknown>, count: number, depth: number): number {
  if (count === 0) return 0;
  let seen = 0, bytes = 0;
  for (const member of members) {
    bytes += 8 + roughSize(member, depth + 1);
    if (++seen === LOOKED_AT) break;
  }
  return bytes / seen * count;
}
