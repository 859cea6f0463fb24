import assert from "node:assert/strict";
import { count, first, last, max, min, sum } from "../lib/aggregate/mod.ts";
import { parseJson, stringifyJson } from "../lib/json.ts";
import { boundedOutOfOrderness, monotonic, noWatermarks } from "../lib/runtime/watermarks.ts";
import { createEnv } from "../lib/stream/env.ts";
import type { KeyedStream } from "../lib/stream/keyed_stream.ts";
import type { Stream } from "../lib/stream/stream.ts";
import {
  collectingSink,
  type Harness,
  harness,
  type HarnessOptions,
  scriptedSource,
  settle,
  VirtualClock,
} from "../lib/testing/mod.ts";
import { count as countWindows, session, sliding, tumbling, type WindowAssigner } from "../lib/window/mod.ts";

interface Event {
  readonly key: string;
  readonly n: number;
}
interface Row {
  readonly count: number;
  readonly sum: number | bigint;
}
const event = (n: number, key = "k"): Event => ({ key, n });

/** Counts and sums per key and window, by hand. */
function counted(
  windows: WindowAssigner,
  options: HarnessOptions<Event> & { readonly late?: boolean; readonly partitions?: number } = {},
): Promise<Harness<Event, Row>> {
  const { late, partitions = 2, ...rest } = options;
  return harness<Event, Row>(
    (stream) =>
      stream.keyBy(({ key }) => key, { partitions }).window(windows).aggregate({
        count: count(),
        sum: sum("n"),
      }, { id: "w" }),
    { ...rest, ...(late ? { sides: ["late"] } : {}) },
  );
}
const windowsOf = (h: Harness<Event, Row>) =>
  h.records.map(({ window, value }) => [window!.start, window!.end, value.count]);

const IDLE = boundedOutOfOrderness(0, { idleTimeout: "10s" });

Deno.test("W1: an empty split is idle after its timeout of empty fetches and frees the windows; being slow elsewhere does not make one idle", async () => {
  const h = await counted(tumbling(10), { splits: ["a", "b"], watermarks: IDLE });
  await h.push(event(1), { timestamp: 5, split: "a" });
  await h.push(event(2), { timestamp: 25, split: "a" });
  await h.advance("1h"); // nobody fetched b: that says nothing about it
  assert.deepEqual(h.output, []);
  await h.empty("b");
  await h.advance("9s");
  await h.empty("b");
  assert.deepEqual(h.output, []);
  await h.advance("1s");
  await h.empty("b");
  assert.deepEqual(h.output, [{ count: 1, sum: 1 }]);
  await h.end();
});

Deno.test("W1: time spent waiting for room downstream does not count as idle, and no record is lost by it", async () => {
  const clock = new VirtualClock(), out = collectingSink<Row>();
  const script = scriptedSource<Event>([], { splits: ["a", "b"] });
  const env = createEnv().withClock(clock).withBufferSize(1);
  env.fromSource(script.source, { watermarks: IDLE }).keyBy(({ key }) => key, { partitions: 1 })
    .window(tumbling(10)).aggregate({ count: count(), sum: sum("n") }).toSink(out.sink);
  const handle = env.start();
  await settle();
  out.block();
  const at = (split: string, timestamp: number, n: number) =>
    script.add({ do: "records", values: [event(n)], timestamps: [timestamp], split });
  at("a", 5, 1);
  at("b", 5, 2);
  for (let t = 15; t < 200; t += 10) at("b", t, 1);
  for (let t = 15; t < 100; t += 10) at("a", t, 1);
  out.unblock();
  await settle();
  script.add({ do: "empty", split: "b" });
  await settle();
  out.block();
  for (let t = 105; t < 300; t += 10) at("a", t, 1); // fills every edge
  await settle();
  await clock.advance("1h"); // blocked all the time
  out.unblock();
  await settle();
  script.add({ do: "empty", split: "b" });
  at("a", 1000, 1);
  await settle();
  assert.equal(handle.status().dropped.length, 0);
  at("b", 205, 7); // b was never idle: its record is in time
  script.add({ do: "end" });
  await handle.done;
  assert.deepEqual(handle.status().dropped, []);
});

