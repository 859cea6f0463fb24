/**
 * How far the instances of an operator had come when a checkpoint was taken. Behind one gate all of them stand where their source
 * does; in processing time each stands at the time of its last batch. Where keys of several of them come together in one instance,
 * it goes on from the furthest, and gives at once what the others still owed.
 *
 * @module
 */
import { keyGroup, type KeyIdentity } from "../../key.ts";
import type { Watermark } from "../../record.ts";
import type { Partition } from "../../state/log/mod.ts";

/** A former instance: the key groups `from` … `to` − 1, and up to when it had given all rows. */
export interface FormerInstance {
  readonly from: number;
  readonly to: number;
  readonly watermark: Watermark;
}

/** What an instance says of itself. */
export function formerInstance({ from, to }: Partition, watermark: Watermark): FormerInstance {
  return { from, to, watermark };
}

/** The instances whose keys may have come together in one. */
export class FormerInstances {
  /** Where the furthest stood. */
  readonly furthest: Watermark;
  /** Those that stood behind it. */
  readonly #behind: readonly FormerInstance[];
  readonly #maxKeyGroups: number;

  /** @param own What `formerInstance` gave in each. */
  constructor(own: readonly unknown[], maxKeyGroups: number) {
    const all = own as readonly FormerInstance[];
    this.furthest = Math.max(-Infinity, ...all.map(({ watermark }) => watermark));
    this.#behind = all.filter(({ watermark }) => watermark < this.furthest);
    this.#maxKeyGroups = maxKeyGroups;
  }

  /** Whether an instance stood behind another, so that rows may be owed. */
  get differ(): boolean {
    return this.#behind.length > 0;
  }

  /** Up to when all rows of a key had been given. */
  givenTo(identity: KeyIdentity): Watermark {
    if (!this.differ) return this.furthest;
    const group = keyGroup(identity, this.#maxKeyGroups);
    return this.#behind.find(({ from, to }) => group >= from && group < to)?.watermark ?? this.furthest;
  }
}
