/**
 * State of user functions, by key: each named state is a table of its own, with a cell for each key that has something in it.
 *
 * K1 A call that is undone leaves everything as it was before it: what each state holds, in what order, and when it expires.
 * K2 What has expired is removed, from memory and from the next checkpoint, when `expire` is called.
 * K3 After a restore all named states are there, also those that no handle has been asked for yet: they expire, are counted, and
 *    keep their kind.
 *
 * @module
 */
import { parseDuration } from "../duration.ts";
import { asError, MailerError } from "../errors.ts";
import { TimeHeap } from "../heap.ts";
import { type KeyIdentity, keyIdentity } from "../key.ts";
import { copyValue, setOwn } from "../value.ts";
import type {
  KeyedStateAccess,
  ListState,
  MapState,
  ReducingState,
  StateOptions,
  ValueState,
} from "./handles.ts";
import type { Cell, Partition, Table } from "./log/mod.ts";
import { StoredValue } from "./log/space.ts";

type Kind = "value" | "list" | "map" | "reducing";
type Time = "event" | "processing";
const TIMES: readonly Time[] = ["event", "processing"];

/** Names of spaces of the user's begin so; the operator has others. */
const PREFIX = "state:";

/** What a checkpoint keeps of a named state besides its cells. */
export interface StateNote {
  readonly name: string;
  readonly kind: Kind;
  /** Whose time what it holds expires by. */
  readonly time: Time;
}

/** A named state. */
interface Definition {
  readonly name: string;
  readonly kind: Kind;
  readonly table: Table;
  time: Time;
  ttl: number;
  /** Its handle, once it has been asked for: a restored state has none until then, and its options are not known. */
  handle: unknown;
  /** Keys whose expiry waits in the heap. */
  readonly awaited: Set<KeyIdentity>;
}

/** What a map state holds of a key. */
interface MapContent {
  /** Number of the next entry. */
  next: number;
  readonly entries: Map<KeyIdentity, MapEntry>;
}
/** Key, value, and a number that grows in the order in which keys were first set. */
type MapEntry = readonly [key: unknown, value: unknown, order: number];

interface Expiry {
  readonly definition: Definition;
  readonly identity: KeyIdentity;
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

/** Counts what is held of each key, to tell how many keys there are. */
export class HeldKeys {
  readonly #counts = new Map<KeyIdentity, number>();

  /** Number of keys of which something is held. */
  get size(): number {
    return this.#counts.size;
  }
  /** One thing more is held of the key. */
  hold(identity: KeyIdentity): void {
    this.#counts.set(identity, (this.#counts.get(identity) ?? 0) + 1);
  }
  /** One thing less. */
  release(identity: KeyIdentity): void {
    const left = (this.#counts.get(identity) ?? 0) - 1;
    if (left > 0) this.#counts.set(identity, left);
    else this.#counts.delete(identity);
  }
}

/** What a call works on, and how to take back what it has done. */
export class KeyedCall {
  /** The key being worked on. */
  key: unknown;
  /** Its identity. */
  identity: KeyIdentity;
  /** Whether a call is under way. */
  isOpen = false;
  readonly #undo: (() => void)[] = [];

  /** Begins. */
  enter(identity: KeyIdentity, key: unknown): void {
    this.identity = identity;
    this.key = key;
    this.isOpen = true;
  }
  /** Ends; what it has done stays. */
  leave(): void {
    this.#undo.length = 0;
    this.key = undefined;
    this.isOpen = false;
  }
  /** Says how to take back what is about to be done. */
  onUndo(undo: () => void): void {
    this.#undo.push(undo);
  }
  /** Takes back all it has done, the last thing first. */
  undo(): void {
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) undo();
  }
}

/** The state of one partition of one operator. */
export class KeyedState implements KeyedStateAccess {
  /** The call under way. Others that keep something for it, as timers, take part in its undoing. */
  readonly call: KeyedCall = new KeyedCall();
  /** Of which keys anything is held. Others that keep something by key add theirs. */
  readonly held: HeldKeys = new HeldKeys();
  readonly #operator: string;
  readonly #partition: Partition;
  readonly #times: StateTimes;
  readonly #definitions = new Map<string, Definition>();
  readonly #expiries = { event: new TimeHeap<Expiry>(), processing: new TimeHeap<Expiry>() };
  /** Maps whose entries have to be put into their order again when a call has been undone. */
  readonly #disordered = new Set<MapContent>();
  /** State that could not be brought to the version of the program. */
  #failure: { readonly error: unknown } | undefined;

