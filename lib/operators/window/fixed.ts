/**
 * Windows of fixed extent, one accumulator per key and window: tumbling windows, and sliding ones whose accumulators cannot be
 * merged (or that give early rows).
 *
 * F1 One row per key and window when it closes; one more for every record accepted after that, within the allowed lateness.
 * F2 A record goes into those of its windows that are still open; when none is, it is late.
 * F3 Windows close in the order of their ends.
 * F4 State is a table per window, by its start. Which windows have closed is told by the watermark: all that end up to it.
 *
 * @module
 */
import { TimeHeap } from "../../heap.ts";
import { keyIdentity } from "../../key.ts";
import type { Batch, RecordContext, Watermark, WindowOfRow } from "../../record.ts";
import { keyedState, type OperatorContext } from "../../runtime/operator.ts";
import type { Cell, Partition, SpaceHandle, Table } from "../../state/log/mod.ts";
import { copyValue } from "../../value.ts";
import type { PaneWindows } from "../../window/assigner.ts";
import { type FormerInstance, formerInstance, FormerInstances } from "./former.ts";
import { windowOfRow, type WindowSettings } from "./settings.ts";
import { WindowOperator } from "./window_operator.ts";

/** What a key holds in a window where a trigger counts its records; else it is the accumulator alone. */
interface Counted {
  acc: unknown;
  /** Records since the last row. */
  fresh: number;
}
/** Versions of what a key holds. */
const PLAIN = 0, COUNTED = 1;

interface Window {
  readonly row: WindowOfRow;
  readonly end: number;
  /** Event time at which its state goes. */
  readonly gone: number;
  readonly table: Table;
  closed: boolean;
}

/** Runs tumbling and sliding windows. */
export class FixedWindowOperator extends WindowOperator {
  readonly #state: Partition;
  readonly #tables: SpaceHandle;
  /** Whether cells are {@link Counted}. */
  readonly #counts: boolean;
  /** Open and not yet forgotten windows by start. */
  readonly #windows = new Map<number, Window>();
  /** Windows by when something happens to them: their end, then the time at which they are forgotten. */
  readonly #due = new TimeHeap<Window>();
  // The window looked up last (tumbling): nearly always the next record's too.
  #lastPane = NaN;
  #lastWindow: Window | undefined;
  #earlyAt = Infinity;
  /** The cell of each record of the batch, to be changed, where its (tumbling) window had one. */
  #found: (Cell | undefined)[] = [];

