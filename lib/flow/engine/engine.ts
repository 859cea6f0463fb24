/**
 * The durable engine: it owns partitions of a store, decides the commands for their executions, and serves jobs to the workers of its
 * process.
 *
 * G1 Making an engine opens nothing and starts nothing; `start` does.
 * G2 Several engines may work on one store: each partition has one owner at a time, and whoever lost it commits nothing there.
 * G3 Draining takes nothing new in, lets what is under way come to its end, and gives the partitions back.
 *
 * @module
 */
import { type Clock, systemClock } from "../../clock.ts";
import { asError, codeOf, MailerError } from "../../errors.ts";
import { type Logger, silentLogger } from "../../log.ts";
import type { Flow } from "../definition/mod.ts";
import { type Command, MAX_DECISION_EVENTS } from "../fold/mod.ts";
import { Scheduler, Schedules, type ScheduleSpec } from "../schedule/mod.ts";
import type { FlowStore } from "../store/port.ts";
import { newCommand, SNAPSHOT_EVERY } from "./commit_of.ts";
import { EngineCore, type EngineCounters } from "./core.ts";
import { type Execution, Executions } from "./executions.ts";
import { Flows } from "./flows.ts";
import { type Answer, PartitionRunner } from "./partition.ts";
import type { Handler } from "./task.ts";
import { LocalWorkers, type WorkerOptions } from "./workers.ts";

/** Settings of an engine. */
export interface EngineOptions {
  /** Where everything lies. The engine does not close it. */
  readonly store: FlowStore;
  /** Names it among all engines that ever work on the store. Default: a random one. */
  readonly name?: string;
  /** Flows it registers when it starts. */
  readonly flows?: readonly Flow[];
  /** Schedules it stores when it starts; what is stored already goes on as it is. */
  readonly schedules?: readonly ScheduleSpec[];
  /** How often changes of schedules by other processes are looked for, ms; a tenth as often while there are none. Default 1,000. */
  readonly schedulePollMs?: number;
  /** Partitions it may own. Default: all that are free. */
  readonly partitions?: readonly number[];
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Default: nowhere. */
  readonly logger?: Logger;
  /** For how long a partition is this engine's without a sign of life, ms. Default 5,000. */
  readonly ownershipMs?: number;
  /** Live events of an execution from which on its history is begun anew; 0 = never. Default 10,000. */
  readonly historyLimit?: number;
  /** Events between snapshots; 0 = none. Default 100. */
  readonly snapshotEvery?: number;
  /** Executions that are remembered. Default 10,000. */
  readonly remembered?: number;
  /** Most events of a decision. Default 1,000. */
  readonly maxEvents?: number;
  /** How long draining may take, ms. Default 30,000. */
  readonly drainMs?: number;
}

const OWNERSHIP_MS = 5000;
const HISTORY_LIMIT = 10_000;
const DRAIN_MS = 30_000;
/** How often what has expired is removed, ms. */
const SWEEP_EVERY = 60_000;

/** An engine. */
export class FlowEngine implements AsyncDisposable {
  /** Names it among all engines there ever were. */
  readonly name: string;
  /** What it starts by the clock. */
  readonly schedules: Schedules;
  readonly #scheduler: Scheduler;
  readonly #options: EngineOptions;
  readonly #core: EngineCore;
  readonly #workers: LocalWorkers;
  readonly #runners = new Map<number, PartitionRunner>();
  readonly #stop = new AbortController();
  #owning: Promise<void> | undefined;
  #sweeping: Promise<void> | undefined;
  #drained: Promise<void> | undefined;

