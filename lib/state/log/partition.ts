/**
 * The keyed state of one partition of an operator: its tables and queues.
 *
 * F1 `freeze` takes no longer than there are tables; what is frozen is encoded later, or right before it is changed.
 * F2 Between two calls of `settle` nothing leaves memory: cells that were found stay valid for the batch.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { PageStore } from "../pages/mod.ts";
import type { Places } from "./place.ts";
import { FrozenQueue, type HeldEntry, Queue } from "./queue.ts";
import type { RunList } from "./run_list.ts";
import { type Piece, shareOf, type StoredPiece, type StoredTable } from "./section.ts";
import { roughSize } from "./size.ts";
import { Space, type SpaceOptions } from "./space.ts";
import { FrozenTable, Table } from "./table.ts";

/** What a cell costs besides its value and key. */
const CELL_BYTES = 260;
const QUEUE_ENTRY_BYTES = 160;
/** Cells that each `settle` looks at, where some may have expired: more when many were changed. */
const STEPS = 256;
const STEPS_A_CHANGE = 3;
/** How much the newest sample counts. */
const SAMPLE_WEIGHT = 1 / 16;

/** What a partition needs of its store. */
export interface PartitionHost {
  readonly operator: string;
  readonly places: Places;
  readonly runs: RunList;
  readonly pages: PageStore;
  /** Whether changes are kept for a freeze to come. */
  readonly tracked: boolean;
  /** Which spaces page: all, or those that ask for it. */
  readonly paging: "all" | "asked";
  /** What its cells may take, bytes. */
  readonly liveBytes: number;
  newInstance(): number;
  /** Has changes written where they have become many. @returns What to wait for before more is changed. */
  relieve(partition: Partition): Promise<void> | undefined;
}

/** What a partition held when it was frozen; for {@link StateStore.persist}. */
export interface Frozen {
  readonly partition: Partition;
  readonly epoch: number;
  readonly tables: ReadonlyMap<Table, FrozenTable>;
  readonly queues: readonly FrozenQueue[];
  /** All tables and queues there were, with the time of their space. */
  readonly registry: readonly RegisteredTable[];
}

/** A table or queue as it was. */
export interface RegisteredTable extends StoredTable {
  /** Now, by the time of its space; −Infinity where nothing expires. */
  readonly now: number;
}

/** The tables of one named state. */
export interface SpaceHandle<V = unknown> {
  /** The table of an order, made where it is missing. Default: 0. */
  table(order?: number): Table<V>;
  /** The table of an order, where there is one. */
  existing(order: number): Table<V> | undefined;
  /** All tables there are, by order. */
  tables(): readonly Table<V>[];
}

/** A partition; see {@link StateStore.partition}. */
export class Partition {
  /** Its key groups: `from` … `to` − 1. */
  readonly from: number;
  readonly to: number;
  /** Number of the stretch between two freezes it is in. */
  epoch = 0;
  /** The last epoch that is in runs. */
  persisted = -1;
  /** Changes of this epoch. */
  dirty = 0;
  /** Cells in memory. */
  live = 0;
  /** Counts the batches: calls of `settle`. */
  round = 0;
  readonly #host: PartitionHost;
  readonly #spaces = new Map<string, Space>();
  readonly #tables = new Map<string, Map<number, Table>>();
  readonly #queues = new Map<string, Queue>();
  /** Restored, and not asked for yet. */
  readonly #stored: StoredTable[];
  readonly #frozen: Frozen[] = [];
  #valueBytes = 64;
  #swept = 0;
  #dirtySwept = 0;
  #hasMortal = false;

  /** Made by its store. */
  constructor(host: PartitionHost, from: number, to: number, tables: readonly StoredTable[]) {
    this.#host = host;
    this.from = from;
    this.to = to;
    this.#stored = tables.flatMap((table) => {
      const pieces = table.pieces.flatMap((piece): StoredPiece[] => {
        const low = Math.max(piece.from, from), high = Math.min(piece.to, to);
        return low >= high ? [] : [{ ...piece, from: low, to: high, keys: shareOf(piece, from, to) }];
      });
      const covered = pieces.reduce((sum, piece) => sum + piece.to - piece.from, 0);
      return pieces.length === 0
        ? []
        : [{ ...table, pieces: covered === to - from ? pieces : this.#completed(pieces) }];
    });
  }

