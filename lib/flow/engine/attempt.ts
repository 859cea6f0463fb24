/**
 * What is the same for jobs of workers in this process and elsewhere: their limits, and what there is to do before a worker sees one.
 *
 * A1 A result that is kept answers a job without a worker.
 * A2 What was handed out again and again without an answer is given up: the attempt fails as `delivery_failed`.
 * A3 A worker gets what its execution is now, never what it was.
 *
 * @module
 */
import { asError, codeOf } from "../../errors.ts";
import { parseJson } from "../../json.ts";
import {
  answerId,
  type AttemptRef,
  type Command,
  type CommandData,
  type JobBody,
  jobBody,
} from "../fold/mod.ts";
import type { JobLimit, LeasedJob } from "../store/port.ts";
import type { QueuedJob } from "./commit_of.ts";
import type { EngineCore } from "./core.ts";
import type { Execution } from "./executions.ts";
import { isLasting } from "./quarantine.ts";

/** Deliveries of an attempt until it is given up. */
export const DELIVERIES = 5;

/** How long the job of an execution that cannot be read is left alone, ms. */
const PARKED_MS = 30_000;

/** Answers of a worker. */
export type AnswerType = "complete" | "fail" | "interrupt";

/** What has become of a job that was handed out. */
export type Opened =
  /** A worker is to do this. */
  | { readonly kind: "work"; readonly body: JobBody; readonly queued: QueuedJob }
  /** There is an answer already. */
  | { readonly kind: "answer"; readonly command: Command };

/** A worker's answer as a command. */
export function answerOf<T extends AnswerType>(execId: string, type: T, data: CommandData[T]): Command {
  return { id: answerId(execId, data), type, exec_id: execId, data } as Command;
}

/** Limits of a job, by its text. */
export function limitsOf(text: string): readonly JobLimit[] {
  const { flow = "", node, concurrency, rate } = JSON.parse(text) as QueuedJob, limits: JobLimit[] = [];
  if (concurrency !== undefined) {
    const { key, max } = concurrency;
    limits.push({ name: JSON.stringify(["at once", flow, node, key]), max });
  }
  if (rate !== undefined) {
    const { key = null, max, per } = rate;
    limits.push({ name: JSON.stringify(["in a time", flow, node, key]), max, per });
  }
  return limits;
}

/**
 * Looks what there is to do with a job that was handed out.
 *
 * @param look An execution as this process knows it.
 */
export async function openJob(
  core: EngineCore,
  look: (execId: string) => Promise<Execution | undefined>,
  job: LeasedJob,
): Promise<Opened> {
  const { counters, store, executions } = core, queued = parseJson(job.text) as QueuedJob;
  const { key, generation, attempt, cacheKey } = queued, about = { key, generation, attempt };
  const answer = <T extends AnswerType>(type: T, data: CommandData[T]): Opened => ({
    kind: "answer",
    command: answerOf(job.execId, type, data),
  });
  const failed = (error: string, reason: "delivery_failed" | "expression_error" | "error"): Opened =>
    answer("fail", { ...about, error, retryable: false, reason });

  const kept = cacheKey === undefined ? undefined : await store.cache.get(cacheKey);
  if (kept !== undefined) {
    counters.cacheHits++;
    return answer("complete", { ...about, ...parseJson(kept) as object, cached: true });
  }
  if (job.deliveries > DELIVERIES) {
    const reason = `handed out ${job.deliveries - 1} times without an answer`;
    const text = JSON.stringify({ reason, deliveries: job.deliveries - 1, body: job.text });
    await store.deadLetters.add({ kind: "job", key: job.id, text });
    counters.deadLetters++;
    return failed(reason, "delivery_failed");
  }
  let body: JobBody | undefined;
  try {
    // What is remembered may be older than the job, where another process works on the execution.
    body = bodyOf(await look(job.execId), about) ?? bodyOf(await executions.read(job.execId), about);
  } catch (error) {
    if (isLasting(error)) await store.jobs.release(job, { counts: false, delayMs: PARKED_MS });
    if (codeOf(error) !== "expression_failed") throw error;
    return failed(asError(error).message, "expression_error");
  }
  // Nobody waits for it: the answer changes nothing, and takes the job out of its queue.
  return body === undefined ? failed("nobody waits for it", "error") : { kind: "work", body, queued };
}

/** What the worker of an attempt is handed; undefined where nobody waits for the attempt. */
function bodyOf(execution: Execution | undefined, attempt: AttemptRef): JobBody | undefined {
  return execution === undefined ? undefined : jobBody(execution.flow, execution.state, attempt);
}
