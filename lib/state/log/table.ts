/**
 * Keys with values: one table of one partition of an operator. A window is a table of its own, say; running totals are one table.
 *
 * T1 What is in memory is live: values are changed in place and encoded once, when they are written.
 * T2 `edit`, `add` and `touch` come before a change, in the same batch as it; what a freeze has seen is not changed by what
 *    comes after it.
 * T3 A look-up never waits: what is not in memory has to be fetched by `prefetch` first, or the look-up is an error.
 * T4 `scan` gives everything once, in the order of places (then of encoded identities), whatever is in memory.
 *
 * @module
 */
import { asError, MailerError } from "../../errors.ts";
import type { KeyIdentity } from "../../key.ts";
import { capture, type Captured, Cell, NEVER } from "./cell.ts";
import { CellMap } from "./cell_map.ts";
import { valueBytes } from "./codec.ts";
import { compareIdentities, EntryHead } from "./entry.ts";
import { type Found, lookUp, lookUpCached, type Wanted } from "./lookup.ts";
import { Merge } from "./merge.ts";
import type { Partition } from "./partition.ts";
import type { Run } from "./run.ts";
import type { Piece, StoredTable } from "./section.ts";
import type { Space, StoredEntry } from "./space.ts";

/** Entries that a scan hands out at once, about. */
const SCAN_LOT = 512;
const NO_RUNS: readonly Run[] = Object.freeze([]);

/** What changed in a table in one epoch. */
export class FrozenTable {
  /** Cells that have changed since, as they were. */
  readonly captured: Map<Cell, Captured> = new Map();
  /** Whether the cells are encoded: what comes later does not matter any more, but for those left for later. */
  isStaged = false;
  #left: Set<Cell> | undefined;

  constructor(readonly table: Table, readonly cells: readonly Cell[], readonly pieces: readonly Piece[]) {}

  /** Takes down what a cell holds, before it is changed. */
  keep(cell: Cell): void {
    if (!this.isStaged || this.isLeft(cell)) this.captured.set(cell, capture(cell));
  }

  /** The cell is large, and encoded when it is written. */
  leaveForLater(cell: Cell): void {
    (this.#left ??= new Set()).add(cell);
  }
  isLeft(cell: Cell): boolean {
    return this.#left !== undefined && this.#left.has(cell);
  }
}

/** A table; see {@link SpaceHandle.table}. */
export class Table<V = unknown> {
  /** Which of its space's tables it is: the start of a window, say. */
  readonly order: number;
  /** Named state it belongs to. */
  readonly space: Space;
  /** Where its keys are stored. */
  readonly pieces: readonly Piece[];
  /** Number of keys. Exact, but for keys set or deleted without looking, until those have been compacted. */
  keys: number;
  readonly #partition: Partition;
  readonly #cells = new CellMap<V>();
  /** Removed, and a run may still say otherwise. */
  readonly #removed = new Map<KeyIdentity, Cell<V>>();
  /** Changed in the current epoch. */
  #dirty: Cell<V>[] = [];
  /** Keys that were prefetched since the partition settled, and are in no run. */
  readonly #absent = new Set<KeyIdentity>();
  #absentSince = -1;
  /** Whether all it has is in memory. */
  #whole: boolean;
  #runs: readonly Run[] = NO_RUNS;
  #runsVersion = -1;
  readonly #mortal: boolean;
  /** Whether it has been dropped. */
  dropped = false;

  /** Made by its space. */
  constructor(partition: Partition, space: Space, order: number, stored: StoredTable | undefined) {
    this.#partition = partition;
    this.space = space;
    this.order = order;
    this.pieces = stored?.pieces ?? [partition.newPiece()];
    this.keys = stored === undefined ? 0 : Math.round(stored.pieces.reduce((sum, { keys }) => sum + keys, 0));
    this.#whole = stored === undefined;
    this.#mortal = space.time !== undefined;
  }

  /** Whether all its keys are in memory: then `cells` gives all of them. */
  get resident(): boolean {
    return this.#whole;
  }

  /** Number of keys in memory. */
  get live(): number {
    return this.#cells.size;
  }

  /**
   * The cell of a key, to be read.
   *
   * @returns undefined where the key has none.
   * @throws {MailerError} `state_not_loaded` where that cannot be told without waiting.
   */
  get(identity: KeyIdentity): Cell<V> | undefined {
    const cell = this.#cells.get(identity);
    return cell !== undefined && !this.#mortal ? cell : this.#find(identity, cell);
  }

