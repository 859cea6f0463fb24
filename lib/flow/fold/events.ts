/**
 * Events: what is written down of an execution, and all that its state is made of.
 *
 * E1 An event is never changed once it is stored; another meaning gets another type or another `v`.
 * E2 What is unknown is refused: a reader that passed over it would fold another state.
 * E3 Inputs, outputs, payloads, items and writes keep every digit of their numbers.
 * E4 Times are RFC 3339 text where an event is JSON, milliseconds since the epoch here.
 *
 * A *decision* is the events one command led to: stored, read, shown and cut as one.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { parseJson, stringifyJson } from "../../json.ts";
import {
  any,
  count,
  type Fields,
  flag,
  instant,
  instantText,
  isObject,
  list,
  listOf,
  nested,
  numbers,
  object,
  oneOf,
  optional,
  readShape,
  required,
  type Shape,
  text,
  texts,
} from "./fields.ts";

/** Who started a child. */
export interface ParentRef {
  /** Id of the parent's execution. */
  readonly exec_id: string;
  /** Node of the parent. */
  readonly node: string;
  /** Number of the child in its parent. */
  readonly child_n: number;
}

/** A piece of history that was moved out of the live log. */
export interface Segment {
  /** Name of the object that holds it. */
  readonly object: string;
  /** Index of its first event. */
  readonly first_index: number;
  /** Index of its last event. */
  readonly last_index: number;
  /** Sequence of its first decision. */
  readonly first_seq: number;
  /** Sequence of its last decision. */
  readonly last_seq: number;
}

/** Why an attempt, a node or an execution failed. */
export type FailureReason =
  | "error"
  | "timeout"
  | "heartbeat_timeout"
  | "invalid_output"
  | "delivery_failed"
  | "budget_exceeded"
  | "max_steps"
  | "await_timeout"
  | "join_failed"
  | "child_failed"
  | "expression_error"
  | "unknown_flow"
  | "decision_too_large"
  | "deadline_exceeded"
  | "failed";

/** What a timer is for. */
export type TimerPurpose = "retry" | "timeout" | "await" | "sleep" | "start" | "deadline";

/** What becomes of a child when its parent no longer wants it. */
export type ClosePolicy = "cancel" | "abandon";

