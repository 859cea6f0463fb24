import assert from "node:assert/strict";
import { count } from "../lib/aggregate/mod.ts";
import type { Source, SourceRead } from "../lib/connector.ts";
import { createEnv, type Env } from "../lib/stream/env.ts";
import type { KeyedStream } from "../lib/stream/keyed_stream.ts";
import type { Stream } from "../lib/stream/stream.ts";
import { boundedOutOfOrderness } from "../lib/runtime/watermarks.ts";
import { type Collected, collectingSink, scriptedSource, settle, VirtualClock } from "../lib/testing/mod.ts";
import { session, sliding, tumbling, type WindowAssigner } from "../lib/window/mod.ts";

/** Runs values with timestamps (default: 0, 1, 2, …) through a pipeline. */
async function run<T, Out>(
  values: readonly T[],
  build: (stream: Stream<T>, env: Env) => Stream<Out>,
  { timestamps, bufferSize = 1024, bound = 0 }: {
    readonly timestamps?: readonly number[];
    readonly bufferSize?: number;
    readonly bound?: number;
  } = {},
) {
  const script = scriptedSource<T>([{
    do: "records",
    values,
    timestamps: timestamps ?? values.map((_, i) => i),
  }, { do: "end" }]);
  const out = collectingSink<Out>(), env = createEnv().withBufferSize(bufferSize);
  build(env.fromSource(script.source, { watermarks: boundedOutOfOrderness(bound) }), env).toSink(out.sink);
  const handle = env.start();
  await handle.done;
  return {
    records: out.records as readonly Collected<Out>[],
    values: out.values,
    dropped: handle.status().dropped,
  };
}
const upTo = (length: number) => Array.from({ length }, (_, i) => i);
const counts = (stream: KeyedStream<unknown, number>, windows: WindowAssigner) =>
  stream.window(windows).aggregate({ count: count() });

Deno.test("buffers of one record everywhere: diamonds, unions of a stream with itself, two keyBys, several sinks", async () => {
  for (const bufferSize of [1, 2, 1024]) {
    const sides = [collectingSink<number>(), collectingSink<number>()];
    const { values } = await run(upTo(200), (stream) => {
      const even = stream.filter((n) => n % 2 === 0), odd = stream.filter((n) => n % 2 === 1);
      const diamond = even.map((n) => n).union(odd.flatMap((n) => [n]));
      for (const side of sides) diamond.toSink(side.sink);
      const twice = diamond.union(diamond);
      return twice.keyBy((n) => n % 10, { partitions: 3 }).reduce((total: number | undefined, n) =>
        (total ?? 0) + n
      )
        .keyBy(() => "all", { partitions: 2 }).reduce((n: number | undefined) => (n ?? 0) + 1);
    }, { bufferSize });
    assert.equal(values.at(-1), 400);
    for (const side of sides) assert.deepEqual(side.values.toSorted((a, b) => a - b), upTo(200));
  }
});

Deno.test("a keyBy straight to a sink, and several streams off one keyBy", async () => {
  const second = collectingSink<number>();
  const { records } = await run(upTo(20), (stream) => {
    const keyed = stream.keyBy((n) => `k${n % 3}`, { partitions: 4 });
    keyed.filter((n) => n > 10).toSink(second.sink);
    return keyed;
  });
  assert.deepEqual(
    records.map(({ key, value }) => [key, value]).toSorted(),
    upTo(20).map((n) => [`k${n % 3}`, n]).toSorted(),
  );
  assert.deepEqual(second.values.toSorted((a, b) => a - b), upTo(20).filter((n) => n > 10));
});

Deno.test("the key of a keyBy is the record's from there on, the second one's behind a second", async () => {
  const { records } = await run(
    [1, 2],
    (stream) => stream.keyBy((n) => `a${n}`).map((n) => n).keyBy((n, { key }) => `${key}/b${n}`),
  );
  assert.deepEqual(records.map(({ key }) => key).toSorted(), ["a1/b1", "a2/b2"]);
});

Deno.test("a branch that changes its values never changes what another sees, nor what state holds", async () => {
  interface Doc {
    list: number[];
    inner: { n: number };
  }
  const docs = (): Doc[] => upTo(10).map((n) => ({ list: [n], inner: { n } }));
  const spoil = (doc: Doc): Doc => {
    doc.list.push(-1);
    doc.inner.n = -1;
    return doc;
  };
  const intact = (all: readonly unknown[]) => assert.deepEqual(all, docs());
  for (const bufferSize of [1, 1024]) {
    const sinks = Array.from({ length: 4 }, () => collectingSink<Doc>());
    const direct = collectingSink<Doc>();
    const { values } = await run(docs(), (stream) => {
      stream.map(spoil).toSink(sinks[0]!.sink);
      stream.filter((doc) => spoil(doc) !== undefined).toSink(sinks[1]!.sink);
      stream.keyBy((doc) => spoil(doc).list.length, { partitions: 2 }).toSink(sinks[2]!.sink);
      stream.process<Doc>((doc, context) => context.emit(spoil(doc))).toSink(sinks[3]!.sink);
      stream.toSink(direct.sink);
      return stream.filter(() => true);
    }, { bufferSize });
    intact(values);
    intact(direct.values);
    for (const { values } of sinks) assert.deepEqual(values[3], { list: [3, -1], inner: { n: -1 } });
  }
});

