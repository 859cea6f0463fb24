import assert from "node:assert/strict";
import { MailerError } from "../errors.ts";
import { parseJson, stringifyJson } from "../json.ts";
import { compileExpression, type Expression, ExpressionError, type Kind } from "./mod.ts";

const VARIABLES: Readonly<Record<string, Kind>> = {
  value: "any",
  key: "any",
  source: "text",
  timestamp: "timestamp",
};
const compile = (text: string): Expression =>
  compileExpression(text, { dialect: "streams", variables: VARIABLES });
const evaluate = (text: string, value: unknown = {}): unknown => compile(text).evaluate({ value });

function mistake(text: string): ExpressionError {
  try {
    compile(text);
  } catch (error) {
    assert.ok(error instanceof ExpressionError, String(error));
    return error;
  }
  return assert.fail(`${text} compiled`);
}
const failing = (text: string, value: unknown = {}): string => {
  const expression = compile(text);
  try {
    expression.evaluate({ value });
  } catch (error) {
    assert.ok(error instanceof MailerError && error.code === "expression_failed", String(error));
    return error.message;
  }
  return assert.fail(`${text} did not fail`);
};

Deno.test("an expression says what it reads and what it gives", () => {
  const table: readonly (readonly [string, readonly string[], Kind])[] = [
    ["value.a >= 200", ["value"], "bool"],
    ["1 + 2", [], "int"],
    ["value.a + 1", ["value"], "number"],
    ["value.a", ["value"], "any"],
    ["key == source ? 'a' : value.b + 'c'", ["key", "source", "value"], "text"],
    ["source", ["source"], "text"],
    ["timestamp - duration('1h')", ["timestamp"], "timestamp"],
    ["[1].map(value, value)", [], "list"],
    ['{"a": key}', ["key"], "map"],
    ["!value.a", ["value"], "bool"],
    ["has(value.a) && value.a", ["value"], "bool"],
    ["7 / 2", [], "double"],
    ["value.a / 2", ["value"], "number"],
  ];
  for (const [text, references, kind] of table) {
    const expression = compile(text);
    assert.deepEqual([...expression.references].sort(), [...references].sort(), text);
    assert.equal(expression.kind, kind, text);
  }
});

Deno.test("variables that are not read are not touched", () => {
  const activation = {
    value: { a: 1 },
    get key(): unknown {
      throw new Error("read");
    },
  };
  assert.equal(compile("value.a == 1 || key == 2").evaluate(activation), true);
  assert.throws(() => compile("key").evaluate(activation), /read/);
});

Deno.test("a variable that is not there is null", () => {
  assert.equal(compile("key == null").evaluate({ key: undefined }), true);
  assert.equal(compile("key").evaluate({}), null);
});

