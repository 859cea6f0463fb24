/**
 * `subflow`, also as a branch, and the children of maps: executions started by this one.
 *
 * @module
 */
import type { FlowMapNode, SubflowNode } from "../../definition/types.ts";
import type { CommandData } from "../commands.ts";
import { contextOf, type Item } from "../context.ts";
import type { Decision } from "../decision.ts";
import { type Fields, isObject } from "../fields.ts";
import { childId } from "../ids.ts";
import { shown } from "../reducers.ts";
import { messageOf, overBudget, type Way } from "../routing.ts";
import { placeFailed, placeSucceeded } from "../settle.ts";
import type { Child } from "../state.ts";

/** Starts the child. */
export function enterSubflow(decision: Decision, node: SubflowNode): Way {
  startChild(decision, node, { key: node.id });
  return undefined;
}

/** What a child is started as. */
export type ChildPlace = Pick<Child, "key" | "owner" | "index">;

/** Starts a child; where its input cannot be made, the execution has failed. */
export function startChild(
  decision: Decision,
  node: SubflowNode | FlowMapNode,
  place: ChildPlace,
  item?: Item,
): void {
  const input = inputOf(decision, node, item);
  if (typeof input === "string") {
    decision.fail("expression_error", input, node.id);
    return;
  }
  childStarted(decision, { ...place, node: node.id, flow: node.flow, input, policy: node.onParentClose });
}

/** Starts a child with an input that is there. */
export function childStarted(
  decision: Decision,
  child: Omit<Child, "childId" | "n">,
  replaces?: string,
): void {
  const n = decision.nextNumber();
  decision.emit("ChildStarted", {
    ...child,
    child_id: childId(decision.state.execId, n),
    child_n: n,
    ...(replaces === undefined ? {} : { replaces }),
  });
}

/** The input of a child, or what is wrong with it. */
function inputOf(
  decision: Decision,
  node: SubflowNode | FlowMapNode,
  item: Item | undefined,
): Fields | string {
  const { input } = decision.node(node.id);
  const otherwise = item === undefined ? decision.state.input : item.item;
  try {
    const value = input === undefined ? otherwise : input(contextOf(decision.state, item));
    if (isObject(value)) return value;
    const what = input === undefined && item !== undefined ? `item ${item.index}` : "the input of the child";
    return `${what} is no object but ${shown(value)}`;
  } catch (error) {
    return `the input of the child: ${messageOf(error)}`;
  }
}

/** A child has ended; one that is not waited for leads to nothing. */
export function childEnded(decision: Decision, done: CommandData["child_done"]): Way {
  const child = decision.state.children.get(done.child_id);
  if (child === undefined) return undefined;
  const { child_id, status, output, error, counters } = done;
  const message = status === "completed" ? undefined : error ?? `the child "${child_id}" was ${status}`;
  decision.emit("ChildCompleted", {
    node: child.node,
    key: child.key,
    child_id,
    status,
    ...(status === "completed" && output !== undefined ? { output } : {}),
    ...(message === undefined ? {} : { error: message }),
    ...(counters === undefined || Object.keys(counters).length === 0 ? {} : { counters }),
  });
  if (overBudget(decision, child.node)) return undefined;
  return message === undefined
    ? placeSucceeded(decision, child)
    : placeFailed(decision, child, "child_failed", message);
}
