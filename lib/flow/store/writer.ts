/**
 * Group commit: what is to be written at the same time shares atomic operations.
 *
 * W1 A unit is written as a whole or not at all, and only if all its checks hold.
 * W2 Two units of which one writes what the other writes or checks never share an operation: each would see the cells
 *    as they were before the other.
 * W3 A unit whose checks fail fails alone: the others of its operation are committed one by one.
 * W4 While an operation is under way, what comes waits for the next. So nothing is held back to make a group larger.
 *
 * @module
 */
import { asError, MailerError } from "../../errors.ts";
import {
  type Cells,
  type Check,
  keyWeight,
  MOST_BYTES,
  MOST_CHECKS,
  MOST_KEY_BYTES,
  MOST_WRITES,
  weightOf,
  type Write,
} from "./cells.ts";
import type { StoreStats } from "./port.ts";
import { whileBusy } from "./retry.ts";

/** What an entry of a lane takes besides its items. */
const LANE_BYTES = 200;

/** A log that groups add one entry to, whatever the number of their units. */
export interface Lane {
  /** The entry, and what to do when it is committed. */
  entry(items: readonly string[]): Promise<{ readonly write: Write; committed(): void }>;
  /** It is not known whether an entry was committed. */
  lost(): void;
}

/** What is written as one. */
export interface Unit {
  readonly checks: readonly Check[];
  readonly writes: readonly Write[];
  /** What a log is told of it. */
  readonly lane?: { readonly lane: Lane; readonly item: string };
  /** Whether it is a decision, for the statistics. */
  readonly decision?: boolean;
}

interface Pending {
  readonly unit: Unit;
  readonly resolve: (version: string | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Counters of {@link StoreStats}. */
type Counters = { -readonly [K in keyof StoreStats]: number };

/** Whether a unit fits an atomic operation. */
export function fits(unit: Unit): boolean {
  return new Group().add(unit);
}

/** Commits units in groups. */
export class Writer {
  readonly #cells: Cells;
  /** See {@link StoreStats}. */
  readonly stats: Counters = {
    commits: 0,
    decisions: 0,
    units: 0,
    mutations: 0,
    conflicts: 0,
    splitGroups: 0,
    busy: 0,
  };
  #queue: Pending[] = [];
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(cells: Cells) {
    this.#cells = cells;
  }

  /**
   * Version of what was written, or `undefined` where a check failed.
   *
   * @throws {MailerError} `store_closed`; `store_busy`, where it was not written; `store_failed`, where it is not known.
   */
  submit(unit: Unit): Promise<string | undefined> {
    if (this.#closed) return Promise.reject(closed());
    return new Promise((resolve, reject) => {
      this.#queue.push({ unit, resolve, reject });
      this.#running ??= this.#run();
    });
  }

  /** Lets what was submitted come to an end. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    await null; // what is submitted in one go belongs together
    while (this.#queue.length > 0) await this.#write(this.#take());
    this.#running = undefined;
  }

  /** What shares the next operation; the rest stays in its order. */
  #take(): Pending[] {
    const group = new Group(), taken: Pending[] = [], left: Pending[] = [];
    let at = 0;
    for (; at < this.#queue.length && !group.full; at++) {
      const pending = this.#queue[at]!;
      (group.add(pending.unit) ? taken : left).push(pending);
    }
    this.#queue = left.length === 0 ? this.#queue.slice(at) : [...left, ...this.#queue.slice(at)];
    if (taken.length === 0) { // a unit that fits no operation: the store refuses it
      const first = this.#queue.shift();
      if (first !== undefined) taken.push(first);
    }
    return taken;
  }

  async #write(group: readonly Pending[]): Promise<void> {
    let version: string | undefined;
    try {
      version = await this.#commit(group);
    } catch (error) {
      for (const { reject } of group) reject(error);
      return;
    }
    if (version !== undefined || group.length === 1) {
      if (version === undefined) this.stats.conflicts++;
      for (const { resolve } of group) resolve(version);
      return;
    }
    this.stats.splitGroups++;
    for (const pending of group) await this.#write([pending]); // W3
  }

  async #commit(group: readonly Pending[]): Promise<string | undefined> {
    const checks = new Map<string, Check>(), writes: Write[] = [], lanes = new Map<Lane, string[]>();
    for (const { unit } of group) {
      for (const check of unit.checks) checks.set(check.key, check);
      for (const write of unit.writes) writes.push(write);
      if (unit.lane === undefined) continue;
      const items = lanes.get(unit.lane.lane);
      if (items === undefined) lanes.set(unit.lane.lane, [unit.lane.item]);
      else items.push(unit.lane.item);
    }
    try {
      const entries = await Promise.all([...lanes].map(([lane, items]) => lane.entry(items)));
      for (const { write } of entries) writes.push(write);
      const version = await this.#try([...checks.values()], writes);
      if (version === undefined) {
        // It may have been sent twice, and be there.
        for (const lane of lanes.keys()) lane.lost();
        return undefined;
      }
      for (const entry of entries) entry.committed();
      const { stats } = this;
      stats.commits++;
      stats.units += group.length;
      stats.mutations += writes.length;
      for (const { unit } of group) if (unit.decision === true) stats.decisions++;
      return version;
    } catch (error) {
      for (const lane of lanes.keys()) lane.lost();
      throw error;
    }
  }

