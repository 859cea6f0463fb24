/**
 * A pipeline under way, as its owner sees it.
 *
 * @module
 */
import type { CheckpointStats } from "../checkpoint/coordinator.ts";
import type { Execution } from "../checkpoint/execution.ts";
import type { RunPhase } from "../runtime/run.ts";

/** How a run stands. */
export interface RunStatus {
  /** Name of the pipeline. */
  readonly name: string;
  /** How far the run is. */
  readonly phase: RunPhase;
  /** When it was started, ms since the epoch, by the pipeline's clock. */
  readonly startedAt: number;
  /** Failed runs that were followed by another; the numbers below are those of the current one. */
  readonly restarts: number;
  /** What has become of checkpoints; undefined where none are taken. */
  readonly checkpoints: Readonly<CheckpointStats> | undefined;
  /** Records read by all sources. */
  readonly recordsIn: number;
  /** Records written by all sinks, dead letters apart. */
  readonly recordsOut: number;
  /** Records sent to the dead-letter sink. */
  readonly deadLetters: number;
  /** Records left out on purpose, by operator and reason. */
  readonly dropped: readonly { readonly operator: string; readonly reason: string; readonly count: number }[];
  /** How much of a bounded input is read, where all sources know. */
  readonly progress: { readonly done: number; readonly total: number } | undefined;
  /** The least watermark of all splits that are neither idle nor ended; undefined where none has any. */
  readonly watermark: number | undefined;
}

/** How a run is stopped. */
export interface StopOptions {
  /** Name of a savepoint that is taken when everything has drained. */
  readonly savepoint?: string;
}

/** A savepoint that was taken. */
export interface SavepointInfo {
  /** Its name. */
  readonly name: string;
  /** Its number in the row of checkpoints. */
  readonly checkpoint: number;
  /** When its barrier started, ms since the epoch. */
  readonly takenAt: number;
  /** From there until it was durable, ms. */
  readonly durationMs: number;
}

/** Controls one run. */
export class RunHandle {
  readonly #execution: Execution;
  readonly #name: string;
  readonly #deadLetterSink: string | undefined;

  /** @ignore Made by an environment. */
  constructor(name: string, execution: Execution, deadLetterSink: string | undefined) {
    this.#name = name;
    this.#deadLetterSink = deadLetterSink;
    this.#execution = execution;
  }

  /** Resolves when the run is over; rejects with the error that ended it. */
  get done(): Promise<void> {
    return this.#execution.done;
  }
  /** Resolves when everything is open and records flow. */
  get running(): Promise<void> {
    return this.#execution.running;
  }

  /** Reads no more, lets what was read drain, closes. Windows that are still open stay unfired. Resolves as `done`. */
  stop(options: StopOptions = {}): Promise<void> {
    try {
      this.#execution.stop(options.savepoint);
    } catch (error) {
      return Promise.reject(error); // as every other failure of it
    }
    return this.#execution.done;
  }

  /**
   * Takes a savepoint while the pipeline runs: a checkpoint under a name that stays until it is deleted. Resolves when it is
   * durable and committed.
   *
   * @throws {MailerError} `no_checkpointing`, `not_running`, `invalid_savepoint_name`; what went wrong while it was taken
   */
  async savepoint(name: string): Promise<SavepointInfo> {
    const { number, takenAt, durationMs } = await this.#execution.savepoint(name);
    return { name, checkpoint: number, takenAt, durationMs };
  }

  /** Ends the run at once, without draining. `done` rejects with `reason`. */
  abort(reason?: Error): void {
    this.#execution.abort(reason);
  }

  /** What a keyed process operator holds of a key, by name of the state. Empty where it holds nothing. */
  inspect(operator: string, key: unknown): Readonly<Record<string, unknown>> {
    for (const instance of this.#execution.instance?.running.get(operator) ?? []) {
      const held = instance.inspect?.(key);
      if (held !== undefined && Object.keys(held).length > 0) return held;
    }
    return {};
  }

  /** How the run stands now. */
  status(): RunStatus {
    const { instance, phase, startedAt, restarts, checkpoints } = this.#execution;
    const sources = new Set(instance?.sources.map((source) => source.name));
    const sinks = new Set(instance?.sinks.map((sink) => sink.name));
    let recordsIn = 0, recordsOut = 0, deadLetters = 0;
    const dropped: { operator: string; reason: string; count: number }[] = [];
    for (const counters of instance?.operators ?? []) {
      if (sources.has(counters.id)) recordsIn += counters.recordsIn;
      if (sinks.has(counters.id) && counters.id !== this.#deadLetterSink) recordsOut += counters.recordsOut;
      deadLetters += counters.deadLetters;
      for (const [reason, count] of counters.dropped) dropped.push({ operator: counters.id, reason, count });
    }
    const splits = instance?.splits ?? [];
    const watermarks = splits.filter((split) => !split.idle && !split.ended).map((split) => split.watermark);
    const least = Math.min(...watermarks);
    return {
      name: this.#name,
      phase,
      startedAt,
      restarts,
      checkpoints,
      recordsIn,
      recordsOut,
      deadLetters,
      dropped,
      progress: this.#progress(),
      watermark: Number.isFinite(least) ? least : undefined,
    };
  }

  #progress(): { done: number; total: number } | undefined {
    let done = 0, total = 0;
    for (const source of this.#execution.instance?.sources ?? []) {
      const progress = source.progress;
      if (progress === undefined) return undefined;
      done += progress.done;
      total += progress.total;
    }
    return { done, total };
  }
}
