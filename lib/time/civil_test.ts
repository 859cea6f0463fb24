import assert from "node:assert/strict";
import fc from "fast-check";
import { civilDate, DAY, dayNumber, daysInMonth, isLeapYear } from "./civil.ts";

Deno.test("days and dates agree with Date from its first day to its last", () => {
  fc.assert(
    fc.property(fc.integer({ min: -100_000_000, max: 100_000_000 }), (day) => {
      const date = new Date(day * DAY);
      const expected = { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() };
      assert.deepEqual(civilDate(day), expected);
      assert.equal(dayNumber(expected.year, expected.month, expected.day), day);
    }),
    { numRuns: 2000 },
  );
});

Deno.test("months have the days that Date gives them", () => {
  for (const year of [-400, -4, -1, 0, 1900, 1999, 2000, 2023, 2024, 2100, 9999]) {
    for (let month = 1; month <= 12; month++) {
      const next = new Date(Date.UTC(2000, month, 0));
      next.setUTCFullYear(year, month, 0);
      assert.equal(daysInMonth(year, month), next.getUTCDate(), `${year}-${month}`);
    }
    assert.equal(isLeapYear(year), daysInMonth(year, 2) === 29);
  }
});
