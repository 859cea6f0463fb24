import assert from "node:assert/strict";
import fc from "fast-check";
import type { SourceContext } from "../../lib/connector.ts";
import { jsonFormat, stringFormat } from "../../lib/format/mod.ts";
import { silentLogger } from "../../lib/log.ts";
import { batchOf, sinkContract } from "../../lib/testing/sink_contract.ts";
import { failure, sourceContract } from "../../lib/testing/source_contract.ts";
import { VirtualClock } from "../../lib/testing/virtual_clock.ts";
import {
  blackholeSink,
  generatorSource,
  readableSink,
  readableSource,
  recordsSource,
  sliceSource,
} from "./mod.ts";
import { IndexedRandom } from "./random.ts";

const numbers = Array.from({ length: 10 }, (_, i) => ({ i }));

function sourceContext(options: Partial<SourceContext> = {}): SourceContext {
  return {
    id: "source",
    batchSize: 4,
    clock: new VirtualClock(),
    logger: silentLogger,
    signal: new AbortController().signal,
    restored: undefined,
    keepsState: false,
    ...options,
  };
}

const sinkContext = (signal = new AbortController().signal) => ({
  id: "sink",
  clock: new VirtualClock(),
  logger: silentLogger,
  signal,
  reject(): void {
    throw new Error("no record is to be rejected");
  },
});

sourceContract({
  name: "slice source",
  setUp: () => ({
    source: sliceSource(numbers, { keys: numbers.map(String), timestamps: numbers.map(({ i }) => i) }),
  }),
  expected: [{ split: "slice", records: numbers }],
  positions: "replays",
});

sourceContract({
  name: "slice source with payloads",
  setUp: () => ({
    source: sliceSource([
      '{"a":1}',
      new TextEncoder().encode('{"a":2}'),
      "{",
      '{"a":3}',
      Uint8Array.of(0xff),
      "9007199254740993",
    ], {
      format: jsonFormat(),
      keys: [1, 2, 3, 4, 5, 6],
      timestamps: new Float64Array(6),
      name: "payloads",
    }),
  }),
  expected: [{
    split: "payloads",
    records: [{ a: 1 }, { a: 2 }, failure("not_json"), { a: 3 }, failure("not_utf8"), 9007199254740993n],
  }],
  positions: "replays",
});

sourceContract({
  name: "slice source without records",
  setUp: () => ({ source: sliceSource([]) }),
  expected: [{ split: "slice", records: [] }],
  positions: "replays",
});

sourceContract({
  name: "generator source",
  setUp: () => ({
    source: generatorSource({ count: 10, seed: 7, generate: (index, random) => [index, random()] }),
  }),
  expected: [{ split: "generator", records: Array.from({ length: 10 }, (_, i) => [i, firstOf(7, i)]) }],
  positions: "replays",
  waiting: () => ({ source: generatorSource({ rate: 1e-3, generate: (index) => index }) }),
});

function firstOf(seed: number, index: number): number {
  const random = new IndexedRandom(seed);
  random.moveTo(index);
  return random.next();
}

sourceContract({
  name: "readable source",
  setUp: () => ({
    source: readableSource(
      new ReadableStream<unknown>({
        start(controller) {
          for (const chunk of [1, [2, 3, 4, 5], [], "six", [[7]], null]) controller.enqueue(chunk);
          controller.close();
        },
      }),
    ),
  }),
  expected: [{ split: "readable", records: [1, 2, 3, 4, 5, "six", [7], null] }],
  positions: "cannot be replayed",
  waiting: () => ({ source: readableSource(new ReadableStream()) }),
});

Deno.test("records of a document: values as text, keys beside them, what is not JSON is a failure with its key", async () => {
  const records = [{ key: "a", value: '{"x":1.10}' }, { key: "b", value: "oops" }, { value: "2" }];
  const reader = await recordsSource({ records, format: jsonFormat() }).open(sourceContext());
  const read = await reader.read();
  assert.ok(read.kind === "records");
  assert.deepEqual(read.values, [{ x: 1.1 }, 2]);
  assert.deepEqual(read.keys, ["a", undefined]);
  assert.deepEqual(read.texts, ['{"x":1.10}', "2"]);
  assert.deepEqual([...read.offsets!], [0, 2]);
  assert.deepEqual(read.failures!.map(({ before, offset, text, key }) => [before, offset, text, key]), [[
    1,
    1,
    "oops",
    "b",
  ]]);
  const texts = await recordsSource({ records, format: stringFormat() }).open(sourceContext());
  const second = await texts.read();
  assert.ok(second.kind === "records");
  assert.deepEqual(second.values, records.map(({ value }) => value));
});

