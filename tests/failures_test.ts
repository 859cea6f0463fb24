import assert from "node:assert/strict";
import { count, max } from "../lib/aggregate/mod.ts";
import type { ReadFailure, Sink, Source, SourceRead } from "../lib/connector.ts";
import { RecordError } from "../lib/errors.ts";
import type { AsyncNode } from "../lib/plan/graph.ts";
import type { DeadLetter } from "../lib/runtime/failure.ts";
import { RetryOperator } from "../lib/operators/retry.ts";
import { MapOperator } from "../lib/operators/map.ts";
import { createEnv, type Env } from "../lib/stream/env.ts";
import type { RunHandle } from "../lib/stream/handle.ts";
import { Stream } from "../lib/stream/stream.ts";
import { collectingSink, scriptedSource, settle, VirtualClock } from "../lib/testing/mod.ts";
import { count as countWindows, session, sliding, tumbling } from "../lib/window/mod.ts";

/** A source of the reads given, then the end. */
function readsOf<T>(reads: readonly SourceRead<T>[]): Source<T> {
  return {
    type: "reads",
    describe: () => ({}),
    open() {
      let at = 0;
      return { splits: ["s"], read: () => reads[at++] ?? { kind: "end" }, close() {} };
    },
  };
}
const utf8 = (text: string) => new TextEncoder().encode(text);

interface Ran {
  readonly env: Env;
  readonly handle: RunHandle;
  readonly values: readonly unknown[];
  readonly letters: readonly DeadLetter[];
}

/** Runs numbers 0 … 9, each with key, header and source text, through what `build` makes of them. */
async function runNumbers(
  build: (numbers: Stream<number>) => Stream<unknown>,
  // deno-lint-ignore default-param-last -- the buffer size comes before the rest in every call
  bufferSize = 1024,
  sink?: Sink<unknown>,
): Promise<Ran> {
  const values = Array.from({ length: 10 }, (_, i) => i);
  const read: SourceRead<number> = {
    kind: "records",
    split: "s",
    values,
    firstOffset: 100,
    timestamps: Float64Array.from(values, (n) => n * 1000),
    keys: values.map((n) => `k${n}`),
    headers: values.map((n) =>
      n === 3 ? [["h", utf8("three")], ["bytes", new Uint8Array([255])]] : undefined
    ),
    texts: values.map((n) => `text ${n}`),
    position: 110,
  };
  const env = createEnv({ name: "f" }).withBufferSize(bufferSize).withClock(new VirtualClock());
  const out = collectingSink<unknown>(), dead = collectingSink<DeadLetter>();
  env.withDeadLetters(dead.sink as Sink);
  build(env.fromSource(readsOf([read]), { id: "in" })).toSink(sink ?? out.sink, { id: "out" });
  const handle = env.start();
  await handle.done;
  return { env, handle, values: out.values, letters: dead.values };
}

const isBad = (n: number) => n === 3 || n === 7;
const bad = (n: number): number => {
  if (isBad(n)) throw new TypeError(`bad ${n}`);
  return n;
};
const GOOD = [0, 1, 2, 4, 5, 6, 8, 9];

/** Every operator that hands records to user code, with an id. */
const OPERATORS: Readonly<
  Record<string, (stream: Stream<number>, onError: "fail" | "drop" | "dlq") => Stream<unknown>>
