/**
 * Pages of entries that were read, kept within a budget of bytes. The ones that were not looked at for a while go first.
 *
 * @module
 */
import type { EntryPage } from "./page.ts";

const PAGES_A_RUN = 2 ** 24;
/** What a page costs besides its bytes. */
const OVERHEAD = 300;

/** A cache that several stores may share. */
export class PageCache {
  readonly #pages = new Map<number, EntryPage>();
  readonly #budget: number;
  #hand: MapIterator<[number, EntryPage]>;
  #bytes = 0;
  #runs = 0;

  /** @param budget Bytes it may hold. */
  constructor(budget: number) {
    this.#budget = budget;
    this.#hand = this.#pages.entries();
  }

  /** Bytes it holds. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A number for a run's pages. */
  register(): number {
    return this.#runs++;
  }

  /** @param run As registered. */
  get(run: number, page: number): EntryPage | undefined {
    const found = this.#pages.get(run * PAGES_A_RUN + page);
    if (found !== undefined) found.used = true;
    return found;
  }

  put(run: number, number: number, page: EntryPage): void {
    const key = run * PAGES_A_RUN + number;
    if (this.#pages.has(key)) return;
    this.#pages.set(key, page);
    this.#bytes += page.bytes.length + OVERHEAD;
    while (this.#bytes > this.#budget) this.#evict();
  }

  /** Moves a hand round over the pages: what was used gets another round. */
  #evict(): void {
    for (;;) {
      const next = this.#hand.next();
      if (next.done) {
        this.#hand = this.#pages.entries();
        continue;
      }
      const [key, page] = next.value;
      if (page.used) {
        page.used = false;
        continue;
      }
      this.#pages.delete(key);
      this.#bytes -= page.bytes.length + OVERHEAD;
      return;
    }
  }
}
