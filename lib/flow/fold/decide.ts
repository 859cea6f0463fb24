/**
 * What a command leads to: events, or a refusal. Pure: no clock, no chance, no input or output.
 *
 * D1 A command that comes again, or an answer to what is no longer asked, leads to no events and is no error.
 * D2 Nothing a user's data can do throws: an expression that fails is the failure of what it belongs to.
 * D3 A decision is whole or not at all. One with too many events becomes the failure of the execution.
 *
 * @module
 */
import type { CompiledFlow } from "../definition/types.ts";
import { type Command, type CommandData, type CommandOf, idProblem } from "./commands.ts";
import { Decision, DecisionTooLarge, MAX_DECISION_EVENTS } from "./decision.ts";
import { isToken } from "./fields.ts";
import { itemOf } from "./job.ts";
import { advanceMap } from "./nodes/map.ts";
import { childEnded } from "./nodes/subflow.ts";
import { taskCompleted, taskFailed, taskInterrupted, taskResumed } from "./nodes/task.ts";
import { writesProblem } from "./reducers.ts";
import { go } from "./routing.ts";
import { receiveSignal, serveAwaits } from "./signals.ts";
import { encodeState } from "./snapshot.ts";
import { decideStart, startFailed } from "./start.ts";
import { childrenToCancel, hasEnded, type State, type Task, unreadSignals } from "./state.ts";
import { timerDue } from "./timers.ts";
import { type Refusal, refused, type Verdict, wrongVersion } from "./verdict.ts";

/** Settings of {@link decide}. */
export interface DecideOptions {
  /** Most events of a decision; 1000 unless set. More fail the execution as `decision_too_large`. */
  readonly maxEvents?: number;
}

/**
 * Decides a command.
 *
 * @param flow The version the execution runs on; where there is none yet, the one it is to run on.
 * @param state `undefined` where there is no such execution.
 * @param now ms since the epoch; the time of all events.
 */
export function decide(
  flow: CompiledFlow,
  state: State | undefined,
  command: Command,
  now: number,
  { maxEvents = MAX_DECISION_EVENTS }: DecideOptions = {},
): Verdict {
  const problem = idProblem(command);
  if (problem !== undefined) return refused("invalid", problem);
  const decision = new Decision(flow, state, command, now, maxEvents);
  try {
    const refusal = carryOut(decision, state, command);
    if (refusal !== undefined) return refusal;
  } catch (error) {
    if (!(error instanceof DecisionTooLarge)) throw error;
    return tooLarge(flow, state, command, now, maxEvents);
  }
  const joined = command.type === "start" && state !== undefined ? { joined: true as const } : {};
  return { ...decision.outcome(), ...joined };
}

/**
 * Fails an execution whose decision cannot be stored; one that did not exist is begun for it.
 *
 * @param message What was too large, one sentence.
 */
export function abort(
  flow: CompiledFlow,
  state: State | undefined,
  command: Command,
  now: number,
  message: string,
): Verdict {
  const decision = new Decision(flow, state, command, now);
  if (state === undefined) {
    if (command.type !== "start") return refused("not_found", missing(command));
    const refusal = startFailed(decision, command);
    if (refusal !== undefined) return refusal;
  }
  if (!decision.ended) decision.fail("decision_too_large", message);
  return decision.outcome();
}

function tooLarge(
  flow: CompiledFlow,
  state: State | undefined,
  command: Command,
  now: number,
  maxEvents: number,
): Verdict {
  const message = `the command ${command.type} led to more than ${maxEvents} events`;
  return abort(flow, state, command, now, message);
}

function carryOut(decision: Decision, state: State | undefined, command: Command): Refusal | undefined {
  if (command.type === "start") return decideStart(decision, state, command);
  if (command.type === "fork" || command.type === "migrate") {
    return refused("invalid", `${command.type} has a function of its own`);
  }
  if (state === undefined) return refused("not_found", missing(command));
  if (state.execId !== command.exec_id) {
    return refused(
      "invalid",
      `the command is for "${command.exec_id}", the state is that of "${state.execId}"`,
    );
  }
  if (hasEnded(state)) {
    return command.type === "update" ? refused("rejected", `"${state.execId}" has ended`) : undefined;
  }
  return wrongVersion(decision.flow, state) ?? carryOutLive(decision, command);
}

