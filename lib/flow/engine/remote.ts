/**
 * Jobs for workers elsewhere, in any language: leased, kept, answered, each by a call of its own.
 *
 * M1 Whose a job is, is in the store alone: a call may come to any process that works on it, also to one started since.
 * M2 A lease is told by its worker and by how often the job was handed out. Who holds an older one is told that the job is not
 *    wanted from him any more, and his answer changes nothing.
 * M3 An answer is acknowledged when it is durable. Of several one counts; the others are told so.
 * M4 A node's `heartbeat` holds: an attempt whose worker was silent for so long fails as `heartbeat_timeout`, with the progress it
 *    told last. It is watched by the process that heard of the worker last.
 * M5 A job that nobody can be given is put back, and that is no delivery.
 *
 * @module
 */
import type { Alarm } from "../../clock.ts";
import { asError, MailerError } from "../../errors.ts";
import { parseJson } from "../../json.ts";
import { type CommandData, hasEnded, type JobBody, statusOf } from "../fold/mod.ts";
import type { LeasedJob } from "../store/port.ts";
import { answerOf, type AnswerType, limitsOf, openJob } from "./attempt.ts";
import type { QueuedJob } from "./commit_of.ts";
import type { FlowEngine } from "./engine.ts";

/** What a worker asks for. */
export interface LeaseRequest {
  /** Kinds of work it does. */
  readonly kinds: readonly string[];
  /** Most jobs. */
  readonly max: number;
  /** Names the worker among all. */
  readonly worker: string;
  /** For how long a job is the worker's without a sign of life, ms. */
  readonly leaseMs: number;
  /** How long to wait for a job, ms. */
  readonly waitMs: number;
}

/** A job in the hands of a worker. */
export interface RemoteJob extends JobBody {
  /** Names it. */
  readonly id: string;
  /** Tells this lease from others; goes with every call about the job. */
  readonly lease: string;
  /** For how long it is the worker's without a sign of life, ms. */
  readonly lease_ms: number;
  /** How often this attempt was handed out, from 1 on. */
  readonly deliveries: number;
  /** Longest silence of its worker until the attempt fails, ms. */
  readonly heartbeat_ms?: number;
}

/** A sign of life. */
export interface HeartbeatRequest {
  /** From when on the job is the worker's for so long, ms. Default: as long as it was leased for. */
  readonly leaseMs?: number;
  /** How far it has got: what the next attempt finds where this one fails. */
  readonly progress?: unknown;
  /** Whether it only keeps the lease, and says nothing about the work: for a node's `heartbeat` it does not count. */
  readonly keep?: boolean;
  /** How long to wait with the answer, ms, as long as the job is wanted. */
  readonly waitMs?: number;
}

/** What a worker hears. */
export interface Heartbeat {
  /** Whether the answer is still wanted. False: stop, and give none. */
  readonly wanted: boolean;
  /** Why not, one sentence. */
  readonly reason?: string;
  /** Until when the job is the worker's, ms since the epoch. */
  readonly until?: number;
}

/** What became of an answer. */
export interface Receipt {
  /** Whether it counts. */
  readonly accepted: boolean;
  /** Why it does not, one sentence. */
  readonly reason?: string;
}

/** A worker whose silence is measured. */
interface Watched {
  readonly lease: string;
  /** Longest silence, ms; without one only the progress is kept. */
  readonly heartbeat: number | undefined;
  readonly alarm: Alarm;
  readonly progress: unknown;
  /** End of the lease, as this process knows it. */
  readonly until: number;
}

