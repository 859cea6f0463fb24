/**
 * What of the runs is still needed: by the tables there are, and by those a checkpoint under way has frozen.
 *
 * @module
 */
import type { Partition, RegisteredTable } from "./partition.ts";
import type { Places } from "./place.ts";
import type { Table } from "./table.ts";

/** What is needed of a range of places of an instance. */
interface LiveRange {
  readonly from: number;
  readonly to: number;
  /** What is in front of it is not. */
  floor: number;
  /** What expires up to then is not. */
  now: number;
}

/** What is needed of one instance. */
export class LiveInstance {
  readonly ranges: LiveRange[] = [];
  /** Whose number of keys is to be corrected; undefined for a queue, or a table that has been dropped since. */
  table: Table | undefined;

  /** The range of a place, unless an entry there is dead. */
  rangeOf(place: number, order: number): LiveRange | undefined {
    for (const range of this.ranges) {
      if (place >= range.from && place < range.to) return order < range.floor ? undefined : range;
    }
    return undefined;
  }
}

/** What is needed, by instance. */
export type LiveRules = ReadonlyMap<number, LiveInstance>;

/** The rules of now. They hold for whoever reads what is written by them later: nothing comes back to life. */
export function liveRules(partitions: readonly Partition[], places: Places): LiveRules {
  const rules = new Map<number, LiveInstance>();
  for (const partition of partitions) {
    add(rules, partition.registry(), places, partition);
    for (const { registry } of partition.frozen) add(rules, registry, places, undefined);
  }
  return rules;
}

function add(
  rules: Map<number, LiveInstance>,
  registry: readonly RegisteredTable[],
  places: Places,
  partition: Partition | undefined,
): void {
  for (const { kind, pieces, now } of registry) {
    for (const { instance, from, to, floor } of pieces) {
      let live = rules.get(instance);
      if (live === undefined) rules.set(instance, live = new LiveInstance());
      if (partition !== undefined && kind === "table") live.table ??= partition.tableOf(instance);
      const low = places.first(from), high = places.first(to);
      const known = live.ranges.find((range) => range.from === low && range.to === high);
      if (known === undefined) live.ranges.push({ from: low, to: high, floor, now });
      else {
        known.floor = Math.min(known.floor, floor);
        known.now = Math.min(known.now, now);
      }
    }
  }
}
