/**
 * Sliding windows over panes: a record is added to one accumulator whatever the ratio of size to slide, and a row merges panes
 * two-stacks fashion, a constant number of merges a row on average.
 *
 * D1 A record goes into exactly one pane. Panes are merged in the order of time.
 * D2 When a window closes, its new panes are taken into the queue of each key they hold. A queue has two stacks: `front` holds,
 *    for each pane of the older part, the merge of it and all younger ones of that part; `back` the merge of the younger
 *    part. A row is front + back; moving on drops from front, adds to back, and turns back into front when that is used up.
 * D3 A key with a record that came into a pane already taken in, or that is too late for some of the windows of its pane (but
 *    not all), is irregular until that pane has left: its rows are merged pane by pane.
 * D4 Windows close in the order of their starts, each once for every key that has a record in it. Stretches without records
 *    are skipped, not walked through.
 * D5 Panes of a key that cannot be merged (an aggregate refuses) make it irregular: only the rows they are in fail.
 * D6 State is a table per pane, by its start, and one more for what counts only for some of its windows. The queues are made of
 *    them: after a restore all panes are there to be taken again, in the order of time.
 *
 * @module
 */
import { type KeyIdentity, keyIdentity } from "../../key.ts";
import type { Batch, RecordContext, Watermark, WindowOfRow } from "../../record.ts";
import { keyedState, type OperatorContext } from "../../runtime/operator.ts";
import type { Cell, Partition, SpaceHandle, Table } from "../../state/log/mod.ts";
import type { PaneWindows } from "../../window/assigner.ts";
import { type FormerInstance, formerInstance, FormerInstances } from "./former.ts";
import { windowOfRow, type WindowSettings } from "./settings.ts";
import { WindowOperator } from "./window_operator.ts";

/** Records of a key in a pane that count only for windows from a certain one on. */
interface Restricted {
  /** Start of that window. */
  readonly from: number;
  acc: unknown;
}

/** The records between two neighbouring starts or ends of windows. */
interface Pane {
  readonly start: number;
  /** Accumulators by key. */
  readonly table: Table;
  /** Of a key, those that came first are first. */
  restricted: Table<Restricted[]> | undefined;
  /** Whether it has been taken into the queues. */
  taken: boolean;
}

/** The closed panes of one key, oldest first. */
class PaneQueue {
  readonly starts: number[] = [];
  readonly accs: unknown[] = [];
  /** Panes before it have left. */
  head = 0;
  /** `front[i]`, head ≤ i < turn: merge of panes i … turn − 1. */
  front: unknown[] = [];
  turn = 0;
  /** Merge of the panes from `turn` on; undefined when there are none. */
  back: unknown = undefined;
  /** Start of the youngest pane that makes the key irregular. */
  irregularUntil = -Infinity;

  constructor(readonly key: unknown) {}
}

/** Runs mergeable sliding windows. */
export class SlidingWindowOperator extends WindowOperator {
  readonly #state: Partition;
  readonly #tables: SpaceHandle;
  readonly #restrictedTables: SpaceHandle<Restricted[]>;
  readonly #panes = new Map<number, Pane>();
  readonly #queues = new Map<KeyIdentity, PaneQueue>();
  /** Start of the next window to close; NaN while no pane asks for one. */
  #next = NaN;
  /** End of that window. */
  #due = Infinity;
  /** Greatest start of a pane. */
  #youngest = -Infinity;
  #lastStart = NaN;
  #last: Pane | undefined;
  /** The cell of each record of the batch, to be changed, where its pane had one. */
  #found: (Cell | undefined)[] = [];

  constructor(private readonly windows: PaneWindows, settings: WindowSettings, context: OperatorContext) {
    super(settings, context, settings.time);
    this.#state = keyedState(context);
    this.#tables = this.#state.space("panes");
    this.#restrictedTables = this.#state.space("restricted");
  }

