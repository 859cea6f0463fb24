/**
 * The fold: a state and an event give the next state.
 *
 * A1 It only needs the definition for what channels do with writes and begin with.
 * A2 Events come in the order of their indexes, without a gap; anything else is no history and throws.
 * A3 It costs what the event changes, whatever the state holds.
 *
 * @module
 */
import type { CompiledFlow, FlowDefinition } from "../definition/types.ts";
import { MailerError } from "../../errors.ts";
import { setOwn } from "../../value.ts";
import type { EventOf, EventType, FlowEvent, Usage } from "./events.ts";
import { Queue } from "./queue.ts";
import { applyWrites } from "./reducers.ts";
import { withRenamedNodes } from "./rename.ts";
import { decodeState } from "./snapshot.ts";
import { type Child, emptyState, type State, type Task } from "./state.ts";
import { VersionedMap } from "./versioned_map.ts";

/**
 * The state after an event.
 *
 * @param state What came before; `undefined` in front of the first event.
 * @throws {MailerError} `broken_history` where the event cannot follow; `invalid_state` where it carries a state that is none.
 */
export function apply(flow: CompiledFlow, state: State | undefined, event: FlowEvent): State {
  if (state === undefined) return begin(flow, event);
  if (event.i !== state.events + 1) {
    throw broken(event, `follows event ${state.events} of "${state.execId}"`);
  }
  const change = CHANGES[event.type] as (
    state: State,
    event: FlowEvent,
    flow: CompiledFlow,
  ) => Partial<State>;
  return { ...state, events: event.i, updatedAt: event.time, ...change(state, event, flow) };
}

/** A version of a flow, or where versions are found by their hashes: an execution may have been moved to another. */
export type Versions = CompiledFlow | ((hash: string) => CompiledFlow);

/** The state after several events. */
export function applyAll(
  versions: Versions,
  state: State | undefined,
  events: readonly FlowEvent[],
): State | undefined {
  let result = state;
  for (const event of events) result = apply(versionFor(versions, result, event), result, event);
  return result;
}

/** The version an event is applied by. */
export function versionFor(versions: Versions, state: State | undefined, event: FlowEvent): CompiledFlow {
  return typeof versions === "function" ? versions(hashFor(state, event)) : versions;
}

/** Hash of the version an event is applied by: the one it names or carries, else that of the state before it. */
export function hashFor(state: State | undefined, { type, data }: FlowEvent): string {
  if (type === "ExecutionStarted" || type === "ExecutionMigrated") return data.flow_hash;
  if (state !== undefined) return state.flowHash;
  const carried = type === "ExecutionForked" || type === "ExecutionContinued"
    ? data.state["flowHash"]
    : undefined;
  return typeof carried === "string" ? carried : "";
}

/** A history begins with a start, a fork or the state it was continued with. */
function begin({ definition }: CompiledFlow, event: FlowEvent): State {
  switch (event.type) {
    case "ExecutionStarted":
      return started(definition, event);
    case "ExecutionForked":
      return forked(event);
    case "ExecutionContinued": {
      const carried = decodeState(event.data.state);
      return { ...carried, ...continued(carried, event), events: event.i, updatedAt: event.time };
    }
    default:
      throw broken(event, "cannot be the first of its execution");
  }
}

function started(definition: FlowDefinition, event: EventOf<"ExecutionStarted">): State {
  if (event.i !== 1) throw broken(event, "cannot begin a history");
  const { exec_id, flow, flow_hash, input, parent, attrs, start_at } = event.data;
  const channels = Object.entries(definition.channels).filter(([, channel]) => channel.default !== undefined)
    .map(([name, channel]) => [name, channel.default] as const);
  return {
    ...emptyState({ execId: exec_id, flow, flowHash: flow_hash, input }, event.time),
    events: 1,
    attrs: attrs ?? {},
    phase: start_at === undefined ? "running" : "delayed",
    channels: VersionedMap.of(Object.fromEntries(channels)),
    ...(parent === undefined ? {} : { parent }),
  };
}

function forked(event: EventOf<"ExecutionForked">): State {
  if (event.i !== 1) throw broken(event, "cannot begin a history");
  const { exec_id, from, seq, state } = event.data;
  const { parent: _parent, paused: _paused, deadlineAt: _deadline, ...source } = decodeState(state);
  return {
    ...source,
    execId: exec_id,
    forkedFrom: from,
    forkSeq: seq,
    createdAt: event.time,
    updatedAt: event.time,
    events: 1,
    base: 1,
    segments: [],
    held: [],
    timers: VersionedMap.empty(),
  };
}

function continued(state: State, { i, data }: EventOf<"ExecutionContinued">): Partial<State> {
  return { base: i, segments: [...state.segments, data.segment] };
}