  /** @param operator Id of the operator, for errors. */
  constructor(operator: string, partition: Partition, times: StateTimes) {
    this.#operator = operator;
    this.#partition = partition;
    this.#times = times;
    // Asked for now, all that was stored is loaded.
    for (const name of partition.unclaimed) {
      if (name.startsWith(PREFIX)) this.#lateTable(name.slice(PREFIX.length));
    }
  }

  #lateTable(name: string): Table {
    return this.#partition.space(PREFIX + name, { late: true }).table();
  }

  /** Number of keys of which anything is held. */
  get size(): number {
    return this.held.size;
  }

  /** Earliest time of the clock at which something expires; Infinity when nothing will. */
  get nextExpiry(): number {
    return this.#expiries.processing.earliest;
  }

  /** What a checkpoint keeps besides the tables. */
  snapshot(): readonly StateNote[] {
    return Array.from(this.#definitions.values(), ({ name, kind, time }) => ({ name, kind, time }));
  }

  /** Takes over what former instances noted. */
  restore(notes: readonly StateNote[]): void {
    for (const { name, kind, time } of notes) {
      if (this.#definitions.has(name)) continue;
      const definition = this.#define(name, kind, time);
      for (const { identity } of definition.table.cells()) this.held.hold(identity);
      this.#awaitAll(definition);
    }
  }

  /** A state whose options are not known yet. */
  #define(name: string, kind: Kind, time: Time): Definition {
    const table = this.#lateTable(name);
    const definition: Definition = {
      name,
      kind,
      table,
      time,
      ttl: Infinity,
      handle: undefined,
      awaited: new Set(),
    };
    this.#definitions.set(name, definition);
    return definition;
  }

  /** Handles speak of this key from now on. */
  enter(key: unknown, identity: KeyIdentity = keyIdentity(key)): void {
    this.call.enter(identity, key);
  }

  /** The work on the current key is done. */
  leave(): void {
    this.call.leave();
  }

  /** Takes back what has been done since `enter`. */
  undo(): void {
    this.call.undo();
    for (const content of this.#disordered) putInOrder(content);
    this.#disordered.clear();
  }

  /** Frees what has expired. */
  expire(): void {
    for (const time of TIMES) {
      const heap = this.#expiries[time];
      if (heap.size === 0) continue;
      const now = this.#times[time]();
      while (heap.isDue(now)) {
        const { definition, identity } = heap.pop();
        if (definition.time !== time) continue; // it goes by the other time since
        definition.awaited.delete(identity);
        const cell = definition.table.get(identity);
        if (cell?.expires === undefined) continue;
        if (cell.expires > now) this.#await(definition, identity, cell.expires); // written again since
        else this.#remove(definition, cell);
      }
    }
  }

  /**
   * Throws where stored state could not be brought to the version of the program: no record is to blame for that.
   *
   * @throws {MailerError} `state_version`, or what a `migrate` has thrown.
   */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** A plain copy of what a key holds, by name of the state; for tests and inspection. */
  inspect(key: unknown): Readonly<Record<string, unknown>> {
    const identity = keyIdentity(key), found: Record<string, unknown> = {};
    for (const definition of this.#definitions.values()) {
      const cell = definition.table.get(identity);
      if (cell === undefined || this.#isExpired(definition, cell)) continue;
      const { value } = cell, content = value instanceof StoredValue ? value.value : value;
      const isMap = definition.kind === "map";
      setOwn(found, definition.name, isMap ? entriesOf(content as MapContent) : copyValue(content));
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
        const list = this.#edit(definition) as T[] | undefined, copy = copyValue(value);
        if (list === undefined) return this.#write(definition, [copy]);
        this.call.onUndo(() => list.pop());
        list.push(copy);
        this.#prolong(definition, list);
      },
      set: (values) =>
        values.length === 0 ? this.#clear(definition) : this.#write(definition, copyValue([...values])),
      clear: () => this.#clear(definition),
    }));
  }