  protected override snapshotOwn(): FormerInstance {
    return formerInstance(this.#state, this.watermark);
  }

  protected override restoreOwn(own: readonly unknown[]): void {
    const former = new FormerInstances(own, this.context.maxKeyGroups), { gauges } = this.context;
    this.watermark = Math.max(this.watermark, former.furthest);
    for (const table of this.#restrictedTables.tables()) {
      if (table.live > 0) this.#tables.table(table.order);
      else table.drop(); // all its keys are in other partitions now
    }
    for (const table of this.#tables.tables()) {
      const start = table.order;
      if (table.live === 0 && this.#restrictedTables.existing(start) === undefined) {
        table.drop();
        continue;
      }
      const pane = this.#add(start);
      gauges.stateEntries += table.live;
      for (const { identity, key, value } of pane.restricted?.cells() ?? []) {
        gauges.stateEntries += value.length;
        this.#irregular(this.#queue(identity, key), start);
      }
      this.#reach(this.windows.firstWindow(start));
    }
    if (!(this.#next <= this.#youngest)) this.#rest();
    if (former.differ) this.#giveOwed(former);
  }

  /** Rows of windows that a former instance had not come to close. */
  #giveOwed(former: FormerInstances): void {
    const { windows } = this, given = new Map<KeyIdentity, number>();
    const panes = [...this.#panes.values()].sort((a, b) => a.start - b.start);
    for (const { start, table, restricted } of panes) {
      for (const { identity, key } of [...table.cells(), ...restricted?.cells() ?? []]) {
        const givenTo = former.givenTo(identity);
        for (let window = windows.firstWindow(start); window <= start; window = windows.nextWindow(window)) {
          const end = windows.windowEnd(window);
          if (end <= givenTo || end > this.watermark || window <= (given.get(identity) ?? -Infinity)) {
            continue;
          }
          given.set(identity, window);
          this.#emitPanes(identity, key, window, this.before);
        }
      }
    }
  }

  protected override lookUp(batch: Batch): void {
    const { windows } = this, found = new Array<Cell | undefined>(batch.length);
    let pane: Pane | undefined, start = NaN, end = NaN;
    for (let i = 0; i < found.length; i++) {
      const timestamp = batch.timestamp(i);
      if (!(timestamp >= start && timestamp < end)) {
        start = windows.paneStart(timestamp);
        end = windows.paneEnd(start);
        pane = this.#panes.get(start);
      }
      found[i] = pane?.table.edit(keyIdentity(batch.key(i)));
    }
    this.#found = found;
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number, own: Watermark): void {
    const { windows } = this, { allowedLateness, fold } = this.settings;
    const start = windows.paneStart(timestamp);
    const first = windows.firstWindow(start);
    // The first of the pane's windows that this record is not too late for.
    let from = first, tooLate = -Infinity;
    const passed = Math.max(own, this.watermark) - allowedLateness;
    for (let end = windows.windowEnd(from); end <= passed; end = windows.windowEnd(from)) {
      tooLate = end;
      from = windows.nextWindow(from);
      if (from <= start) continue;
      this.late(Math.max(own, this.watermark) - end);
      return;
    }
    const pane = start === this.#lastStart ? this.#last! : this.#pane(start);
    // Windows that are gone will not be asked for; those that others may still be given rows of must not count this record.
    const isRestricted = tooLate > this.watermark - allowedLateness;
    const found = isRestricted ? undefined : this.#found[this.view.index];
    const identity = found === undefined ? keyIdentity(record.key) : found.identity;
    if (isRestricted) this.#addRestricted(pane, from, identity, value, record, timestamp);
    else {
      const { table } = pane, cell = found ?? table.edit(identity);
      if (cell !== undefined) cell.value = fold.add(cell.value, value, timestamp, this.sequence, record);
      else {
        const acc = fold.add(fold.create(), value, timestamp, this.sequence, record);
        table.add(identity, record.key, acc);
        this.context.gauges.stateEntries++;
      }
    }
    if (!(first >= this.#next)) this.#reach(from);
    if (pane.taken || isRestricted) this.#irregular(this.#queue(identity, record.key), start);
    // Windows that have closed and still take records give their row again, or for the first time.
    for (let window = from; window <= start && windows.windowEnd(window) <= this.watermark;) {
      this.#emitPanes(identity, record.key, window, this.watermark);
      window = windows.nextWindow(window);
    }
  }

  #addRestricted(
    pane: Pane,
    from: number,
    identity: KeyIdentity,
    value: unknown,
    record: RecordContext,
    timestamp: number,
  ): void {
    const { fold } = this.settings;
    const table = pane.restricted ??= this.#restrictedTables.table(pane.start);
    const cell = table.edit(identity), known = cell?.value.find((some) => some.from === from);
    if (known !== undefined) {
      known.acc = fold.add(known.acc, value, timestamp, this.sequence, record);
      return;
    }
    const added = { from, acc: fold.add(fold.create(), value, timestamp, this.sequence, record) };
    if (cell === undefined) table.add(identity, record.key, [added]);
    else cell.value.push(added);
    this.context.gauges.stateEntries++;
  }

  /** Until the pane that starts at `start` has left, rows of the key are merged pane by pane. */
  #irregular(queue: PaneQueue, start: number): void {
    if (start > queue.irregularUntil) queue.irregularUntil = start;
  }

  #pane(start: number): Pane {
    const pane = this.#panes.get(start) ?? this.#add(start);
    this.#lastStart = start;
    return this.#last = pane;
  }

  #add(start: number): Pane {
    const pane: Pane = {
      start,
      table: this.#tables.table(start),
      restricted: this.#restrictedTables.existing(start),
      taken: start < this.#takenTo, // its turn has been
    };
    this.#panes.set(start, pane);
    if (start > this.#youngest) this.#youngest = start;
    return pane;
  }
  /** Panes that start before this have been taken in. */
  #takenTo = -Infinity;

  #queue(identity: KeyIdentity, key: unknown): PaneQueue {
    let queue = this.#queues.get(identity);
    if (queue === undefined) this.#queues.set(identity, queue = new PaneQueue(key));
    return queue;
  }

  /** Sees to it that `window`, or the first one behind it that has not closed, will close. */
  #reach(window: number): void {
    let start = window;
    while (this.windows.windowEnd(start) <= this.watermark) start = this.windows.nextWindow(start);
    if (start >= this.#next) return;
    this.#next = start;
    this.#due = this.windows.windowEnd(start);
  }

  protected override fire(): void {
    const { windows } = this;
    while (this.#due < Infinity && this.watermark >= this.#due) {
      const start = this.#next, end = this.#due;
      this.#take(end);
      for (const [identity, queue] of this.#queues) this.#close(identity, queue, start);
      this.#forget(start);
      this.#next = this.#queues.size > 0 ? windows.nextWindow(start) : this.#afterGap(start);
      if (this.#next <= this.#youngest) this.#due = windows.windowEnd(this.#next);
      else this.#rest();
    }
  }

  /** No window is to close until a record asks for one. */
  #rest(): void {
    this.#next = NaN;
    this.#due = Infinity;
  }

  /** The first window behind `start` that has a record in it, when no closed pane reaches into it. NaN when there is none. */
  #afterGap(start: number): number {
    let oldest = Infinity;
    for (const pane of this.#panes.values()) if (!pane.taken && pane.start < oldest) oldest = pane.start;
    return oldest === Infinity
      ? NaN
      : Math.max(this.windows.nextWindow(start), this.windows.firstWindow(oldest));
  }

  /** Takes the panes before `end` into the queues of their keys. */
  #take(end: number): void {
    this.#takenTo = end;
    const ready = [...this.#panes.values()].filter((pane) => !pane.taken && pane.start < end)
      .sort((a, b) => a.start - b.start);
    for (const pane of ready) {
      pane.taken = true;
      for (const { identity, key, value: acc } of pane.table.cells()) {
        const queue = this.#queue(identity, key);
        queue.starts.push(pane.start);
        queue.accs.push(acc);
        try {
          queue.back = queue.back === undefined ? this.#copy(acc) : this.#merge(queue.back, acc);
        } catch {
          this.#irregular(queue, pane.start); // the rows it is in say what is wrong with it
        }
      }
    }
  }

  #close(identity: KeyIdentity, queue: PaneQueue, start: number): void {
    const { starts } = queue;
    while (queue.head < starts.length && starts[queue.head]! < start) queue.head++;
    if (queue.irregularUntil >= start) return this.#emitPanes(identity, queue.key, start, this.before);
    if (queue.head === starts.length) {
      this.#queues.delete(identity);
      return;
    }
    let merged: unknown;
    try {
      if (queue.turn < queue.head) this.#turn(queue);
      const { front, head, turn, back } = queue;
      merged = head === turn
        ? back
        : back === undefined
        ? front[head]
        : this.#merge(this.#copy(front[head]), back);
    } catch {
      this.#irregular(queue, starts.at(-1)!); // merging pane by pane says what is wrong, and of which row
      return this.#emitPanes(identity, queue.key, start, this.before);
    }
    this.#emit(queue.key, start, merged, this.before);
  }

  /** The younger part becomes the older one: D2. What has left is let go. */
  #turn(queue: PaneQueue): void {
    const { starts, accs, head } = queue;
    starts.splice(0, head);
    accs.splice(0, head);
    queue.head = queue.turn = 0;
    queue.front = [];
    const turn = accs.length, front = new Array<unknown>(turn);
    for (let at = turn - 1; at >= 0; at--) {
      const acc = this.#copy(accs[at]);
      front[at] = at === turn - 1 ? acc : this.#merge(acc, front[at + 1]);
    }
    queue.front = front;
    queue.turn = turn;
    queue.back = undefined;
  }

