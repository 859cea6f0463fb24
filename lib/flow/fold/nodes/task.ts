/**
 * Work for workers: of tasks, of branches that are tasks and of the items of maps.
 *
 * T1 An attempt is known by key, generation and number. An answer to any other than the live one changes nothing.
 * T2 What is checked of an answer, in this order: the output is an object; the writes fit their channels; `next` is
 *    declared; the output fits its schema. Only a misfit of the schema is retried.
 *
 * @module
 */
import type { TaskMapNode, TaskNode } from "../../definition/types.ts";
import { formatDuration } from "../../../duration.ts";
import { stringifyJson } from "../../../json.ts";
import type { CommandData } from "../commands.ts";
import { contextOf, type Item } from "../context.ts";
import type { Decision } from "../decision.ts";
import type { FailureReason, Usage } from "../events.ts";
import { type Fields, isObject, numbers } from "../fields.ts";
import type { AttemptRef } from "../ids.ts";
import { liveTask } from "../job.ts";
import { type Misfit, misfitOf } from "../output.ts";
import { retryAt } from "../retry.ts";
import { messageOf, overBudget, type Way } from "../routing.ts";
import { placeFailed, placeSucceeded } from "../settle.ts";
import type { Task } from "../state.ts";

/** A node that workers work for. */
export type WorkNode = TaskNode | TaskMapNode;

/** The node a task is of. */
export function workNode(decision: Decision, id: string): WorkNode {
  return decision.node(id).node as WorkNode;
}

/** What work is scheduled as. */
export type TaskPlace = Pick<Task, "key" | "owner" | "index">;

/** Schedules the first attempt. */
export function enterTask(decision: Decision, node: TaskNode): Way {
  schedule(decision, node, { key: node.id });
  return undefined;
}

/** Schedules the first attempt of a new generation; where the keys of its limits cannot be made, the execution has failed. */
export function schedule(
  decision: Decision,
  node: WorkNode,
  place: TaskPlace,
  more: { readonly item?: Item; readonly resume?: unknown } = {},
): void {
  let limits;
  try {
    limits = limitKeys(decision, node.id, more.item);
  } catch (error) {
    decision.fail("expression_error", messageOf(error), node.id);
    return;
  }
  attempt(decision, node, {
    ...place,
    ...limits,
    generation: decision.nextNumber(),
    attempt: 1,
    ...(more.resume === undefined ? {} : { resume: more.resume }),
  });
}

/** Schedules the attempt after the one a task has failed at. */
export function scheduleRetry(decision: Decision, task: Task): void {
  const { key, owner, index, generation, concurrencyKey, rateKey } = task;
  attempt(decision, workNode(decision, task.node), {
    key,
    generation,
    attempt: task.attempt + 1,
    ...(owner === undefined ? {} : { owner }),
    ...(index === undefined ? {} : { index }),
    ...(concurrencyKey === undefined ? {} : { concurrency_key: concurrencyKey }),
    ...(rateKey === undefined ? {} : { rate_key: rateKey }),
  });
}

interface Attempt extends TaskPlace {
  readonly generation: number;
  readonly attempt: number;
  readonly resume?: unknown;
  readonly concurrency_key?: string;
  readonly rate_key?: string;
}

function attempt(decision: Decision, { id, kind, timeout }: WorkNode, place: Attempt): void {
  decision.emit("NodeScheduled", { ...place, node: id, kind });
  if (timeout === undefined) return;
  const { key, generation } = place;
  decision.timer("timeout", decision.now + timeout, { key, node: id, generation, attempt: place.attempt });
}

function limitKeys(
  decision: Decision,
  node: string,
  item: Item | undefined,
): Pick<Attempt, "concurrency_key" | "rate_key"> {
  const { concurrencyKey, rateKey } = decision.node(node);
  if (concurrencyKey === undefined && rateKey === undefined) return {};
  const context = contextOf(decision.state, item);
  return {
    ...(concurrencyKey === undefined ? {} : { concurrency_key: keyText(concurrencyKey(context)) }),
    ...(rateKey === undefined ? {} : { rate_key: keyText(rateKey(context)) }),
  };
}

function keyText(value: unknown): string {
  return typeof value === "string" ? value : stringifyJson(value);
}