const JOB_ID = /^job\.([A-Za-z0-9_-]{1,128})\.([A-Za-z0-9_-]{1,128}(?:#\d{1,9})?)\.(\d{1,15})\.(\d{1,15})$/;
/** Times a lease is prolonged that another call prolongs too. */
const TRIES = 5;
/** How often a job is looked for that another process may have settled, ms. */
const LOOK_EVERY_MS = 1000;
/** Wait before what could not be handed in is handed in again, ms. */
const AGAIN_MS = 1000;

/** Serves workers elsewhere, by an engine of this process. */
export class RemoteJobs {
  readonly #engine: FlowEngine;
  readonly #stop = new AbortController();
  readonly #watched = new Map<string, Watched>();
  /** Kind that is looked at first, so that none comes last always. */
  #turn = 0;

  /** Begins nothing. */
  constructor(engine: FlowEngine) {
    this.#engine = engine;
  }

  /**
   * Hands out jobs, at least one where there is any within the time.
   *
   * @param signal Aborted when the worker has gone: what it was to get is put back.
   * @throws {MailerError} `draining`.
   */
  async lease(request: LeaseRequest, signal: AbortSignal): Promise<readonly RemoteJob[]> {
    if (this.#stop.signal.aborted) throw new MailerError("draining", "no more jobs are handed out here");
    const { store, clock } = this.#engine.core, timeUp = new AbortController();
    const watch = store.watch(request.kinds.map((kind) => `jobs:${kind}` as const));
    const alarm = clock.schedule(request.waitMs, () => timeUp.abort());
    const end = AbortSignal.any([signal, timeUp.signal, this.#stop.signal]);
    try {
      for (;;) {
        const jobs = this.#stop.signal.aborted ? [] : await this.#take(request);
        if (jobs.length > 0 && (signal.aborted || this.#stop.signal.aborted)) {
          return await this.#putBack(jobs);
        }
        if (jobs.length > 0 || end.aborted) return jobs;
        await watch.next(end).catch((reason) => {
          if (!end.aborted) throw reason;
        });
      }
    } finally {
      alarm.cancel();
      watch.close();
    }
  }

  async #take({ kinds, max, worker, leaseMs }: LeaseRequest): Promise<readonly RemoteJob[]> {
    const { store } = this.#engine.core, found: RemoteJob[] = [], first = this.#turn++;
    for (let i = 0; i < kinds.length && found.length < max; i++) {
      const kind = kinds[(first + i) % kinds.length]!;
      const leased = await store.jobs.lease({ kind, max: max - found.length, worker, leaseMs, limitsOf });
      const opened = await Promise.all(leased.map((job) => this.#open(job, leaseMs)));
      for (const job of opened) if (job !== undefined) found.push(job);
    }
    return found;
  }

  /** What the worker gets; undefined where there is nothing for it to do. */
  async #open(job: LeasedJob, leaseMs: number): Promise<RemoteJob | undefined> {
    const { core } = this.#engine;
    try {
      const opened = await openJob(core, (execId) => this.#engine.look(execId), job);
      if (opened.kind === "answer") {
        await this.#engine.submit(opened.command);
        return undefined;
      }
      core.counters.jobs++;
      const { heartbeat } = opened.queued, lease = leaseOf(job, leaseMs);
      if (heartbeat !== undefined) this.#watch(job, lease, heartbeat, undefined);
      return {
        id: job.id,
        lease,
        lease_ms: leaseMs,
        deliveries: job.deliveries,
        ...(heartbeat === undefined ? {} : { heartbeat_ms: heartbeat }),
        ...opened.body,
      };
    } catch (error) {
      core.logger.log("error", "a job could not be handed out", {
        job: job.id,
        error: asError(error).message,
      });
      await core.store.jobs.release(job, { delayMs: AGAIN_MS });
      return undefined;
    }
  }

  async #putBack(jobs: readonly RemoteJob[]): Promise<readonly RemoteJob[]> {
    await Promise.all(jobs.map(({ id, lease }) => this.release(id, lease)));
    return [];
  }

  /** Prolongs a lease, and says whether the job is still wanted. */
  async heartbeat(
    id: string,
    lease: string,
    { leaseMs, progress, keep = false, waitMs = 0 }: HeartbeatRequest,
    signal: AbortSignal,
  ): Promise<Heartbeat> {
    const { execId } = attemptOf(id);
    let changed = Promise.withResolvers<void>();
    // Listened for before it is looked at, so that nothing between the two is missed.
    const forget = this.#engine.core.listen(execId, () => changed.resolve());
    const next = async (ms: number, end: AbortSignal): Promise<void> => {
      await Promise.race([changed.promise, this.#engine.core.pause(ms, end)]);
      changed = Promise.withResolvers();
    };
    try {
      const extended = await this.#extend(id, lease, leaseMs ?? leaseMsOf(lease));
      if (extended === undefined) return await this.#unwanted(id);
      this.#alive(extended, lease, progress, keep);
      const isWanted = waitMs <= 0 || await this.#stays(next, id, lease, waitMs, signal);
      return isWanted ? { wanted: true, until: extended.until } : await this.#unwanted(id);
    } finally {
      forget();
    }
  }

  /** Whether a job stays wanted for a while. */
  async #stays(
    next: (ms: number, end: AbortSignal) => Promise<void>,
    id: string,
    lease: string,
    waitMs: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { clock } = this.#engine.core, deadline = clock.monotonic() + waitMs, over = new AbortController();
    const end = AbortSignal.any([signal, this.#stop.signal, over.signal]);
    try {
      for (let left = waitMs; left > 0 && !end.aborted; left = deadline - clock.monotonic()) {
        // What other processes decide is looked for now and then.
        await next(Math.min(left, LOOK_EVERY_MS), end);
        if (await this.#find(id, lease) === undefined) return false;
      }
      return true;
    } finally {
      over.abort();
    }
  }

  async #extend(id: string, lease: string, leaseMs: number): Promise<LeasedJob | undefined> {
    for (let tries = 0; tries < TRIES; tries++) {
      const job = await this.#find(id, lease);
      if (job === undefined) return undefined;
      const [extended] = await this.#engine.core.store.jobs.extend([job], leaseMs);
      if (extended !== undefined) return extended;
    }
    throw new MailerError("store_busy", `the lease of job "${id}" is changed by others all the time`);
  }

  async #unwanted(id: string): Promise<Heartbeat> {
    this.#forget(id);
    return { wanted: false, reason: await this.#why(id) };
  }

  async #why(id: string): Promise<string> {
    const { execId } = attemptOf(id), execution = await this.#engine.look(execId);
    if (execution === undefined) return `there is no execution "${execId}"`;
    const { state } = execution;
    if (!hasEnded(state)) return "the attempt is over, or another worker has the job";
    const why = state.cancelReason === undefined ? "" : `: ${state.cancelReason}`;
    return `execution "${execId}" has ended, ${statusOf(state)}${why}`;
  }

  /**
   * Hands an answer in; resolves when it is durable. Where another process makes the decision it is stored for that, and counts as
   * accepted; should two answers meet there, the first one counts.
   */
  async answer<T extends AnswerType>(
    id: string,
    lease: string,
    type: T,
    data: Omit<CommandData[T], "key" | "generation" | "attempt" | "cache_key" | "cached">,
  ): Promise<Receipt> {
    const { execId, ...about } = attemptOf(id), job = await this.#find(id, lease);
    if (job === undefined) {
      this.#forget(id);
      return { accepted: false, reason: await this.#why(id) };
    }
    const { cacheKey } = parseJson(job.text) as QueuedJob;
    const progress = type === "fail" && !("progress" in data) ? this.#progressOf(id, lease) : undefined;
    const command = answerOf(
      execId,
      type,
      {
        ...about,
        ...data,
        ...(progress === undefined ? {} : { progress }),
        ...(type === "complete" && cacheKey !== undefined ? { cache_key: cacheKey } : {}),
      } as unknown as CommandData[T],
    );
    const answer = await this.#engine.submit(command);
    this.#forget(id);
    if (answer === undefined || (answer.ok && answer.changed)) return { accepted: true };
    return { accepted: false, reason: answer.ok ? await this.#why(id) : answer.message };
  }

  /**
   * Puts a job back, for another worker.
   *
   * @returns Whether it was this lease's.
   */
  async release(id: string, lease: string, delayMs = 0): Promise<boolean> {
    for (let tries = 0; tries < TRIES; tries++) {
      const job = await this.#find(id, lease);
      if (job === undefined) return false;
      if (await this.#engine.core.store.jobs.release(job, { delayMs, counts: false })) {
        this.#forget(id);
        return true;
      }
    }
    throw new MailerError("store_busy", `the lease of job "${id}" is changed by others all the time`);
  }

  /** Hands nothing out any more, and lets nobody wait. Answers are taken as before. */
  drain(): void {
    this.#stop.abort();
  }

  /** Watches no worker any more: their leases run out where another process does not hear of them. */
  close(): void {
    this.drain();
    for (const { alarm } of this.#watched.values()) alarm.cancel();
    this.#watched.clear();
  }

  /** The job of a lease; undefined where it is gone, or another's. */
  async #find(id: string, lease: string): Promise<LeasedJob | undefined> {
    const { executions, jobs } = this.#engine.core.store, head = await executions.head(attemptOf(id).execId);
    if (head === undefined || !Object.hasOwn(head.jobs, id)) return undefined;
    const job = await jobs.peek(head.execId, id, head.jobs[id]!);
    return job !== undefined && leaseOf(job, leaseMsOf(lease)) === lease ? job : undefined;
  }

  #alive(job: LeasedJob, lease: string, progress: unknown, keep: boolean): void {
    const known = this.#watched.get(job.id), isKnown = known?.lease === lease;
    const { heartbeat } = parseJson(job.text) as QueuedJob;
    const newest = progress === undefined && isKnown ? known.progress : progress;
    if (keep && isKnown && heartbeat !== undefined) {
      this.#watched.set(job.id, { ...known, progress: newest, until: job.until });
    } else if (heartbeat !== undefined || newest !== undefined) this.#watch(job, lease, heartbeat, newest);
  }

  #watch(job: LeasedJob, lease: string, heartbeat: number | undefined, progress: unknown): void {
    if (this.#stop.signal.aborted) return;
    const { clock } = this.#engine.core, { id, until } = job;
    this.#forget(id);
    const alarm = clock.schedule(heartbeat ?? leaseMsOf(lease), () => void this.#silent(id, lease));
    this.#watched.set(id, { lease, heartbeat, alarm, progress, until });
  }

  #forget(id: string): void {
    this.#watched.get(id)?.alarm.cancel();
    this.#watched.delete(id);
  }

  #progressOf(id: string, lease: string): unknown {
    const watched = this.#watched.get(id);
    return watched?.lease === lease ? watched.progress : undefined;
  }

  /** The time a worker may be silent is over. */
  async #silent(id: string, lease: string): Promise<void> {
    const watched = this.#watched.get(id), { core } = this.#engine;
    if (watched?.lease !== lease) return;
    const { heartbeat, progress } = watched;
    if (heartbeat === undefined) return this.#forget(id);
    try {
      const job = await this.#find(id, lease);
      // A process that has heard of the worker since watches it.
      if (job === undefined || job.until !== this.#watched.get(id)?.until) {
        if (this.#watched.get(id) === watched) this.#forget(id);
        return;
      }
      const { execId, ...about } = attemptOf(id);
      await this.#engine.submit(answerOf(execId, "fail", {
        ...about,
        error: `no sign of life for ${heartbeat} ms`,
        retryable: true,
        reason: "heartbeat_timeout",
        ...(progress === undefined ? {} : { progress }),
      }));
      this.#forget(id);
    } catch (error) {
      core.logger.log("warn", "a silent worker could not be given up, trying again", {
        job: id,
        error: asError(error).message,
      });
      if (this.#watched.get(id) !== watched || this.#stop.signal.aborted) return;
      const alarm = core.clock.schedule(AGAIN_MS, () => void this.#silent(id, lease));
      this.#watched.set(id, { ...watched, alarm });
    }
  }
}

/** Tells a lease from others of the job. */
function leaseOf({ worker, deliveries }: LeasedJob, leaseMs: number): string {
  return `${deliveries}.${leaseMs}.${worker}`;
}

/** For how long a lease was asked for, ms. */
function leaseMsOf(lease: string): number {
  const [, ms] = /^\d{1,9}\.(\d{1,9})\../.exec(lease) ?? [];
  if (ms !== undefined) return Number(ms);
  throw new MailerError("invalid_argument", `${JSON.stringify(lease.slice(0, 200))} is no lease`, {
    hint: "it came with the job",
  });
}

/** The attempt that a job is about. */
function attemptOf(id: string): {
  readonly execId: string;
  readonly key: string;
  readonly generation: number;
  readonly attempt: number;
} {
  const [, execId, key, generation, attempt] = JOB_ID.exec(id) ?? [];
  if (execId !== undefined) {
    return { execId, key: key!, generation: Number(generation), attempt: Number(attempt) };
  }
  throw new MailerError("invalid_argument", `${JSON.stringify(id.slice(0, 300))} is no id of a job`, {
    hint: "it came with the job",
  });
}
