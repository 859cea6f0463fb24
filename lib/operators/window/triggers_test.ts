import assert from "node:assert/strict";
import { count, sum } from "../../aggregate/mod.ts";
import type { TriggerOptions, WindowedStream } from "../../stream/keyed_stream.ts";
import { type Harness, harness } from "../../testing/mod.ts";
import {
  count as countWindows,
  global,
  session,
  sliding,
  tumbling,
  type WindowAssigner,
} from "../../window/mod.ts";

interface Event {
  readonly key: string;
  readonly n: number;
}
interface Row {
  readonly count: number;
  readonly sum: number | bigint;
}
const START = Date.UTC(2026, 0, 1);

function run(
  assigner: WindowAssigner,
  set: (windowed: WindowedStream<string, Event>) => WindowedStream<string, Event> = (windowed) => windowed,
): Promise<Harness<Event, Row>> {
  return harness<Event, Row>((stream) =>
    set(stream.keyBy(({ key }) => key, { partitions: 2 }).window(assigner)).aggregate({
      count: count(),
      sum: sum("n"),
    }, { id: "w" })
  );
}
const triggered = (assigner: WindowAssigner, options: TriggerOptions) =>
  run(assigner, (windowed) => windowed.trigger(options));

/** Rows as text: key, result, window, `early` or not. */
const rowsOf = (h: Harness<Event, Row>): string[] =>
  h.records.map(({ key, value, window }) =>
    `${key} ${value.count}/${value.sum}` +
    (window === undefined ? "" : ` [${window.start},${window.end})${window.early ? " early" : ""}`)
  );
const push = async (h: Harness<Event, Row>, key: string, n: number, timestamp: number) =>
  await h.push({ key, n }, { timestamp });

const STRETCHES: readonly [string, WindowAssigner, string][] = [
  ["tumbling", tumbling(100), "[0,100)"],
  ["session", session(60), "[10,80)"],
];
for (const [name, assigner, window] of STRETCHES) {
  Deno.test(`S5: early rows of ${name} windows come by the clock, say so, accumulate, and the closing row always comes`, async () => {
    const h = await triggered(assigner, { early: "10s" });
    await push(h, "a", 1, 10);
    await push(h, "a", 2, 20);
    assert.deepEqual(rowsOf(h), []);
    await h.advance("9s");
    assert.deepEqual(rowsOf(h), []);
    await h.advance("1s");
    assert.deepEqual(rowsOf(h), [`a 2/3 ${window} early`]);
    await h.advance("1m");
    assert.equal(h.records.length, 1, "nothing has changed: no row");
    await push(h, "a", 4, 15);
    await h.advance("10s");
    await h.watermark(200);
    assert.deepEqual(rowsOf(h), [`a 2/3 ${window} early`, `a 3/7 ${window} early`, `a 3/7 ${window}`]);
    await h.end();
    assert.equal(h.records.length, 3);
  });

  Deno.test(`early rows of ${name} windows by the number of records, per key`, async () => {
    const h = await triggered(assigner, { every: 2 });
    for (const [key, n] of [["a", 1], ["b", 10], ["a", 2], ["a", 4], ["a", 8], ["b", 20]] as const) {
      await push(h, key, n, 20);
    }
    assert.deepEqual(rowsOf(h).map((row) => row.replace(/\[.*\)/, "w")), [
      "a 2/3 w early",
      "a 4/15 w early",
      "b 2/30 w early",
    ]);
    await h.watermark(200);
    assert.deepEqual(rowsOf(h).slice(3).map((row) => row.replace(/\[.*\)/, "w")).toSorted(), [
      "a 4/15 w",
      "b 2/30 w",
    ]);
    await h.end();
  });

  Deno.test(`S6: purging clears what is in a ${name} window, not the window: rows add up to all records`, async () => {
    const h = await triggered(assigner, { every: 2, mode: "purge" });
    for (const n of [1, 2, 4, 8, 16]) await push(h, "a", n, 20);
    await h.watermark(200);
    assert.deepEqual(rowsOf(h).map((row) => row.replace(/\[.*\)/, "w")), [
      "a 2/3 w early",
      "a 2/12 w early",
      "a 1/16 w",
    ]);
    const starts = new Set(h.records.map(({ window }) => window!.start));
    assert.equal(starts.size, 1, "one window all along");
    await h.end();
  });

  Deno.test(`a purged ${name} window with nothing new closes without a row over nothing`, async () => {
    const h = await triggered(assigner, { every: 2, mode: "purge" });
    for (const n of [1, 2]) await push(h, "a", n, 20);
    await h.watermark(200);
    await h.end();
    assert.equal(h.records.length, 1);
  });
}

Deno.test("S6: a record that comes after a purge joins the session that was purged", async () => {
  const h = await triggered(session(50), { every: 1, mode: "purge" });
  await push(h, "a", 1, 0);
  await push(h, "a", 2, 40);
  await push(h, "a", 4, 80);
  assert.deepEqual(rowsOf(h), ["a 1/1 [0,50) early", "a 1/2 [0,90) early", "a 1/4 [0,130) early"]);
  await h.end();
});

Deno.test("early rows of sliding windows come for each window that has changed", async () => {
  const h = await triggered(sliding(20, 10), { early: 1000 });
  await push(h, "a", 1, 5);
  await h.advance(1000);
  assert.deepEqual(rowsOf(h), ["a 1/1 [-10,10) early", "a 1/1 [0,20) early"]);
  await h.watermark(10);
  await push(h, "a", 2, 12);
  await h.advance(1000);
  assert.deepEqual(rowsOf(h).slice(2), ["a 1/1 [-10,10)", "a 2/3 [0,20) early", "a 1/2 [10,30) early"]);
  await h.end();
  assert.deepEqual(rowsOf(h).slice(5), ["a 2/3 [0,20)", "a 1/2 [10,30)"]);
});

