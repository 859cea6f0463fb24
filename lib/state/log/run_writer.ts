/**
 * Writes a run: entries in their order become pages, which go to the page store while more are made.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { PageStore } from "../pages/mod.ts";
import type { ByteWriter } from "./bytes.ts";
import { valueBytes } from "./codec.ts";
import { CHUNKED, identityAt } from "./entry.ts";
import { Filter, filterSeed } from "./filter.ts";
import { LARGEST_BODY, PageBuilder, PageKind, plainPage } from "./page.ts";
import type { RunFooter, RunRef, Span } from "./run.ts";

/** A run that was just written, with what would otherwise be read back. */
export interface WrittenRun {
  readonly ref: RunRef;
  readonly footer: RunFooter;
  readonly filter: Filter;
}

/** What is larger lies in pages of its own. */
const LARGEST_INLINE = 16_384;
const LARGEST_IDENTITY = 32_768;
const WRITES_IN_FLIGHT = 3;
/** How many times of expiry a run remembers. */
const MARKS = 32;

/** How a run is written. */
export interface RunWriterOptions {
  readonly pages: PageStore;
  /** Name of the run, not used before. */
  readonly run: string;
  /** Number of entries, at most. */
  readonly expected: number;
  /** A page is finished once it has this many bytes. */
  readonly pageBytes: number;
  /** Pages are handed to the store in lots of about this many bytes. */
  readonly lotBytes: number;
}

/** What an index says of each page of entries. */
class Index {
  readonly instances: number[] = [];
  readonly orders: number[] = [];
  readonly places: number[] = [];
  readonly numbers: number[] = [];
}

/** Writes one run. For each entry: write it to `entry`, then `close` it; every now and then `flow`; at last `finish`. */
export class RunWriter {
  readonly #options: RunWriterOptions;
  readonly #builder = new PageBuilder();
  readonly #filter: Filter;
  readonly #index = new Index();
  readonly #spans: Span[] = [];
  readonly #expiries: number[] = [];
  #expiryStep = 1;
  #seed = 0;
  #lastInstance = -1;
  #lastOrder = -Infinity;
  #lastPlace = -1;
  #lot: Uint8Array[] = [];
  #lotBytes = 0;
  #lotFirst = 0;
  #next = 0;
  #bytes = 0;
  #entries = 0;
  #tombstones = 0;
  readonly #writing = new Set<Promise<void>>();
  #failed: { readonly error: unknown } | undefined;

  constructor(options: RunWriterOptions) {
    this.#options = options;
    this.#filter = Filter.sized(options.expected);
  }

  /** Takes the bytes of the next entry. */
  get entry(): ByteWriter {
    return this.#builder.body;
  }
  /** Number of entries so far. */
  get entries(): number {
    return this.#entries;
  }
  /** Size of all pages so far. */
  get bytes(): number {
    return this.#bytes + this.#builder.body.at;
  }

  /**
   * What was written to `entry` since `start` is an entry.
   *
   * @param start Where it begins.
   * @param payloadFrom Where its payload begins; it is moved to pages of its own if it is large.
   * @param expires Infinity: never.
   */
  close(
    start: number,
    payloadFrom: number,
    instance: number,
    order: number,
    place: number,
    isTombstone: boolean,
    expires: number,
  ): void {
    const body = this.#builder.body;
    this.#checkOrder(instance, order, place);
    if (payloadFrom - start > LARGEST_IDENTITY) {
      throw new MailerError(
        "key_too_large",
        `state: a key of ${
          payloadFrom - identityAt(body.bytes, start)
        } bytes, at most ${LARGEST_IDENTITY} are possible`,
      );
    }
    if (body.at - payloadFrom > LARGEST_INLINE) this.#moveOut(start, payloadFrom);
    this.#entries++;
    if (isTombstone) this.#tombstones++;
    this.#count(instance, order);
    this.#filter.add(this.#seed, place);
    if (this.#entries % this.#expiryStep === 0) this.#mark(isTombstone ? -Infinity : expires);
    this.#builder.close(instance, order, place);
    if (this.#builder.bytes >= this.#options.pageBytes || this.#builder.isFull) this.#finishPage();
  }

  /** A run that is not in its order would give wrong answers, silently. */
  #checkOrder(instance: number, order: number, place: number): void {
    const isInOrder = instance !== this.#lastInstance
      ? instance > this.#lastInstance
      : order !== this.#lastOrder
      ? order > this.#lastOrder
      : place >= this.#lastPlace;
    if (!isInOrder) {
      throw new MailerError(
        "run_out_of_order",
        `state: an entry of run "${this.#options.run}" is out of order`,
      );
    }
    this.#lastInstance = instance;
    this.#lastOrder = order;
    this.#lastPlace = place;
  }

  #moveOut(start: number, payloadFrom: number): void {
    const body = this.#builder.body, { bytes } = body;
    const payload = bytes.slice(payloadFrom, body.at);
    body.at = payloadFrom;
    bytes[start]! |= CHUNKED;
    body.varint(this.chunk(payload));
    body.varint(payload.length);
  }

