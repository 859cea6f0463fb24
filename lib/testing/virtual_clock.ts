/**
 * A clock that stands still until a test moves it.
 *
 * @module
 */
import type { Alarm, Clock } from "../clock.ts";
import { type Duration, parseDuration } from "../duration.ts";
import { yieldToEventLoop } from "../scheduling.ts";

interface Pending {
  readonly at: number;
  readonly callback: () => void;
}

/** Turns of the event loop that pending work gets before and after each step of the clock. */
const TURNS = 20;

/** Time by hand. */
export class VirtualClock implements Clock {
  #now: number;
  /** In the order they were set. */
  readonly #pending = new Set<Pending>();

  /**
   * Stands still at `start`.
   *
   * @param start Time of day, ms since the epoch. Default 2026-01-01T00:00:00Z.
   */
  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }
  monotonic(): number {
    return this.#now;
  }
  schedule(delayMs: number, callback: () => void): Alarm {
    const pending: Pending = { at: this.#now + Math.max(0, delayMs), callback };
    this.#pending.add(pending);
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Number of alarms that wait. */
  get alarms(): number {
    return this.#pending.size;
  }

  /** Moves on, calling what comes due in its order, and lets everything that follows from it happen. */
  async advance(by: Duration): Promise<void> {
    const target = this.#now + parseDuration(by);
    await settle();
    for (let next = this.#next(target); next !== undefined; next = this.#next(target)) {
      this.#pending.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await settle();
    }
    this.#now = target;
    await settle();
  }

  #next(target: number): Pending | undefined {
    let next: Pending | undefined;
    for (const pending of this.#pending) {
      if (pending.at > target) continue;
      if (next === undefined || pending.at < next.at) next = pending; // of equal ones the first that was set
    }
    return next;
  }
}

/** Lets everything happen that can happen without the clock moving or anything coming from outside. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await yieldToEventLoop();
}