  map<K, V>(name: string, options?: StateOptions): MapState<K, V> {
    return this.#handle<MapState<K, V>>(name, "map", options, (definition) => {
      const read = () => this.#read(definition) as MapContent | undefined;
      return {
        get: (key) => copyValue(read()?.entries.get(keyIdentity(key))?.[1]) as V | undefined,
        has: (key) => read()?.entries.has(keyIdentity(key)) ?? false,
        set: (key, value) => this.#setEntry(definition, keyIdentity(key), copyValue(key), copyValue(value)),
        delete: (key) => this.#deleteEntry(definition, keyIdentity(key)),
        entries: () => {
          const content = read();
          return (content === undefined ? [] : entriesOf(content)) as (readonly [K, V])[];
        },
        get size() {
          return read()?.entries.size ?? 0;
        },
        clear: () => this.#clear(definition),
      };
    });
  }

  reducing<T>(name: string, reduce: (a: T, b: T) => T, options?: StateOptions): ReducingState<T> {
    return this.#handle<ReducingState<T>>(name, "reducing", options, (definition) => ({
      get: () => copyValue(this.#read(definition)) as T | undefined,
      add: (value) => {
        const before = copyValue(this.#read(definition)) as T | undefined;
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
    if (known !== undefined && known.kind !== kind) {
      throw new MailerError(
        "state_kind",
        `operator "${this.#operator}": state "${name}" is a ${known.kind} state and cannot be used as a ${kind} state`,
      );
    }
    if (known?.handle !== undefined) return known.handle as H;
    const { ttl: lifetime, ttlTime = "event" } = options ?? {};
    const ttl = lifetime === undefined ? Infinity : parseDuration(lifetime);
    if (!(ttl > 0)) {
      throw new MailerError("invalid_ttl", `state "${name}": the ttl must be more than 0, not ${lifetime}`);
    }
    const definition = known ?? this.#define(name, kind, ttlTime);
    this.#declare(definition, ttlTime, options ?? {});
    definition.ttl = ttl;
    const handle = make(definition);
    definition.handle = handle;
    return handle;
  }

  /** A state is used for the first time: what has been restored of it is brought to the version that the program says. */
  #declare(definition: Definition, time: Time, options: StateOptions): void {
    this.check();
    const { table, kind } = definition;
    table.space.declare(versionOf(kind, options));
    try {
      const upgraded = Array.from(table.cells(), (cell) => [cell, table.space.upgraded(cell.value)] as const);
      for (const [cell, value] of upgraded) cell.value = value; // what is stored stays: it can be read so again
    } catch (error) {
      this.#failure = { error: asError(error) };
      throw error;
    }
    if (definition.time === time) return;
    definition.time = time;
    definition.awaited.clear();
    this.#awaitAll(definition);
  }

  #identity(): KeyIdentity {
    if (!this.call.isOpen) {
      throw new MailerError(
        "no_key",
        `operator "${this.#operator}": state can be used only while a record or timer is worked on`,
      );
    }
    return this.call.identity;
  }

  /** What the state holds of the current key, not to be changed; undefined where nothing. */
  #read(definition: Definition): unknown {
    const cell = definition.table.get(this.#identity());
    return cell === undefined || this.#isExpired(definition, cell) ? undefined : cell.value;
  }

  /** What the state holds of the current key, to be changed in place; undefined where nothing. */
  #edit(definition: Definition): unknown {
    const cell = definition.table.get(this.#identity());
    if (cell === undefined || this.#isExpired(definition, cell)) return undefined;
    definition.table.touch(cell);
    return cell.value;
  }

  #isExpired({ time }: Definition, { expires }: Cell): boolean {
    return expires !== undefined && expires <= this.#times[time]();
  }

  /** Replaces what the state holds of the current key. */
  #write(definition: Definition, content: unknown): void {
    const { table, ttl, time } = definition, { eventOfWrite, processing } = this.#times;
    const identity = this.#identity(), cell = table.get(identity);
    const expires = ttl === Infinity ? undefined : (time === "event" ? eventOfWrite() : processing()) + ttl;
    this.#keep(definition, cell);
    this.#put(definition, identity, this.call.key, content, expires);
    if (expires !== undefined && !definition.awaited.has(identity)) {
      this.#await(definition, identity, expires);
    }
  }

  /** It was changed in place, which is a write. */
  #prolong(definition: Definition, content: unknown): void {
    if (definition.ttl < Infinity) this.#write(definition, content);
  }

  #clear(definition: Definition): void {
    const cell = definition.table.get(this.#identity());
    if (cell === undefined) return;
    this.#keep(definition, cell);
    this.#remove(definition, cell);
  }

  /** Notes what a cell holds, or that there is none, to be put back if the call fails. */
  #keep(definition: Definition, cell: Cell | undefined): void {
    const { call } = this, { identity } = call;
    if (cell === undefined) {
      call.onUndo(() => {
        const added = definition.table.get(identity);
        if (added !== undefined) this.#remove(definition, added);
      });
      return;
    }
    const { key, value, expires } = cell;
    call.onUndo(() => this.#put(definition, identity, key, value, expires));
  }

  #put(
    { table }: Definition,
    identity: KeyIdentity,
    key: unknown,
    content: unknown,
    expires: number | undefined,
  ): void {
    const cell = table.get(identity);
    if (cell !== undefined) return void table.set(identity, content, expires, cell.key);
    table.add(identity, key, content, expires);
    this.held.hold(identity);
  }

  #remove({ table }: Definition, cell: Cell): void {
    table.remove(cell);
    this.held.release(cell.identity);
  }

  #setEntry(definition: Definition, identity: KeyIdentity, key: unknown, value: unknown): void {
    const content = this.#edit(definition) as MapContent | undefined;
    if (content === undefined) {
      return this.#write(definition, { next: 1, entries: new Map([[identity, [key, value, 0]]]) });
    }
    const { entries } = content, before = entries.get(identity);
    this.call.onUndo(() => before === undefined ? entries.delete(identity) : entries.set(identity, before));
    entries.set(identity, [key, value, before === undefined ? content.next++ : before[2]]);
    this.#prolong(definition, content);
  }

  #deleteEntry(definition: Definition, identity: KeyIdentity): void {
    const content = this.#edit(definition) as MapContent | undefined, entry = content?.entries.get(identity);
    if (content === undefined || entry === undefined) return;
    this.call.onUndo(() => {
      content.entries.set(identity, entry);
      this.#disordered.add(content);
    });
    content.entries.delete(identity);
    if (content.entries.size === 0) this.#clear(definition);
  }

  /** One entry in the heap a key, however often it is written and cleared meanwhile. */
  #await(definition: Definition, identity: KeyIdentity, expires: number): void {
    definition.awaited.add(identity);
    this.#expiries[definition.time].push(expires, { definition, identity });
  }

  #awaitAll(definition: Definition): void {
    for (const { identity, expires } of definition.table.cells()) {
      if (expires !== undefined) this.#await(definition, identity, expires);
    }
  }
}

