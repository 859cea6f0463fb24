/**
 * Where a key lies among all keys of a table: its place, a number below 2^32.
 *
 * L1 A key group owns a contiguous range of places, so a range of groups is a range of places.
 * L2 Places are part of stored state: for one identity and number of key groups they never change.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { keyGroup, type KeyIdentity } from "../../key.ts";

const ALL = 2 ** 32;
const double = new Float64Array(1);
const words = new Uint32Array(double.buffer);
const LOW = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? 0 : 1;

/** Places under one number of key groups. */
export class Places {
  /** Number of key groups. */
  readonly groups: number;
  readonly #width: number;

  /** @param maxKeyGroups 1 … 65,536. */
  constructor(maxKeyGroups: number) {
    if (!(Number.isInteger(maxKeyGroups) && maxKeyGroups >= 1 && maxKeyGroups <= 65_536)) {
      throw new MailerError("invalid_key_groups", `there can be 1 to 65536 key groups, not ${maxKeyGroups}`);
    }
    this.groups = maxKeyGroups;
    this.#width = Math.floor(ALL / maxKeyGroups);
  }

  /** The place of an identity. */
  of(identity: KeyIdentity): number {
    const group = keyGroup(identity, this.groups);
    return group * this.#width + Math.floor(hashOf(identity) * this.#width / ALL);
  }

  /** The key group that owns a place. */
  group(place: number): number {
    return Math.floor(place / this.#width);
  }

  /** The first place of a key group; of the group behind the last one, a number behind all places. */
  first(group: number): number {
    return group >= this.groups ? ALL : group * this.#width;
  }
}

/** Independent of the hash that chooses the group, or a group's keys would crowd into a part of its places. */
function hashOf(identity: KeyIdentity): number {
  let hash = 0x9747b28c;
  if (typeof identity === "string") {
    for (let i = 0; i < identity.length; i++) hash = Math.imul(hash ^ identity.charCodeAt(i), 0x5bd1e995);
  } else if (typeof identity === "number") {
    double[0] = identity === 0 ? 0 : identity; // −0 is 0
    hash = Math.imul(hash ^ words[LOW]!, 0x5bd1e995);
    hash = Math.imul(hash ^ (hash >>> 15) ^ words[1 - LOW]!, 0x5bd1e995);
  } else hash ^= identity === true ? 1 : identity === false ? 2 : identity === null ? 3 : 4;
  return mixed(hash);
}

/** Spreads 32 bits over 32 bits, so that every bit depends on every other. */
export function mixed(hash: number): number {
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  hash = Math.imul(hash ^ (hash >>> 15), 0x846ca68b);
  return (hash ^ (hash >>> 16)) >>> 0;
}
