/**
 * Forks: a new execution that goes on from a state of another one, which it leaves alone.
 *
 * What was under way there is begun anew here: tasks in a fresh generation, awaits with new timers, children as new
 * children. Interrupted tasks stay interrupted, sleeps keep their end.
 *
 * @module
 */
import type { CompiledFlow } from "../definition/types.ts";
import type { CommandOf } from "./commands.ts";
import { idProblem } from "./commands.ts";
import { Decision, DecisionTooLarge, MAX_DECISION_EVENTS } from "./decision.ts";
import type { Fields } from "./fields.ts";
import { itemOf } from "./job.ts";
import { startAwait, takeSignals } from "./nodes/await.ts";
import { advanceMap } from "./nodes/map.ts";
import { childStarted } from "./nodes/subflow.ts";
import { schedule, workNode } from "./nodes/task.ts";
import { writesProblem } from "./reducers.ts";
import { go } from "./routing.ts";
import { encodeState } from "./snapshot.ts";
import { hasEnded, type State } from "./state.ts";
import { refused, type Verdict, wrongVersion } from "./verdict.ts";

/**
 * Decides a fork.
 *
 * @param flow Version the source runs on.
 * @param existing State of the execution that is to be, where it is there already: then nothing happens.
 * @param source State of the other execution, at the end of a decision.
 * @param now ms since the epoch.
 */
export function decideFork(
  flow: CompiledFlow,
  existing: State | undefined,
  source: State,
  command: CommandOf<"fork">,
  now: number,
  { maxEvents = MAX_DECISION_EVENTS }: { readonly maxEvents?: number } = {},
): Verdict {
  const { exec_id, data: { from, seq, writes } } = command;
  const wrong = wrongVersion(flow, source);
  if (wrong !== undefined) return wrong;
  const problem = idProblem(command) ?? editProblem(flow, source, writes);
  if (problem !== undefined) return refused("invalid", problem);
  if (existing !== undefined) return { ok: true, events: [], effects: [], state: existing, joined: true };
  const begun = (limit: number): Decision => {
    const decision = new Decision(flow, undefined, command, now, limit);
    decision.emit("ExecutionForked", { exec_id, from, seq, state: encodeState(source) });
    return decision;
  };
  try {
    const decision = begun(maxEvents);
    if (writes !== undefined) decision.emit("ChannelsUpdated", { id: command.id, writes: writes as Fields });
    if (!hasEnded(source)) restart(decision, source);
    return decision.outcome();
  } catch (error) {
    if (!(error instanceof DecisionTooLarge)) throw error;
    const decision = begun(MAX_DECISION_EVENTS);
    decision.fail("decision_too_large", `the fork led to more than ${maxEvents} events`);
    return decision.outcome();
  }
}

function editProblem(flow: CompiledFlow, source: State, writes: unknown): string | undefined {
  if (writes === undefined) return undefined;
  if (hasEnded(source)) return `"${source.execId}" had ended there, its channels cannot be edited`;
  return writesProblem(flow.definition, source.channels, writes);
}

/** Begins anew what was under way. */
function restart(decision: Decision, source: State): void {
  restartTimers(decision, source);
  for (const task of decision.state.tasks.values()) {
    if (decision.ended) return;
    if (task.status === "interrupted") continue;
    const { key, owner, index } = task, item = itemOf(decision.state, task);
    schedule(decision, workNode(decision, task.node), {
      key,
      ...(owner === undefined ? {} : { owner }),
      ...(index === undefined ? {} : { index }),
    }, item === undefined ? {} : { item });
  }
  for (const child of decision.state.children.values().sort((a, b) => a.n - b.n)) {
    if (decision.ended) return;
    const { childId, n: _, ...rest } = child;
    childStarted(decision, rest, childId);
  }
  if (decision.ended) return;
  for (const id of decision.state.awaits.keys()) restartAwait(decision, id);
  for (const way of source.held) go(decision, way);
  // The pause of the source may have left room in its maps.
  for (const id of decision.state.maps.keys()) go(decision, advanceMap(decision, id));
}

function restartTimers(decision: Decision, source: State): void {
  const { now, flow: { definition: { deadline } } } = decision;
  if (deadline !== undefined) decision.timer("deadline", now + deadline);
  if (source.phase === "delayed") {
    const delay = source.timers.values().find((timer) => timer.purpose === "start");
    decision.timer("start", delay?.at ?? now);
  }
  for (const sleep of decision.state.sleeps.values()) decision.timer("sleep", sleep.at, { node: sleep.node });
}

function restartAwait(decision: Decision, id: string): void {
  const { node } = decision.node(id);
  if (node.type !== "await" || decision.ended) return;
  startAwait(decision, node);
  go(decision, takeSignals(decision, node));
}
