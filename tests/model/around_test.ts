import assert from "node:assert/strict";
import fc from "fast-check";
import { count, max, min, sum } from "../../lib/aggregate/mod.ts";
import type { KeyedStream } from "../../lib/stream/keyed_stream.ts";
import type { Stream } from "../../lib/stream/stream.ts";
import { session, sliding, tumbling, type WindowAssigner } from "../../lib/window/mod.ts";
import { bounds, cuts, fixedExtents, oneSplit } from "./arbitrary.ts";
import { byKey, type Item, runSteps, settings } from "./engine.ts";
import type { ModelRecord } from "./event_time_model.ts";
import { type Derive, modelWindows, type WindowKind } from "./windows_model.ts";

const RUNS = 50;

/** Something between source and windows, and what it makes of a record. */
interface Shape {
  readonly name: string;
  build(stream: Stream<Item>): Stream<Item>;
  readonly derive: Derive;
}

const SHAPES: readonly Shape[] = [
  {
    name: "filter",
    build: (stream) => stream.filter(({ n }) => n % 3 !== 0),
    derive: (record) => record.n % 3 !== 0 ? [record] : [],
  },
  {
    name: "flatMap to none, one or two",
    build: (stream) => stream.flatMap((item) => Array.from({ length: item.n % 3 }, () => ({ ...item }))),
    derive: (record) => Array.from({ length: record.n % 3 }, () => record),
  },
  {
    name: "a diamond",
    build: (stream) => {
      const all = stream.map((item) => ({ ...item }));
      return all.filter(({ n }) => n % 2 === 0).union(all.filter(({ n }) => n % 2 === 1).map((item) => item));
    },
    derive: (record) => [record],
  },
  {
    name: "a stream with itself",
    build: (stream) => stream.union(stream),
    derive: (record) => [record, record],
  },
  {
    name: "routes brought together again, one left out",
    build: (stream) => {
      const { one, two, rest } = stream.route([
        { name: "one", when: ({ n }) => n % 4 === 1 },
        { name: "two", when: ({ n }) => n % 4 === 2 },
      ], { fallback: "rest" });
      return one.union(rest.filter(({ n }) => n % 4 === 3), two.flatMap((item) => [item]));
    },
    derive: (record) => record.n % 4 === 0 ? [] : [record],
  },
  {
    name: "a process that changes nothing, in two instances",
    build: (stream) => stream.process<Item>((item, context) => context.emit(item)).withParallelism(2),
    derive: (record) => [record],
  },
];

function windowed(
  stream: KeyedStream<string, Item>,
  { size, slide, offset }: Fixed,
): KeyedStream<string, unknown> {
  const assigner: WindowAssigner = size === slide
    ? tumbling(size, { offset })
    : sliding(size, slide, { offset });
  return stream.window(assigner).aggregate({ count: count(), sum: sum("n"), min: min("n"), max: max("n") });
}
type Fixed = Extract<WindowKind, { kind: "fixed" }>;

const resultOf = (records: readonly ModelRecord[]) => {
  const numbers = records.map(({ n }) => n);
  return {
    count: numbers.length,
    sum: numbers.reduce((a, b) => a + b, 0),
    min: Math.min(...numbers),
    max: Math.max(...numbers),
  };
};

Deno.test("what stands in front of windows changes neither watermarks nor windows: filter, flatMap, diamond, union, route", async () => {
  const given = fc.tuple(oneSplit(), bounds(), fixedExtents(), fc.constantFrom(...SHAPES), cuts());
  await fc.assert(
    fc.asyncProperty(given, async ([steps, bound, windows, { name, build, derive }, cut]) => {
      const { rows: expected, late } = modelWindows(steps, ["0"], bound, windows, 0, derive);
      const wanted = byKey(
        expected.map((row) => ({ key: row.key, window: row.window, value: resultOf(row.records) })),
        ({ key }) => key,
      );
      for (const setting of settings(cut)) {
        const { rows, handle } = await runSteps(steps, ["0"], bound, setting, (stream, partitions) => [
          windowed(build(stream).keyBy(({ key }) => key, { partitions }), windows),
        ]);
        const context = `${name}, ${JSON.stringify(setting)}`;
        assert.deepEqual(
          byKey(rows.map(({ key, window, value }) => ({ key, window, value })), ({ key }) => key),
          wanted,
          context,
        );
        const dropped = handle.status().dropped.filter(({ reason }) => reason === "late").map(({ count }) =>
          count
        );
        assert.deepEqual(dropped, late.length === 0 ? [] : [late.length], context);
      }
    }),
    { numRuns: RUNS },
  );
});

