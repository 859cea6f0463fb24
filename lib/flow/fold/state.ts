/**
 * The state of an execution: what its events add up to.
 *
 * S1 A state never changes. The next one shares all that stayed the same; what can grow is kept in
 *    {@link VersionedMap}s, so a step costs the same however many items, signals or ids there are.
 * S2 Nothing in it comes from elsewhere than events and the definition: it can be thrown away and folded again.
 *
 * @module
 */
import type { NodeError } from "../definition/types.ts";
import type { ClosePolicy, FailureReason, ParentRef, Segment, TimerPurpose } from "./events.ts";
import type { Fields } from "./fields.ts";
import { childId } from "./ids.ts";
import { IdMemory, type Queue } from "./queue.ts";
import { VersionedMap } from "./versioned_map.ts";

/** What users see of how an execution stands. */
export type Status = "running" | "waiting" | "completed" | "failed" | "cancelled";

/** How far an execution is: `delayed` has not entered its first node yet. */
export type Phase = "delayed" | "running" | "completed" | "failed" | "cancelled";

/** How a branch stands. */
export type BranchStatus = "pending" | "completed" | "failed" | "cancelled";

/** Work of a task or of an item of a map, until it is settled. */
export interface Task {
  /** Id of the node, or `node#index`. */
  readonly key: string;
  /** Its node. */
  readonly node: string;
  /** Kind of worker. */
  readonly kind: string;
  /** Position of the item. */
  readonly index?: number;
  /** Fan-out or map it belongs to. */
  readonly owner?: string;
  /** One for each visit, resumption and fork; retries keep it. */
  readonly generation: number;
  /** From 1 on. */
  readonly attempt: number;
  /** `scheduled` waits for an answer, `retrying` for its time, `interrupted` for a person. */
  readonly status: "scheduled" | "retrying" | "interrupted";
  /** When the first attempt of the generation was scheduled, ms. */
  readonly since: number;
  /** Timer of its time-out or its retry. */
  readonly timer?: string;
  /** Answer to the interrupt, boxed as it may be null. */
  readonly resume?: { readonly value: unknown };
  /** What it asked when it was interrupted. */
  readonly interrupt?: { readonly payload: unknown };
  /** Last progress of the attempt before. */
  readonly progress?: { readonly value: unknown };
  /** Value of its concurrency limit's key. */
  readonly concurrencyKey?: string;
  /** Value of its rate limit's key. */
  readonly rateKey?: string;
}

/** A fan-out whose join has not settled. How its branches stand is in {@link State.branches}. */
export interface Fan {
  /** The fan-out. */
  readonly node: string;
  /** The join that closes it. */
  readonly join: string;
  /** In listed order. */
  readonly branches: readonly string[];
}

/** A map that has not settled. */
export interface MapRun {
  /** The map. */
  readonly node: string;
  /** What it goes over. */
  readonly items: readonly unknown[];
  /** Most items under way at once. */
  readonly maxParallel: number;
  /** Index of the first item that was not started. */
  readonly next: number;
  /** Results by index. */
  readonly outputs: VersionedMap<unknown>;
}

/** An await that is open. */
export interface Await {
  /** The await. */
  readonly node: string;
  /** What it waits for. */
  readonly signals: readonly string[];
  /** Whether one of several is enough. */
  readonly policy: "all" | "any";
  /** Timer of its time-out. */
  readonly timer: string;
  /** Payloads of the signals that have come, by name. */
  readonly received: Readonly<Record<string, unknown>>;
}

/** A sleep that is open. */
export interface Sleep {
  /** The sleep. */
  readonly node: string;
  /** Its end, ms. */
  readonly at: number;
  /** Timer of its end. */
  readonly timer: string;
}

/** An execution started by this one that has not ended. */
export interface Child {
  /** Id of its execution. */
  readonly childId: string;
  /** Its number here. */
  readonly n: number;
  /** Id of the node, or `node#index`. */
  readonly key: string;
  /** Node it was started by. */
  readonly node: string;
  /** Fan-out or map it belongs to. */
  readonly owner?: string;
  /** Position of the item. */
  readonly index?: number;
  /** Name of its flow. */
  readonly flow: string;
  /** What it was started with. */
  readonly input: Fields;
  /** What becomes of it when nobody waits for it any more. */
  readonly policy: ClosePolicy;
}

/** A timer that has not fired. */
export interface Timer {
  /** Its id in the execution. */
  readonly id: string;
  /** Its number. */
  readonly n: number;
  /** When it is due, ms. */
  readonly at: number;
  /** What it is for. */
  readonly purpose: TimerPurpose;
  /** Task it is about. */
  readonly key?: string;
  /** Node it is about. */
  readonly node?: string;
  /** Generation of the task it is about. */
  readonly generation?: number;
  /** Attempt it ends, or begins. */
  readonly attempt?: number;
}

/** A signal nobody has taken yet. */
export interface BufferedSignal {
  /** Tells repetitions. */
  readonly id: string;
  /** What it brought. */
  readonly payload: unknown;
  /** Index of the event that brought it. */
  readonly i: number;
}

/** Why an execution failed. */
export interface Failure {
  /** One sentence. */
  readonly error: string;
  /** What kind of failure it is. */
  readonly reason: FailureReason;
  /** Node it happened at. */
  readonly node?: string;
}