  /** Adds pieces for the key groups whose former partition did not have the table. */
  #completed(pieces: readonly StoredPiece[]): StoredPiece[] {
    const all: StoredPiece[] = [];
    const add = (from: number, to: number): void => {
      if (from < to) all.push({ instance: this.#host.newInstance(), from, to, keys: 0, floor: -Infinity });
    };
    let at = this.from;
    for (const piece of [...pieces].sort((a, b) => a.from - b.from)) {
      add(at, piece.from);
      all.push(piece);
      at = piece.to;
    }
    add(at, this.to);
    return all;
  }

  /** Where keys lie. */
  get places(): Places {
    return this.#host.places;
  }
  /** The runs of the store. */
  get runs(): RunList {
    return this.#host.runs;
  }
  /** Where runs are kept. */
  get store(): PageStore {
    return this.#host.pages;
  }
  /** Whether changes are kept for a freeze to come. */
  get tracked(): boolean {
    return this.#host.tracked;
  }
  /** A new place to store keys under. */
  newPiece(): Piece {
    return { instance: this.#host.newInstance(), from: this.from, to: this.to };
  }

  /**
   * The tables of a named state. The same name gives the same tables; its options are those of the first call.
   *
   * @throws {MailerError} `state_kind` where the name is that of a queue, or was in the state that was restored.
   */
  space<V>(name: string, options: SpaceOptions = {}): SpaceHandle<V> {
    const space = this.#space(name, "table", options);
    let tables = this.#tables.get(name);
    if (tables === undefined) {
      this.#tables.set(name, tables = new Map());
      for (const stored of this.#claim(name)) {
        tables.set(stored.order, new Table(this, space, stored.order, stored));
      }
    }
    const known = tables as Map<number, unknown> as Map<number, Table<V>>;
    return {
      table: (order = 0) => {
        let table = known.get(order);
        if (table === undefined) known.set(order, table = new Table<V>(this, space, order, undefined));
        return table;
      },
      existing: (order) => known.get(order),
      tables: () => [...known.values()].sort((a, b) => a.order - b.order),
    };
  }

  /**
   * A queue of entries by time.
   *
   * @throws {MailerError} `state_kind` where the name is that of tables, or was in the state that was restored.
   */
  queue<P>(name: string): Queue<P> {
    const space = this.#space(name, "queue", {});
    let queue = this.#queues.get(name);
    if (queue === undefined) this.#queues.set(name, queue = new Queue(this, space, this.#claim(name)[0]));
    return queue as unknown as Queue<P>;
  }

  #space(name: string, kind: StoredTable["kind"], options: SpaceOptions): Space {
    const isOther = (kind === "table" ? this.#queues : this.#tables).has(name) ||
      this.#stored.some((stored) => stored.space === name && stored.kind !== kind);
    if (isOther) {
      throw new MailerError(
        "state_kind",
        `operator "${this.#host.operator}": state "${name}" is ${
          kind === "table" ? "a queue" : "made of tables"
        }, and cannot be ${kind === "table" ? "made of tables" : "a queue"}`,
      );
    }
    let space = this.#spaces.get(name);
    if (space === undefined) {
      const paged = this.#host.paging === "all" || options.paged === true;
      this.#spaces.set(name, space = new Space(this.#host.operator, name, options, paged));
    }
    if (space.time !== undefined) this.#hasMortal = true;
    return space;
  }

  #claim(name: string): readonly StoredTable[] {
    const claimed = this.#stored.filter(({ space }) => space === name);
    const rest = this.#stored.filter(({ space }) => space !== name);
    this.#stored.splice(0, Infinity, ...rest);
    return claimed;
  }

  /** Brings all tables and queues that have been asked for into memory, but for those that page. */
  async load(): Promise<void> {
    for (const table of this.#allTables()) {
      if (!table.space.paged || this.#host.liveBytes === Infinity) await table.load();
    }
    for (const queue of this.#queues.values()) await queue.loadAll();
  }

  /** Names of the states that were restored and that nobody has asked for. They are kept. */
  get unclaimed(): readonly string[] {
    return [...new Set(this.#stored.map(({ space }) => space))];
  }

  /** A table is gone. */
  forget(table: Table): void {
    this.#tables.get(table.space.name)?.delete(table.order);
  }

  /** Number of keys in all tables. */
  get keys(): number {
    let keys = 0;
    for (const tables of this.#tables.values()) for (const table of tables.values()) keys += table.keys;
    for (const { kind, pieces } of this.#stored) {
      if (kind === "table") { for (const piece of pieces) keys += piece.keys; }
    }
    return Math.round(keys);
  }

  /** Everything changed since the last freeze, and what there is; nothing that comes later is in it. */
  freeze(): Frozen {
    const tables = new Map<Table, FrozenTable>(), queues: FrozenQueue[] = [];
    for (const ofSpace of this.#tables.values()) {
      for (const table of ofSpace.values()) {
        const frozen = table.freeze();
        if (frozen !== undefined) tables.set(table, frozen);
      }
    }
    const registry = this.registry();
    for (const queue of this.#queues.values()) {
      const frozen = queue.freeze();
      if (frozen !== undefined) queues.push(frozen);
    }
    const frozen: Frozen = { partition: this, epoch: this.epoch, tables, queues, registry };
    this.#frozen.push(frozen);
    this.epoch++;
    this.dirty = 0;
    return frozen;
  }

  /** All tables and queues as they are. */
  registry(): RegisteredTable[] {
    const all: RegisteredTable[] = this.#stored.map((stored) => ({ ...stored, now: -Infinity }));
    for (const ofSpace of this.#tables.values()) {
      for (const { space, order, pieces, keys } of ofSpace.values()) {
        const shares = pieces.map((piece) => ({
          ...piece,
          keys: this.#share(keys, piece),
          floor: -Infinity,
        }));
        all.push({
          space: space.name,
          kind: "table",
          order,
          pieces: shares,
          now: space.time?.() ?? -Infinity,
        });
      }
    }
    for (const queue of this.#queues.values()) {
      const floors = queue.floors();
      const shares = queue.pieces.map((piece, i) => ({
        ...piece,
        keys: this.#share(queue.size, piece),
        floor: floors[i]!,
      }));
      all.push({ space: queue.space.name, kind: "queue", order: 0, pieces: shares, now: -Infinity });
    }
    return all;
  }

  #share(keys: number, { from, to }: Piece): number {
    return keys * (to - from) / (this.to - this.from);
  }

  /** The live table with an instance, for corrections of its number of keys. */
  tableOf(instance: number): Table | undefined {
    for (const ofSpace of this.#tables.values()) {
      for (const table of ofSpace.values()) {
        if (table.pieces.some((piece) => piece.instance === instance)) return table;
      }
    }
    return undefined;
  }

  /** What was frozen and is in no run yet, oldest first. */
  get frozen(): readonly Frozen[] {
    return this.#frozen;
  }

  /** What an epoch that is in no run yet knows of a table. */
  frozenTable(epoch: number, table: Table): FrozenTable {
    return this.#frozen.find((frozen) => frozen.epoch === epoch)!.tables.get(table)!;
  }

  /** What was added to a queue and is in no run yet. */
  frozenEntries(queue: Queue): HeldEntry[] {
    return this.#frozen.flatMap(({ queues }) =>
      queues.flatMap((frozen) => frozen.queue === queue ? [...frozen.entries] : [])
    );
  }

  /** The oldest frozen is in a run now. */
  settled(frozen: Frozen): void {
    this.#frozen.shift();
    this.persisted = frozen.epoch;
    for (const [table, ofTable] of frozen.tables) table.settled(ofTable);
  }

  /**
   * Between two batches: has changes written if they are many, lets go of what is not used, forgets what has expired.
   *
   * @returns What to wait for before the next batch; undefined where nothing.
   */
  settle(): Promise<void> | undefined {
    this.round++;
    const { tracked } = this.#host;
    if (tracked) this.#sample();
    const waiting = tracked ? this.#host.relieve(this) : undefined; // what is not tracked is never written
    this.#sweep(this.#host.liveBytes);
    return waiting;
  }

  /** About what the changes of this epoch take, bytes. */
  get dirtyBytes(): number {
    return this.dirty * this.#valueBytes;
  }

  #sample(): void {
    for (const ofSpace of this.#tables.values()) {
      for (const table of ofSpace.values()) {
        const cell = table.sample;
        if (cell === undefined) continue;
        this.#valueBytes += (roughSize(cell.value) - this.#valueBytes) * SAMPLE_WEIGHT;
        return;
      }
    }
  }

  #sweep(bytes: number): void {
    if (bytes < Infinity) {
      for (const queue of this.#queues.values()) queue.shrink(Math.max(64, bytes / 4 / QUEUE_ENTRY_BYTES));
    }
    const half = bytes / (CELL_BYTES + this.#valueBytes) / 2;
    const isShort = this.live > half;
    if (!isShort && !this.#hasMortal) return;
    const tables = this.#allTables(), paged = isShort ? tables.filter(({ space }) => space.paged) : [];
    if (paged.reduce((sum, { young }) => sum + young, 0) > half) { for (const table of paged) table.turn(); }
    if (!this.#hasMortal) return;
    const mortal = tables.filter((table) => table.mortal);
    const changed = Math.max(0, this.dirty - this.#dirtySwept);
    this.#dirtySwept = this.dirty;
    let steps = Math.max(STEPS, changed * STEPS_A_CHANGE);
    for (let rounds = 0; rounds < mortal.length && steps > 0; rounds++) {
      steps = mortal[this.#swept % mortal.length]!.sweep(steps);
      if (steps > 0) this.#swept++;
    }
  }

  #allTables(): Table[] {
    return [...this.#tables.values()].flatMap((ofSpace) => [...ofSpace.values()]);
  }
}
