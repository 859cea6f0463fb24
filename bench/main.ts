/**
 * Program: `deno task bench [NAME…] [--json] [--records N] [--runs N] [--state memory|kv|sqlite [--interval 10s]]`.
 *
 * With `--state` the engine takes a checkpoint every `--interval` (10 s) and one at the end. NAME: `W-a` … `W-e` (or `a` … `e`),
 * `sliding`, `startup`; without any: the five workloads. Exit code 1 where a run failed or gave wrong sums, 2 for wrong arguments.
 *
 * @module
 */
import { parseArgs } from "node:util";
import type { Contest } from "./contest.ts";
import { FULL_SIZE, type Workload, WORKLOADS } from "./data.ts";
import { type Column, millions, print, printHead, printRow, rounded } from "./print.ts";
import { circumstances, onOneCore, type Pinning, runBeside } from "./process.ts";
import type { StateKind } from "./pipelines.ts";
import type { SlidingResult } from "./sliding.ts";
import { measureStartup, middle } from "./startup.ts";
import { spreadPercent, summarize } from "./summary.ts";

const OTHERS = ["sliding", "startup"] as const;
type Name = Workload | typeof OTHERS[number];

interface Options {
  readonly names: readonly Name[];
  readonly output: "json" | "table";
  /** Instead of the full size. */
  readonly records: number | undefined;
  readonly runs: number | undefined;
  readonly state: StateKind;
  /** Time from one checkpoint to the next, as a duration. */
  readonly interval: string;
  readonly pinning: Pinning;
}

function readOptions(args: readonly string[]): Omit<Options, "pinning"> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: {
      json: { type: "boolean" },
      records: { type: "string" },
      runs: { type: "string" },
      state: { type: "string" },
      interval: { type: "string" },
    },
    allowPositionals: true,
  });
  return {
    names: positionals.length === 0 ? WORKLOADS : positionals.map(nameOf),
    output: values.json === true ? "json" : "table",
    records: values.records === undefined ? undefined : positive("--records", values.records),
    runs: values.runs === undefined ? undefined : positive("--runs", values.runs),
    state: stateOf(values.state),
    interval: values.interval ?? "10s",
  };
}

function nameOf(text: string): Name {
  const known: readonly Name[] = [...WORKLOADS, ...OTHERS];
  const wanted = text.toLowerCase();
  const name = known.find((name) => name.toLowerCase() === wanted || name.toLowerCase() === `w-${wanted}`);
  if (name === undefined) {
    throw new TypeError(`no benchmark is named "${text}"; there are ${known.join(", ")}`);
  }
  return name;
}

function stateOf(text: string | undefined): StateKind {
  if (text === undefined) return "none";
  if (text === "memory" || text === "kv" || text === "sqlite") return text;
  throw new TypeError(`--state is memory, kv or sqlite, not "${text}"`);
}

function positive(option: string, text: string): number {
  const value = Number(text.replaceAll("_", ""));
  if (!(Number.isSafeInteger(value) && value > 0)) {
    throw new TypeError(`${option} must be a whole number from 1, not "${text}"`);
  }
  return value;
}

const WORKLOAD_COLUMNS: readonly Column[] = [
  ["", 7],
  ["records", 9],
  ["engine", 7],
  ["first", 7],
  ["spread", 6],
  ["loop", 7],
  ["first", 7],
  ["spread", 6],
  ["ratio", 6],
  ["wall s", 7],
  ["MiB", 5],
  ["sums", 5],
];

/** Runs workloads one after the other. @returns whether all sums were right. */
async function runWorkloads(names: readonly Workload[], options: Options): Promise<boolean> {
  const { output, pinning, runs = 4, state, interval } = options;
  if (output === "table") {
    print(
      `\nEngine${
        state === "none" ? "" : ` (state in ${state}, a checkpoint every ${interval})`
      } and hand-written loop, ` +
        `${runs} runs each by turns; M records per CPU second, the best run`,
    );
    print(
      `(spread: how far the slowest run after the first is behind). One process a workload, ${pinning.text}.\n`,
    );
    printHead(WORKLOAD_COLUMNS);
  }
  let right = true;
  for (const name of names) {
    const records = options.records ?? FULL_SIZE[name];
    const args = [name, String(records), String(runs), state, interval];
    const result = await runBeside("contest_child.ts", args, pinning) as Contest | undefined;
    if (result === undefined) {
      right = false;
      print(
        output === "json"
          ? JSON.stringify({ name, records, correct: false })
          : `${name}     failed, see above`,
      );
      continue;
    }
    const summary = summarize(result);
    right &&= summary.problems.length === 0;
    if (output === "json") {
      print(JSON.stringify(summary));
      continue;
    }
    const { engineCpu, loopCpu, ratio, seconds, rssMiB, problems } = summary;
    printRow(WORKLOAD_COLUMNS, [
      name,
      String(records),
      millions(engineCpu.best),
      millions(engineCpu.first),
      `${spreadPercent(engineCpu)} %`,
      millions(loopCpu.best),
      millions(loopCpu.first),
      `${spreadPercent(loopCpu)} %`,
      ratio.toFixed(3),
      seconds.toFixed(3),
      String(rssMiB),
      problems.length === 0 ? "right" : "WRONG",
    ]);
    for (const problem of problems) print(`    ${problem}`);
  }
  return right;
}

