/**
 * Going from node to node until something has to be waited for.
 *
 * R1 Whoever settles a node says where the way leads on, and nobody calls the next node himself: a chain of a thousand
 *    choices is a loop, not a thousand calls.
 * R2 While the execution is paused, the way on is written down instead.
 * R3 Every entry is counted and checked against `max_steps` and the budget of `steps` before it happens.
 *
 * @module
 */
import { type CompiledNode, END, type FlowNode } from "../definition/types.ts";
import { contextOf } from "./context.ts";
import type { Decision } from "./decision.ts";
import type { FailureReason } from "./events.ts";
import { isObject } from "./fields.ts";
import { enterAwait } from "./nodes/await.ts";
import { enterChoice } from "./nodes/choice.ts";
import { enterFanout } from "./nodes/fanout.ts";
import { enterFail } from "./nodes/fail.ts";
import { enterMap } from "./nodes/map.ts";
import { enterSleep } from "./nodes/sleep.ts";
import { enterSubflow } from "./nodes/subflow.ts";
import { enterTask } from "./nodes/task.ts";
import { shown } from "./reducers.ts";
import { unreadSignals } from "./state.ts";

/** Where it goes on: a node, or `$end`; nowhere where something is waited for, or the execution has ended. */
export type Way = string | undefined;

/** Goes on until something is waited for or the execution has ended. */
export function go(decision: Decision, way: Way): void {
  for (let to = way; to !== undefined && !decision.ended;) {
    if (decision.state.paused !== undefined) {
      decision.emit("RouteHeld", { to });
      return;
    }
    to = to === END ? complete(decision) : enter(decision, to);
  }
}

/** The way on from a node that has succeeded. */
export function onward(node: FlowNode): string {
  return ("next" in node ? node.next : undefined) ?? END;
}

/** The way on from a node that has failed: its handler, or the end of the execution. */
export function failed(decision: Decision, node: FlowNode, reason: FailureReason, error: string): Way {
  const handler = "onFailure" in node ? node.onFailure : undefined;
  if (handler === undefined) decision.fail(reason, error, node.id);
  return handler;
}

/** Counts an entry; false where it may not be, and the execution has failed. */
export function countEntry(decision: Decision, id: string): boolean {
  const { definition: { maxSteps, budget } } = decision.flow;
  const steps = decision.state.steps + 1, most = budgetOf(budget, "steps");
  if (steps > maxSteps) {
    decision.fail("max_steps", `entering "${id}" would be step ${steps} of at most ${maxSteps}`, id);
    return false;
  }
  if (most !== undefined && steps > most) {
    decision.fail("budget_exceeded", `entering "${id}" would be step ${steps} of a budget of ${most}`, id);
    return false;
  }
  decision.emit("NodeEntered", { node: id });
  return true;
}

/** Whether a counter is above its budget; then the execution has failed at the node. */
export function overBudget(decision: Decision, node: string): boolean {
  const { definition: { budget } } = decision.flow, { counters } = decision.state;
  for (const name of Object.keys(budget).sort()) {
    const used = counters.get(name), most = budgetOf(budget, name)!;
    if (name === "steps" || used === undefined || used <= most) continue;
    decision.fail("budget_exceeded", `${name}: ${used} used of a budget of ${most}`, node);
    return true;
  }
  return false;
}

function budgetOf(budget: Readonly<Record<string, number>>, name: string): number | undefined {
  return Object.hasOwn(budget, name) ? budget[name] : undefined;
}

function enter(decision: Decision, id: string): Way {
  const compiled = decision.flow.nodes.get(id);
  if (compiled === undefined) {
    decision.fail("error", `there is no node "${id}"`, id);
    return undefined;
  }
  return countEntry(decision, id) ? begin(decision, compiled) : undefined;
}

function begin(decision: Decision, compiled: CompiledNode): Way {
  const { node } = compiled;
  switch (node.type) {
    case "task":
      return enterTask(decision, node);
    case "choice":
      return enterChoice(decision, node, compiled);
    case "fanout":
      return enterFanout(decision, node);
    case "await":
      return enterAwait(decision, node);
    case "map":
      return enterMap(decision, node, compiled);
    case "subflow":
      return enterSubflow(decision, node);
    case "sleep":
      return enterSleep(decision, node, compiled);
    case "fail":
      return enterFail(decision, compiled);
    case "join":
      return undefined; // entered by its fan-out alone
  }
}

/** Ends the execution as completed, if its output is what an output has to be. */
function complete(decision: Decision): Way {
  const result = outputOf(decision);
  if ("problem" in result) {
    decision.fail("expression_error", result.problem);
    return undefined;
  }
  const unread = unreadSignals(decision.state);
  decision.emit("ExecutionCompleted", {
    ...(result.output === null ? {} : { output: result.output }),
    ...(unread === undefined ? {} : { unread }),
  });
  return undefined;
}

function outputOf({ flow, state }: Decision): { readonly output: unknown } | { readonly problem: string } {
  if (flow.output === undefined) {
    if (Object.keys(flow.definition.channels).length > 0) return { output: state.channels.toObject() };
    return { output: state.lastNode === undefined ? null : state.results.get(state.lastNode) ?? null };
  }
  try {
    const output = flow.output(contextOf(state));
    if (output === null || isObject(output)) return { output };
    return { problem: `the output is no object but ${shown(output)}` };
  } catch (error) {
    return { problem: `the output: ${messageOf(error)}` };
  }
}

/** What an expression that failed says. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