Deno.test("W2: a source without splits is idle, not complete: it closes no window and holds none", async () => {
  const h = await counted(tumbling(10), { splits: [] });
  assert.deepEqual(h.output, []);
  await h.stop();
  const clock = new VirtualClock(), out = collectingSink<Row>();
  const [empty, full] = [scriptedSource<Event>([], { splits: [] }), scriptedSource<Event>()];
  const env = createEnv().withClock(clock);
  env.fromSource(empty.source).union(env.fromSource(full.source)).keyBy(({ key }) => key).window(tumbling(10))
    .aggregate({ count: count(), sum: sum("n") }).toSink(out.sink);
  const handle = env.start();
  await settle();
  full.add({ do: "records", values: [event(1), event(2)], timestamps: [5, 6] });
  await settle();
  assert.deepEqual(out.values, [], "not closed by the empty source");
  full.add({ do: "records", values: [event(3)], timestamps: [10] });
  await settle();
  assert.deepEqual(out.values, [{ count: 2, sum: 3 }], "nor held by it");
  await handle.stop();
});

Deno.test("W3: splits that appear while running hold the watermark from then on", async () => {
  const clock = new VirtualClock(), out = collectingSink<Row>();
  const script = scriptedSource<Event>([], { splits: ["a"] });
  const env = createEnv().withClock(clock);
  env.fromSource(script.source).keyBy(({ key }) => key).window(tumbling(10)).aggregate({
    count: count(),
    sum: sum("n"),
  }).toSink(out.sink);
  const handle = env.start();
  const at = async (split: string, timestamp: number) => {
    script.add({ do: "records", values: [event(1)], timestamps: [timestamp], split });
    await settle();
  };
  await at("a", 5);
  script.add({ do: "addSplits", splits: ["b", "c"] });
  await at("a", 100);
  assert.deepEqual(out.values, [], "b and c have not been read");
  await at("b", 7);
  await at("c", 30);
  assert.deepEqual(out.values, []);
  script.add({ do: "endSplit", split: "b" });
  await settle();
  assert.deepEqual(out.values, [{ count: 2, sum: 2 }], "b is complete, the least is c's 30");
  script.add({ do: "end" });
  await handle.done;
});

Deno.test("W2: all splits ended is not the end: windows stay open, a split that comes later is not late", async () => {
  const clock = new VirtualClock(), out = collectingSink<Row>();
  const script = scriptedSource<Event>([], { splits: ["a"] });
  const env = createEnv().withClock(clock);
  env.fromSource(script.source).keyBy(({ key }) => key).window(tumbling(10)).aggregate({
    count: count(),
    sum: sum("n"),
  }).toSink(out.sink);
  const handle = env.start();
  script.add({ do: "records", values: [event(1)], timestamps: [5], split: "a" }, {
    do: "endSplit",
    split: "a",
  });
  await settle();
  assert.deepEqual(out.values, []);
  script.add({ do: "addSplits", splits: ["b"] }, {
    do: "records",
    values: [event(2)],
    timestamps: [6],
    split: "b",
  }, { do: "end" });
  await handle.done;
  assert.deepEqual(out.values, [{ count: 2, sum: 3 }]);
  assert.deepEqual(handle.status().dropped, []);
});

Deno.test("W4: more partitions than splits, and than keys, stall nothing", async () => {
  const h = await counted(tumbling(10), { partitions: 64, watermarks: monotonic() });
  await h.push(event(1), { timestamp: 5 });
  await h.push(event(2), { timestamp: 12 });
  assert.deepEqual(windowsOf(h), [[0, 10, 1]]);
  await h.end();
});

