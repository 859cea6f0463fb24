/**
 * What events ask the world for: jobs, timers, children, notices. Data only; the engine commits it with the decision, or
 * carries it out behind it.
 *
 * F1 Every effect can be carried out again: ids, and instants of timers, are the same each time.
 * F2 What a decision begins and ends itself does not go out: no job of a branch whose join has settled, nothing at all of a
 *    decision that ended the execution but its ending.
 *
 * @module
 */
import type { CompiledFlow, TaskMapNode, TaskNode } from "../definition/types.ts";
import { apply, versionFor, type Versions } from "./apply.ts";
import type { CommandOf } from "./commands.ts";
import { type EventOf, type FlowEvent, isTerminal, type TimerPurpose, type Usage } from "./events.ts";
import type { Fields } from "./fields.ts";
import { type AttemptRef, idempotencyKey, jobId } from "./ids.ts";
import { cacheKey, liveTask } from "./job.ts";
import { hasEnded, type State, type Status, statusOf } from "./state.ts";

/** A job to be done by a worker. */
export interface JobEffect extends AttemptRef {
  /** What kind of effect it is. */
  readonly type: "job";
  /** The same each time; see also the idempotency key, which attempts share. */
  readonly id: string;
  /** What receivers tell repetitions by. */
  readonly idempotencyKey: string;
  /** Its node. */
  readonly node: string;
  /** Kind of worker. */
  readonly kind: string;
  /** Position of the item. */
  readonly index?: number;
  /** Higher ones are handed out first. */
  readonly priority: number;
  /** Longest silence of its worker once it is handed out, ms. */
  readonly heartbeat?: number;
  /** Most at once with the same key, over all executions. */
  readonly concurrency?: { readonly key: string; readonly max: number };
  /** Most in `per` ms, with the same key where there is one, over all executions. */
  readonly rate?: { readonly key?: string; readonly max: number; readonly per: number };
  /** A result kept under this key is the answer. */
  readonly cache?: { readonly key: string };
}

/** A job nobody waits for any more: taken out of its queue, or its worker is told. */
export interface StopEffect extends AttemptRef {
  /** What kind of effect it is. */
  readonly type: "stop";
  /** Id of the job. */
  readonly id: string;
}

/** Sets a timer, or sets it again. */
export interface TimerSetEffect {
  /** What kind of effect it is. */
  readonly type: "timer_set";
  /** Its id in the execution. */
  readonly id: string;
  /** When it is due, ms. */
  readonly at: number;
  /** What it is for. */
  readonly purpose: TimerPurpose;
  /** What is to be decided then. */
  readonly command: CommandOf<"timer">;
}

/** Takes a timer away, whether it has fired or not. */
export interface TimerDeleteEffect {
  /** What kind of effect it is. */
  readonly type: "timer_delete";
  /** Its id in the execution. */
  readonly id: string;
}

/** Starts a child. */
export interface ChildStartEffect {
  /** What kind of effect it is. */
  readonly type: "child_start";
  /** Starts it. */
  readonly command: CommandOf<"start">;
}

/** Cancels a child. */
export interface ChildCancelEffect {
  /** What kind of effect it is. */
  readonly type: "child_cancel";
  /** Cancels it. */
  readonly command: CommandOf<"cancel">;
}

/** Tells the parent how this execution ended. */
export interface ParentNoticeEffect {
  /** What kind of effect it is. */
  readonly type: "parent_notice";
  /** Tells it. */
  readonly command: CommandOf<"child_done">;
}

/** Keeps a result for {@link JobEffect.cache}. */
export interface CachePutEffect {
  /** What kind of effect it is. */
  readonly type: "cache_put";
  /** Key it is found by. */
  readonly key: string;
  /** What is found. */
  readonly result: {
    readonly output?: Fields;
    readonly writes?: Fields;
    readonly next?: string;
    readonly usage?: Usage;
  };
  /** Until when, ms. */
  readonly expiresAt: number;
}

/** Archives or deletes the finished execution. */
export interface ExpireEffect {
  /** What kind of effect it is. */
  readonly type: "expire";
  /** When it is due, ms. */
  readonly at: number;
  /** What becomes of it. */
  readonly action: "archive" | "delete";
}

