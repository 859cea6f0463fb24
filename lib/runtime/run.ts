/**
 * One run of a plan, from opening to the last close.
 *
 * L1 Sinks open before sources, and nothing is read before all are open.
 * L2 The first error ends the run: edges are aborted, everything opened is closed, and that error is the result. A part is closed
 *    when its call under way has settled, or has had its second to do so.
 * L3 `stop` ends the sources; what was read drains. Past the shutdown timeout the rest is aborted, and the stages that were
 *    still at work are named.
 * L4 The end of input closes windows; a stop does not.
 * L5 What the run goes on from is restored before anything is opened.
 *
 * @module
 */
import type { Alarm } from "../clock.ts";
import { asError, MailerError, ShutdownTimeoutError } from "../errors.ts";
import type { RunOutcome } from "../connector.ts";
import type { Plan } from "../plan/plan.ts";
import { Instance, type InstanceOptions } from "./instance.ts";
import type { SinkTask } from "./sink_task.ts";
import type { SourceTask } from "./source_task.ts";
import type { Task } from "./stage.ts";

/** Settings of a run. */
export interface RunOptions extends Omit<InstanceOptions, "signal"> {
  /** How long draining may take after a stop, ms. */
  readonly shutdownTimeout: number;
  /** Called when all state is restored, and nothing is open yet. Its failure is the run's. */
  readonly onRestored?: () => Promise<void>;
  /** Called when everything is open and records begin to flow. */
  readonly onRunning?: () => void;
  /** Called when everything has been worked through, before anything is closed. Its failure is the run's. */
  readonly onDrained?: () => Promise<void> | undefined;
}

/** How far a run is. */
export type RunPhase = "starting" | "running" | "stopping" | "finished" | "stopped" | "failed";

/** How long calls under way, and closing, may take once the run has been aborted, ms. */
const ABORTED_CLOSE_MS = 1000;

/** A run under way. */
export class Run {
  readonly instance: Instance;
  /** Resolves when everything is closed; rejects with the error that ended the run. */
  readonly done: Promise<void>;
  /** Resolves when everything is open and records begin to flow; rejects as `done` when that fails. */
  readonly running: Promise<void>;
  readonly startedAt: number;
  phase: RunPhase = "starting";
  readonly #options: RunOptions;
  readonly #abort = new AbortController();
  readonly #aborted = Promise.withResolvers<never>();
  readonly #started = Promise.withResolvers<void>();
  /** Parts with a call under way: opening, running, closing. */
  readonly #working = new Set<Task>();
  readonly #calls: Promise<void>[] = [];
  #deadline: Alarm | undefined;
  #stopRequested = false;
  #error: { readonly error: unknown } | undefined;

  constructor(plan: Plan, options: RunOptions) {
    this.#options = options;
    this.startedAt = options.clock.now();
    this.instance = new Instance(plan, { ...options, signal: this.#abort.signal });
    this.#aborted.promise.catch(() => {});
    this.#started.promise.catch(() => {});
    this.running = this.#started.promise;
    this.done = this.#run();
    this.done.catch(() => {}); // whoever awaits `done` gets the error; a caller who only watches `phase` must not crash the process
  }

  /** Reads no more and drains. Calling it again changes nothing. */
  stop(): void {
    if (this.#stopRequested || this.#isOver) return;
    this.#stopRequested = true;
    this.phase = "stopping";
    for (const source of this.instance.sources) source.stop();
    const { clock, shutdownTimeout } = this.#options;
    this.#deadline = clock.schedule(shutdownTimeout, () => {
      const working = [...this.#working], busy = working.filter((task) => !task.isWaiting);
      const stages = (busy.length > 0 ? busy : working).map((task) => task.name);
      this.#fail(new ShutdownTimeoutError(stages, shutdownTimeout));
    });
  }

  /** Gives up at once: nothing drains. */
  abort(reason: Error = new MailerError("aborted", "the run was aborted")): void {
    if (!this.#isOver) this.#fail(reason);
  }

  get #isOver(): boolean {
    return this.phase === "finished" || this.phase === "stopped" || this.phase === "failed";
  }

  async #run(): Promise<void> {
    const { sources, sinks, tasks } = this.instance;
    try {
      await Promise.race([this.#restore(), this.#aborted.promise]);
      for (const part of [...sinks, ...sources]) {
        await Promise.race([this.#call(part, () => part.open()), this.#aborted.promise]);
      }
      if (this.phase === "starting") this.phase = "running";
      this.#started.resolve();
      this.#options.onRunning?.();
      const work = Promise.all(tasks.map((task) => this.#call(task, () => task.run())));
      await Promise.race([work, this.#aborted.promise]);
      await Promise.race([this.#options.onDrained?.(), this.#aborted.promise]);
      await Promise.race([this.#closeAll("done"), this.#aborted.promise]);
    } catch (error) {
      this.#fail(error);
      await this.#closeAfterFailure();
    }
    this.#deadline?.cancel();
    if (this.#error !== undefined) {
      this.phase = "failed";
      this.#started.reject(this.#error.error);
      throw this.#error.error;
    }
    this.phase = this.#stopRequested ? "stopped" : "finished";
  }

  async #restore(): Promise<void> {
    await this.instance.restore();
    await this.#options.onRestored?.();
  }

  /** Makes a call of a part. A failure is the run's. */
  #call(part: Task, call: () => Promise<void>): Promise<void> {
    this.#working.add(part);
    const made = (async () => {
      try {
        await call();
      } catch (error) {
        this.#fail(error);
        throw error;
      } finally {
        this.#working.delete(part);
      }
    })();
    this.#calls.push(made);
    return made;
  }

  /** The first error is the run's; everything that waits is told. */
  #fail(error: unknown): void {
    if (this.#error !== undefined) return;
    this.#error = { error: asError(error) };
    this.#abort.abort(error);
    for (const source of this.instance.sources) source.stop();
    for (const edge of this.instance.edges) edge.abort(error);
    this.#aborted.reject(error);
  }

  async #closeAll(outcome: RunOutcome): Promise<void> {
    const { sources, sinks } = this.instance;
    const parts: readonly (SourceTask | SinkTask)[] = [...sources, ...sinks];
    await Promise.all(parts.map((part) => this.#call(part, () => part.close(outcome))));
  }

  /** An aborted part may hang in its work, and again in its close: it has a second for both. */
  async #closeAfterFailure(): Promise<void> {
    const timeUp = Promise.withResolvers<void>();
    const alarm = this.#options.clock.schedule(ABORTED_CLOSE_MS, timeUp.resolve);
    await Promise.race([Promise.allSettled(this.#calls), timeUp.promise]); // calls of one part never overlap
    await Promise.race([this.#closeAll("failed").catch(() => {}), timeUp.promise]); // the first error is the run's
    alarm.cancel();
  }
}