/** Data of each type of event. */
export interface EventData {
  /** It began. */
  readonly ExecutionStarted: {
    readonly exec_id: string;
    readonly flow: string;
    readonly flow_hash: string;
    readonly input: Fields;
    readonly parent?: ParentRef;
    readonly attrs?: Readonly<Record<string, string>>;
    /** The first node is entered then, not at once. */
    readonly start_at?: number;
  };
  /** It began as a copy of another execution. */
  readonly ExecutionForked: {
    readonly exec_id: string;
    readonly from: string;
    readonly seq: number;
    readonly state: Fields;
  };
  /** The live log was cut; what came before is in a segment. */
  readonly ExecutionContinued: { readonly state: Fields; readonly segment: Segment };
  /** It goes on by another version of its flow. */
  readonly ExecutionMigrated: {
    readonly flow_hash: string;
    /** New names of nodes, by their old ones. */
    readonly nodes?: Readonly<Record<string, string>>;
  };
  /** The way on, retries and waiting are held. */
  readonly ExecutionPaused: { readonly reason?: string };
  /** They are held no longer. */
  readonly ExecutionUnpaused: Readonly<Record<string, never>>;
  /** It ended well. */
  readonly ExecutionCompleted: { readonly output?: unknown; readonly unread?: UnreadSignals };
  /** It failed. */
  readonly ExecutionFailed: {
    readonly error: string;
    readonly reason: FailureReason;
    readonly node?: string;
    readonly cancel_children: readonly string[];
    readonly unread?: UnreadSignals;
  };
  /** It was cancelled. */
  readonly ExecutionCancelled: {
    readonly reason?: string;
    readonly cancel_children: readonly string[];
    readonly unread?: UnreadSignals;
  };
  /** A node was entered: a visit and a step. */
  readonly NodeEntered: { readonly node: string };
  /** The way on waits for the execution to be unpaused: a node, or `$end`. */
  readonly RouteHeld: { readonly to: string };
  /** An attempt is to be made by a worker. */
  readonly NodeScheduled: {
    readonly key: string;
    readonly node: string;
    readonly kind: string;
    readonly index?: number;
    readonly generation: number;
    readonly attempt: number;
    readonly owner?: string;
    readonly resume?: unknown;
    /** Values of the limits' keys. */
    readonly concurrency_key?: string;
    readonly rate_key?: string;
  };
  /** An attempt succeeded. */
  readonly NodeCompleted: {
    readonly key: string;
    readonly node: string;
    readonly generation: number;
    readonly attempt: number;
    readonly output?: Fields;
    readonly writes?: Fields;
    readonly next?: string;
    readonly usage?: Usage;
    readonly cached?: boolean;
    readonly cache_key?: string;
  };
  /** An attempt failed. */
  readonly NodeFailed: {
    readonly key: string;
    readonly node: string;
    readonly generation: number;
    readonly attempt: number;
    readonly error: string;
    readonly reason: FailureReason;
    /** Name of the error, where the worker gave one. */
    readonly name?: string;
    readonly will_retry: boolean;
    readonly usage?: Usage;
    /** Last progress of the attempt, handed to the next one. */
    readonly progress?: unknown;
  };
  /** An attempt waits for a person. */
  readonly NodeInterrupted: {
    readonly key: string;
    readonly node: string;
    readonly generation: number;
    readonly payload?: unknown;
    readonly usage?: Usage;
  };
  /** Work nobody waits for any more. */
  readonly NodeCancelled: { readonly key: string; readonly node: string; readonly reason: string };
  /** Which way a choice took; nothing more. */
  readonly ChoiceEvaluated: {
    readonly node: string;
    /** Position of the rule that was taken, or that failed. */
    readonly rule: number;
    readonly to?: string;
    readonly error?: string;
  };
  /** Branches began. */
  readonly FanoutStarted: {
    readonly node: string;
    readonly join: string;
    readonly branches: readonly string[];
  };
  /** A fan-out is over. */
  readonly JoinCompleted: {
    readonly node: string;
    readonly fanout: string;
    readonly succeeded: readonly string[];
    readonly failed: readonly string[];
    readonly cancelled: readonly string[];
    readonly ok: boolean;
    readonly output: Fields;
    readonly error?: string;
    readonly cancel_children?: readonly string[];
  };
  /** Signals are waited for. */
  readonly AwaitStarted: {
    readonly node: string;
    /** Where there is one. */
    readonly signal?: string;
    /** Where there are several. */
    readonly signals?: readonly string[];
    /** Whether one of several is enough. */
    readonly policy?: "all" | "any";
    readonly timer_id: string;
  };
  /** They did not come in time. */
  readonly AwaitTimedOut: { readonly node: string; readonly to?: string };
  /** A signal came. */
  readonly SignalReceived: { readonly name: string; readonly id: string; readonly payload?: unknown };
  /** An await took it. */
  readonly SignalConsumed: { readonly node: string; readonly name: string; readonly id: string };
  /** Channels were written from outside. */
  readonly ChannelsUpdated: { readonly id: string; readonly writes: Fields };
  /** A map began. */
  readonly MapStarted: {
    readonly node: string;
    readonly items: readonly unknown[];
    readonly max_parallel: number;
  };
  /** All its items succeeded. */
  readonly MapCompleted: { readonly node: string };
  /** One of its items failed for good. */
  readonly MapAborted: {
    readonly node: string;
    readonly index: number;
    readonly cancel_children?: readonly string[];
  };
  /** Another execution was started. */
  readonly ChildStarted: {
    readonly node: string;
    readonly child_id: string;
    readonly child_n: number;
    readonly flow: string;
    readonly input: Fields;
    readonly policy: ClosePolicy;
    readonly key: string;
    readonly owner?: string;
    readonly index?: number;
    /** Child of the execution this one is a fork of, in whose place this one is. */
    readonly replaces?: string;
  };
  /** It ended. */
  readonly ChildCompleted: {
    readonly node: string;
    readonly key: string;
    readonly child_id: string;
    readonly status: ChildStatus;
    readonly output?: unknown;
    readonly error?: string;
    readonly counters?: Usage;
  };
  /** A timer was set. */
  readonly TimerScheduled: {
    readonly id: string;
    readonly n: number;
    readonly at: number;
    readonly purpose: TimerPurpose;
    readonly key?: string;
    readonly node?: string;
    readonly generation?: number;
    readonly attempt?: number;
  };
  /** It fired. */
  readonly TimerFired: { readonly id: string };
}