type Changes = {
  readonly [T in EventType]: (state: State, event: EventOf<T>, flow: CompiledFlow) => Partial<State>;
};

const CHANGES: Changes = {
  ExecutionStarted: (_, event) => {
    throw broken(event, "came twice");
  },
  ExecutionForked: (_, event) => {
    throw broken(event, "came behind other events");
  },
  ExecutionContinued: continued,
  ExecutionMigrated: (state, { data }, { definition }) => ({
    ...withRenamedNodes(state, data.nodes ?? {}),
    flowHash: data.flow_hash,
    channels: withDefaults(state.channels, definition),
  }),
  ExecutionPaused: (_, { time, data }) => ({ paused: { since: time, ...data } }),
  ExecutionUnpaused: () => ({ paused: undefined, held: [] }),
  ExecutionCompleted: (_, { time, data }) => ({
    ...closed(),
    phase: "completed",
    endedAt: time,
    ...(data.output === undefined ? {} : { output: data.output }),
  }),
  ExecutionFailed: (_, { time, data: { error, reason, node } }) => ({
    ...closed(),
    phase: "failed",
    endedAt: time,
    failure: { error, reason, ...(node === undefined ? {} : { node }) },
  }),
  ExecutionCancelled: (_, { time, data: { reason } }) => ({
    ...closed(),
    phase: "cancelled",
    endedAt: time,
    ...(reason === undefined ? {} : { cancelReason: reason }),
  }),
  NodeEntered: ({ visits, steps }, { data: { node } }) => ({
    phase: "running",
    steps: steps + 1,
    visits: visits.set(node, (visits.get(node) ?? 0) + 1),
  }),
  RouteHeld: (state, { data }) => ({ held: [...state.held, data.to] }),

  NodeScheduled: scheduled,
  NodeCompleted: completed,
  NodeFailed: failed,
  NodeInterrupted: (state, { data: { key, payload, usage } }) => {
    const task = state.tasks.get(key);
    if (task === undefined) return {};
    const { timer: _, resume: __, ...kept } = task;
    return {
      timers: withoutTimer(state, task),
      counters: counted(state, usage),
      tasks: state.tasks.set(key, {
        ...kept,
        status: "interrupted",
        interrupt: { payload: payload ?? null },
      }),
    };
  },
  NodeCancelled: (state, { data: { key, node } }) => {
    const task = state.tasks.get(key);
    if (task === undefined) return {};
    return { ...settled(state, task), branches: branchSet(state, task.owner, node, "cancelled") };
  },
  ChoiceEvaluated: () => ({}),

  FanoutStarted: (state, { data }) => ({
    fans: state.fans.set(data.node, data),
    branches: VersionedMap.of(Object.fromEntries(data.branches.map((id) => [id, "pending" as const]))),
  }),
  JoinCompleted: (state, { data }) => {
    let { branches } = state;
    for (const id of data.cancelled) branches = branches.set(id, "cancelled");
    return {
      branches,
      fans: state.fans.delete(data.fanout),
      children: withoutChildren(state, data.fanout),
      results: state.results.set(data.node, data.output),
      lastNode: data.node,
      errors: data.ok
        ? state.errors.delete(data.node)
        : state.errors.set(data.node, { error: data.error ?? "", reason: "join_failed" }),
    };
  },

  AwaitStarted: (state, { data: { node, signal, signals, policy, timer_id } }) => ({
    awaits: state.awaits.set(node, {
      node,
      signals: signals ?? [signal ?? ""],
      policy: policy ?? "all",
      timer: timer_id,
      received: state.awaits.get(node)?.received ?? {}, // of the execution this one is a fork of
    }),
  }),
  AwaitTimedOut: (state, { data }) => ({ awaits: state.awaits.delete(data.node) }),
  SignalReceived: (state, { time, i, data: { name, id, payload } }) => ({
    inbox: state.inbox.set(
      name,
      (state.inbox.get(name) ?? Queue.of([])).push({ id, payload: payload ?? null, i }),
    ),
    signalIds: state.signalIds.add(id, time),
  }),
  SignalConsumed: consumed,
  ChannelsUpdated: (state, { time, data }, { definition }) => ({
    channels: applyWrites(definition, state.channels, data.writes),
    updateIds: state.updateIds.add(data.id, time),
  }),

  MapStarted: (state, { data: { node, items, max_parallel } }) => ({
    maps: state.maps.set(node, {
      node,
      items,
      maxParallel: max_parallel,
      next: 0,
      outputs: VersionedMap.empty(),
    }),
  }),
  MapCompleted: (state, { data: { node } }) => {
    const run = state.maps.get(node);
    const outputs = (run?.items ?? []).map((_, i) => run!.outputs.get(String(i)) ?? null);
    return {
      maps: state.maps.delete(node),
      results: state.results.set(node, outputs),
      lastNode: node,
      errors: state.errors.delete(node),
    };
  },
  MapAborted: (state, { data: { node } }) => ({
    maps: state.maps.delete(node),
    children: withoutChildren(state, node),
    lastNode: node,
  }),

  ChildStarted: (state, { data }) => {
    const { child_id, child_n, replaces, ...rest } = data;
    const child: Child = { ...rest, childId: child_id, n: child_n };
    const children = replaces === undefined ? state.children : state.children.delete(replaces);
    return {
      ...advanced(state, data),
      n: Math.max(state.n, child_n),
      children: children.set(child_id, child),
    };
  },
  ChildCompleted: childCompleted,

  TimerScheduled: timerScheduled,
  TimerFired: (state, { data: { id } }) => {
    const timer = state.timers.get(id), timers = state.timers.delete(id);
    if (timer?.purpose !== "sleep" || timer.node === undefined) return { timers };
    return { timers, sleeps: state.sleeps.delete(timer.node) };
  },
};

