/**
 * `fail`: ends the execution as failed.
 *
 * @module
 */
import type { CompiledNode } from "../../definition/types.ts";
import { passingContext } from "../context.ts";
import type { Decision } from "../decision.ts";
import { messageOf, type Way } from "../routing.ts";

/** Fails with the node's message. */
export function enterFail(decision: Decision, { node, message }: CompiledNode): Way {
  let text: string;
  try {
    text = message!(passingContext(decision.state));
  } catch (error) {
    decision.fail("expression_error", messageOf(error), node.id);
    return undefined;
  }
  decision.fail("failed", text, node.id);
  return undefined;
}
