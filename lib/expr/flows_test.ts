import assert from "node:assert/strict";
import { MailerError } from "../errors.ts";
import { compileExpression, type Expression, ExpressionError } from "./mod.ts";

const compile = (text: string): Expression =>
  compileExpression(text, {
    dialect: "flows",
    variables: ["input", "results", "visits", "counters", "signals", "item"],
    absent: { visits: 0, counters: 0 },
  });
const ACTIVATION = {
  input: { amount: 120, name: "Ada", tags: ["new", "vip"], none: null, matches: 1, and: 2 },
  results: { pay: { receipt: "r1" } },
  visits: { ask: 2 },
  counters: {},
  signals: {},
};
const evaluate = (text: string): unknown => compile(text).evaluate(ACTIVATION);

Deno.test("packtrail's spellings", () => {
  const table: readonly (readonly [string, unknown])[] = [
    ["input.amount > 100 and input.name == 'Ada'", true],
    ["input.amount > 500 or not (input.name == 'Ada')", false],
    ["not true or true", true],
    ["not not true", true],
    ["input.none == nil and signals.x == nil", true],
    ["'vip' in input.tags", true],
    ["'vip' not in input.tags", false],
    ["not ('vip' in input.tags)", false],
    ["1 not in [2, 3] and 'x' not in input", true],
    ["input.name matches '^A.a$'", true],
    ["input.name.matches('^b')", false],
    ["input.name contains 'd' and input.name startsWith 'A' and input.name endsWith \"a\"", true],
    ["not (input.name contains 'z') ? 'yes' : 1", "yes"],
    ["input.name contains 'z' ? 'yes' : 1", 1],
    ["len(input.tags) + len('héllo') + len({a: 1})", 8],
    ["input.tags[0] == `new`", true],
    ["input?.gone?.deeper", null],
    ["true?.5:1", 0.5],
    ["{turns: visits['ask'], \"said\": results.pay.receipt, (input.name): 1}", {
      turns: 2,
      said: "r1",
      Ada: 1,
    }],
    ["{nested: {deep: [1, {x: nil}]}}", { nested: { deep: [1, { x: null }] } }],
    ["!(input.amount < 100) && input.amount / 7 > 17", true],
    ["input.matches + input.and", 3],
    ["input.amount + 1", 121],
    ["7 / 2", 3.5],
  ];
  for (const [text, expected] of table) assert.deepEqual(evaluate(text), expected, text);
});

Deno.test("what is missing reads as null, at any depth", () => {
  for (
    const text of [
      "input.gone",
      "input.gone.deeper",
      "input.none.deeper",
      "input['gone']",
      "input.gone['x'].y[0]",
      "input.tags[7]",
      "input.tags[-1]",
      "input[nil]",
      "unknown",
      "unknown.member.of",
      "constructor",
      "input.constructor",
      "input.__proto__.x",
      "item",
    ]
  ) {
    if (text === "input.tags.length") {
      assert.throws(() => evaluate(text), /input.tags is list and has no field/);
    } else assert.equal(evaluate(text), null, text);
  }
  assert.equal(evaluate("has(input.gone.deeper) || has(unknown.x) || has(input.none.x)"), false);
  assert.equal(evaluate("has(input.name)"), true);
  assert.equal(evaluate("1 in input.gone || 'a' in unknown || nil in input"), false);
  assert.equal(evaluate("nil in [1, nil]"), true);
  assert.equal(evaluate("unknown != 1 && unknown == input.none"), true);
});

Deno.test("any other operator on null fails", () => {
  for (
    const text of [
      "input.gone + 1",
      "1 - unknown",
      "input.gone * 2",
      "input.gone < 1",
      "input.gone >= nil",
      "-input.gone",
      "!input.gone",
      "not input.gone",
      "input.gone and true",
      "input.gone ? 1 : 2",
      "input.gone matches 'a'",
      "input.gone contains 'a'",
      "'a' startsWith input.gone",
      "len(input.gone)",
      "input.gone.map(x, x)",
      "int(input.gone)",
    ]
  ) {
    assert.throws(
      () => evaluate(text),
      (error) =>
        error instanceof MailerError && error.code === "expression_failed" && /null/.test(error.message),
      text,
    );
  }
  assert.equal(evaluate("input.gone and false"), false);
  assert.equal(evaluate("input.gone or true"), true);
});

Deno.test("a variable can have its own reading of a missing member", () => {
  assert.equal(evaluate("visits.never >= 1"), false);
  assert.equal(evaluate("visits['never'] + visits.ask + counters.tokens"), 2);
  assert.equal(evaluate("counters[input.name] == 0"), true);
  assert.equal(evaluate("has(visits.never)"), false);
  assert.equal(evaluate("input.tags.map(visits, visits) == input.tags"), true);
  assert.equal(evaluate("[{}].map(visits, visits.x) == [nil]"), true);
});

Deno.test("names that are no variables are told", () => {
  const expression = compile("inptu.a == nil && input.b == nil");
  assert.deepEqual(expression.unknownNames, ["inptu"]);
  assert.deepEqual(expression.references, ["input"]);
});

Deno.test("members that are read by name are told, with their places", () => {
  const names = (text: string) =>
    compile(text).names.map(({ variable, name, offset }) => [variable, name, offset]);
  assert.deepEqual(names("results.pay.receipt == visits['ask']"), [["results", "pay", 8], [
    "visits",
    "ask",
    30,
  ]]);
  assert.deepEqual(names("has(results.pay) && inptu.a > 1"), [["results", "pay", 12], [
    undefined,
    "inptu",
    20,
  ]]);
  assert.deepEqual(names("(results . pay) + results[input.x]"), [["results", "pay", 11], ["input", "x", 32]]);
  assert.deepEqual(names("input.tags.map(results, results.x)"), [["input", "tags", 6]]);
  assert.deepEqual(names("len(input) > 1"), []);
});

Deno.test("unknown functions and bad grammar are mistakes here too", () => {
  for (
    const text of [
      "lenn(input)",
      "input.name.trimm()",
      "input.a +",
      "input matches",
      "1..3",
      "input | 1",
      "not",
      "and true",
    ]
  ) {
    assert.throws(() => compile(text), ExpressionError, text);
  }
});

Deno.test("the spellings of one dialect are not those of the other", () => {
  const streams = { dialect: "streams", variables: ["input", "nil"] } as const;
  for (
    const text of [
      "input.a and true",
      "not input.a",
      "1 not in [1]",
      "input.a matches 'x'",
      "input?.a",
      "len(input)",
      "`a`",
    ]
  ) {
    assert.throws(() => compileExpression(text, streams), ExpressionError, text);
  }
  assert.equal(compileExpression("nil", streams).evaluate({ nil: 3 }), 3);
  assert.deepEqual(compileExpression("{nil: 1}", streams).evaluate({ nil: "key" }), { key: 1 });
});
