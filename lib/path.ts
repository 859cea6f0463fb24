/**
 * Field paths: `customer.id`, `items[0].sku`, `a."b.c"`, `a["b.c"]`.
 *
 * F1 A name means a field of an object that is the object's own; an index means an element of a list. Anything else
 *    (a name on a list or a text, an index on an object) is missing, which is `undefined`.
 * F2 Nothing is changed in place: what is written to is copied, the rest is shared.
 * F3 `__proto__`, `constructor` and the like are names as any other.
 *
 * @module
 */
import { MailerError } from "./errors.ts";
import { Decimal } from "./json.ts";
import { setOwn } from "./value.ts";

/** A parsed path: names of fields and indexes of elements, at least one. */
export type Path = readonly [PathPart, ...PathPart[]];

/** A name, or an index ≥ 0. */
export type PathPart = string | number;

/** Reads what is at a path; `undefined` = missing. */
export type Getter = (value: unknown) => unknown;

const PLAIN = /[^.[\]"']+/y;
const INDEX = /\[(0|[1-9]\d*)\]/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'/y;

/**
 * Parses a path. Names stand plain where they have none of `. [ ] " '`, else in double or single quotes, in which a
 * backslash takes the next character as it is.
 *
 * @throws {MailerError} `invalid_path`, with the position from 1.
 */
export function parsePath(text: string): Path {
  const parts: PathPart[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  const quoted = (): string | undefined => {
    const match = take(QUOTED);
    return match === null ? undefined : (match[1] ?? match[2]!).replace(/\\(.)/gsu, "$1");
  };
  const name = (): string => {
    const start = at;
    const found = quoted();
    if (found !== undefined) return found;
    const plain = take(PLAIN)?.[0];
    if (plain === undefined) {
      throw invalidPath(text, at, at < text.length ? "expected a name" : "expected a name behind it");
    }
    if (plain.trim() !== plain) {
      throw invalidPath(text, start, "a name that starts or ends with a space needs quotes");
    }
    return plain;
  };
  const bracket = (): PathPart => {
    const index = take(INDEX);
    if (index !== null) {
      const number = Number(index[1]);
      if (number < 2 ** 32 - 1) return number;
      throw invalidPath(text, at - index[0].length, "an index that large is none");
    }
    at++;
    const found = quoted();
    if (found === undefined) throw invalidPath(text, at, "expected an index from 0, or a name in quotes");
    if (text[at] !== "]") throw invalidPath(text, at, "expected ]");
    at++;
    return found;
  };
  parts.push(text[0] === "[" ? bracket() : name());
  while (at < text.length) {
    if (text[at] === "[") parts.push(bracket());
    else if (text[at] === ".") {
      at++;
      parts.push(name());
    } else throw invalidPath(text, at, "expected . or [");
  }
  return parts as unknown as Path;
}

/** The text of a path, so that it parses to the same. */
export function formatPath(path: readonly PathPart[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else {
      const plain = part !== "" && part.trim() === part && !/[.[\]"']/.test(part);
      text += (text === "" ? "" : ".") + (plain ? part : `"${part.replace(/["\\]/g, "\\$&")}"`);
    }
  }
  return text;
}

/** Compiles the reading of a path. */
export function getter(path: Path): Getter {
  const [first, second] = path;
  if (path.length === 1) return stepGetter(first);
  if (path.length === 2 && !RISKY.has(first) && !RISKY.has(second!)) {
    return (value) => {
      if (!isObject(value)) return undefined;
      const inner = value[first];
      return isObject(inner) ? inner[second!] : undefined;
    };
  }
  const steps = path.map(stepGetter);
  return (value) => {
    for (let i = 0; i < steps.length && value !== undefined; i++) value = steps[i]!(value);
    return value;
  };
}

function stepGetter(part: PathPart): Getter {
  if (typeof part === "number") return (value) => Array.isArray(value) ? value[part] : undefined;
  // No prototype of the usual values has a name that is not risky: what is found is the value's own.
  if (!RISKY.has(part)) return (value) => isObject(value) ? value[part] : undefined;
  return (value) => isPlainObject(value) && Object.hasOwn(value, part) ? value[part] : undefined;
}

/** What is at `path`, `undefined` if it is missing. For one use; {@link getter} is faster. */
export function getPath(value: unknown, path: Path): unknown {
  return getter(path)(value);
}

/**
 * `value` with something else at `path`. Missing parents are created, as objects or, for an index, as lists; an index may
 * be the first one behind a list.
 *
 * @throws {MailerError} `not_an_object` where something that is neither missing nor the right kind of parent is in the
 *   way, null included, or an index would leave a hole.
 */
export function setPath(value: unknown, path: Path, replacement: unknown): unknown {
  return setFrom(value, path, 0, replacement);
}

/** `value` without what is at `path`; `value` itself if that is missing. Elements behind a deleted one move up. */
export function deletePath(value: unknown, path: Path): unknown {
  return deleteFrom(value, path, 0);
}

/**
 * Only what is at the paths, nested as it was, in the order of the paths; what is missing is left out. Elements taken from
 * a list stand in a list in their order. A value that is neither object nor list is returned as it is.
 */
export function pick(value: unknown, paths: readonly Path[]): unknown {
  return picker(paths)(value);
}

/** Compiles {@link pick}. */
export function picker(paths: readonly Path[]): (value: unknown) => unknown {
  const root: PickNode = new Map();
  for (const path of paths) addToPick(root, path);
  return (value) => isObject(value) ? pickFrom(value, root) ?? (Array.isArray(value) ? [] : {}) : value;
}

/** A set of paths as a tree; `true` = all that is there. */
type PickNode = Map<PathPart, PickNode | true>;

function addToPick(root: PickNode, path: Path): void {
  let node = root;
  for (const [depth, part] of path.entries()) {
    const known = node.get(part);
    if (known === true) return;
    if (depth === path.length - 1) node.set(part, true);
    else if (known !== undefined) node = known;
    else {
      const inner: PickNode = new Map();
      node.set(part, inner);
      node = inner;
    }
  }
}

function pickFrom(value: unknown, node: PickNode): unknown {
  let picked: Record<string, unknown> | unknown[] | undefined;
  const parts = Array.isArray(value) ? [...node].sort(byIndex) : node;
  for (const [part, inner] of parts) {
    const found = partOf(value, part);
    const kept = found === undefined || inner === true ? found : pickFrom(found, inner);
    if (kept === undefined) continue;
    if (typeof part === "string") setOwn(picked ??= {}, part, kept);
    else ((picked ??= []) as unknown[]).push(kept);
  }
  return picked;
}

function byIndex([a]: [PathPart, unknown], [b]: [PathPart, unknown]): number {
  return Number(a) - Number(b) || 0;
}

function setFrom(value: unknown, path: Path, depth: number, replacement: unknown): unknown {
  if (depth === path.length) return replacement;
  const part = path[depth]!;
  if (typeof part === "string") {
    if (value !== undefined && !isPlainObject(value)) throw notAnObject(path, depth, "an object", value);
    const copy: Record<string, unknown> = { ...value };
    setOwn(copy, part, setFrom(partOf(value, part), path, depth + 1, replacement));
    return copy;
  }
  if (value !== undefined && !Array.isArray(value)) throw notAnObject(path, depth, "a list", value);
  const copy: unknown[] = value === undefined ? [] : [...value];
  if (part > copy.length) {
    const list = depth === 0 ? "the list" : `"${formatPath(path.slice(0, depth))}"`;
    throw new MailerError(
      "not_an_object",
      `cannot set "${
        formatPath(path)
      }": ${list} has ${copy.length} elements, and [${part}] would leave a hole`,
    );
  }
  copy[part] = setFrom(copy[part], path, depth + 1, replacement);
  return copy;
}

function deleteFrom(value: unknown, path: Path, depth: number): unknown {
  const part = path[depth]!;
  const found = partOf(value, part);
  if (found === undefined && !hasPart(value, part)) return value;
  if (depth < path.length - 1) {
    const rest = deleteFrom(found, path, depth + 1);
    return rest === found ? value : setFrom(value, [part], 0, rest);
  }
  if (typeof part === "number") return (value as unknown[]).toSpliced(part, 1);
  const copy = { ...(value as Record<string, unknown>) };
  delete copy[part];
  return copy;
}

function partOf(value: unknown, part: PathPart): unknown {
  return hasPart(value, part) ? (value as Record<PathPart, unknown>)[part] : undefined;
}

function hasPart(value: unknown, part: PathPart): boolean {
  if (typeof part === "number") return Array.isArray(value) && part < value.length;
  return isPlainObject(value) && Object.hasOwn(value, part);
}

/** An object with fields: no list, no bytes, no number kept as text. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  return isObject(value) && !Array.isArray(value) && !(value instanceof Decimal) &&
    !ArrayBuffer.isView(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Names that objects, lists, bytes or long numbers have without being given them, and digits, which index lists. */
const RISKY = {
  names: new Set(
    [
      Object.prototype,
      [],
      Uint8Array.prototype,
      Object.getPrototypeOf(Uint8Array.prototype),
      new Decimal("0"),
      Decimal.prototype,
    ]
      .flatMap((object) => Object.getOwnPropertyNames(object)),
  ),
  has(name: PathPart): boolean {
    return typeof name === "number" || /^\d/.test(name) || this.names.has(name);
  },
};

function invalidPath(text: string, at: number, message: string): MailerError {
  return new MailerError("invalid_path", `"${text}" is not a field path: ${message} at position ${at + 1}`, {
    hint: 'write names with dots, indexes in brackets, odd names in quotes: a.b[0]."c.d"',
  });
}

function notAnObject(path: Path, depth: number, expected: string, found: unknown): MailerError {
  const parent = depth === 0 ? "the value" : `"${formatPath(path.slice(0, depth))}"`;
  const kind = found === null
    ? "null"
    : Array.isArray(found)
    ? "a list"
    : typeof found === "object"
    ? "an object"
    : `a ${typeof found}`;
  return new MailerError(
    "not_an_object",
    `cannot set "${formatPath(path)}": ${parent} is ${kind}, not ${expected}`,
  );
}
