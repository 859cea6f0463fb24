/**
 * The keyed state of one operator: its partitions, the runs they share, and what goes on behind them.
 *
 * Changes are written as runs: at every checkpoint, and in between when there are many. A section names the runs and tables of one
 * checkpoint; the manifest it becomes part of makes the checkpoint exist.
 *
 * O1 Of each partition, what is frozen is written in the order in which it was frozen.
 * O2 A section says what was frozen for it and all before, nothing that came after.
 * O3 A run is deleted once it is neither in the list nor in a section that is held, and nobody reads it.
 * O4 An error in the background is thrown by whatever is called next.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { MemoryPages } from "../pages/memory.ts";
import type { PageStore } from "../pages/port.ts";
import { yieldToEventLoop } from "../../scheduling.ts";
import { Compactor, type CompactorHost } from "./compactor.ts";
import { completeLimits, type StateLimits } from "./limits.ts";
import { liveRules } from "./live_rules.ts";
import { PageCache } from "./page_cache.ts";
import { type Frozen, Partition, type PartitionHost } from "./partition.ts";
import { writeFrozen } from "./persist.ts";
import { Places } from "./place.ts";
import { Run } from "./run.ts";
import { Retention } from "./retention.ts";
import { RunList } from "./run_list.ts";
import type { RunWriterOptions, WrittenRun } from "./run_writer.ts";
import { joinTables, type Section, type StoredTable } from "./section.ts";
import { Signal } from "./signal.ts";

/** What a store is opened with. */
export interface StateStoreOptions {
  /** Id of the operator: what its runs are named after, and what errors name. */
  readonly operator: string;
  /** Where runs are kept; several stores may share it. Closed by whoever opened it. */
  readonly pages: PageStore;
  /** Number of key groups, fixed for the life of the state. Default 128. */
  readonly maxKeyGroups?: number;
  /** What to restore. Default: nothing. */
  readonly section?: Section;
  /** Sections of this operator in other manifests that are retained: their runs stay until they are released. */
  readonly retained?: readonly Section[];
  readonly limits?: StateLimits;
  /** A cache to share with other stores. */
  readonly cache?: PageCache;
  /** Which spaces let keys leave memory: all (the default), or those that ask for it. */
  readonly paging?: "all" | "asked";
  /** Whether changes are kept for checkpoints. Default true; without, the state is as good as lost with the process. */
  readonly tracked?: boolean;
}

/** Everything stays in memory, and is written at checkpoints only. */
export const RESIDENT: StateLimits = Object.freeze({
  changes: Infinity,
  changeBytes: Infinity,
  liveBytes: Infinity,
});

/** State of an operator of a pipeline that takes no checkpoints. */
export function volatileState(operator: string, maxKeyGroups: number): StateStore {
  const options = { operator, pages: new MemoryPages(), limits: RESIDENT, tracked: false };
  return new StateStore(options, maxKeyGroups, new PageCache(0), [], 1);
}

/** Runs that are frozen and wait to be written, from which on whoever changes more has to wait. */
const MOST_WAITING = 2;
/** After so many changes, what goes on in the background has a turn. */
const CHANGES_A_TURN = 512;
/** What an entry takes in a run, at the least. */
const ENTRY_BYTES = 48;
/** Entries of a run of the smallest size, however many changes may wait to be written. */
const MOST_IN_SMALLEST = 16_384;
const LOT_BYTES = 393_216;
const COMPACTION_LOT_BYTES = 196_608;

interface Job {
  readonly parts: readonly Frozen[];
  readonly done: (section: Section) => void;
  readonly failed: (error: unknown) => void;
  /** Whether its section is wanted, and to be held. */
  readonly isCheckpoint: boolean;
  /** Whether it is being written. */
  isStarted: boolean;
}

/**
 * Opens the state of an operator. Reads the indexes of its runs, not the state; runs that no given section names are deleted.
 *
 * @throws {MailerError} `key_groups_changed` where the state was stored under another number of key groups; `page_corrupt`,
 *   `page_missing` where it is damaged.
 */
