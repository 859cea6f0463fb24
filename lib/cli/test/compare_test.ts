import assert from "node:assert/strict";
import fc from "fast-check";
import { Decimal, parseJson, stringifyJson } from "../../json.ts";
import { canonicalText } from "../../same_json.ts";
import { firstOutOfOrder, sameJson, sameLetter, unmatchedRows } from "./compare.ts";

Deno.test("E1: numbers are compared by value, objects in any order of their keys", () => {
  assert.ok(sameJson({ a: 1, b: [1, { c: null }] }, parseJson('{"b":[1.0,{"c":null}],"a":1e0}')));
  assert.ok(sameJson(new Decimal("0.10000000000000000001"), parseJson("1.0000000000000000001e-1")));
  assert.ok(sameJson(12345678901234567890n, parseJson("12345678901234567890")));
  assert.ok(sameJson(-0, 0));
  assert.ok(!sameJson(12345678901234567890n, parseJson("12345678901234567891")));
  assert.ok(!sameJson(1, "1"));
  assert.ok(!sameJson([1, 2], [2, 1]));
  assert.ok(!sameJson({ a: null }, {}));
  assert.ok(!sameJson([], {}));
  assert.ok(!sameJson(parseJson('{"__proto__":1}'), {}));
});

Deno.test("E1: a value and what its JSON says are the same, two values with different JSON are not", () => {
  fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
    assert.ok(sameJson(a, parseJson(stringifyJson(a))));
    if (canonicalText(a) === canonicalText(b)) {
      assert.deepEqual(parseJson(stringifyJson(sorted(a))), parseJson(stringifyJson(sorted(b))));
    }
  }));
});

/** Keys in order, and no -0. */
function sorted(value: unknown): unknown {
  if (typeof value === "number") return value + 0;
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([key, part]) => [key, sorted(part)]),
  );
}

Deno.test("E2: dead letters are compared by the fields given, their value also as JSON", () => {
  const letter = { operator: "sum", error: { code: "x", message: "m" }, value: '{"a":1,"b":2}', offset: 3 };
  assert.ok(sameLetter({}, letter));
  assert.ok(sameLetter({ operator: "sum", error: { code: "x" } }, letter));
  assert.ok(sameLetter({ value: '{"a":1,"b":2}' }, letter));
  assert.ok(sameLetter({ value: { b: 2, a: 1 } }, letter));
  assert.ok(!sameLetter({ value: { a: 1 } }, letter));
  assert.ok(!sameLetter({ value: { a: 1 } }, { value: "no json" }));
  assert.ok(!sameLetter({ error: { code: "y" } }, letter));
  assert.ok(!sameLetter({ key: null }, letter));
  assert.ok(!sameLetter("sum", letter));
});

Deno.test("E3: equal rows are matched one to one", () => {
  assert.deepEqual(unmatchedRows([1, 2, 2, 3], [2, 4, 1, 1, 2], sameJson), {
    missing: [3],
    unexpected: [1, 3],
  });
  assert.deepEqual(unmatchedRows([], [], sameJson), { missing: [], unexpected: [] });
});

Deno.test("E3: a letter that fits several finds the place that leaves most of the others one", () => {
  const any = {}, a = { operator: "a" }, b = { operator: "b" };
  assert.deepEqual(unmatchedRows([any, a, any], [a, b, b], sameLetter), { missing: [], unexpected: [] });
  assert.deepEqual(unmatchedRows([a, a, any], [a, b], sameLetter), { missing: [1], unexpected: [] });
});

Deno.test("order is told by the first row out of place", () => {
  assert.equal(firstOutOfOrder([1, 2, 3], [1, 3, 2], sameJson), 1);
  assert.equal(firstOutOfOrder([1, 2], [1, 2], sameJson), undefined);
});
