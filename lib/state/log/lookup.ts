/**
 * Looking keys up in runs: a batch of them with as few reads as possible, or one in what is in memory.
 *
 * @module
 */
import type { PageStore } from "../pages/mod.ts";
import { filterSeed } from "./filter.ts";
import type { EntryPage } from "./page.ts";
import type { Run } from "./run.ts";

/** A key to look up. */
export interface Wanted {
  readonly instance: number;
  readonly place: number;
  /** Its identity, encoded. */
  readonly identity: Uint8Array;
}

/** Where it was found. */
export interface Found {
  readonly run: Run;
  readonly page: EntryPage;
  readonly index: number;
}

/** Keys whose pages are in memory at the same time. */
const AT_ONCE = 2048;
/** With fewer keys, reading a page too many costs less than reading the filters. */
const FILTER_FROM = 4;

/**
 * Looks up keys, the newest entry of each.
 *
 * @param runs The newest first. They are not deleted meanwhile.
 * @param found Called for each key that has an entry, which may be a tombstone.
 */
export async function lookUp(
  wanted: readonly Wanted[],
  runs: readonly Run[],
  store: PageStore,
  found: (key: number, where: Found) => void,
): Promise<void> {
  for (const run of runs) run.readers++;
  try {
    if (wanted.length >= FILTER_FROM) await Promise.all(runs.map((run) => run.loadFilter()));
    const order = wanted.map((_, i) => i).sort((a, b) => {
      const x = wanted[a]!, y = wanted[b]!;
      return x.instance - y.instance || x.place - y.place;
    });
    for (let from = 0; from < order.length; from += AT_ONCE) {
      await lookUpSome(wanted, order.slice(from, from + AT_ONCE), runs, store, found);
    }
  } finally {
    for (const run of runs) run.readers--;
  }
}

async function lookUpSome(
  wanted: readonly Wanted[],
  some: readonly number[],
  runs: readonly Run[],
  store: PageStore,
  found: (key: number, where: Found) => void,
): Promise<void> {
  const pages = runs.map(() => new Map<number, EntryPage | undefined>());
  const candidates: number[] = []; // key, run, first page, behind the last page, for each
  for (const key of some) {
    const { instance, place } = wanted[key]!, seed = filterSeed(instance);
    const position = { instance, order: 0, place };
    for (let r = 0; r < runs.length; r++) {
      const run = runs[r]!;
      if (!run.mayHave(seed, place) || !run.spans.has(instance)) continue;
      const first = run.firstPage(position), behind = run.pageBehind(position);
      if (first >= behind) continue;
      candidates.push(key, r, first, behind);
      for (let page = first; page < behind; page++) {
        if (!pages[r]!.has(page)) pages[r]!.set(page, run.cachedPage(page));
      }
    }
  }
  await readMissing(pages, runs, store);
  let last = -1;
  for (let i = 0; i < candidates.length; i += 4) {
    const key = candidates[i]!, r = candidates[i + 1]!;
    if (key === last) continue; // found in a newer run
    const { instance, place, identity } = wanted[key]!;
    for (let number = candidates[i + 2]!; number < candidates[i + 3]!; number++) {
      const page = pages[r]!.get(number)!, index = page.find(instance, 0, place, identity);
      if (index === -1) continue;
      found(key, { run: runs[r]!, page, index });
      last = key;
      break;
    }
  }
}

async function readMissing(
  pages: readonly Map<number, EntryPage | undefined>[],
  runs: readonly Run[],
  store: PageStore,
): Promise<void> {
  const missing: { readonly run: number; readonly page: number }[] = [];
  pages.forEach((ofRun, run) => {
    for (const [page, read] of ofRun) if (read === undefined) missing.push({ run, page });
  });
  if (missing.length === 0) return;
  const read = await store.read(missing.map(({ run, page }) => runs[run]!.pageRef(page)));
  missing.forEach(({ run, page }, i) => pages[run]!.set(page, runs[run]!.keep(page, read[i]!)));
}

/** Looks a key up in pages that are in memory. @returns "unknown" where that is not enough to tell. */
export function lookUpCached(
  { instance, place, identity }: Wanted,
  runs: readonly Run[],
): Found | "unknown" | undefined {
  const seed = filterSeed(instance), position = { instance, order: 0, place };
  for (const run of runs) {
    if (!run.mayHave(seed, place) || !run.spans.has(instance)) continue;
    const behind = run.pageBehind(position);
    for (let number = run.firstPage(position); number < behind; number++) {
      const page = run.cachedPage(number);
      if (page === undefined) return "unknown";
      const index = page.find(instance, 0, place, identity);
      if (index !== -1) return { run, page, index };
    }
  }
  return undefined;
}