/** The state of an execution. */
export interface State {
  /** Id of the execution. */
  readonly execId: string;
  /** Name of its flow. */
  readonly flow: string;
  /** Version of its flow. */
  readonly flowHash: string;
  /** What it was started with. */
  readonly input: Fields;
  /** Who started it. */
  readonly parent?: ParentRef;
  /** What it is found by. */
  readonly attrs: Readonly<Record<string, string>>;
  /** How far it is. */
  readonly phase: Phase;
  /** When it began, ms. */
  readonly createdAt: number;
  /** Time of the last event, ms. */
  readonly updatedAt: number;
  /** When it ended, ms. */
  readonly endedAt?: number;
  /** When it is to have ended, ms. */
  readonly deadlineAt?: number;
  /** Only while it is paused. */
  readonly paused?: { readonly since: number; readonly reason?: string } | undefined;
  /** Ways on that wait for the pause to end: nodes, or `$end`. */
  readonly held: readonly string[];
  /** Index of the last event. */
  readonly events: number;
  /** Index of the event the live log begins with. */
  readonly base: number;
  /** Pieces of its history that are no longer in the live log. */
  readonly segments: readonly Segment[];
  /** Last number given to a generation, a child or a timer. */
  readonly n: number;
  /** Entries of nodes. */
  readonly steps: number;
  /** The node that settled last. */
  readonly lastNode?: string;
  /** Of an execution that completed; absent = none. */
  readonly output?: unknown;
  /** Of an execution that failed. */
  readonly failure?: Failure;
  /** Of an execution that was cancelled. */
  readonly cancelReason?: string;
  /** Execution it is a fork of. */
  readonly forkedFrom?: string;
  /** Where that was cut. */
  readonly forkSeq?: number;

  /** State that tasks share. */
  readonly channels: VersionedMap<unknown>;
  /** Newest output of each node. */
  readonly results: VersionedMap<unknown>;
  /** Entries by node. */
  readonly visits: VersionedMap<number>;
  /** Newest payload of each signal that was taken. */
  readonly signals: VersionedMap<unknown>;
  /** How the branches of the last fan-out stand. */
  readonly branches: VersionedMap<BranchStatus>;
  /** What was used, by counter. */
  readonly counters: VersionedMap<number>;
  /** What went wrong at nodes that have not succeeded since. */
  readonly errors: VersionedMap<NodeError>;

  /** By key. */
  readonly tasks: VersionedMap<Task>;
  /** By id of the fan-out. */
  readonly fans: VersionedMap<Fan>;
  /** By node. */
  readonly maps: VersionedMap<MapRun>;
  /** By node. */
  readonly awaits: VersionedMap<Await>;
  /** By node. */
  readonly sleeps: VersionedMap<Sleep>;
  /** By id of the child. */
  readonly children: VersionedMap<Child>;
  /** By id. */
  readonly timers: VersionedMap<Timer>;

  /** Signals nobody has taken yet, by name. */
  readonly inbox: VersionedMap<Queue<BufferedSignal>>;
  /** Ids of signals seen lately. */
  readonly signalIds: IdMemory;
  /** Ids of updates seen lately. */
  readonly updateIds: IdMemory;
}

/** A state in which nothing has happened. */
export function emptyState(
  who: Pick<State, "execId" | "flow" | "flowHash" | "input">,
  time: number,
): State {
  return {
    ...who,
    attrs: {},
    phase: "running",
    createdAt: time,
    updatedAt: time,
    held: [],
    events: 0,
    base: 1,
    segments: [],
    n: 0,
    steps: 0,
    channels: VersionedMap.empty(),
    results: VersionedMap.empty(),
    visits: VersionedMap.empty(),
    signals: VersionedMap.empty(),
    branches: VersionedMap.empty(),
    counters: VersionedMap.empty(),
    errors: VersionedMap.empty(),
    tasks: VersionedMap.empty(),
    fans: VersionedMap.empty(),
    maps: VersionedMap.empty(),
    awaits: VersionedMap.empty(),
    sleeps: VersionedMap.empty(),
    children: VersionedMap.empty(),
    timers: VersionedMap.empty(),
    inbox: VersionedMap.empty(),
    signalIds: IdMemory.of([]),
    updateIds: IdMemory.of([]),
  };
}

/** Whether the execution has ended. */
export function hasEnded(state: State): boolean {
  return state.phase !== "running" && state.phase !== "delayed";
}

/**
 * How the execution stands. `waiting`: nothing is under way but interrupted tasks, awaits, sleeps, a delayed start or a
 * way on that a pause holds.
 */
export function statusOf(state: State): Status {
  const { phase } = state;
  if (phase !== "running") return phase === "delayed" ? "waiting" : phase;
  if (state.children.size > 0 || state.maps.size > 0) return "running";
  const tasks = state.tasks.peek();
  for (const key in tasks) if (tasks[key]!.status !== "interrupted") return "running";
  const waits = state.tasks.size + state.awaits.size + state.sleeps.size + state.held.length;
  return waits > 0 ? "waiting" : "running";
}

/** How many signals nobody has taken, by name. */
export function unreadSignals(state: State): Readonly<Record<string, number>> | undefined {
  if (state.inbox.size === 0) return undefined;
  return Object.fromEntries(state.inbox.keys().map((name) => [name, state.inbox.get(name)!.size]));
}

/**
 * Ids of the children that are to be cancelled with whom they belong to, in the order they were started. Those of the
 * execution this one is a fork of are not ours to cancel.
 */
export function childrenToCancel(state: State, owner?: string): string[] {
  if (state.children.size === 0) return [];
  return state.children.values()
    .filter(({ policy, owner: its, childId: id, n }) =>
      policy === "cancel" && (owner === undefined || its === owner) && id === childId(state.execId, n)
    )
    .sort((a, b) => a.n - b.n)
    .map((child) => child.childId);
}