export async function openStateStore(options: StateStoreOptions): Promise<StateStore> {
  const { operator, pages, section, retained = [], maxKeyGroups = 128 } = options;
  if (section !== undefined && section.maxKeyGroups !== maxKeyGroups) {
    throw new MailerError(
      "key_groups_changed",
      `operator "${operator}": its state has ${section.maxKeyGroups} key groups, ${maxKeyGroups} are asked for`,
      {
        hint: `set the number of key groups to ${section.maxKeyGroups}; it cannot change once there is state`,
      },
    );
  }
  const cache = options.cache ?? new PageCache(completeLimits(options.limits ?? {}).cacheBytes);
  const sections = section === undefined ? retained : [section, ...retained];
  const named = new Set(sections.flatMap(({ runs }) => runs.map(({ run }) => run)));
  const [listed, runs] = await Promise.all([
    pages.list("runs", runPrefix(operator)),
    Run.open(section?.runs ?? [], pages, cache),
  ]);
  const own = listed.map(({ name }) => name).filter((name) => runNumber(operator, name) !== undefined);
  const stray = own.filter((name) => !named.has(name));
  if (stray.length > 0) await pages.deleteRuns(stray);
  const last = Math.max(0, ...[...own, ...named].map((name) => runNumber(operator, name) ?? 0));
  return new StateStore(options, maxKeyGroups, cache, runs, last + 1);
}

function runPrefix(operator: string): string {
  return `${operator}/`;
}

/** The number in the name of one of the operator's runs; undefined for another's, whose id may begin the same. */
function runNumber(operator: string, run: string): number | undefined {
  const number = run.startsWith(runPrefix(operator)) ? run.slice(runPrefix(operator).length) : "";
  return /^\d+$/.test(number) ? Number(number) : undefined;
}

/** The keyed state of one operator; see {@link openStateStore}. */
export class StateStore implements AsyncDisposable {
  /** Number of key groups. */
  readonly maxKeyGroups: number;
  readonly #operator: string;
  readonly #pages: PageStore;
  /** Its limits, defaults filled in. */
  readonly limits: Required<StateLimits>;
  readonly #cache: PageCache;
  readonly #places: Places;
  readonly #tracked: boolean;
  readonly #paging: "all" | "asked";
  readonly #runs: RunList;
  readonly #stored: readonly StoredTable[];
  readonly #partitions: Partition[] = [];
  #nextInstance: number;
  #nextRun: number;
  readonly #jobs: Job[] = [];
  readonly #retention: Retention;
  readonly #compactor: Compactor;
  /** A job has been done, or something else has changed that is waited for. */
  readonly #changes = new Signal();
  #encoding: Promise<void> | undefined;
  #publishing: Promise<void> = Promise.resolve();
  #failed: { readonly error: unknown } | undefined;
  /** Checkpoints that compaction makes way for. */
  #resting = 0;
  #dirtyAtTurn = 0;

  /** Made by {@link openStateStore}. */
  constructor(
    options: StateStoreOptions,
    maxKeyGroups: number,
    cache: PageCache,
    runs: readonly Run[],
    nextRun: number,
  ) {
    const { operator, pages, section, retained = [], limits = {} } = options;
    this.#operator = operator;
    this.#tracked = options.tracked ?? true;
    this.#paging = options.paging ?? "all";
    this.#pages = pages;
    this.maxKeyGroups = maxKeyGroups;
    this.#places = new Places(maxKeyGroups);
    this.#cache = cache;
    this.#runs = new RunList(runs);
    this.#stored = section?.tables ?? [];
    this.#nextInstance = Math.max(1, section?.nextInstance ?? 1);
    this.#nextRun = nextRun;
    this.limits = completeLimits(limits);
    this.#retention = new Retention(pages, this.#runs);
    this.#compactor = new Compactor(this.#compactorHost());
    for (const held of section === undefined ? retained : [section, ...retained]) this.hold(held);
  }

  /**
   * The state of the key groups `from` … `to` − 1. All partitions are made before the first is used; together they have all key
   * groups, each once.
   */
  partition(from = 0, to: number = this.maxKeyGroups): Partition {
    const isRange = Number.isInteger(from) && Number.isInteger(to) && from >= 0 && from < to &&
      to <= this.maxKeyGroups;
    const isTaken = this.#partitions.some((other) => from < other.to && other.from < to);
    if (!isRange || isTaken) {
      throw new MailerError(
        "invalid_partition",
        `operator "${this.#operator}": there is no partition of key groups ${from} to ${to - 1}` +
          (isTaken ? ", some of them have one already" : ` of ${this.maxKeyGroups}`),
      );
    }
    const partition = new Partition(this.#host(), from, to, this.#stored);
    this.#partitions.push(partition);
    return partition;
  }

  #host(): PartitionHost {
    // deno-lint-ignore no-this-alias -- the getter below speaks of the store
    const store = this;
    return {
      operator: this.#operator,
      places: this.#places,
      runs: this.#runs,
      pages: this.#pages,
      tracked: this.#tracked,
      paging: this.#paging,
      get liveBytes() {
        return store.limits.liveBytes / store.#partitions.length;
      },
      newInstance: () => this.#nextInstance++,
      relieve: (partition) => this.#relieve(partition),
    };
  }

