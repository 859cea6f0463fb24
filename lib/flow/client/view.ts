/**
 * Executions as users see them: plain JSON.
 *
 * V1 A view shares nothing with the state that changes later, and says nothing the state does not say.
 *
 * @module
 */
import type { NodeError } from "../definition/mod.ts";
import type { Execution } from "../engine/mod.ts";
import { type ChildStatus, type Failure, type State, type Status, statusOf } from "../fold/mod.ts";
import type { Listed, Summary } from "../store/port.ts";

/** An await that is open. */
export interface OpenAwait {
  /** The node. */
  readonly node: string;
  /** What it waits for. */
  readonly signals: readonly string[];
  /** Whether one of several is enough. */
  readonly policy: "all" | "any";
  /** Payloads of the signals that have come, by name. */
  readonly received: Readonly<Record<string, unknown>>;
  /** When it gives up, ms. */
  readonly until: number | undefined;
}

/** A task that waits for a person. */
export interface OpenInterrupt {
  /** The node. */
  readonly node: string;
  /** Id of the node, or `node#index`. */
  readonly key: string;
  /** What is asked. */
  readonly payload: unknown;
}

/** A sleep that is open. */
export interface OpenSleep {
  /** The node. */
  readonly node: string;
  /** Its end, ms. */
  readonly until: number;
}

/** A task that waits for its next attempt. */
export interface OpenRetry {
  /** The node. */
  readonly node: string;
  /** Id of the node, or `node#index`. */
  readonly key: string;
  /** Number of the attempt that failed. */
  readonly attempt: number;
  /** When the next one begins, ms. */
  readonly at: number | undefined;
}

/** A task that a worker has, or is to get. */
export interface OpenTask {
  /** The node. */
  readonly node: string;
  /** Id of the node, or `node#index`. */
  readonly key: string;
  /** Kind of worker. */
  readonly kind: string;
  /** From 1 on. */
  readonly attempt: number;
  /** When it is given up, ms. */
  readonly until: number | undefined;
}

/** A child that has not ended. */
export interface OpenChild {
  /** The node. */
  readonly node: string;
  /** Id of its execution. */
  readonly id: string;
  /** Name of its flow. */
  readonly flow: string;
}

/** What an execution waits for. All lists are empty where it has ended. */
export interface Waiting {
  /** Work under way, or queued. */
  readonly tasks: readonly OpenTask[];
  /** Tasks that wait for their next attempt. */
  readonly retries: readonly OpenRetry[];
  /** Tasks that wait for a person. */
  readonly interrupts: readonly OpenInterrupt[];
  /** Awaits. */
  readonly awaits: readonly OpenAwait[];
  /** Sleeps. */
  readonly sleeps: readonly OpenSleep[];
  /** Children. */
  readonly children: readonly OpenChild[];
  /** When a delayed start begins, ms. */
  readonly start?: number;
  /** Ways on that a pause holds: nodes, or `$end`. */
  readonly held: readonly string[];
}

/** An execution. */
export interface ExecutionView {
  /** Its id. */
  readonly id: string;
  /** Name of its flow. */
  readonly flow: string;
  /** Version of its flow. */
  readonly flowHash: string;
  /** How it stands. */
  readonly status: Status;
  /** Whether it is paused. */
  readonly paused: boolean;
  /** What it was started with. */
  readonly input: unknown;
  /** Of an execution that completed: its output, `null` where it has none. */
  readonly output?: unknown;
  /** Why it failed. */
  readonly failure?: Failure;
  /** Why it was cancelled. */
  readonly cancelReason?: string;
  /** State that tasks share. */
  readonly channels: Readonly<Record<string, unknown>>;
  /** Newest output of each node. */
  readonly results: Readonly<Record<string, unknown>>;
  /** What was used, by counter. */
  readonly counters: Readonly<Record<string, number>>;
  /** Entries by node. */
  readonly visits: Readonly<Record<string, number>>;
  /** What went wrong at nodes that have not succeeded since. */
  readonly errors: Readonly<Record<string, NodeError>>;
  /** Newest payload of each signal that was taken. */
  readonly signals: Readonly<Record<string, unknown>>;
  /** How many signals nobody has taken, by name. */
  readonly unread: Readonly<Record<string, number>>;
  /** What it is found by. */
  readonly attrs: Readonly<Record<string, string>>;
  /** What it waits for. */
  readonly waiting: Waiting;
  /** ms */
  readonly createdAt: number;
  /** ms */
  readonly updatedAt: number;
  /** ms */
  readonly endedAt?: number;
  /** When it is to have ended, ms. */
  readonly deadlineAt?: number;
  /** Who started it. */
  readonly parent?: { readonly id: string; readonly node: string };
  /** Execution it is a fork of, and where that was cut. */
  readonly forkedFrom?: { readonly id: string; readonly seq: number };
  /** Entries of nodes. */
  readonly steps: number;
  /** Events so far. */
  readonly events: number;
  /** Sequence of the last decision. */
  readonly seq: number;
  /** Whether it is archived. */
  readonly archived: boolean;
  /** It is parked: what is shown is how it was before what cannot be carried out, but for its status. */
  readonly quarantined?: true;
}