function scheduled(state: State, { time, data }: EventOf<"NodeScheduled">): Partial<State> {
  const { key, node, kind, index, owner, generation, attempt, resume, concurrency_key, rate_key } = data;
  const before = state.tasks.get(key), sameGeneration = before?.generation === generation;
  const answered = resume === undefined ? before?.resume : { value: resume };
  const task: Task = {
    key,
    node,
    kind,
    generation,
    attempt,
    status: "scheduled",
    since: sameGeneration ? before.since : time,
    ...(index === undefined ? {} : { index }),
    ...(owner === undefined ? {} : { owner }),
    ...(answered === undefined ? {} : { resume: answered }),
    ...(before?.interrupt === undefined ? {} : { interrupt: before.interrupt }),
    ...(before?.progress === undefined || !sameGeneration ? {} : { progress: before.progress }),
    ...(concurrency_key === undefined ? {} : { concurrencyKey: concurrency_key }),
    ...(rate_key === undefined ? {} : { rateKey: rate_key }),
  };
  return {
    ...advanced(state, data),
    n: Math.max(state.n, generation),
    tasks: state.tasks.set(key, task),
    timers: before === undefined ? state.timers : withoutTimer(state, before),
  };
}

/** Moves the window of the map an item belongs to. */
function advanced(
  state: State,
  { owner, index }: { readonly owner?: string; readonly index?: number },
): Partial<State> {
  const run = owner === undefined || index === undefined ? undefined : state.maps.get(owner);
  if (run === undefined || index! < run.next) return {};
  return { maps: state.maps.set(owner!, { ...run, next: index! + 1 }) };
}

function completed(
  state: State,
  { data }: EventOf<"NodeCompleted">,
  { definition }: CompiledFlow,
): Partial<State> {
  const task = state.tasks.get(data.key);
  if (task === undefined) return {};
  return {
    ...settled(state, task),
    counters: counted(state, data.usage),
    channels: applyWrites(definition, state.channels, data.writes),
    ...succeeded(state, task, data.output ?? null),
  };
}

function failed(state: State, { data }: EventOf<"NodeFailed">): Partial<State> {
  const task = state.tasks.get(data.key);
  if (task === undefined) return {};
  const counters = counted(state, data.usage);
  if (data.will_retry) {
    const { timer: _, ...kept } = task;
    const progress = data.progress === undefined ? task.progress : { value: data.progress };
    return {
      counters,
      timers: withoutTimer(state, task),
      tasks: state.tasks.set(data.key, {
        ...kept,
        status: "retrying",
        ...(progress === undefined ? {} : { progress }),
      }),
    };
  }
  return {
    ...settled(state, task),
    counters,
    ...gaveUp(state, task, data.error, data.reason, data.attempt),
  };
}

function childCompleted(state: State, { data }: EventOf<"ChildCompleted">): Partial<State> {
  const child = state.children.get(data.child_id);
  if (child === undefined) return {};
  return {
    children: state.children.delete(data.child_id),
    counters: counted(state, data.counters),
    ...(data.status === "completed"
      ? succeeded(state, child, data.output ?? null)
      : gaveUp(state, child, data.error ?? `the child was ${data.status}`, "child_failed")),
  };
}