> = {
  map: (stream, onError) => stream.map(bad, { id: "op", onError }),
  filter: (stream, onError) => stream.filter((n) => bad(n) >= 0, { id: "op", onError }),
  flatMap: (stream, onError) =>
    stream.flatMap(function* (n) {
      yield n;
      bad(n);
    }, { id: "op", onError }),
  process: (stream, onError) =>
    stream.process<number>((n, context) => {
      context.emit(n);
      bad(n);
    }, { id: "op", onError }),
  route: (stream, onError) =>
    stream.route([{ name: "all", when: (n) => bad(n) >= 0 }], { id: "op", onError }).all,
  keyBy: (stream, onError) => stream.keyBy(bad, { id: "op", onError, partitions: 3 }),
  "assignTimestamps": (stream, onError) =>
    stream.assignTimestamps((n) => bad(n), undefined, { id: "op", onError }),
  reduce: (stream, onError) =>
    stream.keyBy((n) => n).reduce((_: number | undefined, n) => bad(n), { id: "op", onError }),
  "keyed process": (stream, onError) =>
    stream.keyBy((n) => n).processKeyed<number>((n, context) => {
      context.emit(n);
      bad(n);
    }, { id: "op", onError }),
  "tumbling reduce": (stream, onError) =>
    stream.keyBy((n) => n).window(tumbling(100)).reduce((_: number | undefined, n) => bad(n), {
      id: "op",
      onError,
    }),
  "sliding reduce": (stream, onError) =>
    stream.keyBy((n) => n).window(sliding(100, 50)).reduce((_: number | undefined, n) => bad(n), {
      id: "op",
      onError,
    })
      .keyBy((n) => n).dedupe(),
  "session reduce": (stream, onError) =>
    stream.keyBy((n) => n).window(session(100)).reduce((_: number | undefined, n) => bad(n), {
      id: "op",
      onError,
    }),
  "count reduce": (stream, onError) =>
    stream.keyBy((n) => n).window(countWindows(2, 1)).reduce((_: number | undefined, n) => bad(n), {
      id: "op",
      onError,
    }),
};

for (const [name, build] of Object.entries(OPERATORS)) {
  Deno.test(`${name}: fail, the default, ends the run and names operator and position`, async () => {
    for (const bufferSize of [1, 1024]) {
      await assert.rejects(
        runNumbers((stream) => build(stream, "fail"), bufferSize),
        (error: RecordError) => {
          assert.ok(error instanceof RecordError, String(error));
          assert.equal(error.operator, "op");
          assert.match(error.message, /^operator "op": bad [37]/);
          assert.ok(error.cause instanceof TypeError);
          assert.deepEqual({ ...error.position, offset: 0 }, { source: "in", split: "s", offset: 0 });
          assert.ok([103, 107].includes(error.position.offset!));
          return true;
        },
      );
    }
  });

  Deno.test(`${name}: drop leaves the record out and counts it, those around it are untouched`, async () => {
    for (const bufferSize of [1, 3, 1024]) {
      const { handle, values, letters } = await runNumbers((stream) => build(stream, "drop"), bufferSize);
      assert.deepEqual((values as number[]).toSorted(), GOOD);
      assert.deepEqual(letters, []);
      const dropped = handle.status().dropped.filter(({ reason }) => reason === "error");
      assert.deepEqual(dropped, [{ operator: "op", reason: "error", count: 2 }]);
    }
  });

  Deno.test(`${name}: dlq sends it to the dead-letter sink with the error, its place and the operator`, async () => {
    for (const bufferSize of [1, 1024]) {
      const { handle, values, letters } = await runNumbers((stream) => build(stream, "dlq"), bufferSize);
      assert.deepEqual((values as number[]).toSorted(), GOOD);
      assert.deepEqual(letters.map(({ offset }) => offset).toSorted(), [103, 107]);
      const letter = letters.find(({ offset }) => offset === 103)!;
      assert.equal(letter.operator, "op");
      assert.deepEqual(letter.error, { code: "error", message: "bad 3" });
      assert.deepEqual([letter.reason, letter.source, letter.split], ["error", "in", "s"]);
      assert.equal(letter.timestamp, "1970-01-01T00:00:03.000Z");
      assert.deepEqual(letter.headers, [["h", "three"], ["bytes", { base64: "/w==" }]]);
      assert.equal(letter.at, "2026-01-01T00:00:00.000Z");
      assert.equal(handle.status().deadLetters, 2);
      assert.deepEqual(handle.status().dropped.filter(({ reason }) => reason === "error"), []);
    }
  });
}

