/**
 * When an attempt that failed is followed by another.
 *
 * The wait is worked out once and recorded with its timer, so folding a history again never moves it. Its random part
 * comes from the identity of the attempt.
 *
 * @module
 */
import type { RetryPolicy } from "../definition/types.ts";
import type { Task } from "./state.ts";

/** How an attempt failed. */
export interface FailureName {
  readonly reason: string;
  readonly name?: string;
}

/**
 * When the next attempt begins, ms; `undefined` where there is none.
 *
 * @param execId Gives the random part of the wait, with the attempt.
 */
export function retryAt(
  policy: RetryPolicy | undefined,
  task: Pick<Task, "key" | "generation" | "attempt" | "since">,
  failure: FailureName,
  execId: string,
  now: number,
): number | undefined {
  if (policy === undefined || task.attempt >= policy.maxAttempts) return undefined;
  const { except, maxElapsed } = policy;
  if (except.includes(failure.reason) || (failure.name !== undefined && except.includes(failure.name))) {
    return undefined;
  }
  const share = fraction(`${execId} ${task.key} ${task.generation} ${task.attempt}`);
  const at = now + waitBefore(policy, task.attempt) * (1 - policy.jitter * share);
  return maxElapsed !== undefined && at - task.since > maxElapsed ? undefined : Math.round(at);
}

/** The wait before retry `n` (from 1 on) without its random part, ms. */
export function waitBefore({ backoff, delay, maxDelay }: RetryPolicy, n: number): number {
  const factor = backoff === "fixed" ? 1 : backoff === "linear" ? n : 2 ** (n - 1);
  return Math.min(delay * factor, maxDelay);
}

/** A number from 0 to below 1 out of a text; alike texts give unlike numbers. */
function fraction(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  // The last characters have only reached the lower bits (the finish of MurmurHash3 spreads them).
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
