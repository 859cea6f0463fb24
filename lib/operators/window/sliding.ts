/**
 * Sliding windows over panes: a record is added to one accumulator whatever the ratio of size to slide, and a row merges panes
 * two-stacks fashion, a constant number of merges a row on average.
 *
 * D1 A record goes into exactly one pane of its key. Panes are merged in the order of time.
 * D2 A key's closed panes lie in two stacks: `front` holds, for each pane of the older part, the merge of it and all younger
 *    ones of that part; `back` the merge of the younger part. A row is front + back; moving on takes from front, adds to back,
 *    and turns back into front when that is used up.
 * D3 A record that changes a closed pane, or that is too late for some of the windows of its pane (but not all), makes its key
 *    irregular: rows are then merged pane by pane until those panes are gone.
 * D4 Windows close in the order of their starts, each once for every key that has a record in it.
 *
 * @module
 */
import { keyIdentity } from "../../key.ts";
import type { RecordContext, Watermark } from "../../record.ts";
import type { OperatorContext } from "../../runtime/operator.ts";
import type { PaneWindows } from "../../window/assigner.ts";
import { EventTimeOperator } from "../event_time_operator.ts";
import { type WindowSettings, windowOfRow } from "./settings.ts";

/** The panes of a key, oldest first. */
class KeyPanes {
  readonly starts: number[] = [];
  readonly accs: unknown[] = [];
  /** First window a pane's records count for, where that is not the first that contains it. */
  from: (number | undefined)[] | undefined;
  /** `front[i]`, i < turn: merge of panes i … turn − 1. Entries before `head` are gone. */
  front: unknown[] = [];
  turn = 0;
  /** Merge of panes turn … closed − 1. */
  back: unknown = undefined;
  /** Number of panes that are in the stacks. */
  closed = 0;
  /** Panes before it belong to no window that is still to close. */
  head = 0;
  irregular = false;

  constructor(readonly key: unknown) {}
}

/** Runs mergeable sliding windows. */
export class SlidingWindowOperator extends EventTimeOperator {
  readonly #keys = new Map<unknown, KeyPanes>();
  /** Start of the next window to close. NaN before the first record. */
  #next = NaN;
  /** Greatest start of a pane that has records. */
  #youngest = -Infinity;
  #due = Infinity;
  readonly #merge: (a: unknown, b: unknown) => unknown;

  constructor(
    private readonly windows: PaneWindows,
    private readonly settings: WindowSettings,
    context: OperatorContext,
  ) {
    super(context, settings.time);
    this.#merge = (a, b) => settings.fold.merge!(a, b);
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number, own: Watermark): void {
    const { windows } = this, { allowedLateness } = this.settings;
    const pane = windows.paneStart(timestamp);
    const first = windows.firstWindow(pane);
    // The first of the pane's windows that this record is not too late for.
    let from = first, tooLate = -Infinity;
    const passed = Math.max(own, this.watermark) - allowedLateness;
    for (let end = windows.windowEnd(from); end <= passed; end = windows.windowEnd(from)) {
      tooLate = end;
      from = windows.nextWindow(from);
      if (from <= pane) continue;
      this.late(Math.max(own, this.watermark) - end);
      return;
    }
    // Windows that are gone will not be asked for; those that others may still be given rows of must not count this record.
    const counts = tooLate > this.watermark - allowedLateness ? from : undefined;
    const identity = keyIdentity(record.key);
    let panes = this.#keys.get(identity);
    if (panes !== undefined) this.#add(panes, pane, counts, value, record, timestamp);
    else {
      panes = new KeyPanes(record.key);
      this.#add(panes, pane, counts, value, record, timestamp); // a failing record leaves no key behind
      this.#keys.set(identity, panes);
    }
    if (pane > this.#youngest) this.#youngest = pane;
    if (!(first >= this.#next)) this.#reach(from);
    if (allowedLateness > 0) this.#update(panes, from, pane, own);
  }

  /** The next window to close is not after `window`, unless that has closed. */
  #reach(window: number): void {
    let start = window;
    while (this.windows.windowEnd(start) <= this.watermark) start = this.windows.nextWindow(start);
    if (start >= this.#next) return;
    this.#next = start;
    this.#due = this.windows.windowEnd(start);
  }

  #add(
    panes: KeyPanes,
    start: number,
    from: number | undefined,
    value: unknown,
    record: RecordContext,
    timestamp: number,
  ): void {
    const { fold } = this.settings;
    const { starts, accs } = panes;
    let at = starts.length - 1;
    while (at >= 0 && starts[at]! > start) at--;
    while (at >= 0 && starts[at] === start && panes.from?.[at] !== from) at--;
    if (at >= 0 && starts[at] === start) {
      accs[at] = fold.add(accs[at], value, timestamp, this.sequence, record);
    } else {
      at++;
      const acc = fold.add(fold.create(), value, timestamp, this.sequence, record);
      if (from !== undefined) panes.from ??= new Array(starts.length);
      if (at === starts.length) {
        starts.push(start);
        accs.push(acc);
        panes.from?.push(from);
      } else {
        starts.splice(at, 0, start);
        accs.splice(at, 0, acc);
        panes.from?.splice(at, 0, from);
        if (at < panes.head) panes.head++;
      }
      this.context.gauges.stateEntries++;
    }
    if (at < panes.closed || from !== undefined) panes.irregular = true;
  }

  /** Gives the changed rows of the windows that had closed before this record came, within the allowed lateness. */
  #update(panes: KeyPanes, from: number, pane: number, own: Watermark): void {
    const { windows } = this;
    for (let start = from; start <= pane && windows.windowEnd(start) <= this.watermark; start = windows.nextWindow(start)) {
      panes.irregular = true;
      this.#emit(panes, start, this.#mergeAll(panes, start), own);
    }
  }

  protected override fire(): void {
    const { windows } = this;
    while (this.watermark >= this.#due) {
      const start = this.#next, end = this.#due;
      for (const panes of this.#keys.values()) this.#close(panes, start, end);
      this.#next = windows.nextWindow(start);
      this.#due = this.#next > this.#youngest ? Infinity : windows.windowEnd(this.#next);
      if (this.#due === Infinity) this.#next = NaN;
      this.#forget(start);
    }
  }

  #close(panes: KeyPanes, start: number, end: number): void {
    const { starts } = panes;
    if (panes.irregular) {
      const merged = this.#mergeAll(panes, start);
      if (merged !== NOTHING) this.#emit(panes, start, merged, this.before);
      return;
    }
    while (panes.head < starts.length && starts[panes.head]! < start) panes.head++;
    if (panes.head >= starts.length || starts[panes.head]! >= end) return;
    if (panes.turn < panes.head) this.#turn(panes);
    for (; panes.closed < starts.length && starts[panes.closed]! < end; panes.closed++) {
      const acc = panes.accs[panes.closed];
      panes.back = panes.closed === panes.turn ? this.#copy(acc) : this.#merge(panes.back, acc);
    }
    const hasFront = panes.head < panes.turn, hasBack = panes.turn < panes.closed;
    if (!hasFront) this.#emit(panes, start, panes.back, this.before);
    else if (!hasBack) this.#emit(panes, start, panes.front[panes.head], this.before);
    else this.#emit(panes, start, this.#merge(this.#copy(panes.front[panes.head]), panes.back), this.before);
  }

  /** The younger part becomes the older one: D2. */
  #turn(panes: KeyPanes): void {
    const { accs, head, closed } = panes;
    const turn = Math.max(closed, head);
    panes.front.length = turn;
    for (let at = turn - 1; at >= head; at--) {
      const acc = this.#copy(accs[at]);
      panes.front[at] = at === turn - 1 ? acc : this.#merge(acc, panes.front[at + 1]);
    }
    panes.turn = panes.closed = turn;
    panes.back = undefined;
  }

  #copy(acc: unknown): unknown {
    return this.#merge(this.settings.fold.create(), acc);
  }

