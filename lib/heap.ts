/**
 * A binary heap: the least entry first.
 *
 * @module
 */

/** Entries with a time, the earliest first. Entries of one time come by `order`, and in no particular one where that is equal too. */
export class TimeHeap<T> {
  readonly #times: number[] = [];
  readonly #orders: number[] = [];
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
  push(time: number, item: T, order = 0): void {
    const times = this.#times, orders = this.#orders, items = this.#items;
    let at = times.length;
    times.push(time);
    orders.push(order);
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1, above = times[parent]!;
      if (above < time || (above === time && orders[parent]! <= order)) break;
      times[at] = above;
      orders[at] = orders[parent]!;
      items[at] = items[parent]!;
      at = parent;
    }
    times[at] = time;
    orders[at] = order;
    items[at] = item;
  }
  /** Removes and returns the entry with the earliest time. The heap must not be empty. */
  pop(): T {
    const times = this.#times, orders = this.#orders, items = this.#items;
    const first = items[0]!;
    const time = times.pop()!, order = orders.pop()!, item = items.pop()!;
    const size = times.length;
    if (size === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      const other = child + 1;
      if (
        other < size &&
        (times[other]! < times[child]! || (times[other] === times[child] && orders[other]! < orders[child]!))
      ) child = other;
      if (times[child]! > time || (times[child] === time && orders[child]! >= order)) break;
      times[at] = times[child]!;
      orders[at] = orders[child]!;
      items[at] = items[child]!;
      at = child;
    }
    times[at] = time;
    orders[at] = order;
    items[at] = item;
    return first;
  }
}
