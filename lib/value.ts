/**
 * Values of records as data: copies for readers that must not share.
 *
 * @module
 */

/**
 * A copy that shares nothing changeable with the original: plain objects, lists and bytes are copied all the way down,
 * primitives are what they are. Dates, maps, sets and buffers are copied by structured clone. An object of a class of the
 * user's cannot be copied without knowing it, and is shared.
 */
export function copyValue<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyValue) as T;
  const prototype = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) {
    const copy = { ...value } as Record<string, unknown>; // own properties only, `__proto__` included
    for (const key in copy) {
      const inner = copy[key];
      if (typeof inner === "object" && inner !== null && Object.hasOwn(copy, key)) {
        setOwn(copy, key, copyValue(inner));
      }
    }
    return copy as T;
  }
  if (
    ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof Date ||
    value instanceof Map ||
    value instanceof Set
  ) return structuredClone(value);
  return value;
}

/** Sets an own property of any name: `__proto__` is a name like another. */
export function setOwn(target: object, key: string, value: unknown): void {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else (target as Record<string, unknown>)[key] = value;
}