  #compactorHost(): CompactorHost {
    const { changes, changeBytes, fanIn } = this.limits;
    return {
      runs: this.#runs,
      tiers: {
        fanIn,
        base: Math.min(changes * ENTRY_BYTES, changeBytes, MOST_IN_SMALLEST * ENTRY_BYTES),
        leastEntries: Math.min(changes, MOST_IN_SMALLEST),
      },
      rules: () => liveRules(this.#partitions, this.#places),
      writerOptions: () => this.#writerOptions(COMPACTION_LOT_BYTES),
      isUrgent: () =>
        this.#failed === undefined &&
        (this.#resting > 0 || this.#jobs.some(({ isCheckpoint }) => isCheckpoint)),
      change: () => this.#changes.next(),
      replace: async (runs, by) => {
        this.#runs.replace(runs, by === undefined ? undefined : Run.written(by, this.#pages, this.#cache));
        this.#retention.replaced(runs);
        await this.#retention.sweep();
      },
      failed: (error) => this.#fail(error),
    };
  }

  /** Number of keys in all partitions. Exact, but for keys set without looking until they have been compacted. */
  get keys(): number {
    return this.#partitions.reduce((sum, { keys }) => sum + keys, 0);
  }
  /** Size of all pages with entries that the current state consists of, bytes. */
  get bytes(): number {
    return this.#runs.all.reduce((sum, { ref }) => sum + ref.bytes, 0);
  }
  /** Number of runs the current state consists of. */
  get runs(): number {
    return this.#runs.all.length;
  }

  #relieve(partition: Partition): Promise<void> | undefined {
    this.#throwFailure();
    let dirty = 0, bytes = 0;
    for (const other of this.#partitions) {
      dirty += other.dirty;
      bytes += other.dirtyBytes;
    }
    if (dirty >= this.limits.changes || bytes >= this.limits.changeBytes) this.#spill(partition);
    if (this.#jobs.length > MOST_WAITING) return this.#relieved();
    if (this.#compactor.working === undefined && !this.#isWriting) return undefined;
    const changed = dirty - this.#dirtyAtTurn;
    if (changed >= 0 && changed < CHANGES_A_TURN) return undefined;
    // Records that come without a pause would leave no time for what goes on in the background.
    this.#dirtyAtTurn = dirty;
    return this.#compactor.isBehind ? this.#compactor.step() : yieldToEventLoop();
  }

  /** All partitions together make one run; but a part may not wait for a checkpoint that itself waits for another part. */
  #spill(partition: Partition): void {
    const submitted = new Set(this.#jobs.flatMap(({ parts }) => parts));
    const isUnderWay = this.#partitions.some(({ frozen }) => frozen.some((part) => !submitted.has(part)));
    const spilled = isUnderWay ? [partition] : this.#partitions.filter(({ dirty }) => dirty > 0);
    const parts = spilled.map((each) => each.freeze());
    // Its failure is thrown by the next call.
    this.#take(parts);
    this.#work();
  }

  /** A spill that waits for a checkpoint under way is not waited for: the checkpoint may need what comes next. */
  async #relieved(): Promise<void> {
    while (this.#jobs.length > MOST_WAITING && this.#isWriting) await this.#changes.next();
    this.#throwFailure();
  }

  /**
   * Writes what was frozen for a checkpoint.
   *
   * @param frozen One of each partition.
   * @param until Resolves or rejects when the checkpoint is over, its manifest committed: until then nothing is compacted, which
   *   would hold that commit up. Default: until the section is there.
   * @returns The section for the manifest, once all it names is written. It is held until it is released.
   */
  persist(frozen: readonly Frozen[], until?: Promise<unknown>): Promise<Section> {
    const missing = this.#partitions.find((partition) =>
      !frozen.some((part) => part.partition === partition)
    );
    if (missing !== undefined || frozen.length !== this.#partitions.length) {
      throw new MailerError(
        "incomplete_freeze",
        `operator "${this.#operator}": a checkpoint needs one freeze of each of ${this.#partitions.length} partitions, found ${frozen.length}`,
      );
    }
    this.#throwFailure();
    if (until !== undefined) this.#restUntil(until);
    return new Promise((done, failed) => {
      this.#jobs.push({ parts: frozen, done, failed, isCheckpoint: true, isStarted: false });
      this.#work();
    });
  }

  #restUntil(until: Promise<unknown>): void {
    const rested = (): void => {
      this.#resting--;
      this.#changes.notify();
    };
    this.#resting++;
    until.then(rested, rested);
  }

