import assert from "node:assert/strict";
import fc from "fast-check";
import { collect, count, sum } from "../../lib/aggregate/mod.ts";
import type { KeyedStream } from "../../lib/stream/keyed_stream.ts";
import type { Stream } from "../../lib/stream/stream.ts";
import {
  count as countWindows,
  session,
  sliding,
  tumbling,
  type WindowAssigner,
} from "../../lib/window/mod.ts";
import { bounds, cuts, oneSplit, severalSplits } from "./arbitrary.ts";
import { byKey, type Item, runSteps, settings } from "./engine.ts";
import type { Step } from "./event_time_model.ts";
import { modelWindows, type WindowKind } from "./windows_model.ts";

const RUNS = 50;

interface First {
  readonly windows: WindowKind;
  readonly assigner: WindowAssigner;
}
interface Second {
  readonly name: string;
  readonly assigner: WindowAssigner;
}

const FIRST: readonly First[] = [
  { windows: { kind: "fixed", size: 10, slide: 10, offset: 0 }, assigner: tumbling(10) },
  { windows: { kind: "fixed", size: 12, slide: 4, offset: 0 }, assigner: sliding(12, 4) },
  { windows: { kind: "session", gap: 7 }, assigner: session(7) },
];
const SECOND: readonly Second[] = [
  { name: "tumbling", assigner: tumbling(30) },
  { name: "session", assigner: session(15) },
];

/** Groups of keys, so that rows of several partitions meet behind the first windows. */
const groupOf = (key: string) => key < "b" ? "low" : "high";

interface FirstRow {
  readonly count: number;
  readonly sum: number | bigint;
}
interface SecondRow {
  readonly rows: number;
  readonly count: number | bigint;
  readonly ends: readonly unknown[];
}

/** Windows, then windows over their rows, of the same keys or of groups of them. */
function chain(
  stream: Stream<Item>,
  partitions: number,
  first: WindowAssigner,
  second: WindowAssigner,
  regroups: boolean,
  late: number,
): KeyedStream<unknown, SecondRow> {
  const rows = stream.keyBy(({ key }) => key, { partitions })
    .window(first).allowedLateness(late).aggregate({ count: count(), sum: sum("n") });
  const timed = regroups
    ? rows.map(stamp).keyBy((_, { key }) => groupOf(key as string), { partitions })
    : rows.map(stamp);
  return timed.window(second).aggregate({
    rows: count(),
    count: sum("count"),
    ends: collect({ field: "end" }),
  }) as KeyedStream<unknown, SecondRow>;
}
const stamp = (value: FirstRow, { timestamp }: { timestamp: number }) => ({ ...value, end: timestamp });

const rowOf = (row: { key: unknown; window: unknown; timestamp: number; value: SecondRow }) => ({
  key: row.key,
  window: row.window,
  timestamp: row.timestamp,
  value: row.value,
});

/** What the second windows hold, worked out afterwards from all rows of the first: none of them is late. */
function expectedOf(
  steps: readonly Step[],
  bound: number,
  first: WindowKind,
  second: Second,
  regroups: boolean,
): unknown {
  const rows = modelWindows(steps, ["0"], bound, first, 0).rows
    .map((row) => ({
      key: regroups ? groupOf(row.key) : row.key,
      at: row.timestamp,
      count: row.records.length,
    }))
    .toSorted((a, b) => a.at - b.at);
  const groups: { key: string; start: number; end: number; rows: typeof rows }[] = [];
  for (const row of rows) {
    const start = second.name === "tumbling" ? Math.floor(row.at / 30) * 30 : row.at;
    const known = groups.findLast((g) => g.key === row.key && row.at < g.end);
    if (known === undefined) {
      groups.push({
        key: row.key,
        start,
        end: second.name === "tumbling" ? start + 30 : row.at + 15,
        rows: [row],
      });
    } else {
      known.rows.push(row);
      if (second.name === "session") known.end = row.at + 15;
    }
  }
  return byKey(
    groups.map(({ key, start, end, rows }) => ({
      key,
      window: { start, end },
      timestamp: end - 1,
      value: {
        rows: rows.length,
        count: rows.reduce((n, row) => n + row.count, 0),
        ends: rows.map(({ at }) => at),
      },
    })),
    ({ key }) => key,
  );
}