Deno.test("W5: an idle split rejoins with its next record, and holds the watermark again", async () => {
  const h = await counted(tumbling(10), { splits: ["a", "b"], watermarks: IDLE, partitions: 3 });
  await h.push(event(1), { timestamp: 1, split: "a" });
  await h.push(event(1), { timestamp: 1, split: "b" });
  await h.empty("b");
  await h.advance("10s");
  await h.empty("b");
  await h.push(event(1), { timestamp: 12, split: "a" });
  assert.deepEqual(windowsOf(h), [[0, 10, 2]]);
  await h.push(event(1, "x"), { timestamp: 15, split: "b" });
  await h.push(event(1), { timestamp: 90, split: "a" });
  assert.equal(h.records.length, 1, "b is at 15");
  await h.push(event(1), { timestamp: 16, split: "b" });
  await h.push(event(1), { timestamp: 21, split: "b" });
  assert.deepEqual(windowsOf(h).slice(1).toSorted(), [[10, 20, 1], [10, 20, 2]]);
  assert.deepEqual(h.handle.status().dropped, []);
  await h.end();
});

Deno.test("W6: idleness needs no emission interval: a source that only ever says empty becomes idle", async () => {
  const h = await counted(tumbling(10), { watermarks: IDLE });
  const idle = async () => (await h.handle.status()).watermark;
  await h.push(event(1), { timestamp: 5 });
  assert.equal(await idle(), 5);
  await h.empty();
  await h.advance("10s");
  await h.empty();
  assert.equal(await idle(), undefined, "no split that is not idle");
  await h.stop();
});

Deno.test("W6: a single split whose read waits longer than the timeout is idle as well", async () => {
  const clock = new VirtualClock();
  const [quiet, busy] = [scriptedSource<Event>(), scriptedSource<Event>()];
  const env = createEnv().withClock(clock), out = collectingSink<Row>();
  env.fromSource(quiet.source, { watermarks: IDLE }).union(env.fromSource(busy.source)).keyBy(({ key }) =>
    key
  )
    .window(tumbling(10)).aggregate({ count: count(), sum: sum("n") }).toSink(out.sink);
  const handle = env.start();
  busy.add({ do: "records", values: [event(1), event(2)], timestamps: [5, 15] });
  await clock.advance("9s");
  assert.deepEqual(out.values, []);
  await clock.advance("1s");
  assert.deepEqual(out.values, [{ count: 1, sum: 1 }]);
  await handle.stop();
});

Deno.test("W8: on a quiet stream the last window stays open: no clock closes it unless the split may become idle and another moves on", async () => {
  const h = await counted(tumbling(10), { watermarks: IDLE });
  await h.push(event(1), { timestamp: 5 });
  await h.advance("1d");
  await h.empty();
  await h.advance("1d");
  await h.empty();
  assert.deepEqual(h.output, []);
  await h.end();
  assert.deepEqual(h.output, [{ count: 1, sum: 1 }]);
});

Deno.test("W9: a backfill gives the same windows at any speed: only the stream's own clock closes them", async () => {
  const input = Array.from({ length: 60 }, (_, i) => ({ n: i, at: i * 7 - (i % 4) * 5 }));
  const slow = await counted(tumbling(50), { watermarks: boundedOutOfOrderness(15) });
  for (const { n, at } of input) {
    await slow.push(event(n, `k${n % 3}`), { timestamp: at });
    await slow.advance("1h");
  }
  await slow.end();
  const fast = collectingSink<Row>();
  const env = createEnv().withClock(new VirtualClock());
  const script = scriptedSource<Event>([
    {
      do: "records",
      values: input.map(({ n }) => event(n, `k${n % 3}`)),
      timestamps: input.map(({ at }) => at),
    },
    { do: "end" },
  ]);
  env.fromSource(script.source, { watermarks: boundedOutOfOrderness(15) }).keyBy(({ key }) => key).window(
    tumbling(50),
  )
    .aggregate({ count: count(), sum: sum("n") }).toSink(fast.sink);
  await env.execute();
  const rows = (records: typeof fast.records) =>
    records.map(({ key, window, value }) => `${key} ${window!.start} ${value.count} ${value.sum}`).toSorted();
  assert.deepEqual(rows(slow.records), rows(fast.records));
});

