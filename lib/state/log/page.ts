/**
 * Pages: what a run consists of.
 *
 * Head, 24 bytes, little-endian: crc32 of all behind it (4), format version (1), kind (1), number of entries (2), order (8),
 * instance (4), number of the page in its run (4). A page of entries goes on with their places (4 each), where they end (2 each)
 * and, unless all have the instance and order of the head, instances (4 each) and orders (8 each); then come the entries
 * themselves, sorted by (instance, order, place, identity).
 *
 * G1 A page that was damaged, or belongs elsewhere, is an error that names run and page; it is never read as something else.
 *
 * @module
 */
import { crc32 } from "node:zlib";
import { MailerError } from "../../errors.ts";
import { LARGEST_PAGE } from "../pages/mod.ts";
import { ByteWriter } from "./bytes.ts";
import { compareIdentities, identityAt } from "./entry.ts";

/** What a page holds. */
export const PageKind = { entries: 1, mixed: 2, chunk: 3, index: 4, filter: 5 } as const;
/** What a page holds. */
export type PageKind = typeof PageKind[keyof typeof PageKind];

/** Bytes in front of a page's content. */
export const HEAD_BYTES = 24;
/** The most a page can hold besides. */
export const LARGEST_BODY: number = LARGEST_PAGE - HEAD_BYTES;
const FORMAT = 1;
const MOST_ENTRIES = 4096;
const IS_LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/** A page whose content is `body` as it is. */
export function plainPage(kind: PageKind, number: number, body: Uint8Array): Uint8Array {
  const page = new Uint8Array(HEAD_BYTES + body.length);
  page.set(body, HEAD_BYTES);
  return sealed(page, kind, number, 0, 0, 0);
}

function sealed(
  page: Uint8Array,
  kind: PageKind,
  number: number,
  count: number,
  instance: number,
  order: number,
): Uint8Array {
  const view = new DataView(page.buffer);
  page[4] = FORMAT;
  page[5] = kind;
  view.setUint16(6, count, true);
  view.setFloat64(8, order, true);
  view.setUint32(16, instance, true);
  view.setUint32(20, number, true);
  view.setUint32(0, crc32(page.subarray(4)), true);
  return page;
}

/**
 * Checks a page that was read.
 *
 * @returns Its content, for the kinds that are not entries.
 * @throws {MailerError} `page_corrupt`, `page_format`
 */
