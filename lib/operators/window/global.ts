/**
 * The global window: one per key that never ends by itself. Triggers give rows before the input ends; the end gives the last.
 *
 * @module
 */
import { keyIdentity } from "../../key.ts";
import type { RecordContext, Watermark } from "../../record.ts";
import type { OperatorContext } from "../../runtime/operator.ts";
import type { WindowSettings } from "./settings.ts";
import { WindowOperator } from "./window_operator.ts";

interface GlobalKey {
  readonly key: unknown;
  acc: unknown;
  fresh: number;
  newest: number;
}

/** Runs global windows. Rows have the time of their newest record and no window of time. */
export class GlobalWindowOperator extends WindowOperator {
  readonly #keys = new Map<unknown, GlobalKey>();
  #earlyAt = Infinity;

  constructor(settings: WindowSettings, context: OperatorContext) {
    super(settings, context);
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number): void {
    const { fold, trigger } = this.settings;
    const identity = keyIdentity(record.key);
    let state = this.#keys.get(identity);
    if (state === undefined) {
      const acc = fold.add(fold.create(), value, timestamp, this.sequence, record);
      state = { key: record.key, acc, fresh: 0, newest: timestamp };
      this.#keys.set(identity, state);
      this.context.gauges.stateEntries++;
    } else {
      state.acc = fold.add(state.acc, value, timestamp, this.sequence, record);
      if (timestamp > state.newest) state.newest = timestamp;
    }
    state.fresh++;
    if (trigger?.every !== undefined && state.fresh >= trigger.every) this.#emit(state, this.watermark);
    else if (trigger?.early !== undefined && this.#earlyAt === Infinity) {
      this.#earlyAt = this.context.clock.now() + trigger.early;
    }
  }

  #emit(state: GlobalKey, watermark: Watermark): void {
    const { fold, trigger } = this.settings;
    this.give(state.acc, state.key, state.newest, watermark, undefined);
    state.fresh = 0;
    if (!trigger?.purge) return;
    state.acc = fold.create();
    state.newest = -Infinity;
  }

  protected override fire(): void {} // no time closes this window

  protected override complete(): void {
    for (const state of this.#keys.values()) if (state.fresh > 0) this.#emit(state, this.before);
    this.#keys.clear();
    this.context.gauges.stateEntries = 0;
  }

  protected override onClock(now: number): void {
    if (now < this.#earlyAt) return;
    this.#earlyAt = Infinity;
    for (const state of this.#keys.values()) if (state.fresh > 0) this.#emit(state, this.watermark);
  }

  protected override nextDue(): number {
    return this.#earlyAt;
  }
}
