/**
 * A pipeline from its start to its end: it recovers, runs, takes checkpoints, and starts again after a failure where that is wanted.
 *
 * X1 Keyed state and checkpoints are open from the first recovery to the end, whatever becomes of single runs in between.
 * X2 A stop takes a last checkpoint when everything has drained; nothing that was written before it comes again.
 *
 * @module
 */
import { delay } from "../clock.ts";
import { asError, codeOf, MailerError } from "../errors.ts";
import type { Plan } from "../plan/plan.ts";
import type { Instance } from "../runtime/instance.ts";
import { Run, type RunOptions, type RunPhase } from "../runtime/run.ts";
import type { StateStore } from "../state/log/mod.ts";
import type { PageStore } from "../state/pages/port.ts";
import type { StateBackend } from "./backend.ts";
import {
  type CheckpointSettings,
  type CheckpointStats,
  type CheckpointStep,
  Coordinator,
  noCheckpoints,
} from "./coordinator.ts";
import { checkSavepointName, type Manifest, ManifestStore } from "./manifest.ts";
import {
  confirmCommitted,
  reasonToPassOver,
  recover,
  type Recovered,
  type RecoveryOptions,
} from "./recovery.ts";
import { RestartPolicy, type RestartSettings } from "./restart.ts";

/** Settings of checkpoints. */
export interface DurableSettings {
  readonly backend: StateBackend;
  readonly checkpoints: CheckpointSettings;
  /** Savepoint to go on from; undefined: the newest checkpoint. */
  readonly fromSavepoint: string | undefined;
  readonly allowUnmatched: boolean;
  /** For tests that crash at a step. */
  readonly onStep?: (step: CheckpointStep, number: number) => void | Promise<void>;
}

/** What an execution is made of. */
export interface ExecutionOptions {
  readonly name: string;
  readonly plan: Plan;
  readonly run: RunOptions;
  /** Missing where no checkpoints are taken. */
  readonly durable: DurableSettings | undefined;
  /** Missing: a failure is the end. */
  readonly restart: RestartSettings | undefined;
}

/** An execution under way. */
export class Execution {
  /** Resolves at a regular end, rejects with the error that was the end. */
  readonly done: Promise<void>;
  /** Resolves when records flow for the first time. */
  readonly running: Promise<void>;
  readonly startedAt: number;
  /** Failed runs that were followed by another. */
  restarts = 0;
  /** The checkpoint or savepoint that the current run went on from. */
  from: Manifest | undefined;
  readonly #options: ExecutionOptions;
  readonly #started = Promise.withResolvers<void>();
  readonly #halt = new AbortController();
  readonly #policy: RestartPolicy | undefined;
  readonly #passedOver = new Map<number, "damaged" | "lost">();
  readonly #stats: CheckpointStats = noCheckpoints();
  #stores: ReadonlyMap<string, StateStore> = new Map();
  #run: Run | undefined;
  #coordinator: Coordinator | undefined;
  #pages: PageStore | undefined;
  #firstSavepoint: string | undefined;
  #lastSavepoint: string | undefined;
  #isStopped = false;
  /** Whether the last checkpoint has begun. */
  #hasDrained = false;
  #ended: "finished" | "stopped" | "failed" | undefined;

  constructor(options: ExecutionOptions) {
    this.#options = options;
    this.startedAt = options.run.clock.now();
    this.#policy = this.#restartPolicy(options);
    this.#firstSavepoint = options.durable?.fromSavepoint;
    this.running = this.#started.promise;
    this.running.catch(() => {}); // whoever awaits `done` gets the error as well
    // Without anything to recover the parts are there at once.
    const first = options.durable === undefined ? this.#begin(undefined) : undefined;
    this.done = this.#loop(first);
    this.done.catch(() => {}); // a caller who only watches `phase` must not crash the process
  }

