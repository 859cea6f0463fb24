/**
 * Workers of this process: they take jobs from the store, or straight from the decision that asks for them, and answer.
 *
 * J1 A job is handed to a handler only by whoever holds its lease, and its lease is prolonged as long as the handler works.
 * J2 Each attempt gets one answer. Where none can be given the lease runs out, and the job is handed out again.
 * J3 A job nobody waits for any more is told so by its signal, and gives no answer.
 * J4 What is handed out again and again without an answer is given up: the attempt fails as `delivery_failed`.
 *
 * @module
 */
import type { Alarm } from "../../clock.ts";
import { asError, codeOf, MailerError } from "../../errors.ts";
import { parseExact, stringifyJson } from "../../json.ts";
import type { Command, CommandData, JobBody, JobEffect } from "../fold/mod.ts";
import type { LeasedJob, NewJob } from "../store/port.ts";
import { answerOf, type AnswerType, limitsOf, openJob } from "./attempt.ts";
import type { QueuedJob } from "./commit_of.ts";
import type { EngineCore, JobTaker } from "./core.ts";
import type { Execution } from "./executions.ts";
import {
  CancelledError,
  Done,
  type Handler,
  Interrupted,
  isPermanent,
  jobOf,
  type TaskResult,
  usageOf,
} from "./task.ts";

/** Settings of a worker. */
export interface WorkerOptions {
  /** Most jobs at once. Default 4. */
  readonly concurrency?: number;
  /** For how long a job is this worker's, without a sign of life, ms. Default 30,000. */
  readonly leaseMs?: number;
}

/** What workers need of their engine. */
export interface JobDesk {
  /** An execution as it is now. */
  look(execId: string): Promise<Execution | undefined>;
  /** Hands an answer in; resolves when it is durable. */
  answer(command: Command): Promise<void>;
}

const CONCURRENCY = 4;
const LEASE_MS = 30_000;
/** Wait before an answer that could not be handed in is handed in again, ms. */
const ANSWER_AGAIN_MS = 500;

interface Kind {
  readonly name: string;
  readonly handler: Handler;
  readonly concurrency: number;
  readonly leaseMs: number;
  /** Jobs under way, and workers kept for jobs that are being queued. */
  active: number;
  /** Whether there may be jobs in the queue. */
  backlog: boolean;
  leasing: boolean;
  close(): void;
}

interface Running {
  readonly job: LeasedJob;
  /** Tells the handler to stop. */
  readonly abort: AbortController;
  /** Aborted when no answer is to be given: the job is nobody's, or another's. */
  readonly gone: AbortController;
}

function leave({ abort, gone }: Running, why: string): void {
  const reason = new CancelledError(why);
  gone.abort(reason);
  abort.abort(reason);
}

/** The workers of a process. */
export class LocalWorkers implements JobTaker {
  readonly #core: EngineCore;
  readonly #desk: JobDesk;
  /** Names this process among all workers. */
  readonly #name: string;
  readonly #kinds = new Map<string, Kind>();
  readonly #running = new Map<string, Running>();
  readonly #stop = new AbortController();
  #idle: (() => void) | undefined;

  constructor(core: EngineCore, desk: JobDesk, name: string) {
    this.#core = core;
    this.#desk = desk;
    this.#name = name;
  }

  /** Does jobs of a kind from now on. */
  add(name: string, handler: Handler, options: WorkerOptions = {}): void {
    const { concurrency = CONCURRENCY, leaseMs = LEASE_MS } = options;
    if (!(Number.isInteger(concurrency) && concurrency >= 1) || !(leaseMs >= 100)) {
      const text = `worker "${name}": concurrency is a whole number from 1, leaseMs at least 100`;
      throw new MailerError("invalid_option", text);
    }
    if (this.#kinds.has(name)) {
      throw new MailerError("duplicate_worker", `there is already a worker of the kind "${name}"`);
    }
    const stop = new AbortController();
    const kind: Kind = {
      name,
      handler,
      concurrency,
      leaseMs,
      active: 0,
      backlog: true,
      leasing: false,
      close: () => stop.abort(),
    };
    this.#kinds.set(name, kind);
    void this.#watch(kind, AbortSignal.any([stop.signal, this.#stop.signal]));
  }

