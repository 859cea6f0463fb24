/**
 * A worker that gets its jobs over HTTP, from another process.
 *
 * K1 It asks for as many jobs as it has room for, and no more: what others could do is not kept from them.
 * K2 A lease is prolonged as long as the handler works, by a call that is answered as soon as the job is not wanted any more: so a
 *    handler hears of a cancellation at once.
 * K3 Each job gets one answer. One that cannot be handed in is handed in again until it is, or the job is another's.
 * K4 Draining asks for nothing more, and lets the jobs under way come to their end.
 *
 * @module
 */
import { type Clock, delay, systemClock } from "../../clock.ts";
import { asError, codeOf, MailerError } from "../../errors.ts";
import { parseJson, stringifyJson } from "../../json.ts";
import { type Logger, silentLogger } from "../../log.ts";
import {
  CancelledError,
  Done,
  type Handler,
  Interrupted,
  isPermanent,
  jobOf,
  usageOf,
} from "../engine/task.ts";
import type { Heartbeat, Receipt, RemoteJob } from "../engine/remote.ts";

/** Settings of a worker. */
export interface HttpWorkerOptions {
  /** Where flows are served: `http://127.0.0.1:8088`. */
  readonly url: string;
  /** Token of the server. */
  readonly token?: string;
  /** What does the jobs, by kind. */
  readonly handlers: Readonly<Record<string, Handler>>;
  /** Names it among all workers. Default: a random one. */
  readonly name?: string;
  /** Most jobs at once. Default 4. */
  readonly concurrency?: number;
  /** For how long a job is this worker's without a sign of life, ms. Default 30,000. */
  readonly leaseMs?: number;
  /** How long a call waits for jobs, at most 60,000 ms. Default 20,000. */
  readonly waitMs?: number;
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Default: nowhere. */
  readonly logger?: Logger;
}

const CONCURRENCY = 4;
/** Most jobs that a server hands out at once. */
const MOST_AT_ONCE = 100;
const LEASE_MS = 30_000;
const WAIT_MS = 20_000;
/** Longest wait a server allows, ms. */
const LONGEST_WAIT = 60_000;
/** First and longest wait before a call is made again, ms. */
const FIRST_PAUSE = 100, LONGEST_PAUSE = 5000;

interface Running {
  readonly job: RemoteJob;
  /** Tells the handler to stop. */
  readonly abort: AbortController;
  /** Aborted when the job is over for this worker, however. */
  readonly over: AbortController;
}

/** A worker over HTTP. */
export class HttpWorker implements AsyncDisposable {
  readonly #options: HttpWorkerOptions;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #stop = new AbortController();
  readonly #running = new Map<Running, Promise<void>>();
  #free: (() => void) | undefined;
  #asking: Promise<void> | undefined;

  /** Opens nothing. */
  constructor(options: HttpWorkerOptions) {
    if (Object.keys(options.handlers).length === 0) {
      throw new MailerError("invalid_option", "a worker has handlers for one kind of job at least");
    }
    this.#options = options;
    // deno-lint-ignore mailer/injected-time -- tells it from all workers of all processes; nothing else depends on it
    this.#name = options.name ?? `worker-${crypto.randomUUID()}`;
    this.#clock = options.clock ?? systemClock;
    this.#logger = options.logger ?? silentLogger;
  }

  /** Jobs under way. */
  get active(): number {
    return this.#running.size;
  }

  /** Begins to ask for jobs. */
  start(): this {
    this.#asking ??= this.#ask();
    return this;
  }

