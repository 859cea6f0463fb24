/**
 * Random numbers that are a pure function of a seed and an index, so that a source can start anywhere and be replayed.
 *
 * @module
 */

/** The next number, ≥ 0 and < 1. */
export type Random = () => number;

/**
 * A generator that can be put to any index.
 *
 * M1 The numbers behind `moveTo(index)` depend on the seed and the index alone.
 */
export class IndexedRandom {
  readonly #seed: number;
  #a = 0;
  #b = 0;
  #c = 0;
  #counter = 0;
  /** The index to begin at, until the first number is wanted. */
  #index: number | undefined = 0;

  /** @param seed Any number. */
  constructor(seed: number) {
    this.#seed = seed;
  }

  moveTo(index: number): void {
    this.#index = index;
  }

  /** 32 random bits a call, from the small fast counter generator sfc32. */
  readonly next: Random = () => {
    if (this.#index !== undefined) this.#start(this.#index);
    return this.#step() / 2 ** 32;
  };

  #start(index: number): void {
    this.#index = undefined;
    this.#a = mixed(index >>> 0, 1);
    this.#b = mixed(Math.floor(index / 2 ** 32) >>> 0, 2);
    this.#c = mixed(this.#seed >>> 0, 3) ^ mixed(Math.floor(this.#seed / 2 ** 32) >>> 0, 4);
    this.#counter = 1;
    for (let i = 0; i < 12; i++) this.#step(); // so that neighbours have nothing in common
  }

  #step(): number {
    const sum = (this.#a + this.#b + this.#counter++) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }
}

/** Spreads the bits of a number; `lane` tells apart what is mixed. */
function mixed(value: number, lane: number): number {
  let bits = (value + Math.imul(lane, 0x9e3779b1)) | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}