  constructor(private readonly windows: PaneWindows, settings: WindowSettings, context: OperatorContext) {
    super(settings, context, settings.time);
    this.#state = keyedState(context);
    this.#counts = settings.trigger !== undefined;
    this.#tables = this.#state.space("windows", {
      version: this.#counts ? COUNTED : PLAIN,
      // Stored before there was a trigger: whatever is in it has not been given.
      migrate: (acc): Counted => ({ acc, fresh: 1 }),
    });
  }

  protected override snapshotOwn(): FormerInstance {
    return formerInstance(this.#state, this.watermark);
  }

  protected override restoreOwn(own: readonly unknown[]): void {
    const former = new FormerInstances(own, this.context.maxKeyGroups);
    let isFresh = false;
    for (const table of this.#tables.tables()) {
      if (table.live === 0) { // all its keys are in other partitions now
        table.drop();
        continue;
      }
      const window = this.#window(table, this.windows.windowEnd(table.order));
      this.context.gauges.stateEntries += table.live;
      if (window.closed && former.differ) this.#giveOwed(window, former);
      if (this.#counts && !window.closed && !isFresh) isFresh = hasFresh(table);
    }
    const early = this.settings.trigger?.early;
    if (isFresh && early !== undefined) this.#earlyAt = this.context.clock.now() + early;
  }

  /** The closing rows that a former instance had not come to give. */
  #giveOwed(window: Window, former: FormerInstances): void {
    for (const cell of window.table.cells()) {
      if (former.givenTo(cell.identity) < window.end) this.#close(window, cell);
    }
  }

  protected override lookUp(batch: Batch): void {
    const { windows } = this;
    if (!windows.single) return;
    const found = new Array<Cell | undefined>(batch.length);
    let window: Window | undefined, start = NaN, end = NaN;
    for (let i = 0; i < found.length; i++) {
      const timestamp = batch.timestamp(i);
      if (!(timestamp >= start && timestamp < end)) {
        start = windows.paneStart(timestamp);
        end = windows.paneEnd(start);
        window = this.#windows.get(start);
      }
      found[i] = window?.table.edit(keyIdentity(batch.key(i)));
    }
    this.#found = found;
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number, own: Watermark): void {
    const { windows } = this;
    const pane = windows.paneStart(timestamp);
    if (windows.single) {
      const window =
        pane === this.#lastPane && this.#lastWindow!.gone > own && this.#lastWindow!.gone > this.watermark
          ? this.#lastWindow!
          : this.#single(pane, own);
      if (window === undefined) {
        this.late(Math.max(own, this.watermark) - windows.windowEnd(pane));
        return;
      }
      this.#add(window, value, record, timestamp);
      return;
    }
    let taken = false, end = NaN;
    for (let start = windows.firstWindow(pane); start <= pane; start = windows.nextWindow(start)) {
      const window = this.#open(start, own);
      end = windows.windowEnd(start);
      if (window === undefined) continue;
      // A reducer may keep the value it is given and change it: one window must not do so to another.
      this.#add(window, taken ? copyValue(value) : value, record, timestamp);
      taken = true;
    }
    if (!taken) this.late(Math.max(own, this.watermark) - end);
  }

  #single(pane: number, own: Watermark): Window | undefined {
    const window = this.#open(pane, own);
    if (window === undefined) return undefined;
    this.#lastPane = pane;
    return this.#lastWindow = window;
  }

  /** The window starting at `start`; undefined where it is too late for it. */
  #open(start: number, own: Watermark): Window | undefined {
    const known = this.#windows.get(start);
    const end = known?.end ?? this.windows.windowEnd(start);
    const gone = end + this.settings.allowedLateness;
    if (own >= gone || this.watermark >= gone) return undefined;
    return known ?? this.#window(this.#tables.table(start), end);
  }

  /** Makes the window of a table. If its end has passed, nobody was in it then, or its rows have been given. */
  #window(table: Table, end: number): Window {
    const row = windowOfRow(table.order, end, this.settings.timezone);
    const gone = end + this.settings.allowedLateness;
    const window: Window = { row, end, gone, table, closed: this.watermark >= end };
    this.#windows.set(table.order, window);
    this.#due.push(window.closed ? gone : end, window);
    return window;
  }

  #add(window: Window, value: unknown, record: RecordContext, timestamp: number): void {
    const { fold, trigger } = this.settings, { table } = window;
    let cell = this.#found[this.view.index] ?? table.edit(keyIdentity(record.key));
    if (cell === undefined) {
      const acc = fold.add(fold.create(), value, timestamp, this.sequence, record), { key } = record;
      cell = table.add(keyIdentity(key), key, this.#counts ? { acc, fresh: 0 } satisfies Counted : acc);
      this.context.gauges.stateEntries++;
    } else this.#setAcc(cell, fold.add(this.#accOf(cell), value, timestamp, this.sequence, record));
    if (window.closed) this.#emit(window, cell, this.watermark);
    else if (trigger !== undefined) this.#trigger(window, cell);
  }

  #accOf(cell: Cell): unknown {
    return this.#counts ? (cell.value as Counted).acc : cell.value;
  }
  #setAcc(cell: Cell, acc: unknown): void {
    if (this.#counts) (cell.value as Counted).acc = acc;
    else cell.value = acc;
  }

  /** The row at the end of the window. */
  #close(window: Window, cell: Cell): void {
    if (this.#counts && this.isPurged((cell.value as Counted).fresh)) return;
    this.#emit(window, cell, this.before);
  }

  #emit(window: Window, cell: Cell, watermark: Watermark): void {
    this.give(this.#accOf(cell), cell.key, window.end - 1, watermark, window.row);
  }

  protected override fire(): void {
    while (this.#due.isDue(this.watermark)) {
      const window = this.#due.pop();
      if (!window.closed) {
        window.closed = true;
        for (const cell of window.table.cells()) this.#close(window, cell);
      }
      if (window.gone > this.watermark) {
        this.#due.push(window.gone, window);
        continue;
      }
      this.#windows.delete(window.row.start);
      this.context.gauges.stateEntries -= window.table.live;
      window.table.drop();
      if (window === this.#lastWindow) this.#lastPane = NaN;
    }
  }

  #trigger(window: Window, cell: Cell): void {
    const { early, every } = this.settings.trigger!;
    const counted = cell.value as Counted;
    counted.fresh++;
    if (every !== undefined && counted.fresh >= every) this.#early(window, cell);
    else if (early !== undefined && this.#earlyAt === Infinity) {
      this.#earlyAt = this.context.clock.now() + early;
    }
  }

  #early(window: Window, cell: Cell): void {
    const { fold, trigger } = this.settings, counted = cell.value as Counted;
    this.give(counted.acc, cell.key, window.end - 1, this.watermark, { ...window.row, early: true });
    window.table.touch(cell);
    counted.fresh = 0;
    if (trigger!.purge) counted.acc = fold.create();
  }

  protected override onClock(now: number): void {
    if (now < this.#earlyAt) return;
    this.#earlyAt = Infinity;
    const windows = [...this.#windows.values()].sort((a, b) => a.end - b.end);
    for (const window of windows) {
      if (window.closed) continue;
      for (const cell of window.table.cells()) {
        if ((cell.value as Counted).fresh > 0) this.#early(window, cell);
      }
    }
  }

  protected override nextDue(): number {
    return this.time === "processing" ? Math.min(this.#due.earliest, this.#earlyAt) : this.#earlyAt;
  }
}

function hasFresh(table: Table): boolean {
  for (const cell of table.cells()) if ((cell.value as Counted).fresh > 0) return true;
  return false;
}