Deno.test("slice source: columns of another length, and positions of other arrays, are refused", async () => {
  assert.throws(() => sliceSource([1, 2], { keys: [1] }), { code: "invalid_slice_options" });
  for (const position of [-1, 3, "1", null, 0.5]) {
    const restored = new Map([["slice", position]]);
    await assert.rejects(async () => await sliceSource([1, 2]).open(sourceContext({ restored })), {
      code: "invalid_position",
    });
  }
});

Deno.test("M1: random numbers depend on the seed and the index alone, and look random", () => {
  const take = (random: IndexedRandom, index: number) => {
    random.moveTo(index);
    return [random.next(), random.next(), random.next()];
  };
  fc.assert(fc.property(fc.maxSafeNat(), fc.array(fc.maxSafeNat()), fc.integer(), (index, before, seed) => {
    const used = new IndexedRandom(seed);
    for (const other of before) take(used, other);
    assert.deepEqual(take(used, index), take(new IndexedRandom(seed), index));
  }));
  const random = new IndexedRandom(1), buckets = new Uint32Array(16), all = new Set<number>();
  for (let index = 0; index < 16_000; index++) {
    const [first] = take(random, index);
    assert.ok(first! >= 0 && first! < 1);
    buckets[Math.floor(first! * 16)]!++;
    all.add(first!);
  }
  assert.ok(buckets.every((count) => count > 850 && count < 1150), buckets.join());
  assert.ok(all.size > 15_990);
  assert.notDeepEqual(take(new IndexedRandom(1), 5), take(new IndexedRandom(2), 5));
  assert.notDeepEqual(take(random, 1), take(random, 1 + 2 ** 32));
});

Deno.test("generator source: the rate is kept by the clock, and what was missed is made up for", async () => {
  const clock = new VirtualClock();
  const source = generatorSource({ rate: 10, count: 100, generate: (index) => index });
  const reader = await source.open(sourceContext({ clock, batchSize: 1024 }));
  const values: unknown[] = [];
  const take = (read: Awaited<ReturnType<typeof reader.read>>) => {
    assert.ok(read.kind === "records");
    values.push(...read.values);
  };
  take(await reader.read());
  assert.deepEqual(values, [0]);
  const pending = reader.read() as Promise<never>;
  await clock.advance(99);
  assert.equal(clock.alarms, 1, "the second record is due after 100 ms");
  await clock.advance(1);
  take(await pending);
  assert.deepEqual(values, [0, 1]);
  await clock.advance("1s");
  take(await reader.read());
  assert.deepEqual(values, Array.from({ length: 12 }, (_, i) => i));
  await reader.close("done");
});

Deno.test("generator source: a generate that throws ends the run and names the record; settings are checked", async () => {
  const reader = await generatorSource({
    generate(index) {
      if (index === 2) throw new Error("no idea");
      return index;
    },
  }).open(sourceContext());
  assert.throws(() => reader.read(), { code: "generate_failed", message: /record 2: no idea/ });
  for (const bad of [{ count: -1 }, { count: 1.5 }, { rate: 0 }, { rate: NaN }, { seed: NaN }]) {
    assert.throws(() => generatorSource({ generate: () => 0, ...bad }), {
      code: "invalid_generator_options",
    });
  }
});

Deno.test("readable source: an error of the stream ends the run; ending early cancels the stream; it has one reader", async () => {
  const failing = readableSource(
    new ReadableStream({ pull: (controller) => controller.error(new Error("line cut")) }),
  );
  const reader = await failing.open(sourceContext());
  await assert.rejects(async () => await reader.read(), { code: "readable_failed", message: /line cut/ });
  await reader.close("done");
  let cancelled = 0;
  const stream = new ReadableStream<number>({
    pull: (controller) => controller.enqueue(1),
    cancel: () => {
      cancelled++;
    },
  });
  const source = readableSource(stream), second = await source.open(sourceContext());
  assert.throws(() => source.open(sourceContext()), { code: "readable_in_use" });
  await second.read();
  await second.close("done");
  assert.equal(cancelled, 1);
  assert.equal(stream.locked, false);
});

