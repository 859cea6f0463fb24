/**
 * Where the pages of a run lie in its file: ten bytes of memory a page.
 *
 * @module
 */

/** Places and lengths by page number. */
export class PageIndex {
  /** 0: not there; no page lies at the very beginning of a file. */
  #at = new Float64Array(16);
  #lengths = new Uint16Array(16);

  /** Where page `page` begins; `undefined` where it is not known. */
  at(page: number): number | undefined {
    return this.#at[page] || undefined;
  }

  /** Bytes of a page that is known. */
  lengthOf(page: number): number {
    return this.#lengths[page]!;
  }

  /** Notes a page; what was known of it before is forgotten. */
  put(page: number, at: number, length: number): void {
    if (page >= this.#at.length) this.#grow(page + 1);
    this.#at[page] = at;
    this.#lengths[page] = length;
  }

  #grow(least: number): void {
    const size = Math.max(least, 2 * this.#at.length);
    const at = new Float64Array(size), lengths = new Uint16Array(size);
    at.set(this.#at);
    lengths.set(this.#lengths);
    this.#at = at;
    this.#lengths = lengths;
  }
}
