/**
 * Timers of keys: a cell for each key that has any, and a heap that says which comes next.
 *
 * W1 Timers come by time, those of one time in the order in which they were set, also after a restore.
 * W2 The cells are what is true and what is stored. An entry of the heap whose ticket its timer does not bear is out of date; nothing
 *    is looked for in the heap to delete or move a timer.
 *
 * @module
 */
import { TimeHeap } from "../../heap.ts";
import type { KeyIdentity } from "../../key.ts";
import type { KeyedState } from "../../state/keyed.ts";
import type { Cell, Partition, Table } from "../../state/log/mod.ts";
import type { TimeDomain } from "../../window/assigner.ts";

/** A timer that is set. Never changed, only replaced. */
interface SetTimer {
  /** When it fires. */
  readonly time: number;
  /** Of timers with one time the one set first fires first. */
  readonly order: number;
  /** When its turn in the heap comes: not after `time`. */
  readonly queued: number;
  /** The entry of the heap that stands for it. */
  readonly ticket: number;
}

/** Timers of a key, by domain and name. */
type TimersOfKey = Map<string, SetTimer>;

interface Pending {
  readonly identity: KeyIdentity;
  readonly id: string;
  readonly ticket: number;
}

/** A timer whose time has come. */
export interface DueTimer {
  readonly identity: KeyIdentity;
  readonly key: unknown;
  readonly name: string | undefined;
  readonly time: number;
  /** Number of the call that set it. */
  readonly order: number;
}

/** The timers of one partition. */
export class KeyTimers {
  readonly #state: KeyedState;
  readonly #table: Table<TimersOfKey>;
  readonly #heaps = { event: new TimeHeap<Pending>(), processing: new TimeHeap<Pending>() };
  #size = 0;
  #timersSet = 0;

  /** @param state The state of the same keys: a timer is set and deleted within its calls, and undone with them. */
  constructor(partition: Partition, state: KeyedState) {
    this.#state = state;
    this.#table = partition.space<TimersOfKey>("timers").table();
  }

  /** Timers that have not fired. */
  get size(): number {
    return this.#size;
  }

  /** Timers set so far: the order of the last one. */
  get timersSet(): number {
    return this.#timersSet;
  }

  /** No timer is due earlier; Infinity where there is none. */
  earliest(domain: TimeDomain): number {
    return this.#heaps[domain].earliest;
  }

  /** The timers are those of the table again. @param timersSet The most that any former instance had set. */
  restore(timersSet: number): void {
    this.#timersSet = timersSet;
    for (const { identity, value } of this.#table.cells()) {
      this.#state.held.hold(identity);
      this.#size += value.size;
      for (const [id, { queued, ticket }] of value) {
        this.#heaps[domainOf(id)].push(queued, { identity, id, ticket }, ticket);
      }
    }
  }

  /** Sets a timer of the key being worked on, or moves it. */
  set(domain: TimeDomain, time: number, name: string | undefined): void {
    const { identity } = this.#state.call, id = idOf(domain, name ?? time), order = ++this.#timersSet;
    const known = this.#table.get(identity)?.value.get(id);
    if (known?.time === time) return;
    // A timer that is only moved on stays where it is in the heap, and goes to its place when its turn comes.
    const stays = known !== undefined && known.queued <= time;
    const timer = stays ? { ...known, time, order } : { time, order, queued: time, ticket: order };
    this.#change(id, known, timer);
    if (!stays) this.#heaps[domain].push(time, { identity, id, ticket: order }, order);
  }

  /** Deletes a timer of the key being worked on. Whether there was one. */
  delete(domain: TimeDomain, nameOrTime: string | number): boolean {
    const id = idOf(domain, nameOrTime), known = this.#table.get(this.#state.call.identity)?.value.get(id);
    if (known !== undefined) this.#change(id, known, undefined);
    return known !== undefined;
  }

  /** Replaces a timer of the key being worked on, until the call is undone. */
  #change(id: string, before: SetTimer | undefined, after: SetTimer | undefined): void {
    const { identity, key } = this.#state.call;
    this.#state.call.onUndo(() => this.#put(identity, key, id, before));
    this.#put(identity, key, id, after);
  }

  #put(identity: KeyIdentity, key: unknown, id: string, timer: SetTimer | undefined): void {
    const cell = this.#table.edit(identity);
    if (timer === undefined) {
      if (cell !== undefined) this.#take(cell, id);
    } else if (cell === undefined) {
      this.#table.add(identity, key, new Map([[id, timer]]));
      this.#state.held.hold(identity);
      this.#size++;
    } else {
      if (!cell.value.has(id)) this.#size++;
      cell.value.set(id, timer);
    }
  }

  #take(cell: Cell<TimersOfKey>, id: string): void {
    if (!cell.value.delete(id)) return;
    this.#size--;
    if (cell.value.size > 0) return;
    this.#table.remove(cell);
    this.#state.held.release(cell.identity);
  }

  /** Takes out the earliest timer that is due at `now`; undefined where none is. */
  take(domain: TimeDomain, now: number): DueTimer | undefined {
    const heap = this.#heaps[domain];
    while (heap.isDue(now)) {
      const at = heap.earliest, { identity, id, ticket } = heap.pop();
      const cell = this.#table.get(identity), timer = cell?.value.get(id);
      if (cell === undefined || timer?.ticket !== ticket) continue;
      this.#table.touch(cell);
      const { time, order } = timer;
      if (time > at) {
        cell.value.set(id, { time, order, queued: time, ticket: order });
        heap.push(time, { identity, id, ticket: order }, order);
        continue;
      }
      const { key } = cell;
      this.#take(cell, id);
      return { identity, key, name: nameOf(id), time, order };
    }
    return undefined;
  }
}

/** A timer without a name is named by its time. */
function idOf(domain: TimeDomain, nameOrTime: string | number): string {
  return `${domain} ${typeof nameOrTime === "number" ? `@${nameOrTime}` : `=${nameOrTime}`}`;
}

function domainOf(id: string): TimeDomain {
  return id.startsWith("event ") ? "event" : "processing";
}

function nameOf(id: string): string | undefined {
  const at = id.indexOf(" ") + 1;
  return id[at] === "=" ? id.slice(at + 1) : undefined;
}
