/**
 * A store in memory, for tests and for runs that need not survive.
 *
 * @module
 */
import { type Clock, delay, systemClock } from "../../clock.ts";
import type { Cell, Cells, Check, Range, Write } from "./cells.ts";
import type { FlowStore, FlowStoreOptions } from "./port.ts";
import { openStore } from "./store.ts";

const FULL_BLOCK = 512;
const VERSION_DIGITS = 12;

/** What a store in memory leaves behind when it is closed, for another opening: a disk, as it were. */
export class MemoryDisk {
  readonly #cells = new Map<string, Cell>();
  /** All keys in order, in blocks. */
  readonly #blocks: string[][] = [[]];
  #version = 0;

  /** How many cells there are. */
  get size(): number {
    return this.#cells.size;
  }

  /** A cell. */
  get(key: string): Cell | undefined {
    return this.#cells.get(key);
  }

  /** See {@link Cells.list}. */
  list({ from, to }: Range, limit: number, reverse = false): Cell[] {
    return reverse ? this.#last(from, to, limit) : this.#first(from, to, limit);
  }

  #first(from: string, to: string, limit: number): Cell[] {
    const found: Cell[] = [];
    let block = this.#blockOf(from), at = place(this.#blocks[block]!, from);
    for (; block < this.#blocks.length; block++, at = 0) {
      const keys = this.#blocks[block]!;
      for (; at < keys.length; at++) {
        if (found.length >= limit || keys[at]! >= to) return found;
        found.push(this.#cells.get(keys[at]!)!);
      }
    }
    return found;
  }

  #last(from: string, to: string, limit: number): Cell[] {
    const found: Cell[] = [];
    let block = this.#blockOf(to), at = place(this.#blocks[block]!, to) - 1;
    for (; block >= 0; block--, at = (this.#blocks[block]?.length ?? 0) - 1) {
      const keys = this.#blocks[block]!;
      for (; at >= 0; at--) {
        if (found.length >= limit || keys[at]! < from) return found;
        found.push(this.#cells.get(keys[at]!)!);
      }
    }
    return found;
  }

  /** See {@link Cells.commit}. */
  commit(checks: readonly Check[], writes: readonly Write[]): string | undefined {
    for (const { key, version } of checks) {
      if ((this.#cells.get(key)?.version ?? null) !== version) return undefined;
    }
    const version = (++this.#version).toString(36).padStart(VERSION_DIGITS, "0");
    for (const { key, bytes } of writes) {
      if (bytes === null) {
        if (this.#cells.delete(key)) this.#remove(key);
      } else {
        if (!this.#cells.has(key)) this.#insert(key);
        this.#cells.set(key, { key, bytes, version });
      }
    }
    return version;
  }

  /** The block a key is in, or would be. */
  #blockOf(key: string): number {
    let low = 0, high = this.#blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#blocks[middle]![0]! <= key) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #insert(key: string): void {
    const block = this.#blockOf(key), keys = this.#blocks[block]!;
    keys.splice(place(keys, key), 0, key);
    if (keys.length > FULL_BLOCK) this.#blocks.splice(block + 1, 0, keys.splice(FULL_BLOCK / 2));
  }

  #remove(key: string): void {
    const block = this.#blockOf(key), keys = this.#blocks[block]!;
    keys.splice(place(keys, key), 1);
    if (keys.length === 0 && this.#blocks.length > 1) this.#blocks.splice(block, 1);
  }
}

/** Index of the first of some sorted keys that is not less than `key`. */
function place(keys: readonly string[], key: string): number {
  let low = 0, high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle]! < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How a store in memory behaves. */
export interface MemoryStoreOptions extends FlowStoreOptions {
  /** What is there already, and stays when the store is closed. Default: an empty one. */
  readonly disk?: MemoryDisk;
  /** How long a read or a commit takes, ms. Default 0. */
  readonly latencyMs?: number;
  /** For leases, all that expires, and latency. Default: the machine's. */
  readonly clock?: Clock;
  /** Wraps what the store lies in, e.g. to let calls fail. */
  readonly wrap?: (cells: Cells) => Cells;
}

/** Opens a store in memory. */
export async function openMemoryStore(options: MemoryStoreOptions = {}): Promise<FlowStore> {
  const { disk = new MemoryDisk(), latencyMs = 0, clock = systemClock, wrap = (cells) => cells } = options;
  return await openStore(wrap(new MemoryCells(disk, clock, latencyMs)), clock, options);
}

/** Cells on a {@link MemoryDisk}. */
export class MemoryCells implements Cells {
  readonly where = "memory";
  readonly #disk: MemoryDisk;
  readonly #clock: Clock;
  readonly #latencyMs: number;

  constructor(disk: MemoryDisk, clock: Clock, latencyMs = 0) {
    this.#disk = disk;
    this.#clock = clock;
    this.#latencyMs = latencyMs;
  }

  async get(keys: readonly string[]): Promise<(Cell | undefined)[]> {
    await this.#wait();
    return keys.map((key) => this.#disk.get(key));
  }
  async list(range: Range, limit: number, reverse?: boolean): Promise<Cell[]> {
    await this.#wait();
    return this.#disk.list(range, limit, reverse);
  }
  async commit(checks: readonly Check[], writes: readonly Write[]): Promise<string | undefined> {
    await this.#wait();
    return this.#disk.commit(checks, writes);
  }
  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }

  async #wait(): Promise<void> {
    if (this.#latencyMs > 0) await delay(this.#clock, this.#latencyMs);
  }
}