Deno.test("a dead letter has the source's text while the value stands for one such record, else the value at the failing operator", async () => {
  const direct = await runNumbers((stream) =>
    stream.map((n) => n + 0.5).map((n) => bad(n - 0.5), { onError: "dlq" })
  );
  assert.deepEqual(direct.letters.map(({ value }) => value), ["text 3", "text 7"]);
  assert.deepEqual(direct.letters.map(({ key }) => key), ["k3", "k7"]);
  const derived = await runNumbers((stream) =>
    stream.flatMap((n) => [n * 10]).map((n) => bad(n / 10), { onError: "dlq" })
  );
  assert.deepEqual(derived.letters.map(({ value }) => value), ["30", "70"]);
});

Deno.test("a window's result that cannot be made fails as a row: the operator is named, the policy holds", async () => {
  const build = (onError: "fail" | "drop" | "dlq") => (stream: Stream<number>) =>
    stream.keyBy((n) => n % 5).window(tumbling(1000)).process(
      (elements) => elements.map(({ value }) => bad(value)),
      { id: "op", onError },
    );
  await assert.rejects(runNumbers(build("fail")), {
    name: "RecordError",
    operator: "op",
    message: /operator "op": bad/,
  });
  const dropped = await runNumbers(build("drop"));
  assert.deepEqual((dropped.values as number[]).toSorted(), GOOD);
  assert.deepEqual(dropped.handle.status().dropped, [{ operator: "op", reason: "error", count: 2 }]);
  const dead = await runNumbers(build("dlq"));
  assert.deepEqual(dead.letters.map(({ key, value }) => [key, value]), [
    [3, '{"window":{"start":3000,"end":4000}}'],
    [2, '{"window":{"start":7000,"end":8000}}'],
  ]);
});

Deno.test("an aggregate that cannot be merged fails the rows it is in, and no others", async () => {
  const script = scriptedSource<{ v: number | string }>([
    { do: "records", values: [{ v: 1 }, { v: "x" }, { v: "y" }, { v: "z" }], timestamps: [5, 15, 25, 35] },
    { do: "end" },
  ]);
  const out = collectingSink<{ max: unknown }>();
  const env = createEnv();
  env.fromSource(script.source).keyBy(() => 0, { partitions: 1 }).window(sliding(20, 10))
    .aggregate({ max: max("v") }, { onError: "drop", id: "op" }).toSink(out.sink);
  const handle = env.start();
  await handle.done;
  assert.deepEqual(out.records.map(({ value, window }) => [window!.start, value.max]), [[-10, 1], [10, "y"], [
    20,
    "z",
  ], [30, "z"]]);
  assert.deepEqual(handle.status().dropped, [{ operator: "op", reason: "error", count: 1 }]);
});

Deno.test("an operator's policy does not swallow the error of one behind it", async () => {
  // Two ways a record can reach what is behind in the middle of its batch: more rows than a batch holds, and the late output.
  const many = (stream: Stream<number>) =>
    stream.keyBy(() => 0).processKeyed<number>((n, context) => {
      for (let i = 0; i < 3000; i++) context.emit(n);
    }, { onError: "drop" }).map(bad, { id: "behind" });
  await assert.rejects(runNumbers(many), { name: "RecordError", operator: "behind" });
  const late = (stream: Stream<number>) =>
    stream.map((n) => 9 - n).assignTimestamps((n) => n * 1000).keyBy(() => 0).window(tumbling(1000))
      .aggregate({ count: count() }, { onError: "drop" }).sideOutput<number>("late").map(bad, {
        id: "behind",
      });
  await assert.rejects(runNumbers(late), { name: "RecordError", operator: "behind" });
});

