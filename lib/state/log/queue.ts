/**
 * Entries by time: timers, ends of windows, expiries. The near ones are in memory, far ones only in runs.
 *
 * R1 Entries come out in the order of their times, each at least once. One that was not yet due at a restore may come once more
 *    if it was added twice or moved; so whoever takes it out compares it with state of its own.
 * R2 Nothing is looked for to take an entry back: it comes out when its time has come, and is then found out of date.
 * R3 Restoring reads nothing; what is due is loaded a lot at a time.
 *
 * @module
 */
import { type KeyIdentity, keyIdentity } from "../../key.ts";
import { EntryHead } from "./entry.ts";
import { Merge } from "./merge.ts";
import { OrderHeap } from "./order_heap.ts";
import type { Partition } from "./partition.ts";
import type { Piece, StoredTable } from "./section.ts";
import type { Space } from "./space.ts";

/** Entries that are loaded at once, about. */
const LOT = 4096;

/** What a queue hands out. */
export interface QueueEntry<P = unknown> {
  /** Its time. */
  readonly time: number;
  readonly identity: KeyIdentity;
  readonly key: unknown;
  /** What it was added with. */
  readonly tag: P;
}

/** An entry in memory, with its place among the others: its time, unless that had passed already. */
export interface HeldEntry extends QueueEntry {
  readonly order: number;
}

/** What was added to a queue in one epoch. */
export class FrozenQueue {
  constructor(
    readonly queue: Queue,
    readonly entries: readonly HeldEntry[],
    readonly pieces: readonly Piece[],
  ) {}
}

/** A queue of one partition; see {@link Partition.queue}. */
export class Queue<P = unknown> {
  readonly space: Space;
  readonly pieces: readonly Piece[];
  readonly #partition: Partition;
  readonly #heap = new OrderHeap<HeldEntry>();
  #dirty: HeldEntry[] = [];
  /** Everything up to here is in the heap. */
  #horizon: number;
  /** The highest order that was taken out. */
  #taken = -Infinity;
  /** What was in front of it at some freeze had been taken out: nothing is put there any more. */
  #floor: number;
  #size: number;
  /** Floors that pieces were restored with. */
  readonly #restored: ReadonlyMap<Piece, number>;

  /** Made by its partition. */
  constructor(partition: Partition, space: Space, stored: StoredTable | undefined) {
    const pieces = stored?.pieces ?? [];
    this.#partition = partition;
    this.space = space;
    this.pieces = stored === undefined ? [partition.newPiece()] : pieces;
    this.#restored = new Map(pieces.map((piece) => [piece, piece.floor]));
    this.#floor = Math.max(-Infinity, ...pieces.map(({ floor }) => floor));
    this.#size = Math.round(pieces.reduce((sum, { keys }) => sum + keys, 0));
    this.#horizon = stored === undefined ? Infinity : -Infinity;
  }

  /** Number of entries, those that are out of date included. */
  get size(): number {
    return this.#size;
  }

  /** No entry is due earlier, Infinity when there is none. Where it is due and `take` has nothing, it may turn out to be later. */
  get earliest(): number {
    return this.#heap.top?.time ?? this.#horizon;
  }

