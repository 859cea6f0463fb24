/**
 * Takes the checkpoints of a run.
 *
 * K1 One is under way at a time: barrier, what the parts hold, keyed state durable, manifest `prepared`, commits, manifest
 *    `completed`, old ones removed. Nothing is committed before the manifest is durable.
 *    Of the sinks the atomic one commits first: what it has prepared is the only thing that can get lost.
 * K2 Where no sink commits, a manifest is `completed` at once.
 * K3 A checkpoint that fails before its manifest is durable leaves the run alone, until too many have failed in a row; one that
 *    only takes too long does not count. A commit that fails ends the run: the next one commits again. So does a page of keyed state
 *    that cannot be written.
 * K4 When everything has been worked through there is one more checkpoint, which covers all of it.
 *
 * @module
 */
import type { Alarm, Clock } from "../clock.ts";
import type { Committable, SinkCommits } from "../connector.ts";
import { asError, codeOf, MailerError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type {
  OperatorSnapshot,
  RunSnapshot,
  SnapshotCollector,
  SourceSnapshot,
} from "../runtime/snapshots.ts";
import type { Frozen, Section, StateStore } from "../state/log/mod.ts";
import { setOwn } from "../value.ts";
import { atomicFirst } from "./commit_order.ts";
import {
  documentOf,
  type Manifest,
  type ManifestStore,
  type OperatorState,
  releaseSections,
  stateBytesOf,
} from "./manifest.ts";

/** How often checkpoints are taken, and how many are kept. */
export interface CheckpointSettings {
  /** From the start of one to the start of the next, ms. */
  readonly interval: number;
  /** At least so long from the end of one to the start of the next, ms. */
  readonly minPause: number;
  /** Completed checkpoints that are kept. */
  readonly retain: number;
  /** Failed ones in a row that a run survives. */
  readonly tolerated: number;
  /** How long its barrier may be on the way, ms; Infinity: as long as it takes. */
  readonly timeout: number;
}

/** The parts of a run that a coordinator talks to. */
export interface CheckpointedRun {
  readonly snapshots: SnapshotCollector;
  readonly sources: readonly {
    readonly name: string;
    barrier(checkpoint: number): void;
    checkpointed(positions: SourceSnapshot): Promise<void>;
  }[];
  readonly sinks: readonly {
    readonly name: string;
    readonly commits: SinkCommits | undefined;
    commit(committable: Committable): Promise<void>;
  }[];
}

/** What a coordinator works with. */
export interface CoordinatorOptions {
  readonly pipeline: string;
  readonly settings: CheckpointSettings;
  readonly run: CheckpointedRun;
  readonly manifests: ManifestStore;
  /** Keyed state by operator; more may be added while operators are made. */
  readonly stores: ReadonlyMap<string, StateStore>;
  /** Manifests there are, the newest checkpoint first. */
  readonly retained: readonly Manifest[];
  /** Called once, before the first checkpoint: see {@link Recovered.settle}. */
  readonly settle: () => Promise<void>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Where to count. */
  readonly stats: CheckpointStats;
  /** Ends the run. */
  readonly fail: (error: unknown) => void;
  /** Called behind each named step, for tests that crash there. */
  readonly onStep?: (step: CheckpointStep, number: number) => void | Promise<void>;
}

/** Steps of a checkpoint that a test can crash at. */
export type CheckpointStep =
  | "barrier"
  | "collected"
  | "persisted"
  | "prepared"
  | "committed"
  | "completed"
  | "swept";

/** What has become of checkpoints. */
export interface CheckpointStats {
  /** Those that are complete. */
  completed: number;
  /** Those that failed before they were durable. */
  failed: number;
  /** Of these, since the last complete one. */
  failedInARow: number;
  /** From the barrier of the last one until it was durable, ms. */
  lastDurationMs: number;
  /** Longest time that a stage stood still for the last one, ms. */
  lastBlockedMs: number;
  /** When the last completed one was taken, ms since the epoch. */
  lastTakenAt: number | undefined;
  /** Number of the last one. */
  lastNumber: number;
  /** Size of the keyed state it names, bytes. */
  lastBytes: number;
}

/** So many runs of pages in a store are made fewer before the last checkpoint. */
const MANY_RUNS = 24;

/** What is counted before there is any. */
export function noCheckpoints(): CheckpointStats {
  return {
    completed: 0,
    failed: 0,
    failedInARow: 0,
    lastDurationMs: 0,
    lastBlockedMs: 0,
    lastTakenAt: undefined,
    lastNumber: 0,
    lastBytes: 0,
  };
}

/** Takes checkpoints; see the head of this file. */
export class Coordinator {
  readonly stats: CheckpointStats;
  readonly #options: CoordinatorOptions;
  /** Completed checkpoints, the oldest first. */
  readonly #retained: Manifest[];
  readonly #finalSections = new Map<string, Promise<Section>>();
  /** Sinks whose last committable has been committed. */
  readonly #finallyCommitted = new Set<string>();
  #alarm: Alarm | undefined;
  #queue: Promise<void> = Promise.resolve();
  #isFinishing = false;
  #isOver = false;
  /** Gives up the wait of the checkpoint under way. */
  #giveUp: (() => void) | undefined;

  constructor(options: CoordinatorOptions) {
    this.#options = options;
    this.stats = options.stats;
    this.#retained = options.retained.filter(({ savepoint }) => savepoint === undefined).toReversed();
  }

  /** Begins to take checkpoints. */
  start(): void {
    this.#next(() => this.#options.settle()).then(
      () => this.#schedule(this.#options.settings.interval),
      (error) => this.#options.fail(error),
    );
  }

  /** Takes no more checkpoints. One that is under way is given up. */
  stop(): void {
    this.#isOver = true;
    this.#alarm?.cancel();
    this.#giveUp?.();
  }

  /** Resolves when nothing of it is under way any more. */
  async idle(): Promise<void> {
    await this.#queue;
  }

  /** Takes a savepoint, or without a name a checkpoint, behind the one under way. */
  async takeNow(savepoint?: string): Promise<Manifest> {
    try {
      return await this.#next(() => this.#take(savepoint));
    } catch (error) {
      if (error instanceof CommitFailed) this.#options.fail(error.cause);
      throw error instanceof CommitFailed ? error.cause : error;
    }
  }

  /** The run has worked everything through: takes the checkpoint that says so, and a savepoint if one is wanted. */
  async finish(savepoint?: string): Promise<void> {
    this.#isFinishing = true; // one that is under way schedules no other
    this.#alarm?.cancel();
    await this.#next(() => this.#tidy());
    const named = savepoint === undefined ? [] : [savepoint];
    let failed: { readonly error: unknown } | undefined;
    for (const name of [...named, undefined]) { // whatever becomes of the savepoint, what was worked through is covered
      try {
        await this.#next(() => this.#take(name));
      } catch (error) {
        failed ??= { error: error instanceof CommitFailed ? error.cause : error };
      }
    }
    this.stop();
    if (failed !== undefined) throw failed.error;
  }

  /** Where runs are short, compaction never comes to its end beside them. */
  async #tidy(): Promise<void> {
    for (const store of this.#options.stores.values()) if (store.runs >= MANY_RUNS) await store.compacted();
  }

  #schedule(delay: number): void {
    if (this.#isOver || this.#isFinishing) return;
    this.#alarm = this.#options.clock.schedule(delay, () => void this.#periodic());
  }

  async #periodic(): Promise<void> {
    const { clock, settings, fail, logger } = this.#options, started = clock.monotonic();
    try {
      await this.#next(() => this.#take(undefined));
      this.stats.failedInARow = 0;
    } catch (error) {
      if (this.#isOver) return;
      if (error instanceof CommitFailed) return fail(error.cause);
      this.stats.failed++;
      logger.log("warn", "checkpoint failed", { error: asError(error).message });
      const isSlow = codeOf(error) === "checkpoint_timeout"; // what is slow is not broken
      if (!isSlow && ++this.stats.failedInARow > settings.tolerated) {
        return fail(
          new MailerError(
            "checkpoints_failed",
            `${this.stats.failedInARow} checkpoints failed in a row, the last with: ${
              asError(error).message
            }`,
            { cause: error },
          ),
        );
      }
    }
    const took = clock.monotonic() - started;
    this.#schedule(Math.max(settings.interval - took, settings.minPause));
  }

  /** One after the other. */
  async #next<R>(work: () => Promise<R>): Promise<R> {
    const result = this.#queue.then(work);
    this.#queue = result.then(() => {}, () => {}); // whoever asked for it has its error
    return await result;
  }

  async #take(savepoint: string | undefined): Promise<Manifest> {
    const { run, clock, manifests, settings, stores } = this.#options;
    this.#throwIfOver();
    const number = run.snapshots.nextNumber(), takenAt = clock.now(), started = clock.monotonic();
    const whole = run.snapshots.begin(number);
    for (const source of run.sources) source.barrier(number);
    await this.#step("barrier", number);
    const parts = await this.#within(settings.timeout, whole, number).catch((error) => {
      whole.then((late) => this.#abandon(late));
      throw error;
    });
    await this.#step("collected", number);
    const over = Promise.withResolvers<void>();
    try {
      const { operators, finished } = await this.#persist(parts, over.promise);
      await this.#step("persisted", number);
      const committables: Record<string, Committable> = {};
      const committing = run.sinks.filter(({ name }) => parts.get(name)?.committable !== undefined);
      for (const { name } of committing) setOwn(committables, name, parts.get(name)!.committable);
      const manifest: Manifest = {
        version: 1,
        pipeline: this.#options.pipeline,
        number,
        highest: run.snapshots.highest,
        savepoint,
        status: committing.length > 0 ? "prepared" : "completed",
        takenAt,
        durationMs: clock.monotonic() - started,
        finished,
        sources: sourcesOf(parts),
        operators,
        committables,
      };
      try {
        this.#throwIfOver(); // another run may be recovering
        await manifests.write(manifest, savepoint === undefined ? "replace" : "new");
      } catch (error) {
        await releaseSections({ operators }, stores);
        throw error;
      }
      if (committing.length > 0) await this.#step("prepared", number);
      const completed = await this.#commit(manifest, parts);
      await Promise.all(run.sources.map((source) => source.checkpointed(parts.get(source.name)!.source!)));
      this.#count(completed, Math.max(...[...parts.values()].map(({ blockedMs }) => blockedMs ?? 0)));
      if (savepoint === undefined) await this.#retain(completed);
      await this.#step("swept", number);
      return completed;
    } finally {
      over.resolve();
    }
  }

  #throwIfOver(): void {
    if (this.#isOver) {
      throw new MailerError("checkpoint_aborted", "a checkpoint was given up: the run is over");
    }
  }

  async #within<R>(timeout: number, pending: Promise<R>, number: number): Promise<R> {
    const result = Promise.withResolvers<R>();
    pending.then(result.resolve, result.reject);
    const alarm = timeout === Infinity ? undefined : this.#options.clock.schedule(timeout, () => {
      result.reject(
        new MailerError("checkpoint_timeout", `checkpoint ${number} was not there after ${timeout} ms`, {
          hint: "an operator or sink takes long, or a full edge holds the barrier up",
        }),
      );
    });
    this.#giveUp = () => {
      result.reject(
        new MailerError("checkpoint_aborted", `checkpoint ${number} was given up: the run is over`),
      );
    };
    try {
      return await result.promise;
    } finally {
      this.#giveUp = undefined;
      alarm?.cancel();
    }
  }

  /** Makes keyed state durable. */
  async #persist(
    parts: RunSnapshot,
    over: Promise<void>,
  ): Promise<{ operators: Record<string, OperatorState>; finished: boolean }> {
    const { run, stores } = this.#options;
    const operators: Record<string, OperatorState> = {};
    let finished = true;
    const waiting: Promise<void>[] = [];
    for (const [task, part] of parts) {
      finished &&= run.snapshots.isFinal(task, part) && part.source?.complete !== false;
      for (const [id, instances] of byId(part.operators ?? [])) {
        const store = stores.get(id), snapshots = instances.map(({ own }) => own);
        waiting.push((async () => {
          const isFinal = run.snapshots.isFinal(task, part);
          const section = store === undefined
            ? undefined
            : await this.#section(id, store, instances, isFinal, over);
          setOwn(operators, id, { snapshots, section });
        })());
      }
    }
    const failed = (await Promise.allSettled(waiting)).find(({ status }) => status === "rejected");
    if (failed?.status === "rejected") {
      await releaseSections({ operators }, stores);
      throw failed.reason;
    }
    return { operators, finished };
  }

  /** What an operator froze when it came to its end is written once, and named by every later checkpoint. */
  #section(
    id: string,
    store: StateStore,
    instances: readonly OperatorSnapshot[],
    isFinal: boolean,
    over: Promise<void>,
  ): Promise<Section> {
    const frozen = instances.flatMap(({ frozen }): Frozen[] => frozen === undefined ? [] : [frozen]);
    const known = this.#finalSections.get(id);
    if (known !== undefined) {
      return known.then((section) => {
        store.hold(section);
        return section;
      });
    }
    const section = store.persist(frozen, over);
    if (isFinal) this.#finalSections.set(id, section);
    return section;
  }

  async #commit(manifest: Manifest, parts: RunSnapshot): Promise<Manifest> {
    const { run, manifests } = this.#options, { number, committables } = manifest;
    if (manifest.status === "completed") {
      await this.#step("completed", number);
      return manifest;
    }
    try {
      for (const sink of atomicFirst(run.sinks)) {
        const { name } = sink;
        if (!Object.hasOwn(committables, name) || this.#finallyCommitted.has(name)) continue;
        await sink.commit(committables[name]);
        if (run.snapshots.isFinal(name, parts.get(name)!)) this.#finallyCommitted.add(name);
      }
      await this.#step("committed", number);
      const completed: Manifest = { ...manifest, status: "completed" };
      await manifests.write(completed);
      await this.#step("completed", number);
      return completed;
    } catch (error) {
      throw new CommitFailed(error);
    }
  }

  /** What was frozen for a checkpoint that will not be is written all the same: what comes after it builds on it. */
  #abandon(parts: RunSnapshot): void {
    const { run, stores } = this.#options;
    for (const [task, part] of parts) {
      if (run.snapshots.isFinal(task, part)) continue; // the next checkpoint has it
      for (const [id, instances] of byId(part.operators ?? [])) {
        stores.get(id)?.abandon(instances.flatMap(({ frozen }) => frozen === undefined ? [] : [frozen]));
      }
    }
  }

  #count(manifest: Manifest, blockedMs: number): void {
    const { stats } = this, { takenAt, durationMs, number } = manifest;
    stats.lastBlockedMs = blockedMs;
    stats.completed++;
    stats.lastTakenAt = takenAt;
    stats.lastDurationMs = durationMs;
    stats.lastNumber = number;
    stats.lastBytes = stateBytesOf(manifest);
  }

  /** Removes the oldest. A run of pages goes when no manifest names it any more. */
  async #retain(manifest: Manifest): Promise<void> {
    const { manifests, settings, stores } = this.#options;
    this.#retained.push(manifest);
    const old = this.#retained.splice(0, Math.max(0, this.#retained.length - settings.retain));
    if (old.length === 0) return;
    await manifests.remove(old.map(documentOf));
    for (const one of old) await releaseSections(one, stores);
  }

  async #step(step: CheckpointStep, number: number): Promise<void> {
    await this.#options.onStep?.(step, number);
  }
}

/** A manifest is durable, and what it says could not be committed. */
class CommitFailed extends Error {
  constructor(cause: unknown) {
    super(asError(cause).message, { cause });
  }
}

function byId(operators: readonly OperatorSnapshot[]): Map<string, OperatorSnapshot[]> {
  const found = new Map<string, OperatorSnapshot[]>();
  for (const operator of operators) found.set(operator.id, [...(found.get(operator.id) ?? []), operator]);
  return found;
}

function sourcesOf(parts: RunSnapshot): Record<string, SourceSnapshot> {
  const sources: Record<string, SourceSnapshot> = {};
  for (const [name, { source }] of parts) if (source !== undefined) setOwn(sources, name, source);
  return sources;
}
