/**
 * Starting an execution, or joining the one that is there.
 *
 * @module
 */
import type { Evaluate, FlowContext } from "../definition/types.ts";
import { stringifyJson } from "../../json.ts";
import type { CommandData, CommandOf } from "./commands.ts";
import type { Decision } from "./decision.ts";
import { type Fields, isObject } from "./fields.ts";
import { shown } from "./reducers.ts";
import { go } from "./routing.ts";
import { receiveSignal } from "./signals.ts";
import { hasEnded, type State } from "./state.ts";
import { type Refusal, refused, wrongVersion } from "./verdict.ts";

/** Decides a start. */
export function decideStart(
  decision: Decision,
  state: State | undefined,
  command: CommandOf<"start">,
): Refusal | undefined {
  const { data } = command;
  if (state !== undefined) return join(decision, state, data);
  const refusal = begin(decision, command);
  if (refusal !== undefined) return refusal;
  setDeadline(decision, data);
  for (const signal of data.signals ?? []) receiveSignal(decision, signal);
  if (decision.state.phase === "delayed") decision.timer("start", data.start_at!);
  else go(decision, decision.flow.definition.start);
  return undefined;
}

/** Records only that the execution began, for one that fails at once. */
export function startFailed(decision: Decision, command: CommandOf<"start">): Refusal | undefined {
  return begin(decision, command);
}

function join(
  decision: Decision,
  state: State,
  { flow, parent, signals }: CommandData["start"],
): Refusal | undefined {
  if (state.flow !== flow) {
    return refused("conflict", `the id "${state.execId}" belongs to an execution of "${state.flow}"`);
  }
  const isOwn = parent === undefined ||
    (state.parent?.exec_id === parent.exec_id && state.parent.child_n === parent.child_n);
  if (!isOwn) {
    return refused("conflict", `the id "${state.execId}" belongs to an execution with another parent`);
  }
  if (hasEnded(state) || signals === undefined || signals.length === 0) return undefined;
  const refusal = wrongVersion(decision.flow, state);
  if (refusal !== undefined) return refusal;
  for (const signal of signals) if (!decision.ended) receiveSignal(decision, signal);
  return undefined;
}

function begin(decision: Decision, { exec_id, data }: CommandOf<"start">): Refusal | undefined {
  const { flow: { definition, hash, searchAttributes }, now } = decision;
  if (data.flow !== definition.name) {
    return refused("invalid", `the start is of "${data.flow}", the definition that of "${definition.name}"`);
  }
  const input = data.input ?? {};
  if (!isObject(input)) return refused("invalid", `the input is no object but ${shown(input)}`);
  const attrs = attributesOf(searchAttributes, input);
  const delayed = data.start_at !== undefined && data.start_at > now;
  decision.emit("ExecutionStarted", {
    exec_id,
    flow: definition.name,
    flow_hash: hash,
    input,
    ...(data.parent === undefined ? {} : { parent: data.parent }),
    ...(Object.keys(attrs).length === 0 ? {} : { attrs }),
    ...(delayed ? { start_at: data.start_at } : {}),
  });
  return undefined;
}

/** The earlier one of the flow's deadline, which counts from when it sets out, and the one that was asked for. */
function setDeadline(decision: Decision, { start_at, deadline_at }: CommandData["start"]): void {
  const { deadline } = decision.flow.definition;
  const own = deadline === undefined ? Infinity : Math.max(decision.now, start_at ?? 0) + deadline;
  const at = Math.min(own, deadline_at ?? Infinity);
  if (at !== Infinity) decision.timer("deadline", at);
}

/** What the execution is found by; what is null or fails is left out. */
function attributesOf(
  attributes: ReadonlyMap<string, Evaluate>,
  input: Fields,
): Readonly<Record<string, string>> {
  const context: FlowContext = {
    input,
    channels: {},
    results: {},
    visits: {},
    signals: {},
    branches: {},
    counters: {},
    errors: {},
  };
  const found: [string, string][] = [];
  for (const [name, evaluate] of attributes) {
    try {
      const value = evaluate(context);
      if (value !== null) found.push([name, typeof value === "string" ? value : stringifyJson(value)]);
    } catch {
      // An attribute that cannot be worked out is not there to be found by.
    }
  }
  return Object.fromEntries(found);
}
