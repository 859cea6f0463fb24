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
import { TimeHeap } from "../../heap.ts";
import { keyIdentity } from "../../key.ts";
import type { RecordContext, Watermark, WindowOfRow } from "../../record.ts";
import type { OperatorContext } from "../../runtime/operator.ts";
import type { SessionWindows } from "../../window/assigner.ts";
import { EventTimeOperator } from "../event_time_operator.ts";
import { type WindowSettings, windowOfRow } from "./settings.ts";

/** A session of a key. */
class Session {
  closed = false;
  /** Merged into another, or forgotten. */
  dead = false;
  fresh = 0;

  constructor(readonly owner: KeySessions, public start: number, public end: number, public acc: unknown) {}
}

/** The sessions of a key: nearly always one. */
class KeySessions {
  readonly list: Session[] = [];

  constructor(readonly key: unknown, readonly identity: unknown) {}
}

/** Runs session windows. */
export class SessionWindowOperator extends EventTimeOperator {
  readonly #keys = new Map<unknown, KeySessions>();
  /** Sessions by the end they had when they were put in; one that has grown is put back when its turn comes. */
  readonly #ends = new TimeHeap<Session>();
  readonly #gap: number;
  readonly #merge: (a: unknown, b: unknown) => unknown;
  #earlyAt = Infinity;

  constructor(windows: SessionWindows, private readonly settings: WindowSettings, context: OperatorContext) {
    super(context, settings.time);
    this.#gap = windows.gap;
    this.#merge = (a, b) => settings.fold.merge!(a, b);
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number, own: Watermark): void {
    const { fold, trigger, allowedLateness } = this.settings;
    const identity = keyIdentity(record.key);
    const gap = this.#gap, end = timestamp + gap;
    let owner = this.#keys.get(identity);
    // The common case: the record prolongs the youngest session of its key.
    const youngest = owner?.list.at(-1);
    if (
      youngest !== undefined && !youngest.closed && timestamp >= youngest.start && timestamp < youngest.end &&
      youngest.end + allowedLateness > own
    ) {
      youngest.acc = fold.add(youngest.acc, value, timestamp, this.sequence, record);
      if (end > youngest.end) youngest.end = end;
      if (trigger !== undefined) this.#trigger(youngest);
      return;
    }
    const touched = owner === undefined ? NONE : owner.list.filter((s) => timestamp < s.end && s.start < end);
    let start = timestamp, last = end;
    for (const session of touched) {
      start = Math.min(start, session.start);
      last = Math.max(last, session.end);
    }
    const passed = Math.max(own, this.watermark);
    if (passed >= last + allowedLateness) return this.late(passed - last);
    if (touched.length === 0) {
      const acc = fold.add(fold.create(), value, timestamp, this.sequence, record);
      owner ??= new KeySessions(record.key, identity);
      this.#keys.set(identity, owner);
      const session = new Session(owner, start, last, acc);
      session.closed = last <= this.watermark;
      this.#insert(owner, session);
      this.context.gauges.stateEntries++;
      this.#ends.push(last, session);
      return this.#changed(session, own);
    }
    const session = touched[0]!, wasClosed = session.closed;
    if (touched.length === 1) session.acc = fold.add(session.acc, value, timestamp, this.sequence, record);
    else {
      // All or nothing: the sessions are touched only when merging and adding have both gone well.
      let acc = fold.create();
      for (const part of touched) acc = this.#merge(acc, part.acc);
      session.acc = fold.add(acc, value, timestamp, this.sequence, record);
      for (const other of touched.slice(1)) this.#absorb(session, other);
    }
    session.start = start;
    session.end = last;
    session.closed = last <= this.watermark;
    if (wasClosed && !session.closed) this.#ends.push(last, session);
    this.#changed(session, own);
  }

  #changed(session: Session, own: Watermark): void {
    if (session.closed) this.#emit(session, own);
    else if (this.settings.trigger !== undefined) this.#trigger(session);
  }

  #insert(owner: KeySessions, session: Session): void {
    const { list } = owner;
    let at = list.length;
    while (at > 0 && list[at - 1]!.start > session.start) at--;
    list.splice(at, 0, session);
  }

  #absorb(session: Session, other: Session): void {
    session.fresh += other.fresh;
    other.dead = true;
    session.owner.list.splice(session.owner.list.indexOf(other), 1);
    this.context.gauges.stateEntries--;
  }

  #emit(session: Session, watermark: Watermark, early?: true): void {
    const { fold, rows, timezone } = this.settings;
    const { start, end, owner } = session;
    const plain = windowOfRow(start, end, timezone);
    const window: WindowOfRow = early ? { ...plain, early } : plain;
    for (const row of rows(fold.result(session.acc), owner.key, window)) {
      this.rows.add(row, owner.key, end - 1, watermark, window);
    }
  }

  protected override fire(): void {
    const ends = this.#ends, { allowedLateness } = this.settings;
    while (ends.isDue(this.watermark)) {
      const session = ends.pop();
      if (session.dead) continue;
      const gone = session.end + allowedLateness;
      if (session.closed ? gone > this.watermark : session.end > this.watermark) {
        ends.push(session.closed ? gone : session.end, session); // it has grown since
        continue;
      }
      if (!session.closed) {
        session.closed = true;
        this.#emit(session, this.before);
        if (gone > this.watermark) {
          ends.push(gone, session);
          continue;
        }
      }
      this.#forget(session);
    }
  }

  #forget(session: Session): void {
    const { list, identity } = session.owner;
    session.dead = true;
    this.context.gauges.stateEntries--;
    if (list.length === 1) this.#keys.delete(identity);
    list.splice(list.indexOf(session), 1);
  }

  #trigger(session: Session): void {
    const { early, every } = this.settings.trigger!;
    session.fresh++;
    if (every !== undefined && session.fresh >= every) this.#early(session);
    else if (early !== undefined && this.#earlyAt === Infinity) this.#earlyAt = this.context.clock.now() + early;
  }

  #early(session: Session): void {
    this.#emit(session, this.before, true);
    session.fresh = 0;
    if (this.settings.trigger!.purge) session.acc = this.settings.fold.create();
  }

  protected override onClock(now: number): void {
    if (now < this.#earlyAt) return;
    this.#earlyAt = Infinity;
    for (const { list } of this.#keys.values()) {
      for (const session of list) if (!session.closed && session.fresh > 0) this.#early(session);
    }
  }

  protected override nextDue(): number {
    return this.time === "processing" ? Math.min(this.#ends.earliest, this.#earlyAt) : this.#earlyAt;
  }
}

const NONE: readonly Session[] = [];
