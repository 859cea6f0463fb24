/**
 * Ids that are worked out, so that working them out again gives the same.
 *
 * @module
 */
import { createHash } from "node:crypto";

/** Longest id of an execution. */
export const MAX_EXECUTION_ID = 128;

/** One attempt of a task. */
export interface AttemptRef {
  /** Id of the node, or `node#index`. */
  readonly key: string;
  /** One for each visit, resumption and fork. */
  readonly generation: number;
  /** From 1 on. */
  readonly attempt: number;
}

/** Id of the job of an attempt. */
export function jobId(execId: string, { key, generation, attempt }: AttemptRef): string {
  return `job.${execId}.${key}.${generation}.${attempt}`;
}

/** Id of a worker's answer. */
export function answerId(execId: string, { key, generation, attempt }: AttemptRef): string {
  return `w.${execId}.${key}.${generation}.${attempt}`;
}

/** What a receiver tells repetitions of a task by: the same for all attempts of a generation. */
export function idempotencyKey(execId: string, { key, generation }: Omit<AttemptRef, "attempt">): string {
  return `${execId}.${key}.${generation}`;
}

/** Id of the timer with a number. */
export function timerId(n: number): string {
  return `t${n}`;
}

/** Id of the child with a number. */
export function childId(parent: string, n: number): string {
  const suffix = `-c${n}`;
  if (parent.length + suffix.length <= MAX_EXECUTION_ID) return parent + suffix;
  return createHash("sha256").update(parent).digest("hex").slice(0, 24) + suffix;
}

/** Key of an item of a map. */
export function itemKey(node: string, index: number): string {
  return `${node}#${index}`;
}
