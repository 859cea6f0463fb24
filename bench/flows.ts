/**
 * How fast flows run: one engine, workers in its process, the client beside them. What is counted has ended, and its sum was checked.
 *
 * - executions: three steps each, so many in flight, completed a second; how many decisions share an operation of the store;
 * - alone: one execution after the other, ms a step, and until a start is acknowledged;
 * - sequence: a hundred steps each, steps a second;
 * - parked: executions that wait for a signal, their process gone; another takes them up, and each of them comes to its end.
 *
 * `deno run -A bench/flows.ts [SECONDS] [--parked=10000] [--only=executions,alone,sequence,parked] [--json]`
 *
 * @module
 */
import process from "node:process";
import { fileURLToPath } from "node:url";
import { type Flow, parseFlow } from "../lib/flow/definition/mod.ts";
import { FlowClient } from "../lib/flow/client/mod.ts";
import { FlowEngine, type Handler } from "../lib/flow/engine/mod.ts";
import { type FlowStore, openKvStore, openMemoryStore, type StoreStats } from "../lib/flow/store/mod.ts";
import { type Column, print, printHead, printRow, rounded } from "./print.ts";

/** Where a store lies. */
export type Place = "file" | "memory";

/** One measurement: some of the numbers, by what was measured. */
export interface FlowsResult {
  readonly what: "executions" | "alone" | "sequence" | "parked";
  readonly place: Place;
  /** Executions in flight. */
  readonly inFlight: number;
  /** Executions that came to their end, and were right. */
  readonly completed: number;
  /** Executions completed a second. */
  readonly rate: number;
  /** Steps completed a second. */
  readonly steps: number;
  /** ms of CPU time, that of all threads, an execution. */
  readonly cpuMs: number;
  /** ms a step of a lone execution, median. */
  readonly stepMs?: number;
  /** ms until a start is acknowledged, median. */
  readonly startMs?: number;
  /** Operations of the store a decision. */
  readonly commits: number;
  /** Writes of any kind a decision, decisions among them. */
  readonly units: number;
  /** Seconds from the start of the process that took them up until all had come to their end. */
  readonly recoveredS?: number;
  /** Seconds of those until its engine was ready. */
  readonly readyS?: number;
  /** MiB of its heap when it was ready, and when all had come to their end. */
  readonly heapMiB?: readonly [ready: number, ended: number];
}

const STEPS = 3, LONG = 100;

function flowOf(name: string, steps: number): Flow {
  const nodes = Array.from({ length: steps }, (_, i) => {
    return `  - { id: s${i}, type: task, kind: add${i + 1 < steps ? `, next: s${i + 1}` : ""} }\n`;
  });
  return parsed(`name: ${name}\nstart: s0\nnodes:\n${nodes.join("")}`);
}

function parsed(text: string): Flow {
  const { flow, problems } = parseFlow(text, { file: "bench.yaml" });
  if (flow === undefined) throw new Error(problems.map(({ message }) => message).join("\n"));
  return flow;
}

const FLOWS: readonly Flow[] = [
  flowOf("three", STEPS),
  flowOf("long", LONG),
  parsed(`name: parked
start: w
nodes:
  - { id: w, type: await, signal: go, timeout: 365d, next: s0 }
  - { id: s0, type: task, kind: add }
`),
];

/** A step: one more than the step before gave, or than the input. */
const add: Handler = ({ node, context }) => {
  const i = Number(node.slice(1)), { results, input } = context;
  const before = i === 0 ? input : results[`s${i - 1}`];
  return { n: (before as { readonly n: number }).n + 1 };
};

/** A store with an engine and a client. */
class Bench implements AsyncDisposable {
  readonly store: FlowStore;
  readonly engine: FlowEngine;
  readonly client: FlowClient;

  private constructor(store: FlowStore) {
    this.store = store;
    this.engine = new FlowEngine({ store, flows: FLOWS }).worker("add", add, { concurrency: 256 });
    this.client = new FlowClient({ store, engine: this.engine });
  }

  static async open(place: Place, path: string): Promise<Bench> {
    const bench = new Bench(place === "file" ? await openKvStore({ path }) : await openMemoryStore());
    await bench.engine.start();
    return bench;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.engine.drain();
    await this.store[Symbol.asyncDispose]();
  }

