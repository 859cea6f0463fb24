/**
 * A binary heap of things with an order, the least first, that can be cut off above an order.
 *
 * @module
 */

/** Something in the heap. */
export interface Ordered {
  readonly order: number;
}

/** The heap. Things of equal order come in no particular one. */
export class OrderHeap<T extends Ordered> {
  #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }
  /** The least; undefined when empty. */
  get top(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    this.#items.push(item);
    this.#rise(this.#items.length - 1);
  }

  /** Removes and returns the least; the heap must not be empty. */
  pop(): T {
    const items = this.#items, first = items[0]!, last = items.pop()!;
    if (items.length > 0) {
      items[0] = last;
      this.#sink(0);
    }
    return first;
  }

  /** About the order half of them do not exceed, by a sample. */
  get middle(): number {
    const items = this.#items, step = Math.max(1, Math.floor(items.length / 127)), sample: number[] = [];
    for (let i = 0; i < items.length; i += step) sample.push(items[i]!.order);
    return sample.sort((a, b) => a - b)[sample.length >> 1] ?? Infinity;
  }

  /** Keeps what does not exceed `order`. */
  cut(order: number): void {
    this.#items = this.#items.filter((item) => item.order <= order);
    for (let i = (this.#items.length >> 1) - 1; i >= 0; i--) this.#sink(i);
  }

  #rise(at: number): void {
    const items = this.#items, item = items[at]!;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (items[parent]!.order <= item.order) break;
      items[at] = items[parent]!;
      at = parent;
    }
    items[at] = item;
  }

  #sink(at: number): void {
    const items = this.#items, item = items[at]!, size = items.length;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= size) break;
      if (child + 1 < size && items[child + 1]!.order < items[child]!.order) child++;
      if (items[child]!.order >= item.order) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = item;
  }
}