Deno.test("mistakes have a place, and the name that was meant", () => {
  const table:
    readonly (readonly [text: string, line: number, column: number, message: RegExp, suggestion?: string])[] =
      [
        ["", 1, 1, /empty/],
        ["value.a >", 1, 10, /ends where a value should follow/],
        ['{"x": valu.a}', 1, 7, /no "valu"/, "value"],
        ["value.a\n  + vlaue.b", 2, 5, /no "vlaue"/, "value"],
        ["value.s.startswith('a')", 1, 9, /no method "startswith"/, "startsWith"],
        ["sise(value)", 1, 1, /no function "sise"/, "size"],
        ["value.l.filtr(x, x)", 1, 9, /no method "filtr"/, "filter"],
        ["len(value)", 1, 1, /no function "len"/, "size"],
        ["value.a = 1", 1, 9, /unexpected "="/, "=="],
        ["value.a and true", 1, 9, /found and/, "&&"],
        ["not value.a", 1, 5, /found value/, "!"],
        ["value.l.map(x, y)", 1, 16, /no "y"/, "x"],
        ["value.s.matches('(')", 1, 17, /not an RE2 pattern/],
        ["(value.a + 1", 1, 13, /"\)" for the "\(" at column 1/],
        ["[1, 2", 1, 6, /"\]"/],
        ["'abc", 1, 1, /no closing '/],
        [String.raw`'a\qb'`, 1, 3, /\\q is no escape/],
        ["12abc", 1, 1, /"12abc" is not a number/],
        ["9223372036854775808", 1, 1, /does not fit 64 bits/],
        ["18446744073709551616u", 1, 1, /does not fit 64 bits/],
        ["size()", 1, 1, /with 1 argument/],
        ["value.s.contains()", 1, 9, /value\.contains\(…\) with 1 argument/],
        ["has(value)", 1, 5, /asks for a field/],
        ["value.l.map(1, 2)", 1, 13, /name of a variable/],
        ["value.l.map(x)", 1, 9, /takes a list, a variable and an expression/],
        ['{"a": 1, "a": 2}', 1, 10, /twice/],
        ["Point{x: 1}", 1, 6, /message literals/],
        ["for", 1, 1, /reserved/],
        ["value.in", 1, 7, /word of the language/],
        ["1 2", 1, 3, /expected an operator or the end, found 2/],
        ["constructor", 1, 1, /no "constructor"/],
        ["value constructor", 1, 7, /found constructor/],
        ["value.a.toString()", 1, 9, /no method "toString"/],
      ];
  for (const [text, line, column, message, suggestion] of table) {
    const error = mistake(text);
    assert.equal(error.code, "invalid_expression");
    assert.deepEqual([error.line, error.column], [line, column], `${text}: ${error.message}`);
    assert.match(error.problems[0]!.message, message);
    assert.equal(error.suggestion, suggestion, text);
    if (suggestion !== undefined) assert.match(error.hint!, new RegExp(`"${RegExp.escape(suggestion)}"`));
  }
});

Deno.test("all unknown names and functions are reported, in the order of the text", () => {
  const error = mistake("foo.a + bar(1) + [2].all(x, z) ");
  assert.deepEqual(error.problems.map(({ offset }) => offset), [0, 8, 28]);
});

Deno.test("failures name the part of the expression and the kinds, and show no value", () => {
  const value = { n: 1, s: "secret", l: [1], m: { x: 1 }, nil: null };
  const table: readonly (readonly [string, string])[] = [
    ["value.amount >= 200", "value.amount is missing"],
    ["value.m.x.y", 'value.m.x is int and has no field "y"'],
    ["value.nil.x", 'value.nil is null and has no field "x"'],
    ['value["odd name"] + 1', 'value["odd name"] is missing'],
    ["value.l[3]", "value.l[3] is missing: value.l has 1 element"],
    ["value.l['x']", 'value.l is list and has no field "x"'],
    ["value.l[value.s]", "a list has no element at a position that is text in value.l[value.s]"],
    ["value[value.s]", "value[value.s] is missing"],
    ["value.s + 1", "cannot add text and int in value.s + 1"],
    ["value.n - value.s", "cannot subtract text from int in value.n - value.s"],
    ["value.n * true", "cannot multiply int by bool in value.n * true"],
    ["value.n / 0", "division by zero in value.n / 0"],
    ["value.n % 0", "division by zero in value.n % 0"],
    ["value.n % 1.5", "cannot take the remainder of int by double in value.n % 1.5"],
    ["-value.s", "cannot negate text in -value.s"],
    ["value.n + 9223372036854775807", "value.n + 9223372036854775807 does not fit 64 bits"],
    ["value.s < 1", "cannot compare text with int in value.s < 1"],
    ["!value.n", "! takes a bool, value.n is int"],
    ["value.n && true", "&& takes bools, value.n is int"],
    ["false || value.s", "|| takes bools, value.s is text"],
    ["value.n ? 1 : 2", "? takes a bool, value.n is int"],
    ["value.l.all(x, x)", "all() takes a bool, x is int"],
    ["value.n.map(x, x)", "map() goes through lists and maps, value.n is int"],
    ["1 in value.s", "cannot look for something in text in 1 in value.s"],
    ["size(value.n)", "int has no size in size(value.n)"],
    ["value.n.startsWith('a')", "startsWith takes texts, found int and text in value.n.startsWith('a')"],
    ["value.n.matches('a')", "matches takes texts, found int and text in value.n.matches('a')"],
    ["'a'.matches(value.s + '(')", "the pattern is too long or none of RE2 in 'a'.matches(value.s + '(')"],
    ["int(value.s)", "this text cannot become an int: int(value.s)"],
    ["timestamp(value.s)", "this text cannot become a timestamp: timestamp(value.s)"],
    ["has(value.n.x)", "value.n is int and has no fields to ask for"],
    ["{1.5: 2}", "a key of a map cannot be double: 1.5"],
    ["{value.s: 1, value.s: 2}", "two keys of one map are equal: value.s"],
    [
      "timestamp('2026-01-01T00:00:00Z').getHours('Nowhere/Land')",
      "unknown time zone in timestamp('2026-01-01T00:00:00Z').getHours('Nowhere/Land')",
    ],
  ];
  for (const [text, message] of table) {
    assert.equal(failing(text, value), message);
    assert.ok(!failing(text, value).includes("secret"));
  }
});

Deno.test("a long part is shortened", () => {
  const message = failing(`value.s + (${"1 + ".repeat(100)}1)`, { s: "" });
  assert.equal(message, `cannot add text and int in ${`value.s + (${"1 + ".repeat(100)}`.slice(0, 79)}…`);
});

Deno.test("a part holds the brackets around it", () => {
  assert.equal(
    failing("(value.s + 'a') * (2)", { s: "" }),
    "cannot multiply text by int in (value.s + 'a') * (2)",
  );
  assert.equal(failing("(value).x + 1"), "(value).x is missing");
  assert.equal(mistake("(valu) + 1").column, 2);
});

Deno.test("&& and || pass over a failure the other side makes irrelevant, in either order", () => {
  assert.equal(evaluate("value.x == 1 && false"), false);
  assert.equal(evaluate("false && value.x == 1"), false);
  assert.equal(evaluate("value.x == 1 || true"), true);
  assert.equal(evaluate("value.x == 1 || value.y || 1 == 1"), true);
  assert.equal(failing("value.x == 1 && value.y && true"), "value.x is missing");
  assert.equal(failing("true && value.y == 2"), "value.y is missing");
  assert.equal(failing("false || false || value.y == 2"), "value.y is missing");
});

Deno.test("an error that is no failure of the expression is not swallowed", () => {
  const activation = {
    get key(): unknown {
      throw new TypeError("broken getter");
    },
  };
  for (
    const text of [
      "key == 1 || true",
      "key == 1 && false && false",
      "true && key",
      "false || key == 1 || true",
      "key == 1 ? 1 : 2",
      "[1].exists(x, key == x || true)",
    ]
  ) assert.throws(() => compile(text).evaluate(activation), /broken getter/);
  assert.equal(compile("true || key == 1").evaluate(activation), true);
});

Deno.test("test() wants a bool", () => {
  assert.equal(compile("value.a").test({ value: { a: true } }), true);
  assert.equal(compile("value.a > 1").test({ value: { a: 1 } }), false);
  assert.throws(() => compile("value.a").test({ value: { a: 1 } }), {
    code: "expression_failed",
    message: "expected a bool, value.a is int",
  });
});

Deno.test("lists and maps are new each time, in the order written", () => {
  for (
    const text of [
      '{"b": 1, "a": value.x}',
      '{"e": 1, "d": 2, "c": value.x, "b": [3], "a": {}}',
      "[value.x, 2]",
      "{}",
      "[]",
      '[{"a": 1}]',
      "{value.k: value.x}",
      "[1, 2].map(x, x)",
      "b'ab'",
      "value.x == 1 ? [1] : [2]",
    ]
  ) {
    const expression = compile(text), value = { x: 1, k: "key" };
    const first = expression.evaluate({ value }), second = expression.evaluate({ value });
    assert.deepEqual(first, second);
    assert.notEqual(first, second, text);
  }
  assert.equal(
    stringifyJson(evaluate('{"e": 1, "d": 2, "c": value.x, "b": [3], "a": {}}', { x: true })),
    '{"e":1,"d":2,"c":true,"b":[3],"a":{}}',
  );
});

Deno.test("what a record holds is passed on as it is", () => {
  const value = parseJson(
    '{"o":{"__proto__":1},"l":[1.50,12345678901234567890123,0.1000000000000000055511]}',
  ) as {
    o: unknown;
    l: unknown;
  };
  assert.equal(evaluate("value", value), value);
  assert.equal(evaluate("value.o", value), value.o);
  assert.equal((evaluate('{"l": value.l}', value) as { l: unknown }).l, value.l);
  assert.equal(
    stringifyJson(evaluate("value.l.filter(x, x > 0)", value)),
    "[1.5,12345678901234567890123,0.1000000000000000055511]",
  );
});

Deno.test("times, types and maps with other keys leave as JSON has them", () => {
  const table: readonly (readonly [string, unknown])[] = [
    ["timestamp", "2023-11-14T22:13:20.123Z"],
    ["[timestamp][0]", "2023-11-14T22:13:20.123Z"],
    ["timestamp('2026-03-01T10:00:00+02:00')", "2026-03-01T08:00:00.000Z"],
    ["timestamp('2026-03-01 10:00:00.1234567Z')", "2026-03-01T10:00:00.1234567Z"],
    ["timestamp(1700000000)", "2023-11-14T22:13:20.000Z"],
    ["duration('90s')", "90s"],
    ["duration('-1.5h')", "-5400s"],
    ["duration('1d') + duration('1ms')", "86400.001s"],
    ["duration('0')", "0s"],
    ["timestamp - timestamp(1700000000)", "0.123s"],
    ["type(1)", "int"],
    ["1.0", 1],
    ["5u", 5],
    ["18446744073709551615u", 18446744073709551615n],
    ["double(value.x)", 2],
    ['{1: 2.0, true: [3u], "x": duration("1s")}', { "1": 2, true: [3], x: "1s" }],
    ['[[1.0], {"a": {"b": 2.0}}].map(x, x)', [[1], { a: { b: 2 } }]],
    ["value.x > 1 ? 2.0 : 'b'", 2],
    ['{"a": value.x * 1.0, "b": [value.x + 0.5 + 0.5]}', { a: 2, b: [3] }],
    ["'' + string(timestamp('2026-03-01T10:00:00.5Z'))", "2026-03-01T10:00:00.5Z"],
  ];
  for (const [text, expected] of table) {
    const result = compile(text).evaluate({ value: { x: 2 }, timestamp: 1_700_000_000_123 });
    assert.deepEqual(result, expected, text);
  }
});

Deno.test("only own members of a record exist", () => {
  class Money {
    amount = 3;
    get cents(): number {
      return 300;
    }
  }
  const value = {
    list: [1],
    text: "abc",
    money: new Money(),
    bare: Object.assign(Object.create(null), { a: 1 }),
  };
  const names = [
    "constructor",
    "__proto__",
    "toString",
    "hasOwnProperty",
    "valueOf",
    "__defineGetter__",
    "isPrototypeOf",
  ];
  for (const name of names) {
    assert.equal(failing(`value.${name}`, value), `value.${name} is missing`);
    assert.equal(failing(`value["${name}"]`, value), `value["${name}"] is missing`);
    assert.equal(failing(`value[value.n]`, { n: name }), "value[value.n] is missing");
    assert.equal(evaluate(`has(value.${name})`, value), false);
    assert.equal(evaluate(`"${name}" in value`, value), false);
    assert.equal(failing(`value.bare.${name}`, value), `value.bare.${name} is missing`);
    const own = JSON.parse(`{"${name}": 5}`);
    assert.equal(evaluate(`value.${name}`, own), 5);
    assert.equal(evaluate(`value[value.map(k, k)[0]]`, own), 5);
    assert.equal(evaluate(`has(value.${name}) && "${name}" in value`, own), true);
    assert.equal(evaluate("has(value.other)", own), false);
    assert.equal(evaluate("value.other", { ...own, other: 6 }), 6);
    assert.equal(stringifyJson(evaluate(`{"${name}": value.x}`, { x: 7 })), `{"${name}":7}`);
    assert.equal(stringifyJson(evaluate(`{value.n: 7}`, { n: name })), `{"${name}":7}`);
    assert.equal(stringifyJson(evaluate(`{value.n: 7.0, 1: 2}`, { n: name })), `{"1":2,"${name}":7}`);
  }
  assert.match(failing("value.list.length", value), /is list/);
  assert.match(failing("value.text.length", value), /is text/);
  assert.equal(evaluate("value.money.amount", value), 3);
  assert.equal(failing("value.money.cents", value), "value.money.cents is missing");
  assert.equal(evaluate("value.bare.a", value), 1);
  assert.match(failing("1.0.number", value), /is double/);
});

Deno.test("a member that is undefined is missing, one that is null is there", () => {
  assert.equal(failing("value.a", { a: undefined }), "value.a is missing");
  assert.equal(evaluate("has(value.a)", { a: undefined }), false);
  assert.equal(evaluate("has(value.a) && value.a == null", { a: null }), true);
});

Deno.test("a macro's variable hides others inside it only", () => {
  assert.deepEqual(evaluate("[value.l.map(value, value * 2), value.l]", { l: [1, 2] }), [[2, 4], [1, 2]]);
  assert.deepEqual(evaluate("value.l.map(x, value.l.filter(y, y > x).map(x, x * 10))", { l: [1, 2] }), [
    [20],
    [],
  ]);
  assert.equal(mistake("[1].all(x, true) && x == 1").problems[0]!.message, 'there is no "x" here');
  assert.deepEqual(evaluate("value.l.map(x, x > 1, {'v': x})", { l: [1, 2] }), [{ v: 2 }]);
  assert.equal(evaluate("value.m.exists_one(k, value.m[k] > 1)", { m: { a: 1, b: 2 } }), true);
});

Deno.test("texts are ordered by code point, times by instant, bytes by byte", () => {
  const table = [
    "'\\uffff' < '\\U00010000'",
    "'\\U00010000' < '\\U00010001'",
    "'ab' > 'aa' && 'a' < 'ab' && '' <= ''",
    "timestamp('2026-01-01T00:00:00Z') > timestamp('2026-01-01T00:00:00+01:00')",
    "duration('1m') < duration('61s') && duration('60s') >= duration('1m')",
    "b'a' < b'ab' && b'\\xff' > b'\\x00'",
    "false < true",
  ];
  for (const text of table) assert.equal(evaluate(text), true, text);
});

Deno.test("what depends on no record is evaluated once, and fails only when reached", () => {
  assert.equal(compile("2 * 3 + 1").kind, "int");
  assert.equal(evaluate("value.a == 2 * 3", { a: 6 }), true);
  assert.equal(evaluate("value.a || 1 / 0 > 0", { a: true }), true);
  assert.equal(failing("1 / 0"), "division by zero in 1 / 0");
  assert.equal(evaluate("value.s in ['a', 'b']", { s: "b" }), true);
  assert.equal(evaluate("value.s in ['a', 'b']", { s: 1 }), false);
  assert.equal(evaluate("value.s in [1, 2, null]", { s: null }), true);
});
