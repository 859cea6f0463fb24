/**
 * Queues and memories of ids, of which every version stays readable; see {@link VersionedMap}.
 *
 * @module
 */
import { VersionedMap } from "./versioned_map.ts";

/** First in, first out; every step costs the same however long the queue is. */
export class Queue<T> {
  readonly #entries: VersionedMap<T>;
  readonly #first: number;
  readonly #end: number;

  private constructor(entries: VersionedMap<T>, first: number, end: number) {
    this.#entries = entries;
    this.#first = first;
    this.#end = end;
  }

  /** A queue of these, the first one first. */
  static of<T>(items: readonly T[]): Queue<T> {
    let queue = new Queue<T>(VersionedMap.empty(), 0, 0);
    for (const item of items) queue = queue.push(item);
    return queue;
  }

  /** Number of items. */
  get size(): number {
    return this.#end - this.#first;
  }

  /** What came first; `undefined` in an empty queue. */
  get first(): T | undefined {
    return this.#entries.get(String(this.#first));
  }

  /** With an item at its end. */
  push(item: T): Queue<T> {
    return new Queue(this.#entries.set(String(this.#end), item), this.#first, this.#end + 1);
  }

  /** Without the first item; an empty queue stays as it is. */
  shift(): Queue<T> {
    if (this.size === 0) return this;
    return new Queue(this.#entries.delete(String(this.#first)), this.#first + 1, this.#end);
  }

  /** The items, the first one first. */
  items(): T[] {
    const items: T[] = [];
    for (let at = this.#first; at < this.#end; at++) items.push(this.#entries.get(String(at))!);
    return items;
  }
}

/** Most ids a memory holds. */
export const MAX_IDS = 10_000;
/** How long a memory holds an id, ms by the times of the events. */
export const ID_TTL = 24 * 3_600_000;

/** The ids seen lately: at most {@link MAX_IDS}, for {@link ID_TTL}; the oldest go first. */
export class IdMemory {
  readonly #known: VersionedMap<number>;
  readonly #order: Queue<string>;

  private constructor(known: VersionedMap<number>, order: Queue<string>) {
    this.#known = known;
    this.#order = order;
  }

  /** A memory of these, the oldest first. */
  static of(entries: readonly (readonly [id: string, time: number])[]): IdMemory {
    let known = VersionedMap.empty<number>(), order = Queue.of<string>([]);
    for (const [id, time] of entries) {
      known = known.set(id, time);
      order = order.push(id);
    }
    return new IdMemory(known, order);
  }

  /** Whether the id was seen. */
  has(id: string): boolean {
    return this.#known.has(id);
  }

  /** With an id seen at `time`, ms; what is too old by then is forgotten. */
  add(id: string, time: number): IdMemory {
    if (this.has(id)) return this;
    let known = this.#known, order = this.#order;
    for (let oldest = order.first; oldest !== undefined; oldest = order.first) {
      if (order.size < MAX_IDS && known.get(oldest)! >= time - ID_TTL) break;
      known = known.delete(oldest);
      order = order.shift();
    }
    return new IdMemory(known.set(id, time), order.push(id));
  }

  /** Ids with the times they were seen at, the oldest first. */
  entries(): (readonly [id: string, time: number])[] {
    return this.#order.items().map((id) => [id, this.#known.get(id)!] as const);
  }
}
