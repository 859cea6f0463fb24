/**
 * Turns of the event loop. Not time: nothing here waits for a clock.
 *
 * @module
 */
import { setImmediate } from "node:timers";

/** Resolves after timers, signals and I/O that are due have had their turn. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
