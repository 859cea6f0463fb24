/**
 * `sleep`: lets time pass.
 *
 * @module
 */
import type { CompiledNode, SleepNode } from "../../definition/types.ts";
import { contextOf } from "../context.ts";
import type { Decision } from "../decision.ts";
import { instantOf } from "../fields.ts";
import { shown } from "../reducers.ts";
import { messageOf, type Way } from "../routing.ts";

/** Sets the timer that ends it. An instant that has passed ends it at once, by a timer too. */
export function enterSleep(decision: Decision, node: SleepNode, { until }: CompiledNode): Way {
  try {
    const at = until === undefined ? decision.now + node.for! : instantIn(until(contextOf(decision.state)));
    decision.timer("sleep", at, { node: node.id });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    decision.fail("expression_error", messageOf(error), node.id);
  }
  return undefined;
}

function instantIn(value: unknown): number {
  const time = typeof value === "string" ? instantOf(value) : undefined;
  if (time === undefined) throw new Error(`until gives no RFC 3339 text but ${shown(value)}`);
  return time;
}