  reserve({ kind: name, concurrency, rate }: JobEffect): NewJob["lease"] {
    const kind = this.#kinds.get(name);
    // What has limits, or others in front of it, goes through the queue.
    if (kind === undefined || concurrency !== undefined || rate !== undefined || kind.backlog) {
      return undefined;
    }
    if (kind.active >= kind.concurrency || this.#stop.signal.aborted) return undefined;
    kind.active++;
    return { worker: this.#name, leaseMs: kind.leaseMs };
  }

  unreserve(name: string): void {
    const kind = this.#kinds.get(name);
    if (kind !== undefined) this.#free(kind);
  }

  take(job: LeasedJob): void {
    // Both end by themselves, and throw nothing.
    const kind = this.#kinds.get(job.kind)!;
    if (this.#stop.signal.aborted) void this.#giveBack(kind, job);
    else void this.#run(kind, job);
  }

  /** A job that comes too late for this process is another's at once. */
  async #giveBack(kind: Kind, job: LeasedJob): Promise<void> {
    try {
      await this.#core.store.jobs.release(job, { counts: false });
    } catch (error) {
      this.#core.logger.log("warn", "a job could not be given back", {
        job: job.id,
        error: asError(error).message,
      });
    } finally {
      this.#free(kind);
    }
  }

  stop(jobId: string): void {
    const running = this.#running.get(jobId);
    if (running !== undefined) leave(running, "nobody waits for this job any more");
  }

  /** Takes no more jobs, and lets those under way come to their end. */
  async drain(): Promise<void> {
    this.#stop.abort(new MailerError("stopped", "the worker stops"));
    if (this.#running.size > 0) await new Promise<void>((resolve) => this.#idle = resolve);
  }

  /** Tells what is under way to stop. */
  abort(): void {
    for (const running of this.#running.values()) leave(running, "the worker stops");
  }

  /** Looks for jobs whenever there may be some. */
  async #watch(kind: Kind, signal: AbortSignal): Promise<void> {
    const watch = this.#core.store.watch([`jobs:${kind.name}`]);
    try {
      while (!signal.aborted) {
        await this.#lease(kind);
        await watch.next(signal).catch((reason) => {
          if (!signal.aborted) throw reason;
        });
        kind.backlog = true;
      }
    } finally {
      watch.close();
    }
  }

  async #lease(kind: Kind): Promise<void> {
    if (kind.leasing || !kind.backlog) return;
    kind.leasing = true;
    try {
      while (kind.backlog && !this.#stop.signal.aborted) {
        const max = kind.concurrency - kind.active;
        if (max <= 0) return;
        kind.active += max;
        kind.backlog = false; // who hears of jobs meanwhile says so again
        let jobs: readonly LeasedJob[] = [];
        try {
          const { name, leaseMs } = kind;
          jobs = await this.#core.store.jobs.lease({
            kind: name,
            max,
            worker: this.#name,
            leaseMs,
            limitsOf,
          });
        } catch (error) {
          this.#core.logger.log("warn", "jobs could not be taken, trying again", {
            kind: kind.name,
            error: asError(error).message,
          });
          await this.#core.pause(1000, this.#stop.signal);
          kind.backlog = true;
        }
        kind.active -= max - jobs.length;
        if (jobs.length === max) kind.backlog = true;
        for (const job of jobs) this.take(job);
      }
    } finally {
      kind.leasing = false;
    }
  }

  #free(kind: Kind): void {
    kind.active--;
    if (kind.backlog) void this.#lease(kind);
  }

  async #run(kind: Kind, job: LeasedJob): Promise<void> {
    const running: Running = { job, abort: new AbortController(), gone: new AbortController() };
    this.#running.set(job.id, running);
    try {
      await this.#attempt(kind, running);
    } catch (error) {
      // No answer could be given: the lease runs out, and the job is handed out again.
      this.#core.logger.log("error", "a job has no answer", { job: job.id, error: asError(error).message });
    } finally {
      if (this.#running.get(job.id) === running) this.#running.delete(job.id);
      this.#free(kind);
      if (this.#running.size === 0) this.#idle?.();
    }
  }

  async #attempt(kind: Kind, running: Running): Promise<void> {
    const { job } = running, keeping = this.#keepLease(kind, running);
    try {
      const opened = await openJob(this.#core, (execId) => this.#desk.look(execId), job);
      let answer: Command;
      if (opened.kind === "answer") answer = opened.command;
      else {
        this.#core.counters.jobs++;
        const given = await this.#handled(kind, running, opened.queued, opened.body);
        if (given === undefined) return;
        answer = given;
      }
      if (!running.gone.signal.aborted) await this.#handIn(running, answer);
    } finally {
      keeping.cancel();
    }
  }

  /** @returns undefined where the job is nobody's, or another's: a handler that does not stop keeps no place occupied. */
  async #handled(
    kind: Kind,
    { job, abort, gone }: Running,
    { key, generation, attempt, heartbeat, cacheKey }: QueuedJob,
    body: JobBody,
  ): Promise<Command | undefined> {
    const make = <T extends AnswerType>(type: T, data: CommandData[T]): Command =>
      answerOf(job.execId, type, data);
    const about = { key, generation, attempt }, { clock } = this.#core;
    let progress: unknown, silent: Alarm | undefined, isOver = false;
    const overdue = Promise.withResolvers<Command | undefined>();
    gone.signal.addEventListener("abort", () => overdue.resolve(undefined));
    const alive = (): void => {
      silent?.cancel();
      if (heartbeat === undefined || isOver) return;
      silent = clock.schedule(heartbeat, () => {
        abort.abort(new CancelledError(`no sign of life for ${heartbeat} ms`));
        const error = `no sign of life for ${heartbeat} ms`,
          more = progress === undefined ? {} : { progress };
        overdue.resolve(
          make("fail", { ...about, error, retryable: true, reason: "heartbeat_timeout", ...more }),
        );
      });
    };
    alive();
    const handle = async (): Promise<Command> => {
      try {
        const result = resultOf(
          await kind.handler(jobOf(body, {
            deliveries: job.deliveries,
            signal: abort.signal,
            heartbeat: (details) => {
              if (details !== undefined) progress = plain(details);
              alive();
            },
          })),
        );
        return make("complete", {
          ...about,
          ...plain(result),
          ...(cacheKey === undefined ? {} : { cache_key: cacheKey }),
        });
      } catch (thrown) {
        return failure(thrown, progress, about, make);
      }
    };
    try {
      return await Promise.race([handle(), overdue.promise]);
    } finally {
      isOver = true;
      silent?.cancel();
    }
  }

  /** Hands an answer in, again and again while the lease holds. */
  async #handIn(running: Running, answer: Command): Promise<void> {
    for (;;) {
      try {
        return await this.#desk.answer(answer);
      } catch (error) {
        this.#core.logger.log("warn", "an answer could not be handed in, trying again", {
          job: running.job.id,
          error: asError(error).message,
        });
        await this.#core.pause(ANSWER_AGAIN_MS, running.gone.signal);
        if (running.gone.signal.aborted) return;
      }
    }
  }

  /** Prolongs the lease of a job until cancelled. One that is lost stops the job. */
  #keepLease({ leaseMs }: Kind, running: Running): Alarm {
    const { clock, store } = this.#core;
    let isOver = false, held = running.job, alarm: Alarm;
    const prolong = async (): Promise<void> => {
      try {
        const [extended] = await store.jobs.extend([held], leaseMs);
        if (isOver) return;
        if (extended === undefined) {
          leave(running, "the job was handed to another worker");
          return;
        }
        held = extended;
      } catch (error) {
        this.#core.logger.log("warn", "a lease could not be prolonged", {
          job: held.id,
          error: asError(error).message,
        });
      }
      if (!isOver) alarm = clock.schedule(leaseMs / 3, () => void prolong());
    };
    alarm = clock.schedule(leaseMs / 3, () => void prolong());
    return {
      cancel: () => {
        isOver = true;
        alarm.cancel();
      },
    };
  }
}

