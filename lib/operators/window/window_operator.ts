/**
 * What all windows have in common: how the rows of a firing are made.
 *
 * A row is computed by code of the user's (a reducer, an aggregate, a window function). What it throws then is no record's
 * fault alone: the row is what fails, under the operator's failure policy.
 *
 * @module
 */
import { RecordError } from "../../errors.ts";
import type { Watermark, WindowOfRow } from "../../record.ts";
import type { OperatorContext } from "../../runtime/operator.ts";
import type { TimeDomain } from "../../window/assigner.ts";
import { EventTimeOperator } from "../event_time_operator.ts";
import { NO_RESULT } from "../fold.ts";
import type { WindowSettings } from "./settings.ts";

/** Base of the operators that run windows. */
export abstract class WindowOperator extends EventTimeOperator {
  constructor(
    protected readonly settings: WindowSettings,
    context: OperatorContext,
    time: TimeDomain = "event",
  ) {
    super(context, time);
  }

  /**
   * Adds the rows of one key and window.
   *
   * @param watermark What held in the operator's channel before them.
   */
  protected give(
    acc: unknown,
    key: unknown,
    timestamp: number,
    watermark: Watermark,
    window: WindowOfRow | undefined,
  ): void {
    const { fold, rows } = this.settings;
    let values: readonly unknown[];
    try {
      const result = fold.result(acc);
      if (result === NO_RESULT) return;
      values = rows(result, key, window);
    } catch (error) {
      if (error instanceof RecordError) throw error; // of a record that the fold had kept
      return this.rowFailed(error, key, timestamp, window);
    }
    for (const value of values) this.rows.add(value, key, timestamp, watermark, window);
  }

  /** Whether a window has nothing in it but what an early row has given and purged: it closes without a row. */
  protected isPurged(fresh: number): boolean {
    return fresh === 0 && this.settings.trigger?.purge === true;
  }

  /** Hands a row that could not be computed to the failure policy. */
  protected rowFailed(
    error: unknown,
    key: unknown,
    timestamp: number,
    window: WindowOfRow | undefined,
  ): void {
    this.context.failed(this.standIn({ window: window ?? null }, key, timestamp), 0, error);
  }
}
