/**
 * Signals as they come.
 *
 * @module
 */
import type { Decision } from "./decision.ts";
import { takeSignals } from "./nodes/await.ts";
import { go } from "./routing.ts";

/** Takes in a signal, unless it came before, and hands it to the first await that waits for it. */
export function receiveSignal(
  decision: Decision,
  { id, name, payload }: { readonly id: string; readonly name: string; readonly payload?: unknown },
): void {
  if (decision.state.signalIds.has(id)) return;
  decision.emit("SignalReceived", { name, id, ...(payload === undefined ? {} : { payload }) });
  if (decision.state.paused === undefined) serveAwaits(decision);
}

/** Awaits take what they wait for, in the order of the nodes. */
export function serveAwaits(decision: Decision): void {
  if (decision.state.awaits.size === 0) return;
  for (const { node } of decision.flow.nodes.values()) {
    if (decision.ended) return;
    if (node.type === "await" && decision.state.awaits.has(node.id)) {
      go(decision, takeSignals(decision, node));
    }
  }
}