  /** The panes of a window one by one; NOTHING where the key has none in it. */
  #mergeAll(panes: KeyPanes, start: number): unknown {
    const end = this.windows.windowEnd(start);
    let merged: unknown = NOTHING;
    for (let at = 0; at < panes.starts.length; at++) {
      const pane = panes.starts[at]!, from = panes.from?.[at];
      if (pane < start || pane >= end || (from !== undefined && from > start)) continue;
      merged = this.#merge(merged === NOTHING ? this.settings.fold.create() : merged, panes.accs[at]);
    }
    return merged;
  }

  #emit(panes: KeyPanes, start: number, acc: unknown, watermark: Watermark): void {
    const { fold, rows, timezone } = this.settings;
    const end = this.windows.windowEnd(start);
    const window = this.#row.start === start && this.#row.end === end ? this.#row : windowOfRow(start, end, timezone);
    this.#row = window;
    for (const row of rows(fold.result(acc), panes.key, window)) {
      this.rows.add(row, panes.key, end - 1, watermark, window);
    }
  }
  #row = windowOfRow(NaN, NaN, undefined);

  /** Drops panes whose windows are all closed and past the allowed lateness. */
  #forget(closed: number): void {
    const { windows } = this;
    const limit = this.watermark - this.settings.allowedLateness;
    let oldest = windows.nextWindow(closed); // first window that may still want its panes
    if (Number.isFinite(limit)) oldest = Math.min(oldest, windows.firstWindow(windows.paneStart(limit)));
    for (const [identity, panes] of this.#keys) {
      const { starts } = panes;
      let gone = 0;
      while (gone < starts.length && starts[gone]! < oldest) gone++;
      // Taken out in one go once half of the list is gone, so that moving the rest costs little.
      if (gone === 0 || gone * 2 < starts.length) continue;
      this.context.gauges.stateEntries -= gone;
      if (gone === starts.length) {
        this.#keys.delete(identity);
        continue;
      }
      starts.splice(0, gone);
      panes.accs.splice(0, gone);
      panes.from?.splice(0, gone);
      panes.front.splice(0, gone);
      panes.head = Math.max(0, panes.head - gone);
      panes.turn = Math.max(0, panes.turn - gone);
      panes.closed = Math.max(0, panes.closed - gone);
      if (panes.irregular && !panes.from?.some((from) => from !== undefined)) {
        panes.irregular = false; // what is left is as it came: the stacks are built anew
        panes.turn = panes.closed = 0;
        panes.front.length = 0;
      }
    }
  }

  protected override nextDue(): number {
    return this.time === "processing" ? this.#due : Infinity;
  }
}

const NOTHING = Symbol("no pane");
