/**
 * The open sessions of all keys of a partition, as columns: what is looked at for every record lies close together.
 *
 * @module
 */

/** Number of a session in the store; -1 = none. */
export type SessionSlot = number;

/** No session. */
export const NO_SESSION: SessionSlot = -1;

/** What the store knows of a key. It is the same object for as long as the key has sessions. */
export interface KeySessions {
  readonly identity: unknown;
  readonly key: unknown;
  /** The youngest session; NO_SESSION once the key has none and is forgotten. */
  youngest: SessionSlot;
}

/** Sessions by key, the youngest first. Slots of forgotten sessions are used again. */
export class SessionStore {
  starts: Float64Array = new Float64Array(64);
  ends: Float64Array = new Float64Array(64);
  /** 1 = its end has passed and its row has been given. */
  closed: Uint8Array = new Uint8Array(64);
  /** Next older session of the same key. */
  readonly older: SessionSlot[] = [];
  readonly owners: (KeySessions | undefined)[] = [];
  readonly accs: unknown[] = [];
  /** Records since the last row, where a trigger counts them. */
  readonly fresh: number[] = [];
  /** Counts how often a slot was used, so that an old reference to it is known as such. */
  readonly generation: number[] = [];
  readonly #keys = new Map<unknown, KeySessions>();
  readonly #free: SessionSlot[] = [];
  #size = 0;

  /** Number of sessions. */
  get size(): number {
    return this.#size;
  }

  /** What is known of a key. */
  get(identity: unknown): KeySessions | undefined {
    return this.#keys.get(identity);
  }

  /** Adds a session, in the order of starts. It must not overlap another of its key. */
  add(identity: unknown, key: unknown, start: number, end: number, acc: unknown): SessionSlot {
    let owner = this.#keys.get(identity);
    if (owner === undefined) this.#keys.set(identity, owner = { identity, key, youngest: NO_SESSION });
    const slot = this.#free.pop() ?? this.#grow();
    this.starts[slot] = start;
    this.ends[slot] = end;
    this.closed[slot] = 0;
    this.owners[slot] = owner;
    this.accs[slot] = acc;
    this.fresh[slot] = 0;
    this.#size++;
    let before = NO_SESSION, at = owner.youngest;
    while (at !== NO_SESSION && this.starts[at]! > start) {
      before = at;
      at = this.older[at]!;
    }
    this.older[slot] = at;
    if (before === NO_SESSION) owner.youngest = slot;
    else this.older[before] = slot;
    return slot;
  }

  /** Takes a session out. */
  remove(slot: SessionSlot): void {
    const owner = this.owners[slot]!;
    if (owner.youngest === slot) {
      owner.youngest = this.older[slot]!;
      if (owner.youngest === NO_SESSION) this.#keys.delete(owner.identity);
    } else {
      let before = owner.youngest;
      while (this.older[before] !== slot) before = this.older[before]!;
      this.older[before] = this.older[slot]!;
    }
    this.owners[slot] = this.accs[slot] = undefined;
    this.generation[slot]!++;
    this.#free.push(slot);
    this.#size--;
  }

  /** All sessions. */
  *slots(): Iterable<SessionSlot> {
    for (const { youngest } of this.#keys.values()) {
      for (let slot = youngest; slot !== NO_SESSION; slot = this.older[slot]!) yield slot;
    }
  }

  #grow(): SessionSlot {
    const slot = this.generation.length;
    this.generation.push(0);
    if (slot < this.starts.length) return slot;
    const grown = <A extends Float64Array | Uint8Array>(column: A, larger: A): A => {
      larger.set(column as never);
      return larger;
    };
    this.starts = grown(this.starts, new Float64Array(slot * 2));
    this.ends = grown(this.ends, new Float64Array(slot * 2));
    this.closed = grown(this.closed, new Uint8Array(slot * 2));
    return slot;
  }
}
