import assert from "node:assert/strict";
import fc from "fast-check";
import { batchOf } from "../../lib/testing/sink_contract.ts";
import { DatabaseError } from "./database_error.ts";
import { NULL } from "./literals.ts";
import { Rows } from "./rows.ts";
import { writeRows } from "./write_rows.ts";

function rowsOf(columns: readonly string[][]): Rows {
  const rows = Rows.empty(columns.length), batch = batchOf(columns[0]!);
  columns[0]!.forEach((_, i) => rows.add(columns.map((column) => column[i]!), batch, i));
  return rows;
}

/** What one by one would leave behind: rows by key, the last written last. */
function oneByOne(keys: readonly string[], firsts: readonly string[], lasts: readonly string[]): string[][] {
  const table = new Map<string, string[]>();
  keys.forEach((key, i) => {
    const name = key === NULL ? `${NULL}${i}` : key, there = table.get(name);
    table.delete(name);
    table.set(name, [key, there?.[1] ?? firsts[i]!, lasts[i]!]);
  });
  return [...table.values()];
}

Deno.test("W2: rows of one key become what they would be if they were written one by one", () => {
  const element = fc.constantFrom('"a"', '"b"', '"c\n"', "1", NULL);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(element, fc.nat(9), fc.nat(9)), { minLength: 1 }),
      fc.nat(5),
      (made, from) => {
        const keys = made.map(([key]) => key),
          firsts = made.map(([, v]) => `${v}`),
          lasts = made.map(([, , v]) => `${v}`);
        const start = Math.min(from, made.length - 1);
        const literals = rowsOf([keys, firsts, lasts]).literals(start, made.length, {
          keys: [0],
          firsts: new Set([1]),
        });
        const expected = oneByOne(keys.slice(start), firsts.slice(start), lasts.slice(start));
        assert.deepEqual(literals, [0, 1, 2].map((i) => `{${expected.map((row) => row[i]).join(",")}}`));
      },
    ),
  );
});

Deno.test("W2: keys of several columns are equal only where all are", () => {
  const columns = [['"a\n"', '"a"', '"a\n"', NULL, NULL], ['"b"', '"\nb"', '"b"', "1", "1"], [
    "1",
    "2",
    "3",
    "4",
    "5",
  ]];
  assert.deepEqual(rowsOf(columns).literals(0, 5, { keys: [0, 1], firsts: new Set() }), [
    `{"a","a\n",${NULL},${NULL}}`,
    '{"\nb","b",1,1}',
    "{2,3,4,5}",
  ]);
});

Deno.test("rows without their records, and as text, are the same rows", () => {
  const rows = rowsOf([["1", "2", "3"], ['"a"', NULL, '"c"']]);
  assert.deepEqual(rows.record(1)?.index, 1);
  const settled = rows.settle(new Set([1]));
  assert.equal(settled.record(1), undefined);
  const read = Rows.fromText(settled.toText());
  assert.deepEqual(read.literals(0, read.length, undefined), ["{1,3}", '{"a","c"}']);
  assert.equal(read.size, 8);
});

Deno.test("B1: whatever rows are bad, they are found, and the others are written once, in order", async () => {
  await fc.assert(fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 40 }), async (isBad) => {
    const rows = rowsOf([isBad.map((_, i) => `${i}`)]), written: number[] = [], refused: number[] = [];
    let attempts = 0;
    const attempt = (from: number, to: number) => {
      attempts++;
      const part = isBad.slice(from, to);
      if (part.includes(true)) {
        return Promise.reject(new DatabaseError("constraint_violation", "bad", { kind: "row" }));
      }
      part.forEach((_, i) => written.push(from + i));
      return Promise.resolve();
    };
    await writeRows(rows, attempt, (row) => void refused.push(row));
    const all = isBad.map((_, i) => i), bad = all.filter((i) => isBad[i]);
    assert.deepEqual(refused, bad);
    assert.deepEqual(written, all.filter((i) => !isBad[i]));
    assert.equal(rows.left, 0);
    assert.ok(attempts <= 1 + 2 * bad.length * Math.ceil(Math.log2(isBad.length || 1) + 1));
  }));
});

Deno.test("B2: what goes wrong otherwise ends it, and a further try goes on behind what was done", async () => {
  const rows = rowsOf([["0", "1", "2", "3"]]), seen: string[] = [], refused: number[] = [];
  let isDown = true;
  const attempt = (from: number, to: number) => {
    seen.push(`${from}-${to}`);
    if (to - from > 1 || from === 1) {
      return Promise.reject(new DatabaseError("row_refused", "bad", { kind: "row" }));
    }
    if (from === 2 && isDown) return Promise.reject(new DatabaseError("x", "down", { kind: "transient" }));
    return Promise.resolve();
  };
  const refuse = (row: number) => void refused.push(row);
  await assert.rejects(writeRows(rows, attempt, refuse), /down/);
  assert.equal(rows.done, 2);
  isDown = false;
  await writeRows(rows, attempt, refuse);
  assert.deepEqual(seen, ["0-4", "0-2", "0-1", "1-2", "2-4", "2-3", "2-4", "2-3", "3-4"]);
  assert.deepEqual(refused, [1]);
});