function resultOf(returned: unknown): TaskResult {
  if (returned instanceof Done) return returned.result;
  if (typeof returned === "function" || typeof returned === "symbol") {
    throw new Unwritable(`the worker gave a ${typeof returned}`, undefined);
  }
  return returned === undefined ? {} : { output: returned };
}

/** A value as its JSON has it: what a handler does with its own afterwards changes nothing. */
function plain<T>(value: T): T {
  try {
    return parseExact(stringifyJson(value)) as T;
  } catch (cause) {
    throw new Unwritable(`what the worker gave cannot be written as JSON: ${asError(cause).message}`, cause);
  }
}

/** What a worker gave has no JSON. */
class Unwritable extends MailerError {
  constructor(message: string, cause: unknown) {
    super("invalid_output", message, { cause });
  }
}

function failure(
  thrown: unknown,
  progress: unknown,
  about: { readonly key: string; readonly generation: number; readonly attempt: number },
  make: <T extends "fail" | "interrupt">(type: T, data: CommandData[T]) => Command,
): Command {
  if (thrown instanceof Unwritable) {
    return make("fail", { ...about, error: thrown.message, retryable: false, reason: "invalid_output" });
  }
  const usage = usageOf(thrown), used = usage === undefined ? {} : { usage };
  if (thrown instanceof Interrupted) {
    try {
      return make("interrupt", { ...about, payload: plain(thrown.payload), ...used });
    } catch (unwritable) {
      return failure(unwritable, progress, about, make);
    }
  }
  const error = asError(thrown), code = codeOf(thrown);
  return make("fail", {
    ...about,
    error: error.message,
    retryable: !isPermanent(thrown),
    name: code === "error" || code === "permanent" ? error.name : code,
    ...used,
    ...(progress === undefined ? {} : { progress }),
  });
}