  async #try(checks: readonly Check[], writes: readonly Write[]): Promise<string | undefined> {
    try {
      return await whileBusy(() => this.#cells.commit(checks, writes), () => void this.stats.busy++);
    } catch (thrown) {
      throw failed(this.#cells.where, thrown);
    }
  }
}

/** What fits one operation. */
class Group {
  readonly #checks = new Map<string, string | null>();
  readonly #writes = new Set<string>();
  readonly #lanes = new Set<Lane>();
  #bytes = 0;
  #keyBytes = 0;
  /** Whether no small unit would fit. */
  full = false;

  /** Whether it was added. */
  add({ checks, writes, lane }: Unit): boolean {
    let bytes = 0, keyBytes = 0, moreChecks = 0;
    for (const { key, version } of checks) {
      if (this.#writes.has(key)) return false; // W2
      const known = this.#checks.get(key);
      if (known !== undefined) {
        if (known !== version) return false;
      } else {
        moreChecks++;
        keyBytes += keyWeight(key);
      }
    }
    for (const write of writes) {
      if (this.#writes.has(write.key) || this.#checks.has(write.key)) return false;
      keyBytes += keyWeight(write.key);
      bytes += weightOf(write);
    }
    if (lane !== undefined) {
      bytes += lane.item.length * 3;
      if (!this.#lanes.has(lane.lane)) {
        bytes += LANE_BYTES;
        keyBytes += LANE_BYTES;
      }
    }
    const isTooLarge = this.#checks.size + moreChecks > MOST_CHECKS ||
      this.#writes.size + this.#lanes.size + writes.length + 1 > MOST_WRITES ||
      this.#bytes + bytes > MOST_BYTES || this.#keyBytes + keyBytes > MOST_KEY_BYTES;
    if (isTooLarge) {
      this.full = true;
      return false;
    }
    for (const { key, version } of checks) this.#checks.set(key, version);
    for (const { key } of writes) this.#writes.add(key);
    if (lane !== undefined) this.#lanes.add(lane.lane);
    this.#bytes += bytes;
    this.#keyBytes += keyBytes;
    return true;
  }
}

function failed(where: string, thrown: unknown): MailerError {
  if (thrown instanceof MailerError) return thrown;
  const { message } = asError(thrown);
  const isFull = /disk is full|no space|ENOSPC|SQLITE_FULL/i.test(message);
  return new MailerError("store_failed", `flows: a commit to ${where} failed: ${message}`, {
    cause: thrown,
    ...(isFull ? { hint: "make room on the disk; executions go on where they were" } : {}),
  });
}

function closed(): MailerError {
  return new MailerError("store_closed", "flows: the store is closed");
}