function missing({ exec_id }: Command): string {
  return `there is no execution "${exec_id}"`;
}

type LiveCommand = Exclude<Command, { readonly type: "start" | "fork" | "migrate" }>;

function carryOutLive(decision: Decision, command: LiveCommand): Refusal | undefined {
  switch (command.type) {
    case "complete":
      go(decision, taskCompleted(decision, command.data));
      return undefined;
    case "fail":
      go(decision, taskFailed(decision, command.data));
      return undefined;
    case "interrupt":
      taskInterrupted(decision, command.data);
      return undefined;
    case "resume":
      return resume(decision, command.data);
    case "signal":
      return signal(decision, command);
    case "update":
      return update(decision, command);
    case "cancel":
      cancel(decision, command.data);
      return undefined;
    case "pause":
      if (decision.state.paused === undefined) decision.emit("ExecutionPaused", command.data);
      return undefined;
    case "unpause":
      unpause(decision);
      return undefined;
    case "timer":
      timerDue(decision, command.data);
      return undefined;
    case "child_done":
      go(decision, childEnded(decision, command.data));
      return undefined;
    case "continue":
      decision.emit("ExecutionContinued", {
        state: encodeState(decision.state),
        segment: command.data.segment,
      });
      return undefined;
    case "archive":
    case "delete":
    case "redispatch":
      return refused("invalid", `${command.type} is not decided by the fold`);
  }
}

/** The first interrupted attempt of a node goes on with an answer. */
function resume(decision: Decision, { node, key, value }: CommandData["resume"]): Refusal | undefined {
  const { state, flow } = decision;
  if (!flow.nodes.has(node)) return refused("invalid", `there is no node "${node}"`);
  if (state.paused !== undefined) return refused("rejected", `"${state.execId}" is paused`);
  const task = interruptedTask(state, node, key);
  if (task === undefined) return refused("rejected", `nothing is interrupted at "${key ?? node}"`);
  taskResumed(decision, task, value, itemOf(state, task));
  return undefined;
}

function interruptedTask(state: State, node: string, key: string | undefined): Task | undefined {
  return state.tasks.values().find((task) =>
    task.node === node && task.status === "interrupted" && (key === undefined || task.key === key)
  );
}

function signal(decision: Decision, { id, data }: CommandOf<"signal">): Refusal | undefined {
  if (!isToken(data.name)) return refused("invalid", `${JSON.stringify(data.name)} is no name of a signal`);
  receiveSignal(decision, { id, ...data });
  return undefined;
}

function update(decision: Decision, { id, data }: CommandOf<"update">): Refusal | undefined {
  const { state, flow } = decision;
  if (state.updateIds.has(id)) return undefined;
  const problem = writesProblem(flow.definition, state.channels, data.writes);
  if (problem !== undefined) return refused("invalid", problem);
  decision.emit("ChannelsUpdated", { id, writes: data.writes as Record<string, unknown> });
  return undefined;
}

function cancel(decision: Decision, { reason }: CommandData["cancel"]): void {
  const unread = unreadSignals(decision.state);
  decision.emit("ExecutionCancelled", {
    ...(reason === undefined ? {} : { reason }),
    cancel_children: childrenToCancel(decision.state),
    ...(unread === undefined ? {} : { unread }),
  });
}

/** What the pause held goes on; timers it held are set again by the event's effects. */
function unpause(decision: Decision): void {
  const { paused, held } = decision.state;
  if (paused === undefined) return;
  decision.emit("ExecutionUnpaused", {});
  for (const way of held) go(decision, way);
  for (const id of decision.ended ? [] : decision.state.maps.keys()) go(decision, advanceMap(decision, id));
  serveAwaits(decision);
}