Deno.test("a source: records that cannot be decoded go by its policy, in their place", async () => {
  const failure = (before: number, offset: number): ReadFailure => ({
    before,
    offset,
    text: offset === 11 ? new Uint8Array([0xff, 0x00]) : `broken ${offset}`,
    key: "k",
    error: new SyntaxError("not JSON"),
  });
  const reads: SourceRead<number>[] = [{
    kind: "records",
    split: "s",
    values: [0, 1, 2],
    offsets: Float64Array.of(9, 12, 13),
    timestamps: Float64Array.of(1, 2, 3),
    failures: [failure(1, 10), failure(1, 11), failure(3, 14)],
    position: 15,
  }, { kind: "records", split: "s", values: [], failures: [failure(0, 15)], position: 16 }];
  const run = async (onError: "fail" | "drop" | "dlq") => {
    const env = createEnv(), out = collectingSink<number>(), dead = collectingSink<DeadLetter>();
    env.withDeadLetters(dead.sink as Sink);
    env.fromSource(readsOf(reads), { id: "in", onError }).toSink(out.sink);
    const handle = env.start();
    await handle.done;
    return {
      values: out.values,
      letters: dead.values,
      status: handle.status(),
      offsets: out.records.map(({ offset }) => offset),
    };
  };
  await assert.rejects(run("fail"), {
    name: "RecordError",
    operator: "in",
    message: /not JSON \(record from in\/s at offset 10\)/,
  });
  const dropped = await run("drop");
  assert.deepEqual(dropped.values, [0, 1, 2]);
  assert.deepEqual(dropped.offsets, [9, 12, 13]);
  assert.deepEqual(dropped.status.dropped, [{ operator: "in", reason: "error", count: 4 }]);
  assert.equal(dropped.status.recordsIn, 7);
  const dead = await run("dlq");
  assert.deepEqual(dead.values, [0, 1, 2]);
  assert.deepEqual(
    dead.letters.map((
      { offset, value, key, timestamp, operator },
    ) => [offset, value, key, timestamp, operator]),
    [
      [10, "broken 10", "k", null, "in"],
      [11, { base64: "/wA=" }, "k", null, "in"],
      [14, "broken 14", "k", null, "in"],
      [15, "broken 15", "k", null, "in"],
    ],
  );
});

Deno.test("a source: a record without a time goes by its policy; null, NaN, a text and a Date are no times, the limits are", async () => {
  const times: readonly unknown[] = [
    null,
    NaN,
    undefined,
    "5",
    new Date(5),
    8.64e15 + 1,
    Infinity,
    -8.64e15,
    8.64e15,
    0,
  ];
  const env = createEnv(), out = collectingSink<number>(), dead = collectingSink<DeadLetter>();
  env.withDeadLetters(dead.sink as Sink);
  env.fromSource(
    readsOf<number>([{
      kind: "records",
      split: "s",
      values: times.map((_, i) => i),
      firstOffset: 0,
      position: 1,
    }]),
    {
      timestamp: (i) => times[i] as number,
      onError: "dlq",
    },
  ).toSink(out.sink);
  const handle = env.start();
  await handle.done;
  assert.deepEqual(out.values, [7, 8, 9]);
  assert.deepEqual(out.records.map(({ timestamp }) => timestamp), [-8.64e15, 8.64e15, 0]);
  assert.deepEqual(
    dead.values.map(({ offset, timestamp, error }) => [offset, timestamp, error.code]),
    [0, 1, 2, 3, 4, 5, 6].map((i) => [i, null, "no_timestamp"]),
  );
});

Deno.test("a source's own timestamps are checked as well", async () => {
  const env = createEnv(), out = collectingSink<number>();
  env.fromSource(
    readsOf<number>([{
      kind: "records",
      split: "s",
      values: [0, 1, 2],
      timestamps: Float64Array.of(5, NaN, 7),
      firstOffset: 0,
      position: 3,
    }]),
    { id: "in", onError: "drop" },
  ).toSink(out.sink);
  const handle = env.start();
  await handle.done;
  assert.deepEqual(out.records.map(({ value, offset, timestamp }) => [value, offset, timestamp]), [
    [0, 0, 5],
    [2, 2, 7],
  ]);
  assert.deepEqual(handle.status().dropped, [{ operator: "in", reason: "error", count: 1 }]);
});

