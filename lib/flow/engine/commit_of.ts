/**
 * From a decision to the commit that stores it with everything it asks for.
 *
 * C1 What events ask for is in the same commit as the events: nothing is begun twice, nothing is forgotten.
 * C2 The job of an attempt goes with the decision that settles the attempt.
 *
 * @module
 */
import { stringifyJson } from "../../json.ts";
import {
  type AttemptRef,
  type Command,
  type Effect,
  encodeCommand,
  encodeEvents,
  encodeState,
  type JobEffect,
  jobId,
  type Outcome,
  type Summary as FoldSummary,
} from "../fold/mod.ts";
import type { CacheEntry, Commit, NewCommand, NewJob, NewTimer, Summary } from "../store/port.ts";
import type { Execution } from "./executions.ts";

/** A job as it lies in its queue: which attempt it is, and what has to be known before it is handed out. */
export interface QueuedJob extends AttemptRef {
  /** Name of the flow. */
  readonly flow?: string;
  readonly node: string;
  /** Longest silence of its worker, ms. */
  readonly heartbeat?: number;
  readonly concurrency?: { readonly key: string; readonly max: number };
  readonly rate?: { readonly key?: string; readonly max: number; readonly per: number };
  /** A result kept under this key is the answer. */
  readonly cacheKey?: string;
}

/** Timers of the engine itself; those of the fold are called `t1`, `t2` … */
export const EXPIRY = "expiry";

/** Where a job may go at once: to a worker of this process that is free. */
export type Reserve = (job: JobEffect) => NewJob["lease"];

/** How often a snapshot is taken: whenever the number of events passes a multiple of this. */
export const SNAPSHOT_EVERY = 100;

/** The parts of a commit that a decision makes. */
export type DecisionParts = Omit<Commit, "execId" | "ownership" | "head" | "command">;

/** What a decision has to have stored. */
export function partsOf(
  command: Command,
  before: Execution | undefined,
  { events, effects, state }: Outcome,
  { now, reserve, snapshotEvery }: {
    readonly now: number;
    readonly reserve: Reserve;
    readonly snapshotEvery: number;
  },
): DecisionParts {
  const jobs: NewJob[] = [], timers: NewTimer[] = [], send: NewCommand[] = [], cache: CacheEntry[] = [];
  const removeJobs: string[] = answeredJob(command, before), clearTimers: string[] = [];
  let summary: Summary | undefined;
  for (const effect of effects) {
    switch (effect.type) {
      case "job":
        jobs.push(newJob(effect, state.flow, now, reserve));
        break;
      case "stop":
        removeJobs.push(effect.id);
        break;
      case "timer_set":
        timers.push({ id: effect.id, at: effect.at, text: effect.purpose });
        break;
      case "timer_delete":
        clearTimers.push(effect.id);
        break;
      case "child_start":
      case "child_cancel":
      case "parent_notice":
        send.push(newCommand(effect.command));
        break;
      case "cache_put":
        cache.push({ key: effect.key, text: stringifyJson(effect.result), expiresAt: effect.expiresAt });
        break;
      case "expire":
        timers.push({ id: EXPIRY, at: effect.at, text: effect.action });
        break;
      case "index":
        summary = summaryFor(effect.summary, before, state.endedAt);
        break;
    }
  }
  const every = snapshotEvery,
    isDue = every > 0 &&
      Math.floor(state.events / every) > Math.floor((before?.state.events ?? 0) / every);
  return {
    events: encodeEvents(events),
    lastIndex: state.events,
    note: [...new Set(events.map(({ type }) => type))].join(),
    ...(summary === undefined ? {} : { summary }),
    ...(jobs.length === 0 ? {} : { jobs }),
    ...(removeJobs.length === 0 ? {} : { removeJobs }),
    ...(timers.length === 0 ? {} : { timers }),
    ...(clearTimers.length === 0 ? {} : { clearTimers }),
    ...(send.length === 0 ? {} : { send }),
    ...(cache.length === 0 ? {} : { cache }),
    ...(isDue ? { snapshot: stringifyJson(encodeState(state)) } : {}),
  };
}

/** A command on its way to another execution. */
export function newCommand(command: Command): NewCommand {
  return { execId: command.exec_id, id: command.id, text: encodeCommand(command), once: true };
}

/** The job that a worker's answer settles. */
export function answeredJob(command: Command, before: Execution | undefined): string[] {
  if (command.type !== "complete" && command.type !== "fail" && command.type !== "interrupt") return [];
  const id = jobId(command.exec_id, command.data);
  return before !== undefined && Object.hasOwn(before.head.jobs, id) ? [id] : [];
}

function newJob(effect: JobEffect, flow: string, now: number, reserve: Reserve): NewJob {
  const { id, kind, priority, key, generation, attempt, node, heartbeat, concurrency, rate, cache } = effect;
  const job: QueuedJob = {
    key,
    generation,
    attempt,
    flow,
    node,
    ...(heartbeat === undefined ? {} : { heartbeat }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(rate === undefined ? {} : { rate }),
    ...(cache === undefined ? {} : { cacheKey: cache.key }),
  };
  const lease = reserve(effect);
  return {
    id,
    kind,
    priority,
    order: now,
    text: JSON.stringify(job),
    ...(lease === undefined ? {} : { lease }),
  };
}

function summaryFor(
  { flow, flow_hash, status, created, updated, attrs, paused, parent, forked_from, error, reason }:
    FoldSummary,
  before: Execution | undefined,
  endedAt: number | undefined,
): Summary {
  const more = {
    ...(paused === undefined ? {} : { paused }),
    ...(parent === undefined ? {} : { parent }),
    ...(forked_from === undefined ? {} : { forked_from }),
    ...(error === undefined ? {} : { error }),
    ...(reason === undefined ? {} : { reason }),
  };
  return {
    flow,
    flowHash: flow_hash,
    status,
    createdAt: before?.head.summary.createdAt ?? created,
    updatedAt: updated,
    attrs,
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(Object.keys(more).length === 0 ? {} : { more }),
  };
}

/** Attempts whose workers are to stop. */
export function stopsOf(effects: readonly Effect[]): string[] {
  return effects.flatMap((effect) => effect.type === "stop" ? [effect.id] : []);
}