  /** One execution, from its start to its end; ms until the start was acknowledged. */
  async run(flow: string, steps: number, n: number): Promise<number> {
    const began = performance.now(), { id } = await this.client.start(flow, { n });
    const acknowledged = performance.now() - began;
    await this.ended(id, n + steps);
    return acknowledged;
  }

  async ended(id: string, sum: number): Promise<void> {
    const { status, output } = await this.client.wait(id);
    const found = (output as { readonly n?: number } | undefined)?.n;
    if (status !== "completed" || found !== sum) throw new Error(`${id} is ${status}: ${found}, not ${sum}`);
  }
}

/** So many executions in flight, for so long. */
async function measureMany(
  bench: Bench,
  [what, place]: [FlowsResult["what"], Place],
  [flow, steps, inFlight]: [string, number, number],
  seconds: number,
): Promise<FlowsResult> {
  let completed = 0, number = 0;
  const starts: number[] = [];
  const round = async (until: number): Promise<void> => {
    await Promise.all(Array.from({ length: inFlight }, async () => {
      while (performance.now() < until) {
        starts.push(await bench.run(flow, steps, number++));
        if (performance.now() < until) completed++;
      }
    }));
  };
  await round(performance.now() + 1000 * Math.min(2, seconds)); // warm
  completed = starts.length = 0;
  const before = bench.store.stats(), cpu = process.cpuUsage();
  await round(performance.now() + 1000 * seconds);
  return {
    what,
    place,
    inFlight,
    completed,
    cpuMs: cpuOf(cpu, starts.length),
    rate: Math.round(completed / seconds),
    steps: Math.round(completed * steps / seconds),
    startMs: median(starts),
    ...perDecision(before, bench.store.stats()),
  };
}

/** One execution after the other. */
async function measureAlone(bench: Bench, place: Place, seconds: number): Promise<FlowsResult> {
  const starts: number[] = [], wholes: number[] = [];
  const round = async (until: number): Promise<void> => {
    for (let n = 0; performance.now() < until; n++) {
      const began = performance.now(), start = await bench.run("three", STEPS, n);
      starts.push(start);
      wholes.push((performance.now() - began - start) / STEPS);
    }
  };
  await round(performance.now() + 1000);
  starts.length = wholes.length = 0;
  const before = bench.store.stats(), cpu = process.cpuUsage();
  await round(performance.now() + 1000 * seconds);
  return {
    what: "alone",
    cpuMs: cpuOf(cpu, starts.length),
    place,
    inFlight: 1,
    completed: wholes.length,
    rate: Math.round(wholes.length / seconds),
    steps: Math.round(STEPS * wholes.length / seconds),
    stepMs: median(wholes),
    startMs: median(starts),
    ...perDecision(before, bench.store.stats()),
  };
}

/** What is parked by one process and taken up by another. */
async function measureParked(count: number, path: string): Promise<FlowsResult> {
  {
    await using bench = await Bench.open("file", path);
    let next = 0;
    await Promise.all(Array.from({ length: 200 }, async () => {
      while (next < count) {
        const n = next++;
        await bench.client.start("parked", { n }, { id: `parked-${n}` });
      }
    }));
  }
  const began = performance.now();
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", fileURLToPath(import.meta.url), `--take-up=${path}`, `--parked=${count}`],
  }).output();
  const seconds = (performance.now() - began) / 1000;
  if (code !== 0) throw new Error(new TextDecoder().decode(stderr));
  const said = JSON.parse(new TextDecoder().decode(stdout)) as TakenUp;
  return {
    what: "parked",
    place: "file",
    inFlight: count,
    completed: count,
    rate: Math.round(count / seconds),
    steps: Math.round(count / seconds),
    recoveredS: rounded(seconds, 3),
    ...said,
  };
}

type TakenUp = Pick<FlowsResult, "readyS" | "cpuMs" | "heapMiB" | "commits" | "units">;