/** What lists of executions show. Once a decision. */
export interface IndexEffect {
  /** What kind of effect it is. */
  readonly type: "index";
  /** Absent where the execution is new. */
  readonly before?: Status;
  /** What lists show now. */
  readonly summary: Summary;
}

/** Anything events ask for. */
export type Effect =
  | JobEffect
  | StopEffect
  | TimerSetEffect
  | TimerDeleteEffect
  | ChildStartEffect
  | ChildCancelEffect
  | ParentNoticeEffect
  | CachePutEffect
  | ExpireEffect
  | IndexEffect;

/** An execution in a list. */
export interface Summary {
  /** Id of the execution. */
  readonly exec_id: string;
  /** Name of the flow. */
  readonly flow: string;
  /** Version of the flow. */
  readonly flow_hash: string;
  /** How it stands. */
  readonly status: Status;
  /** There while it is paused. */
  readonly paused?: true;
  /** When it began, ms. */
  readonly created: number;
  /** When it changed last, ms. */
  readonly updated: number;
  /** What it is found by. */
  readonly attrs: Readonly<Record<string, string>>;
  /** Id of the execution that started it. */
  readonly parent?: string;
  /** Execution it is a fork of. */
  readonly forked_from?: string;
  /** Why it failed, one sentence. */
  readonly error?: string;
  /** What kind of failure, or why it was cancelled. */
  readonly reason?: string;
  /** Index of the last event: tells an older summary from a newer one. */
  readonly events: number;
}

/** The summary of a state. */
export function summaryOf(state: State): Summary {
  const { parent, forkedFrom, failure, cancelReason } = state;
  const reason = failure?.reason ?? cancelReason;
  return {
    exec_id: state.execId,
    flow: state.flow,
    flow_hash: state.flowHash,
    status: statusOf(state),
    ...(state.paused === undefined ? {} : { paused: true }),
    created: state.createdAt,
    updated: state.updatedAt,
    attrs: state.attrs,
    ...(parent === undefined ? {} : { parent: parent.exec_id }),
    ...(forkedFrom === undefined ? {} : { forked_from: forkedFrom }),
    ...(failure === undefined ? {} : { error: failure.error }),
    ...(reason === undefined ? {} : { reason }),
    events: state.events,
  };
}

/**
 * What one event asks for. Not the end of it: {@link netEffects} leaves out what the rest of the decision took back.
 *
 * @param before `undefined` in front of the first event.
 */
export function effectsOf(
  flow: CompiledFlow,
  event: FlowEvent,
  before: State | undefined,
  after: State,
): Effect[] {
  if (isTerminal(event)) return endEffects(flow, event, before!, after);
  switch (event.type) {
    case "NodeScheduled":
      return [...timersGone(event.data.key, before!, after), jobOf(flow, event, after)];
    case "NodeCompleted":
      return [...timersGone(event.data.key, before!, after), ...cachePut(flow, event)];
    case "NodeInterrupted":
      return timersGone(event.data.key, before!, after);
    case "NodeCancelled":
      return [...timersGone(event.data.key, before!, after), ...stopOf(before!, event.data.key)];
    case "NodeFailed": {
      const timers = timersGone(event.data.key, before!, after), { reason, key } = event.data;
      const isOverdue = reason === "timeout" || reason === "heartbeat_timeout";
      return isOverdue ? [...timers, ...stopOf(before!, key)] : timers;
    }
    case "JoinCompleted":
    case "MapAborted":
      return cancelsOf(after, event, event.data.cancel_children ?? []);
    case "SignalConsumed": {
      const timer = before!.awaits.get(event.data.node)?.timer;
      return timer === undefined || after.timers.has(timer) ? [] : [{ type: "timer_delete", id: timer }];
    }
    case "ChildStarted":
      return [childStart(event, after)];
    case "TimerScheduled":
      return [timerSet(after.execId, event.data)];
    case "TimerFired":
      return [{ type: "timer_delete", id: event.data.id }];
    case "ExecutionUnpaused":
      return after.timers.values().map((timer) => timerSet(after.execId, timer));
    default:
      return [];
  }
}

