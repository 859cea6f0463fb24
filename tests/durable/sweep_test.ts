/**
 * Crashes at every call that has an effect outside the process, against the run that did not crash.
 *
 * @module
 */
import { ManifestStore } from "../../lib/checkpoint/manifest.ts";
import assert from "node:assert/strict";
import {
  boundedOutOfOrderness,
  createEnv,
  type Env,
  type KeyedContext,
  session,
  sliding,
  type Stream,
  tumbling,
} from "../../mod.ts";
import {
  committingSink,
  CrashPoint,
  lastingBackend,
  newPages,
  Outside,
  type Sample,
  slowSource,
} from "./kit.ts";
import { RESIDENT, type StateLimits } from "../../lib/state/log/mod.ts";

/** Records of several splits, a little out of order. */
function samples(count: number, seed: number): Sample[] {
  let state = seed;
  const next = (below: number): number => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor(state / 2 ** 32 * below);
  };
  return Array.from({ length: count }, (_, i) => ({
    key: `k${next(7)}`,
    at: i * 100 + next(400),
    value: next(100),
  }));
}
const SPLITS = { a: samples(120, 1), b: samples(100, 2) };
/** Where the order between splits matters there is one: which of two is read first may differ from run to run. */
const ONE_SPLIT = { a: samples(200, 3) };
const IN_ORDER = ["chain", "process with state and timers", "dedupe"];

type Topology = (stream: Stream<Sample>, partitions: number, env: Env) => Stream<unknown>;

const total = (sum: number | undefined, { value }: Sample): number => (sum ?? 0) + value;

const TOPOLOGIES: Record<string, Topology> = {
  chain: (stream, partitions) =>
    stream.filter(({ value }) => value > 3).keyBy(({ key }) => key, { partitions }).reduce(total),
  "tumbling windows": (stream, partitions) =>
    stream.keyBy(({ key }) => key, { partitions }).window(tumbling("2s")).reduce(total)
      .map((sum, { key, window }) => ({ key, sum, window })),
  "windows on windows": (stream, partitions) =>
    stream.keyBy(({ key }) => key, { partitions }).window(tumbling("1s")).reduce(total)
      .map((sum, { key }) => ({ key: (key as string).slice(0, 1), sum: sum as number }))
      .keyBy(({ key }) => key, { partitions }).window(tumbling("4s"))
      .reduce((sum: number | undefined, row) => (sum ?? 0) + row.sum),
  sliding: (stream, partitions) =>
    stream.keyBy(({ key }) => key, { partitions }).window(sliding("4s", "1s")).reduce(total)
      .map((sum, { key, window }) => ({ key, sum, window })),
  sessions: (stream, partitions) =>
    stream.keyBy(({ key }) => key, { partitions }).window(session("900ms")).reduce(total, {
      merge: (a, b) => a + b,
    }).map((sum, { key, window }) => ({ key, sum, window })),
  "branch and union": (stream, partitions) => {
    const small = stream.filter(({ value }) => value < 50).map((sample) => ({
      ...sample,
      value: -sample.value,
    }));
    return stream.union(small).keyBy(({ key }) => key, { partitions }).window(tumbling("3s")).reduce(total)
      .map((sum, { key, window }) => ({ key, sum, window }));
  },
  "process with state and timers": (stream, partitions) =>
    stream.keyBy(({ key }) => key, { partitions }).processKeyed({
      onRecord({ value }, context: KeyedContext<string>) {
        const seen = context.value<number>("seen");
        seen.set((seen.get() ?? 0) + value);
        context.setEventTimer(context.timestamp + 1500, "flush");
      },
      onTimer(timer, context) {
        const seen = context.value<number>("seen");
        context.emit({ key: context.key, at: timer.time, seen: seen.get() });
        seen.clear();
      },
    }),
  dedupe: (stream, partitions) => stream.keyBy(({ key }) => key, { partitions }).dedupe({ ttl: "1s" }),
};

interface World {
  readonly limits: StateLimits;
  readonly splits: Readonly<Record<string, readonly Sample[]>>;
  readonly pages: ReturnType<typeof newPages>;
  readonly outside: Outside;
}

function pipeline(
  topology: Topology,
  partitions: number,
  { splits, limits, pages, outside }: World,
  point: CrashPoint,
): Env {
  const env = createEnv({ name: "swept" }).withBufferSize(16)
    .withCheckpointing("1ms", { retain: 2 }).withStateBackend(lastingBackend(pages, point, limits));
  const stream = env.fromSource(slowSource(splits), {
    timestamp: ({ at }) => at,
    watermarks: boundedOutOfOrderness("500ms"),
  });
  topology(stream, partitions, env).toSink(committingSink(outside, point), { id: "out" });
  return env;
}

/** Second runs that found a checkpoint. */
let restored = 0;

/** Runs until the crash, if there is one, and then again until the end, with another number of partitions. */
async function run(
  topology: Topology,
  partitions: readonly [number, number],
  world: World,
  point: CrashPoint,
): Promise<void> {
  const handle = pipeline(topology, partitions[0], world, point).start();
  handle.done.catch(() => {}); // the crash below
  await Promise.race([handle.done.catch(() => {}), point.happened]);
  if (!point.crashed) return await handle.done;
  handle.abort(new Error("crashed"));
  await handle.done.catch(() => {});
  const left = await new ManifestStore(world.pages).list();
  if (left.length > 0) restored++;
  await pipeline(topology, partitions[1], world, new CrashPoint()).execute();
}

const sorted = (rows: readonly unknown[]): string[] => rows.map((row) => JSON.stringify(row)).sort();

/** Everything in memory; and next to nothing there, so that keys leave it and are fetched, and runs of pages come and go. */
const LIMITS: Record<string, StateLimits> = {
  "": RESIDENT,
  ", state that does not fit into memory": { changes: 4, liveBytes: 1000, cacheBytes: 4000, fanIn: 3 },
};
const CASES = Object.entries(TOPOLOGIES).flatMap(([name, topology]) =>
  Object.entries(LIMITS).map(([suffix, limits]) => ({ name, topology, suffix, limits }))
);

for (const { name, topology, suffix, limits } of CASES) {
  Deno.test(`crash sweep, ${name}${suffix}: the output is that of the run that did not crash`, async () => {
    const splits = IN_ORDER.includes(name) ? ONE_SPLIT : SPLITS;
    const newWorld = (): World => ({ splits, limits, pages: newPages(), outside: new Outside() });
    const whole = newWorld(), count = new CrashPoint();
    await run(topology, [1, 1], whole, count);
    const expected = sorted(whole.outside.visible);
    assert.ok(expected.length > 0);
    let crashes = 0;
    restored = 0;
    for (const partitions of [[1, 1], [3, 3], [8, 8], [3, 7], [4, 2]] as const) {
      // The number of calls differs a little from run to run: the sweep ends where a run has come through.
      for (let at = 1, isThrough = false; !isThrough; at += 1 + Math.floor(at / 12)) {
        for (const before of [true, false]) {
          const world = newWorld(), point = new CrashPoint(at, before);
          await run(topology, partitions, world, point);
          if (point.crashed) crashes++;
          else isThrough = true;
          const what = `${partitions.join(", then ")} partitions, crash ${
            before ? "before" : "behind"
          } call ${at}`;
          assert.deepEqual(sorted(world.outside.visible), expected, what);
        }
      }
    }
    assert.ok(crashes > 80 && restored > 40, `only ${crashes} crashes, ${restored} with a checkpoint`);
  });
}
