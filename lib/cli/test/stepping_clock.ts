/**
 * A clock that stands still while there is anything to do, and jumps to the next alarm when everything waits for it.
 *
 * @module
 */
import type { Alarm, Clock } from "../../clock.ts";

/** An alarm further away than this, ms, never rings. */
export const NEVER = 8.64e15;

interface Pending {
  readonly at: number;
  readonly callback: () => void;
}

/** Virtual time for one test case. */
export class SteppingClock implements Clock {
  #now: number;
  /** In the order they were set. */
  readonly #pending = new Set<Pending>();

  /** @param start Time of day it begins at, ms since the epoch. */
  constructor(start: number) {
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

  /** Jumps to the next alarm and rings it. False where there is none. */
  step(): boolean {
    let next: Pending | undefined;
    for (const pending of this.#pending) if (next === undefined || pending.at < next.at) next = pending;
    if (next === undefined || next.at >= NEVER) return false;
    this.#pending.delete(next);
    this.#now = Math.max(this.#now, next.at);
    next.callback();
    return true;
  }
}
