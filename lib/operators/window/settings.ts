/**
 * How a window operator is set up, whatever kind of window it has.
 *
 * @module
 */
import type { WindowOfRow } from "../../record.ts";
import type { TimeDomain } from "../../window/assigner.ts";
import type { Fold, RowShape } from "../fold.ts";

/** When rows are given besides the one at the close of a window. */
export interface WindowTrigger {
  /** A row for every window that has changed, this often in processing time, ms. */
  readonly early?: number;
  /** A row for every so many records of a key and window. */
  readonly every?: number;
  /** Start from nothing after each early row, instead of accumulating. The window itself stays. */
  readonly purge?: boolean;
}

/** Settings of a window operator. */
export interface WindowSettings {
  readonly time: TimeDomain;
  readonly timezone: string | undefined;
  /** How long after its end a window still takes records, ms. */
  readonly allowedLateness: number;
  readonly trigger: WindowTrigger | undefined;
  readonly fold: Fold;
  /** Makes the rows of one firing of one window. */
  readonly rows: WindowRows;
}

/** The values that go out for one key and window. */
export type WindowRows = (
  result: unknown,
  key: unknown,
  window: WindowOfRow | undefined,
) => readonly unknown[];

/** One row with the shape given. */
export function oneRow(shape: RowShape | undefined): WindowRows {
  if (shape === undefined) return (result) => [result];
  return (result, key, window) => [shape(result, key, window)];
}

/** The window of a row, with its zone where it has one. */
export function windowOfRow(start: number, end: number, timezone: string | undefined): WindowOfRow {
  return timezone === undefined ? { start, end } : { start, end, timezone };
}