Deno.test("a running reduce whose result is changed behind it goes on with its own", async () => {
  const { values } = await run(
    upTo(5),
    (stream) =>
      stream.keyBy(() => 0).reduce((acc: { list: number[] } | undefined, n) => {
        acc ??= { list: [] };
        acc.list.push(n);
        return acc;
      }).map((acc) => {
        acc.list.reverse();
        acc.list.push(99);
        return acc.list.length;
      }),
  );
  assert.deepEqual(values, [2, 3, 4, 5, 6]);
});

Deno.test("a window's rows given again are not those given before", async () => {
  const { values } = await run(
    [1, 2, 100, 3],
    (stream) =>
      stream.keyBy(() => 0).window(tumbling(10)).allowedLateness(1000).reduce(
        (acc: number[] | undefined, n) => {
          acc ??= [];
          acc.push(n);
          return acc;
        },
      ).map((list) => {
        list.push(-1);
        return list.join();
      }),
    { timestamps: [1, 2, 100, 3] },
  );
  assert.deepEqual(values, ["1,2,-1", "1,2,3,-1", "100,-1"]);
});

Deno.test("keys of every kind: texts with NUL, empty, null, numbers of all kinds, booleans, lists, objects, bytes", async () => {
  const keys: unknown[] = [
    "",
    "\u0000",
    "\u0000x",
    "\u0000\u0000",
    "1",
    "null",
    "true",
    "__proto__",
    "constructor",
    "\ud800",
    0,
    1,
    -1,
    0.1,
    1e300,
    2 ** 53,
    10n ** 30n,
    null,
    true,
    false,
    [],
    [1],
    ["1"],
    [[]],
    [null],
    {},
    { a: 1 },
    { a: "1" },
    { a: [1] },
    JSON.parse('{"__proto__":1}'),
    new Uint8Array([]),
    new Uint8Array([1]),
    new Uint8Array([49]),
  ];
  for (const partitions of [1, 5, 128]) {
    const { records } = await run(
      [...upTo(keys.length), ...upTo(keys.length)],
      (stream) => counts(stream.keyBy((n) => keys[n], { partitions }), tumbling(1000)),
    );
    assert.equal(records.length, keys.length);
    for (const { key, value } of records) {
      assert.ok(keys.includes(key), String(key));
      assert.equal(value.count, 2);
    }
  }
});

Deno.test("equal keys are one key, written as first seen", async () => {
  const keys: unknown[] = [1, 1n, 1.0, { a: 1, b: 2 }, { b: 2, a: 1 }, -0, 0];
  const { records } = await run(
    upTo(keys.length),
    (stream) => counts(stream.keyBy((n) => keys[n], { partitions: 3 }), tumbling(1000)),
  );
  const found = records.map(({ key, value }) => [key, value.count] as const);
  assert.deepEqual(found.toSorted(([, a], [, b]) => b - a).map(([, count]) => count), [3, 2, 2]);
  assert.ok(found.some(([key]) => key === 1));
  assert.ok(found.some(([key]) => JSON.stringify(key) === '{"a":1,"b":2}'));
});

Deno.test("100,000 keys in windows, running results and dedupe", async () => {
  const input = upTo(100_000);
  const windowed = await run(
    input,
    (stream) => counts(stream.keyBy((n) => `key ${n}`, { partitions: 8 }), tumbling(1_000_000)),
  );
  assert.equal(windowed.values.length, 100_000);
  const running = await run(
    input,
    (stream) =>
      stream.keyBy((n) => n, { partitions: 8 }).aggregate({ count: count() }).filter((row) =>
        row.count === 1
      ),
  );
  assert.equal(running.values.length, 100_000);
  const deduped = await run(input, (stream) => stream.keyBy((n) => n % 50_000, { partitions: 8 }).dedupe());
  assert.equal(deduped.values.length, 50_000);
});