/** Effects of a whole decision, worked out anew from its events. */
export function decisionEffects(
  versions: Versions,
  before: State | undefined,
  events: readonly FlowEvent[],
): Effect[] {
  const effects: Effect[] = [];
  let state = before;
  for (const event of events) {
    const flow = versionFor(versions, state, event), after = apply(flow, state, event);
    effects.push(...effectsOf(flow, event, state, after));
    state = after;
  }
  return state === undefined ? [] : netEffects(effects, before, state);
}

/** What is left of the effects of a decision at its end, and what lists are to show. */
export function netEffects(effects: readonly Effect[], before: State | undefined, after: State): Effect[] {
  if (before?.events === after.events) return [];
  // First all that asks for the old state, then all that asks for the new one: going from one to the other costs.
  const status = before === undefined ? undefined : statusOf(before);
  const old = effects.filter((effect) =>
    effect.type !== "timer_delete" || before?.timers.has(effect.id) === true
  );
  const begun = new Set<string>();
  for (const effect of old) begun.add(beginning(effect));
  const net = old.filter((effect) => isWanted(effect, begun, after));
  net.push({ type: "index", ...(status === undefined ? {} : { before: status }), summary: summaryOf(after) });
  return net;
}

/** Names the job or child an effect begins. */
function beginning(effect: Effect): string {
  switch (effect.type) {
    case "job":
      return effect.id;
    case "child_start":
      return effect.command.exec_id;
    default:
      return "";
  }
}

/** Whether an effect is still to happen at the end of the decision. */
function isWanted(effect: Effect, begun: ReadonlySet<string>, after: State): boolean {
  switch (effect.type) {
    case "job":
      return liveTask(after, effect) !== undefined;
    case "stop":
      return !begun.has(effect.id);
    case "timer_set":
      return after.timers.has(effect.id);
    case "child_start":
      return after.children.has(effect.command.exec_id);
    case "child_cancel":
      return !begun.has(effect.command.exec_id);
    default:
      return true;
  }
}

function jobOf(flow: CompiledFlow, { data }: EventOf<"NodeScheduled">, after: State): JobEffect {
  const { key, node: id, kind, generation, attempt, index, concurrency_key, rate_key } = data;
  const node = flow.nodes.get(id)!.node as TaskNode | TaskMapNode;
  const { heartbeat, concurrency, rate } = node;
  const isCached = node.type === "task" && node.cache !== undefined;
  return {
    type: "job",
    id: jobId(after.execId, data),
    idempotencyKey: idempotencyKey(after.execId, data),
    key,
    node: id,
    kind,
    generation,
    attempt,
    priority: node.priority,
    ...(index === undefined ? {} : { index }),
    ...(heartbeat === undefined ? {} : { heartbeat }),
    ...(concurrency === undefined || concurrency_key === undefined
      ? {}
      : { concurrency: { key: concurrency_key, max: concurrency.max } }),
    ...(rate === undefined
      ? {}
      : { rate: { max: rate.max, per: rate.per, ...(rate_key === undefined ? {} : { key: rate_key }) } }),
    ...(isCached ? { cache: { key: cacheKey(after, after.tasks.get(key)!) } } : {}),
  };
}

function cachePut(flow: CompiledFlow, { time, data }: EventOf<"NodeCompleted">): Effect[] {
  const { node: id, output, writes, next, usage, cached, cache_key } = data;
  const { node } = flow.nodes.get(id)!;
  if (cached === true || cache_key === undefined || node.type !== "task" || node.cache === undefined) {
    return [];
  }
  const result = {
    ...(output === undefined ? {} : { output }),
    ...(writes === undefined ? {} : { writes }),
    ...(next === undefined ? {} : { next }),
    ...(usage === undefined ? {} : { usage }),
  };
  return [{ type: "cache_put", key: cache_key, result, expiresAt: time + node.cache.ttl }];
}

/** The timer a task had and has no longer. */
function timersGone(key: string, before: State, after: State): Effect[] {
  const timer = before.tasks.get(key)?.timer;
  const isGone = timer !== undefined && before.timers.has(timer) && !after.timers.has(timer);
  return isGone ? [{ type: "timer_delete", id: timer }] : [];
}