  /** Writes a payload to pages of its own. @returns The number of the first. */
  chunk(payload: Uint8Array): number {
    const first = this.#next;
    for (let at = 0; at < payload.length; at += LARGEST_BODY) {
      this.#emit(plainPage(PageKind.chunk, this.#next, payload.subarray(at, at + LARGEST_BODY)));
    }
    return first;
  }

  #count(instance: number, order: number): void {
    const span = this.#spans.at(-1);
    if (span !== undefined && span.instance === instance) {
      span.entries++;
      span.maxOrder = order;
      return;
    }
    this.#seed = filterSeed(instance);
    this.#spans.push({ instance, entries: 1, minOrder: order, maxOrder: order });
  }

  /** Every so manieth expiry, so many that at most twice {@link MARKS} are kept. */
  #mark(expires: number): void {
    this.#expiries.push(expires);
    if (this.#expiries.length < 2 * MARKS) return;
    const half = this.#expiries.filter((_, i) => i % 2 === 1);
    this.#expiries.splice(0, Infinity, ...half);
    this.#expiryStep *= 2;
  }

  #finishPage(): void {
    const { instance, order, place } = this.#builder;
    const index = this.#index;
    index.instances.push(instance);
    index.orders.push(order);
    index.places.push(place);
    index.numbers.push(this.#next);
    this.#emit(this.#builder.finish(this.#next));
  }

  #emit(page: Uint8Array): void {
    this.#lot.push(page);
    this.#next++;
    this.#bytes += page.length;
    this.#lotBytes += page.length;
    if (this.#lotBytes >= this.#options.lotBytes) this.#sendLot();
  }

  #sendLot(): void {
    const lot = this.#lot, first = this.#lotFirst;
    this.#lot = [];
    this.#lotBytes = 0;
    this.#lotFirst = this.#next;
    if (lot.length === 0) return;
    const writing: Promise<void> = this.#options.pages.write(this.#options.run, first, lot).then(
      () => void this.#writing.delete(writing),
      (error) => {
        this.#writing.delete(writing);
        this.#failed ??= { error };
      },
    );
    this.#writing.add(writing);
  }

  /** What to wait for before more is written; undefined where nothing. */
  flow(most: number = WRITES_IN_FLIGHT): Promise<void> | undefined {
    if (this.#failed !== undefined) throw this.#failed.error;
    return this.#writing.size < most ? undefined : Promise.race(this.#writing);
  }

  /**
   * Writes what is left, with the index and the filter.
   *
   * @returns The run; undefined where it has no entries, and then there is none.
   */
  async finish(): Promise<WrittenRun | undefined> {
    if (this.#builder.count > 0) this.#finishPage();
    if (this.#entries === 0) return undefined;
    const { instances, orders, places, numbers } = this.#index;
    const footer: RunFooter = {
      spans: this.#spans,
      expiries: this.#expiries.sort((a, b) => a - b),
      instances: Uint32Array.from(instances),
      orders: Float64Array.from(orders),
      places: Uint32Array.from(places),
      numbers: Uint32Array.from(numbers),
    };
    const bytes = this.#bytes;
    const footerFrom = this.#append(PageKind.index, valueBytes(footer));
    const { words } = this.#filter;
    const filterFrom = this.#append(PageKind.filter, new Uint8Array(words.buffer));
    this.#sendLot();
    while (this.#writing.size > 0) await Promise.race(this.#writing);
    if (this.#failed !== undefined) throw this.#failed.error;
    const ref: RunRef = {
      run: this.#options.run,
      footer: footerFrom,
      filter: filterFrom,
      pages: this.#next,
      entries: this.#entries,
      tombstones: this.#tombstones,
      bytes,
    };
    return { ref, footer, filter: this.#filter };
  }

  /** Waits for what is under way, where the run will not be finished. Its pages are left over, like those of a crash. */
  async abandon(): Promise<void> {
    while (this.#writing.size > 0) await Promise.race(this.#writing);
  }

  #append(kind: PageKind, bytes: Uint8Array): number {
    const first = this.#next;
    for (let at = 0; at < bytes.length; at += LARGEST_BODY) {
      this.#emit(plainPage(kind, this.#next, bytes.subarray(at, at + LARGEST_BODY)));
    }
    return first;
  }
}
