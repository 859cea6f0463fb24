/**
 * Session windows: one per burst of activity of a key.
 *
 * N1 A session is [first record, last record + gap). Records exactly the gap apart are two sessions.
 * N2 A record that bridges sessions merges all it touches; the order of arrival does not matter.
 * N3 A session closed by a watermark takes no more records, even if one that follows in the same batch lies within its gap.
 *    Within the allowed lateness a closed session is still there: what joins it gives the whole merged row again.
 * N4 Lateness is that of the session the record would end up in.
 *
 * @module
 */
import { keyIdentity } from "../../key.ts";
import type { Batch, RecordContext, Watermark, WindowOfRow } from "../../record.ts";
import type { OperatorContext } from "../../runtime/operator.ts";
import type { SessionWindows } from "../../window/assigner.ts";
import { EndQueue } from "./end_queue.ts";
import { NO_SESSION, type SessionSlot, SessionStore } from "./session_store.ts";
import { windowOfRow, type WindowSettings } from "./settings.ts";
import { WindowOperator } from "./window_operator.ts";

/** Runs session windows. */
export class SessionWindowOperator extends WindowOperator {
  readonly #sessions = new SessionStore();
  /** Sessions by the end they had when they were put in; one that has grown is put back when its turn comes. */
  readonly #ends = new EndQueue();
  readonly #gap: number;
  #earlyAt = Infinity;
  // The youngest session of each record's key as the batch began, and the generation of its slot.
  #found = new Int32Array(0);
  #generations = new Int32Array(0);

  constructor(windows: SessionWindows, settings: WindowSettings, context: OperatorContext) {
    super(settings, context, settings.time);
    this.#gap = windows.gap;
  }

  protected override lookUp(batch: Batch): void {
    const { length } = batch, sessions = this.#sessions;
    if (this.#found.length < length) {
      this.#found = new Int32Array(length);
      this.#generations = new Int32Array(length);
    }
    const found = this.#found, generations = this.#generations;
    for (let i = 0; i < length; i++) {
      const slot = sessions.get(keyIdentity(batch.key(i)));
      found[i] = slot;
      if (slot !== NO_SESSION) generations[i] = sessions.generation[slot]!;
    }
  }