const LIMIT = 8.64e15;
const KINDS: readonly [string, WindowAssigner][] = [
  ["tumbling", tumbling("1h")],
  ["sliding", sliding("1h", "20m")],
  ["session", session("1h")],
  ["days in UTC", tumbling("1d")],
];
for (const [name, windows] of KINDS) {
  Deno.test(`negative timestamps and those at the limits of time fall into windows that hold them: ${name}`, async () => {
    const timestamps = [-LIMIT, -LIMIT + 1, -1e15, -3_600_001, -3_600_000, -1, 0, 1, 1e15, LIMIT - 1, LIMIT];
    for (const bound of [0, 3 * LIMIT]) {
      const { records, dropped } = await run(
        upTo(timestamps.length),
        (stream) => counts(stream.keyBy((n) => n, { partitions: 3 }), windows),
        { timestamps, bound },
      );
      assert.equal(records.length, timestamps.length * (name === "sliding" ? 3 : 1));
      for (const { key, window } of records) {
        const at = timestamps[key as number]!;
        assert.ok(window!.start <= at && at < window!.end, `${at} in [${window!.start}, ${window!.end})`);
      }
      assert.deepEqual(dropped, []);
    }
  });
}

Deno.test("times too far out for a calendar go by the failure policy, or have their window; the run goes on", async () => {
  const timestamps = [-LIMIT, 0, LIMIT];
  for (
    const windows of [
      tumbling("1d", { timezone: "Europe/Berlin" }),
      tumbling("1mo", { timezone: "Asia/Tokyo" }),
      tumbling("1mo"),
    ]
  ) {
    const { records, dropped } = await run(
      upTo(3),
      (stream) => stream.keyBy((n) => n).window(windows).aggregate({ count: count() }, { onError: "drop" }),
      { timestamps, bound: 3 * LIMIT },
    );
    const lost = dropped.reduce((total, { count }) => total + count, 0);
    assert.equal(records.length + lost, 3);
    assert.ok(records.some(({ key }) => key === 1));
    for (const { key, window } of records) {
      assert.ok(window!.start <= timestamps[key as number]! && timestamps[key as number]! < window!.end);
    }
  }
});

Deno.test("sliding windows over a gap of years do not walk through it", async () => {
  const years = 20 * 365 * 86_400_000;
  for (const bound of [0, years]) {
    const started = performance.now();
    const { values } = await run(
      upTo(4),
      (stream) => counts(stream.keyBy(() => 0, { partitions: 1 }), sliding("2s", "1s")),
      {
        timestamps: [0, years, years + 500, 3 * years],
        bound,
      },
    );
    assert.deepEqual(values.map(({ count }) => count), [1, 1, 2, 2, 1, 1]);
    assert.ok(performance.now() - started < 2000);
  }
});

Deno.test("a sliding window with late records far behind and far ahead stays right over gaps", async () => {
  const timestamps = [1_000_000, 5, 2_000_000, 1_000_001, 30, 3_000_000];
  const { records, dropped } = await run(
    upTo(6),
    (stream) => counts(stream.keyBy(() => 0), sliding(20, 10)),
    { timestamps, bound: 999_990 },
  );
  assert.deepEqual(dropped.map(({ count }) => count), [1], "30 came when the watermark was 1000010");
  // The watermark was 10 when 5 came, and 1000010 when 1000001 did: each is too late for the first of its windows.
  assert.deepEqual(records.map(({ window, value }) => [window!.start, value.count]), [
    [0, 1],
    [999_990, 1],
    [1_000_000, 2],
    [1_999_990, 1],
    [2_000_000, 1],
    [2_999_990, 1],
    [3_000_000, 1],
  ]);
});

Deno.test("rows more than a batch, from one firing and from one record", async () => {
  const fired = await run(
    upTo(5000),
    (stream) => counts(stream.keyBy((n) => n, { partitions: 2 }), tumbling(1e6)).map((row) => row.count),
    { bufferSize: 1 },
  );
  assert.equal(fired.values.length, 5000);
  const emitted = await run([1], (stream) =>
    stream.keyBy((n) => n).processKeyed<number>((_, context) => {
      for (let i = 0; i < 5000; i++) {
        context.emit(i, i % 1000 === 0 ? { headers: [["h", new Uint8Array([1])]] } : {});
      }
    }));
  assert.deepEqual(emitted.values, upTo(5000));
  assert.deepEqual(emitted.records.filter(({ headers }) => headers.length > 0).map(({ value }) => value), [
    0,
    1000,
    2000,
    3000,
    4000,
  ]);
});

Deno.test("the late output keeps the key: it may be reduced, windowed again, and read twice", async () => {
  const twice = collectingSink<number>();
  const { records } = await run(upTo(6), (stream) => {
    const windowed = stream.keyBy((n) => n % 2, { partitions: 2 }).window(tumbling(10)).aggregate({
      count: count(),
    });
    windowed.toSink(collectingSink<unknown>().sink);
    const late = windowed.sideOutput<number>("late") as KeyedStream<number, number>;
    late.toSink(twice.sink);
    return late.reduce((total: number | undefined, n) => (total ?? 0) + n);
  }, { timestamps: [5, 100, 1, 2, 3, 4] });
  assert.deepEqual(records.map(({ key, value }) => [key, value]).toSorted(), [[0, 2], [0, 6], [1, 3], [
    1,
    8,
  ]]);
  assert.deepEqual(twice.values.toSorted(), [2, 3, 4, 5]);
});

