/**
 * What is reported of a contest.
 *
 * The figure of a side is its best run, by CPU time: what a warm process does with the least disturbance by others. The
 * first run, which pays for compiling, is given beside it.
 *
 * @module
 */
import type { Contest, Side } from "./contest.ts";
import type { Cost } from "./measure.ts";
import { rounded } from "./print.ts";

/** A workload's line of `--json`. */
export interface Summary {
  readonly name: string;
  readonly records: number;
  /** Wall time of the engine's best run. */
  readonly seconds: number;
  /** Records per second of wall time in that run. */
  readonly rate: number;
  /** CPU time of that run, all threads. */
  readonly cpuSeconds: number;
  /** Records per second of wall time in the loop's best run. */
  readonly loopRate: number;
  /** Engine ÷ loop, in records per CPU second of their best runs. */
  readonly ratio: number;
  /** Whether all runs of the engine gave the expected sums. */
  readonly correct: boolean;
  /** Highest resident memory during an engine run, input included. */
  readonly rssMiB: number;
  /** Records per CPU second: best run, first run, and slowest run after the first. */
  readonly engineCpu: Rates;
  readonly loopCpu: Rates;
  readonly runs: number;
  /** What was wrong with the sums of engine and loop. */
  readonly problems: readonly string[];
}

/** Records per CPU second. */
export interface Rates {
  readonly best: number;
  readonly first: number;
  /** Of the runs after the first; of all, where there is one only. */
  readonly slowest: number;
}

/** Sums a contest up. */
export function summarize({ name, records, engine, loop }: Contest): Summary {
  const best = bestOf(engine), bestLoop = bestOf(loop);
  return {
    name,
    records,
    seconds: rounded(best.wallSeconds),
    rate: Math.round(records / best.wallSeconds),
    cpuSeconds: rounded(best.cpuSeconds),
    loopRate: Math.round(records / bestLoop.wallSeconds),
    ratio: rounded(bestLoop.cpuSeconds / best.cpuSeconds),
    correct: engine.problems.length === 0,
    rssMiB: Math.round(Math.max(...engine.costs.map(({ peakMiB }) => peakMiB))),
    engineCpu: rates(engine, records),
    loopCpu: rates(loop, records),
    runs: engine.costs.length,
    problems: [
      ...engine.problems.map((problem) => `engine: ${problem}`),
      ...loop.problems.map((problem) => `loop: ${problem}`),
    ],
  };
}

/** How far the slowest warm run was behind the best, in percent. */
export function spreadPercent({ best, slowest }: Rates): number {
  return Math.round(100 * (best - slowest) / best);
}

function bestOf({ costs }: Side): Cost {
  return costs.reduce((best, cost) => cost.cpuSeconds < best.cpuSeconds ? cost : best);
}

function rates(side: Side, records: number): Rates {
  const all = side.costs.map(({ cpuSeconds }) => Math.round(records / cpuSeconds));
  const warm = all.length > 1 ? all.slice(1) : all;
  return { best: Math.max(...all), first: all[0]!, slowest: Math.min(...warm) };
}