/** Amounts by counter. */
export type Usage = Readonly<Record<string, number>>;
/** How many signals nobody had waited for, by name. */
export type UnreadSignals = Readonly<Record<string, number>>;
/** How a child ended. */
export type ChildStatus = "completed" | "failed" | "cancelled";

/** Types of events. */
export type EventType = keyof EventData;

/** Data of a type of event. */
export type DataOf<T extends EventType> = EventData[T];

/** An event of a type. */
export interface EventOf<T extends EventType> {
  /** What happened. */
  readonly type: T;
  /** Version of the form of its data. */
  readonly v: 1;
  /** When, ms since the epoch. */
  readonly time: number;
  /** Number of the event in its execution, from 1 on, without gaps. */
  readonly i: number;
  /** Command that led to it. */
  readonly cmd_id?: string;
  /** W3C trace context. */
  readonly trace?: string;
  /** What there is to say about it. */
  readonly data: EventData[T];
}

/** Any event. */
export type FlowEvent = { [T in EventType]: EventOf<T> }[EventType];

/** @ignore Who started a child, as it is read. */
export const PARENT: Shape<ParentRef> = {
  exec_id: required(text),
  node: required(text),
  child_n: required(count),
};
/** @ignore A segment, as it is read. */
export const SEGMENT: Shape<Segment> = {
  object: required(text),
  first_index: required(count),
  last_index: required(count),
  first_seq: required(count),
  last_seq: required(count),
};
const reason = text as (value: unknown) => FailureReason | undefined;
const childStatus = oneOf<ChildStatus>("completed", "failed", "cancelled");
const attemptOf = { key: required(text), node: required(text), generation: required(count) };
const ending = { unread: optional(numbers) };

const SHAPES: { readonly [T in EventType]: Shape<EventData[T]> } = {
  ExecutionStarted: {
    exec_id: required(text),
    flow: required(text),
    flow_hash: required(text),
    input: required(object),
    parent: optional(nested(PARENT)),
    attrs: optional(texts),
    start_at: optional(instant),
  },
  ExecutionForked: {
    exec_id: required(text),
    from: required(text),
    seq: required(count),
    state: required(object),
  },
  ExecutionContinued: {
    state: required(object),
    segment: required(nested(SEGMENT)),
  },
  ExecutionMigrated: { flow_hash: required(text), nodes: optional(texts) },
  ExecutionPaused: { reason: optional(text) },
  ExecutionUnpaused: {},
  ExecutionCompleted: { output: optional(any), ...ending },
  ExecutionFailed: {
    error: required(text),
    reason: required(reason),
    node: optional(text),
    cancel_children: required(listOf(text)),
    ...ending,
  },
  ExecutionCancelled: { reason: optional(text), cancel_children: required(listOf(text)), ...ending },
  NodeEntered: { node: required(text) },
  RouteHeld: { to: required(text) },
  NodeScheduled: {
    ...attemptOf,
    kind: required(text),
    index: optional(count),
    attempt: required(count),
    owner: optional(text),
    resume: optional(any),
    concurrency_key: optional(text),
    rate_key: optional(text),
  },
  NodeCompleted: {
    ...attemptOf,
    attempt: required(count),
    output: optional(object),
    writes: optional(object),
    next: optional(text),
    usage: optional(numbers),
    cached: optional(flag),
    cache_key: optional(text),
  },
  NodeFailed: {
    ...attemptOf,
    attempt: required(count),
    error: required(text),
    reason: required(reason),
    name: optional(text),
    will_retry: required(flag),
    usage: optional(numbers),
    progress: optional(any),
  },
  NodeInterrupted: { ...attemptOf, payload: optional(any), usage: optional(numbers) },
  NodeCancelled: { key: required(text), node: required(text), reason: required(text) },
  ChoiceEvaluated: { node: required(text), rule: required(count), to: optional(text), error: optional(text) },
  FanoutStarted: { node: required(text), join: required(text), branches: required(listOf(text)) },
  JoinCompleted: {
    node: required(text),
    fanout: required(text),
    succeeded: required(listOf(text)),
    failed: required(listOf(text)),
    cancelled: required(listOf(text)),
    ok: required(flag),
    output: required(object),
    error: optional(text),
    cancel_children: optional(listOf(text)),
  },
  AwaitStarted: {
    node: required(text),
    signal: optional(text),
    signals: optional(listOf(text)),
    policy: optional(oneOf("all", "any")),
    timer_id: required(text),
  },
  AwaitTimedOut: { node: required(text), to: optional(text) },
  SignalReceived: { name: required(text), id: required(text), payload: optional(any) },
  SignalConsumed: { node: required(text), name: required(text), id: required(text) },
  ChannelsUpdated: { id: required(text), writes: required(object) },
  MapStarted: { node: required(text), items: required(list), max_parallel: required(count) },
  MapCompleted: { node: required(text) },
  MapAborted: { node: required(text), index: required(count), cancel_children: optional(listOf(text)) },
  ChildStarted: {
    node: required(text),
    child_id: required(text),
    child_n: required(count),
    flow: required(text),
    input: required(object),
    policy: required(oneOf("cancel", "abandon")),
    key: required(text),
    owner: optional(text),
    index: optional(count),
    replaces: optional(text),
  },
  ChildCompleted: {
    node: required(text),
    key: required(text),
    child_id: required(text),
    status: required(childStatus),
    output: optional(any),
    error: optional(text),
    counters: optional(numbers),
  },
  TimerScheduled: {
    id: required(text),
    n: required(count),
    at: required(instant),
    purpose: required(oneOf("retry", "timeout", "await", "sleep", "start", "deadline")),
    key: optional(text),
    node: optional(text),
    generation: optional(count),
    attempt: optional(count),
  },
  TimerFired: { id: required(text) },
};

