/**
 * What a key holds in a table, as long as it is in memory.
 *
 * @module
 */
import { asError } from "../../errors.ts";
import type { KeyIdentity } from "../../key.ts";
import { valueBytes } from "./codec.ts";

/** A cell that has not been changed since it was read from a run. */
export const NEVER = -1;

// A cell's marks: small things in one number.
const STORED = 1, GONE = 2, DELTA_SHIFT = 2, DELTA_BIAS = 1;

/** What few cells have. */
interface Rare {
  readonly key: unknown;
  readonly expires: number | undefined;
}

/**
 * A key with its value. The value may be changed in place, or replaced, after the table was told so: by `edit`, `add` or `touch`
 * in the same batch. The other fields belong to the table.
 *
 * It is kept to eight words, a line of the cache: there are as many as keys, and looking them up is mostly waiting for memory.
 */
export class Cell<V = unknown> {
  /** What `Map`s find the key by. */
  readonly identity: KeyIdentity;
  /** The value; live. */
  value: V;
  /** Epoch of its partition in which it was last changed. */
  epoch: number;
  #marks: number;
  /** Undefined where the key is its own identity and never expires. */
  #rare: Rare | undefined;

  constructor(
    identity: KeyIdentity,
    key: unknown,
    value: V,
    expires: number | undefined,
    epoch: number,
    stored: boolean,
  ) {
    this.identity = identity;
    this.value = value;
    this.epoch = epoch;
    this.#marks = (((epoch === NEVER ? 0 : 1) + DELTA_BIAS) << DELTA_SHIFT) | (stored ? STORED : 0);
    this.#rare = rareOf(identity, key, expires);
  }

  /** The key as it was first seen. */
  get key(): unknown {
    return this.#rare === undefined ? this.identity : this.#rare.key;
  }
  set key(key: unknown) {
    this.#rare = rareOf(this.identity, key, this.expires);
  }

  /** When it is gone, by the time of its space; undefined: never. */
  get expires(): number | undefined {
    return this.#rare?.expires;
  }
  set expires(expires: number | undefined) {
    if (expires !== this.expires) this.#rare = rareOf(this.identity, this.key, expires);
  }

  /** Whether a run, or what waits to become one, may hold something of the key. */
  get stored(): boolean {
    return (this.#marks & STORED) !== 0;
  }
  set stored(is: boolean) {
    this.#marks = is ? this.#marks | STORED : this.#marks & ~STORED;
  }

  /** Whether it was removed. */
  get gone(): boolean {
    return (this.#marks & GONE) !== 0;
  }
  set gone(is: boolean) {
    this.#marks = is ? this.#marks | GONE : this.#marks & ~GONE;
  }

  /** By how much the number of keys has changed through it in its epoch: −1, 0 or 1. */
  get delta(): number {
    return (this.#marks >> DELTA_SHIFT) - DELTA_BIAS;
  }
  set delta(by: number) {
    this.#marks = (this.#marks & (STORED | GONE)) | ((by + DELTA_BIAS) << DELTA_SHIFT);
  }
}

function rareOf(identity: KeyIdentity, key: unknown, expires: number | undefined): Rare | undefined {
  return key === identity && expires === undefined ? undefined : { key, expires };
}

/** A cell as it was when its epoch ended. */
export interface Captured {
  readonly key: unknown;
  /** Of a primitive, itself. */
  readonly value: unknown;
  /** Of anything else, its encoding. */
  readonly bytes: Uint8Array | undefined;
  readonly expires: number | undefined;
  readonly delta: number;
  readonly gone: boolean;
  /** Why it could not be encoded. */
  readonly error: Error | undefined;
}

/** Takes down what a cell holds, before it is changed. */
export function capture(cell: Cell): Captured {
  const { key, value, expires, delta, gone } = cell;
  if (typeof value !== "object" || value === null) {
    return { key, value, bytes: undefined, expires, delta, gone, error: undefined };
  }
  try {
    return { key, value: undefined, bytes: valueBytes(value), expires, delta, gone, error: undefined };
  } catch (thrown) { // is thrown where the cell is written: the record that touches it is not to blame
    return { key, value: undefined, bytes: undefined, expires, delta, gone, error: asError(thrown) };
  }
}
