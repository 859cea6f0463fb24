import assert from "node:assert/strict";
import fc from "fast-check";
import { collect, count, first, last, max, sum } from "../../lib/aggregate/mod.ts";
import type { Collected } from "../../lib/testing/mod.ts";
import type { KeyedStream, WindowedStream } from "../../lib/stream/keyed_stream.ts";
import type { Stream } from "../../lib/stream/stream.ts";
import {
  count as countWindows,
  session,
  sliding,
  tumbling,
  type WindowAssigner,
} from "../../lib/window/mod.ts";
import { bounds, cuts, fixedExtents, lateness, oneSplit, severalSplits } from "./arbitrary.ts";
import { byKey, type Item, runSteps, settings } from "./engine.ts";
import type { ModelRecord, Step } from "./event_time_model.ts";
import { type ModelRow, modelWindows, type WindowKind } from "./windows_model.ts";

const RUNS = 60;

function assigner(windows: WindowKind): WindowAssigner {
  switch (windows.kind) {
    case "fixed":
      return windows.size === windows.slide
        ? tumbling(windows.size, { offset: windows.offset })
        : sliding(windows.size, windows.slide, { offset: windows.offset });
    case "session":
      return session(windows.gap);
    case "count":
      return countWindows(windows.size, windows.slide);
  }
}

/** A way to compute rows, and what its rows must be of the records that the model says are in the window. */
interface Computation {
  readonly name: string;
  run(windowed: WindowedStream<string, Item>): KeyedStream<string, unknown>;
  of(records: readonly ModelRecord[]): unknown;
}

const inTime = (records: readonly ModelRecord[]) => records.toSorted((a, b) => a.at - b.at || a.n - b.n);
const numbers = (records: readonly ModelRecord[]) => records.map(({ n }) => n);

const COMPUTATIONS: readonly Computation[] = [
  {
    name: "mergeable aggregates",
    run: (windowed) =>
      windowed.aggregate({
        count: count(),
        sum: sum("n"),
        max: max("n"),
        first: first("n"),
        last: last("n"),
        all: collect({ field: "n" }),
      }),
    of: (records) => ({
      count: records.length,
      sum: numbers(records).reduce((a, b) => a + b, 0),
      max: Math.max(...numbers(records)),
      first: inTime(records)[0]!.n,
      last: inTime(records).at(-1)!.n,
      all: numbers(inTime(records)),
    }),
  },
  {
    name: "a reduce that cannot be merged and changes the values it is given",
    run: (windowed) =>
      windowed.reduce((acc: Item | undefined, value) => {
        if (acc === undefined) return value;
        acc.list.push(...value.list);
        return acc;
      }).map(({ list }) => list),
    of: numbers,
  },
  {
    name: "a reduce with a merge that changes its first argument",
    run: (windowed) =>
      windowed.reduce((acc: number[] | undefined, value) => {
        if (acc === undefined) return [value.n];
        acc.push(value.n);
        return acc;
      }, {
        merge: (a, b) => {
          a.push(...b);
          return a;
        },
      }).map((list) => list.toSorted((a, b) => a - b)),
    of: numbers,
  },
  {
    name: "a window function over the elements",
    run: (windowed) =>
      windowed.process((elements) => [elements.map(({ value, timestamp }) => [value.n, timestamp])]),
    of: (records) => records.map(({ n, at }) => [n, at]),
  },
];

const rowOf = ({ key, window, timestamp, value }: Collected<unknown>) => ({
  key,
  window: window === undefined ? undefined : { start: window.start, end: window.end },
  timestamp,
  value,
});