Deno.test("W12: a record at the watermark is not late; a window [s, e) is complete at W ≥ e, one millisecond less does not close it", async () => {
  const h = await counted(tumbling(10), { late: true });
  await h.push(event(1), { timestamp: 9 });
  await h.watermark(9);
  await h.push(event(2), { timestamp: 9 }); // ts = W
  await h.push(event(4), { timestamp: 8 }); // behind W, its window is open
  assert.deepEqual(h.output, [], "W = e - 1");
  await h.watermark(10);
  assert.deepEqual(h.output, [{ count: 3, sum: 7 }], "W = e");
  await h.push(event(8), { timestamp: 9 });
  assert.deepEqual(h.side("late"), [event(8)]);
  await h.push(event(16), { timestamp: 10 });
  await h.end();
  assert.deepEqual(h.output, [{ count: 3, sum: 7 }, { count: 1, sum: 16 }]);
});

Deno.test("W12: with allowed lateness a record is taken while W < e + lateness, and late at W = e + lateness", async () => {
  const h = await harness<Event, Row>((stream) =>
    stream.keyBy(({ key }) => key).window(tumbling(10)).allowedLateness(5).aggregate({
      count: count(),
      sum: sum("n"),
    }, { id: "w" })
  );
  await h.push(event(1), { timestamp: 5 });
  await h.watermark(14);
  await h.push(event(2), { timestamp: 5 });
  assert.deepEqual(h.output, [{ count: 1, sum: 1 }, { count: 2, sum: 3 }]);
  await h.watermark(15);
  await h.push(event(4), { timestamp: 5 });
  await h.end();
  assert.equal(h.output.length, 2);
  assert.deepEqual(h.handle.status().dropped, [{ operator: "w", reason: "late", count: 1 }]);
});

Deno.test("a watermark that goes backwards is ignored: nothing is late that was not, nothing opens again", async () => {
  const h = await counted(tumbling(10));
  await h.watermark(10);
  await h.watermark(3);
  await h.push(event(1), { timestamp: 5 });
  await h.push(event(1), { timestamp: 15 });
  await h.watermark(-5);
  await h.watermark(20);
  assert.deepEqual(windowsOf(h), [[10, 20, 1]]);
  assert.deepEqual(h.handle.status().dropped, [{ operator: "w", reason: "late", count: 1 }]);
  await h.end();
});

Deno.test("L1: late records are counted by operator, with the furthest one was behind", async () => {
  let metrics!: () => Promise<string>;
  const h = await harness<Event, Row>((stream, env) => {
    metrics = () => env.metrics();
    return stream.keyBy(({ key }) => key).window(tumbling(10)).aggregate({ count: count(), sum: sum("n") }, {
      id: "w",
    });
  });
  await h.watermark(5000);
  for (const at of [4995, 3005, 4985]) await h.push(event(1), { timestamp: at });
  const text = await metrics();
  assert.match(text, /^mailer_records_dropped_total\{operator="w",reason="late",pipeline="test"\} 3$/m);
  assert.match(text, /^mailer_max_lateness_seconds\{operator="w",pipeline="test"\} 1\.99$/m);
  await h.end();
});

Deno.test("S3: a session across batches is one row, and a late bridge merges two", async () => {
  for (const bufferSize of [1, 2, 1024]) {
    const h = await counted(session(10), { env: (env) => void env.withBufferSize(bufferSize) });
    for (const at of [0, 20, 8, 13]) await h.push(event(1), { timestamp: at }); // 13 bridges [0, 18) and [20, 30)
    await h.watermark(100);
    assert.deepEqual(windowsOf(h), [[0, 30, 4]]);
    await h.end();
    assert.equal(h.records.length, 1);
  }
});

