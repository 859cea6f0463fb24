/**
 * A binary heap: the least entry first.
 *
 * @module
 */

/** Entries with a time, the earliest first. Entries of one time come in no particular order. */
export class TimeHeap<T> {
  readonly #times: number[] = [];
  readonly #items: T[] = [];

  get size(): number {
    return this.#times.length;
  }
  /** The earliest time; Infinity when empty. */
  get earliest(): number {
    return this.#times.length === 0 ? Infinity : this.#times[0]!;
  }
  /** Whether there is an entry that is due at `now`. */
  isDue(now: number): boolean {
    return this.#times.length > 0 && this.#times[0]! <= now;
  }
  push(time: number, item: T): void {
    const times = this.#times, items = this.#items;
    let at = times.length;
    times.push(time);
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (times[parent]! <= time) break;
      times[at] = times[parent]!;
      items[at] = items[parent]!;
      at = parent;
    }
    times[at] = time;
    items[at] = item;
  }
  /** Removes and returns the entry with the earliest time. The heap must not be empty. */
  pop(): T {
    const times = this.#times, items = this.#items;
    const first = items[0]!;
    const time = times.pop()!, item = items.pop()!;
    const size = times.length;
    if (size === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && times[child + 1]! < times[child]!) child++;
      if (times[child]! >= time) break;
      times[at] = times[child]!;
      items[at] = items[child]!;
      at = child;
    }
    times[at] = time;
    items[at] = item;
    return first;
  }
}
