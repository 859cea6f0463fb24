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
  jsonFormat,
  max,
  min,
  session,
  sliding,
  sum,
  tumbling,
} from "../mod.ts";
import { DISORDER_MS, type Inputs, type Order, type Sale, type Visit, type Workload } from "./data.ts";
import { memorySource, payloadSource, tallySink } from "./memory.ts";
import { FeeTally, type OrderWithFee, RunningTally, SessionTally, type Sums, WindowTally } from "./tally.ts";

/** Builds the pipeline of a workload, runs it over `input` to its regular end, and gives the sums of its rows. */
export function runPipeline<W extends Workload>(name: W, input: Inputs[W]): Promise<Sums> {
  return PIPELINES[name](input);
}

const PIPELINES: { readonly [W in Workload]: (input: Inputs[W]) => Promise<Sums> } = {
  "W-a": addFees,
  "W-b": runningSums,
  "W-c": tumblingSums,
  "W-d": (input) => slidingCounts(input, 10_000, 2000),
  "W-e": sessions,
};

const PARTITIONS = { partitions: 4 };
const EVENT_TIME = {
  timestamp: ({ ts }: { readonly ts: number }) => ts,
  watermarks: boundedOutOfOrderness(DISORDER_MS),
};

async function addFees(input: readonly Order[]): Promise<Sums> {
  const tally = new FeeTally();
  const env = createEnv({ name: "W-a" });
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

async function runningSums(input: readonly Sale[]): Promise<Sums> {
  const tally = new RunningTally();
  const env = createEnv({ name: "W-b" });
  env
    .fromSource(memorySource(input))
    .keyBy((sale) => sale.key, PARTITIONS)
    .reduce((sum: number | undefined, sale) => (sum ?? 0) + sale.value)
    .toSink(tallySink((batch, i) => tally.add(batch.key(i) as string, batch.values[i]!)));
  await env.execute();
  return tally.sums();
}

async function tumblingSums(input: readonly Uint8Array[]): Promise<Sums> {
  const tally = new WindowTally(1, 10_000, 1);
  const env = createEnv({ name: "W-c" });
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
export async function slidingCounts(input: readonly Visit[], sizeMs: number, slideMs: number): Promise<Sums> {
  const tally = new WindowTally(4, slideMs, sizeMs / slideMs);
  const env = createEnv({ name: "W-d" });
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

async function sessions(input: readonly Visit[]): Promise<Sums> {
  const tally = new SessionTally();
  const env = createEnv({ name: "W-e" });
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