Deno.test("S3: two records exactly the gap apart are two sessions", async () => {
  const h = await counted(session(10));
  for (const at of [0, 10]) await h.push(event(1), { timestamp: at });
  await h.end();
  assert.deepEqual(windowsOf(h), [[0, 10, 1], [10, 20, 1]]);
});

Deno.test("S7: count windows let go of what they have given: state stays small over many records", async () => {
  let metrics!: () => Promise<string>;
  const h = await harness<readonly number[], { count: number }>((stream, env) => {
    metrics = () => env.metrics();
    const numbers = stream.flatMap((list) => list);
    numbers.keyBy((n) => n % 7).window(countWindows(10, 3)).aggregate({ count: count() }, { id: "sliding" })
      .toSink(collectingSink<unknown>().sink);
    return numbers.keyBy((n) => n % 7).window(countWindows(10)).aggregate({ count: count() }, {
      id: "tumbling",
    });
  });
  for (let i = 0; i < 20; i++) await h.push(Array.from({ length: 700 }, (_, n) => i * 700 + n));
  assert.equal(h.output.length, 1400);
  const text = await metrics();
  assert.match(text, /mailer_state_entries\{operator="tumbling",pipeline="test"\} 0\n/);
  assert.match(text, /mailer_state_entries\{operator="sliding",pipeline="test"\} 70\n/);
  await h.end();
});

Deno.test("S11: a session out of order starts at its earliest record and ends a gap after its latest", async () => {
  const h = await harness<Event, { first: unknown; last: unknown; from: unknown; to: unknown }>((stream) =>
    stream.map((value, { timestamp }) => ({ ...value, at: timestamp })).keyBy(({ key }) => key).window(
      session(100),
    )
      .aggregate({ first: first("n"), last: last("n"), from: min("at"), to: max("at") })
  );
  for (const [n, at] of [[1, 150], [2, 90], [3, 210], [4, 30]] as const) {
    await h.push(event(n), { timestamp: at });
  }
  await h.end();
  assert.deepEqual(h.output, [{ first: 4, last: 3, from: 30, to: 210 }]);
  assert.deepEqual(h.records.map(({ window, timestamp }) => [window!.start, window!.end, timestamp]), [[
    30,
    310,
    309,
  ]]);
});

Deno.test("S12: windows are described in words that say what is absolute and what rolls", () => {
  const env = createEnv();
  const stream = env.fromSource(scriptedSource<Event>().source).keyBy(({ key }) => key);
  for (
    const windows of [
      tumbling("5m", { offset: "30s" }),
      sliding("1h", "5m"),
      session("30m"),
      countWindows(10, 5),
      tumbling("1d", { timezone: "Europe/Berlin" }),
    ]
  ) {
    stream.window(windows).aggregate({ count: count() }).toSink(collectingSink<unknown>().sink);
  }
  const text = env.explain();
  for (
    const said of [
      "window tumbling 5m, offset 30s",
      "window sliding 1h every 5m",
      "window session with a gap of 30m",
      "window the last 10 records, every 5",
      "window tumbling 1d in Europe/Berlin",
    ]
  ) assert.ok(text.includes(said), `${said}\n${text}`);
});

/** The windows that hourly records of a stretch of time fall into: hours counted by start. */
async function calendar(windows: WindowAssigner, from: string, to: string): Promise<[string, number][]> {
  const start = Date.parse(from), hours = (Date.parse(to) - start) / 3_600_000;
  const times = Array.from({ length: hours }, (_, i) => start + i * 3_600_000);
  const out = collectingSink<{ count: number }>(), env = createEnv().withBufferSize(7);
  env.fromSource(
    scriptedSource<number>([{ do: "records", values: times, timestamps: times }, { do: "end" }]).source,
  )
    .keyBy(() => "all").window(windows).aggregate({ count: count() }).toSink(out.sink);
  await env.execute();
  return out.records.map(({ window, value }) => [new Date(window!.start).toISOString(), value.count]);
}

