/**
 * `fanout` and `join`: several branches at once, and how many of them have to succeed.
 *
 * @module
 */
import type { CompiledNode, FanoutNode, JoinNode } from "../../definition/types.ts";
import { setOwn } from "../../../value.ts";
import type { Decision } from "../decision.ts";
import { countEntry, failed, onward, type Way } from "../routing.ts";
import { type BranchStatus, childrenToCancel, type Fan } from "../state.ts";
import { startChild } from "./subflow.ts";
import { schedule } from "./task.ts";

/** Begins all branches in one decision. */
export function enterFanout(decision: Decision, { id, next, branches }: FanoutNode): Way {
  decision.emit("FanoutStarted", { node: id, join: next, branches });
  for (const branch of branches) {
    if (decision.ended || !countEntry(decision, branch)) return undefined;
    const { node } = decision.node(branch);
    if (node.type === "subflow") startChild(decision, node, { key: branch, owner: id });
    else if (node.type === "task") schedule(decision, node, { key: branch, owner: id });
  }
  return undefined;
}

/** Settles the join once its policy is met, or cannot be met any more. */
export function settleJoin(decision: Decision, fanout: string): Way {
  const fan = decision.state.fans.get(fanout);
  if (fan === undefined) return undefined;
  const join = decision.node(fan.join);
  const verdict = verdictOf(decision, join);
  if (verdict === undefined) return undefined;
  cancelBranches(decision, fan);
  const node = join.node as JoinNode;
  if (!countEntry(decision, node.id)) return undefined;
  return complete(decision, node, fan, verdict);
}

/** Whether enough awaited branches have succeeded; `undefined` while that is open. */
function verdictOf({ state: { branches } }: Decision, { join }: CompiledNode): boolean | undefined {
  const { awaited, needed } = join!;
  let succeeded = 0, open = 0;
  for (const id of awaited) {
    const status = branches.get(id);
    if (status === "completed") succeeded++;
    else if (status === "pending") open++;
  }
  if (succeeded >= needed) return true;
  return succeeded + open < needed ? false : undefined;
}

function cancelBranches(decision: Decision, { node: fanout }: Fan): void {
  for (const key of decision.state.tasks.keys()) {
    const task = decision.state.tasks.get(key)!;
    if (task.owner === fanout) {
      decision.emit("NodeCancelled", { key, node: task.node, reason: "the join is settled" });
    }
  }
}

function complete(decision: Decision, node: JoinNode, fan: Fan, ok: boolean): Way {
  const { branches, results } = decision.state;
  const having = (...statuses: readonly BranchStatus[]) =>
    fan.branches.filter((id) => statuses.includes(branches.get(id)!));
  const succeeded = having("completed"), children = childrenToCancel(decision.state, fan.node);
  const output: Record<string, unknown> = {};
  for (const id of succeeded) setOwn(output, id, results.get(id) ?? null);
  const error = ok ? undefined : joinError(decision, node);
  decision.emit("JoinCompleted", {
    node: node.id,
    fanout: fan.node,
    succeeded,
    failed: having("failed"),
    cancelled: having("pending", "cancelled"),
    ok,
    output,
    ...(error === undefined ? {} : { error }),
    ...(children.length === 0 ? {} : { cancel_children: children }),
  });
  return error === undefined ? onward(node) : failed(decision, node, "join_failed", error);
}

function joinError(decision: Decision, { id }: JoinNode): string {
  const { awaited, needed } = decision.node(id).join!, { branches, errors } = decision.state;
  const failures = awaited.filter((branch) => branches.get(branch) === "failed");
  const reasons = failures.map((branch) => `"${branch}": ${errors.get(branch)?.error ?? "failed"}`);
  return `${needed} of ${awaited.length} branches had to succeed; ${reasons.join("; ")}`;
}
