/**
 * Walking through several runs at once, in the order of their entries, the newest entry of a key in front of the older ones.
 *
 * @module
 */
import { compareIdentities, identityAt } from "./entry.ts";
import type { EntryPage } from "./page.ts";
import type { Position, Run } from "./run.ts";

/** Pages that are read at once. */
const READ_AHEAD = 32;

/** Where a walk begins and ends: from `from`, up to but not `to`. */
export interface Stretch {
  readonly from: Position;
  readonly to: Position;
}

/** Everything. */
export const EVERYTHING: Stretch = {
  from: { instance: -1, order: -Infinity, place: 0 },
  to: { instance: Infinity, order: -Infinity, place: 0 },
};

/** Where the cursors of a merge are, in the table the merge is in; those in later tables wait. */
class Heads {
  instance = NaN;
  order = NaN;
  /** Per cursor: its place in the table, Infinity where it waits. */
  readonly places: Float64Array;

  constructor(cursors: number) {
    this.places = new Float64Array(cursors).fill(Infinity);
  }
}

/** A place in one run. At its end, `instance` is Infinity. */
export class RunCursor {
  readonly run: Run;
  page!: EntryPage;
  index = 0;
  instance = NaN;
  order = NaN;
  readonly #heads: Heads;
  readonly #number: number;
  readonly #stretch: Stretch;
  /** Index behind the last entry of the page that counts. */
  #limit = 0;
  #nextPage: number;
  readonly #behind: number;
  #ready: EntryPage[] = [];
  #reading: Promise<EntryPage[]> | undefined;
  /** Whether `step` waits for pages. */
  #isStarved = false;

  /** @param number Which of the heads it is. */
  constructor(run: Run, stretch: Stretch, heads: Heads, number: number) {
    this.run = run;
    this.#stretch = stretch;
    this.#heads = heads;
    this.#number = number;
    this.#nextPage = run.firstPage(stretch.from);
    this.#behind = Math.min(run.length, run.pageBehind(stretch.to));
    this.#read();
  }

  #read(): void {
    const from = this.#nextPage, to = Math.min(from + READ_AHEAD, this.#behind);
    if (from >= to) return;
    this.#nextPage = to;
    this.#reading = this.run.read(from, to);
    this.#reading.catch(() => {}); // whoever waits for it hears of it; a walk that was given up does not
  }

  /** The place of its entry. */
  get place(): number {
    return this.page.place(this.index);
  }

  /** Moves to the next entry. @returns false: call `load` first. */
  step(): boolean {
    const index = ++this.index;
    if (index >= this.#limit) return this.#turn();
    const { page } = this, heads = this.#heads;
    if (page.isMixed) this.#enter();
    else if (this.instance === heads.instance && this.order === heads.order) {
      heads.places[this.#number] = page.place(index);
    }
    return true;
  }

  #turn(): boolean {
    const { from, to } = this.#stretch;
    for (;;) {
      const page = this.#ready.shift();
      if (page === undefined) {
        this.index--; // the next step is this one again
        this.#isStarved = this.#reading !== undefined;
        if (this.#isStarved) return false;
        this.instance = this.order = Infinity;
        this.#heads.places[this.#number] = Infinity;
        return true;
      }
      this.page = page;
      this.index = page.seek(from.instance, from.order, from.place);
      this.#limit = page.seek(to.instance, to.order, to.place);
      if (this.index >= this.#limit) continue;
      this.#enter();
      return true;
    }
  }

  /** Has a look at which table its entry is in. */
  #enter(): void {
    this.instance = this.page.instance(this.index);
    this.order = this.page.order(this.index);
    this.wait();
  }

  /** Shows its place if it is in the table the merge is in. */
  wait(): void {
    const heads = this.#heads;
    const isIn = this.instance === heads.instance && this.order === heads.order && this.instance < Infinity;
    heads.places[this.#number] = isIn ? this.place : Infinity;
  }

  /** Brings in what `step` asked for; then `step` again. */
  async load(): Promise<void> {
    if (!this.#isStarved) return;
    this.#ready = await this.#reading!;
    this.#isStarved = false;
    this.#reading = undefined;
    this.#read();
  }
}

/** What {@link Merge.next} found. */
export type Step = "entry" | "wait" | "end";

/** Several runs as one. */
export class Merge {
  /** The runs' places, the newest run's first. */
  readonly cursors: readonly RunCursor[];
  /** Where the current key is found, the newest first: indexes of cursors. */
  readonly chain: number[] = [];
  readonly #heads: Heads;
  #moving: number[];

  /** @param runs The newest first. */
  constructor(runs: readonly Run[], stretch: Stretch) {
    const heads = this.#heads = new Heads(runs.length);
    this.cursors = runs.map((run, i) => new RunCursor(run, stretch, heads, i));
    this.#moving = this.cursors.map((_, i) => i);
  }

  /** The newest entry of the current key. */
  get top(): RunCursor {
    return this.cursors[this.chain[0]!]!;
  }

  /** Moves to the next key. After "wait": `wait` for it, then again. */
  next(): Step {
    const { cursors, chain } = this;
    for (let i = 0; i < chain.length; i++) this.#moving.push(chain[i]!);
    chain.length = 0;
    for (let left = this.#moving.length; left > 0; left--) {
      if (!cursors[this.#moving[left - 1]!]!.step()) return "wait";
      this.#moving.pop();
    }
    if (this.#least()) return "entry";
    return this.#nextTable() && this.#least() ? "entry" : "end";
  }

  /** Puts the cursors with the least key into the chain. @returns false: the table is at its end. */
  #least(): boolean {
    const { places } = this.#heads, { chain } = this;
    let first = -1, least = Infinity, ties = 0;
    for (let i = 0; i < places.length; i++) {
      const place = places[i]!;
      if (place < least) {
        least = place;
        first = i;
        ties = 0;
      } else if (place === least) ties++;
    }
    if (first === -1) return false;
    chain.push(first);
    if (ties > 0) this.#untie(least);
    return true;
  }

  /** Of several cursors at one place, those with the least identity. */
  #untie(place: number): void {
    const { places } = this.#heads, { chain } = this;
    for (let i = chain[0]! + 1; i < places.length; i++) {
      if (places[i] !== place) continue;
      const compared = this.#compare(chain[0]!, i);
      if (compared > 0) chain.length = 0;
      if (compared >= 0) chain.push(i);
    }
  }

  /** Goes on to the first table that a cursor is in. @returns false: there is none. */
  #nextTable(): boolean {
    let instance = Infinity, order = Infinity;
    for (const cursor of this.cursors) {
      if (cursor.instance < instance || (cursor.instance === instance && cursor.order < order)) {
        ({ instance, order } = cursor);
      }
    }
    if (instance === Infinity) return false;
    this.#heads.instance = instance;
    this.#heads.order = order;
    for (const cursor of this.cursors) cursor.wait();
    return true;
  }

  /** What "wait" waits for. */
  async wait(): Promise<void> {
    await Promise.all(this.#moving.map((i) => this.cursors[i]!.load()));
  }

  #compare(a: number, b: number): number {
    const x = this.cursors[a]!, y = this.cursors[b]!;
    const xBytes = x.page.bytes, yBytes = y.page.bytes;
    return compareIdentities(
      xBytes,
      identityAt(xBytes, x.page.start(x.index)),
      yBytes,
      identityAt(yBytes, y.page.start(y.index)),
    );
  }
}