/** Runs every computation in every setting against the model. */
async function compare(
  steps: readonly Step[],
  splits: readonly string[],
  bound: number,
  windows: WindowKind,
  late: number,
  cut: readonly boolean[],
  readsLate: boolean,
  computations: readonly Computation[] = COMPUTATIONS,
): Promise<void> {
  const expected = modelWindows(steps, splits, bound, windows, late);
  for (const { name, run, of } of computations) {
    const wanted = byKey(
      expected.rows.map(({ records, ...row }: ModelRow) => ({ ...row, value: of(records) })),
      ({ key }) => key,
    );
    for (const setting of settings(cut)) {
      const { rows, others, handle } = await runSteps(steps, splits, bound, setting, (stream, partitions) => {
        const keyed = stream.keyBy(({ key }) => key, { partitions });
        let windowed = keyed.window(assigner(windows));
        if (late > 0) windowed = windowed.allowedLateness(late);
        const made = run(windowed);
        if (!readsLate) return [made];
        // `late` belongs to the window operator: it is the one right behind the keyBy.
        return [made, lateOf(made)];
      });
      const context = `${name}, ${JSON.stringify(setting)}`;
      assert.deepEqual(byKey(rows.map(rowOf), ({ key }) => key), wanted, context);
      const dropped = handle.status().dropped.filter(({ reason }) => reason === "late").map(({ count }) =>
        count
      );
      if (readsLate) {
        const got = byKey(
          others[0]!.map(({ value }) => (value as Item).n),
          (n) => expected.late.find((r) => r.n === n)?.key,
        );
        assert.deepEqual(
          got,
          byKey(numbers(expected.late), (n) => expected.late.find((r) => r.n === n)?.key),
          context,
        );
        assert.deepEqual(dropped, [], context);
      } else {
        assert.deepEqual(dropped, expected.late.length === 0 ? [] : [expected.late.length], context);
      }
    }
  }
}

/** The late output of the window that a stream comes from, however many maps lie between. */
function lateOf(stream: Stream<unknown>): Stream<unknown> {
  let { node } = stream.origin;
  while (node.type === "map") node = node.inputs[0]!.node;
  return stream.sibling({ node, output: "late" });
}

const oneSplitOf = (windows: fc.Arbitrary<WindowKind>, late: fc.Arbitrary<number> = lateness()) =>
  fc.asyncProperty(
    oneSplit(),
    bounds(),
    windows,
    late,
    cuts(),
    fc.boolean(),
    async (steps, bound, kind, late, cut, reads) => {
      await compare(steps, ["0"], bound, kind, late, cut, reads);
    },
  );

Deno.test("tumbling windows give the model's rows, late records and drops, however the input is cut, buffered and partitioned", async () => {
  const windows = fixedExtents().map((extent) => ({ ...extent, slide: extent.size }));
  await fc.assert(oneSplitOf(windows), { numRuns: RUNS });
});

Deno.test("sliding windows give the model's rows, late records and drops, however the input is cut, buffered and partitioned", async () => {
  await fc.assert(oneSplitOf(fixedExtents()), { numRuns: RUNS });
});

Deno.test("sessions give the model's rows, late records and drops, however the input is cut, buffered and partitioned", async () => {
  const windows = fc.record({ kind: fc.constant("session" as const), gap: fc.integer({ min: 1, max: 25 }) });
  await fc.assert(oneSplitOf(windows), { numRuns: RUNS });
});

Deno.test("count windows give the model's rows, however the input is cut, buffered and partitioned", async () => {
  const windows = fc.record({
    kind: fc.constant("count" as const),
    size: fc.integer({ min: 1, max: 6 }),
    slide: fc.integer({ min: 1, max: 6 }),
  }).map((counts) => ({ ...counts, slide: Math.min(counts.slide, counts.size) }));
  await fc.assert(oneSplitOf(windows, fc.constant(0)), { numRuns: RUNS });
});

Deno.test("several splits: lateness goes by the record's own split, firing by the least that is neither idle nor ended", async () => {
  const windows: fc.Arbitrary<WindowKind> = fc.oneof(
    fixedExtents(),
    fixedExtents().map((extent) => ({ ...extent, slide: extent.size })),
    fc.record({ kind: fc.constant("session" as const), gap: fc.integer({ min: 1, max: 25 }) }),
  );
  const inputs = fc.integer({ min: 2, max: 3 }).chain((count) =>
    fc.record({ count: fc.constant(count), steps: severalSplits(count) })
  );
  await fc.assert(
    fc.asyncProperty(
      inputs,
      bounds(),
      windows,
      lateness(),
      cuts(),
      fc.boolean(),
      async (input, bound, kind, late, cut, reads) => {
        const splits = Array.from({ length: input.count }, (_, i) => String(i));
        await compare(input.steps, splits, bound, kind, late, cut, reads, COMPUTATIONS.slice(0, 2));
      },
    ),
    { numRuns: RUNS },
  );
});
