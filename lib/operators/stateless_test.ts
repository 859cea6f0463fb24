import assert from "node:assert/strict";
import { createEnv } from "../stream/env.ts";
import type { Stream } from "../stream/stream.ts";
import { count } from "../aggregate/mod.ts";
import { boundedOutOfOrderness, monotonic } from "../runtime/watermarks.ts";
import {
  collectingSink,
  harness,
  scriptedSource,
  type ScriptStep,
  settle,
  VirtualClock,
} from "../testing/mod.ts";
import { tumbling } from "../window/mod.ts";

/** Runs numbers through a pipeline; timestamps count up from 0. */
async function through<Out>(
  values: readonly number[],
  build: (numbers: Stream<number>) => Stream<Out>,
  bufferSize = 1024,
): Promise<readonly Out[]> {
  const script = scriptedSource<number>([{ do: "records", values, timestamps: values.map((_, i) => i) }, {
    do: "end",
  }]);
  const out = collectingSink<Out>();
  const env = createEnv().withBufferSize(bufferSize);
  build(env.fromSource(script.source)).toSink(out.sink);
  await env.execute();
  return out.values;
}
const upTo = (length: number) => Array.from({ length }, (_, i) => i);

Deno.test("flatMap keeps the order, drops what gives nothing, and takes any iterable", async () => {
  const got = await through([0, 1, 2, 3], (numbers) =>
    numbers.flatMap(function* (n) {
      for (let i = 0; i < n; i++) yield n * 10 + i;
    }));
  assert.deepEqual(got, [10, 20, 21, 30, 31, 32]);
});

Deno.test("a flatMap may give hundreds of thousands of values for one record, through the smallest buffer", async () => {
  const got = await through(
    [1],
    (numbers) => numbers.flatMap(() => upTo(300_000)).filter((n) => n % 3 === 0),
    1,
  );
  assert.equal(got.length, 100_000);
  assert.equal(got.at(-1), 299_997);
});

Deno.test("explode keeps the rest of the record beside each element", async () => {
  const got = await through(
    [2, 0, 3],
    (numbers) => numbers.explode((n) => upTo(n), (n, item) => `${n}:${item}`),
  );
  assert.deepEqual(got, ["2:0", "2:1", "3:0", "3:1", "3:2"]);
});

Deno.test("route sends a record to the first route that is true, else to the fallback, else nowhere; Y8: counted", async () => {
  const script = scriptedSource<number>([{ do: "records", values: upTo(10) }, { do: "end" }]);
  const env = createEnv();
  const { two, three } = env.fromSource(script.source).route([
    { name: "two", when: (n) => n % 2 === 0 },
    { name: "three", when: (n) => n % 3 === 0 },
  ], { id: "split" });
  const [twos, threes] = [collectingSink<number>(), collectingSink<number>()];
  two.toSink(twos.sink);
  three.toSink(threes.sink);
  const handle = env.start();
  await handle.done;
  assert.deepEqual(twos.values, [0, 2, 4, 6, 8]);
  assert.deepEqual(threes.values, [3, 9]);
  assert.deepEqual(handle.status().dropped, [{ operator: "split", reason: "unrouted", count: 3 }]);
});

Deno.test("sample keeps the same records in every run, however the input is cut, and about the share asked for", async () => {
  const values = upTo(5000);
  const once = await through(values, (numbers) => numbers.sample(0.2, { seed: 7 }));
  for (const bufferSize of [1, 64]) {
    assert.deepEqual(
      await through(values.slice(0, 500), (numbers) => numbers.sample(0.2, { seed: 7 }), bufferSize),
      once.filter((n) => n < 500),
    );
  }
  assert.ok(Math.abs(once.length - 1000) < 100, `${once.length} of 5000`);
  assert.notDeepEqual(await through(values, (numbers) => numbers.sample(0.2, { seed: 8 })), once);
  assert.deepEqual(await through(values, (numbers) => numbers.sample(0)), []);
  assert.deepEqual(await through(values, (numbers) => numbers.sample(1)), values);
});

