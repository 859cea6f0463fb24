import assert from "node:assert/strict";
import fc from "fast-check";
import type { PaneWindows } from "./assigner.ts";
import { count, formatInstant, global, session, sliding, tumbling, type WindowOptions } from "./mod.ts";

const DAY = 86_400_000, HOUR = 3_600_000;
const at = Date.parse;

/** The windows that hold a time, oldest first, by way of its pane. */
function windowsOf(windows: PaneWindows, timestamp: number): [start: number, end: number][] {
  const pane = windows.paneStart(timestamp);
  const found: [number, number][] = [];
  for (let start = windows.firstWindow(pane); start <= pane; start = windows.nextWindow(start)) {
    found.push([start, windows.windowEnd(start)]);
    assert.ok(found.length < 1000, "windows come to an end");
  }
  return found;
}

/** P1 and P2 around a time. */
function checkPanes(windows: PaneWindows, timestamp: number): void {
  const pane = windows.paneStart(timestamp), end = windows.paneEnd(pane);
  assert.ok(pane <= timestamp && timestamp < end, `${pane} ≤ ${timestamp} < ${end}`);
  assert.equal(windows.paneStart(end), end);
  assert.equal(windows.paneStart(end - 1), pane);
  assert.equal(windows.paneStart(pane), pane);
  for (const [start, close] of windowsOf(windows, timestamp)) {
    assert.equal(windows.paneStart(start), start);
    assert.equal(windows.paneStart(close), close);
    if (windows.single) assert.deepEqual([start, close], [pane, end]);
  }
}

const extents = fc.tuple(
  fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 100 }).map((n) => n * 1000)),
  fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 100 }).map((n) => n * 1000)),
  fc.integer({ min: -300_000, max: 300_000 }),
).filter(([size, slide]) => slide <= size && size / slide < 500);