Deno.test("readable source: a restored run counts on and warns", async () => {
  const warnings: string[] = [];
  const reader = await readableSource(
    new ReadableStream({ pull: (controller) => controller.enqueue([1, 2]) }),
  ).open(
    sourceContext({
      restored: new Map([["readable", 40]]),
      logger: { log: (level) => warnings.push(level) },
    }),
  );
  const read = await reader.read();
  assert.ok(read.kind === "records");
  assert.deepEqual([read.firstOffset, read.position, warnings], [40, 42, ["warn"]]);
  await reader.close("done");
});

sinkContract({
  name: "blackhole sink",
  setUp: () => {
    const batches: unknown[] = [];
    return {
      sink: blackholeSink({ onBatch: (batch) => void batches.push(...batch.values) }),
      written: () => batches,
    };
  },
});

Deno.test("blackhole sink: counts records, and bytes where it has a format; rejected ones do not count", async () => {
  const sink = blackholeSink({ format: jsonFormat() }), plain = blackholeSink();
  const rejected: number[] = [];
  const context = { ...sinkContext(), reject: (_: unknown, index: number) => void rejected.push(index) };
  for (const each of [sink, plain]) {
    const writer = await each.open(context);
    await writer.write(batchOf([{ a: "é" }, NaN, 1]));
    await writer.write(batchOf([1]));
    await writer.flush();
    await writer.close("done");
  }
  assert.deepEqual([sink.records, sink.bytes, rejected], [3, 11 + 2 + 2, [1]]);
  assert.deepEqual([plain.records, plain.bytes], [4, 0]);
});

sinkContract({
  name: "readable sink",
  setUp: () => {
    const { sink, readable } = readableSink({ highWaterMark: 1 });
    const values: unknown[] = [];
    const reader = readable.getReader();
    const reading = (async () => {
      for (let next = await reader.read(); !next.done; next = await reader.read()) values.push(next.value);
    })().catch(() => {}); // writers that are closed without a flush fail the stream: asserted below
    return { sink, written: () => values, tearDown: () => Promise.race([reading, Promise.resolve()]) };
  },
  blocked: () => ({ sink: readableSink({ highWaterMark: 2 }).sink, written: () => [] }),
});

Deno.test("H1–H3: the reader's pace holds writes, the regular end closes the stream", async () => {
  const { sink, readable } = readableSink<number>({ highWaterMark: 2 });
  const writer = await sink.open(sinkContext()), reader = readable.getReader();
  let isHeld = true;
  const held = Promise.resolve(writer.write(batchOf([1, 2, 3]))).then(() => isHeld = false);
  await Promise.resolve();
  assert.deepEqual((await reader.read()).value, 1);
  assert.equal(isHeld, true);
  assert.deepEqual((await reader.read()).value, 2);
  await held;
  await writer.flush();
  await writer.close("done");
  assert.deepEqual(await reader.read(), { value: 3, done: false });
  assert.deepEqual(await reader.read(), { value: undefined, done: true });
});

Deno.test("H2: a reader that cancels ends the run, also while a write is held", async () => {
  for (const when of ["before", "during"]) {
    const { sink, readable } = readableSink<number>({ highWaterMark: 1 });
    const writer = await sink.open(sinkContext());
    if (when === "before") await readable.cancel();
    const write = (async () => await writer.write(batchOf([1, 2, 3])))();
    if (when === "during") await readable.cancel();
    await assert.rejects(write, { code: "reader_cancelled" });
    await writer.close("done");
    assert.throws(() => sink.open(sinkContext()), { code: "readable_in_use" });
  }
});

Deno.test("H3: a run that ends in the middle fails the stream", async () => {
  const { sink, readable } = readableSink<number>();
  const writer = await sink.open(sinkContext());
  await writer.flush();
  await writer.write(batchOf([1]));
  await writer.close("failed");
  const reader = readable.getReader();
  await assert.rejects(async () => {
    while (!(await reader.read()).done);
  }, { code: "run_ended" });
});