const SLIDING_COLUMNS: readonly Column[] = [
  ["size ÷ slide", 12],
  ["records", 9],
  ["rows", 9],
  ["engine", 7],
  ["first", 7],
  ["÷ first row", 11],
  ["sums", 5],
];

/** @returns whether all sums were right. */
async function runSliding({ output, pinning, records = 2_000_000, runs = 4 }: Options): Promise<boolean> {
  const results = await runBeside(
    "sliding_child.ts",
    [String(records), String(runs)],
    pinning,
  ) as SlidingResult[];
  if (output === "table") {
    print(
      `\nSliding windows, slide 2 s, 1,000 keys; M records per CPU second, best of ${runs}; ${pinning.text}\n`,
    );
    printHead(SLIDING_COLUMNS);
  }
  const bestCpu = ({ costs }: SlidingResult): number =>
    Math.min(...costs.map(({ cpuSeconds }) => cpuSeconds));
  for (const result of results) {
    const { overlap, rows, costs, problems } = result;
    const best = bestCpu(result), relative = bestCpu(results[0]!) / best;
    if (output === "json") {
      print(JSON.stringify({
        name: "sliding",
        overlap,
        records,
        rows,
        rate: Math.round(records / best),
        cpuSeconds: rounded(best),
        relative: rounded(relative),
        correct: problems.length === 0,
        problems,
      }));
      continue;
    }
    printRow(SLIDING_COLUMNS, [
      String(overlap),
      String(records),
      String(rows),
      millions(records / best),
      millions(records / costs[0]!.cpuSeconds),
      relative.toFixed(3),
      problems.length === 0 ? "right" : "WRONG",
    ]);
    for (const problem of problems) print(`    ${problem}`);
  }
  return results.every(({ problems }) => problems.length === 0);
}

const STARTUP_COLUMNS: readonly Column[] = [["ms from process start", 24], ["median", 8], [
  "quartiles apart",
  15,
]];

async function runStartup({ output, runs = 20 }: Options): Promise<void> {
  const { firstRow, exit, empty } = await measureStartup(runs);
  if (output === "json") {
    const [row, end, nothing] = [middle(firstRow), middle(exit), middle(empty)];
    print(JSON.stringify({ name: "startup", runs, ...row, exitMs: end.medianMs, emptyMs: nothing.medianMs }));
    return;
  }
  print(`\nStart of a workflow of ten operators, ${runs} runs, not pinned\n`);
  printHead(STARTUP_COLUMNS);
  for (
    const [what, times] of [["first row", firstRow], ["exit", exit], ["empty program, exit", empty]] as const
  ) {
    const { medianMs, spreadMs } = middle(times);
    printRow(STARTUP_COLUMNS, [what, medianMs.toFixed(1), spreadMs.toFixed(1)]);
  }
}

async function main(args: readonly string[]): Promise<number> {
  let read: Omit<Options, "pinning">;
  try {
    read = readOptions(args);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    print(`bench: ${error.message}\nusage: deno task bench [NAME…] [--json] [--records N] [--runs N]`);
    return 2;
  }
  const options: Options = { ...read, pinning: await onOneCore() };
  if (options.output === "table") print(`${await circumstances()}; bench ${args.join(" ")}`.trimEnd());
  let right = true;
  const workloads = WORKLOADS.filter((name) => options.names.includes(name));
  if (workloads.length > 0) right = await runWorkloads(workloads, options) && right;
  if (options.names.includes("sliding")) right = await runSliding(options) && right;
  if (options.names.includes("startup")) await runStartup(options);
  return right ? 0 : 1;
}

Deno.exit(await main(Deno.args));
