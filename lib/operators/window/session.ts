/**
 * Session windows: one per burst of activity of a key.
 *
 * N1 A session is [first record, last record + gap). Records exactly the gap apart are two sessions.
 * N2 A record that bridges sessions merges all it touches; the order of arrival does not matter.
 * N3 A session closed by a watermark takes no more records, even if one that follows in the same batch lies within its gap.
 *    Within the allowed lateness a closed session is still there: what joins it gives the whole merged row again.
 * N4 Lateness is that of the session the record would end up in.
 * N5 State is one table, in which a key has its sessions. A cell is touched before a row is made of it, too: making one
 *    may mark records of it as left out.
 *
 * @module
 */
import { keyIdentity } from "../../key.ts";
import type { Batch, RecordContext, Watermark, WindowOfRow } from "../../record.ts";
import { keyedState, type OperatorContext } from "../../runtime/operator.ts";
import type { Table } from "../../state/log/mod.ts";
import type { SessionWindows } from "../../window/assigner.ts";
import { EndQueue } from "./end_queue.ts";
import {
  hasSession,
  NO_SESSIONS,
  type Session,
  type SessionCell,
  sessionsOf,
  setSessions,
} from "./session_store.ts";
import { windowOfRow, type WindowSettings } from "./settings.ts";
import { WindowOperator } from "./window_operator.ts";

/** Runs session windows. */
export class SessionWindowOperator extends WindowOperator {
  readonly #table: Table<Session>;
  /** Sessions by the end they had when they were put in; one that has grown is put back when its turn comes. */
  readonly #ends: EndQueue;
  readonly #gap: number;
  #earlyAt = Infinity;
  /** What the key of each record of the batch had as the batch began. */
  #found: (SessionCell | undefined)[] = [];
  /** Where the youngest session of each ended then. Read ahead, as cells are, so that it is near when its record's turn comes. */
  #youngestEnds = new Float64Array(0);

  constructor(windows: SessionWindows, settings: WindowSettings, context: OperatorContext) {
    super(settings, context, settings.time);
    this.#gap = windows.gap;
    this.#ends = new EndQueue(settings.allowedLateness);
    this.#table = keyedState(context).space<Session>("sessions").table();
  }

  protected override restoreOwn(): void {
    const { trigger } = this.settings, { gauges, clock } = this.context;
    let isFresh = false;
    for (const cell of this.#table.cells()) {
      const sessions = sessionsOf(cell);
      gauges.stateEntries += sessions.length;
      for (const session of sessions) {
        const { end, closed, fresh } = session;
        this.#ends.push({ time: end, cell, session });
        if (!closed && fresh > 0) isFresh = true;
      }
    }
    if (isFresh && trigger?.early !== undefined) this.#earlyAt = clock.now() + trigger.early;
    this.fire(); // a former instance may not have come as far
  }

  protected override lookUp(batch: Batch): void {
    const found = new Array<SessionCell | undefined>(batch.length), table = this.#table;
    for (let i = 0; i < found.length; i++) found[i] = table.edit(keyIdentity(batch.key(i)));
    this.#found = found;
    const ends = this.#youngestEnds.length < found.length
      ? this.#youngestEnds = new Float64Array(found.length)
      : this.#youngestEnds;
    for (let i = 0; i < found.length; i++) ends[i] = found[i]?.value.end ?? NaN;
  }