/** Where the result of a task, item or branch goes. */
function succeeded(
  state: State,
  { node, owner, index }: Pick<Task, "node" | "owner" | "index">,
  output: unknown,
): Partial<State> {
  const errors = state.errors.delete(node);
  if (owner === undefined) return { errors, results: state.results.set(node, output), lastNode: node };
  if (index === undefined) {
    return {
      errors,
      results: state.results.set(node, output),
      branches: branchSet(state, owner, node, "completed"),
    };
  }
  const run = state.maps.get(owner);
  if (run === undefined) return {};
  return {
    maps: state.maps.set(owner, { ...run, outputs: run.outputs.set(String(index), output) }),
  };
}

/** Where the failure of a task, item or branch goes. */
function gaveUp(
  state: State,
  { node, owner, index }: Pick<Task, "node" | "owner" | "index">,
  error: string,
  reason: string,
  attempt?: number,
): Partial<State> {
  const errors = state.errors.set(node, {
    error,
    reason,
    ...(attempt === undefined ? {} : { attempt }),
    ...(index === undefined ? {} : { index }),
  });
  if (owner === undefined) return { errors, lastNode: node };
  return index === undefined ? { errors, branches: branchSet(state, owner, node, "failed") } : { errors };
}

function consumed(state: State, { data: { node, name, id } }: EventOf<"SignalConsumed">): Partial<State> {
  const queue = state.inbox.get(name), signal = queue?.first, open = state.awaits.get(node);
  if (queue === undefined || signal?.id !== id || open === undefined) return {};
  const rest = queue.shift();
  const received: Record<string, unknown> = { ...open.received };
  setOwn(received, name, signal.payload);
  const change = {
    inbox: rest.size === 0 ? state.inbox.delete(name) : state.inbox.set(name, rest),
    signals: state.signals.set(name, signal.payload),
  };
  const isDone = open.policy === "any" || open.signals.every((each) => Object.hasOwn(received, each));
  if (!isDone) return { ...change, awaits: state.awaits.set(node, { ...open, received }) };
  return {
    ...change,
    awaits: state.awaits.delete(node),
    timers: state.timers.delete(open.timer),
    results: state.results.set(node, open.signals.length === 1 ? signal.payload : received),
    lastNode: node,
  };
}

function timerScheduled(state: State, { data }: EventOf<"TimerScheduled">): Partial<State> {
  const { id, n, at, purpose, key, node } = data;
  const task = key === undefined ? undefined : state.tasks.get(key);
  return {
    n: Math.max(state.n, n),
    timers: state.timers.set(id, data),
    ...(task === undefined ? {} : { tasks: state.tasks.set(task.key, { ...task, timer: id }) }),
    ...(purpose === "sleep" && node !== undefined
      ? { sleeps: state.sleeps.set(node, { node, at, timer: id }) }
      : {}),
    ...(purpose === "deadline" ? { deadlineAt: at } : {}),
  };
}

/** What a settled task leaves behind: nothing, not even its timer. */
function settled(state: State, task: Task): Pick<State, "tasks" | "timers"> {
  return { tasks: state.tasks.delete(task.key), timers: withoutTimer(state, task) };
}

function withoutTimer(state: State, { timer }: Task): State["timers"] {
  return timer === undefined ? state.timers : state.timers.delete(timer);
}

function withoutChildren(state: State, owner: string): State["children"] {
  let { children } = state;
  for (const child of children.values()) {
    if (child.owner === owner) children = children.delete(child.childId);
  }
  return children;
}

function branchSet(
  state: State,
  owner: string | undefined,
  node: string,
  status: "completed" | "failed" | "cancelled",
): State["branches"] {
  return owner !== undefined && state.fans.has(owner) ? state.branches.set(node, status) : state.branches;
}

function counted(state: State, usage: Usage | undefined): State["counters"] {
  let { counters } = state;
  for (const [name, amount] of Object.entries(usage ?? {})) {
    counters = counters.set(name, (counters.get(name) ?? 0) + amount);
  }
  return counters;
}

/** Nothing is open any more. */
function closed(): Partial<State> {
  return {
    tasks: VersionedMap.empty(),
    fans: VersionedMap.empty(),
    maps: VersionedMap.empty(),
    awaits: VersionedMap.empty(),
    sleeps: VersionedMap.empty(),
    children: VersionedMap.empty(),
    timers: VersionedMap.empty(),
    held: [],
  };
}

function withDefaults(channels: VersionedMap<unknown>, definition: FlowDefinition): VersionedMap<unknown> {
  let result = channels;
  for (const [name, channel] of Object.entries(definition.channels)) {
    if (channel.default !== undefined && !result.has(name)) result = result.set(name, channel.default);
  }
  return result;
}

function broken({ type, i }: FlowEvent, what: string): MailerError {
  return new MailerError("broken_history", `event ${i}, ${type}, ${what}`, {
    hint: "the log is damaged: look at it as it is, or fork from before this event",
  });
}
