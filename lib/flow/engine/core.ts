/**
 * What the parts of an engine share.
 *
 * @module
 */
import { type Clock, delay } from "../../clock.ts";
import type { Logger } from "../../log.ts";
import type { FlowEvent, JobEffect } from "../fold/mod.ts";
import type { FlowStore, LeasedJob, NewJob } from "../store/port.ts";
import type { Execution, Executions } from "./executions.ts";
import type { Flows } from "./flows.ts";

/** Who does jobs in this process. */
export interface JobTaker {
  /** Keeps a free worker for a job that is about to be queued, if there is one. */
  reserve(job: JobEffect): NewJob["lease"];
  /** The worker is not needed after all. */
  unreserve(kind: string): void;
  /** Does a job that was handed out. */
  take(job: LeasedJob): void;
  /** Nobody waits for this job any more. */
  stop(jobId: string): void;
}

/** What an engine has done. */
export interface EngineCounters {
  /** Commands that were decided, also those that led to nothing. */
  commands: number;
  /** Decisions that were stored. */
  decisions: number;
  /** Events of those. */
  events: number;
  /** Decisions that were made again because somebody else had written. */
  conflicts: number;
  /** Commands and jobs that were given up. */
  deadLetters: number;
  /** Attempts that were handed to a worker of this process. */
  jobs: number;
  /** Attempts that were answered by a result from before. */
  cacheHits: number;
  /** Histories that were begun anew. */
  continued: number;
  /** Executions that were archived. */
  archived: number;
  /** Executions that were deleted. */
  deleted: number;
  /** Executions that were parked. */
  quarantined: number;
  /** Timers that led to a decision, or came too late for one. */
  timers: number;
  /** How much later than they were due those were taken up, in all, ms. */
  timerLateMs: number;
}

/** Counts from nothing. */
export function noCounters(): EngineCounters {
  return {
    commands: 0,
    decisions: 0,
    events: 0,
    conflicts: 0,
    deadLetters: 0,
    jobs: 0,
    cacheHits: 0,
    continued: 0,
    archived: 0,
    deleted: 0,
    quarantined: 0,
    timers: 0,
    timerLateMs: 0,
  };
}

/** Hears of decisions. */
export type Listener = (execution: Execution, events: readonly FlowEvent[]) => void;

/** Shared by the parts of an engine. */
export class EngineCore {
  readonly counters: EngineCounters = noCounters();
  jobs!: JobTaker;
  readonly #listeners = new Map<string, Set<Listener>>();

  constructor(
    readonly store: FlowStore,
    readonly clock: Clock,
    readonly logger: Logger,
    readonly flows: Flows,
    readonly executions: Executions,
    /** Most events of a decision. */
    readonly maxEvents: number,
    /** Events between snapshots; 0 = none are taken. */
    readonly snapshotEvery: number,
    /** Live events from which on a history is begun anew; 0 = never. */
    readonly historyLimit: number,
  ) {}

  /** Waits; ends early, without an error, when the signal is aborted. */
  async pause(ms: number, signal: AbortSignal): Promise<void> {
    await delay(this.clock, ms, signal).catch((reason) => {
      if (!signal.aborted) throw reason;
    });
  }

  /** Has somebody hear of the decisions that this process makes about an execution, until the returned function is called. */
  listen(execId: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(execId) ?? new Set();
    this.#listeners.set(execId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(execId) === listeners) this.#listeners.delete(execId);
    };
  }

  /** A decision has been stored. */
  changed(execId: string, execution: Execution, events: readonly FlowEvent[]): void {
    for (const listener of [...this.#listeners.get(execId) ?? []]) listener(execution, events);
  }
}