Deno.test("windows on windows: each row of the first is in the second, for any buffer, cut and number of partitions", async () => {
  const given = fc.tuple(
    oneSplit(),
    bounds(),
    fc.constantFrom(...FIRST),
    fc.constantFrom(...SECOND),
    fc.boolean(),
    cuts(),
  );
  await fc.assert(
    fc.asyncProperty(given, async ([steps, bound, first, second, regroups, cut]) => {
      const expected = expectedOf(steps, bound, first.windows, second, regroups);
      for (const setting of settings(cut)) {
        const { rows, handle } = await runSteps(steps, ["0"], bound, setting, (stream, partitions) => [
          chain(stream, partitions, first.assigner, second.assigner, regroups, 0),
        ]);
        assert.deepEqual(byKey(rows.map(rowOf), ({ key }) => key), expected, JSON.stringify(setting));
        const behindSecond = handle.status().dropped.filter(({ operator }) => operator === "aggregate-2");
        assert.deepEqual(behindSecond, []);
      }
    }),
    { numRuns: RUNS },
  );
});

Deno.test("windows on windows that give rows again for late records: the same rows and drops for any buffer, cut and partitioning", async () => {
  const given = fc.tuple(
    oneSplit(),
    bounds(),
    fc.constantFrom(...FIRST),
    fc.constantFrom(...SECOND),
    fc.boolean(),
    cuts(),
  );
  await fc.assert(
    fc.asyncProperty(
      given,
      fc.integer({ min: 1, max: 60 }),
      async ([steps, bound, first, second, regroups, cut], late) => {
        // A row given again for a late record is behind its watermark. Whether the session it touches has closed depends on how
        // far the other partitions are; with one partition, and for windows of fixed extent, nothing does.
        const one = second.name === "session" ? 1 : undefined;
        await same(
          steps,
          ["0"],
          bound,
          cut,
          (stream, partitions) =>
            chain(stream, one ?? partitions, first.assigner, second.assigner, regroups, late),
        );
      },
    ),
    { numRuns: RUNS },
  );
});

Deno.test("windows on windows over several splits: the same rows and drops for any buffer, cut and partitioning", async () => {
  const given = fc.tuple(
    severalSplits(3),
    bounds(),
    fc.constantFrom(...FIRST),
    fc.constantFrom(...SECOND),
    fc.boolean(),
    cuts(),
  );
  await fc.assert(
    fc.asyncProperty(given, async ([steps, bound, first, second, regroups, cut]) => {
      await same(
        steps,
        ["0", "1", "2"],
        bound,
        cut,
        (stream, partitions) => chain(stream, partitions, first.assigner, second.assigner, regroups, 0),
      );
    }),
    { numRuns: RUNS },
  );
});

Deno.test("count windows before windows of time, over several splits: a row never speaks for a slower split", async () => {
  const counts = fc.constantFrom(countWindows(2), countWindows(3, 1), countWindows(5, 2));
  await fc.assert(
    fc.asyncProperty(severalSplits(2), bounds(), counts, cuts(), async (steps, bound, counted, cut) => {
      await same(steps, ["0", "1"], bound, cut, (stream, partitions) => {
        const rows = stream.keyBy(({ key }) => key, { partitions }).window(counted).aggregate({
          count: count(),
          sum: sum("n"),
        });
        return rows.map(stamp).window(tumbling(20)).aggregate({
          rows: count(),
          count: sum("count"),
          ends: collect({ field: "end" }),
        });
      });
    }),
    { numRuns: RUNS },
  );
});

/** Every setting gives what the first one gives. */
async function same(
  steps: readonly Step[],
  splits: readonly string[],
  bound: number,
  cut: readonly boolean[],
  build: (stream: Stream<Item>, partitions: number) => Stream<SecondRow>,
): Promise<void> {
  let wanted: unknown;
  for (const setting of settings(cut)) {
    const { rows, handle } = await runSteps(
      steps,
      splits,
      bound,
      setting,
      (stream, partitions) => [build(stream, partitions)],
    );
    const got = { rows: byKey(rows.map(rowOf), ({ key }) => key), dropped: handle.status().dropped };
    wanted ??= got;
    assert.deepEqual(got, wanted, JSON.stringify(setting));
  }
}