Deno.test("Z1: days, weeks and months are those of the time zone asked for", async () => {
  assert.deepEqual(
    await calendar(
      tumbling("1d", { timezone: "America/New_York" }),
      "2026-01-15T03:00:00Z",
      "2026-01-16T07:00:00Z",
    ),
    [
      ["2026-01-14T05:00:00.000Z", 2],
      ["2026-01-15T05:00:00.000Z", 24],
      ["2026-01-16T05:00:00.000Z", 2],
    ],
  );
  assert.deepEqual(
    await calendar(
      tumbling("1w", { timezone: "Asia/Tokyo" }),
      "2026-01-04T12:00:00Z",
      "2026-01-04T18:00:00Z",
    ),
    [
      ["2025-12-28T15:00:00.000Z", 3], // Monday 2025-12-29 in Tokyo
      ["2026-01-04T15:00:00.000Z", 3],
    ],
  );
  assert.deepEqual(
    await calendar(
      tumbling("1mo", { timezone: "Europe/Berlin" }),
      "2026-01-31T21:00:00Z",
      "2026-02-01T01:00:00Z",
    ),
    [
      ["2025-12-31T23:00:00.000Z", 2],
      ["2026-01-31T23:00:00.000Z", 2],
    ],
  );
});

Deno.test("Z3: days advance by the calendar: the spring day has 23 hours, the autumn day 25, and the days behind them start at midnight", async () => {
  const days = tumbling("1d", { timezone: "Europe/Berlin" });
  assert.deepEqual(await calendar(days, "2026-03-27T23:00:00Z", "2026-03-30T22:00:00Z"), [
    ["2026-03-27T23:00:00.000Z", 24],
    ["2026-03-28T23:00:00.000Z", 23],
    ["2026-03-29T22:00:00.000Z", 24],
  ]);
  assert.deepEqual(await calendar(days, "2026-10-23T22:00:00Z", "2026-10-26T23:00:00Z"), [
    ["2026-10-23T22:00:00.000Z", 24],
    ["2026-10-24T22:00:00.000Z", 25],
    ["2026-10-25T23:00:00.000Z", 24],
  ]);
});

Deno.test("Z4: half-hour zones, and an offset of local wall time that stays at nine o'clock over the change", async () => {
  assert.deepEqual(
    await calendar(
      tumbling("1d", { timezone: "Asia/Kolkata" }),
      "2026-05-01T17:30:00Z",
      "2026-05-01T20:30:00Z",
    ),
    [
      ["2026-04-30T18:30:00.000Z", 1],
      ["2026-05-01T18:30:00.000Z", 2],
    ],
  );
  const nine = tumbling("1d", { timezone: "Europe/Berlin", offset: "9h" });
  assert.deepEqual(
    (await calendar(nine, "2026-03-28T08:00:00Z", "2026-03-30T07:00:00Z")).map(([start]) => start),
    [
      "2026-03-28T08:00:00.000Z",
      "2026-03-29T07:00:00.000Z",
    ],
  );
});

Deno.test("Z6: windows below a day are fixed lengths on the axis of time, over a fold as well", async () => {
  const rows = await calendar(
    tumbling("2h", { timezone: "Europe/Berlin" }),
    "2026-10-24T20:00:00Z",
    "2026-10-25T06:00:00Z",
  );
  assert.deepEqual(rows.map(([, count]) => count), [2, 2, 2, 2, 2]);
  assert.equal(new Set(rows.map(([start]) => start)).size, 5);
});

Deno.test("Z7: the zone is the one written, never the machine's: without one, days are UTC", async () => {
  assert.deepEqual(await calendar(tumbling("1d"), "2026-03-28T23:00:00Z", "2026-03-29T02:00:00Z"), [
    ["2026-03-28T00:00:00.000Z", 1],
    ["2026-03-29T00:00:00.000Z", 2],
  ]);
});

