/**
 * `choice`: the first rule that is true, else the default.
 *
 * @module
 */
import type { ChoiceNode, CompiledNode } from "../../definition/types.ts";
import { passingContext } from "../context.ts";
import type { Decision } from "../decision.ts";
import { messageOf, type Way } from "../routing.ts";

/** Evaluates the rules; an expression that fails counts as not true, unless the node says otherwise. */
export function enterChoice(decision: Decision, node: ChoiceNode, { rules }: CompiledNode): Way {
  const context = passingContext(decision.state);
  let firstError: string | undefined;
  for (const [rule, test] of rules!.entries()) {
    if (test === undefined) continue;
    try {
      if (test(context)) return taken(decision, node, rule, firstError);
    } catch (error) {
      firstError ??= messageOf(error);
      if (node.onError === "fail") {
        decision.emit("ChoiceEvaluated", { node: node.id, rule, error: firstError });
        decision.fail("expression_error", firstError, node.id);
        return undefined;
      }
    }
  }
  return taken(decision, node, rules!.indexOf(undefined), firstError);
}

function taken(decision: Decision, node: ChoiceNode, rule: number, error: string | undefined): Way {
  const { to } = node.rules[rule]!;
  decision.emit("ChoiceEvaluated", { node: node.id, rule, to, ...(error === undefined ? {} : { error }) });
  return to;
}
