/**
 * Timers that are due.
 *
 * @module
 */
import type { CommandData } from "./commands.ts";
import type { Decision } from "./decision.ts";
import { awaitTimedOut } from "./nodes/await.ts";
import { retryDue, taskTimedOut } from "./nodes/task.ts";
import { go, onward } from "./routing.ts";
import type { Timer } from "./state.ts";

/** Timers that a pause holds: they fire when it is over. */
export function isHeld(purpose: Timer["purpose"]): boolean {
  return purpose === "retry" || purpose === "await" || purpose === "sleep" || purpose === "start";
}

/** A timer is due: one that is not set, or that a pause holds, leads to nothing. */
export function timerDue(decision: Decision, { timer_id, progress }: CommandData["timer"]): void {
  const timer = decision.state.timers.get(timer_id);
  if (timer === undefined || (decision.state.paused !== undefined && isHeld(timer.purpose))) return;
  decision.emit("TimerFired", { id: timer_id });
  const { node = "", key = "", generation = 0, attempt = 0 } = timer;
  switch (timer.purpose) {
    case "retry":
      return retryDue(decision, { key, generation, attempt });
    case "timeout":
      return go(decision, taskTimedOut(decision, { key, generation, attempt }, progress));
    case "await":
      return awaitDue(decision, node, timer_id);
    case "sleep":
      return go(decision, onward(decision.node(node).node));
    case "start":
      return go(decision, decision.flow.definition.start);
    case "deadline":
      return decision.fail("deadline_exceeded", "it was to have ended by now");
  }
}

function awaitDue(decision: Decision, id: string, timer: string): void {
  const { node } = decision.node(id);
  if (node.type !== "await" || decision.state.awaits.get(id)?.timer !== timer) return;
  go(decision, awaitTimedOut(decision, node));
}
