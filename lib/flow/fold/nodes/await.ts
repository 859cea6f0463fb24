/**
 * `await`: waits for signals. What came before anybody waited counts; the oldest of a name comes first.
 *
 * @module
 */
import { formatDuration } from "../../../duration.ts";
import type { AwaitNode } from "../../definition/types.ts";
import type { Decision } from "../decision.ts";
import { timerId } from "../ids.ts";
import { onward, type Way } from "../routing.ts";
import type { BufferedSignal } from "../state.ts";

/** Opens the await, and takes what is there already. */
export function enterAwait(decision: Decision, node: AwaitNode): Way {
  startAwait(decision, node);
  return takeSignals(decision, node);
}

/** Opens the await with a timer of its own. */
export function startAwait(decision: Decision, { id, signals, policy, timeout }: AwaitNode): void {
  const timer = timerId(decision.nextNumber());
  const [only] = signals;
  decision.emit("AwaitStarted", {
    node: id,
    ...(signals.length === 1 ? { signal: only! } : { signals, policy }),
    timer_id: timer,
  });
  decision.timer("await", decision.now + timeout, { node: id });
}

/** Takes the signals it waits for out of what has come; the way on where that is enough. */
export function takeSignals(decision: Decision, node: AwaitNode): Way {
  for (;;) {
    const open = decision.state.awaits.get(node.id);
    if (open === undefined) return undefined;
    const missing = open.signals.filter((name) => !Object.hasOwn(open.received, name));
    const found = oldest(decision, missing);
    if (found === undefined) return undefined;
    decision.emit("SignalConsumed", { node: node.id, name: found.name, id: found.signal.id });
    if (!decision.state.awaits.has(node.id)) return onward(node);
  }
}

/** The signal of one of these names that came first. */
function oldest(
  { state: { inbox } }: Decision,
  names: readonly string[],
): { readonly name: string; readonly signal: BufferedSignal } | undefined {
  let result: { readonly name: string; readonly signal: BufferedSignal } | undefined;
  for (const name of names) {
    const signal = inbox.get(name)?.first;
    if (signal !== undefined && (result === undefined || signal.i < result.signal.i)) {
      result = { name, signal };
    }
  }
  return result;
}

/** The time is up. */
export function awaitTimedOut(decision: Decision, node: AwaitNode): Way {
  const { id, onTimeout } = node;
  decision.emit("AwaitTimedOut", { node: id, ...(onTimeout === undefined ? {} : { to: onTimeout }) });
  if (onTimeout === undefined) {
    decision.fail("await_timeout", `no ${signalNames(node)} within ${formatDuration(node.timeout)}`, id);
  }
  return onTimeout;
}

function signalNames({ signals, policy }: AwaitNode): string {
  const names = signals.map((name) => `"${name}"`).join(policy === "all" ? " and " : " or ");
  return `signal ${names}`;
}