  /** The youngest session of a record's key. */
  #youngest(record: RecordContext): SessionSlot {
    if (this.time === "event") {
      const { index } = this.view, sessions = this.#sessions;
      const slot = this.#found[index]!;
      const isCurrent = slot !== NO_SESSION && sessions.generation[slot] === this.#generations[index] &&
        sessions.youngest[slot] === 1;
      if (isCurrent) return slot;
    }
    return this.#sessions.get(keyIdentity(record.key));
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number, own: Watermark): void {
    const { fold, trigger } = this.settings, sessions = this.#sessions, { starts, ends } = sessions;
    const youngest = this.#youngest(record);
    // The common case: the record prolongs the youngest session of its key, which neither time has closed.
    if (
      youngest !== NO_SESSION && timestamp >= starts[youngest]! && timestamp < ends[youngest]! &&
      ends[youngest]! > own && sessions.closed[youngest] === 0
    ) {
      sessions.accs[youngest] = fold.add(sessions.accs[youngest], value, timestamp, this.sequence, record);
      const end = timestamp + this.#gap;
      if (end > ends[youngest]!) ends[youngest] = end;
      if (trigger !== undefined) this.#trigger(youngest);
      return;
    }
    this.#place(value, record, youngest, timestamp, own);
  }

  /** Puts a record where it belongs: into a session of its own, or into the one that all it touches become. */
  #place(
    value: unknown,
    record: RecordContext,
    youngest: SessionSlot,
    timestamp: number,
    own: Watermark,
  ): void {
    const { fold, allowedLateness } = this.settings, sessions = this.#sessions;
    let start = timestamp, end = timestamp + this.#gap;
    const touched: SessionSlot[] = [];
    for (let slot = youngest; slot !== NO_SESSION; slot = sessions.older[slot]!) {
      if (timestamp < sessions.ends[slot]! && sessions.starts[slot]! < timestamp + this.#gap) {
        touched.push(slot);
      }
    }
    touched.reverse(); // the oldest first
    for (const slot of touched) {
      start = Math.min(start, sessions.starts[slot]!);
      end = Math.max(end, sessions.ends[slot]!);
    }
    const passed = Math.max(own, this.watermark);
    if (passed >= end + allowedLateness) return this.late(passed - end);
    let slot: SessionSlot, wasClosed = false;
    if (touched.length === 0) {
      const acc = fold.add(fold.create(), value, timestamp, this.sequence, record);
      slot = sessions.add(keyIdentity(record.key), record.key, start, end, acc);
      this.#await(end, slot);
    } else {
      slot = touched[0]!;
      wasClosed = sessions.closed[slot] === 1;
      if (touched.length === 1) {
        sessions.accs[slot] = fold.add(sessions.accs[slot], value, timestamp, this.sequence, record);
      } else {
        // All or nothing: the sessions are touched only when merging and adding have both gone well.
        let acc = fold.create();
        for (const part of touched) acc = fold.merge!(acc, sessions.accs[part]);
        sessions.accs[slot] = fold.add(acc, value, timestamp, this.sequence, record);
        for (const part of touched.slice(1)) {
          sessions.fresh[slot]! += sessions.fresh[part]!;
          sessions.remove(part);
        }
      }
      sessions.starts[slot] = start;
      sessions.ends[slot] = end;
    }
    this.context.gauges.stateEntries = sessions.size;
    const isClosed = end <= this.watermark;
    sessions.closed[slot] = isClosed ? 1 : 0;
    if (wasClosed && !isClosed) this.#await(end, slot);
    if (isClosed) this.#emit(slot, this.watermark);
    else if (this.settings.trigger !== undefined) this.#trigger(slot);
  }

  #await(time: number, slot: SessionSlot): void {
    this.#ends.push(time, slot, this.#sessions.generation[slot]!);
  }

  #emit(slot: SessionSlot, watermark: Watermark, early?: true): void {
    const { starts, ends, accs, keys } = this.#sessions;
    const plain = windowOfRow(starts[slot]!, ends[slot]!, this.settings.timezone);
    const window: WindowOfRow = early ? { ...plain, early } : plain;
    this.give(accs[slot], keys[slot], window.end - 1, watermark, window);
  }

  protected override fire(): void {
    const waiting = this.#ends, sessions = this.#sessions, { allowedLateness } = this.settings;
    for (let due = waiting.take(this.watermark); due !== undefined; due = waiting.take(this.watermark)) {
      const { slot, generation } = due;
      if (sessions.generation[slot] !== generation) continue; // merged into another since
      const end = sessions.ends[slot]!;
      if (sessions.closed[slot] === 0) {
        if (end > due.time) {
          waiting.push(end, slot, generation); // it has grown since
          continue;
        }
        sessions.closed[slot] = 1;
        if (!this.isPurged(sessions.fresh[slot]!)) this.#emit(slot, this.before);
      }
      if (end + allowedLateness > this.watermark) waiting.push(end + allowedLateness, slot, generation);
      else sessions.remove(slot);
    }
    this.context.gauges.stateEntries = sessions.size;
  }

  #trigger(slot: SessionSlot): void {
    const { early, every } = this.settings.trigger!;
    const fresh = ++this.#sessions.fresh[slot]!;
    if (every !== undefined && fresh >= every) this.#early(slot);
    else if (early !== undefined && this.#earlyAt === Infinity) {
      this.#earlyAt = this.context.clock.now() + early;
    }
  }

  #early(slot: SessionSlot): void {
    this.#emit(slot, this.watermark, true);
    this.#sessions.fresh[slot] = 0;
    if (this.settings.trigger!.purge) this.#sessions.accs[slot] = this.settings.fold.create();
  }

  protected override onClock(now: number): void {
    if (now < this.#earlyAt) return;
    this.#earlyAt = Infinity;
    const { closed, fresh } = this.#sessions;
    for (const slot of [...this.#sessions.slots()]) {
      if (closed[slot] === 0 && fresh[slot]! > 0) this.#early(slot);
    }
  }

  protected override nextDue(): number {
    return this.time === "processing" ? Math.min(this.#ends.earliest, this.#earlyAt) : this.#earlyAt;
  }
}