Deno.test("null, undefined and tombstones are values like others; only a missing key is none", async () => {
  const values = [null, undefined, 0, "", false, NaN];
  const { values: got } = await run(
    values as unknown[],
    (stream) => stream.map((value) => value).keyBy(() => null).filter(() => true),
  );
  assert.deepEqual(got, values);
});

Deno.test("a record's headers, offset, source and split go all the way through what passes records on", async () => {
  const header = [["h", new Uint8Array([7])], ["h", new Uint8Array([8])]] as const;
  const read: SourceRead<number> = {
    kind: "records",
    split: "p3",
    values: [10, 11, 12],
    offsets: Float64Array.of(5, 9, 70),
    timestamps: Float64Array.of(1, 2, 3),
    headers: [undefined, header, undefined],
    keys: ["a", "b", "c"],
    position: 71,
  };
  const source: Source<number> = {
    type: "one",
    describe: () => ({}),
    open: () => {
      let isRead = false;
      return {
        splits: ["p3"],
        read: () => isRead ? { kind: "end" } : (isRead = true, read),
        close() {},
      };
    },
  };
  const env = createEnv(), out = collectingSink<number>();
  env.fromSource(source, { id: "in" }).filter((n) => n > 10).map((n) => n).union(
    env.fromSource(scriptedSource<number>([{ do: "end" }]).source),
  )
    .flatMap((n) => [n]).keyBy((_, { key }) => key, { partitions: 3 }).filter(() => true).assignTimestamps((
      n,
    ) => n).toSink(out.sink);
  await env.execute();
  const seen = out.records.map((
    { value, key, timestamp, offset, source, split, headers },
  ) => [
    value,
    key,
    timestamp,
    offset,
    source,
    split,
    headers.map(([name, bytes]) => `${name}${bytes[0]}`).join(),
  ]);
  assert.deepEqual(seen.toSorted(), [
    [11, "b", 11, 9, "in", "p3", "h7,h8"],
    [12, "c", 12, 70, "in", "p3", ""],
  ]);
});

Deno.test("the last rows of an input that ends are in front of its end: they are not late beside a stream that is further on", async () => {
  const clock = new VirtualClock(), out = collectingSink<{ count: number }>();
  const [ends, goesOn] = [scriptedSource<number>(), scriptedSource<number>()];
  const env = createEnv().withClock(clock);
  const rows = counts(env.fromSource(ends.source).keyBy(() => 0, { partitions: 1 }), tumbling(10)).map((
    row,
  ) => row.count);
  counts(rows.union(env.fromSource(goesOn.source)).keyBy(() => 0, { partitions: 1 }), tumbling(100)).toSink(
    out.sink,
  );
  const handle = env.start();
  goesOn.add({ do: "records", values: [1, 1], timestamps: [5, 1000] });
  ends.add({ do: "records", values: [1], timestamps: [3] });
  await settle();
  ends.add({ do: "end" });
  await settle();
  assert.deepEqual(out.values, [{ count: 2 }]);
  goesOn.add({ do: "end" });
  await handle.done;
  assert.deepEqual(handle.status().dropped, []);
});

Deno.test("thousands of splits, read one after the other, do not slow the rest down", async () => {
  const splits = upTo(3000).map(String), env = createEnv(), out = collectingSink<{ count: number }>();
  const steps = splits.flatMap((split) => [
    { do: "records" as const, split, values: [1], timestamps: [Number(split)] },
    { do: "endSplit" as const, split },
  ]);
  env.fromSource(scriptedSource<number>([...steps, { do: "end" }], { splits }).source).keyBy(() => 0, {
    partitions: 2,
  })
    .window(tumbling(1000)).aggregate({ count: count() }).toSink(out.sink);
  await env.execute();
  assert.deepEqual(out.values, [{ count: 1000 }, { count: 1000 }, { count: 1000 }]);
});

Deno.test("branches that meet again forty times in a row are an error at once, not a start without end", () => {
  const env = createEnv();
  let stream = env.fromSource(scriptedSource<number>([{ do: "end" }]).source);
  for (let pair = 0; pair < 40; pair++) stream = stream.union(stream.map((n) => n));
  stream.toSink(collectingSink<number>().sink);
  assert.throws(() => env.start(), { code: "invalid_pipeline", message: /branched and met again so often/ });
});
