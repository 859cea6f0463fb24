/**
 * Jobs: what a worker gets for an attempt, and the key its result is kept under.
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { CompiledFlow, FlowContext, TaskMapNode, TaskNode } from "../definition/types.ts";
import { stringifyJson } from "../../json.ts";
import { contextData, contextOf, type Item } from "./context.ts";
import { type AttemptRef, idempotencyKey } from "./ids.ts";
import type { State, Task } from "./state.ts";

/** What a worker sees: the context, and what the attempt is about. */
export interface JobContext extends FlowContext {
  /** Answer to the interrupt; null where it came without one. */
  readonly resume?: unknown;
  /** What was asked when it was interrupted. */
  readonly interrupt?: unknown;
  /** Last progress of the attempt before. */
  readonly progress?: unknown;
}

/** What a worker gets. */
export interface JobBody extends AttemptRef {
  /** Execution it is for. */
  readonly exec_id: string;
  /** Name of the flow. */
  readonly flow: string;
  /** Version of the flow. */
  readonly flow_hash: string;
  /** Its node. */
  readonly node: string;
  /** Kind of worker. */
  readonly kind: string;
  /** Position of the item. */
  readonly index?: number;
  /** The same for all attempts of a generation: what a receiver tells repetitions by. */
  readonly idempotency_key: string;
  /** What the worker sees. */
  readonly context: JobContext;
  /** The node's own `meta`. */
  readonly meta?: Readonly<Record<string, unknown>>;
  /** Longest silence of the worker, ms. */
  readonly heartbeat?: number;
  /** Settings of a built-in kind, worked out. */
  readonly with?: Readonly<Record<string, unknown>>;
  /** Most at once with the same key. */
  readonly concurrency?: { readonly key: string; readonly max: number };
}

/** The attempt, if it still waits for an answer. */
export function liveTask(state: State, { key, generation, attempt }: AttemptRef): Task | undefined {
  const task = state.tasks.get(key);
  return task?.status === "scheduled" && task.generation === generation && task.attempt === attempt
    ? task
    : undefined;
}

/**
 * What a worker gets for an attempt, made when it is handed out; `undefined` where nobody waits for it any more.
 *
 * @throws {MailerError} `expression_failed` where the settings of a built-in kind cannot be worked out: the attempt is to
 * be answered with a failure that is not retried, reason `expression_error`.
 */
export function jobBody(flow: CompiledFlow, state: State, attempt: AttemptRef): JobBody | undefined {
  const task = liveTask(state, attempt), compiled = flow.nodes.get(task?.node ?? "");
  if (task === undefined || compiled === undefined) return undefined;
  const node = compiled.node as TaskNode | TaskMapNode, item = itemOf(state, task);
  const { key, generation, index, concurrencyKey } = task;
  return {
    exec_id: state.execId,
    flow: state.flow,
    flow_hash: state.flowHash,
    node: node.id,
    kind: task.kind,
    key,
    generation,
    attempt: task.attempt,
    ...(index === undefined ? {} : { index }),
    idempotency_key: idempotencyKey(state.execId, task),
    context: { ...contextData(state, item), ...attemptContext(task) },
    ...(node.meta === undefined ? {} : { meta: node.meta }),
    ...(node.heartbeat === undefined ? {} : { heartbeat: node.heartbeat }),
    ...(compiled.with === undefined ? {} : { with: compiled.with(contextOf(state, item)) }),
    ...(concurrencyKey === undefined || node.concurrency === undefined
      ? {}
      : { concurrency: { key: concurrencyKey, max: node.concurrency.max } }),
  };
}

function attemptContext({ resume, interrupt, progress }: Task): Partial<JobContext> {
  return {
    ...(resume === undefined ? {} : { resume: resume.value }),
    ...(interrupt === undefined ? {} : { interrupt: interrupt.payload }),
    ...(progress === undefined ? {} : { progress: progress.value }),
  };
}

/** The item a task or child is about. */
export function itemOf(state: State, { owner, index }: Pick<Task, "owner" | "index">): Item | undefined {
  const run = owner === undefined ? undefined : state.maps.get(owner);
  return run === undefined || index === undefined ? undefined : { item: run.items[index], index };
}

/**
 * The key a result is kept under: 32 hexadecimal digits over everything a worker can see that decides what it does. Visits,
 * counters, branches, errors and the last node do not belong to it.
 */
export function cacheKey(state: State, task: Task): string {
  const { input, channels, results, signals } = state;
  const seen = [
    state.flowHash,
    task.node,
    input,
    channels.toObject(),
    results.toObject(),
    signals.toObject(),
    boxed(itemOf(state, task)?.item),
    boxed(task.resume?.value),
    task.index ?? null,
    boxed(task.interrupt?.payload),
  ];
  return createHash("sha256").update(stringifyJson(seen)).digest("hex").slice(0, 32);
}

/** Nothing and null are not the same. */
function boxed(value: unknown): readonly unknown[] {
  return value === undefined ? [] : [value];
}
