/**
 * Sessions by the time they come due. What is far off lies in buckets, unsorted; only the bucket that time has reached is put in
 * order, and what has grown since it was put in goes on to a later one. So a session that goes on and on is put off at a cost that
 * does not depend on how many others wait.
 *
 * It is no state of its own: after a restore it is filled from the sessions.
 *
 * @module
 */
import { TimeHeap } from "../../heap.ts";
import type { Session, SessionCell } from "./session_store.ts";

/** Width of a bucket, ms. */
const WIDTH = 256;

/** A session that waits. By the time it comes out it may have been forgotten, or merged into another. */
export interface Waiting {
  time: number;
  readonly cell: SessionCell;
  readonly session: Session;
}

/** Waiting sessions. */
export class EndQueue {
  /** What is due before `#reached`, in order. */
  readonly #near = new TimeHeap<Waiting>();
  readonly #far = new Map<number, Waiting[]>();
  /** Starts of the buckets there are. */
  readonly #starts = new TimeHeap<number>();
  /** End of the last bucket that was put in order. */
  #reached = -Infinity;
  // Most sessions are put off to about the same time.
  #lastStart = NaN;
  #last: Waiting[] = [];

  /** @param lateness How long after its end a closed session waits. */
  constructor(private readonly lateness: number) {}

  /** A time before which nothing is due; Infinity when nothing waits. */
  get earliest(): number {
    return Math.min(this.#near.earliest, this.#starts.earliest);
  }

  /** Adds a session. Its time is not to be changed while it waits. */
  push(waiting: Waiting): void {
    const { time } = waiting;
    if (time < this.#reached) return this.#near.push(time, waiting);
    const start = Math.floor(time / WIDTH) * WIDTH;
    if (start !== this.#lastStart) {
      let bucket = this.#far.get(start);
      if (bucket === undefined) {
        this.#far.set(start, bucket = []);
        this.#starts.push(start, start);
      }
      this.#lastStart = start;
      this.#last = bucket;
    }
    this.#last.push(waiting);
  }

  /** Takes out the earliest that is due at `now`; undefined when there is none. */
  take(now: number): Waiting | undefined {
    for (;;) {
      // A bucket may hold something earlier than what is in order already only if time has reached it.
      if (this.#starts.isDue(Math.min(now, this.#near.earliest))) this.#order();
      else return this.#near.isDue(now) ? this.#near.pop() : undefined;
    }
  }

  #order(): void {
    const start = this.#starts.pop();
    const bucket = this.#far.get(start)!;
    this.#far.delete(start);
    if (start === this.#lastStart) this.#lastStart = NaN;
    if (start + WIDTH > this.#reached) this.#reached = start + WIDTH;
    for (const waiting of bucket) {
      const { end, closed } = waiting.session, time = closed ? end + this.lateness : end;
      if (time > waiting.time) waiting.time = time; // it has grown since, and mostly is far off again
      this.push(waiting);
    }
  }
}
