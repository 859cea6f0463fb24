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

/**
 * A key with its value. The value may be changed in place, or replaced, after the table was told so: by `edit`, `add` or `touch`
 * in the same batch. The other fields belong to the table.
 */
export class Cell<V = unknown> {
  /** What `Map`s find the key by. */
  readonly identity: KeyIdentity;
  /** The key as it was first seen. */
  key: unknown;
  /** The value; live. */
  value: V;
  /** When it is gone, by the time of its space; undefined: never. */
  expires: number | undefined;
  /** Epoch of its partition in which it was last changed. */
  epoch: number;
  /** Whether a run, or what waits to become one, may hold something of the key. */
  stored: boolean;
  /** By how much the number of keys has changed through it in its epoch. */
  delta: number;
  /** Whether it was removed. */
  gone = false;

  constructor(
    identity: KeyIdentity,
    key: unknown,
    value: V,
    expires: number | undefined,
    epoch: number,
    stored: boolean,
  ) {
    this.identity = identity;
    this.key = key;
    this.value = value;
    this.expires = expires;
    this.epoch = epoch;
    this.stored = stored;
    this.delta = epoch === NEVER ? 0 : 1;
  }
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