  /** The cell of a key, to be changed. Otherwise as {@link Table.get}. */
  edit(identity: KeyIdentity): Cell<V> | undefined {
    const cell = this.get(identity);
    if (cell !== undefined && cell.epoch !== this.#partition.epoch) this.#touch(cell);
    return cell;
  }

  /** Says that a cell of this table, found earlier in the same batch, is about to be changed. */
  touch(cell: Cell<V>): void {
    if (cell.epoch !== this.#partition.epoch) this.#touch(cell);
  }

  /** Adds a key that was looked for and not found. */
  add(identity: KeyIdentity, key: unknown, value: V, expires?: number): Cell<V> {
    return this.#put(identity, key, value, expires, this.#removed.size > 0 && this.#removed.has(identity));
  }

  /**
   * Gives a key a value without looking whether it has one. `key` is the key itself, where it is not its own identity.
   *
   * @param expires By the time of the space; left out: never.
   */
  set(identity: KeyIdentity, value: V, expires?: number, key: unknown = identity): Cell<V> {
    const cell = this.#cells.get(identity);
    if (cell === undefined) return this.#put(identity, key, value, expires, this.#runsNow().length > 0);
    if (cell.epoch !== this.#partition.epoch) this.#touch(cell);
    cell.value = value;
    cell.expires = expires;
    return cell;
  }

  /** Removes a key. @returns whether it was there. */
  delete(identity: KeyIdentity): boolean {
    const cell = this.get(identity);
    if (cell === undefined) return false;
    this.remove(cell);
    return true;
  }

  /** Removes a cell of this table. */
  remove(cell: Cell<V>): void {
    this.touch(cell);
    this.#cells.delete(cell.identity);
    cell.gone = true;
    cell.delta--;
    cell.value = undefined as V;
    if (cell.stored) this.#removed.set(cell.identity, cell);
    this.keys--;
    this.#partition.live--;
  }

  /** Forgets the whole table, in memory and in all runs, at once. It is not to be used any more. */
  drop(): void {
    if (this.dropped) return;
    this.dropped = true;
    this.#partition.live -= this.#cells.size;
    this.#partition.dirty -= this.#dirty.length;
    this.#cells.clear();
    this.#removed.clear();
    this.#dirty = [];
    this.keys = 0;
    this.#partition.forget(this as unknown as Table);
  }

  /** The keys in memory; all keys where the table is `resident`, and then in the order in which they were added, mostly. */
  cells(): Iterable<Cell<V>> {
    return this.#cells.values();
  }

  #put(identity: KeyIdentity, key: unknown, value: V, expires: number | undefined, stored: boolean): Cell<V> {
    const partition = this.#partition, { epoch } = partition;
    const removed = this.#removed.size === 0 ? undefined : this.#removed.get(identity);
    let cell: Cell<V>;
    if (removed !== undefined && removed.epoch === epoch) { // its removal has not been seen by anyone
      this.#removed.delete(identity);
      cell = removed;
      cell.gone = false;
      cell.key = key;
      cell.value = value;
      cell.expires = expires;
      cell.delta++;
    } else {
      if (removed !== undefined) this.#removed.delete(identity);
      cell = new Cell(identity, key, value, expires, epoch, stored || removed !== undefined);
      if (partition.tracked) {
        this.#dirty.push(cell);
        partition.dirty++;
      }
    }
    this.#cells.add(cell);
    this.keys++;
    partition.live++;
    return cell;
  }

  #touch(cell: Cell<V>): void {
    const partition = this.#partition;
    if (cell.gone) {
      throw new MailerError("cell_gone", `${this.space.label}: a cell was used after it was removed`);
    }
    if (cell.epoch > partition.persisted) {
      partition.frozenTable(cell.epoch, this as unknown as Table).keep(cell as Cell);
    }
    if (cell.epoch !== NEVER) cell.stored = true;
    cell.epoch = partition.epoch;
    cell.delta = 0;
    this.#dirty.push(cell);
    partition.dirty++;
  }

  #find(identity: KeyIdentity, cell: Cell<V> | undefined): Cell<V> | undefined {
    if (cell !== undefined) {
      if (!this.#isExpired(cell)) return cell;
      this.remove(cell);
      return undefined;
    }
    if (this.#whole || this.#isAbsent(identity) || this.#removed.has(identity)) return undefined;
    const runs = this.#runsNow();
    if (runs.length === 0) return undefined;
    const found = lookUpCached(this.#wanted(identity), runs);
    if (found === undefined) return undefined;
    const read = found === "unknown" ? found : this.#read(found);
    if (read !== "unknown" && !(read instanceof Promise)) {
      return read === undefined ? undefined : this.#keep(read);
    }
    throw new MailerError(
      "state_not_loaded",
      `${this.space.label}: key ${JSON.stringify(String(identity))} is not in memory`,
      { hint: "prefetch the keys of a batch before the batch is worked on" },
    );
  }

  #isAbsent(identity: KeyIdentity): boolean {
    return this.#absentSince === this.#partition.round && this.#absent.has(identity);
  }

  #isExpired(cell: Cell<V>): boolean {
    return cell.expires !== undefined && this.#mortal && cell.expires <= this.space.time!();
  }

  #wanted(identity: KeyIdentity): Wanted {
    const place = this.#partition.places.of(identity), group = this.#partition.places.group(place);
    const piece = this.pieces.find(({ from, to }) => group >= from && group < to);
    if (piece === undefined) {
      const { from, to } = this.#partition;
      throw new MailerError(
        "foreign_key",
        `${this.space.label}: key ${
          JSON.stringify(String(identity))
        } is of key group ${group}, this partition has ${from} to ${to - 1}`,
      );
    }
    return { instance: piece.instance, place, identity: valueBytes(identity) };
  }