Deno.test("N2: whole numbers as keys keep all their digits, and are never written with an exponent", async () => {
  const texts = ["228000000000000000", "9007199254740993", "1e3", "-0", "12345678901234567890123"];
  const values = texts.map((text) => parseJson(`{"id":${text}}`) as { id: unknown });
  const out = collectingSink<{ count: number }>(), env = createEnv();
  env.fromSource(
    scriptedSource<{ id: unknown }>([{ do: "records", values: [...values, ...values.slice(0, 2)] }, {
      do: "end",
    }]).source,
  )
    .keyBy(({ id }) => id).window(countWindows(5)).aggregate({ count: count() }).toSink(out.sink);
  await env.execute();
  const keys = new Map(out.records.map(({ key, value }) => [stringifyJson(key), value.count]));
  assert.deepEqual(
    new Map([...keys].toSorted()),
    new Map(
      Object.entries({
        "228000000000000000": 2,
        "9007199254740993": 2,
        [stringifyJson(values[2]!.id)]: 1,
        [stringifyJson(values[3]!.id)]: 1,
        "12345678901234567890123": 1,
      }).toSorted(),
    ),
  );
  for (const key of keys.keys()) if (key !== stringifyJson(values[2]!.id)) assert.doesNotMatch(key, /e/i);
});

Deno.test("M1: no key, offset or value becomes a label, and no operator has more than 40 series", async () => {
  const env = createEnv({ name: "m1" });
  const script = scriptedSource<Event>([
    {
      do: "records",
      values: Array.from({ length: 500 }, (_, n) => event(n, `secret-${n}`)),
      timestamps: Array.from({ length: 500 }, (_, n) => (n * 7919) % 1000),
    },
    { do: "end" },
  ], { splits: Array.from({ length: 50 }, (_, n) => String(n)) });
  const numbers = env.fromSource(script.source, { id: "in" });
  env.withDeadLetters(collectingSink<unknown>().sink);
  const keyed = numbers.keyBy(({ key }) => key, { id: "by", partitions: 32 });
  keyed.window(tumbling(10)).aggregate({ count: count() }, { id: "w", onError: "dlq" }).toSink(
    collectingSink<unknown>().sink,
    { id: "rows" },
  );
  keyed.dedupe({ ttl: 5, id: "d" }).toSink(collectingSink<unknown>().sink, { id: "first" });
  const { a } = numbers.route([{ name: "a", when: ({ n }) => n % 2 === 0 }], { id: "r" });
  a.sample(0.5, { id: "s" }).toSink(collectingSink<unknown>().sink, { id: "sampled" });
  await env.execute();
  const lines = (await env.metrics()).split("\n").filter((line) => line.startsWith("mailer_"));
  const series = new Map<string, number>();
  for (const line of lines) {
    assert.doesNotMatch(line, /secret/);
    const labels = line.slice(line.indexOf("{") + 1, line.indexOf("}")).split(",").map((label) =>
      label.split("=")[0]
    );
    for (const label of labels) {
      assert.ok(
        ["operator", "type", "reason", "stage", "state", "edge", "source", "split", "pipeline"].includes(
          label!,
        ),
        line,
      );
    }
    const owner = /(?:operator|source)="([^"]*)"/.exec(line)?.[1] ?? "the pipeline";
    series.set(owner, (series.get(owner) ?? 0) + 1);
  }
  for (const [owner, count] of series) {
    if (owner !== "the pipeline") assert.ok(count <= 40, `${owner} has ${count} series`);
  }
  assert.ok(lines.length < 200, `${lines.length} series`);
});

