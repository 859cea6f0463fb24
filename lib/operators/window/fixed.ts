/**
 * Windows of fixed extent, one accumulator per key and window: tumbling windows, and sliding ones whose accumulators cannot be
 * merged (or that give early rows).
 *
 * F1 One row per key and window when it closes; one more for every record accepted after that, within the allowed lateness.
 * F2 A record goes into those of its windows that are still open; when none is, it is late.
 * F3 Windows close in the order of their ends.
 *
 * @module
 */
import { TimeHeap } from "../../heap.ts";
import { keyIdentity } from "../../key.ts";
import type { Batch, RecordContext, Watermark, WindowOfRow } from "../../record.ts";
import type { OperatorContext } from "../../runtime/operator.ts";
import { copyValue } from "../../value.ts";
import type { PaneWindows } from "../../window/assigner.ts";
import { windowOfRow, type WindowSettings } from "./settings.ts";
import { WindowOperator } from "./window_operator.ts";

/** A key in a window. */
interface Cell {
  readonly key: unknown;
  acc: unknown;
  /** Records since the last row, where a trigger counts them. */
  fresh: number;
}

interface Window {
  readonly row: WindowOfRow;
  readonly end: number;
  /** Event time at which its state goes. */
  readonly gone: number;
  readonly cells: Map<unknown, Cell>;
  closed: boolean;
}

/** Runs tumbling and sliding windows. */
export class FixedWindowOperator extends WindowOperator {
  /** Open and not yet forgotten windows by start. */
  readonly #windows = new Map<number, Window>();
  /** Windows by when something happens to them: their end, then the time at which they are forgotten. */
  readonly #due = new TimeHeap<Window>();
  // The window looked up last (tumbling): nearly always the next record's too.
  #lastPane = NaN;
  #lastWindow: Window | undefined;
  #earlyAt = Infinity;
  /** The cell of each record of the batch, where its (tumbling) window had one. */
  #found: (Cell | undefined)[] = [];

  constructor(private readonly windows: PaneWindows, settings: WindowSettings, context: OperatorContext) {
    super(settings, context, settings.time);
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
      found[i] = window?.cells.get(keyIdentity(batch.key(i)));
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
    if (known !== undefined) return known;
    const row = windowOfRow(start, end, this.settings.timezone);
    // Nobody was in it when its end passed, so nothing has been given for it.
    const window: Window = { row, end, gone, cells: new Map(), closed: this.watermark >= end };
    this.#windows.set(start, window);
    this.#due.push(window.closed ? gone : end, window);
    return window;
  }

  #add(window: Window, value: unknown, record: RecordContext, timestamp: number): void {
    const { fold, trigger } = this.settings;
    const identity = keyIdentity(record.key);
    let cell = this.#found[this.view.index] ?? window.cells.get(identity);
    if (cell === undefined) {
      const acc = fold.add(fold.create(), value, timestamp, this.sequence, record);
      cell = { key: record.key, acc, fresh: 0 };
      window.cells.set(identity, cell);
      this.context.gauges.stateEntries++;
    } else cell.acc = fold.add(cell.acc, value, timestamp, this.sequence, record);
    if (window.closed) this.#emit(window, cell, this.watermark);
    else if (trigger !== undefined) this.#trigger(window, cell);
  }

  #emit(window: Window, cell: Cell, watermark: Watermark): void {
    this.give(cell.acc, cell.key, window.end - 1, watermark, window.row);
  }

  protected override fire(): void {
    while (this.#due.isDue(this.watermark)) {
      const window = this.#due.pop();
      if (!window.closed) {
        window.closed = true;
        for (const cell of window.cells.values()) {
          if (!this.isPurged(cell.fresh)) this.#emit(window, cell, this.before);
        }
      }
      if (window.gone > this.watermark) {
        this.#due.push(window.gone, window);
        continue;
      }
      this.#windows.delete(window.row.start);
      this.context.gauges.stateEntries -= window.cells.size;
      if (window === this.#lastWindow) this.#lastPane = NaN;
    }
  }

  #trigger(window: Window, cell: Cell): void {
    const { early, every } = this.settings.trigger!;
    cell.fresh++;
    if (every !== undefined && cell.fresh >= every) this.#early(window, cell);
    else if (early !== undefined && this.#earlyAt === Infinity) {
      this.#earlyAt = this.context.clock.now() + early;
    }
  }

  #early(window: Window, cell: Cell): void {
    const { fold, trigger } = this.settings;
    this.give(cell.acc, cell.key, window.end - 1, this.watermark, { ...window.row, early: true });
    cell.fresh = 0;
    if (trigger!.purge) cell.acc = fold.create();
  }

  protected override onClock(now: number): void {
    if (now < this.#earlyAt) return;
    this.#earlyAt = Infinity;
    for (const window of this.#windows.values()) {
      if (window.closed) continue;
      for (const cell of window.cells.values()) if (cell.fresh > 0) this.#early(window, cell);
    }
  }

  protected override nextDue(): number {
    return this.time === "processing" ? Math.min(this.#due.earliest, this.#earlyAt) : this.#earlyAt;
  }
}