  /** Asks for nothing more, and resolves when the jobs under way have their answers. */
  async drain(): Promise<void> {
    this.#stop.abort(new MailerError("stopped", "the worker stops"));
    await this.#asking;
    await Promise.all(this.#running.values());
  }

  /** Lets go of everything at once: the jobs are handed out again when their leases are over. */
  async kill(): Promise<void> {
    this.#stop.abort(new MailerError("stopped", "the worker stops"));
    for (const running of this.#running.keys()) leave(running, "the worker stops");
    await this.drain();
  }

  /** The same as {@link HttpWorker.drain}. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.drain();
  }

  async #ask(): Promise<void> {
    const { handlers, concurrency = CONCURRENCY, leaseMs = LEASE_MS, waitMs = WAIT_MS } = this.#options;
    const kinds = Object.keys(handlers), { signal } = this.#stop;
    for (let pause = FIRST_PAUSE; !signal.aborted;) {
      const max = concurrency - this.#running.size;
      if (max <= 0) {
        await new Promise<void>((resolve) => {
          this.#free = resolve;
          signal.addEventListener("abort", () => resolve(), { once: true });
        });
        continue;
      }
      try {
        const request = {
          kinds,
          max: Math.min(max, MOST_AT_ONCE),
          worker: this.#name,
          leaseMs,
          waitMs: Math.min(waitMs, LONGEST_WAIT),
        };
        const { jobs } = await this.#post("/v1/jobs/lease", request, signal) as {
          readonly jobs: RemoteJob[];
        };
        for (const job of jobs) this.#begin(job);
        pause = FIRST_PAUSE;
      } catch (error) {
        if (signal.aborted) return;
        this.#logger.log("warn", "no jobs could be had, trying again", { error: asError(error).message });
        await this.#pause(pause, signal);
        pause = Math.min(2 * pause, LONGEST_PAUSE);
      }
    }
  }

  #begin(job: RemoteJob): void {
    const running: Running = { job, abort: new AbortController(), over: new AbortController() };
    const done = this.#run(running).finally(() => {
      running.over.abort();
      this.#running.delete(running);
      this.#free?.();
    });
    this.#running.set(running, done);
  }

  async #run(running: Running): Promise<void> {
    const keeping = this.#keep(running), beats = new Beats((progress) => this.#tell(running, progress));
    try {
      const [action, answer] = await this.#handled(running, beats);
      await beats.end();
      if (!running.over.signal.aborted) await this.#handIn(running, action, answer);
    } finally {
      running.over.abort();
      await keeping;
    }
  }

  async #handled({ job, abort }: Running, beats: Beats): Promise<readonly [action: string, answer: object]> {
    const { lease } = job;
    try {
      const returned = await this.#options.handlers[job.kind]!(jobOf(job, {
        deliveries: job.deliveries,
        signal: abort.signal,
        heartbeat: (details) => beats.beat(details),
      }));
      if (returned instanceof Done) return ["complete", { lease, ...returned.result }];
      return ["complete", { lease, ...(returned === undefined ? {} : { output: returned }) }];
    } catch (thrown) {
      const usage = usageOf(thrown), used = usage === undefined ? {} : { usage };
      if (thrown instanceof Interrupted) return ["interrupt", { lease, payload: thrown.payload, ...used }];
      const error = asError(thrown), code = codeOf(thrown);
      const name = code === "error" || code === "permanent" ? error.name : code;
      return ["fail", { lease, error: error.message, retryable: !isPermanent(thrown), name, ...used }];
    }
  }

  /** Prolongs the lease until the job is over, and hears whether it is wanted. */
  async #keep(running: Running): Promise<void> {
    const { job, over } = running, waitMs = Math.min(Math.floor(job.lease_ms / 3), LONGEST_WAIT);
    for (let pause = FIRST_PAUSE; !over.signal.aborted;) {
      try {
        const body = { lease: job.lease, keep: true, waitMs }, begun = this.#clock.monotonic();
        const { wanted, reason } = await this.#about(job, "heartbeat", body, over.signal) as Heartbeat;
        if (!wanted) return leave(running, reason ?? "nobody waits for this job any more");
        pause = FIRST_PAUSE;
        // A server where many calls wait answers at once.
        const left = waitMs - (this.#clock.monotonic() - begun);
        if (left > waitMs / 2) await this.#pause(left, over.signal);
      } catch (error) {
        if (over.signal.aborted) return;
        this.#logger.log("warn", "a lease could not be prolonged, trying again", {
          job: job.id,
          error: asError(error).message,
        });
        await this.#pause(Math.min(pause, waitMs), over.signal);
        pause = Math.min(2 * pause, LONGEST_PAUSE);
      }
    }
  }