  /**
   * Adds an entry.
   *
   * @param key The key itself; its identity goes with it.
   * @param tag Goes with it: the name of a timer, say. An entry equal in time, key and tag to another may become one with it.
   */
  add(time: number, identity: KeyIdentity, key: unknown, tag: P): void {
    const entry: HeldEntry = { time, order: Math.max(time, this.#floor), identity, key, tag };
    if (entry.order <= this.#horizon) this.#heap.push(entry);
    this.#size++;
    if (!this.#partition.tracked) return;
    this.#dirty.push(entry);
    this.#partition.dirty++;
  }

  /**
   * Brings the next lot into memory that is due at `now`.
   *
   * @returns What to wait for; undefined where `take` can be asked at once. Then again, until `earliest` is later than `now`.
   */
  load(now: number): Promise<void> | undefined {
    return this.#horizon >= now || this.#heap.top !== undefined ? undefined : this.#load();
  }

  /** Takes out the earliest entry due at `now`; undefined where there is none in memory: then `load`, if `earliest` is not later. */
  take(now: number): QueueEntry<P> | undefined {
    const heap = this.#heap;
    if (heap.top === undefined || heap.top.time > now) return undefined;
    const entry = heap.pop();
    if (entry.order > this.#taken) this.#taken = entry.order;
    this.#size--;
    return entry as QueueEntry as QueueEntry<P>;
  }

  /** Brings all of it into memory. */
  async loadAll(): Promise<void> {
    while (this.#horizon < Infinity) await this.#load();
  }

  async #load(): Promise<void> {
    const partition = this.#partition;
    const unsaved = [...partition.frozenEntries(this as unknown as Queue), ...this.#dirty];
    const runs = partition.runs.all.filter((run) =>
      this.pieces.some(({ instance }) => run.spans.has(instance))
    );
    for (const run of runs) run.readers++;
    try {
      const before = this.#horizon;
      const lots = await Promise.all(this.pieces.map((piece) => this.#read(piece, runs, before)));
      const horizon = Math.min(...lots.map((lot) => lot.complete));
      const found = new Map<string, HeldEntry>();
      for (const entry of [...lots.flatMap((lot) => lot.entries), ...unsaved]) {
        if (entry.order > before && entry.order <= horizon) {
          found.set(`${entry.order} ${entryIdentity(entry)}`, entry);
        }
      }
      for (const entry of found.values()) this.#heap.push(entry);
      this.#horizon = horizon;
    } finally {
      for (const run of runs) run.readers--;
    }
  }

  /** The next entries of a piece; `complete`: there is no other up to there. */
  async #read(
    piece: Piece,
    runs: Partition["runs"]["all"],
    behind: number,
  ): Promise<{ readonly entries: readonly HeldEntry[]; readonly complete: number }> {
    const { instance } = piece, { places } = this.#partition;
    const floor = this.#floorOf(piece, this.#taken);
    const from = { instance, order: Math.max(behind, floor), place: 0 };
    const merge = new Merge(runs, { from, to: { instance: instance + 1, order: -Infinity, place: 0 } });
    const low = places.first(piece.from), high = places.first(piece.to), head = new EntryHead();
    const entries: HeldEntry[] = [];
    let seen = 0, last = -Infinity;
    for (let step = merge.next(); step !== "end"; step = merge.next()) {
      if (step === "wait") {
        await merge.wait();
        continue;
      }
      const { page, index, place, order, run } = merge.top;
      if (order <= behind) continue;
      // A lot ends between two times, so that all of one time are there or none.
      if (seen >= LOT && order > last) return { entries, complete: last };
      seen++;
      last = order;
      if (place < low || place >= high) continue;
      head.read(page.bytes, page.view, page.start(index));
      if (head.isTombstone) continue;
      const read = this.space.read(head, page, index, run);
      const { key, value } = read instanceof Promise ? await read : read;
      const [time, identity, tag] = value as [number, KeyIdentity, unknown];
      entries.push({ time, order, identity, key, tag });
    }
    return { entries, complete: Infinity };
  }

  #floorOf(piece: Piece, done: number): number {
    return Math.max(this.#restored.get(piece) ?? -Infinity, done);
  }

  /** What was added in this epoch; the next one begins. Undefined where nothing. */
  freeze(): FrozenQueue | undefined {
    if (this.#dirty.length === 0) return undefined;
    const frozen = new FrozenQueue(this as unknown as Queue, this.#dirty, this.pieces);
    this.#dirty = [];
    return frozen;
  }

  /** Per piece: what is in front of it has been taken out, and nothing will be put there any more. */
  floors(): number[] {
    const taken = this.#taken, first = this.#heap.top?.order ?? Infinity;
    const done = first > taken && Number.isFinite(taken) ? nextUp(taken) : taken;
    this.#floor = Math.max(this.#floor, done);
    return this.pieces.map((piece) => this.#floorOf(piece, done));
  }

  /** Forgets the later half of too many entries. Whatever of them is in no run yet is kept until it is. */
  shrink(most: number): void {
    if (this.#heap.size <= most) return;
    const middle = this.#heap.middle;
    if (middle >= this.#horizon) return; // nearly all are of one time
    this.#horizon = middle;
    this.#heap.cut(middle);
  }

  /** Number of entries in memory. */
  get live(): number {
    return this.#heap.size;
  }
}

/** What an entry is told from others of its time by: a text. */
export function entryIdentity({ identity, tag }: QueueEntry): string {
  return String(keyIdentity([typeof identity, identity, tag]));
}

const double = new Float64Array(1);
const bits = new BigInt64Array(double.buffer);

/** The next double above a finite one. */
function nextUp(value: number): number {
  if (value === 0) return Number.MIN_VALUE;
  double[0] = value;
  bits[0]! += value > 0 ? 1n : -1n;
  return double[0];
}