  /** What the key of a record has, to be changed. */
  #cellOf(record: RecordContext): SessionCell | undefined {
    if (this.time === "event") {
      const cell = this.#found[this.view.index];
      if (cell !== undefined && cell.value !== undefined) return cell; // not removed since
    }
    return this.#table.edit(keyIdentity(record.key));
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number, own: Watermark): void {
    const cell = this.#cellOf(record);
    if (cell !== undefined) {
      const youngest = cell.value, { end } = youngest;
      // The common case: the record prolongs the youngest session of its key, which neither time has closed.
      if (timestamp < end && timestamp >= youngest.start && end > own && !youngest.closed) {
        const { fold, trigger } = this.settings, until = timestamp + this.#gap;
        youngest.acc = fold.add(youngest.acc, value, timestamp, this.sequence, record);
        if (until > end) youngest.end = until;
        if (trigger !== undefined) this.#trigger(cell, youngest);
        return;
      }
    }
    this.#place(value, record, cell, timestamp, own);
  }

  /** Puts a record where it belongs: into a session of its own, or into the one that all it touches become. */
  #place(
    value: unknown,
    record: RecordContext,
    known: SessionCell | undefined,
    timestamp: number,
    own: Watermark,
  ): void {
    const { allowedLateness, trigger } = this.settings;
    let start = timestamp, end = timestamp + this.#gap;
    const until = end, all = known === undefined ? [] : sessionsOf(known);
    const touched = all.filter((session) => timestamp < session.end && session.start < until);
    for (const session of touched) {
      start = Math.min(start, session.start);
      end = Math.max(end, session.end);
    }
    const passed = Math.max(own, this.watermark);
    if (passed >= end + allowedLateness) return this.late(passed - end);
    const first = touched[0];
    if (first === undefined) return this.#begin(value, record, known, timestamp);
    const cell = known!, wasClosed = first.closed;
    first.acc = this.#merged(touched, value, record, timestamp);
    if (touched.length > 1) this.#absorb(cell, touched);
    first.start = start;
    first.end = end;
    first.closed = end <= this.watermark;
    if (wasClosed && !first.closed) this.#ends.push({ time: end, cell, session: first });
    if (first.closed) this.#emit(cell, first, this.watermark);
    else if (trigger !== undefined) this.#trigger(cell, first);
  }

  /** A session of its own for a record. */
  #begin(value: unknown, record: RecordContext, known: SessionCell | undefined, timestamp: number): void {
    const { fold, trigger } = this.settings, end = timestamp + this.#gap;
    const session: Session = {
      start: timestamp,
      end,
      acc: fold.add(fold.create(), value, timestamp, this.sequence, record),
      closed: end <= this.watermark,
      fresh: trigger === undefined ? 1 : 0,
      older: NO_SESSIONS,
    };
    let cell = known;
    if (cell === undefined) cell = this.#table.add(keyIdentity(record.key), record.key, session);
    else setSessions(cell, [...sessionsOf(cell), session]);
    this.context.gauges.stateEntries++;
    this.#ends.push({ time: end, cell, session });
    if (session.closed) this.#emit(cell, session, this.watermark);
    else if (trigger !== undefined) this.#trigger(cell, session);
  }

  /** All touched sessions and the record. All or nothing: none is changed unless merging and adding have both gone well. */
  #merged(touched: readonly Session[], value: unknown, record: RecordContext, timestamp: number): unknown {
    const { fold } = this.settings;
    let acc: unknown;
    if (touched.length === 1) acc = touched[0]!.acc;
    else {
      acc = fold.create();
      for (const part of touched) acc = fold.merge!(acc, part.acc);
    }
    return fold.add(acc, value, timestamp, this.sequence, record);
  }

  /** The first of the sessions stands for all from now on. */
  #absorb(cell: SessionCell, [first, ...others]: readonly Session[]): void {
    for (const { fresh } of others) first!.fresh += fresh;
    setSessions(cell, sessionsOf(cell).filter((session) => !others.includes(session)));
    this.context.gauges.stateEntries -= others.length;
  }

  /** The cell has been touched. */
  #emit({ key }: SessionCell, { start, end, acc }: Session, watermark: Watermark, early?: true): void {
    const plain = windowOfRow(start, end, this.settings.timezone);
    const window: WindowOfRow = early ? { ...plain, early } : plain;
    this.give(acc, key, end - 1, watermark, window);
  }

  protected override fire(): void {
    const waiting = this.#ends, { allowedLateness } = this.settings;
    for (let due = waiting.take(this.watermark); due !== undefined; due = waiting.take(this.watermark)) {
      const { cell, session } = due, { end, closed } = session;
      if (!closed && end > due.time) {
        due.time = end; // it has grown since
        waiting.push(due);
        continue;
      }
      if (!hasSession(cell, session)) continue;
      if (!closed) {
        this.#table.touch(cell);
        session.closed = true;
        if (!this.isPurged(session.fresh)) this.#emit(cell, session, this.before);
      }
      if (end + allowedLateness > this.watermark) {
        due.time = end + allowedLateness;
        waiting.push(due);
      } else this.#forget(cell, session);
    }
  }

  #forget(cell: SessionCell, session: Session): void {
    if (cell.value.older.length === 0) this.#table.remove(cell);
    else {
      this.#table.touch(cell);
      setSessions(cell, sessionsOf(cell).filter((other) => other !== session));
    }
    this.context.gauges.stateEntries--;
  }

  #trigger(cell: SessionCell, session: Session): void {
    const { early, every } = this.settings.trigger!;
    session.fresh++;
    if (every !== undefined && session.fresh >= every) this.#early(cell, session);
    else if (early !== undefined && this.#earlyAt === Infinity) {
      this.#earlyAt = this.context.clock.now() + early;
    }
  }

  #early(cell: SessionCell, session: Session): void {
    this.#table.touch(cell);
    this.#emit(cell, session, this.watermark, true);
    session.fresh = 0;
    if (this.settings.trigger!.purge) session.acc = this.settings.fold.create();
  }

  protected override onClock(now: number): void {
    if (now < this.#earlyAt) return;
    this.#earlyAt = Infinity;
    for (const cell of this.#table.cells()) {
      for (const session of sessionsOf(cell)) {
        if (!session.closed && session.fresh > 0) this.#early(cell, session);
      }
    }
  }

  protected override nextDue(): number {
    return this.time === "processing" ? Math.min(this.#ends.earliest, this.#earlyAt) : this.#earlyAt;
  }
}
