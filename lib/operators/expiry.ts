/**
 * Keys that are forgotten by event time: freeing what they take, a little with every batch.
 *
 * @module
 */
import type { Table } from "../state/log/mod.ts";

/** Keys that are looked at when the watermark has risen, whether they can be freed: so many, and more the larger the batch was. */
const LOOKED_AT = 256;
const LOOKED_AT_A_RECORD = 2;

/** Frees some of the keys that have expired: none of them is found any more, whether it still takes memory or not. */
export function freeExpired(table: Table, records: number): void {
  let steps = LOOKED_AT + LOOKED_AT_A_RECORD * records;
  // A round ends where one generation of keys does: the rest of the young ones, the old ones, the young ones from the start.
  for (let round = 0; round < 3 && steps > 0; round++) steps = table.sweep(steps);
}
