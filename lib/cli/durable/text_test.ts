import assert from "node:assert/strict";
import { ageText, bytesText, plain, removedText, tableText, timeText, tookText, valueText } from "./text.ts";

Deno.test("sizes, ages and durations in their largest unit", () => {
  const sizes = [0, 999, 1000, 1249, 9949, 9950, 36_400, 999_499, 999_500, 1_500_000, 2.4e9, 5e15];
  assert.deepEqual(sizes.map(bytesText), [
    ..."0 B|999 B|1.0 kB|1.2 kB|9.9 kB|10 kB|36 kB|999 kB|1.0 MB|1.5 MB|2.4 GB|5000 TB".split("|"),
  ]);
  const ages = [-1, 0, 999, 59_999, 60_000, 3_599_999, 3_600_000, 86_399_999, 86_400_000 * 40];
  assert.deepEqual(ages.map(ageText), [
    ..."in the future|just now|just now|59 s ago|1 min ago|59 min ago|1 h ago|23 h ago|40 d ago".split("|"),
  ]);
  assert.deepEqual([0.4, 999.4, 999.6, 59_949, 59_950, 65_000].map(tookText), [
    ..."0 ms|999 ms|1.0 s|59.9 s|1m|1m5s".split("|"),
  ]);
  assert.deepEqual([0, 1_714_564_803_123, 9e15].map(timeText), [
    ..."1970-01-01T00:00:00Z|2024-05-01T12:00:03Z|9000000000000000".split("|"),
  ]);
});

Deno.test("tables: columns stand under each other, and one in which nothing stands is left out", () => {
  const columns = [{ title: "n", align: "right" }, { title: "nothing" }, { title: "name" }] as const;
  assert.equal(tableText(columns, [["1", "", "a"], ["100", "", ""]]), "  n  name\n  1  a\n100\n");
});

Deno.test("what was removed", () => {
  assert.equal(removedText(["a"], 0), "removed a\n");
  assert.equal(removedText(["a"], 1), "removed a, and 1 run of pages that only it needed\n");
  assert.equal(removedText(["a", "b"], 2), "removed a, b, and 2 runs of pages that only they needed\n");
});

Deno.test("values: everything that can be stored is JSON", () => {
  const value = {
    map: new Map<unknown, unknown>([["a", 1], ["b", new Set([2n ** 60n])]]),
    pairs: new Map<unknown, unknown>([[1, "x"], [[2], undefined]]),
    numbers: [NaN, Infinity, -Infinity, -0, 1.5],
    bytes: new Uint8Array([1, 2, 3]),
    view: new DataView(new Uint8Array([9, 1, 2]).buffer, 1),
    floats: new Float32Array([1.5]),
    date: new Date(0),
    text: "ü",
    nothing: undefined,
  };
  assert.equal(
    valueText(value).length,
    120,
  );
  assert.ok(valueText(value).endsWith("…"));
  assert.deepEqual(plain(value), {
    map: { a: 1, b: [2n ** 60n] },
    pairs: [[1, "x"], [[2], undefined]],
    numbers: ["NaN", "Infinity", "-Infinity", -0, 1.5],
    bytes: "AQID",
    view: "AQI=",
    floats: [1.5],
    date: new Date(0),
    text: "ü",
    nothing: undefined,
  });
  assert.equal(valueText(new Map([["big", 2n ** 60n]])), `{"big":1152921504606846976}`);
});
