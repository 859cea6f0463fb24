/**
 * What follows when work has settled: a node of its own leads on, a branch may settle its join, an item its map.
 *
 * @module
 */
import type { MapNode } from "../definition/types.ts";
import type { Decision } from "./decision.ts";
import type { FailureReason } from "./events.ts";
import { settleJoin } from "./nodes/fanout.ts";
import { abortMap, advanceMap } from "./nodes/map.ts";
import { failed, onward, type Way } from "./routing.ts";
import type { Task } from "./state.ts";

/** What has settled. */
export type Settled = Pick<Task, "node" | "owner" | "index">;

/**
 * A task, branch, item or child has succeeded.
 *
 * @param next Node the worker named.
 */
export function placeSucceeded(decision: Decision, settled: Settled, next?: string): Way {
  const { node, owner, index } = settled;
  if (owner === undefined) return next ?? onward(decision.node(node).node);
  return index === undefined ? settleJoin(decision, owner) : advanceMap(decision, owner);
}

/** A task, branch, item or child has failed for good. */
export function placeFailed(
  decision: Decision,
  { node, owner, index }: Settled,
  reason: FailureReason,
  error: string,
): Way {
  const definition = decision.node(node).node;
  if (reason === "expression_error") { // of a built-in kind's settings; never routed, whatever it is part of
    decision.fail(reason, error, node);
    return undefined;
  }
  if (owner === undefined) return failed(decision, definition, reason, error);
  if (index === undefined) return settleJoin(decision, owner);
  return abortMap(decision, definition as MapNode, index, reason, error);
}
