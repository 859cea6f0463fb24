/**
 * Keyed state in memory: for each key one slot per named state.
 *
 * @module
 */
import { parseDuration } from "../duration.ts";
import { MailerError } from "../errors.ts";
import { TimeHeap } from "../heap.ts";
import { keyIdentity } from "../key.ts";
import { copyValue, setOwn } from "../value.ts";
import type {
  KeyedStateAccess,
  ListState,
  MapState,
  ReducingState,
  StateOptions,
  ValueState,
} from "./handles.ts";

/** A timer that is set. */
export interface KeyTimer {
  /** When it fires. */
  time: number;
  /** Of timers with one time the one set first fires first. */
  order: number;
  /** When its turn in the queue comes: not after `time`. */
  queued: number;
}

/** What is kept of a key. */
export class KeyEntry {
  /** By number of the state; undefined = empty. */
  readonly slots: (Slot | undefined)[] = [];
  /** Whether an expiry of the state waits in the heap, by its number. */
  readonly awaited: boolean[] = [];
  /** Timers that have not fired, by domain and name. */
  readonly timers: Map<string, KeyTimer> = new Map();

  constructor(readonly key: unknown, readonly identity: unknown) {}
}

interface Slot {
  content: unknown;
  /** When it expires, in the time its state goes by. */
  expires: number;
}

type Kind = "value" | "list" | "map" | "reducing";

interface Definition {
  readonly name: string;
  readonly kind: Kind;
  readonly slot: number;
  readonly ttl: number;
  readonly time: "event" | "processing";
}

interface Expiry {
  readonly entry: KeyEntry;
  readonly slot: number;
}

/** Where a store takes the two times from. */
export interface StateTimes {
  /** The operator's watermark. */
  readonly event: () => number;
  /** Event time that a write counts from: the watermark; before there is one, the time of what is being worked on. */
  readonly eventOfWrite: () => number;
  /** The clock. */
  readonly processing: () => number;
}

/** The state of one partition of one operator. */
export class MemoryState implements KeyedStateAccess {
  readonly #entries = new Map<unknown, KeyEntry>();
  readonly #definitions = new Map<string, Definition>();
  readonly #handles = new Map<string, unknown>();
  readonly #expiries = { event: new TimeHeap<Expiry>(), processing: new TimeHeap<Expiry>() };
  readonly #times: StateTimes;
  readonly #operator: string;
  #current: KeyEntry | undefined;

  /** @param operator Id of the operator, for errors. */
  constructor(operator: string, times: StateTimes) {
    this.#operator = operator;
    this.#times = times;
  }

  /** Number of keys with any state or timer. */
  get size(): number {
    return this.#entries.size;
  }

  /** Earliest time of the clock at which something expires; Infinity when nothing will. */
  get nextExpiry(): number {
    return this.#expiries.processing.earliest;
  }

  /** Handles speak of this key from now on. */
  enter(key: unknown): KeyEntry {
    const identity = keyIdentity(key);
    let entry = this.#entries.get(identity);
    if (entry === undefined) {
      entry = new KeyEntry(key, identity);
      this.#entries.set(identity, entry);
    }
    return this.#current = entry;
  }

  /** Handles speak of this key from now on. */
  enterEntry(entry: KeyEntry): void {
    this.#entries.set(entry.identity, entry);
    this.#current = entry;
  }

  /** The work on the current key is done: a key with nothing in it is forgotten. */
  leave(): void {
    const entry = this.#current;
    this.#current = undefined;
    if (entry !== undefined) this.#forgetIfEmpty(entry);
  }

  /** Frees what has expired. */
  expire(): void {
    for (const time of ["event", "processing"] as const) {
      const heap = this.#expiries[time];
      if (heap.size === 0) continue;
      const now = this.#times[time]();
      while (heap.isDue(now)) {
        const { entry, slot } = heap.pop();
        const held = entry.slots[slot];
        entry.awaited[slot] = false;
        if (held === undefined) continue;
        if (held.expires > now) this.#await(entry, slot, held.expires, time); // written again since
        else {
          entry.slots[slot] = undefined;
          this.#forgetIfEmpty(entry);
        }
      }
    }
  }