Deno.test("a time is in every fixed window that starts at or before it and ends after it, and in no other", () => {
  const times = fc.oneof(
    fc.integer({ min: -1_000_000, max: 1_000_000 }),
    fc.integer({ min: -8.64e15, max: 8.64e15 }),
    fc.constantFrom(8.64e15, -8.64e15, 0, -1),
  );
  fc.assert(
    fc.property(extents, times, ([size, slide, offset], timestamp) => {
      const windows = sliding(size, slide, { offset });
      const expected: [number, number][] = [];
      const wide = BigInt(slide), base = BigInt(offset);
      const floored = (((BigInt(timestamp) - base) % wide) + wide) % wide;
      for (let start = timestamp - Number(floored); start > timestamp - size; start -= slide) {
        expected.unshift([start, start + size]);
      }
      assert.deepEqual(windowsOf(windows, timestamp), expected);
      checkPanes(windows, timestamp);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("panes are the pieces between window starts and ends, however many windows overlap", () => {
  const windows = sliding("10s", "4s");
  assert.deepEqual([windows.paneStart(3999), windows.paneEnd(2000)], [2000, 4000]);
  assert.deepEqual(windowsOf(windows, 9000), [[0, 10_000], [4000, 14_000], [8000, 18_000]]);
  assert.deepEqual(windowsOf(windows, 10_000), [[4000, 14_000], [8000, 18_000]]);
  assert.equal(sliding("1h", "1h").single, true);
  assert.equal(windows.single, false);
});

Deno.test("W12: the first millisecond of a window is in it, the end is in the next one", () => {
  const windows = tumbling("1m");
  assert.deepEqual(windowsOf(windows, 59_999), [[0, 60_000]]);
  assert.deepEqual(windowsOf(windows, 60_000), [[60_000, 120_000]]);
  assert.deepEqual(windowsOf(windows, -1), [[-60_000, 0]]);
});

Deno.test("S12: windows lie on the axis of time, not behind the first record", () => {
  const start = at("2026-03-02T09:00:00Z");
  assert.equal(tumbling("15m").paneStart(start + 7 * 60_000), start);
  assert.equal(tumbling("15m", { offset: "5m" }).paneStart(start + 7 * 60_000), start + 5 * 60_000);
  assert.equal(tumbling("15m", { offset: "-10m" }).paneStart(start + 7 * 60_000), start + 5 * 60_000);
});

// ---- calendar ----

/** Starts of units by Temporal alone. */
function startOf(unit: "d" | "w" | "mo", number: number, timezone: string, offset: number): number {
  const day = unit === "mo"
    ? new Temporal.PlainDate(1970, 1, 1).add({ months: number })
    : new Temporal.PlainDate(1970, 1, 1).add({ days: unit === "w" ? number * 7 - 3 : number });
  if (offset === 0) return day.toZonedDateTime(timezone).epochMilliseconds;
  return day.toPlainDateTime().add({ milliseconds: offset }).toZonedDateTime(timezone).epochMilliseconds;
}

function bruteForce(
  unit: "d" | "w" | "mo",
  size: number,
  slide: number,
  timezone: string,
  offset: number,
  timestamp: number,
): [number, number][] {
  const length = unit === "mo" ? 30.437 * DAY : unit === "w" ? 7 * DAY : DAY;
  const near = Math.floor((timestamp + (unit === "w" ? 3 * DAY : 0)) / length / slide) * slide;
  const byStart = new Map<number, number>();
  const margin = (Math.ceil(size / slide) + 4) * slide;
  for (let number = near - margin; number <= near + margin; number += slide) {
    const start = startOf(unit, number, timezone, offset),
      end = startOf(unit, number + size, timezone, offset);
    byStart.set(start, end); // of two that start together, the day before was left out by the zone
  }
  return [...byStart].filter(([start, end]) => start <= timestamp && timestamp < end).sort(([a], [b]) =>
    a - b
  );
}

const CHANGES: readonly [zone: string, instant: string][] = [
  ["America/New_York", "2026-03-08T07:00:00Z"],
  ["America/New_York", "2026-11-01T06:00:00Z"],
  ["Europe/Berlin", "2026-03-29T01:00:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T15:00:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30:00Z"],
  ["America/Sao_Paulo", "2017-10-15T03:00:00Z"],
  ["America/Sao_Paulo", "2018-02-18T02:00:00Z"],
  ["Africa/Cairo", "2026-04-23T22:00:00Z"],
  ["Africa/Cairo", "2026-10-29T21:00:00Z"],
  ["Pacific/Apia", "2011-12-30T10:00:00Z"],
  ["Pacific/Kwajalein", "1993-08-21T12:00:00Z"],
  ["Asia/Kolkata", "2026-03-08T18:30:00Z"],
  ["Asia/Kathmandu", "1985-12-31T18:30:00Z"],
  ["America/Havana", "2026-11-01T05:00:00Z"],
  ["America/Goose_Bay", "2010-11-07T03:01:00Z"],
  ["America/Toronto", "1919-03-31T04:30:00Z"],
  ["Africa/Casablanca", "2026-02-15T02:00:00Z"],
  ["+05:30", "2026-03-08T18:30:00Z"],
  ["UTC", "2026-03-08T00:00:00Z"],
];

Deno.test("calendar windows are those that Temporal counts, around every kind of clock change", () => {
  const units = fc.constantFrom<["d" | "w" | "mo", number, number]>(
    ["d", 1, 1],
    ["d", 7, 1],
    ["d", 3, 2],
    ["d", 10, 10],
    ["w", 1, 1],
    ["w", 2, 2],
    ["w", 3, 2],
    ["mo", 1, 1],
    ["mo", 3, 3],
    ["mo", 3, 1],
    ["mo", 12, 5],
  );
  const when = fc.oneof(
    fc.tuple(fc.constantFrom(...CHANGES), fc.integer({ min: -50 * HOUR, max: 50 * HOUR }))
      .map(([[zone, instant], by]) => [zone, at(instant) + by] as const),
    fc.tuple(fc.constantFrom(...CHANGES), fc.integer({ min: -5000, max: 5000 }))
      .map(([[zone, instant], by]) => [zone, at(instant) + by * 60_000] as const),
    fc.tuple(
      fc.constantFrom(...CHANGES),
      fc.integer({ min: at("1930-01-01T00:00Z"), max: at("2090-01-01T00:00Z") }),
    )
      .map(([[zone], instant]) => [zone, instant] as const),
  );
  const offsets = fc.oneof(fc.constant(0), fc.integer({ min: -36, max: 36 }).map((half) => half * HOUR / 2));
  fc.assert(
    fc.property(units, when, offsets, ([unit, size, slide], [timezone, timestamp], offset) => {
      const windows = sliding(`${size}${unit}`, `${slide}${unit}`, { timezone, offset });
      const expected = bruteForce(unit, size, slide, timezone, offset, timestamp);
      assert.deepEqual(windowsOf(windows, timestamp), expected);
      checkPanes(windows, timestamp);
    }),
    { numRuns: 3000 },
  );
});

Deno.test("days are those that Temporal counts at every quarter of an hour around a clock change", () => {
  for (const [timezone, change] of CHANGES) {
    for (const offset of [0, HOUR / 2, 1.5 * HOUR, 2.25 * HOUR, -HOUR / 2]) {
      const windows = tumbling("1d", { timezone, offset });
      for (let t = at(change) - 3 * HOUR; t <= at(change) + 3 * HOUR; t += HOUR / 4) {
        const expected = bruteForce("d", 1, 1, timezone, offset, t);
        assert.deepEqual(
          windowsOf(windows, t),
          expected,
          `${timezone} ${new Date(t).toISOString()} offset ${offset}`,
        );
      }
    }
  }
});

Deno.test("the answer for a time does not depend on the times asked before", () => {
  const windows = tumbling("1d", { timezone: "America/New_York" });
  const times = fc.array(fc.integer({ min: at("2026-03-06T00:00Z"), max: at("2026-03-11T00:00Z") }), {
    minLength: 1,
  });
  fc.assert(fc.property(times, (all) => {
    for (const time of all) {
      const start = tumbling("1d", { timezone: "America/New_York" }).paneStart(time);
      assert.equal(windows.paneStart(time), start);
      assert.equal(windows.paneEnd(start), windows.windowEnd(start));
    }
  }));
});

/** Consecutive windows from a time on, as text in their zone. */
function days(
  size: string,
  timezone: string,
  from: string,
  howMany: number,
  options: WindowOptions = {},
): string[] {
  const windows = tumbling(size, { timezone, ...options });
  const shown: string[] = [];
  for (let start = windows.paneStart(at(from)); shown.length < howMany; start = windows.nextWindow(start)) {
    assert.equal(windows.windowEnd(start), windows.nextWindow(start));
    shown.push(formatInstant(start, timezone).replace(":00.000", ""));
  }
  return shown;
}

Deno.test("Z1: days, weeks and months begin at midnight of their zone", () => {
  assert.deepEqual(days("1d", "Asia/Kolkata", "2026-03-08T00:00Z", 2), [
    "2026-03-08T00:00+05:30",
    "2026-03-09T00:00+05:30",
  ]);
  assert.deepEqual(days("1w", "Europe/Berlin", "2026-03-29T12:00Z", 2), [
    "2026-03-23T00:00+01:00",
    "2026-03-30T00:00+02:00",
  ]);
  assert.deepEqual(days("1mo", "America/New_York", "2026-03-01T04:59Z", 3), [
    "2026-02-01T00:00-05:00",
    "2026-03-01T00:00-05:00",
    "2026-04-01T00:00-04:00",
  ]);
  assert.deepEqual(days("3mo", "UTC", "2026-05-05T00:00Z", 2).map((t) => t.slice(0, 10)), [
    "2026-04-01",
    "2026-07-01",
  ]);
});

Deno.test("Z3: windows advance by the calendar, so days with a clock change have 23, 23.5, 24.5 or 25 hours", () => {
  const cases: [zone: string, noon: string, hours: number][] = [
    ["America/New_York", "2026-03-08T17:00Z", 23],
    ["America/New_York", "2026-11-01T17:00Z", 25],
    ["Australia/Lord_Howe", "2026-04-05T01:00Z", 24.5],
    ["Australia/Lord_Howe", "2026-10-04T01:00Z", 23.5],
    ["America/Sao_Paulo", "2017-10-15T15:00Z", 23],
    ["Africa/Cairo", "2026-04-24T10:00Z", 23],
    ["Pacific/Apia", "2011-12-31T00:00Z", 24],
    ["Asia/Kolkata", "2026-03-08T06:00Z", 24],
  ];
  for (const [timezone, noon, hours] of cases) {
    const windows = tumbling("1d", { timezone });
    const start = windows.paneStart(at(noon));
    assert.equal((windows.windowEnd(start) - start) / HOUR, hours, timezone);
  }
  assert.deepEqual(days("1d", "America/New_York", "2026-03-07T12:00Z", 4), [
    "2026-03-07T00:00-05:00",
    "2026-03-08T00:00-05:00",
    "2026-03-09T00:00-04:00",
    "2026-03-10T00:00-04:00",
  ]);
});

Deno.test("Z3: a day without midnight starts at its first instant, and a day that was left out has no window", () => {
  assert.deepEqual(days("1d", "America/Sao_Paulo", "2017-10-14T12:00Z", 3), [
    "2017-10-14T00:00-03:00",
    "2017-10-15T01:00-02:00",
    "2017-10-16T00:00-02:00",
  ]);
  assert.deepEqual(days("1d", "Pacific/Apia", "2011-12-29T12:00-10:00", 3), [
    "2011-12-29T00:00-10:00",
    "2011-12-31T00:00+14:00",
    "2012-01-01T00:00+14:00",
  ]);
});

Deno.test("Z4: an offset is local time, so a day from 09:00 stays one in summer, half-hour zones too", () => {
  assert.deepEqual(days("1d", "America/New_York", "2026-03-07T15:00Z", 3, { offset: "9h" }), [
    "2026-03-07T09:00-05:00",
    "2026-03-08T09:00-04:00",
    "2026-03-09T09:00-04:00",
  ]);
  assert.deepEqual(days("1d", "Asia/Kolkata", "2026-03-07T15:00Z", 2, { offset: "9h" }), [
    "2026-03-07T09:00+05:30",
    "2026-03-08T09:00+05:30",
  ]);
  // 02:30 is skipped on that day: the window starts that much later
  assert.deepEqual(days("1d", "America/New_York", "2026-03-07T15:00Z", 3, { offset: "2h30m" }), [
    "2026-03-07T02:30-05:00",
    "2026-03-08T03:30-04:00",
    "2026-03-09T02:30-04:00",
  ]);
});

Deno.test("Z6: windows below a day are fixed lengths on the axis of UTC, whatever the zone does", () => {
  for (const size of ["1h", "6h", "24h", "90m", 3_600_000]) {
    const plain = tumbling(size), zoned = tumbling(size, { timezone: "America/New_York" });
    assert.equal(zoned.timezone, "America/New_York");
    for (let t = at("2026-11-01T00:00Z"); t < at("2026-11-02T00:00Z"); t += 10 * 60_000) {
      assert.equal(zoned.paneStart(t), plain.paneStart(t));
    }
  }
  const hours = tumbling("1h", { timezone: "America/New_York" });
  const first = hours.paneStart(at("2026-11-01T05:30Z")), second = hours.paneStart(at("2026-11-01T06:30Z"));
  assert.equal(formatInstant(first, "America/New_York"), "2026-11-01T01:00:00.000-04:00");
  assert.equal(formatInstant(second, "America/New_York"), "2026-11-01T01:00:00.000-05:00");
});

Deno.test("Z7: without a zone the calendar is UTC's, whatever the machine's zone is", () => {
  const before = Deno.env.get("TZ");
  try {
    for (const machine of ["America/New_York", "Asia/Kolkata"]) {
      Deno.env.set("TZ", machine);
      assert.notEqual(new Date(0).getTimezoneOffset(), 0, "the machine's zone has changed");
      const t = at("2026-03-08T03:00:00Z");
      assert.equal(tumbling("1d").paneStart(t), at("2026-03-08T00:00:00Z"));
      assert.equal(tumbling("1w").paneStart(t), at("2026-03-02T00:00:00Z"));
      assert.equal(tumbling("1mo").paneStart(t), at("2026-03-01T00:00:00Z"));
    }
  } finally {
    if (before === undefined) Deno.env.delete("TZ");
    else Deno.env.set("TZ", before);
  }
});

Deno.test("several units count from 1970-01-01, weeks from Monday 1969-12-29, with and without a zone", () => {
  for (const timezone of [undefined, "UTC"]) {
    const options = timezone === undefined ? {} : { timezone };
    assert.equal(tumbling("2d", options).paneStart(DAY), 0);
    assert.equal(tumbling("7d", options).paneStart(6 * DAY), 0);
    assert.equal(tumbling("1w", options).paneStart(0), at("1969-12-29T00:00Z"));
    assert.equal(tumbling("2w", options).paneStart(at("1970-01-05T00:00Z")), at("1969-12-29T00:00Z"));
    assert.equal(tumbling("2w", options).paneStart(-4 * DAY), at("1969-12-15T00:00Z"));
    assert.equal(tumbling("2mo", options).paneStart(at("1970-02-10T00:00Z")), 0);
    assert.equal(tumbling("5mo", options).paneStart(-1), at("1969-08-01T00:00Z"));
  }
  const berlin = tumbling("2w", { timezone: "Europe/Berlin" });
  assert.equal(berlin.paneStart(at("1970-01-05T00:00Z")), at("1969-12-28T23:00Z"));
  // a week that slides by days, days that slide by weeks
  assert.equal(windowsOf(sliding("1w", "1d"), 0).length, 7);
  assert.deepEqual(windowsOf(sliding("10d", "1w", { timezone: "Europe/Berlin" }), at("2026-03-25T12:00Z")), [
    [at("2026-03-15T23:00Z"), at("2026-03-25T23:00Z")],
    [at("2026-03-22T23:00Z"), at("2026-04-01T22:00Z")],
  ]);
});

Deno.test("calendar windows hold at both ends of time", () => {
  for (const timezone of ["Europe/Berlin", "America/New_York", "UTC"]) {
    for (const size of ["1d", "1w", "1mo"]) {
      const windows = tumbling(size, { timezone });
      for (const t of [8.64e15, -8.64e15, 8.64e15 - 1]) {
        const start = windows.paneStart(t);
        assert.ok(start <= t && t < windows.paneEnd(start), `${size} ${timezone} ${t}`);
        assert.equal(windows.paneStart(start), start);
      }
    }
  }
});

Deno.test("a window that cannot be is refused with the reason", () => {
  const cases: [() => unknown, RegExp][] = [
    [() => tumbling(0), /size must be longer than zero/],
    [() => tumbling("-5m"), /size must be longer than zero, found -5m/],
    [() => tumbling("0d"), /longer than zero/],
    [() => tumbling("five"), /size: "five" is not a duration/],
    [() => tumbling("1.5ms"), /whole milliseconds/],
    [() => tumbling(NaN), /not a duration/],
    [() => tumbling("4000000d"), /3,000 years/],
    [() => tumbling(1e15), /3,000 years/],
    [() => tumbling("1d", { timezone: "Nope/Zone" }), /timezone: "Nope\/Zone" is not a time zone/],
    [() => tumbling("5m", { timezone: "" }), /"" is not a time zone/],
    [() => tumbling("1d", { offset: "x" }), /offset: "x"/],
    [() => tumbling("1d12h", { timezone: "Europe/Berlin" }), /1d12h is neither/],
    [() => sliding("1m", "2m"), /slide 2m is longer than size 1m/],
    [() => sliding("1d", "2d", { timezone: "Europe/Berlin" }), /slide 2d is longer than size 1d/],
    [() => sliding("1d", "6h", { timezone: "Europe/Berlin" }), /size 1d and slide 6h are not of one kind/],
    [() => sliding("48h", "1d", { timezone: "Europe/Berlin" }), /not of one kind/],
    [() => sliding("1mo", "1d"), /size 1mo and slide 1d are not of one kind/],
    [() => sliding("1m", 0), /slide must be longer than zero/],
    [() => session(0), /gap must be longer than zero/],
    [() => session("x"), /gap: "x"/],
    [() => session("1m", { timezone: "Nope/Zone" }), /Nope/],
    [() => count(0), /size of a count window/],
    [() => count(1.5), /whole number of records/],
    [() => count(3, 0), /slide of a count window/],
    [() => count(3, 4), /slide 4 is longer than size 3/],
  ];
  for (const [build, message] of cases) {
    assert.throws(build, { code: "invalid_window", message }, String(build));
  }
});

Deno.test("windows say what they are", () => {
  const described = [
    tumbling("5m"),
    tumbling("1d", { timezone: "Europe/Berlin", offset: "6h" }),
    sliding("10s", "2s"),
    session("30s"),
    count(100),
    count(100, 10),
    global(),
  ].map(({ description }) => description);
  assert.deepEqual(described, [
    "tumbling 5m",
    "tumbling 1d in Europe/Berlin, offset 6h",
    "sliding 10s every 2s",
    "session with a gap of 30s",
    "every 100 records",
    "the last 100 records, every 10",
    "global",
  ]);
  assert.deepEqual(
    sliding("1d", "6h").single,
    false,
    "without a zone a day is 24 hours, and may slide by hours",
  );
});
