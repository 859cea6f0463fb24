/**
 * Engine and loop over one workload, in turn, in this process. Each workload gets a process of its own, so that code
 * compiled for one does not slow another down.
 *
 * @module
 */
import { buildInput, type Inputs, type Workload } from "./data.ts";
import { expectedSums } from "./expected.ts";
import { runLoop } from "./loops.ts";
import { type Cost, measure } from "./measure.ts";
import { runPipeline, type StateKind } from "./pipelines.ts";
import { differences, type Sums } from "./tally.ts";

/** What one side did in all its runs. */
export interface Side {
  /** Of each run, in order. */
  readonly costs: readonly Cost[];
  /** What was wrong with the sums of a run, one sentence each; empty = all right. */
  readonly problems: readonly string[];
}

/** A workload's result. */
export interface Contest {
  readonly name: Workload;
  readonly records: number;
  readonly engine: Side;
  readonly loop: Side;
}

/**
 * Runs engine and loop `runs` times each, by turns.
 *
 * Both must give the expected sums; for a number of records that has none, the first sums of the loop.
 */
export async function contest(
  name: Workload,
  records: number,
  runs: number,
  state: StateKind,
  interval: string,
): Promise<Contest> {
  const input = buildInput(name, records) as Inputs[Workload];
  const sides = {
    engine: {
      run: () => runPipeline(name, input as never, state, interval),
      costs: [] as Cost[],
      sums: [] as Sums[],
    },
    loop: { run: () => runLoop(name, input as never), costs: [] as Cost[], sums: [] as Sums[] },
  };
  for (let i = 0; i < runs; i++) {
    for (const side of [sides.engine, sides.loop]) {
      const { result, cost } = await measure<Sums>(side.run);
      side.costs.push(cost);
      side.sums.push(result);
    }
  }
  const want = expectedSums(name, records) ?? sides.loop.sums[0]!;
  const judged = ({ costs, sums }: { readonly costs: Cost[]; readonly sums: Sums[] }): Side => ({
    costs,
    problems: [...new Set(sums.flatMap((got) => differences(got, want)))],
  });
  return { name, records, engine: judged(sides.engine), loop: judged(sides.loop) };
}
