/**
 * One entry of a page: what a key holds in a table, or that it holds nothing any more.
 *
 * `flags` (1 byte), the version of the state (1 byte, if flagged), when it expires (8 bytes, if flagged), the key's identity, then
 * the payload: the key itself if it differs from its identity (if flagged), and the value. A large payload lies in pages of its
 * own; in its place stand the number of the first of them and its length.
 *
 * @module
 */
import { scalarEnd } from "./codec.ts";

/** The key has been deleted. */
export const TOMBSTONE = 1;
/** Has a time to expire. */
export const EXPIRES = 2;
/** The key itself stands in front of the value. */
export const OWN_KEY = 4;
/** The payload lies in pages of its own. */
export const CHUNKED = 8;
/** The state has another version than 0. */
export const VERSIONED = 16;
/** Above these bits: by how much this entry has changed the number of keys, plus 1. */
export const DELTA_SHIFT = 5;

/** The head of an entry, read; one object moves along. */
export class EntryHead {
  flags = 0;
  version = 0;
  /** Infinity: never. */
  expires = Infinity;
  identityFrom = 0;
  identityTo = 0;

  /** @param at Where the entry begins. */
  read(bytes: Uint8Array, view: DataView, at: number): this {
    const flags = bytes[at++]!;
    this.flags = flags;
    this.version = (flags & VERSIONED) === 0 ? 0 : bytes[at++]!;
    if ((flags & EXPIRES) === 0) this.expires = Infinity;
    else {
      this.expires = view.getFloat64(at, true);
      at += 8;
    }
    this.identityFrom = at;
    this.identityTo = scalarEnd(bytes, at);
    return this;
  }

  get isTombstone(): boolean {
    return (this.flags & TOMBSTONE) !== 0;
  }
  /** By how much the entry has changed the number of keys: −1, 0 or 1. */
  get delta(): number {
    return (this.flags >> DELTA_SHIFT) - 1;
  }
}

/** Where the identity of an entry begins. */
export function identityAt(bytes: Uint8Array, at: number): number {
  const flags = bytes[at]!;
  return at + 1 + ((flags & VERSIONED) === 0 ? 0 : 1) + ((flags & EXPIRES) === 0 ? 0 : 8);
}

/** −1, 0 or 1: the order of two identities, by their bytes. Neither is the beginning of the other. */
export function compareIdentities(a: Uint8Array, aFrom: number, b: Uint8Array, bFrom: number): number {
  const end = scalarEnd(a, aFrom);
  for (let i = aFrom, j = bFrom; i < end; i++, j++) {
    if (a[i] !== b[j]) return a[i]! < (b[j] ?? -1) ? -1 : 1;
  }
  return 0;
}