/** An attempt has succeeded, as its worker says. */
export function taskCompleted(decision: Decision, answer: CommandData["complete"]): Way {
  const task = liveTask(decision.state, answer);
  if (task === undefined) return undefined;
  const misfit = misfitOf(decision.flow, decision.state, task, answer);
  if (misfit !== undefined) return attemptFailed(decision, task, misfitFailure(misfit, answer.usage));
  const { usage, cached, cache_key } = answer;
  const output = fieldsOf(answer.output), writes = fieldsOf(answer.writes);
  const next = typeof answer.next === "string" && answer.next !== "" ? answer.next : undefined;
  decision.emit("NodeCompleted", {
    ...identity(task),
    attempt: task.attempt,
    ...present({ output, writes, next, cached, cache_key }),
    ...usageOf(usage),
  });
  if (overBudget(decision, task.node)) return undefined;
  return placeSucceeded(decision, task, next);
}

function fieldsOf(value: unknown): Fields | undefined {
  return isObject(value) ? value : undefined;
}

function misfitFailure({ message, retryable }: Misfit, usage: unknown): AttemptFailure {
  return { error: message, reason: "invalid_output", retryable, usage };
}

/** An attempt has failed, as its worker says. */
export function taskFailed(decision: Decision, answer: CommandData["fail"]): Way {
  const task = liveTask(decision.state, answer);
  if (task === undefined) return undefined;
  return attemptFailed(decision, task, { ...answer, reason: answer.reason ?? "error" });
}

/** The time of an attempt is up. */
export function taskTimedOut(decision: Decision, timer: AttemptRef, progress: unknown): Way {
  const task = liveTask(decision.state, timer);
  if (task === undefined) return undefined;
  const { timeout } = workNode(decision, task.node);
  return attemptFailed(decision, task, {
    error: `no answer within ${formatDuration(timeout ?? 0)}`,
    reason: "timeout",
    retryable: true,
    progress,
  });
}

/** The wait before a retry is over. */
export function retryDue(decision: Decision, { key, generation, attempt }: AttemptRef): void {
  const task = decision.state.tasks.get(key);
  if (task?.status !== "retrying" || task.generation !== generation || task.attempt !== attempt - 1) return;
  scheduleRetry(decision, task);
}

/** An attempt waits for a person. */
export function taskInterrupted(decision: Decision, answer: CommandData["interrupt"]): void {
  const task = liveTask(decision.state, answer);
  if (task === undefined) return;
  decision.emit("NodeInterrupted", {
    ...identity(task),
    ...(answer.payload === undefined ? {} : { payload: answer.payload }),
    ...usageOf(answer.usage),
  });
  overBudget(decision, task.node);
}

/** The answer to an interrupt. */
export function taskResumed(decision: Decision, task: Task, value: unknown, item: Item | undefined): void {
  const { key, owner, index } = task;
  const place = {
    key,
    ...(owner === undefined ? {} : { owner }),
    ...(index === undefined ? {} : { index }),
  };
  schedule(decision, workNode(decision, task.node), place, {
    resume: value ?? null,
    ...(item === undefined ? {} : { item }),
  });
}

interface AttemptFailure {
  readonly error: string;
  readonly reason: FailureReason;
  readonly retryable: boolean;
  readonly name?: string;
  readonly usage?: unknown;
  readonly progress?: unknown;
}

function attemptFailed(decision: Decision, task: Task, failure: AttemptFailure): Way {
  const { error, reason, name, usage, progress } = failure;
  const node = workNode(decision, task.node);
  const again = failure.retryable && reason !== "expression_error"
    ? retryAt(node.retry, task, failure, decision.state.execId, decision.now)
    : undefined;
  decision.emit("NodeFailed", {
    ...identity(task),
    attempt: task.attempt,
    error,
    reason,
    will_retry: again !== undefined,
    ...(name === undefined ? {} : { name }),
    ...(progress === undefined ? {} : { progress }),
    ...usageOf(usage),
  });
  if (overBudget(decision, task.node)) return undefined;
  if (again === undefined) return placeFailed(decision, task, reason, error);
  const { key, generation } = task;
  decision.timer("retry", again, { key, node: task.node, generation, attempt: task.attempt + 1 });
  return undefined;
}

function identity({ key, node, generation }: Task): Pick<Task, "key" | "node" | "generation"> {
  return { key, node, generation };
}

/** A usage that can be counted; of a failure the rest is passed over. */
function usageOf(usage: unknown): { readonly usage?: Usage } {
  const read = usage === undefined ? undefined : numbers(usage);
  return read === undefined || Object.keys(read).length === 0 ? {} : { usage: read };
}

/** The fields that are there. */
function present<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined | null> } {
  const there = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(there) as { [K in keyof T]?: Exclude<T[K], undefined | null> };
}