/** How an execution ended. */
export type EndStatus = ChildStatus;

/** The view of an execution. */
export function viewOf({ state, head }: Execution): ExecutionView {
  const { archived, quarantined, status, endedAt } = head.summary;
  const view = stateView(state, head.seq, archived === true);
  if (quarantined !== true) return view;
  return { ...view, status: status as Status, ...(endedAt === undefined ? {} : { endedAt }), quarantined };
}

/** The view of a state. */
export function stateView(state: State, seq: number, archived: boolean): ExecutionView {
  const { parent, forkedFrom, forkSeq, failure, cancelReason, endedAt, deadlineAt } = state;
  return {
    id: state.execId,
    flow: state.flow,
    flowHash: state.flowHash,
    status: statusOf(state),
    paused: state.paused !== undefined,
    input: state.input,
    ...(state.phase === "completed" ? { output: state.output ?? null } : {}),
    ...(failure === undefined ? {} : { failure }),
    ...(cancelReason === undefined ? {} : { cancelReason }),
    channels: state.channels.toObject(),
    results: state.results.toObject(),
    counters: state.counters.toObject(),
    visits: state.visits.toObject(),
    errors: state.errors.toObject(),
    signals: state.signals.toObject(),
    unread: Object.fromEntries(state.inbox.keys().map((name) => [name, state.inbox.get(name)!.size])),
    attrs: state.attrs,
    waiting: waitingOf(state),
    createdAt: state.createdAt,
    updatedAt: state.updatedAt,
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(deadlineAt === undefined ? {} : { deadlineAt }),
    ...(parent === undefined ? {} : { parent: { id: parent.exec_id, node: parent.node } }),
    ...(forkedFrom === undefined ? {} : { forkedFrom: { id: forkedFrom, seq: forkSeq! } }),
    steps: state.steps,
    events: state.events,
    seq,
    archived,
  };
}

function waitingOf(state: State): Waiting {
  const at = (timer: string | undefined): number | undefined =>
    timer === undefined ? undefined : state.timers.get(timer)?.at;
  const tasks = state.tasks.values();
  const start = state.timers.values().find(({ purpose }) => purpose === "start")?.at;
  return {
    tasks: tasks.filter(({ status }) => status === "scheduled")
      .map(({ node, key, kind, attempt, timer }) => ({ node, key, kind, attempt, until: at(timer) })),
    retries: tasks.filter(({ status }) => status === "retrying")
      .map(({ node, key, attempt, timer }) => ({ node, key, attempt, at: at(timer) })),
    interrupts: tasks.filter(({ status }) => status === "interrupted")
      .map(({ node, key, interrupt }) => ({ node, key, payload: interrupt?.payload ?? null })),
    awaits: state.awaits.values()
      .map(({ timer, ...open }) => ({ ...open, until: at(timer) })),
    sleeps: state.sleeps.values().map(({ node, at }) => ({ node, until: at })),
    children: state.children.values().map(({ node, childId, flow }) => ({ node, id: childId, flow })),
    ...(start === undefined ? {} : { start }),
    held: state.held,
  };
}

/** An execution in a list. */
export interface ListedExecution {
  /** Its id. */
  readonly id: string;
  /** Name of its flow. */
  readonly flow: string;
  /** Version of its flow. */
  readonly flowHash: string;
  /** How it stands. */
  readonly status: Status;
  /** Whether it is paused. */
  readonly paused: boolean;
  /** ms */
  readonly createdAt: number;
  /** ms */
  readonly updatedAt: number;
  /** ms */
  readonly endedAt?: number;
  /** What it is found by. */
  readonly attrs: Readonly<Record<string, string>>;
  /** Id of the execution that started it. */
  readonly parent?: string;
  /** Execution it is a fork of. */
  readonly forkedFrom?: string;
  /** Why it failed, one sentence. */
  readonly error?: string;
  /** What kind of failure, or why it was cancelled. */
  readonly reason?: string;
  /** Sequence of the last decision. */
  readonly seq: number;
  /** Whether it is archived. */
  readonly archived: boolean;
  /** Whether it is parked because something of it cannot be carried out. */
  readonly quarantined: boolean;
}

/** The line of a list. */
export function listedView({ execId, seq, summary }: Listed): ListedExecution {
  const { flow, flowHash, status, createdAt, updatedAt, endedAt, attrs } = summary;
  const { parent, forked_from: forkedFrom, error, reason } = moreOf(summary);
  return {
    id: execId,
    flow,
    flowHash,
    status: status as Status,
    paused: summary.more?.["paused"] === true,
    createdAt,
    updatedAt,
    ...(endedAt === undefined ? {} : { endedAt }),
    attrs,
    ...(parent === undefined ? {} : { parent }),
    ...(forkedFrom === undefined ? {} : { forkedFrom }),
    ...(error === undefined ? {} : { error }),
    ...(reason === undefined ? {} : { reason }),
    seq,
    archived: summary.archived === true,
    quarantined: summary.quarantined === true,
  };
}

/** What the engine adds to what the store itself knows of. */
function moreOf({ more = {} }: Summary): Partial<Record<string, string>> {
  return more as Partial<Record<string, string>>;
}
