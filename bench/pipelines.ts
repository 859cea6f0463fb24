/**
 * The workloads as pipelines of the engine, written as a user would write them.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import {
  boundedOutOfOrderness,
  count,
  createEnv,
  type Env,
  jsonFormat,
  kv,
  max,
  memory,
  min,
  session,
  sliding,
  sqlite,
  sum,
  tumbling,
} from "../mod.ts";
import { DISORDER_MS, type Inputs, type Order, type Sale, type Visit, type Workload } from "./data.ts";
import { memorySource, payloadSource, tallySink } from "./memory.ts";
import { FeeTally, type OrderWithFee, RunningTally, SessionTally, type Sums, WindowTally } from "./tally.ts";

/** Where the state of a pipeline is. */
export type StateKind = "none" | "memory" | "kv" | "sqlite";

/** Begins a pipeline. */
type NewEnv = (name: string) => Env;

/**
 * Builds the pipeline of a workload, runs it over `input` to its regular end, and gives the sums of its rows.
 *
 * @param state Other than `none`: with a checkpoint every `interval` and one at the end, in a folder of its own.
 */
export async function runPipeline<W extends Workload>(
  name: W,
  input: Inputs[W],
  state: StateKind = "none",
  interval: string = "10s",
): Promise<Sums> {
  if (state === "none") return await PIPELINES[name](input, (name) => createEnv({ name }));
  const folder = await Deno.makeTempDir({ prefix: "mailer-bench-" });
  try {
    const backend = { memory, kv, sqlite }[state](folder);
    const newEnv: NewEnv = (name) =>
      createEnv({ name }).withCheckpointing(interval).withStateBackend(backend);
    return await PIPELINES[name](input, newEnv);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const PIPELINES: { readonly [W in Workload]: (input: Inputs[W], newEnv: NewEnv) => Promise<Sums> } = {
  "W-a": addFees,
  "W-b": runningSums,
  "W-c": tumblingSums,
  "W-d": (input, newEnv) => slidingCounts(input, 10_000, 2000, newEnv),
  "W-e": sessions,
};

const PARTITIONS = { partitions: 4 };
const EVENT_TIME = {
  timestamp: ({ ts }: { readonly ts: number }) => ts,
  watermarks: boundedOutOfOrderness(DISORDER_MS),
};

async function addFees(input: readonly Order[], newEnv: NewEnv): Promise<Sums> {
  const tally = new FeeTally();
  const env = newEnv("W-a");
  env
    .fromSource(memorySource(input))
    .filter((order) => order.status === "completed")
    .map(({ id, customer, amount, status, ts }): OrderWithFee => {
      return { id, customer, amount, status, ts, fee: amount * 0.125 };
    })
    .toSink(tallySink((batch, i) => tally.add(batch.values[i]!)));
  await env.execute();
  return tally.sums();
}

async function runningSums(input: readonly Sale[], newEnv: NewEnv): Promise<Sums> {
  const tally = new RunningTally();
  const env = newEnv("W-b");
  env
    .fromSource(memorySource(input))
    .keyBy((sale) => sale.key, PARTITIONS)
    .reduce((sum: number | undefined, sale) => (sum ?? 0) + sale.value)
    .toSink(tallySink((batch, i) => tally.add(batch.key(i) as string, batch.values[i]!)));
  await env.execute();
  return tally.sums();
}

async function tumblingSums(input: readonly Uint8Array[], newEnv: NewEnv): Promise<Sums> {
  const tally = new WindowTally(1, 10_000, 1);
  const env = newEnv("W-c");
  env
    .fromSource(payloadSource(input, jsonFormat<Order>().decoder()), EVENT_TIME)
    .keyBy((order) => order.customer, PARTITIONS)
    .window(tumbling("10s"))
    .aggregate({ count: count(), sum: sum("amount") })
    .map(({ count, sum }, { key, window }) => {
      const { start, end } = window!;
      tally.add(key as string, start, count, Number(sum));
      return Buffer.from(JSON.stringify({ customer: key, start, end, count, sum }));
    })
    .toSink(tallySink(() => {}));
  await env.execute();
  return tally.sums();
}

/** W-d with any windows; `slideMs` divides `sizeMs`. */
export async function slidingCounts(
  input: readonly Visit[],
  sizeMs: number,
  slideMs: number,
  newEnv: NewEnv = (name) => createEnv({ name }),
): Promise<Sums> {
  const tally = new WindowTally(4, slideMs, sizeMs / slideMs);
  const env = newEnv("W-d");
  env
    .fromSource(memorySource(input), EVENT_TIME)
    .keyBy((visit) => visit.key, PARTITIONS)
    .window(sliding(sizeMs, slideMs))
    .aggregate({ count: count() })
    .toSink(tallySink((batch, i) => {
      tally.add(batch.key(i) as string, batch.window(i)!.start, batch.values[i]!.count, 0);
    }));
  await env.execute();
  return tally.sums();
}

async function sessions(input: readonly Visit[], newEnv: NewEnv): Promise<Sums> {
  const tally = new SessionTally();
  const env = newEnv("W-e");
  env
    .fromSource(memorySource(input), EVENT_TIME)
    .keyBy((visit) => visit.key, PARTITIONS)
    .window(session("5s"))
    .aggregate({
      count: count(),
      first: min((visit: Visit) => visit.ts),
      last: max((visit: Visit) => visit.ts),
    })
    .toSink(tallySink((batch, i) => {
      const { count, first, last } = batch.values[i]!;
      tally.add(batch.key(i) as string, count, first as number, last as number);
    }));
  await env.execute();
  return tally.sums();
}