Deno.test("throttle lets so many through per stretch of time, keeps order, and holds nothing back when there is room", async () => {
  const h = await harness<number, number>((numbers) => numbers.throttle(2, { per: "1s" }));
  for (let n = 0; n < 6; n++) await h.push(n);
  assert.deepEqual(h.output, [0, 1]);
  await h.advance(499);
  assert.deepEqual(h.output, [0, 1]);
  await h.advance(1);
  assert.deepEqual(h.output, [0, 1, 2]);
  await h.advance("1500ms");
  assert.deepEqual(h.output, [0, 1, 2, 3, 4, 5]);
  await h.advance("1h"); // saves up no more than one stretch
  for (let n = 6; n < 12; n++) await h.push(n);
  assert.deepEqual(h.output, [0, 1, 2, 3, 4, 5, 6, 7]);
  await h.advance("1h");
  await h.end();
  assert.equal(h.output.length, 12);
});

Deno.test("throttle slower than one a stretch, and a batch larger than the rate", async () => {
  const clock = new VirtualClock(), out = collectingSink<number>();
  const script = scriptedSource<number>([{ do: "records", values: upTo(5) }, { do: "end" }]);
  const env = createEnv().withClock(clock);
  env.fromSource(script.source).throttle(0.5, { per: "1s" }).toSink(out.sink);
  const handle = env.start();
  await settle();
  for (let i = 0; i < 5; i++) {
    await clock.advance("1999ms");
    assert.equal(out.values.length, Math.min(i + 1, 5), `${i}`);
    await clock.advance("1ms");
  }
  await handle.done;
  assert.deepEqual(out.values, upTo(5));
});

Deno.test("assignTimestamps gives event time and watermarks from there on", async () => {
  const h = await harness<number, { count: number }>(
    (numbers) =>
      numbers.assignTimestamps((n) => n, boundedOutOfOrderness(5)).keyBy(() => 0, { partitions: 1 })
        .window(tumbling(10)).aggregate({ count: count() }),
  );
  await h.watermark(1e9); // the source's own says nothing any more
  for (const n of [3, 12, 4, 14]) await h.push(n, { timestamp: 5 });
  assert.deepEqual(h.output, [], "the watermark is 9");
  await h.push(15, { timestamp: 5 });
  assert.deepEqual(h.output, [{ count: 2 }]);
  await h.push(9, { timestamp: 5 }); // late
  await h.end();
  assert.deepEqual(h.output, [{ count: 2 }, { count: 3 }]);
  assert.deepEqual(h.handle.status().dropped, [{ operator: "aggregate", reason: "late", count: 1 }]);
});

Deno.test("assignTimestamps keeps a watermark for each split, and passes idleness and ends on", async () => {
  const idle = 1000;
  const h = await harness<number, { count: number }>(
    (numbers) =>
      numbers.assignTimestamps((n) => n, monotonic()).keyBy(() => 0, { partitions: 2 })
        .window(tumbling(10)).aggregate({ count: count() }),
    { splits: ["a", "b"], watermarks: boundedOutOfOrderness(0, { idleTimeout: idle }) },
  );
  await h.push(3, { split: "a" });
  await h.push(25, { split: "a" });
  assert.deepEqual(h.output, [], "b has not been read");
  await h.push(12, { split: "b" });
  assert.deepEqual(h.output, [{ count: 1 }]);
  await h.empty("b");
  await h.advance(idle);
  await h.empty("b");
  assert.deepEqual(h.output, [{ count: 1 }, { count: 1 }], "an idle split holds nothing");
  await h.push(26, { split: "b" });
  await h.push(99, { split: "a" });
  assert.equal(h.output.length, 2, "awake again it does");
  await h.end();
});

Deno.test("assignTimestamps behind a union waits for all its inputs", async () => {
  const clock = new VirtualClock(), out = collectingSink<{ count: number }>();
  const steps: ScriptStep<number>[] = [{ do: "records", values: [3, 50] }];
  const [first, second] = [scriptedSource<number>(steps), scriptedSource<number>()];
  const env = createEnv().withClock(clock);
  env.fromSource(first.source).union(env.fromSource(second.source)).assignTimestamps((n) => n)
    .keyBy(() => 0, { partitions: 1 }).window(tumbling(10)).aggregate({ count: count() }).toSink(out.sink);
  const handle = env.start();
  await settle();
  second.add({ do: "records", values: [4] });
  await settle();
  second.add({ do: "records", values: [60] });
  await settle();
  assert.deepEqual(out.values, [{ count: 2 }], "3 and 4: the second input held the window");
  first.add({ do: "end" });
  second.add({ do: "end" });
  await handle.done;
  assert.deepEqual(handle.status().dropped, []);
});

