/**
 * When schedules are due, against the calendar of `Temporal`.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { codeOf } from "../../errors.ts";
import { ruleOf } from "./expression.ts";

/** The first times of an expression. */
function times(expression: string, from: string, count: number, timezone?: string): string[] {
  const rule = ruleOf(expression, timezone), found: string[] = [];
  for (let t = rule.next(Date.parse(from)); t !== undefined && found.length < count; t = rule.next(t)) {
    found.push(new Date(t).toISOString().replace(".000Z", "Z"));
  }
  return found;
}

Deno.test("six fields, five, names, steps, question marks", () => {
  const from = "2026-01-01T00:00:00Z"; // a Thursday
  assert.deepEqual(times("30 15 3 * * *", from, 2), ["2026-01-01T03:15:30Z", "2026-01-02T03:15:30Z"]);
  assert.deepEqual(times("15 3 * * *", from, 2), ["2026-01-01T03:15:00Z", "2026-01-02T03:15:00Z"]);
  assert.deepEqual(times("0 0 12 ? FEB MON-fri/2", from, 3), [
    "2026-02-02T12:00:00Z",
    "2026-02-04T12:00:00Z",
    "2026-02-06T12:00:00Z",
  ]);
  assert.deepEqual(times("*/20 59 23 31 12 *", from, 3), [
    "2026-12-31T23:59:00Z",
    "2026-12-31T23:59:20Z",
    "2026-12-31T23:59:40Z",
  ]);
  // Both kinds of days restricted: either suffices.
  assert.deepEqual(times("0 0 13 * FRI", from, 3), [
    "2026-01-02T00:00:00Z",
    "2026-01-09T00:00:00Z",
    "2026-01-13T00:00:00Z",
  ]);
  assert.deepEqual(times("0 0 29 2 *", from, 2), ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]);
});

Deno.test("names for times", () => {
  const from = "2026-03-31T10:20:30Z"; // a Tuesday
  const expected = {
    "@yearly": "2027-01-01T00:00:00Z",
    "@annually": "2027-01-01T00:00:00Z",
    "@monthly": "2026-04-01T00:00:00Z",
    "@weekly": "2026-04-05T00:00:00Z",
    "@daily": "2026-04-01T00:00:00Z",
    "@midnight": "2026-04-01T00:00:00Z",
    "@Hourly": "2026-03-31T11:00:00Z",
  };
  for (const [name, first] of Object.entries(expected)) assert.deepEqual(times(name, from, 1), [first], name);
});

Deno.test("every, at", () => {
  assert.deepEqual(times("@every 90s", "2026-01-01T00:01:30Z", 2), [
    "2026-01-01T00:03:00Z",
    "2026-01-01T00:04:30Z",
  ]);
  assert.deepEqual(times("@every 1.5s", "2026-01-01T00:00:00Z", 2), [
    "2026-01-01T00:00:01.500Z",
    "2026-01-01T00:00:03Z",
  ]);
  const at = "@at 2026-06-01T12:00:00+02:00";
  assert.deepEqual(times(at, "2026-01-01T00:00:00Z", 5), ["2026-06-01T10:00:00Z"]);
  assert.deepEqual(times(at, "2026-06-01T10:00:00Z", 5), []);
  // Without an offset it is the local time of the schedule's zone.
  assert.deepEqual(times("@at 2026-06-01T12:00:00", "2026-01-01T00:00:00Z", 1, "Asia/Tokyo"), [
    "2026-06-01T03:00:00Z",
  ]);
});

