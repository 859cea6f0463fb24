import assert from "node:assert/strict";
import { buildInput, eventAt, type Inputs, mix, type Workload, WORKLOADS } from "./data.ts";
import { expectedSums } from "./expected.ts";
import { runLoop } from "./loops.ts";
import { differences } from "./tally.ts";

Deno.test("mix gives the published test values", () => {
  assert.equal(mix(1, 0), 1_364_076_727);
  assert.equal(mix(0, 1), 301_794_027);
  assert.equal(mix(12345, 2), 4_116_061_953);
});

Deno.test("events are exactly 150 bytes and say what is published", () => {
  const published: readonly (readonly [number, string])[] = [
    [0, '{"id":0,"customer":"c94027","amount":231.75,"status":"completed","ts":1760000000665,"note":"'],
    [1, '{"id":1,"customer":"c48889","amount":509,"status":"cancelled","ts":1760000000276,"note":"'],
    [
      2_999_999,
      '{"id":2999999,"customer":"c76852","amount":915,"status":"pending","ts":1760000100821,"note":"',
    ],
  ];
  for (const [i, head] of published) {
    const text = eventAt(i);
    assert.equal(new TextEncoder().encode(text).length, 150);
    assert.equal(text, `${head}${"x".repeat(148 - head.length)}"}`);
  }
  const [first] = buildInput("W-c", 1);
  assert.equal(new TextDecoder().decode(first), eventAt(0));
});

Deno.test("keys are nine digits, and every record has a text of its own", () => {
  const visits = buildInput("W-d", 1000);
  for (const { key } of visits) assert.match(key, /^key-00000\d{4}$/);
});

for (const name of WORKLOADS) {
  for (const records of [1000, 20_000]) {
    Deno.test(`the loop of ${name} gives the expected sums for ${records} records`, () => {
      assert.deepEqual(problemsOf(name, records), []);
    });
  }
}

Deno.test("a sum that differs, or is missing, is named", () => {
  assert.deepEqual(differences({ rows: 1 }, { rows: 2, keys: 3 }), [
    "rows is 1, expected 2",
    "keys is missing, expected 3",
  ]);
});

function problemsOf<W extends Workload>(name: W, records: number): string[] {
  const want = expectedSums(name, records);
  assert.ok(want, `nobody computed ${name} for ${records} records`);
  const input: Inputs[W] = buildInput(name, records);
  return differences(runLoop(name, input), want);
}
