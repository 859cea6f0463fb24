/**
 * A filter tells most keys that are not in a run without reading it: a Bloom filter in blocks of 256 bits, eight bits a key, one in
 * each word of its block, so that a look-up touches one line of memory (Putze, Sanders, Singler 2007, "Cache-, hash- and
 * space-efficient Bloom filters"). About one in 250 others passes at 12 bits a key.
 *
 * @module
 */
import { mixed } from "./place.ts";

const BITS_A_KEY = 12;
const WORDS = 8;
const SALTS = Int32Array.of(
  0x47b6137b,
  0x44974d91,
  0x8824ad5b,
  0xa2b7289d,
  0x705495c7,
  0x2df1424b,
  0x9efc4947,
  0x5c6bfb31,
);

/** What keys of a table's instance are mixed with, so that instances do not look alike. */
export function filterSeed(instance: number): number {
  return mixed(instance ^ 0x3c6ef372);
}

/** Keys a run may hold. Keys are told by their place and the seed of their instance. */
export class Filter {
  readonly #words: Uint32Array;
  readonly #blocks: number;

  /** @param words As they were stored; see {@link Filter.sized} for a new one. */
  constructor(words: Uint32Array) {
    this.#words = words;
    this.#blocks = words.length / WORDS;
  }

  /** An empty filter with room for a number of keys. */
  static sized(keys: number): Filter {
    return new Filter(new Uint32Array(Math.max(1, Math.ceil(keys * BITS_A_KEY / (WORDS * 32))) * WORDS));
  }

  /** To be stored. */
  get words(): Uint32Array {
    return this.#words;
  }

  add(seed: number, place: number): void {
    const hash = mixed(seed ^ place), words = this.#words;
    let at = Math.floor(hash / 2 ** 32 * this.#blocks) * WORDS;
    const spread = Math.imul(hash, 0x9e3779b1);
    for (let i = 0; i < WORDS; i++, at++) words[at]! |= 1 << (Math.imul(spread, SALTS[i]!) >>> 27);
  }

  /** False: certainly not. */
  mayHave(seed: number, place: number): boolean {
    const hash = mixed(seed ^ place), words = this.#words;
    let at = Math.floor(hash / 2 ** 32 * this.#blocks) * WORDS;
    const spread = Math.imul(hash, 0x9e3779b1);
    for (let i = 0; i < WORDS; i++, at++) {
      if ((words[at]! & (1 << (Math.imul(spread, SALTS[i]!) >>> 27))) === 0) return false;
    }
    return true;
  }
}