/** The version of what tables hold: `migrate` sees values and elements, not what they are kept in. */
function versionOf(
  kind: Kind,
  { version, migrate }: StateOptions,
): { readonly version?: number; readonly migrate?: (content: unknown, version: number) => unknown } {
  return {
    ...(version === undefined ? {} : { version }),
    ...(migrate === undefined ? {} : {
      migrate: (content: unknown, from: number) =>
        mapContent(kind, content, (value) => copyValue(migrate(value, from))),
    }),
  };
}

/** Replaces every value of the user's in what a state holds of a key. */
function mapContent(kind: Kind, content: unknown, change: (value: unknown) => unknown): unknown {
  switch (kind) {
    case "value":
    case "reducing":
      return change(content);
    case "list":
      return (content as readonly unknown[]).map(change);
    case "map": {
      const { next, entries } = content as MapContent;
      const changed = new Map<KeyIdentity, MapEntry>();
      for (const [identity, [key, value, order]] of entries) {
        changed.set(identity, [key, change(value), order]);
      }
      return { next, entries: changed } satisfies MapContent;
    }
  }
}

function entriesOf({ entries }: MapContent): (readonly [unknown, unknown])[] {
  return Array.from(entries.values(), ([key, value]) => [copyValue(key), copyValue(value)] as const);
}

function putInOrder({ entries }: MapContent): void {
  const sorted = [...entries].sort(([, [, , a]], [, [, , b]]) => a - b);
  entries.clear();
  for (const [identity, entry] of sorted) entries.set(identity, entry);
}