/** A sink that refuses odd numbers one by one, and fails its first `failures` writes as a whole. */
function pickySink(
  failures = 0,
): { readonly sink: Sink<number>; readonly written: number[]; readonly writes: () => number } {
  const written: number[] = [];
  let writes = 0;
  return {
    written,
    writes: () => writes,
    sink: {
      type: "picky",
      describe: () => ({}),
      open: ({ reject }) => ({
        write(batch) {
          batch.values.forEach((value, i) => {
            if (value % 2 === 1) reject(batch, i, new RangeError(`${value} is odd`));
          });
          if (++writes <= failures) throw new Error(`write ${writes} failed`);
          written.push(...batch.values.filter((n) => n % 2 === 0));
        },
        flush() {},
        close() {},
      }),
    },
  };
}

async function runSink(
  options: {
    readonly onError?: "fail" | "drop" | "dlq";
    readonly attempts?: number;
    readonly failures?: number;
  },
) {
  const clock = new VirtualClock(), picky = pickySink(options.failures), dead = collectingSink<DeadLetter>();
  const env = createEnv().withClock(clock).withDeadLetters(dead.sink as Sink);
  env.fromSource(
    readsOf<number>([{ kind: "records", split: "s", values: [0, 1, 2, 3, 4], firstOffset: 0, position: 5 }]),
  ).toSink(picky.sink, {
    id: "out",
    ...(options.onError === undefined ? {} : { onError: options.onError }),
    ...(options.attempts === undefined ? {} : { retry: { attempts: options.attempts, delay: "1s" } }),
  });
  const handle = env.start();
  handle.done.catch(() => {});
  await settle();
  return { clock, handle, picky, letters: () => dead.values, metrics: () => env.metrics() };
}

Deno.test("a sink: records it refuses go by its policy", async () => {
  const failed = await runSink({});
  await assert.rejects(failed.handle.done, {
    name: "RecordError",
    operator: "out",
    message: /1 is odd .* at offset 1/,
  });
  assert.match(
    await failed.metrics(),
    /mailer_record_errors_total\{operator="out",pipeline="pipeline"\} 1\n/,
  );
  const dropped = await runSink({ onError: "drop" });
  await dropped.handle.done;
  assert.deepEqual(dropped.picky.written, [0, 2, 4]);
  assert.deepEqual(dropped.handle.status().dropped, [{ operator: "out", reason: "error", count: 2 }]);
  assert.equal(dropped.handle.status().recordsOut, 3, "what was refused was not written");
  const dead = await runSink({ onError: "dlq" });
  await dead.handle.done;
  assert.deepEqual(dead.letters().map(({ operator, offset, error }) => [operator, offset, error.message]), [
    ["out", 1, "1 is odd"],
    ["out", 3, "3 is odd"],
  ]);
});

Deno.test("a sink: a failed write is made again after the delay; then the run ends with its error, the sink named", async () => {
  const recovers = await runSink({ onError: "drop", attempts: 3, failures: 2 });
  assert.equal(recovers.picky.writes(), 1);
  await recovers.clock.advance("999ms");
  assert.equal(recovers.picky.writes(), 1);
  await recovers.clock.advance("1001ms");
  await recovers.handle.done;
  assert.deepEqual(recovers.picky.written, [0, 2, 4]);
  const gives = await runSink({ onError: "drop", attempts: 2, failures: 2 });
  await gives.clock.advance("1s");
  await assert.rejects(gives.handle.done, { code: "error", message: 'sink "out": write 2 failed' });
  const once = await runSink({ onError: "drop", failures: 1 });
  await assert.rejects(once.handle.done, { message: 'sink "out": write 1 failed' });
});