export function checkPage(
  bytes: Uint8Array,
  run: string,
  number: number,
  kinds: readonly PageKind[],
): Uint8Array {
  const corrupt = (what: string): MailerError =>
    new MailerError("page_corrupt", `state: page ${number} of run "${run}" is damaged: ${what}`, {
      hint: "go back to an older checkpoint or a savepoint",
    });
  if (bytes.length < HEAD_BYTES) throw corrupt(`${bytes.length} bytes are too few`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const expected = view.getUint32(0, true), found = crc32(bytes.subarray(4));
  if (expected !== found) {
    throw corrupt(`its checksum should be ${expected.toString(16)} and is ${found.toString(16)}`);
  }
  if (bytes[4] !== FORMAT) {
    throw new MailerError(
      "page_format",
      `state: page ${number} of run "${run}" has format ${bytes[4]}, this version reads format ${FORMAT}`,
      { hint: "run the version of Mailer that wrote this state, or a newer one" },
    );
  }
  if (view.getUint32(20, true) !== number) throw corrupt(`it is page ${view.getUint32(20, true)} of a run`);
  if (!kinds.includes(bytes[5] as PageKind)) {
    throw corrupt(`it is of kind ${bytes[5]}, not ${kinds.join(" or ")}`);
  }
  return bytes.subarray(HEAD_BYTES);
}

/** Puts entries together to a page. They must come in their order. */
export class PageBuilder {
  /** Takes the bytes of an entry; then comes `close`. */
  readonly body: ByteWriter = new ByteWriter(16_384);
  readonly #places = new Uint32Array(MOST_ENTRIES);
  readonly #ends = new Uint16Array(MOST_ENTRIES);
  readonly #instances = new Uint32Array(MOST_ENTRIES);
  readonly #orders = new Float64Array(MOST_ENTRIES);
  #mixed = false;
  /** Number of entries. */
  count = 0;

  /** Size of the page as it is. */
  get bytes(): number {
    return HEAD_BYTES + this.body.at + this.count * (this.#mixed ? 18 : 6);
  }
  get isFull(): boolean {
    return this.count === MOST_ENTRIES;
  }
  /** Instance of the first entry. */
  get instance(): number {
    return this.#instances[0]!;
  }
  /** Order of the first entry. */
  get order(): number {
    return this.#orders[0]!;
  }
  /** Place of the first entry. */
  get place(): number {
    return this.#places[0]!;
  }

  /** What was written to `body` since the last time is an entry. */
  close(instance: number, order: number, place: number): void {
    const { count } = this;
    this.#places[count] = place;
    this.#ends[count] = this.body.at;
    this.#instances[count] = instance;
    this.#orders[count] = order;
    if (instance !== this.#instances[0] || order !== this.#orders[0]) this.#mixed = true;
    this.count = count + 1;
  }

  /** The page; the builder begins another one. */
  finish(number: number): Uint8Array {
    const { count, body } = this;
    const page = new Uint8Array(this.bytes), view = new DataView(page.buffer);
    let at = HEAD_BYTES;
    if (IS_LITTLE_ENDIAN) {
      new Uint32Array(page.buffer, at, count).set(this.#places.subarray(0, count));
      new Uint16Array(page.buffer, at + count * 4, count).set(this.#ends.subarray(0, count));
    } else {
      for (let i = 0; i < count; i++) view.setUint32(at + i * 4, this.#places[i]!, true);
      for (let i = 0; i < count; i++) view.setUint16(at + count * 4 + i * 2, this.#ends[i]!, true);
    }
    at += count * 6;
    if (this.#mixed) {
      for (let i = 0; i < count; i++, at += 4) view.setUint32(at, this.#instances[i]!, true);
      for (let i = 0; i < count; i++, at += 8) view.setFloat64(at, this.#orders[i]!, true);
    }
    page.set(body.bytes.subarray(0, body.at), at);
    sealed(page, this.#mixed ? PageKind.mixed : PageKind.entries, number, count, this.instance, this.order);
    this.count = body.at = 0;
    this.#mixed = false;
    return page;
  }
}

/** The entries of a page. */
export class EntryPage {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Number of entries. */
  readonly count: number;
  /** Whether its entries are of more than one instance or order. */
  readonly isMixed: boolean;
  readonly #instance: number;
  readonly #order: number;
  readonly #base: number;
  /** For the cache: whether it was looked at since the last time round. */
  used = false;

  /** Checks the page. @throws {MailerError} `page_corrupt`, `page_format` */
  constructor(bytes: Uint8Array, run: string, number: number) {
    checkPage(bytes, run, number, [PageKind.entries, PageKind.mixed]);
    this.bytes = bytes;
    const view = this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.isMixed = bytes[5] === PageKind.mixed;
    this.count = view.getUint16(6, true);
    this.#order = view.getFloat64(8, true);
    this.#instance = view.getUint32(16, true);
    this.#base = HEAD_BYTES + this.count * (this.isMixed ? 18 : 6);
  }

  place(i: number): number {
    return this.view.getUint32(HEAD_BYTES + i * 4, true);
  }
  instance(i: number): number {
    return this.isMixed ? this.view.getUint32(HEAD_BYTES + this.count * 6 + i * 4, true) : this.#instance;
  }
  order(i: number): number {
    return this.isMixed ? this.view.getFloat64(HEAD_BYTES + this.count * 10 + i * 8, true) : this.#order;
  }
  /** Where entry `i` begins. */
  start(i: number): number {
    return i === 0 ? this.#base : this.end(i - 1);
  }
  /** Where entry `i` ends. */
  end(i: number): number {
    return this.#base + this.view.getUint16(HEAD_BYTES + this.count * 4 + i * 2, true);
  }

  /** The first entry that is not in front of (instance, order, place); `count` where there is none. */
  seek(instance: number, order: number, place: number): number {
    let low = 0, high = this.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#isBefore(middle, instance, order, place)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #isBefore(i: number, instance: number, order: number, place: number): boolean {
    if (this.isMixed || this.#instance !== instance || this.#order !== order) {
      const own = this.instance(i);
      if (own !== instance) return own < instance;
      const ownOrder = this.order(i);
      if (ownOrder !== order) return ownOrder < order;
    }
    return this.place(i) < place;
  }

  /** The entry of an identity; −1 where there is none. */
  find(instance: number, order: number, place: number, identity: Uint8Array): number {
    for (let i = this.seek(instance, order, place); i < this.count; i++) {
      if (this.place(i) !== place || this.instance(i) !== instance || this.order(i) !== order) return -1;
      if (compareIdentities(this.bytes, identityAt(this.bytes, this.start(i)), identity, 0) === 0) return i;
    }
    return -1;
  }
}
