/**
 * `map`: the same work for every item, so many at once, results in the order of the items.
 *
 * @module
 */
import type { CompiledNode, MapNode } from "../../definition/types.ts";
import { contextOf } from "../context.ts";
import type { Decision } from "../decision.ts";
import type { FailureReason } from "../events.ts";
import { itemKey } from "../ids.ts";
import { shown } from "../reducers.ts";
import { failed, messageOf, onward, type Way } from "../routing.ts";
import { childrenToCancel, type MapRun } from "../state.ts";
import { startChild } from "./subflow.ts";
import { schedule } from "./task.ts";

/** Begins the first items. */
export function enterMap(decision: Decision, node: MapNode, { over }: CompiledNode): Way {
  let items: unknown;
  try {
    items = over!(contextOf(decision.state)) ?? [];
  } catch (error) {
    decision.fail("expression_error", messageOf(error), node.id);
    return undefined;
  }
  if (!Array.isArray(items)) {
    decision.fail("expression_error", `over gives no list but ${shown(items)}`, node.id);
    return undefined;
  }
  decision.emit("MapStarted", { node: node.id, items, max_parallel: node.maxParallel });
  return advanceMap(decision, node.id);
}

/** Begins as many items as there is room for; the way on once all have settled. */
export function advanceMap(decision: Decision, id: string): Way {
  const node = decision.node(id).node as MapNode;
  for (let run = decision.state.maps.get(id); run !== undefined; run = decision.state.maps.get(id)) {
    if (run.outputs.size === run.items.length) {
      decision.emit("MapCompleted", { node: id });
      return onward(node);
    }
    if (!hasRoom(run) || decision.state.paused !== undefined) return undefined;
    startItem(decision, node, run, run.next);
  }
  return undefined;
}

function hasRoom({ items, next, outputs, maxParallel }: MapRun): boolean {
  return next < items.length && next - outputs.size < maxParallel;
}

function startItem(decision: Decision, node: MapNode, run: MapRun, index: number): void {
  const place = { key: itemKey(node.id, index), owner: node.id, index };
  const item = { item: run.items[index], index };
  if (node.flow !== undefined) startChild(decision, node, place, item);
  else schedule(decision, node, place, { item });
}

/** An item has failed for good: those under way are cancelled, and the failure is the map's. */
export function abortMap(
  decision: Decision,
  node: MapNode,
  index: number,
  reason: FailureReason,
  error: string,
): Way {
  if (node.onFailure === undefined) return failed(decision, node, reason, error);
  for (const key of decision.state.tasks.keys()) {
    if (decision.state.tasks.get(key)!.owner === node.id) {
      decision.emit("NodeCancelled", { key, node: node.id, reason: `item ${index} has failed` });
    }
  }
  const children = childrenToCancel(decision.state, node.id);
  decision.emit("MapAborted", {
    node: node.id,
    index,
    ...(children.length === 0 ? {} : { cancel_children: children }),
  });
  return failed(decision, node, reason, error);
}
