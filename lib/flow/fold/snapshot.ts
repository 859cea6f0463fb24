/**
 * A state as JSON: for snapshots, forks and continued histories. What was written comes back the same, digit for digit.
 *
 * @module
 */
import type { NodeError } from "../definition/types.ts";
import { MailerError } from "../../errors.ts";
import { PARENT, SEGMENT } from "./events.ts";
import {
  count,
  type Fields,
  isObject,
  list,
  listOf,
  nested,
  numbers,
  object,
  oneOf,
  optional,
  type Reader,
  readShape,
  required,
  type Shape,
  text,
  texts,
} from "./fields.ts";
import { IdMemory, Queue } from "./queue.ts";
import type {
  Await,
  BranchStatus,
  BufferedSignal,
  Child,
  Fan,
  MapRun,
  Phase,
  Sleep,
  State,
  Task,
  Timer,
} from "./state.ts";
import { VersionedMap } from "./versioned_map.ts";

/** Version of the form. */
const VERSION = 1;

/** The state as a JSON value; shares the values it holds. */
export function encodeState(state: State): Fields {
  const {
    channels,
    results,
    visits,
    signals,
    branches,
    counters,
    errors,
    tasks,
    fans,
    maps,
    awaits,
    sleeps,
    children,
    timers,
    inbox,
    signalIds,
    updateIds,
    paused,
    ...scalars
  } = state;
  return {
    v: VERSION,
    ...scalars,
    ...(paused === undefined ? {} : { paused }),
    channels: channels.toObject(),
    results: results.toObject(),
    visits: visits.toObject(),
    signals: signals.toObject(),
    branches: branches.toObject(),
    counters: counters.toObject(),
    errors: errors.toObject(),
    tasks: tasks.values(),
    fans: fans.values(),
    maps: maps.values().map((run) => ({ ...run, outputs: run.outputs.toObject() })),
    awaits: awaits.values(),
    sleeps: sleeps.values(),
    children: children.values(),
    timers: timers.values(),
    inbox: Object.fromEntries(inbox.keys().map((name) => [name, inbox.get(name)!.items()])),
    signalIds: signalIds.entries(),
    updateIds: updateIds.entries(),
  };
}

/**
 * The state of a JSON value.
 *
 * @throws {MailerError} `invalid_state` naming the first part that does not fit; `unknown_state` for a version this program
 * does not know.
 */
export function decodeState(value: unknown): State {
  if (isObject(value) && value["v"] !== VERSION) {
    throw new MailerError("unknown_state", `version ${JSON.stringify(value["v"])} of states is unknown`, {
      hint: "it was written by a newer version; the log can be folded without it",
    });
  }
  const read = readShape(value, STATE, "invalid_state", "the state");
  return {
    ...read,
    channels: VersionedMap.of(read.channels),
    results: VersionedMap.of(read.results),
    visits: VersionedMap.of(read.visits),
    signals: VersionedMap.of(read.signals),
    branches: VersionedMap.of(read.branches as Record<string, BranchStatus>),
    counters: VersionedMap.of(read.counters),
    errors: VersionedMap.of(read.errors as Record<string, NodeError>),
    tasks: indexed(read.tasks as readonly Task[], (task) => task.key),
    fans: indexed(read.fans as readonly Fan[], (fan) => fan.node),
    maps: indexed((read.maps as readonly EncodedMap[]).map(mapOf), (run) => run.node),
    awaits: indexed(read.awaits as readonly Await[], (open) => open.node),
    sleeps: indexed(read.sleeps as readonly Sleep[], (open) => open.node),
    children: indexed(read.children as readonly Child[], (child) => child.childId),
    timers: indexed(read.timers as readonly Timer[], (timer) => timer.id),
    inbox: VersionedMap.of(Object.fromEntries(
      Object.entries(read.inbox).map(([name, items]) => [name, Queue.of(items as BufferedSignal[])]),
    )),
    signalIds: IdMemory.of(read.signalIds as [string, number][]),
    updateIds: IdMemory.of(read.updateIds as [string, number][]),
  };
}

type EncodedMap = Omit<MapRun, "outputs"> & { readonly outputs: Record<string, unknown> };

function mapOf(run: EncodedMap): MapRun {
  return { ...run, outputs: VersionedMap.of(run.outputs) };
}

function indexed<T>(items: readonly T[], keyOf: (item: T) => string): VersionedMap<T> {
  return VersionedMap.of(Object.fromEntries(items.map((item) => [keyOf(item), item])));
}

/** What {@link encodeState} writes. */
type EncodedState =
  & Omit<State, Collections>
  & { readonly [K in "channels" | "results" | "signals" | "branches" | "errors" | "inbox"]: Fields }
  & { readonly [K in "visits" | "counters"]: Readonly<Record<string, number>> }
  & { readonly [K in Exclude<Collections, Objects>]: readonly unknown[] };
type Objects = "channels" | "results" | "visits" | "signals" | "branches" | "counters" | "errors" | "inbox";
type Collections =
  | Objects
  | "tasks"
  | "fans"
  | "maps"
  | "awaits"
  | "sleeps"
  | "children"
  | "timers"
  | "signalIds"
  | "updateIds";

const phase = oneOf<Phase>("delayed", "running", "completed", "failed", "cancelled");
const shaped = <T>(): Reader<T> => object as Reader<unknown> as Reader<T>;
const objects = required(listOf(object));
const lists = required(listOf(list));

const STATE: Shape<EncodedState> = {
  execId: required(text),
  flow: required(text),
  flowHash: required(text),
  input: required(object),
  parent: optional(nested(PARENT)),
  attrs: required(texts),
  phase: required(phase),
  createdAt: required(time),
  updatedAt: required(time),
  endedAt: optional(time),
  deadlineAt: optional(time),
  paused: optional(shaped()),
  held: required(listOf(text)),
  events: required(count),
  base: required(count),
  segments: required(listOf(nested(SEGMENT))),
  n: required(count),
  steps: required(count),
  lastNode: optional(text),
  output: optional((value) => value),
  failure: optional(shaped()),
  cancelReason: optional(text),
  forkedFrom: optional(text),
  forkSeq: optional(count),
  channels: required(object),
  results: required(object),
  visits: required(numbers),
  signals: required(object),
  branches: required(object),
  counters: required(numbers),
  errors: required(object),
  tasks: objects,
  fans: objects,
  maps: objects,
  awaits: objects,
  sleeps: objects,
  children: objects,
  timers: objects,
  inbox: required(object),
  signalIds: lists,
  updateIds: lists,
};

function time(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
