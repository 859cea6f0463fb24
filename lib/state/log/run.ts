/**
 * A run that can be read: its index in memory, its filter when it is first wanted, its pages on demand.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { PageStore } from "../pages/mod.ts";
import { ByteReader } from "./bytes.ts";
import { decodeValue } from "./codec.ts";
import { Filter } from "./filter.ts";
import { checkPage, EntryPage, LARGEST_BODY, PageKind } from "./page.ts";
import type { PageCache } from "./page_cache.ts";
import type { WrittenRun } from "./run_writer.ts";

/** Parts of a large value that are read at once. */
const CHUNKS_A_READ = 32;

/** A run as a manifest names it. */
export interface RunRef {
  /** Name in the page store. */
  readonly run: string;
  /** Number of the first page of the index; all before it are entries and chunks. */
  readonly footer: number;
  /** Number of the first page of the filter. */
  readonly filter: number;
  /** Number of pages. */
  readonly pages: number;
  readonly entries: number;
  readonly tombstones: number;
  /** Size of the entries' pages. */
  readonly bytes: number;
}

/** What a run holds of one instance. */
export interface Span {
  readonly instance: number;
  entries: number;
  readonly minOrder: number;
  maxOrder: number;
}

/** What the index of a run says. One column entry for each page of entries: its first entry, and its number. */
export interface RunFooter {
  /** By instance, ascending. */
  readonly spans: readonly Span[];
  /** When its entries expire: a sample, ascending; −Infinity for a tombstone. */
  readonly expiries: readonly number[];
  readonly instances: Uint32Array;
  readonly orders: Float64Array;
  readonly places: Uint32Array;
  readonly numbers: Uint32Array;
}

/** A position in a run, between entries. */
export interface Position {
  readonly instance: number;
  readonly order: number;
  readonly place: number;
}

/** A run of a store. */
export class Run {
  readonly ref: RunRef;
  readonly spans: ReadonlyMap<number, Span>;
  readonly expiries: readonly number[];
  readonly #store: PageStore;
  readonly #cache: PageCache;
  readonly #cached: number;
  readonly #index: RunFooter;
  #filter: Filter | undefined;
  #loading: Promise<void> | undefined;
  /** Who reads it at the moment: it is deleted only when nobody does. */
  readers = 0;

  private constructor(ref: RunRef, footer: RunFooter, store: PageStore, cache: PageCache) {
    this.ref = ref;
    this.#store = store;
    this.#cache = cache;
    this.#cached = cache.register();
    this.#index = footer;
    this.expiries = footer.expiries;
    this.spans = new Map(footer.spans.map((span) => [span.instance, span]));
  }

  /** Reads the indexes of runs, all at once. */
  static async open(refs: readonly RunRef[], store: PageStore, cache: PageCache): Promise<Run[]> {
    const wanted = refs.flatMap(({ run, footer, filter }) => pagesOf(run, footer, filter));
    const pages = await store.read(wanted);
    let at = 0;
    return refs.map((ref) => {
      const count = ref.filter - ref.footer;
      const bytes = joined(pages.slice(at, at + count), ref.run, ref.footer, PageKind.index);
      at += count;
      const footer = decodeValue(new ByteReader(bytes)) as RunFooter;
      return new Run(ref, footer, store, cache);
    });
  }

  /** A run that was just written. */
  static written({ ref, footer, filter }: WrittenRun, store: PageStore, cache: PageCache): Run {
    const run = new Run(ref, footer, store, cache);
    run.#filter = filter;
    return run;
  }

  /** Number of pages with entries. */
  get length(): number {
    return this.#index.numbers.length;
  }

  /** Loads the filter, if it is not there yet. */
  loadFilter(): Promise<void> | undefined {
    if (this.#filter !== undefined) return undefined;
    return this.#loading ??= this.#load();
  }

  async #load(): Promise<void> {
    const { run, filter, pages } = this.ref;
    try {
      const read = await this.#store.read(pagesOf(run, filter, pages));
      const bytes = joined(read, run, filter, PageKind.filter);
      this.#filter = new Filter(new Uint32Array(bytes.buffer));
    } finally {
      this.#loading = undefined;
    }
  }