  /** Writes what was frozen for a checkpoint that will not be. */
  abandon(frozen: readonly Frozen[]): void {
    for (const part of frozen) this.#take([part]);
    this.#work();
  }

  /** Its failure is thrown by the next call. */
  #take(parts: readonly Frozen[]): void {
    this.#jobs.push({ parts, done: () => {}, failed: () => {}, isCheckpoint: false, isStarted: false });
  }

  /** Jobs are encoded one after the other; while the pages of one are on their way, the next is begun. */
  #work(): void {
    if (this.#encoding !== undefined || this.#failed !== undefined) return;
    const job = this.#ready();
    if (job === undefined) return;
    job.isStarted = true;
    this.#encoding = this.#encode(job);
  }

  /** The first job of whose parts each is the oldest of its partition that is not begun. */
  #ready(): Job | undefined {
    const started = new Set(this.#jobs.flatMap(({ isStarted, parts }) => isStarted ? parts : []));
    return this.#jobs.find(({ isStarted, parts }) => {
      return !isStarted &&
        parts.every((part) => part.partition.frozen.find((other) => !started.has(other)) === part);
    });
  }

  async #encode(job: Job): Promise<void> {
    try {
      const writer = await writeFrozen(job.parts, this.#places, this.#writerOptions(LOT_BYTES));
      this.#publishing = this.#publish(job, writer?.finish(), this.#publishing);
    } catch (error) {
      this.#fail(error);
    }
    this.#encoding = undefined;
    this.#work();
  }

  /** Makes a run part of the state, after those begun before it. */
  async #publish(
    job: Job,
    writing: Promise<WrittenRun | undefined> | undefined,
    before: Promise<void>,
  ): Promise<void> {
    try {
      const written = await writing;
      await before;
      if (this.#failed !== undefined) return;
      if (written !== undefined) this.#runs.add(Run.written(written, this.#pages, this.#cache));
      for (const part of job.parts) part.partition.settled(part);
      const section = this.#section(job.parts);
      if (job.isCheckpoint) this.hold(section);
      this.#jobs.splice(this.#jobs.indexOf(job), 1);
      job.done(section);
      this.#changes.notify();
      if (!this.#isWriting) await this.#retention.sweep();
      this.#compactor.start();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    this.#failed ??= { error };
    for (const job of this.#jobs.splice(0)) job.failed(error);
    this.#changes.notify();
  }

  get #isWriting(): boolean {
    return this.#encoding !== undefined || this.#jobs.some(({ isStarted }) => isStarted);
  }

  #writerOptions(lotBytes: number): Omit<RunWriterOptions, "expected"> {
    const run = `${runPrefix(this.#operator)}${this.#nextRun++}`;
    return { pages: this.#pages, run, pageBytes: this.limits.pageBytes, lotBytes };
  }

  #section(parts: readonly Frozen[]): Section {
    return {
      version: 1,
      maxKeyGroups: this.maxKeyGroups,
      nextInstance: this.#nextInstance,
      runs: this.#runs.all.map(({ ref }) => ref),
      tables: joinTables(parts.flatMap(({ registry }) => registry)),
    };
  }

  /** Keeps the runs of a section until it is released. Sections that `persist` returned are held already. */
  hold(section: Section): void {
    this.#retention.hold(section);
  }

  /** No manifest needs a section any more: what only it needed is deleted. */
  release(section: Section): Promise<void> {
    return this.#retention.release(section);
  }

  /** Waits until everything handed over is written and nothing is left to be compacted. */
  async idle(): Promise<void> {
    await this.#ended();
    this.#throwFailure();
    await this.#retention.sweep();
  }

  /** Resolves when there is nothing left to be compacted, for now. */
  async compacted(): Promise<void> {
    this.#compactor.start();
    await this.idle();
  }

  async #ended(): Promise<void> {
    while (this.#isWriting || this.#compactor.working !== undefined) {
      await this.#encoding;
      await this.#publishing;
      await this.#compactor.working;
    }
    await this.#publishing;
  }

  #throwFailure(): void {
    if (this.#failed !== undefined) throw this.#failed.error;
  }

  /** Ends what goes on in the background. What was frozen and not persisted is lost; checkpoints are not. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#compactor.close();
    this.#changes.notify();
    await this.#ended();
  }
}