Deno.test("process emits to several outputs, with key, time and headers of its own", async () => {
  const h = await harness<number, string>(
    (numbers) =>
      numbers.process<string>((n, context) => {
        context.emit(`n ${n}`);
        if (n > 1) context.emit("own", { key: `k${n}`, timestamp: n, headers: [["h", new Uint8Array([n])]] });
        context.output("odd", n * 100, { key: "odd" });
      }, { outputs: ["odd"] }),
    { sides: ["odd"] },
  );
  await h.push(1, { timestamp: 50, key: "given" });
  await h.push(2, { timestamp: 60 });
  await h.end();
  assert.deepEqual(h.output, ["n 1", "n 2", "own"]);
  assert.deepEqual(h.records.map(({ key, timestamp, offset }) => [key, timestamp, offset]), [
    ["given", 50, 0],
    [undefined, 60, 1],
    ["k2", 2, 1],
  ]);
  assert.deepEqual([...h.records[2]!.headers[0]![1]], [2]);
  assert.deepEqual(h.side("odd"), [100, 200]);
});

Deno.test("process: a record emits everything or nothing; a time it cannot have, and an output nobody declared, are its error", async () => {
  for (
    const [name, bad] of [
      ["throws", () => {
        throw new Error("no");
      }],
      ["no time", undefined],
    ] as const
  ) {
    const h = await harness<number, number>(
      (numbers) =>
        numbers.process<number>((n, context) => {
          context.emit(n);
          context.output("side", n);
          if (n === 2) bad === undefined ? context.emit(n, { timestamp: NaN }) : bad();
        }, { outputs: ["side"], onError: "drop" }),
      { sides: ["side"] },
    );
    for (const n of [1, 2, 3]) await h.push(n);
    await h.end();
    assert.deepEqual([h.output, h.side("side")], [[1, 3], [1, 3]], name);
    assert.deepEqual(h.handle.status().dropped.map(({ count }) => count), [1], name);
  }
  const h = await harness<number, number>((numbers) =>
    numbers.process<number>((n, context) => context.output("nobody", n))
  );
  await h.push(1);
  await assert.rejects(h.end(), /no side output "nobody"/);
});

Deno.test("dedupe passes the first of a key, again after its ttl, and forgets keys that have had theirs", async () => {
  let metrics!: () => Promise<string>;
  const h = await harness<{ key: string; n: number }, { key: string; n: number }>((stream, env) => {
    metrics = () => env.metrics();
    return stream.keyBy(({ key }) => key, { partitions: 2 }).dedupe({ ttl: 10, id: "d" });
  });
  const push = (key: string, n: number, timestamp: number) => h.push({ key, n }, { timestamp });
  await push("a", 1, 0);
  await push("b", 2, 3);
  await push("a", 3, 9); // a duplicate, and prolongs nothing
  await push("a", 4, 10);
  await push("a", 5, 19);
  assert.deepEqual(h.output.map(({ n }) => n), [1, 2, 4]);
  assert.match(await metrics(), /mailer_state_entries\{operator="d",pipeline="test"\} 2\n/);
  await h.watermark(13);
  assert.match(await metrics(), /mailer_state_entries\{operator="d",pipeline="test"\} 1\n/);
  await h.end();
  assert.deepEqual(h.handle.status().dropped, [{ operator: "d", reason: "duplicate", count: 2 }]);
});

Deno.test("dedupe without a ttl keeps the first ever", async () => {
  const got = await through([1, 2, 1, 3, 2, 1], (numbers) => numbers.keyBy((n) => n).dedupe());
  assert.deepEqual(got.toSorted(), [1, 2, 3]);
});