/** In the other process: wakes all that is parked, and sees each of them end. */
async function takeUp(path: string, count: number): Promise<TakenUp> {
  const began = performance.now();
  await using bench = await Bench.open("file", path);
  const readyS = rounded((performance.now() - began) / 1000, 3), ready = heap();
  const before = bench.store.stats();
  let next = 0;
  await Promise.all(Array.from({ length: 200 }, async () => {
    while (next < count) {
      const n = next++, id = `parked-${n}`;
      await bench.client.signal(id, "go", {});
      await bench.ended(id, n + 1);
    }
  }));
  const cpuMs = cpuOf({ user: 0, system: 0 }, count);
  return { readyS, cpuMs, heapMiB: [ready, heap()], ...perDecision(before, bench.store.stats()) };
}

function cpuOf(before: NodeJS.CpuUsage, executions: number): number {
  const { user, system } = process.cpuUsage(before);
  return rounded((user + system) / 1000 / executions, 3);
}

function heap(): number {
  return Math.round(process.memoryUsage().heapUsed / 2 ** 20);
}

function perDecision(before: StoreStats, after: StoreStats): Pick<FlowsResult, "commits" | "units"> {
  const decisions = after.decisions - before.decisions;
  return {
    commits: rounded((after.commits - before.commits) / decisions, 3),
    units: rounded((after.units - before.units) / decisions, 3),
  };
}

function median(values: number[]): number {
  return rounded(values.sort((a, b) => a - b)[values.length >> 1] ?? NaN, 3);
}

/** All of them, one after the other. */
export async function measureFlows(
  seconds: number,
  parked: number,
  only: readonly string[],
  places: readonly string[] = ["file", "memory"],
): Promise<FlowsResult[]> {
  const folder = await Deno.makeTempDir({ prefix: "mailer-flows-" }), results: FlowsResult[] = [];
  const wanted = (what: FlowsResult["what"]): boolean => only.length === 0 || only.includes(what);
  try {
    for (const place of ["file", "memory"] as const) {
      if (!places.includes(place)) continue;
      for (const what of ["executions", "sequence", "alone"] as const) {
        if (!wanted(what)) continue;
        await using bench = await Bench.open(place, `${folder}/${what}`);
        if (what === "alone") results.push(await measureAlone(bench, place, seconds));
        else {
          const load = what === "executions"
            ? ["three", STEPS, 200] as [string, number, number]
            : ["long", LONG, 50] as [string, number, number];
          results.push(await measureMany(bench, [what, place], load, seconds));
        }
      }
    }
    if (wanted("parked")) results.push(await measureParked(parked, `${folder}/parked`));
    return results;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const COLUMNS: readonly Column[] = [
  ["what", 18],
  ["in flight", 9],
  ["completed", 9],
  ["a second", 8],
  ["steps/s", 8],
  ["CPU ms each", 11],
  ["step ms", 7],
  ["start ms", 8],
  ["commits each", 12],
  ["writes each", 11],
  ["recovered s", 11],
  ["heap MiB", 9],
];

function show(result: FlowsResult): void {
  const {
    what,
    place,
    inFlight,
    completed,
    rate,
    steps,
    cpuMs,
    stepMs,
    startMs,
    commits,
    units,
    recoveredS,
    heapMiB,
  } = result;
  const numbers = [inFlight, completed, rate, steps, cpuMs, stepMs, startMs, commits, units, recoveredS];
  printRow(COLUMNS, [
    `${what}, ${place}`,
    ...numbers.map((value) => value === undefined ? "" : String(value)),
    heapMiB?.join(" → ") ?? "",
  ]);
}

function option(name: string): string | undefined {
  return Deno.args.find((arg) => arg.startsWith(`--${name}=`))?.slice(name.length + 3);
}

if (import.meta.main) {
  const path = option("take-up"), parked = Number(option("parked") ?? 10_000);
  if (path !== undefined) print(JSON.stringify(await takeUp(path, parked)));
  else {
    const seconds = Number(Deno.args.find((arg) => !arg.startsWith("--")) ?? 5);
    const results = await measureFlows(seconds, parked, option("only")?.split(",") ?? []);
    if (Deno.args.includes("--json")) print(JSON.stringify(results));
    else {
      printHead(COLUMNS);
      for (const result of results) show(result);
    }
  }
}