Deno.test("Y8: every record is written, or dropped for a reason that is counted", async () => {
  const env = createEnv(), out = collectingSink<unknown>();
  const values = Array.from({ length: 300 }, (_, n) => event(n, `k${n % 20}`));
  const script = scriptedSource<Event>([{
    do: "records",
    values,
    timestamps: values.map(({ n }) => (n * 37) % 200),
  }, { do: "end" }]);
  const { kept } = (env.fromSource(script.source, { id: "in" }) as Stream<Event>)
    .map((value) => {
      if (value.n % 50 === 7) throw new Error("bad");
      return value;
    }, { onError: "drop", id: "m" })
    .sample(0.7, { id: "s" })
    .route([{ name: "kept", when: ({ n }) => n % 10 !== 3 }], { id: "r" });
  kept!.keyBy(({ key, n }) => n % 90 === 11 ? undefined : key, { id: "by", onError: "drop" })
    .dedupe({ ttl: 1, id: "d" })
    .window(tumbling(20)).aggregate({ count: count() }, { id: "w" })
    .map(({ count }) => count).toSink(out.sink);
  const handle = env.start();
  await handle.done;
  const dropped = handle.status().dropped;
  assert.deepEqual(
    new Set(dropped.map(({ operator, reason }) => `${operator} ${reason}`)),
    new Set(["m error", "s sampled", "r unrouted", "by error", "d duplicate", "w late"]),
  );
  const lost = dropped.reduce((total, { count }) => total + count, 0);
  const written = (out.values as number[]).reduce((total, count) => total + count, 0);
  assert.equal(written + lost, 300);
});

Deno.test("records read without timestamps have the time of reading; a strategy of one's own is asked all the same", async () => {
  const clock = new VirtualClock(), out = collectingSink<number>();
  const script = scriptedSource<number>();
  const env = createEnv().withClock(clock);
  const seen: number[] = [];
  const numbers = env.fromSource(script.source, { watermarks: noWatermarks() });
  numbers.toSink(out.sink);
  numbers.keyBy((n) => n).processKeyed<number>((_, context) => void seen.push(context.watermark)).toSink(
    collectingSink<number>().sink,
  );
  const handle = env.start();
  script.add({ do: "records", values: [1, 2] });
  await settle();
  await clock.advance("5s");
  script.add({ do: "records", values: [3] });
  await settle();
  const start = Date.UTC(2026, 0, 1);
  assert.deepEqual(out.records.map(({ timestamp }) => timestamp), [start, start, start + 5000]);
  assert.deepEqual(seen, [-Infinity, -Infinity, -Infinity], "no watermarks means none");
  await handle.stop();
});

const RUNNING: Readonly<Record<string, (keyed: KeyedStream<string, Event>) => Stream<unknown>>> = {
  reduce: (keyed) => keyed.reduce((n: number | undefined) => (n ?? 0) + 1, { ttl: 10, id: "t3" }),
  aggregate: (keyed) => keyed.aggregate({ n: count() }, { ttl: 10, id: "t3" }),
};
for (const [type, build] of Object.entries(RUNNING)) {
  Deno.test(`T3: ${type} forgets a key whose ttl has passed, and begins anew`, async () => {
    let metrics!: () => Promise<string>;
    const h = await harness<Event, unknown>((stream, env) => {
      metrics = () => env.metrics();
      return build(stream.keyBy(({ key }) => key, { partitions: 2 }));
    }, { watermarks: boundedOutOfOrderness(0) });
    const push = async (timestamp: number, key: string) => {
      await h.push(event(1, key), { timestamp });
      const row = h.output.at(-1) as number | { readonly n: number };
      return typeof row === "number" ? row : row.n;
    };
    assert.equal(await push(0, "a"), 1);
    assert.equal(await push(4, "a"), 2);
    assert.equal(await push(2, "a"), 3, "an earlier record takes nothing away");
    assert.equal(await push(13, "b"), 1);
    assert.equal(await push(13, "a"), 4, "4 + 10 has not been reached");
    assert.equal(await push(23, "b"), 1, "13 + 10 has been reached by this very record");
    assert.equal(await push(24, "a"), 1);
    assert.equal(await push(3, "late"), 1);
    assert.equal(await push(3, "late"), 1, "forgotten at once");
    for (let i = 0; i < 1000; i++) await push(100 + i, `k${i}`);
    const [, held] = (await metrics()).match(
      /mailer_state_entries\{operator="t3",pipeline="test"\} (\d+)/,
    )!;
    assert.ok(Number(held) < 30, `${held} keys are held of 1,000 with 10 live ones`);
  });
}