/** All types of events. */
export const EVENT_TYPES: readonly EventType[] = Object.keys(SHAPES) as EventType[];

/** Whether an event ends its execution. */
export function isTerminal(
  event: FlowEvent,
): event is EventOf<"ExecutionCompleted"> | EventOf<"ExecutionFailed"> | EventOf<"ExecutionCancelled"> {
  const { type } = event;
  return type === "ExecutionCompleted" || type === "ExecutionFailed" || type === "ExecutionCancelled";
}

/** JSON text of a decision. */
export function encodeEvents(events: readonly FlowEvent[]): string {
  return stringifyJson(events.map(wireForm));
}

/** The event as its JSON has it. */
function wireForm(event: FlowEvent): unknown {
  const time = instantText(event.time);
  if (event.type === "TimerScheduled") {
    return { ...event, time, data: { ...event.data, at: instantText(event.data.at) } };
  }
  if (event.type === "ExecutionStarted" && event.data.start_at !== undefined) {
    return { ...event, time, data: { ...event.data, start_at: instantText(event.data.start_at) } };
  }
  return { ...event, time };
}

/**
 * Events of a decision.
 *
 * @param source JSON text of {@link encodeEvents}.
 * @throws {MailerError} `not_json`; `unknown_event` for a type or version this program does not know; `invalid_event`.
 */
export function decodeEvents(source: string): FlowEvent[] {
  const value = parseJson(source);
  if (!Array.isArray(value)) throw new MailerError("invalid_event", "a decision is a list of events");
  return value.map(decodeEvent);
}

/**
 * The event of a JSON value.
 *
 * @throws {MailerError} as {@link decodeEvents}.
 */
export function decodeEvent(value: unknown): FlowEvent {
  if (!isObject(value)) throw new MailerError("invalid_event", "an event is an object");
  const { type, v } = value;
  if (typeof type !== "string" || !Object.hasOwn(SHAPES, type)) {
    throw unknown(`the event type ${JSON.stringify(type)} is unknown`);
  }
  if (v !== 1) throw unknown(`version ${JSON.stringify(v)} of the event ${type} is unknown`);
  const envelope = readShape(value, ENVELOPE, "invalid_event", `event ${type}`);
  const shape = SHAPES[type as EventType] as Shape<Fields>;
  const data = readShape(value["data"], shape, "invalid_event", `data of event ${type}`);
  return { type, v, ...envelope, data } as unknown as FlowEvent;
}

const ENVELOPE: Shape<Pick<EventOf<EventType>, "time" | "i" | "cmd_id" | "trace">> = {
  time: required(instant),
  i: required(count),
  cmd_id: optional(text),
  trace: optional(text),
};

function unknown(message: string): MailerError {
  return new MailerError("unknown_event", message, {
    hint: "it was written by a newer version: use that, or one that is newer still",
  });
}
