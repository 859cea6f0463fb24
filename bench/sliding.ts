/**
 * Sliding windows of growing size over one slide: the rate should not depend on how many windows a record is in.
 *
 * 1,000 keys, so that the rows (a key and slide) stay few beside the records whatever the size.
 *
 * @module
 */
import { buildVisits, EPOCH_MS, type Visit } from "./data.ts";
import { type Cost, measure } from "./measure.ts";
import { slidingCounts } from "./pipelines.ts";
import { differences, type Sums } from "./tally.ts";

const KEYS = 1000;
const SLIDE_MS = 2000;
/** Size ÷ slide of each measurement. */
export const OVERLAPS = [1, 5, 20, 100] as const;

/** Runs over one size. */
export interface SlidingResult {
  /** Size ÷ slide. */
  readonly overlap: number;
  readonly records: number;
  readonly rows: number;
  readonly costs: readonly Cost[];
  readonly problems: readonly string[];
}

/** Runs each size once a round, `runs` rounds. */
export async function measureSliding(records: number, runs: number): Promise<SlidingResult[]> {
  const input = buildVisits(records, KEYS);
  const results = OVERLAPS.map((overlap) => ({
    overlap,
    records,
    rows: 0,
    costs: [] as Cost[],
    problems: [] as string[],
  }));
  for (let run = 0; run < runs; run++) {
    for (const one of results) {
      const { result, cost } = await measure(() => slidingCounts(input, one.overlap * SLIDE_MS, SLIDE_MS));
      one.costs.push(cost);
      one.rows = result.rows!;
      one.problems = [...new Set([...one.problems, ...differences(result, expected(input, one.overlap))])];
    }
  }
  return results;
}

/** What can be said of the rows without any window: a record counts once in each of `overlap` windows up to its own. */
function expected(input: readonly Visit[], overlap: number): Sums {
  let byWindow = 0;
  for (const { ts } of input) {
    const newest = Math.floor((ts - EPOCH_MS) / SLIDE_MS) + overlap; // number of the last window, from 1
    byWindow += overlap * newest - overlap * (overlap - 1) / 2;
  }
  return { sum_count: input.length * overlap, sum_count_by_window: byWindow };
}