  /** False: the key is certainly not in it. True as long as the filter is not there. */
  mayHave(seed: number, place: number): boolean {
    return this.#filter === undefined || this.#filter.mayHave(seed, place);
  }

  /** Index of the first page that may hold something at or behind a position, at most `length`. */
  firstPage({ instance, order, place }: Position): number {
    return Math.max(this.#lower(instance, order, place) - 1, 0);
  }

  /** Index behind the last page that may hold something at a position: where what begins behind it begins. */
  pageBehind({ instance, order, place }: Position): number {
    const { instances, orders, places } = this.#index;
    let at = this.#lower(instance, order, place);
    while (at < this.length && instances[at] === instance && orders[at] === order && places[at] === place) {
      at++;
    }
    return at;
  }

  /** Index of the first page whose first entry is not in front of a position. */
  #lower(instance: number, order: number, place: number): number {
    const { instances, orders, places } = this.#index;
    let low = 0, high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const isBefore = instances[middle] !== instance
        ? instances[middle]! < instance
        : orders[middle] !== order
        ? orders[middle]! < order
        : places[middle]! < place;
      if (isBefore) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** A page that is in memory. */
  cachedPage(index: number): EntryPage | undefined {
    return this.#cache.get(this.#cached, this.#index.numbers[index]!);
  }

  /** Where a page lies in the store. */
  pageRef(index: number): { readonly run: string; readonly page: number } {
    return { run: this.ref.run, page: this.#index.numbers[index]! };
  }

  /** Takes a page that was read into the cache. @throws {MailerError} `page_corrupt`, `page_format` */
  keep(index: number, bytes: Uint8Array): EntryPage {
    const page = this.opened(index, bytes);
    this.#cache.put(this.#cached, this.#index.numbers[index]!, page);
    return page;
  }

  /** A page that was read, checked. @throws {MailerError} `page_corrupt`, `page_format` */
  opened(index: number, bytes: Uint8Array): EntryPage {
    return new EntryPage(bytes, this.ref.run, this.#index.numbers[index]!);
  }

  /** Reads pages in a row, past the cache. */
  async read(from: number, to: number): Promise<EntryPage[]> {
    const indexes = Array.from({ length: to - from }, (_, i) => from + i);
    const pages = await this.#store.read(indexes.map((index) => this.pageRef(index)));
    return pages.map((bytes, i) => this.opened(from + i, bytes));
  }

  /** A payload that lies in pages of its own. */
  async chunk(first: number, length: number): Promise<Uint8Array<ArrayBuffer>> {
    const { run, footer } = this.ref;
    const behind = first + Math.ceil(length / LARGEST_BODY);
    if (behind > footer) throw chunkMissing(run, first);
    const payload = new Uint8Array(length);
    for (let from = first; from < behind; from += CHUNKS_A_READ) {
      const to = Math.min(from + CHUNKS_A_READ, behind);
      const bytes = joined(await this.#store.read(pagesOf(run, from, to)), run, from, PageKind.chunk);
      const at = (from - first) * LARGEST_BODY;
      if (at + bytes.length !== Math.min(length, (to - first) * LARGEST_BODY)) throw chunkMissing(run, from);
      payload.set(bytes, at);
    }
    return payload;
  }
}

function chunkMissing(run: string, page: number): MailerError {
  return new MailerError(
    "page_corrupt",
    `state: page ${page} of run "${run}" is not the part of a value it should be`,
  );
}

function pagesOf(run: string, from: number, to: number): { run: string; page: number }[] {
  return Array.from({ length: to - from }, (_, i) => ({ run, page: from + i }));
}

function joined(
  pages: readonly Uint8Array[],
  run: string,
  first: number,
  kind: PageKind,
): Uint8Array<ArrayBuffer> {
  const bodies = pages.map((bytes, i) => checkPage(bytes, run, first + i, [kind]));
  const all = new Uint8Array(bodies.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const body of bodies) {
    all.set(body, at);
    at += body.length;
  }
  return all;
}
