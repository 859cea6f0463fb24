/**
 * What a store lies in: an ordered map of small cells with atomic compare-and-set. Everything else is built on that.
 *
 * C1 A commit happens as a whole or not at all, and only if every cell it checks has the version it names.
 * C2 A version never comes twice; later ones are greater as texts.
 * C3 What a commit has resolved is durable, and every later read sees it.
 * C4 Keys are of ASCII characters, and ordered as texts are.
 *
 * @module
 */

/** Most bytes of a cell. */
export const LARGEST_CELL = 64_000;
/** Most checks of a commit. */
export const MOST_CHECKS = 100;
/** Most cells a commit may write. */
export const MOST_WRITES = 960;
/** Most bytes of a commit, as {@link weightOf} counts them. */
export const MOST_BYTES = 760_000;
/** Most bytes of a commit's keys, as {@link keyWeight} counts them. */
export const MOST_KEY_BYTES = 76_000;

/** A cell. */
export interface Cell {
  /** Where it lies. */
  readonly key: string;
  /** What it holds; not to be changed. */
  readonly bytes: Uint8Array;
  /** Tells it from what was there before. */
  readonly version: string;
}

/** A cell as a commit expects it; `null`: there is none. */
export interface Check {
  /** Where it lies. */
  readonly key: string;
  /** Its version. */
  readonly version: string | null;
}

/** What a commit makes of a cell; `null` removes it. */
export interface Write {
  /** Where it lies. */
  readonly key: string;
  /** What it is to hold. */
  readonly bytes: Uint8Array | null;
}

/** Keys from one up to, and without, another. */
export interface Range {
  /** The first key. */
  readonly from: string;
  /** The first key behind. */
  readonly to: string;
}

/** An ordered map of cells. */
export interface Cells extends AsyncDisposable {
  /** Names it in errors. */
  readonly where: string;
  /** Cells in the order of their keys; they need not be of one moment. */
  get(keys: readonly string[]): Promise<(Cell | undefined)[]>;
  /** The first cells of a range, or with `reverse` the last, from the end on. */
  list(range: Range, limit: number, reverse?: boolean): Promise<Cell[]>;
  /**
   * The version of all it wrote, or `undefined` where a check failed.
   *
   * @throws {MailerError} `store_busy` where it was not committed and may be tried again; anything else leaves open whether it was.
   */
  commit(checks: readonly Check[], writes: readonly Write[]): Promise<string | undefined>;
}

/** What a key counts towards {@link MOST_KEY_BYTES}. */
export function keyWeight(key: string): number {
  return key.length + 24; // the prefix of the store, and what marks the parts of a key
}

/** What a written cell counts towards {@link MOST_BYTES}. */
export function weightOf({ key, bytes }: Write): number {
  return keyWeight(key) + (bytes === null ? 0 : bytes.length + 32);
}

/** All cells of a range, page by page. */
export async function* cellsIn(cells: Cells, range: Range, pageSize = 500): AsyncGenerator<Cell[]> {
  for (let from = range.from;;) {
    const page = await cells.list({ from, to: range.to }, pageSize);
    if (page.length > 0) yield page;
    if (page.length < pageSize) return;
    from = behind(page.at(-1)!.key);
  }
}

/** The least key behind another. */
export function behind(key: string): string {
  return key + "\x01";
}