  /** Tells how far a job has got. */
  async #tell(running: Running, progress: unknown): Promise<void> {
    const { job: { lease }, job, over } = running;
    try {
      const body = { lease, ...(progress === undefined ? {} : { progress }) };
      const { wanted, reason } = await this.#about(job, "heartbeat", body, over.signal) as Heartbeat;
      if (!wanted) leave(running, reason ?? "nobody waits for this job any more");
    } catch (error) {
      if (over.signal.aborted) return;
      this.#logger.log("warn", "a heartbeat did not come through", {
        job: job.id,
        error: asError(error).message,
      });
    }
  }

  async #handIn(running: Running, action: string, answer: object): Promise<void> {
    const { job, over } = running;
    for (let pause = FIRST_PAUSE;;) {
      try {
        const { accepted, reason } = await this.#about(job, action, answer, over.signal) as Receipt;
        if (!accepted) this.#logger.log("info", "an answer came too late", { job: job.id, reason });
        return;
      } catch (error) {
        if (over.signal.aborted) return;
        if (error instanceof CallError && error.isLasting) {
          // What cannot be an answer would be refused again and again: then that is the answer.
          this.#logger.log("error", "an answer was refused", { job: job.id, error: error.message });
          if (action === "fail") return;
          const text = `the answer was refused: ${error.message}`;
          return await this.#handIn(running, "fail", { lease: job.lease, error: text, retryable: false });
        }
        this.#logger.log("warn", "an answer could not be handed in, trying again", {
          job: job.id,
          error: asError(error).message,
        });
        await this.#pause(pause, over.signal);
        if (over.signal.aborted) return;
        pause = Math.min(2 * pause, LONGEST_PAUSE);
      }
    }
  }

  #about(job: RemoteJob, action: string, body: object, signal: AbortSignal): Promise<unknown> {
    return this.#post(`/v1/jobs/${encodeURIComponent(job.id)}/${action}`, body, signal);
  }

  async #post(path: string, body: object, signal: AbortSignal): Promise<unknown> {
    const { url, token } = this.#options;
    const response = await fetch(new URL(path, url), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: stringifyJson(body),
      signal,
    });
    const text = await response.text();
    if (response.ok) return parseJson(text);
    throw new CallError(response.status, text);
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    await delay(this.#clock, ms, signal).catch((reason) => {
      if (!signal.aborted) throw reason;
    });
  }
}

/** A call that the server refused. */
class CallError extends MailerError {
  /** Whether the same call would be refused again. */
  readonly isLasting: boolean;

  constructor(status: number, text: string) {
    super("call_failed", `the server answered ${status}: ${text.slice(0, 500).trim()}`);
    this.isLasting = status === 400 || status === 413;
  }
}

/** Signs of life, one call at a time: of those that come meanwhile the last one counts. */
class Beats {
  readonly #send: (progress: unknown) => Promise<void>;
  #next: { readonly progress: unknown } | undefined;
  #sending: Promise<void> | undefined;

  constructor(send: (progress: unknown) => Promise<void>) {
    this.#send = send;
  }

  beat(progress: unknown): void {
    this.#next = { progress: progress ?? this.#next?.progress };
    this.#sending ??= this.#run();
  }

  async end(): Promise<void> {
    await this.#sending;
  }

  async #run(): Promise<void> {
    for (let next = this.#next; next !== undefined; next = this.#next) {
      this.#next = undefined;
      await this.#send(next.progress);
    }
    this.#sending = undefined;
  }
}

function leave({ abort, over }: Running, why: string): void {
  const reason = new CancelledError(why);
  over.abort(reason);
  abort.abort(reason);
}