Deno.test("rows of windows go through filters, maps, routes and several sinks behind them unchanged", async () => {
  await fc.assert(
    fc.asyncProperty(oneSplit(), bounds(), cuts(), async (steps, bound, cut) => {
      const expected =
        modelWindows(steps, ["0"], bound, { kind: "fixed", size: 10, slide: 10, offset: 0 }, 0).rows;
      for (const setting of settings(cut)) {
        const { rows, others } = await runSteps(steps, ["0"], bound, setting, (stream, partitions) => {
          const counts = stream.keyBy(({ key }) => key, { partitions }).window(tumbling(10)).aggregate({
            count: count(),
          });
          const { many, few } = counts.route([{ name: "many", when: (row) => row.count > 1 }], {
            fallback: "few",
          });
          return [counts, many.map((row) => row.count), few.filter((row) => row.count === 1)];
        });
        const own = <T extends { key: unknown; window: unknown }>({ key, window }: T) => ({ key, window });
        const keyed = (entries: readonly { key: unknown; window: unknown }[]) =>
          byKey(entries.map(own), ({ key }) => key);
        assert.deepEqual(keyed(rows), keyed(expected));
        assert.deepEqual(keyed(others[0]!), keyed(expected.filter((row) => row.records.length > 1)));
        assert.deepEqual(keyed(others[1]!), keyed(expected.filter((row) => row.records.length === 1)));
      }
    }),
    { numRuns: 20 },
  );
});

Deno.test("dedupe passes the first record of a key in each stretch of time, however the input is cut, buffered and partitioned", async () => {
  await fc.assert(
    fc.asyncProperty(
      oneSplit(),
      bounds(),
      fc.integer({ min: 1, max: 40 }),
      cuts(),
      async (steps, bound, ttl, cut) => {
        const last = new Map<string, number>();
        const passed: number[] = [];
        let greatest = -Infinity;
        for (const step of steps) {
          if (step.kind !== "record") continue;
          const before = last.get(step.key);
          // Forgotten when the watermark that held before the record has reached last + ttl.
          if (before === undefined || step.at >= before + ttl || greatest - bound >= before + ttl) {
            passed.push(step.n);
            last.set(step.key, step.at);
          }
          greatest = Math.max(greatest, step.at);
        }
        for (const setting of settings(cut)) {
          const { rows, handle } = await runSteps(steps, ["0"], bound, setting, (stream, partitions) => [
            stream.keyBy(({ key }) => key, { partitions }).dedupe({ ttl }),
          ]);
          assert.deepEqual(
            rows.map(({ value }) => value.n).toSorted((a, b) => a - b),
            passed,
            JSON.stringify(setting),
          );
          const duplicates = steps.length - passed.length;
          assert.deepEqual(
            handle.status().dropped.map(({ count }) => count),
            duplicates === 0 ? [] : [duplicates],
          );
        }
      },
    ),
    { numRuns: RUNS },
  );
});

