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
import { parseJson } from "../../json.ts";
import {
  answerId,
  type AttemptRef,
  type Command,
  type CommandData,
  type JobBody,
  jobBody,
  type JobEffect,
} from "../fold/mod.ts";
import type { LeasedJob, NewJob } from "../store/port.ts";
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
/** Deliveries of an attempt until it is given up. */
const DELIVERIES = 5;
/** How long a job waits that its limits keep back, ms: as long as nothing is known, twice as long each time. */
const BUSY_MS = 200;
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
  /** Jobs under way by node and value of their concurrency key. */
  readonly #holders = new Map<string, number>();
  /** When jobs were handed out lately, by node and value of their rate key. */
  readonly #starts = new Map<string, number[]>();
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
        let jobs: readonly LeasedJob[] = [];
        try {
          const { name, leaseMs } = kind;
          jobs = await this.#core.store.jobs.lease({ kind: name, max, worker: this.#name, leaseMs });
        } catch (error) {
          this.#core.logger.log("warn", "jobs could not be taken, trying again", {
            kind: kind.name,
            error: asError(error).message,
          });
          await this.#core.pause(1000, this.#stop.signal);
        }
        kind.active -= max - jobs.length;
        kind.backlog = jobs.length === max;
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
    const { job } = running, queued = parseJson(job.text) as QueuedJob;
    const keeping = this.#keepLease(kind, running);
    try {
      const answer = await this.#answerOf(kind, running, queued);
      if (answer !== undefined && !running.gone.signal.aborted) await this.#handIn(running, answer);
    } finally {
      keeping.cancel();
    }
  }

  /** @returns undefined where there is none to give. */
  async #answerOf(kind: Kind, running: Running, queued: QueuedJob): Promise<Command | undefined> {
    const { job } = running, { counters, store } = this.#core;
    const { key, generation, attempt } = queued, about = { key, generation, attempt };
    const make = <T extends "complete" | "fail" | "interrupt">(type: T, data: CommandData[T]): Command =>
      ({ id: answerId(job.execId, about), type, exec_id: job.execId, data }) as Command;
    const failed = (error: string, reason: "delivery_failed" | "expression_error" | "error"): Command =>
      make("fail", { ...about, error, retryable: false, reason });

    const kept = queued.cacheKey === undefined ? undefined : await store.cache.get(queued.cacheKey);
    if (kept !== undefined) {
      counters.cacheHits++;
      return make("complete", { ...about, ...parseJson(kept) as object, cached: true });
    }
    if (job.deliveries > DELIVERIES) {
      const reason = `handed out ${job.deliveries - 1} times without an answer`;
      await store.deadLetters.add({
        kind: "job",
        key: job.id,
        text: JSON.stringify({ reason, body: job.text }),
      });
      counters.deadLetters++;
      return failed(reason, "delivery_failed");
    }
    let body: JobBody | undefined;
    try {
      // What is remembered may be older than the job, where another process works on the execution.
      body = bodyOf(await this.#desk.look(job.execId), about) ??
        bodyOf(await this.#core.executions.read(job.execId), about);
    } catch (error) {
      if (codeOf(error) === "unknown_flow" || codeOf(error) === "history_damaged") throw error;
      return failed(asError(error).message, "expression_error");
    }
    // Nobody waits for it: the answer changes nothing, and takes the job out of its queue.
    if (body === undefined) return failed("nobody waits for it", "error");
    const limits = this.#enter(queued);
    if (limits === undefined) {
      const delayMs = BUSY_MS * 2 ** Math.min(job.deliveries - 1, 5);
      await store.jobs.release(job, { delayMs, counts: false });
      return undefined;
    }
    try {
      counters.jobs++;
      return await this.#handled(kind, running, queued, body, make);
    } finally {
      limits.leave();
    }
  }

  async #handled(
    kind: Kind,
    { job, abort }: Running,
    { key, generation, attempt, heartbeat, cacheKey }: QueuedJob,
    body: JobBody,
    make: <T extends "complete" | "fail" | "interrupt">(type: T, data: CommandData[T]) => Command,
  ): Promise<Command> {
    const about = { key, generation, attempt }, { clock } = this.#core;
    let progress: unknown, silent: Alarm | undefined;
    const overdue = Promise.withResolvers<Command>();
    const alive = (): void => {
      silent?.cancel();
      if (heartbeat === undefined) return;
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
              if (details !== undefined) progress = details;
              alive();
            },
          })),
        );
        return make("complete", {
          ...about,
          ...result,
          ...(cacheKey === undefined ? {} : { cache_key: cacheKey }),
        });
      } catch (thrown) {
        return failure(thrown, progress, about, make);
      }
    };
    try {
      return await Promise.race([handle(), overdue.promise]);
    } finally {
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

  /** Takes a place within the limits of a job's node; undefined where there is none. */
  #enter({ node, concurrency, rate }: QueuedJob): { leave(): void } | undefined {
    const now = this.#core.clock.monotonic();
    const rateKey = rate === undefined ? undefined : JSON.stringify([node, rate.key ?? null]);
    if (rate !== undefined) {
      const recent = (this.#starts.get(rateKey!) ?? []).filter((at) => at > now - rate.per);
      this.#starts.set(rateKey!, recent);
      if (recent.length >= rate.max) return undefined;
    }
    const slot = concurrency === undefined ? undefined : JSON.stringify([node, concurrency.key]);
    if (concurrency !== undefined) {
      const held = this.#holders.get(slot!) ?? 0;
      if (held >= concurrency.max) return undefined;
      this.#holders.set(slot!, held + 1);
    }
    if (rateKey !== undefined) this.#starts.get(rateKey)!.push(now);
    return {
      leave: () => {
        if (slot === undefined) return;
        const held = this.#holders.get(slot)! - 1;
        if (held === 0) this.#holders.delete(slot);
        else this.#holders.set(slot, held);
      },
    };
  }
}

/** What the handler of an attempt is handed; undefined where nobody waits for the attempt. */
function bodyOf(execution: Execution | undefined, attempt: AttemptRef): JobBody | undefined {
  return execution === undefined ? undefined : jobBody(execution.flow, execution.state, attempt);
}

function resultOf(returned: unknown): TaskResult {
  if (returned instanceof Done) return returned.result;
  return returned === undefined ? {} : { output: returned };
}

function failure(
  thrown: unknown,
  progress: unknown,
  about: { readonly key: string; readonly generation: number; readonly attempt: number },
  make: <T extends "fail" | "interrupt">(type: T, data: CommandData[T]) => Command,
): Command {
  const usage = usageOf(thrown), used = usage === undefined ? {} : { usage };
  if (thrown instanceof Interrupted) return make("interrupt", { ...about, payload: thrown.payload, ...used });
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
