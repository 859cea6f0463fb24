/**
 * The global window: one per key that never ends by itself. Triggers give rows before the input ends; the end gives the last.
 *
 * @module
 */
import { keyIdentity } from "../../key.ts";
import type { RecordContext, Watermark } from "../../record.ts";
import { keyedState, type OperatorContext } from "../../runtime/operator.ts";
import type { Cell, Table } from "../../state/log/mod.ts";
import type { WindowSettings } from "./settings.ts";
import { WindowOperator } from "./window_operator.ts";

/** What a key holds. */
interface GlobalWindow {
  acc: unknown;
  fresh: number;
  newest: number;
}

/** What a checkpoint keeps besides the keys. */
interface Own {
  /** When early rows are due by the clock; Infinity where none are. */
  readonly earlyAt: number;
}

/** Runs global windows. Rows have the time of their newest record and no window of time. */
export class GlobalWindowOperator extends WindowOperator {
  readonly #keys: Table<GlobalWindow>;
  #earlyAt = Infinity;

  constructor(settings: WindowSettings, context: OperatorContext) {
    super(settings, context);
    this.#keys = keyedState(context).space<GlobalWindow>("keys").table();
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number): void {
    const { fold, trigger } = this.settings;
    const identity = keyIdentity(record.key);
    let cell = this.#keys.edit(identity);
    if (cell === undefined) {
      const acc = fold.add(fold.create(), value, timestamp, this.sequence, record);
      cell = this.#keys.add(identity, record.key, { acc, fresh: 0, newest: timestamp });
      this.context.gauges.stateEntries++;
    } else {
      const window = cell.value;
      window.acc = fold.add(window.acc, value, timestamp, this.sequence, record);
      if (timestamp > window.newest) window.newest = timestamp;
    }
    const fresh = ++cell.value.fresh;
    if (trigger?.every !== undefined && fresh >= trigger.every) this.#emit(cell, this.watermark);
    else if (trigger?.early !== undefined && this.#earlyAt === Infinity) {
      this.#earlyAt = this.context.clock.now() + trigger.early;
    }
  }

  #emit(cell: Cell<GlobalWindow>, watermark: Watermark): void {
    const { fold, trigger } = this.settings, window = cell.value;
    this.#keys.touch(cell);
    this.give(window.acc, cell.key, window.newest, watermark, undefined);
    window.fresh = 0;
    if (!trigger?.purge) return;
    window.acc = fold.create();
    window.newest = -Infinity;
  }

  protected override fire(): void {} // no time closes this window

  protected override complete(): void {
    this.#emitFresh(this.before);
    this.#keys.drop();
    this.context.gauges.stateEntries = 0;
  }

  protected override onClock(now: number): void {
    if (now < this.#earlyAt) return;
    this.#earlyAt = Infinity;
    this.#emitFresh(this.watermark);
  }

  #emitFresh(watermark: Watermark): void {
    for (const cell of this.#keys.cells()) if (cell.value.fresh > 0) this.#emit(cell, watermark);
  }

  protected override nextDue(): number {
    return this.#earlyAt;
  }

  protected override snapshotOwn(): unknown {
    return { earlyAt: this.#earlyAt } satisfies Own;
  }

  protected override restoreOwn(own: readonly unknown[]): void {
    this.#earlyAt = Math.min(Infinity, ...(own as readonly Own[]).map(({ earlyAt }) => earlyAt));
    this.context.gauges.stateEntries = this.#keys.live;
  }
}