Deno.test("early rows are not late for windows behind them", async () => {
  const h = await harness<Event, { count: number }>((stream) =>
    stream.keyBy(({ key }) => key, { partitions: 1 }).window(tumbling(10)).trigger({ every: 1 }).aggregate({
      count: count(),
    })
      .window(tumbling(10)).aggregate({ count: count() }, { id: "second" })
  );
  for (const n of [1, 2, 3]) await h.push({ key: "a", n }, { timestamp: 5 });
  await h.watermark(7);
  await h.push({ key: "a", n: 4 }, { timestamp: 8 });
  await h.end();
  assert.deepEqual(h.output, [{ count: 5 }], "four early rows and the closing one");
  assert.deepEqual(h.handle.status().dropped, []);
});

Deno.test("a global window gives a row when a trigger says so, and the rest at the end; rows have no window", async () => {
  const h = await triggered(global(), { every: 2 });
  for (const [n, at] of [[1, 50], [2, 90], [4, 70]] as const) await push(h, "a", n, at);
  await push(h, "b", 9, 5);
  assert.deepEqual(rowsOf(h), ["a 2/3"]);
  await h.watermark(1e6);
  assert.equal(h.records.length, 1, "no time closes it");
  await h.end();
  assert.deepEqual(rowsOf(h).toSorted(), ["a 2/3", "a 3/7", "b 1/9"]);
  assert.deepEqual(
    h.records.filter(({ key }) => key === "a").map(({ timestamp }) => timestamp),
    [90, 90],
    "the time of the newest in it",
  );
});

Deno.test("a purged global window starts from nothing, its row's time as well; a stop gives no row", async () => {
  const h = await triggered(global(), { early: 1000, mode: "purge" });
  await push(h, "a", 1, 90);
  await h.advance(1000);
  await push(h, "a", 2, 20);
  await h.advance(1000);
  await push(h, "a", 4, 30);
  await h.stop();
  assert.deepEqual(rowsOf(h), ["a 1/1", "a 1/2"]);
  assert.deepEqual(h.records.map(({ timestamp }) => timestamp), [90, 20]);
});

Deno.test("a global window without a trigger gives one row a key, at the end", async () => {
  const h = await run(global());
  for (const n of [1, 2]) await push(h, "a", n, n);
  await h.end();
  assert.deepEqual(rowsOf(h), ["a 2/3"]);
});

Deno.test("windows in processing time go by the clock: never late, closed without any further record", async () => {
  const h = await run(tumbling("10s"), (windowed) => windowed.inProcessingTime());
  await push(h, "a", 1, 5); // timestamps of long ago: no matter
  await h.watermark(START * 2);
  await h.advance("4s");
  await push(h, "a", 2, 1);
  await h.advance("5999ms");
  assert.deepEqual(rowsOf(h), []);
  await h.advance("1ms");
  assert.deepEqual(rowsOf(h), [`a 2/3 [${START},${START + 10_000})`]);
  await push(h, "a", 4, 0);
  await h.stop();
  assert.equal(h.records.length, 1, "a stop closes nothing early");
  assert.deepEqual(h.handle.status().dropped, []);
});

Deno.test("sessions and sliding windows in processing time", async () => {
  const sessions = await run(session("10s"), (windowed) => windowed.inProcessingTime());
  await push(sessions, "a", 1, 0);
  await sessions.advance("9s");
  await push(sessions, "a", 2, 0);
  await sessions.advance("9s");
  assert.deepEqual(rowsOf(sessions), []);
  await sessions.advance("1s");
  assert.deepEqual(rowsOf(sessions), [`a 2/3 [${START},${START + 19_000})`]);
  await sessions.end();

  const hops = await run(sliding("10s", "5s"), (windowed) => windowed.inProcessingTime());
  await push(hops, "a", 1, 0);
  await hops.advance("1h");
  assert.deepEqual(rowsOf(hops), [
    `a 1/1 [${START - 5000},${START + 5000})`,
    `a 1/1 [${START},${START + 10_000})`,
  ]);
  await push(hops, "a", 2, 0);
  await hops.end();
  assert.equal(hops.records.length, 4);
});

Deno.test("count windows tumble and slide, per key; the rest comes at the end, and not at a stop", async () => {
  const three = await run(countWindows(3));
  for (const n of [1, 2, 4, 8, 16]) await push(three, "a", n, n);
  await push(three, "b", 100, 1);
  assert.deepEqual(rowsOf(three), ["a 3/7"]);
  await three.end();
  assert.deepEqual(rowsOf(three).toSorted(), ["a 2/24", "a 3/7", "b 1/100"]);

  const slide = await run(countWindows(3, 2));
  for (const n of [1, 2, 4, 8, 16]) await push(slide, "a", n, n);
  assert.deepEqual(rowsOf(slide), ["a 2/3", "a 3/14"]);
  await slide.end();
  assert.deepEqual(rowsOf(slide), ["a 2/3", "a 3/14", "a 3/28"], "the last three");

  const stopped = await run(countWindows(3));
  await push(stopped, "a", 1, 1);
  await stopped.stop();
  assert.deepEqual(rowsOf(stopped), []);
});

Deno.test("a row of a count window has the time of the newest record in it, not of one that has left it", async () => {
  const h = await run(countWindows(2, 1));
  for (const at of [100, 5, 6, 7]) await push(h, "a", 1, at);
  await h.end();
  assert.deepEqual(h.records.map(({ timestamp }) => timestamp), [100, 100, 6, 7]);
});
