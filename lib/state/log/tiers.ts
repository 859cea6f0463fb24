/**
 * Which runs are worth being made one.
 *
 * Runs have a level by their size, each level `fanIn` times the one before; younger runs are of lower levels. Of the runs of a level
 * the oldest `fanIn` become one: an entry is written again about once a level. All become one when at least half of what they hold is
 * known to be of no use.
 *
 * @module
 */
import type { LiveRules } from "./live_rules.ts";
import type { Run } from "./run.ts";

/** What decides. */
export interface Tiers {
  /** How many runs become one. */
  readonly fanIn: number;
  /** Size of the runs of the first level, bytes. */
  readonly base: number;
  /** Entries that are to be there before waste counts. */
  readonly leastEntries: number;
}

/** @param runs All, the newest first. @returns Neighbours to be made one; empty where nothing is to do. */
export function chooseRuns(runs: readonly Run[], rules: LiveRules, tiers: Tiers): readonly Run[] {
  const { fanIn, base, leastEntries } = tiers;
  if (isWasteful(runs, rules, leastEntries)) return runs;
  for (let count = 0, level = 0; count < runs.length; level++) {
    const most = base * fanIn ** level, smaller = count;
    while (count < runs.length && runs[count]!.ref.bytes <= most) count++;
    if (count - smaller >= fanIn) return runs.slice(count - fanIn, count);
  }
  return [];
}

/** Whether at least half of the entries are certainly dead. What has been overwritten is not known. */
function isWasteful(runs: readonly Run[], rules: LiveRules, leastEntries: number): boolean {
  let all = 0, dead = 0;
  for (const { ref, spans, expiries } of runs) {
    all += ref.entries;
    let dropped = 0, now = Infinity;
    for (const { instance, entries, minOrder, maxOrder } of spans.values()) {
      const live = rules.get(instance);
      if (live === undefined) {
        dropped += entries;
        continue;
      }
      const floor = Math.min(...live.ranges.map((range) => range.floor));
      if (floor > minOrder) dropped += entries * Math.min(1, (floor - minOrder) / (maxOrder - minOrder));
      now = Math.min(now, ...live.ranges.map((range) => range.now));
    }
    const expired = expiries.length === 0 ? 0 : expiries.filter((at) => at <= now).length / expiries.length;
    dead += dropped + expired * (ref.entries - dropped);
  }
  return all >= leastEntries && dead * 2 >= all;
}