  /** @returns undefined where the key was deleted or has expired. */
  #read({ run, page, index }: Found): StoredEntry | Promise<StoredEntry> | undefined {
    const head = new EntryHead().read(page.bytes, page.view, page.start(index));
    if (head.isTombstone || (this.#mortal && head.expires <= this.space.time!())) return undefined;
    return this.space.read(head, page, index, run);
  }

  #keep({ identity, key, value, expires }: StoredEntry): Cell<V> {
    const cell = new Cell(identity, key, value as V, expires === Infinity ? undefined : expires, NEVER, true);
    this.#cells.add(cell);
    this.#partition.live++;
    return cell;
  }

  #runsNow(): readonly Run[] {
    const { runs } = this.#partition;
    if (this.#runsVersion === runs.version) return this.#runs;
    this.#runsVersion = runs.version;
    return this.#runs = runs.all.filter((run) => this.pieces.some(({ instance }) => run.spans.has(instance)));
  }

  /**
   * Brings what keys hold into memory, for the batch that follows.
   *
   * @returns What to wait for; undefined where nothing.
   */
  prefetch(identities: readonly KeyIdentity[]): Promise<void> | undefined {
    if (this.#whole) return undefined;
    if (this.#absentSince !== this.#partition.round) {
      this.#absent.clear();
      this.#absentSince = this.#partition.round;
    }
    let missing: Set<KeyIdentity> | undefined;
    const cells = this.#cells, removed = this.#removed;
    for (let i = 0; i < identities.length; i++) {
      const identity = identities[i]!;
      if (cells.get(identity) !== undefined) continue; // and it is young again
      if (removed.size > 0 && removed.has(identity)) this.#absent.add(identity); // may be in a run by the time it is asked for
      else (missing ??= new Set()).add(identity);
    }
    if (missing === undefined || this.#runsNow().length === 0) return undefined;
    return this.#fetch(missing);
  }

  async #fetch(missing: Set<KeyIdentity>): Promise<void> {
    const identities = [...missing], large: Promise<void>[] = [];
    await lookUp(
      identities.map((key) => this.#wanted(key)),
      this.#runsNow(),
      this.#partition.store,
      (key, found) => {
        const read = this.#read(found);
        if (read === undefined) return;
        missing.delete(identities[key]!);
        if (read instanceof Promise) large.push(this.#guarded(found.run, read));
        else this.#keep(read);
      },
    );
    await Promise.all(large);
    for (const identity of missing) this.#absent.add(identity);
  }

  async #guarded(run: Run, read: Promise<StoredEntry>): Promise<void> {
    run.readers++;
    try {
      this.#keep(await read);
    } finally {
      run.readers--;
    }
  }

  /**
   * Everything in the table, a lot at a time, in the order of T4. The partition is not to settle meanwhile; keys removed
   * meanwhile may be left out, keys added meanwhile are.
   */
  async *scan(): AsyncGenerator<readonly StoredEntry<V>[], void> {
    const live = this.#sorted(), runs = this.#runsNow(), hidden = new Set(this.#removed.keys());
    for (const run of runs) run.readers++;
    let lot: StoredEntry<V>[] = [], at = 0;
    const takeLive = (before: Live<V> | undefined): void => {
      for (; at < live.length; at++) {
        const next = live[at]!;
        if (before !== undefined && compareLive(next, before) > 0) return;
        const { identity, key, value, expires, gone } = next.cell!;
        if (!gone && !this.#isExpired(next.cell!)) {
          lot.push({ identity, key, value, expires: expires ?? Infinity });
        }
      }
    };
    const head = new EntryHead();
    try {
      for (const piece of [...this.pieces].sort((a, b) => a.from - b.from)) {
        if (runs.length === 0) break;
        const { instance } = piece, { places } = this.#partition;
        const position = (group: number) => ({ instance, order: 0, place: places.first(group) });
        const merge = new Merge(runs, { from: position(piece.from), to: position(piece.to) });
        for (let step = merge.next(); step !== "end"; step = merge.next()) {
          if (step === "wait") {
            await merge.wait();
            continue;
          }
          const { page, index, place, run } = merge.top;
          head.read(page.bytes, page.view, page.start(index));
          const bytes = page.bytes.subarray(head.identityFrom, head.identityTo);
          takeLive({ place, bytes, cell: undefined });
          if (head.isTombstone || (this.#mortal && head.expires <= this.space.time!())) continue;
          const read = this.space.read(head, page, index, run);
          const entry = (read instanceof Promise ? await read : read) as StoredEntry<V>;
          if (
            this.#cells.has(entry.identity) || this.#removed.has(entry.identity) || hidden.has(entry.identity)
          ) continue;
          lot.push(entry);
          if (lot.length < SCAN_LOT) continue;
          yield lot;
          lot = [];
        }
      }
      takeLive(undefined);
      if (lot.length > 0) yield lot;
    } finally {
      for (const run of runs) run.readers--;
    }
  }

  /** Brings all of it into memory; nothing has been changed yet. */
  async load(): Promise<void> {
    if (this.#whole) return;
    for await (const lot of this.scan()) for (const entry of lot) this.#keep(entry);
    this.#whole = true;
    this.keys = this.#cells.size; // it may have been an estimate
  }

  #sorted(): Live<V>[] {
    const live = Array.from(this.#cells.values(), (cell): Live<V> => ({
      place: this.#partition.places.of(cell.identity),
      bytes: valueBytes(cell.identity),
      cell,
    }));
    return live.sort(compareLive);
  }

  /** What changed in this epoch; the next one begins. Undefined where nothing. */
  freeze(): FrozenTable | undefined {
    if (this.#dirty.length === 0) return undefined;
    const frozen = new FrozenTable(this as unknown as Table, this.#dirty as unknown as Cell[], this.pieces);
    this.#dirty = [];
    return frozen;
  }

  /** What was removed is in a run now, and need not be remembered. */
  settled(frozen: FrozenTable): void {
    for (const cell of frozen.cells as readonly Cell<V>[]) {
      if (cell.gone && this.#removed.get(cell.identity) === cell && cell.epoch <= this.#partition.persisted) {
        this.#removed.delete(cell.identity);
      }
    }
  }

  /** Any changed cell, to guess by how large they are. */
  get sample(): Cell<V> | undefined {
    return this.#dirty.at(-1);
  }

  /** Looks at some cells, and removes those that have expired. @returns Steps that are left at the end of a round. */
  sweep(steps: number): number {
    for (; steps > 0; steps--) {
      const cell = this.#cells.pass();
      if (cell === undefined) return steps;
      if (this.#isExpired(cell)) this.remove(cell);
    }
    return 0;
  }

  /** Cells that were asked for since the last `turn`. */
  get young(): number {
    return this.#cells.young;
  }

  /** Forgets what was not asked for since the last turn and can be read again. */
  turn(): void {
    const { persisted } = this.#partition;
    const forgotten = this.#cells.turn((cell) => cell.epoch > persisted);
    if (forgotten > 0) this.#whole = false;
    this.#partition.live -= forgotten;
  }

  /** Whether its values expire. */
  get mortal(): boolean {
    return this.#mortal;
  }
}

/** A cell with what it is sorted by. */
interface Live<V> {
  readonly place: number;
  readonly bytes: Uint8Array;
  readonly cell: Cell<V> | undefined;
}

function compareLive(a: Live<unknown>, b: Live<unknown>): number {
  return a.place - b.place || compareIdentities(a.bytes, 0, b.bytes, 0);
}

/** The error of a value that cannot be written, with the place it lies in. */
export function unwritable(space: Space, key: unknown, thrown: unknown): MailerError {
  const cause = asError(thrown);
  return new MailerError(
    cause instanceof MailerError ? cause.code : "not_storable",
    `${space.label}, key ${JSON.stringify(String(key))}: ${cause.message}`,
    { cause, ...(cause instanceof MailerError && cause.hint !== undefined ? { hint: cause.hint } : {}) },
  );
}