Deno.test("running reduce and aggregate give each record the result of its key so far, whatever the partitions", async () => {
  await fc.assert(
    fc.asyncProperty(oneSplit(), cuts(), async (steps, cut) => {
      const records = steps.filter((step) => step.kind === "record");
      const expected = byKey(
        records.map((record, i) => {
          const soFar = records.slice(0, i + 1).filter(({ key }) => key === record.key);
          return {
            key: record.key,
            sum: soFar.reduce((sum, { n }) => sum + n, 0),
            list: soFar.map(({ n }) => n),
          };
        }),
        ({ key }) => key,
      );
      for (const setting of settings(cut)) {
        const { rows, others } = await runSteps(steps, ["0"], 0, setting, (stream, partitions) => {
          const keyed = stream.keyBy(({ key }) => key, { partitions });
          const sums = keyed.aggregate({ sum: sum("n") });
          const lists = keyed.reduce((list: number[] | undefined, { n }) => {
            list ??= [];
            list.push(n);
            return list;
          });
          return [sums, lists];
        });
        assert.deepEqual(
          byKey(rows.map(({ key, value }) => ({ key, sum: value.sum })), ({ key }) => key),
          byKey(Object.values(expected).flat().map(({ key, sum }) => ({ key, sum })), ({ key }) => key),
        );
        assert.deepEqual(
          byKey(others[0]!.map(({ key, value }) => ({ key, list: value })), ({ key }) => key),
          byKey(Object.values(expected).flat().map(({ key, list }) => ({ key, list })), ({ key }) => key),
        );
      }
    }),
    { numRuns: 25 },
  );
});

Deno.test("W10: a replay shuffled within the bound gives the rows of the sorted one", async () => {
  const kinds: readonly WindowAssigner[] = [tumbling(10), sliding(12, 4), session(6)];
  const jitters = fc.infiniteStream(fc.integer({ min: 0, max: 20 }));
  await fc.assert(
    fc.asyncProperty(
      oneSplit(),
      fc.constantFrom(...kinds),
      jitters,
      cuts(),
      async (steps, windows, jitter, cut) => {
        const sorted = steps.filter((step) => step.kind === "record").toSorted((a, b) => a.at - b.at);
        const shuffled = sorted.map((record) => ({ record, place: record.at + jitter.next().value }))
          .toSorted((a, b) => a.place - b.place).map(({ record }) => record);
        const run = async (records: typeof sorted, bufferSize: number) => {
          const setting = { bufferSize, partitions: 3, cuts: cut };
          const { rows, handle } = await runSteps(records, ["0"], 20, setting, (stream, partitions) => [
            stream.keyBy(({ key }) => key, { partitions }).window(windows).aggregate({
              count: count(),
              sum: sum("n"),
              max: max("n"),
            }),
          ]);
          assert.deepEqual(handle.status().dropped, [], "nothing within the bound is late");
          return byKey(rows.map(({ key, window, value }) => ({ key, window, value })), ({ key }) => key);
        };
        assert.deepEqual(await run(shuffled, 7), await run(sorted, 1024));
      },
    ),
    { numRuns: RUNS },
  );
});

Deno.test("S2: sessions do not depend on the order in which their records arrive", async () => {
  await fc.assert(
    fc.asyncProperty(
      oneSplit(),
      fc.integer({ min: 1, max: 20 }),
      fc.nat(),
      cuts(),
      async (steps, gap, seed, cut) => {
        const inOrder = steps.filter((step) => step.kind === "record");
        const shuffled = inOrder.toSorted((a, b) => hash(a.n + seed) - hash(b.n + seed));
        const run = async (records: typeof inOrder) => {
          const setting = { bufferSize: 3, partitions: 2, cuts: cut };
          const { rows } = await runSteps(records, ["0"], 1e6, setting, (stream, partitions) => [
            stream.keyBy(({ key }) => key, { partitions }).window(session(gap))
              .reduce((list: number[] | undefined, { n }) => [...list ?? [], n]).map((list) =>
                list.toSorted((a, b) => a - b)
              ),
          ]);
          return byKey(rows.map(({ key, window, value }) => ({ key, window, value })), ({ key }) => key);
        };
        assert.deepEqual(await run(shuffled), await run(inOrder));
      },
    ),
    { numRuns: RUNS },
  );
});

function hash(n: number): number {
  return (Math.imul(n ^ (n >>> 3), 0x9e3779b1) >>> 7) % 1009;
}
