import assert from "node:assert/strict";
import fc from "fast-check";
import { formatInstant, InstantFormat } from "./format.ts";

const ZONES = [
  "America/New_York",
  "Asia/Kolkata",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "America/St_Johns",
  "+05:30",
  "UTC",
];

Deno.test("UTC texts are those of Date, from the first instant to the last", () => {
  fc.assert(fc.property(fc.integer({ min: -8.64e15, max: 8.64e15 }), (instant) => {
    assert.equal(formatInstant(instant), new Date(instant).toISOString());
  }));
  for (const instant of [0, -1, 8.64e15, -8.64e15, 59_999, 60_000]) {
    assert.equal(formatInstant(instant), new Date(instant).toISOString());
  }
  assert.equal(formatInstant(1.9), "1970-01-01T00:00:00.001Z");
});

Deno.test("texts in a zone are those of Temporal, whatever was written before", () => {
  const times = fc.array(fc.integer({ min: Date.UTC(1973), max: Date.UTC(2100) }), { minLength: 1 });
  const near = fc.array(
    fc.integer({ min: -7_200_000, max: 7_200_000 }).map((by) => Date.UTC(2026, 2, 8, 7) + by),
    { minLength: 1 },
  );
  fc.assert(fc.property(fc.constantFrom(...ZONES), fc.oneof(times, near), (zone, instants) => {
    const format = new InstantFormat(zone);
    for (const instant of instants) {
      const expected = Temporal.Instant.fromEpochMilliseconds(instant)
        .toString({ timeZone: zone, fractionalSecondDigits: 3 });
      assert.equal(format.format(instant), expected);
      assert.equal(formatInstant(instant, zone), expected);
    }
  }));
});

Deno.test("F1: a text reads back as its instant, also where a zone was some seconds off, and at changes within a minute", () => {
  const early = fc.integer({ min: Date.UTC(1840, 0, 1), max: Date.UTC(1975, 0, 1) });
  const change = Date.parse("1972-01-07T00:44:30Z"); // Monrovia gives up its 44 minutes and 30 seconds
  const near = fc.integer({ min: -120_000, max: 120_000 }).map((by) => change + by);
  const zones = fc.constantFrom("America/New_York", "Europe/Amsterdam", "Africa/Monrovia", "Asia/Manila");
  fc.assert(fc.property(zones, fc.array(fc.oneof(early, near), { minLength: 1 }), (zone, instants) => {
    for (const instant of instants) {
      const text = formatInstant(instant, zone);
      assert.equal(Date.parse(text), instant);
      assert.equal(text, new InstantFormat(zone).format(instant), "whatever was written before");
    }
  }));
});

Deno.test("an offset that changes within a minute is shown on its own side of the change", () => {
  const change = Date.parse("1972-01-07T00:44:30Z");
  const format = new InstantFormat("Africa/Monrovia");
  assert.equal(format.format(change), "1972-01-07T00:44:30.000+00:00");
  assert.equal(format.format(change - 1), "1972-01-07T00:00:29.999-00:44");
  assert.equal(format.format(change), "1972-01-07T00:44:30.000+00:00");
});

Deno.test("examples of a spring day in New York", () => {
  assert.equal(formatInstant(Date.UTC(2026, 2, 8, 5), "America/New_York"), "2026-03-08T00:00:00.000-05:00");
  assert.equal(formatInstant(Date.UTC(2026, 2, 9, 4), "America/New_York"), "2026-03-09T00:00:00.000-04:00");
  assert.equal(formatInstant(Date.UTC(2026, 2, 8, 5)), "2026-03-08T05:00:00.000Z");
  assert.equal(formatInstant(0, "UTC"), "1970-01-01T00:00:00.000+00:00");
});

Deno.test("what is no instant is refused", () => {
  for (const value of [NaN, Infinity, -Infinity, 8.64e15 + 2]) {
    assert.throws(() => formatInstant(value), { code: "bad_timestamp" });
  }
  assert.throws(() => formatInstant(0, "Nope/Zone"), { code: "unknown_timezone" });
});
