/**
 * Some records of a batch as a batch.
 *
 * @module
 */
import { Batch } from "../record.ts";

/** The records at `indexes` (ascending), with `values[index]` as their values. */
export function selectRecords<T>(batch: Batch, values: readonly T[], indexes: ArrayLike<number>): Batch<T> {
  const count = indexes.length;
  const kept = new Array<T>(count), rows = new Int32Array(count);
  const keys = batch.keys === undefined ? undefined : new Array<unknown>(count);
  for (let at = 0; at < count; at++) {
    const index = indexes[at]!;
    kept[at] = values[index]!;
    rows[at] = batch.row(index);
    if (keys !== undefined) keys[at] = batch.keys![index];
  }
  return new Batch(kept, batch.origin, rows, keys, batch.oneToOne);
}

/** All records but those at `left` (ascending), with `values[index]` as their values. */
export function leaveOut<T>(batch: Batch, values: readonly T[], left: readonly number[]): Batch<T> {
  const out = new Set(left);
  return selectRecords(batch, values, Array.from(batch.values.keys()).filter((index) => !out.has(index)));
}