  #restartPolicy({ plan, restart, run: { logger } }: ExecutionOptions): RestartPolicy | undefined {
    if (restart === undefined) return undefined;
    const once = plan.nodes.filter((node) =>
      (node.kind === "source" && node.source.singleUse) || (node.kind === "sink" && node.sink.singleUse)
    );
    if (once.length === 0) return new RestartPolicy(restart);
    logger.log("warn", "a failure is the end: there are parts that can be opened once only", {
      parts: once.map(({ id }) => id).join(", "),
    });
    return undefined;
  }

  /** The parts of the current run; undefined while it recovers. */
  get instance(): Instance | undefined {
    return this.#run?.instance;
  }

  get phase(): RunPhase {
    if (this.#ended !== undefined) return this.#ended;
    if (this.#halt.signal.aborted && this.#run === undefined) return "stopping";
    const phase = this.#run?.phase ?? "starting";
    return phase === "finished" || phase === "stopped" ? "stopping" : phase === "failed" ? "starting" : phase;
  }

  /** What has become of checkpoints; undefined where none are taken. */
  get checkpoints(): CheckpointStats | undefined {
    return this.#options.durable === undefined ? undefined : this.#stats;
  }

  /** Stored keyed state by operator, bytes. */
  get stateBytes(): ReadonlyMap<string, number> {
    return new Map([...this.#stores].map(([operator, store]) => [operator, store.bytes]));
  }

  /** The time, by the pipeline's clock, ms since the epoch. */
  get now(): number {
    return this.#options.run.clock.now();
  }

  /**
   * Reads no more and drains.
   *
   * @param savepoint Name of a savepoint to take at the end.
   */
  stop(savepoint?: string): void {
    if (savepoint !== undefined) {
      this.#needsDurable();
      checkSavepointName(savepoint);
      if (this.#ended !== undefined || this.#hasDrained) throw this.#tooLate(savepoint);
      if (this.#lastSavepoint !== undefined && this.#lastSavepoint !== savepoint) {
        const text = `savepoint "${savepoint}" is not taken: "${this.#lastSavepoint}" is the one that is`;
        throw new MailerError("stopping", text, { hint: "one savepoint is taken at a stop" });
      }
      this.#lastSavepoint = savepoint;
    }
    this.#isStopped = true;
    this.#halt.abort(new MailerError("stopped", `pipeline "${this.#options.name}" was stopped`));
    this.#run?.stop();
  }

  /** Gives up at once: nothing drains. */
  abort(reason?: Error): void {
    this.#isStopped = false;
    this.#halt.abort(reason ?? new MailerError("aborted", "the run was aborted"));
    this.#run?.abort(reason);
  }

  /** Takes a savepoint while the pipeline runs. */
  async savepoint(name: string): Promise<Manifest> {
    this.#needsDurable();
    checkSavepointName(name);
    if (this.#coordinator === undefined || this.phase !== "running") {
      throw new MailerError(
        "not_running",
        `pipeline "${this.#options.name}" is not running: no savepoint taken`,
      );
    }
    return await this.#coordinator.takeNow(name);
  }

  #tooLate(savepoint: string): MailerError {
    const text =
      `savepoint "${savepoint}" was not taken: pipeline "${this.#options.name}" had come to its end`;
    return new MailerError("not_running", text, { hint: "its last checkpoint covers everything" });
  }

  #needsDurable(): void {
    if (this.#options.durable !== undefined) return;
    throw new MailerError("no_checkpointing", `pipeline "${this.#options.name}" takes no checkpoints`, {
      hint: "savepoints need checkpointing: switch it on with an interval",
    });
  }

  async #loop(first: Run | undefined): Promise<void> {
    const { clock, logger } = this.#options.run;
    try {
      for (let run = first;; run = undefined) {
        const since = clock.monotonic();
        try {
          await this.#once(run);
          this.#ended = this.#halt.signal.aborted ? "stopped" : "finished";
          return;
        } catch (error) {
          const wait = this.#waitAfter(error, clock.monotonic() - since);
          if (wait === undefined) throw error;
          this.restarts++;
          logger.log("warn", "run failed, starting again", {
            error: asError(error).message,
            code: codeOf(error),
            waitMs: Math.round(wait),
            restart: this.restarts,
          });
          this.#run = undefined;
          await delay(clock, wait, this.#halt.signal).catch((reason) => {
            throw this.#isStopped ? error : reason; // it had failed, and was not started again
          });
        }
      }
    } catch (error) {
      this.#ended = "failed";
      this.#started.reject(error);
      throw error;
    } finally {
      await this.#pages?.[Symbol.asyncDispose]();
    }
  }

  #waitAfter(error: unknown, healthyMs: number): number | undefined {
    if (this.#halt.signal.aborted) return undefined;
    const reason = reasonToPassOver(error);
    if (reason !== undefined && this.from !== undefined && !this.#passedOver.has(this.from.number)) {
      this.#passedOver.set(this.from.number, reason); // another checkpoint may be better
      return 0;
    }
    const spread = Math.imul(this.restarts + 1, 2654435761) + Math.imul(this.startedAt | 0, 40503);
    return this.#policy?.next(error, healthyMs, (spread >>> 0) / 2 ** 32);
  }

  async #once(made: Run | undefined): Promise<void> {
    const { durable } = this.#options;
    const recovered = durable === undefined ? undefined : await this.#recover(durable);
    if (this.#isStopped) {
      await this.#close(recovered);
      if (this.#lastSavepoint !== undefined) throw this.#tooLate(this.#lastSavepoint);
      return;
    }
    this.#halt.signal.throwIfAborted();
    const run = made ?? this.#begin(recovered);
    try {
      run.running.then(() => this.#started.resolve(), () => {}); // its error is that of `done`
      await run.done;
    } finally {
      this.#coordinator?.stop();
      await this.#coordinator?.idle(); // nothing of this run comes up during the next one
      await this.#close(recovered);
    }
  }

  async #close(recovered: Recovered | undefined): Promise<void> {
    for (const store of recovered?.stores.values() ?? []) await store[Symbol.asyncDispose]();
  }

  async #recover(durable: DurableSettings): Promise<Recovered> {
    const { name, run: { clock, logger } } = this.#options;
    const pages = this.#pages ??= await durable.backend.open(name, clock);
    const recovered = await recover(this.#recovery(durable, pages));
    this.from = recovered.from;
    if (recovered.from !== undefined) {
      const { number, savepoint, finished } = recovered.from;
      logger.log(finished ? "warn" : "info", finished ? "all input had been read already" : "restored", {
        ...(savepoint === undefined ? { checkpoint: number } : { savepoint }),
      });
    }
    return recovered;
  }

  #recovery(durable: DurableSettings, pages: PageStore): RecoveryOptions {
    const { plan, run: { clock, logger, maxKeyGroups } } = this.#options;
    return {
      plan,
      pages,
      manifests: new ManifestStore(pages),
      maxKeyGroups,
      limits: durable.backend.limits,
      savepoint: this.#firstSavepoint,
      passedOver: this.#passedOver,
      allowUnmatched: durable.allowUnmatched,
      clock,
      logger,
      signal: this.#halt.signal,
    };
  }

  #begin(recovered: Recovered | undefined): Run {
    const { name, plan, run: options, durable } = this.#options;
    if (durable === undefined || recovered === undefined) return this.#run = new Run(plan, options);
    const { stores, restored, from, lastNumber } = recovered;
    this.#stores = stores;
    const run: Run = new Run(plan, {
      ...options,
      checkpoints: {
        store: (operator) => stores.get(operator)!,
        restored,
        highest: lastNumber,
        interval: durable.checkpoints.interval,
        request: async () => {
          await this.#coordinator!.takeNow();
        },
      },
      ...(from === undefined
        ? {}
        : { onRestored: () => confirmCommitted(from, this.#recovery(durable, this.#pages!)) }),
      onRunning: () => this.#coordinator?.start(),
      onDrained: () => {
        this.#hasDrained = true;
        return this.#coordinator?.finish(this.#lastSavepoint);
      },
    });
    this.#coordinator = new Coordinator({
      pipeline: name,
      settings: durable.checkpoints,
      run: { snapshots: run.instance.snapshots!, sources: run.instance.sources, sinks: run.instance.sinks },
      manifests: new ManifestStore(this.#pages!),
      stores,
      retained: recovered.retained,
      stats: this.#stats,
      settle: async () => {
        await recovered.settle();
        this.#firstSavepoint = undefined; // a restart goes on from what has come since
      },
      clock: options.clock,
      logger: options.logger,
      fail: (error) => run.abort(asError(error)),
      ...(durable.onStep === undefined ? {} : { onStep: durable.onStep }),
    });
    return this.#run = run;
  }
}
