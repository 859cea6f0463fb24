import assert from "node:assert/strict";
import type { Reducer } from "../definition/types.ts";
import { Decimal, parseExact, stringifyJson } from "../../json.ts";
import { reduce } from "./reducers.ts";

Deno.test("what a write meets, and what it comes to", () => {
  const table: readonly (readonly [Reducer, current: string, delta: string, result: string | RegExp])[] = [
    ["replace", "1", '{"a":1}', '{"a":1}'],
    ["replace", "1", "null", "null"],
    ["append", "[1]", "[2,3]", "[1,2,3]"],
    ["append", "[1]", "2", "[1,2]"],
    ["append", "[1]", '{"a":[1]}', '[1,{"a":[1]}]'],
    ["append", "[1]", "[[2]]", "[1,[2]]"],
    ["append", "[1]", "null", "[1,null]"],
    ["append", "null", "[]", "[]"],
    ["append", '"x"', "1", /there is "x"/],
    ["merge", '{"a":1,"b":2}', '{"b":3,"c":4}', '{"a":1,"b":3,"c":4}'],
    ["merge", "null", '{"__proto__":1}', '{"__proto__":1}'],
    ["merge", '{"a":{"x":1}}', '{"a":{"y":2}}', '{"a":{"y":2}}'],
    ["merge", "{}", "[1]", /takes an object, not \[1\]/],
    ["merge", "{}", "null", /takes an object, not null/],
    ["sum", "1", "2", "3"],
    ["sum", "null", "2.5", "2.5"],
    ["sum", "9007199254740991", "2", "9007199254740993"],
    ["sum", "9007199254740993", "-9007199254740992", "1"],
    ["sum", "0.1", "0.2", "0.30000000000000004"],
    ["sum", "1", '"2"', /takes a number, not "2"/],
    ["sum", "1", "null", /takes a number, not null/],
    ["sum", "1e308", "1e308", /beyond the range/],
  ];
  for (const [reducer, current, delta, result] of table) {
    const reduced = reduce({ reducer }, parseExact(current), parseExact(delta));
    const name = `${reducer} ${current} ${delta}`;
    if (typeof result === "string") {
      assert.ok("value" in reduced, name);
      assert.equal(stringifyJson(reduced.value), result, name);
    } else {
      assert.ok("problem" in reduced, name);
      assert.match(reduced.problem, result, name);
    }
  }
  const absent = reduce({ reducer: "sum" }, undefined, new Decimal("0.12345678901234567890"));
  assert.ok("value" in absent && absent.value === 0.12345678901234568);
});

Deno.test("a reducer changes nothing it was given", () => {
  const list = Object.freeze([1]), map = Object.freeze({ a: 1 });
  reduce({ reducer: "append" }, list, list);
  reduce({ reducer: "merge" }, map, { b: 2 });
  assert.deepEqual([list, map], [[1], { a: 1 }]);
});
