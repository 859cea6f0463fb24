/**
 * Keys: what makes two of them equal, and where a key lives.
 *
 * K1 Equal JSON values have equal identities: 1, 1.0 and 1n; objects whatever the order of their fields; bytes by content.
 * K2 Different values have different identities. Texts, numbers, booleans and null never meet each other.
 * K3 Identities and key groups are part of stored state: for one value they never change, between versions either.
 *
 * @module
 */
import { MailerError } from "./errors.ts";
import { Decimal } from "./json.ts";
import { canonicalNumber } from "./numeric.ts";

/** What a `Map` can find a key by. */
export type KeyIdentity = string | number | boolean | null | undefined;

/**
 * Identity of a key: the key itself where it is a usual text, number, boolean or null; else a text that starts with
 * U+0000.
 *
 * @param key Any JSON value, bytes, or `undefined`, which is its own identity.
 * @throws {MailerError} `invalid_key` for functions, symbols, and lists or objects nested deeper than 500.
 */
export function keyIdentity(key: unknown): KeyIdentity {
  switch (typeof key) {
    case "string":
      return key.charCodeAt(0) === 0 ? "\0s" + key : key;
    case "number":
    case "boolean":
    case "undefined":
      return key;
    case "bigint":
      return numberIdentity(key);
    case "object":
      if (key === null) return null;
      if (key instanceof Decimal) return numberIdentity(key);
      return "toJSON" in key ? jsonIdentity(key) : "\0" + compositeText(key, 0);
    default:
      throw invalidKey(`a ${typeof key} cannot be a key`);
  }
}

/** Dates and the like are equal to what JSON says of them. */
function jsonIdentity(key: object): KeyIdentity {
  const { toJSON } = key as { toJSON: unknown };
  return typeof toJSON === "function" ? keyIdentity(toJSON.call(key)) : "\0" + compositeText(key, 0);
}

function numberIdentity(value: bigint | Decimal): KeyIdentity {
  const canonical = canonicalNumber(value);
  return typeof canonical === "number" ? canonical : "\0n" + canonical;
}

/** Every piece says where it ends, so that no two values run together to the same text. */
function canonicalText(value: unknown, depth: number): string {
  switch (typeof value) {
    case "string":
      return `s${value.length}:${value}`;
    case "number":
      return `n${value};`;
    case "bigint":
      return `n${canonicalNumber(value)};`;
    case "boolean":
      return value ? "t" : "f";
    case "undefined": // in a list; JSON says null
      return "z";
    case "object":
      return value === null ? "z" : compositeText(value, depth);
    default:
      throw invalidKey(`a ${typeof value} cannot be part of a key`);
  }
}

function compositeText(value: object, depth: number): string {
  if (depth > 500) throw invalidKey("a key is nested too deeply, or contains itself");
  if (Array.isArray(value)) {
    let text = "[";
    for (let i = 0; i < value.length; i++) text += canonicalText(value[i], depth + 1);
    return text + "]";
  }
  if (value instanceof Uint8Array) return bytesText(value);
  if (value instanceof Decimal) return `n${canonicalNumber(value)};`;
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") {
    return canonicalText((value as { toJSON(): unknown }).toJSON(), depth + 1);
  }
  const fields = value as Record<string, unknown>;
  let text = "{";
  for (const name of Object.keys(fields).sort()) {
    if (fields[name] !== undefined) text += `${name.length}:${name}${canonicalText(fields[name], depth + 1)}`;
  }
  return text + "}";
}

function bytesText(bytes: Uint8Array): string {
  let text = `b${bytes.length}:`;
  for (let i = 0; i < bytes.length; i++) text += String.fromCharCode(bytes[i]!);
  return text;
}

function invalidKey(message: string): MailerError {
  return new MailerError("invalid_key", message, { hint: "a key is any JSON value, or bytes" });
}

// A number is hashed by the bits of its double.
const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);
const LOW = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 0 : 1;

/**
 * Key group of an identity, 0 … `maxKeyGroups` − 1.
 *
 * The hash is 32-bit FNV-1a over the UTF-16 code units (of a number: over the low and the high half of its double),
 * with a seed per type, followed by the finaliser of MurmurHash3, which spreads short and similar keys.
 *
 * @param maxKeyGroups Number of key groups, 1 … 2^32; fixed for the life of the state.
 */
export function keyGroup(identity: KeyIdentity, maxKeyGroups: number): number {
  let hash: number;
  if (typeof identity === "string") {
    hash = 0x811c9dc5;
    for (let i = 0; i < identity.length; i++) hash = Math.imul(hash ^ identity.charCodeAt(i), 0x01000193);
  } else if (typeof identity === "number") {
    double[0] = identity === 0 ? 0 : identity; // −0 is 0
    hash = Math.imul(0x2f0b4a27 ^ words[LOW]!, 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 15) ^ words[1 - LOW]!, 0x01000193);
  } else {
    hash = identity === true
      ? 0x1b873593
      : identity === false
      ? 0x38b34ae5
      : identity === null
      ? 0x52dce729
      : 0x6c078965;
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) % maxKeyGroups;
}

/** The partition that owns a key group: each owns a range, as even as whole groups allow. */
export function partitionOf(group: number, partitions: number, maxKeyGroups: number): number {
  return Math.floor(group * partitions / maxKeyGroups);
}

/** The key groups a partition owns: from the first one to before the second. Reverse of {@link partitionOf}. */
export function groupsOf(
  partition: number,
  partitions: number,
  maxKeyGroups: number,
): [from: number, to: number] {
  const first = (of: number): number => Math.ceil(of * maxKeyGroups / partitions);
  return [first(partition), first(partition + 1)];
}