  /** Opens nothing. */
  constructor(options: EngineOptions) {
    this.#options = options;
    // deno-lint-ignore mailer/injected-time -- tells it from all engines of all processes; nothing else depends on it
    this.name = options.name ?? `engine-${crypto.randomUUID()}`;
    const { store, clock = systemClock, logger = silentLogger } = options;
    const flows = new Flows(store.definitions, clock);
    this.#core = new EngineCore(
      store,
      clock,
      logger,
      flows,
      new Executions(store, flows, options.remembered),
      options.maxEvents ?? MAX_DECISION_EVENTS,
      options.snapshotEvery ?? SNAPSHOT_EVERY,
      options.historyLimit ?? HISTORY_LIMIT,
    );
    this.#workers = new LocalWorkers(this.#core, {
      look: (execId) => this.look(execId),
      answer: (command) => this.#handIn(command),
    }, this.name);
    this.#core.jobs = this.#workers;
    const { schedulePollMs: pollMs } = options;
    this.#scheduler = new Scheduler({
      store,
      clock,
      logger,
      flows,
      // One of the engines; that there may be two for a while does no harm.
      isActive: () => this.#runners.has(0),
      ...(pollMs === undefined ? {} : { pollMs }),
    });
    this.schedules = new Schedules({ store, clock, onChange: () => this.#scheduler.wake() });
  }

  /** @ignore Shared with what is built on the engine. */
  get core(): EngineCore {
    return this.#core;
  }

  /** What it has done so far. */
  get counters(): Readonly<EngineCounters> {
    return this.#core.counters;
  }

  /** Partitions it owns. */
  get owned(): readonly number[] {
    return [...this.#runners.keys()].sort((a, b) => a - b);
  }

  /** Does jobs of a kind in this process. */
  worker(kind: string, handler: Handler, options?: WorkerOptions): this {
    this.#workers.add(kind, handler, options);
    return this;
  }

  /** Registers its flows and takes the partitions that are free. It goes on to take those that become free. */
  async start(): Promise<this> {
    if (this.#owning !== undefined) {
      throw new MailerError("already_started", "the engine was started already");
    }
    for (const flow of this.#options.flows ?? []) await this.#core.flows.register(flow);
    for (const schedule of this.#options.schedules ?? []) await this.schedules.put(schedule);
    await this.#own();
    this.#scheduler.start();
    this.#owning = this.#keepOwning();
    this.#sweeping = this.#keepSweeping();
    return this;
  }

  /** Stores a version of a flow, and makes it the newest of its name. */
  async register(flow: Flow): Promise<void> {
    await this.#core.flows.register(flow);
  }

  /**
   * Has a command carried out, by this engine where it owns the partition.
   *
   * @returns What became of it; undefined where another process will carry it out: it is stored, and will not be lost.
   */
  async submit(command: Command): Promise<Answer | undefined> {
    const { store } = this.#core, runner = this.#runners.get(store.partitions.of(command.exec_id));
    if (runner !== undefined) {
      try {
        return await runner.submit(command);
      } catch (error) {
        // What is for an execution that is parked is kept until that is let go.
        if (!["partition_lost", "quarantined"].includes(codeOf(error))) throw error;
      }
    }
    await store.inbox.push([newCommand(command)]);
    return undefined;
  }

  /** Whether it decides the commands for an execution. */
  owns(execId: string): boolean {
    return this.#runners.has(this.#core.store.partitions.of(execId));
  }

  /** An execution as it is now. */
  async look(execId: string): Promise<Execution | undefined> {
    const { executions } = this.#core;
    return await (this.#isOwn(execId) ? executions.get(execId) : executions.read(execId));
  }

  /** An execution as it is now, where that is known without a look at the store. */
  known(execId: string): Execution | undefined {
    return this.#isOwn(execId) ? this.#core.executions.known(execId) : undefined;
  }

  /** Whether nobody else can have written. */
  #isOwn(execId: string): boolean {
    const { store, clock } = this.#core;
    const ownership = this.#runners.get(store.partitions.of(execId))?.ownership;
    // Beyond its time others may have written, though this process has not heard of it yet.
    return ownership !== undefined && !ownership.lost && clock.now() < ownership.until;
  }

  /** Takes nothing new in, lets what is under way come to its end, and gives the partitions back. */
  drain(): Promise<void> {
    return this.#drained ??= this.#drain();
  }

  /** The same as {@link FlowEngine.drain}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain();
  }

  async #handIn(command: Command): Promise<void> {
    const answer = await this.submit(command);
    if (answer?.ok === false && answer.code !== "rejected" && answer.code !== "not_found") {
      const { exec_id, type } = command;
      this.#core.logger.log("error", "an answer was refused", {
        execution: exec_id,
        type,
        why: answer.message,
      });
    }
  }

  /** Takes what is free and prolongs what it has. */
  async #own(): Promise<void> {
    const { store, logger } = this.#core, { ownershipMs = OWNERSHIP_MS } = this.#options;
    const wanted = this.#options.partitions ?? Array.from({ length: store.partitions.count }, (_, i) => i);
    await Promise.all(wanted.map(async (partition) => {
      const runner = this.#runners.get(partition);
      try {
        if (runner !== undefined) {
          if (await store.partitions.renew(runner.ownership, ownershipMs)) return;
          this.#runners.delete(partition);
          runner.lose();
          logger.log("warn", "a partition was taken over by another engine", { partition });
        }
        const ownership = await store.partitions.acquire(partition, this.name, ownershipMs);
        if (ownership === undefined) return;
        if (this.#stop.signal.aborted) await store.partitions.release(ownership);
        else {
          // What is remembered of an earlier time may have been changed by others since.
          this.#core.executions.forget((execId) => store.partitions.of(execId) === partition);
          this.#runners.set(partition, new PartitionRunner(this.#core, ownership));
        }
      } catch (error) {
        logger.log("warn", "a partition could not be taken", { partition, error: asError(error).message });
      }
    }));
  }

  async #keepOwning(): Promise<void> {
    const { ownershipMs = OWNERSHIP_MS } = this.#options, { signal } = this.#stop;
    for (;;) {
      await this.#core.pause(ownershipMs / 3, signal);
      if (signal.aborted) return;
      await this.#own();
    }
  }

  async #keepSweeping(): Promise<void> {
    const { store, logger } = this.#core, { signal } = this.#stop;
    for (;;) {
      await this.#core.pause(SWEEP_EVERY, signal);
      if (signal.aborted) return;
      try {
        await store.sweep();
      } catch (error) {
        logger.log("warn", "what has expired could not be removed", { error: asError(error).message });
      }
    }
  }

  /** One that cannot be given back is another's when its time is over. */
  async #giveBack(runner: PartitionRunner): Promise<void> {
    const { store, logger } = this.#core, { ownership } = runner, { partition } = ownership;
    runner.lose();
    try {
      await store.partitions.release(ownership);
    } catch (error) {
      logger.log("warn", "a partition could not be given back", { partition, error: asError(error).message });
    }
  }

  async #drain(): Promise<void> {
    const { clock } = this.#core, { drainMs = DRAIN_MS } = this.#options;
    // Workers first: their answers still find the partitions in these hands.
    const working = Promise.all([this.#workers.drain(), this.#scheduler.stop()]);
    const timeUp = Promise.withResolvers<void>(), alarm = clock.schedule(drainMs, timeUp.resolve);
    await Promise.race([working, timeUp.promise]);
    this.#workers.abort();
    const runners = [...this.#runners.values()];
    await Promise.race([Promise.all(runners.map((runner) => runner.drain())), timeUp.promise]);
    alarm.cancel();
    this.#stop.abort(new MailerError("stopped", "the engine stops"));
    await Promise.all([this.#owning, this.#sweeping]);
    await Promise.all(runners.map((runner) => this.#giveBack(runner)));
    this.#runners.clear();
  }
}
