/**
 * What a run cost: wall time, CPU time of the whole process (all its threads), peak resident memory.
 *
 * @module
 */
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";

/** Cost of one run. */
export interface Cost {
  readonly wallSeconds: number;
  /** User and system time of all threads of the process. */
  readonly cpuSeconds: number;
  /** Highest resident memory during the run, with everything the process held before it. */
  readonly peakMiB: number;
}

/**
 * Runs `work` once and says what it cost. There is no forced collection in front: after one, V8 starts over with a small
 * young generation and code it has to warm up again, and a loop loses more than half of its speed.
 */
export async function measure<T>(
  work: () => T | Promise<T>,
): Promise<{ readonly result: T; readonly cost: Cost }> {
  resetPeak();
  const cpu = process.cpuUsage();
  const started = performance.now();
  const result = await work();
  const wallSeconds = (performance.now() - started) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return { result, cost: { wallSeconds, cpuSeconds: (user + system) / 1e6, peakMiB: peakMiB() } };
}

/** The middle one of `values`, and the distance between its quartiles; undefined of none. */
export function medianAndSpread(values: readonly number[]): { median: number; spread: number } {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number => {
    const position = share * (sorted.length - 1), below = Math.floor(position);
    const low = sorted[below]!, high = sorted[Math.min(below + 1, sorted.length - 1)]!;
    return low + (high - low) * (position - below);
  };
  return { median: at(0.5), spread: at(0.75) - at(0.25) };
}

/** Peak resident memory since the last reset, or since the start where the system has no reset. */
function peakMiB(): number {
  const line = Deno.build.os === "linux" &&
    /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"));
  return line ? Number(line[1]) / 1024 : Deno.memoryUsage().rss / 2 ** 20;
}

function resetPeak(): void {
  if (Deno.build.os === "linux") writeFileSync("/proc/self/clear_refs", "5");
}
