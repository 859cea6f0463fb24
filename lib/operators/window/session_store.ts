/**
 * The open sessions of all keys of a partition, as columns: what is looked at for every record lies close together.
 *
 * @module
 */

/** Number of a session in the store; -1 = none. */
export type SessionSlot = number;

/** No session. */
export const NO_SESSION: SessionSlot = -1;

/** Sessions by key, the youngest first. Slots of forgotten sessions are used again. */
export class SessionStore {
  starts: Float64Array = new Float64Array(64);
  ends: Float64Array = new Float64Array(64);
  /** Next older session of the same key. */
  older: Int32Array = new Int32Array(64);
  /** Counts how often a slot was used, so that an old reference to it is known as such. */
  generation: Int32Array = new Int32Array(64);
  /** 1 = its end has passed and its row has been given. */
  closed: Uint8Array = new Uint8Array(64);
  /** 1 = no other session of its key is younger. */
  youngest: Uint8Array = new Uint8Array(64);
  /** Records since the last row, where a trigger counts them. */
  readonly fresh: number[] = [];
  readonly accs: unknown[] = [];
  readonly keys: unknown[] = [];
  readonly #identities: unknown[] = [];
  readonly #youngest = new Map<unknown, SessionSlot>();
  readonly #free: SessionSlot[] = [];
  #used = 0;
  #size = 0;

  /** Number of sessions. */
  get size(): number {
    return this.#size;
  }

  /** The youngest session of a key. */
  get(identity: unknown): SessionSlot {
    return this.#youngest.get(identity) ?? NO_SESSION;
  }

  /** Adds a session, in the order of starts. It must not overlap another of its key. */
  add(identity: unknown, key: unknown, start: number, end: number, acc: unknown): SessionSlot {
    const slot = this.#free.pop() ?? this.#next();
    this.starts[slot] = start;
    this.ends[slot] = end;
    this.closed[slot] = 0;
    this.keys[slot] = key;
    this.#identities[slot] = identity;
    this.accs[slot] = acc;
    this.fresh[slot] = 0;
    this.#size++;
    let before = NO_SESSION, at = this.get(identity);
    while (at !== NO_SESSION && this.starts[at]! > start) {
      before = at;
      at = this.older[at]!;
    }
    this.older[slot] = at;
    this.youngest[slot] = before === NO_SESSION ? 1 : 0;
    if (before !== NO_SESSION) this.older[before] = slot;
    else {
      this.#youngest.set(identity, slot);
      if (at !== NO_SESSION) this.youngest[at] = 0;
    }
    return slot;
  }

  /** Takes a session out. */
  remove(slot: SessionSlot): void {
    const older = this.older[slot]!;
    if (this.youngest[slot] === 0) {
      let before = this.get(this.#identities[slot]);
      while (this.older[before] !== slot) before = this.older[before]!;
      this.older[before] = older;
    } else if (older === NO_SESSION) this.#youngest.delete(this.#identities[slot]);
    else {
      this.#youngest.set(this.#identities[slot], older);
      this.youngest[older] = 1;
    }
    this.keys[slot] = this.#identities[slot] = this.accs[slot] = undefined;
    this.youngest[slot] = 0;
    this.generation[slot]!++;
    this.#free.push(slot);
    this.#size--;
  }

  /** All sessions. */
  *slots(): Iterable<SessionSlot> {
    for (const youngest of this.#youngest.values()) {
      for (let slot = youngest; slot !== NO_SESSION; slot = this.older[slot]!) yield slot;
    }
  }

  #next(): SessionSlot {
    const slot = this.#used++;
    if (slot < this.starts.length) return slot;
    const size = slot * 2;
    this.starts = larger(this.starts, new Float64Array(size));
    this.ends = larger(this.ends, new Float64Array(size));
    this.older = larger(this.older, new Int32Array(size));
    this.generation = larger(this.generation, new Int32Array(size));
    this.closed = larger(this.closed, new Uint8Array(size));
    this.youngest = larger(this.youngest, new Uint8Array(size));
    return slot;
  }
}

function larger<A extends Float64Array | Int32Array | Uint8Array>(column: A, empty: A): A {
  empty.set(column);
  return empty;
}
