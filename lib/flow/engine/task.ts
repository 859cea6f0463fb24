/**
 * What a worker's code sees of a job, and how it answers.
 *
 * W1 Transitions of an execution happen exactly once; a handler may be run more than once for one attempt (a crash, a lease that ran
 *    out). What it does outside has to be repeatable: `idempotencyKey` is the same for all attempts of one task.
 *
 * @module
 */
import { asError, MailerError } from "../../errors.ts";
import type { JobBody, JobContext, Usage } from "../fold/mod.ts";

/** One attempt of a task, as its handler sees it. */
export interface Job {
  /** Id of the execution. */
  readonly execId: string;
  /** Name of its flow. */
  readonly flow: string;
  /** Version of its flow. */
  readonly flowHash: string;
  /** The node. */
  readonly node: string;
  /** Kind of work. */
  readonly kind: string;
  /** Id of the node, or `node#index` for an item of a map. */
  readonly key: string;
  /** Position of the item, for a map. */
  readonly index?: number;
  /** One for each visit of the node. */
  readonly generation: number;
  /** Number of the attempt, from 1 on. */
  readonly attempt: number;
  /** How often this attempt was handed out, from 1 on. */
  readonly deliveries: number;
  /** The same for all attempts of this task, and for no other task. */
  readonly idempotencyKey: string;
  /** Input, channels, results and the rest. */
  readonly context: JobContext;
  /** The node's own. */
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  /** Settings of a built-in kind, worked out. */
  readonly with: Readonly<Record<string, unknown>> | undefined;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /**
   * A sign of life, for tasks with a heartbeat; with details they are what the next attempt finds as `context.progress` where
   * this one is given up.
   */
  heartbeat(details?: unknown): void;
}

/** Does jobs of a kind. Gives the output of the task (an object, or nothing), or what {@link done} made. */
export type Handler = (job: Job) => unknown;

/** What a task has led to, besides its output. */
export interface TaskResult {
  /** Output of the task: an object. */
  readonly output?: unknown;
  /** What is written to channels, by name. */
  readonly writes?: Readonly<Record<string, unknown>>;
  /** The next node, where the task may choose. */
  readonly next?: string;
  /** Amounts to add, by counter. */
  readonly usage?: Usage;
}

/** Made by {@link done}. */
export class Done {
  /** Made by {@link done}. */
  constructor(
    /** What it led to. */
    readonly result: TaskResult,
  ) {}
}

/** The answer of a handler that says more than an output. */
export function done(result: TaskResult): Done {
  return new Done(result);
}

/** An error after which a task is not tried again. */
export class PermanentError extends MailerError {
  /** Its code is `permanent`; the message says why it cannot be done. */
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super("permanent", message, options);
  }
}

/** The error of a job that nobody waits for any more: reason of {@link Job.signal}. */
export class CancelledError extends MailerError {
  /** Its code is `cancelled`. */
  constructor(message: string) {
    super("cancelled", message);
  }
}

/** Thrown by {@link interrupt}. */
export class Interrupted extends Error {
  /** Thrown by {@link interrupt}. */
  constructor(
    /** What is asked. */
    readonly payload: unknown,
  ) {
    super("interrupted");
  }
}

/** Has the task wait for a person: it goes on, as a new attempt, when somebody resumes it. */
export function interrupt(payload?: unknown): never {
  throw new Interrupted(payload ?? null);
}

const USAGE = Symbol("usage");

/** Adds amounts to an error (or to what {@link interrupt} throws): they count although the attempt has failed. */
export function withUsage(thrown: unknown, usage: Usage): Error {
  return Object.assign(asError(thrown), { [USAGE]: usage });
}

/** Amounts that an error carries. */
export function usageOf(thrown: unknown): Usage | undefined {
  return typeof thrown === "object" && thrown !== null
    ? (thrown as { readonly [USAGE]?: Usage })[USAGE]
    : undefined;
}

/** Whether the attempt that ended with this error is the last one. */
export function isPermanent(thrown: unknown): boolean {
  for (let at = thrown; at instanceof Error; at = at.cause) if (at instanceof PermanentError) return true;
  return false;
}

/** What a handler is handed. */
export function jobOf(
  body: JobBody,
  more: Pick<Job, "deliveries" | "signal" | "heartbeat">,
): Job {
  const { exec_id, flow, flow_hash, node, kind, key, index, generation, attempt, idempotency_key } = body;
  return {
    execId: exec_id,
    flow,
    flowHash: flow_hash,
    node,
    kind,
    key,
    ...(index === undefined ? {} : { index }),
    generation,
    attempt,
    idempotencyKey: idempotency_key,
    context: body.context,
    meta: body.meta,
    with: body.with,
    ...more,
  };
}
