/**
 * Reading maps and lists: `a.b`, `a[b]`, `has(a.b)`, `a in b`.
 *
 * M1 Only own properties are members: what an object inherits does not exist for an expression.
 * M2 A member that is `undefined` is missing; one that is null is there.
 * M3 A plain object is read straight where the name is none that objects inherit (the fast way), else by asking first.
 *
 * @module
 */
import { failure, type Part, quoted } from "./errors.ts";
import { Double, KeyedMap, kindOf, Uint } from "./values.ts";

/** Whether a missing member fails, or reads as this. */
export interface Missing {
  readonly fails: boolean;
  readonly value: unknown;
}

/** Whether a name may be read straight from a plain object (M3). */
export function isOrdinary(name: string): boolean {
  return !(name in Object.prototype);
}

/** The same name as the engine keeps it for keys: with a piece cut out of a text, every access would look it up first. */
export function interned(name: string): string {
  return Object.keys({ [name]: true })[0]!;
}

/** Whether a value is a plain object that an ordinary name may be read from. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  // An object of another class, or one that has a member of this name, takes the slow way.
  return typeof value === "object" && value !== null && value.constructor === Object;
}

/** `target.name`, the slow way. */
export function select(
  target: unknown,
  name: string,
  missing: Missing,
  part: Part,
  targetPart: Part,
): unknown {
  const kind = kindOf(target);
  if (kind === "map") {
    const value = mapGet(target as object, name);
    if (value !== undefined) return value;
    if (missing.fails) throw failure(`${part} is missing`);
    return missing.value;
  }
  if (kind === "null" && !missing.fails) return missing.value;
  throw failure(`${targetPart} is ${kind} and has no field ${quoted(name)}`);
}

/** `has(target.name)` */
export function has(target: unknown, name: string, missing: Missing, targetPart: Part): boolean {
  const kind = kindOf(target);
  if (kind === "map") return mapGet(target as object, name) !== undefined;
  if (kind === "null" && !missing.fails) return false;
  throw failure(`${targetPart} is ${kind} and has no fields to ask for`);
}

/** `target[key]` */
export function index(
  target: unknown,
  key: unknown,
  missing: Missing,
  part: Part,
  targetPart: Part,
): unknown {
  let value: unknown;
  if (Array.isArray(target)) {
    const at = listIndex(key);
    if (at === undefined) {
      throw failure(`a list has no element at a position that is ${kindOf(key)} in ${part}`);
    }
    value = target[at];
  } else {
    const kind = kindOf(target);
    if (kind === "null" && !missing.fails) return missing.value;
    if (kind !== "map") throw failure(`${targetPart} is ${kind} and has no elements`);
    value = mapGet(target as object, key);
  }
  if (value !== undefined) return value;
  if (!missing.fails) return missing.value;
  throw failure(
    Array.isArray(target)
      ? `${part} is missing: ${targetPart} has ${target.length} element${target.length === 1 ? "" : "s"}`
      : `${part} is missing`,
  );
}

/** `x in container` for a map; for lists see `operators.ts`. */
export function isKey(x: unknown, container: unknown, missing: Missing, part: Part): boolean {
  const kind = kindOf(container);
  if (kind === "map") return mapGet(container as object, x) !== undefined;
  if (kind === "null" && !missing.fails) return false;
  throw failure(`cannot look for something in ${kind} in ${part}`);
}

/** The position a number stands for, -1 where no list has it; nothing for what is no whole number. */
function listIndex(key: unknown): number | undefined {
  if (typeof key === "number") return Number.isInteger(key) ? key : undefined;
  if (key instanceof Double) return key.number;
  if (key instanceof Uint) return Number(key.integer);
  return typeof key === "bigint" ? -1 : undefined;
}

/** The value of a key, `undefined` where it is missing. Keys of plain objects are texts. */
export function mapGet(map: object, key: unknown): unknown {
  if (map instanceof KeyedMap) return map.get(key);
  return typeof key === "string" && Object.hasOwn(map, key)
    ? (map as Record<string, unknown>)[key]
    : undefined;
}

export function mapSize(map: object): number {
  return map instanceof KeyedMap ? map.size : Object.keys(map).length;
}

export function mapKeys(map: object): unknown[] {
  return map instanceof KeyedMap ? Array.from(map.entries(), ([key]) => key) : Object.keys(map);
}

export function mapEntries(map: object): Iterable<readonly [key: unknown, value: unknown]> {
  return map instanceof KeyedMap ? map.entries() : Object.entries(map);
}