Deno.test("E3: clock changes", () => {
  const spring = "2026-03-28T12:00:00Z", autumn = "2026-10-24T12:00:00Z", berlin = "Europe/Berlin";
  assert.deepEqual(times("0 30 2 * * *", spring, 2, berlin), [
    "2026-03-29T01:00:00Z",
    "2026-03-30T00:30:00Z",
  ]);
  assert.deepEqual(times("0 30 2 * * *", autumn, 2, berlin), [
    "2026-10-25T00:30:00Z",
    "2026-10-26T01:30:00Z",
  ]);
  // What is no fixed time of day goes by the clock: 02:30 is not, and is twice.
  assert.deepEqual(times("0 30 * * * *", "2026-03-29T00:00:00Z", 3, berlin), [
    "2026-03-29T00:30:00Z",
    "2026-03-29T01:30:00Z",
    "2026-03-29T02:30:00Z",
  ]);
  assert.deepEqual(times("0 30 2,4 * * *", autumn, 4, berlin), [
    "2026-10-25T00:30:00Z",
    "2026-10-25T01:30:00Z",
    "2026-10-25T03:30:00Z",
    "2026-10-26T01:30:00Z",
  ]);
  // Midnight does not exist on this day in Beirut.
  assert.deepEqual(times("@daily", "2026-03-28T12:00:00Z", 1, "Asia/Beirut"), ["2026-03-28T22:00:00Z"]);
});

Deno.test("E2: a time that never comes", () => {
  assert.deepEqual(times("0 0 0 30 2 *", "2026-01-01T00:00:00Z", 1), []);
});

Deno.test("what is no time", () => {
  for (
    const text of [
      "",
      "* * * *",
      "* * * * * * 2027",
      "60 * * * * *",
      "* * 24 * * *",
      "*/0 * * * *",
      "5-1 * * * *",
      "a b c d e",
      "2026-01-01T00:00:00",
      "@reboot",
      "@daily at noon",
      "@every",
      "@every 500ms",
      "@every 1000.5ms",
      "@every soon",
      "@at tomorrow",
      "@at",
      "0 0 ?,1 * *",
    ]
  ) {
    assert.throws(() => ruleOf(text), (error) => codeOf(error) === "invalid_cron", text);
  }
  assert.throws(() => ruleOf("@daily", "Europe/Atlantis"), (error) => codeOf(error) === "unknown_timezone");
});

Deno.test("F50 E2, any expression: the next time is the first later one whose fields fit", () => {
  const field = (least: number, most: number) =>
    fc.uniqueArray(fc.integer({ min: least, max: most }), { minLength: 1, maxLength: 4 })
      .chain((values) => fc.constantFrom<readonly number[] | undefined>(values, values, undefined));
  const zones = fc.constantFrom("UTC", "Asia/Kolkata", "Asia/Tokyo", "America/Bogota"); // whose clocks do not change
  const start = Date.UTC(2026, 0, 1), end = Date.UTC(2029, 0, 1);
  fc.assert(
    fc.property(
      field(0, 59),
      field(0, 23),
      field(1, 31),
      field(1, 12),
      field(0, 6),
      zones,
      fc.integer({ min: start, max: end }),
      (minutes, hours, days, months, weekdays, zone, after) => {
        const text = (values: readonly number[] | undefined): string => values?.join() ?? "*";
        const rule = ruleOf([minutes, hours, days, months, weekdays].map(text).join(" "), zone);
        const fits = (t: Temporal.ZonedDateTime): boolean => {
          const has = (values: readonly number[] | undefined, value: number) =>
            values?.includes(value) ?? true;
          const day = days?.includes(t.day), weekday = weekdays?.includes(t.dayOfWeek % 7);
          const isDay = day === undefined ? weekday ?? true : weekday === undefined ? day : day || weekday;
          return has(minutes, t.minute) && has(hours, t.hour) && has(months, t.month) && isDay;
        };
        const next = rule.next(after);
        // Every minute on the way there, or of the next two days.
        const first = Math.floor(after / 60_000) * 60_000 + 60_000;
        const last = Math.min(next ?? Infinity, after + 2 * 86_400_000);
        for (let t = first; t <= last; t += 60_000) {
          const isIt = fits(Temporal.Instant.fromEpochMilliseconds(t).toZonedDateTimeISO(zone));
          assert.equal(isIt, t === next, new Date(t).toISOString());
        }
        if (next === undefined) return;
        assert.ok(next > after);
        assert.ok(fits(Temporal.Instant.fromEpochMilliseconds(next).toZonedDateTimeISO(zone)));
      },
    ),
    { numRuns: 150 },
  );
});