  /** A plain copy of what a key holds, by name of the state; for tests and inspection. */
  inspect(key: unknown): Readonly<Record<string, unknown>> {
    const entry = this.#entries.get(keyIdentity(key));
    const found: Record<string, unknown> = {};
    for (const definition of this.#definitions.values()) {
      const slot = entry?.slots[definition.slot];
      if (slot === undefined || slot.expires <= this.#times[definition.time]()) continue;
      const content = definition.kind === "map"
        ? [...(slot.content as Map<unknown, [unknown, unknown]>).values()].map(copyValue)
        : copyValue(slot.content);
      setOwn(found, definition.name, content);
    }
    return found;
  }

  value<T>(name: string, options?: StateOptions): ValueState<T> {
    return this.#handle<ValueState<T>>(name, "value", options, (definition) => ({
      get: () => copyValue(this.#read(definition)) as T | undefined,
      set: (value) =>
        value === undefined ? this.#clear(definition) : this.#write(definition, copyValue(value)),
      clear: () => this.#clear(definition),
    }));
  }

  list<T>(name: string, options?: StateOptions): ListState<T> {
    return this.#handle<ListState<T>>(name, "list", options, (definition) => ({
      get: () => copyValue(this.#read(definition) ?? []) as readonly T[],
      add: (value) => {
        const list = (this.#read(definition) ?? []) as T[];
        list.push(copyValue(value));
        this.#write(definition, list);
      },
      set: (values) =>
        values.length === 0 ? this.#clear(definition) : this.#write(definition, copyValue([...values])),
      clear: () => this.#clear(definition),
    }));
  }

  map<K, V>(name: string, options?: StateOptions): MapState<K, V> {
    return this.#handle<MapState<K, V>>(name, "map", options, (definition) => {
      const read = () => this.#read(definition) as Map<unknown, [K, V]> | undefined;
      return {
        get: (key) => copyValue(read()?.get(keyIdentity(key))?.[1]),
        has: (key) => read()?.has(keyIdentity(key)) ?? false,
        set: (key, value) => {
          const map = read() ?? new Map<unknown, [K, V]>();
          map.set(keyIdentity(key), [copyValue(key), copyValue(value)]);
          this.#write(definition, map);
        },
        delete: (key) => {
          const map = read();
          if (map?.delete(keyIdentity(key)) && map.size === 0) this.#clear(definition);
        },
        entries: () => [...(read()?.values() ?? [])].map(copyValue),
        get size() {
          return read()?.size ?? 0;
        },
        clear: () => this.#clear(definition),
      };
    });
  }

  reducing<T>(name: string, reduce: (a: T, b: T) => T, options?: StateOptions): ReducingState<T> {
    return this.#handle<ReducingState<T>>(name, "reducing", options, (definition) => ({
      get: () => copyValue(this.#read(definition)) as T | undefined,
      add: (value) => {
        const before = this.#read(definition) as T | undefined;
        this.#write(
          definition,
          before === undefined ? copyValue(value) : copyValue(reduce(before, copyValue(value))),
        );
      },
      clear: () => this.#clear(definition),
    }));
  }

  #handle<H>(
    name: string,
    kind: Kind,
    options: StateOptions | undefined,
    make: (definition: Definition) => H,
  ): H {
    const known = this.#definitions.get(name);
    if (known !== undefined) {
      if (known.kind === kind) return this.#handles.get(name) as H;
      throw new MailerError(
        "state_kind",
        `operator "${this.#operator}": state "${name}" is a ${known.kind} state and cannot be used as a ${kind} state`,
      );
    }
    const ttl = options?.ttl === undefined ? Infinity : parseDuration(options.ttl);
    if (!(ttl > 0)) {
      throw new MailerError(
        "invalid_ttl",
        `state "${name}": the ttl must be more than 0, not ${options!.ttl}`,
      );
    }
    const time = options?.ttlTime ?? "event";
    const definition: Definition = { name, kind, slot: this.#definitions.size, ttl, time };
    const handle = make(definition);
    this.#definitions.set(name, definition);
    this.#handles.set(name, handle);
    return handle;
  }

  #entry(): KeyEntry {
    if (this.#current === undefined) {
      throw new MailerError(
        "no_key",
        `operator "${this.#operator}": state can be used only while a record or timer is worked on`,
      );
    }
    return this.#current;
  }

  #read(definition: Definition): unknown {
    const slot = this.#entry().slots[definition.slot];
    if (slot === undefined) return undefined;
    return slot.expires === Infinity || slot.expires > this.#times[definition.time]()
      ? slot.content
      : undefined;
  }

  #write(definition: Definition, content: unknown): void {
    const entry = this.#entry(), { slot, ttl, time } = definition;
    const { eventOfWrite, processing } = this.#times;
    const expires = ttl === Infinity ? Infinity : (time === "event" ? eventOfWrite() : processing()) + ttl;
    const held = entry.slots[slot];
    if (held === undefined) entry.slots[slot] = { content, expires };
    else {
      held.content = content;
      held.expires = expires;
    }
    if (expires < Infinity && !entry.awaited[slot]) this.#await(entry, slot, expires, time);
  }

  /** One entry in the heap a slot, however often it is written and cleared meanwhile. */
  #await(entry: KeyEntry, slot: number, expires: number, time: "event" | "processing"): void {
    entry.awaited[slot] = true;
    this.#expiries[time].push(expires, { entry, slot });
  }

  #clear(definition: Definition): void {
    this.#entry().slots[definition.slot] = undefined;
  }

  #forgetIfEmpty(entry: KeyEntry): void {
    if (
      entry !== this.#current && entry.timers.size === 0 && entry.slots.every((slot) => slot === undefined)
    ) {
      this.#entries.delete(entry.identity);
    }
  }
}
