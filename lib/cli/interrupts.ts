/**
 * Interrupts from outside: SIGINT and SIGTERM.
 *
 * One Ctrl-C may come several times: the terminal sends it to every process of the group, and `deno task` and `npx` pass
 * theirs on.
 *
 * @module
 */
import { type Clock, systemClock } from "../clock.ts";

/** Signals less than this behind an interrupt, ms, are part of it. */
const SAME_INTERRUPT = 300;

/** Calls `callback` once for each burst of calls. However dense a burst is, it is another interrupt after a while. */
export function oncePerBurst(callback: () => void, clock: Clock): () => void {
  let last = -Infinity;
  return () => {
    const now = clock.monotonic();
    if (now - last < SAME_INTERRUPT) return;
    last = now;
    callback();
  };
}

/** Calls `callback` for every interrupt until the returned function is called. */
export function onInterrupt(callback: () => void): () => void {
  const signals: readonly Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];
  const listener = oncePerBurst(callback, systemClock);
  for (const signal of signals) Deno.addSignalListener(signal, listener);
  return () => {
    for (const signal of signals) Deno.removeSignalListener(signal, listener);
  };
}
