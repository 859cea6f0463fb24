/**
 * Timers by time.
 *
 * T1 Only the owner of a partition sets and clears its timers, so it knows when the next one is due without looking.
 * T2 A timer is handed out to one at a time; it is gone with the commit that clears it, which happens once.
 *
 * @module
 */
import { cellsIn } from "./cells.ts";
import type { Core } from "./core.ts";
import * as keys from "./keys.ts";
import { ownedOf, refused } from "./owned.ts";
import type { DueTimer, Ownership, Timers } from "./port.ts";

/** Bytes of a timer's cell. */
export function encodeTimer(
  core: Core,
  execId: string,
  id: string,
  at: number,
  text: string,
): Promise<Uint8Array> {
  return core.bodies.packSmall(
    `${JSON.stringify([execId, id, at])}\n${text}`,
    `timer ${id} of execution ${execId}`,
  );
}

/** Timers of a partition in the hand of its owner. */
export class DueTimers {
  readonly #core: Core;
  readonly #partition: number;
  readonly #handed = new Set<string>();
  /** When the next one is due; Infinity: there is none; undefined: not known. */
  #next: number | undefined;
  /** Grows with every change, so that a look-up knows whether what it found is still so. */
  #changes = 0;

  constructor(core: Core, partition: number) {
    this.#core = core;
    this.#partition = partition;
  }

  async due(limit: number): Promise<DueTimer[]> {
    const { cells, bodies, clock } = this.#core, now = clock.now();
    if (this.#next !== undefined && this.#next > now) return [];
    const due: DueTimer[] = [];
    for await (const page of cellsIn(cells, keys.timersDue(this.#partition, now), Math.min(limit, 500))) {
      for (const { key, bytes } of page) {
        if (this.#handed.has(key)) continue;
        if (due.length === limit) break;
        this.#handed.add(key); // at once: another call may be reading the same page
        due.push({ ...partsOf(await bodies.unpack(bytes)), key });
      }
      if (due.length === limit) break;
    }
    this.#changed(undefined);
    return due;
  }

  async next(): Promise<number | undefined> {
    if (this.#next === undefined) {
      const changes = this.#changes, next = await this.#first();
      if (changes !== this.#changes) return next;
      this.#next = next;
    }
    return this.#next === Infinity ? undefined : this.#next;
  }

  async #first(): Promise<number> {
    const { cells, bodies } = this.#core;
    for await (const page of cellsIn(cells, keys.timersOf(this.#partition), 64)) {
      for (const { key, bytes } of page) {
        if (!this.#handed.has(key)) return partsOf(await bodies.unpack(bytes)).at;
      }
    }
    return Infinity;
  }

  /** A commit has set a timer. */
  set(at: number): void {
    this.#changed(this.#next === undefined ? undefined : Math.min(this.#next, at));
    this.#core.wakeups.notify(`timers:${this.#partition}`);
  }

  /** A commit has cleared a timer. */
  cleared(key: string, at: number): void {
    this.#handed.delete(key);
    if (this.#next === at) this.#changed(undefined);
  }

  release(key: string, at: number): void {
    if (!this.#handed.delete(key)) return;
    this.#changed(this.#next === undefined ? undefined : Math.min(this.#next, at));
    this.#core.wakeups.notify(`timers:${this.#partition}`);
  }

  /** What is set is not known any more. */
  forget(): void {
    this.#changed(undefined);
  }

  #changed(next: number | undefined): void {
    this.#changes++;
    this.#next = next;
  }
}

function partsOf(stored: string): Omit<DueTimer, "key"> {
  const end = stored.indexOf("\n");
  const [execId, id, at] = JSON.parse(stored.slice(0, end)) as [string, string, number];
  return { execId, id, at, text: stored.slice(end + 1) };
}

/** See {@link Timers}. */
export class KeptTimers implements Timers {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  due(ownership: Ownership, limit: number): Promise<readonly DueTimer[]> {
    return ownedOf(ownership).due.due(limit);
  }
  next(ownership: Ownership): Promise<number | undefined> {
    return ownedOf(ownership).due.next();
  }
  release(ownership: Ownership, timer: DueTimer): void {
    ownedOf(ownership).due.release(timer.key, timer.at);
  }
  async drop(ownership: Ownership, timer: DueTimer): Promise<void> {
    const owned = ownedOf(ownership);
    const done = await this.#core.writer.submit({
      checks: [owned.fence],
      writes: [{ key: timer.key, bytes: null }],
    });
    if (done === undefined) {
      throw await refused(this.#core, owned, `timer ${timer.id} of execution ${timer.execId}`);
    }
    owned.due.cleared(timer.key, timer.at);
  }
}
