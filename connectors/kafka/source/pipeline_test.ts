/**
 * Whole pipelines over a cluster in memory: checkpoints, groups and event time as the runtime has them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { boundedOutOfOrderness, createEnv, type Env, tumbling } from "../../../mod.ts";
import { type CollectingSink, collectingSink, settle, VirtualClock } from "../../../testing.ts";
import { count, sum } from "../../../lib/aggregate/mod.ts";
import { MemoryPages } from "../../../lib/state/pages/memory.ts";
import { CrashPoint, lastingBackend } from "../../../tests/durable/kit.ts";
import { kafkaSource, type KafkaSourceOptions } from "../kafka_source.ts";
import { FakeKafka } from "../testing/fake_client.ts";
import { cluster, write } from "./kit_test.ts";

interface Item {
  readonly n: number;
}

function world(partitions: number) {
  const clock = new VirtualClock(), kafka = cluster(new FakeKafka(clock), partitions);
  const source = <T = Item>(options: Partial<KafkaSourceOptions<T>> = {}) =>
    kafkaSource<T>({ brokers: ["fake:9092"], topics: ["t"], client: kafka.connect, ...options });
  const envWith = (pages: MemoryPages, name = "p"): Env =>
    createEnv({ name }).withClock(clock).withBufferSize(4).withCheckpointing("10s")
      .withStateBackend(lastingBackend(pages, new CrashPoint()));
  let next = 0;
  const writeItems = (many: number) => {
    for (let i = 0; i < many; i++, next++) write(kafka, `t/${next % partitions}`, { n: next });
  };
  return { clock, kafka, source, envWith, writeItems };
}

const numbers = (...sinks: CollectingSink<Item>[]) =>
  sinks.flatMap(({ values }) => values.map(({ n }) => n)).toSorted((a, b) => a - b);
const range = (to: number) => Array.from({ length: to }, (_, i) => i);

Deno.test("R12: 1 → 2 → 1 processes of a pipeline, one of them slow: every record comes out once", async () => {
  const { clock, kafka, source, envWith, writeItems } = world(4);
  writeItems(40);
  const slowly = collectingSink<Item>(), quickly = collectingSink<Item>();
  const slow = envWith(new MemoryPages(), "slow");
  slow.fromSource(source({ groupId: "g" })).throttle(5).toSink(slowly.sink);
  const first = slow.start();
  await first.running;
  await clock.advance("2s");
  assert.ok(slowly.values.length < 20, "it is at work");
  const quick = envWith(new MemoryPages(), "quick");
  quick.fromSource(source({ groupId: "g" })).toSink(quickly.sink);
  const second = quick.start();
  await clock.advance("1s");
  writeItems(40);
  await clock.advance("30s"); // what was handed out is worked through before the partitions go
  await second.running;
  writeItems(40);
  await clock.advance("20s");
  assert.deepEqual(numbers(slowly, quickly), range(120));
  assert.ok(quickly.values.length >= 20);
  await second.stop();
  writeItems(40);
  await clock.advance("30s");
  assert.deepEqual(numbers(slowly, quickly), range(160), "all partitions are the first one's again");
  await first.stop();
  const committed = Object.values(kafka.committed("g"));
  assert.deepEqual(committed, [40, 40, 40, 40]);
});

Deno.test("K6: a pipeline whose sink is stuck for a quarter of an hour stays in its group", async () => {
  const { clock, kafka, source, envWith, writeItems } = world(2);
  const out: unknown[] = [], stuck = Promise.withResolvers<void>();
  const env = envWith(new MemoryPages());
  env.fromSource(source({ groupId: "g" })).toSink({
    type: "stuck",
    describe: () => ({}),
    open: () => ({
      write: async (batch) => {
        await stuck.promise;
        out.push(...batch.values);
      },
      flush: () => {},
      close: () => {},
    }),
  });
  const run = env.start();
  await run.running;
  writeItems(100);
  await clock.advance("15m");
  assert.equal(kafka.members("g").length, 1);
  stuck.resolve();
  await settle();
  assert.equal(out.length, 100);
  await run.stop();
  assert.deepEqual(kafka.committed("g"), { "t/0": 50, "t/1": 50 });
});

Deno.test("state by key: after a crash, sums go on from the checkpoint and its offsets, not from the group's", async () => {
  const { clock, kafka, source, envWith, writeItems } = world(2);
  const pages = new MemoryPages();
  const build = (rows: CollectingSink<{ n: number; total: number }>) => {
    const env = envWith(pages);
    env.fromSource(source({ groupId: "g" })).keyBy(({ n }) => n % 2).aggregate({
      total: sum(({ n }) => n),
      n: count(),
    })
      .toSink(rows.sink);
    return env;
  };
  writeItems(20);
  const first = build(collectingSink()).start();
  await first.running;
  await clock.advance("11s"); // a checkpoint with 20 records
  writeItems(20);
  await settle();
  await first.abort();
  await assert.rejects(first.done);
  kafka.group("g").store([{ topic: "t", partition: 0, offset: 3 }, { topic: "t", partition: 1, offset: 30 }]);
  const rows = collectingSink<{ n: number; total: number }>(), second = build(rows).start();
  await second.running;
  await settle();
  await second.stop();
  const odd = (n: number) => n % 2 === 1, add = (a: number, b: number) => a + b;
  const last = (total: number) => rows.values.filter((row) => row.total === total).map(({ n }) => n);
  assert.deepEqual(last(range(40).filter(odd).reduce(add)), [20]);
  assert.deepEqual(last(range(40).filter((n) => !odd(n)).reduce(add)), [20]);
  assert.equal(Math.max(...rows.values.map(({ n }) => n)), 20, "no record twice in the state");
  assert.deepEqual(kafka.committed("g"), { "t/0": 20, "t/1": 20 });
});

Deno.test("start latest: what comes while a pipeline is stopped is read when it is back", async () => {
  const { kafka, source, envWith } = world(1);
  write(kafka, "t/0", { n: -1 });
  const pages = new MemoryPages(), out = collectingSink<Item>();
  const run = async () => {
    const env = envWith(pages);
    env.fromSource(source({ start: "latest" })).toSink(out.sink);
    const handle = env.start();
    await handle.running;
    await settle();
    await handle.stop();
  };
  await run(); // and not one record
  write(kafka, "t/0", { n: 0 }, { n: 1 });
  await run();
  assert.deepEqual(numbers(out), [0, 1]);
});

Deno.test("W1: a partition that nothing comes from holds no window open for longer than the idle timeout", async () => {
  const { kafka, clock, source } = world(2);
  const rows = collectingSink<{ n: number }>();
  const env = createEnv().withClock(clock);
  env.fromSource(source({}), { watermarks: boundedOutOfOrderness(0, { idleTimeout: "5s" }) })
    .keyBy(() => "k").window(tumbling("1s")).aggregate({ n: count() }).toSink(rows.sink);
  const run = env.start();
  await run.running;
  kafka.write("t", 0, [0, 100, 2500].map((timestamp) => ({ value: "{}", timestamp })));
  await settle();
  assert.deepEqual(rows.values.length, 0, "the other partition has said nothing yet");
  await clock.advance("4s");
  assert.deepEqual(rows.values.length, 0);
  await clock.advance("2s");
  assert.deepEqual(rows.values.map(({ n }) => n), [2]);
  await run.stop();
});

Deno.test("until end: a bounded pipeline ends, its windows close, and running it again reads nothing twice", async () => {
  const { kafka, source, envWith, writeItems } = world(3);
  writeItems(30);
  const pages = new MemoryPages(), rows = collectingSink<{ n: number }>();
  for (let i = 0; i < 2; i++) {
    const env = envWith(pages);
    env.fromSource(source({ until: "end", groupId: "g" })).keyBy(() => "k").window(tumbling("1d"))
      .aggregate({ n: count() }).toSink(rows.sink);
    await env.execute();
  }
  assert.deepEqual(rows.values.map(({ n }) => n), [30]);
  assert.deepEqual(kafka.committed("g"), { "t/0": 10, "t/1": 10, "t/2": 10 });
  assert.equal(kafka.clients.size, 0);
});