Deno.test("a sink: a write that is made again does not send the same dead letters again", async () => {
  const { clock, handle, letters } = await runSink({ onError: "dlq", attempts: 3, failures: 2 });
  await clock.advance("2s");
  await handle.done;
  assert.deepEqual(letters().map(({ offset }) => offset), [1, 3]);
  assert.equal(handle.status().recordsOut, 3);
});

Deno.test("D5: a dead-letter sink that fails ends the run", async () => {
  const env = createEnv().withDeadLetters({
    type: "broken",
    describe: () => ({}),
    open: () => ({
      write: () => Promise.reject(new Error("disk full")),
      flush() {},
      close() {},
    }),
  });
  env.fromSource(scriptedSource<number>([{ do: "records", values: [3] }]).source).map(bad, { onError: "dlq" })
    .toSink(collectingSink<number>().sink);
  await assert.rejects(env.execute(), { message: 'sink "dlq": disk full' });
});

Deno.test("dead letters of every part meet in one sink, and their number is known", async () => {
  const env = createEnv(), dead = collectingSink<DeadLetter>(), picky = pickySink();
  env.withDeadLetters(dead.sink as Sink, { id: "graveyard" });
  env.fromSource(
    scriptedSource<number>([{ do: "records", values: [1, 2, 3, 4, 5, 6, 7] }, { do: "end" }]).source,
  )
    .map(bad, { onError: "dlq", id: "m" })
    .keyBy((n) => n === 6 ? undefined : n, { onError: "dlq", id: "k", partitions: 4 })
    .reduce((_: number | undefined, n) => {
      if (n === 4) throw new Error("four");
      return n;
    }, { onError: "dlq", id: "r" })
    .toSink(picky.sink, { onError: "dlq", id: "s" });
  const handle = env.start();
  await handle.done;
  const byOperator = dead.values.map(({ operator, offset }) => `${operator} ${offset}`).toSorted();
  assert.deepEqual(byOperator, ["k 5", "m 2", "m 6", "r 3", "s 0", "s 4"]);
  assert.deepEqual(picky.written, [2]);
  assert.equal(handle.status().deadLetters, 6);
  assert.equal(handle.status().recordsOut, 1, "dead letters apart");
});

Deno.test("an operator with retries tries a record again after the delay, those behind it wait, then its policy applies", async () => {
  const clock = new VirtualClock(),
    calls: number[] = [],
    out = collectingSink<number>(),
    dead = collectingSink<DeadLetter>();
  const env = createEnv().withClock(clock).withDeadLetters(dead.sink as Sink);
  const flaky = (n: unknown) => {
    calls.push(n as number);
    const tries = calls.filter((called) => called === n).length;
    if ((n === 1 && tries < 3) || n === 2) throw new Error(`try ${tries}`);
    return (n as number) * 10;
  };
  const numbers = env.fromSource(
    scriptedSource<number>([{ do: "records", values: [0, 1, 2, 3], timestamps: [0, 1, 2, 3] }, { do: "end" }])
      .source,
  );
  const node = numbers.scope.graph.add<AsyncNode>({
    kind: "async",
    id: "flaky",
    type: "map",
    inputs: [numbers.origin],
    onError: "dlq",
    config: {},
    userCode: true,
    create: (context) =>
      new RetryOperator((inner) => new MapOperator(flaky, inner), { attempts: 3, delay: 1000 }, context),
  });
  new Stream<number>(numbers.scope, { node, output: undefined }).toSink(out.sink);
  const handle = env.start();
  await settle();
  assert.deepEqual([calls, out.values], [[0, 1], [0]]);
  await clock.advance("1s");
  assert.deepEqual(calls, [0, 1, 1]);
  await clock.advance("1s");
  assert.deepEqual([calls, out.values], [[0, 1, 1, 1, 2], [0, 10]]);
  await clock.advance("2s");
  await handle.done;
  assert.deepEqual(out.values, [0, 10, 30]);
  assert.deepEqual(dead.values.map(({ operator, offset, error }) => [operator, offset, error.message]), [[
    "flaky",
    2,
    "try 3",
  ]]);
});