  #merge(a: unknown, b: unknown): unknown {
    return this.settings.fold.merge!(a, b);
  }
  #copy(acc: unknown): unknown {
    return this.#merge(this.settings.fold.create(), acc);
  }

  /** The panes of a window one by one; undefined where the key has none in it. */
  #mergePanes(identity: KeyIdentity, window: number): unknown {
    const end = this.windows.windowEnd(window);
    const inside = [...this.#panes.values()].filter(({ start }) => start >= window && start < end)
      .sort((a, b) => a.start - b.start);
    let merged: unknown;
    const take = (acc: unknown) => {
      merged = merged === undefined ? this.#copy(acc) : this.#merge(merged, acc);
    };
    for (const { table, restricted } of inside) {
      const cell = table.get(identity);
      if (cell !== undefined) take(cell.value);
      for (const { from, acc } of restricted?.get(identity)?.value ?? []) if (from <= window) take(acc);
    }
    return merged;
  }

  #emit(key: unknown, start: number, acc: unknown, watermark: Watermark): void {
    const window = this.#window(start);
    this.give(acc, key, window.end - 1, watermark, window);
  }

  /** The row of an irregular key, if it has a record in the window. */
  #emitPanes(identity: KeyIdentity, key: unknown, start: number, watermark: Watermark): void {
    let merged: unknown;
    try {
      merged = this.#mergePanes(identity, start);
    } catch (error) {
      const window = this.#window(start);
      return this.rowFailed(error, key, window.end - 1, window);
    }
    if (merged !== undefined) this.#emit(key, start, merged, watermark);
  }

  #window(start: number): WindowOfRow {
    if (this.#row.start === start) return this.#row;
    return this.#row = windowOfRow(start, this.windows.windowEnd(start), this.settings.timezone);
  }
  #row: WindowOfRow = windowOfRow(NaN, NaN, undefined);

  /** Drops panes whose windows have all closed and are past the allowed lateness. */
  #forget(closed: number): void {
    const { windows } = this;
    const limit = this.watermark - this.settings.allowedLateness;
    let oldest = windows.nextWindow(closed); // first window that may still want its panes
    if (Number.isFinite(limit)) oldest = Math.min(oldest, windows.firstWindow(windows.paneStart(limit)));
    this.#drop(oldest);
  }

  /** No record comes any more. */
  protected override complete(): void {
    super.complete();
    this.#drop(Infinity);
  }

  /** Drops the panes that start before `oldest`. */
  #drop(oldest: number): void {
    for (const [start, pane] of this.#panes) {
      if (start >= oldest) continue;
      this.#panes.delete(start);
      if (pane === this.#last) this.#lastStart = NaN;
      const { table, restricted } = pane, { gauges } = this.context;
      gauges.stateEntries -= table.live;
      table.drop();
      if (restricted === undefined) continue;
      for (const { value } of restricted.cells()) gauges.stateEntries -= value.length;
      restricted.drop();
    }
  }

  protected override nextDue(): number {
    return this.time === "processing" ? this.#due : Infinity;
  }
}