function stopOf(before: State, key: string): Effect[] {
  const task = before.tasks.get(key);
  if (task?.status !== "scheduled") return [];
  const { generation, attempt } = task;
  return [{ type: "stop", id: jobId(before.execId, task), key, generation, attempt }];
}

function timerSet(
  execId: string,
  { id, at, purpose }: { readonly id: string; readonly at: number; readonly purpose: TimerPurpose },
): TimerSetEffect {
  const command = {
    id: `timer.${execId}.${id}`,
    type: "timer" as const,
    exec_id: execId,
    data: { timer_id: id },
  };
  return { type: "timer_set", id, at, purpose, command };
}

function childStart({ data, trace }: EventOf<"ChildStarted">, after: State): ChildStartEffect {
  const { child_id, child_n, node, flow, input } = data;
  return {
    type: "child_start",
    command: {
      id: `start.${child_id}`,
      type: "start",
      exec_id: child_id,
      data: { flow, input, parent: { exec_id: after.execId, node, child_n } },
      ...(trace === undefined ? {} : { trace }),
    },
  };
}

function cancelsOf({ execId }: State, { trace }: FlowEvent, children: readonly string[]): Effect[] {
  return children.map((child) => ({
    type: "child_cancel",
    command: {
      id: `parent-closed.${child}`,
      type: "cancel",
      exec_id: child,
      data: { reason: `the parent "${execId}" no longer waits for it` },
      ...(trace === undefined ? {} : { trace }),
    },
  }));
}

/** The end of an execution takes everything with it. */
function endEffects(flow: CompiledFlow, event: FlowEvent, before: State, after: State): Effect[] {
  const { retention, onExpire } = flow.definition;
  const children = "cancel_children" in event.data ? event.data.cancel_children ?? [] : [];
  const effects = before.tasks.keys().flatMap((key) => stopOf(before, key));
  for (const id of before.timers.keys()) effects.push({ type: "timer_delete", id });
  effects.push(...cancelsOf(after, event, children));
  if (after.parent !== undefined) effects.push(parentNotice(event, after));
  if (retention !== undefined) {
    effects.push({ type: "expire", at: event.time + retention, action: onExpire });
  }
  return effects;
}

/**
 * Tells the parent that a child could not be started: its flow is not known, or its id is taken.
 *
 * @param start The command that was refused.
 * @param error One sentence.
 */
export function childRefused(
  { exec_id, data, trace }: CommandOf<"start">,
  error: string,
): CommandOf<"child_done"> | undefined {
  if (data.parent === undefined) return undefined;
  return {
    id: `child-done.${exec_id}`,
    type: "child_done",
    exec_id: data.parent.exec_id,
    data: { child_id: exec_id, status: "failed", error },
    ...(trace === undefined ? {} : { trace }),
  };
}

/** Tells the parent how a child ended. */
function parentNotice({ trace }: FlowEvent, state: State): ParentNoticeEffect {
  const { execId, phase, output, failure, cancelReason, counters } = state;
  const error = failure?.error ?? cancelReason;
  return {
    type: "parent_notice",
    command: {
      id: `child-done.${execId}`,
      type: "child_done",
      exec_id: state.parent!.exec_id,
      data: {
        child_id: execId,
        status: phase as "completed" | "failed" | "cancelled",
        ...(output === undefined ? {} : { output }),
        ...(error === undefined ? {} : { error }),
        ...(counters.size === 0 ? {} : { counters: counters.toObject() }),
      },
      ...(trace === undefined ? {} : { trace }),
    },
  };
}

/** Whether anything is still to happen by itself or from outside; false for a state that nobody would ever wake. */
export function hasCause(state: State): boolean {
  if (hasEnded(state)) return true;
  const { tasks, timers, awaits, sleeps, children, held, paused, phase } = state;
  if (children.size > 0 || (paused !== undefined && held.length > 0)) return true;
  if (phase === "delayed") return timers.values().some((timer) => timer.purpose === "start");
  if (tasks.values().some((task) => task.status !== "retrying" || timers.has(task.timer ?? ""))) return true;
  return [...awaits.values(), ...sleeps.values()].some((open) => timers.has(open.timer)) ||
    (paused !== undefined && state.maps.size > 0);
}
