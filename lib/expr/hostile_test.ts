import assert from "node:assert/strict";
import { MailerError } from "../errors.ts";
import { compileExpression, type Dialect, ExpressionError } from "./mod.ts";

const evaluate = (text: string, value: unknown = {}, dialect: Dialect = "streams"): unknown =>
  compileExpression(text, { dialect, variables: ["value"] }).evaluate({ value });

Deno.test("deep nesting is refused with a place, whatever is nested", () => {
  const n = 10_000;
  const table: Readonly<Record<string, string>> = {
    parentheses: "(".repeat(n) + "1" + ")".repeat(n),
    "open parentheses": "(".repeat(n),
    lists: "[".repeat(n) + "]".repeat(n),
    maps: '{"a":'.repeat(n) + "1" + "}".repeat(n),
    not: "!".repeat(n) + "true",
    minus: "-".repeat(n) + "value",
    conditions: "true ? ".repeat(n) + "1" + " : 2".repeat(n),
    "else branches": "true ? 1 : ".repeat(n) + "2",
    sums: "1 + ".repeat(n) + "1",
    members: "value" + ".a".repeat(n),
    indexes: "value" + "[0]".repeat(n),
    calls: "size(".repeat(n) + "1" + ")".repeat(n),
    macros: "value" + ".map(x, x)".repeat(n),
    "nested macros": "value.map(x, ".repeat(n) + "x" + ")".repeat(n),
  };
  for (const [name, text] of Object.entries(table)) {
    for (const dialect of ["streams", "flows"] as const) {
      assert.throws(
        () => evaluate(text, {}, dialect),
        (error) => error instanceof ExpressionError && /nested deeper than 250 levels/.test(error.message),
        name,
      );
    }
  }
  assert.throws(() => evaluate("not ".repeat(n) + "true", {}, "flows"), /nested deeper/);
});

Deno.test("nesting up to the limit works, compiled and evaluated", () => {
  assert.equal(evaluate("(".repeat(249) + "value.a" + ")".repeat(249), { a: 1 }), 1);
  assert.equal(evaluate("value.a" + " + 1".repeat(248), { a: 1 }), 249);
  assert.equal(evaluate("!".repeat(246) + "(value.a == 1)", { a: 1 }), true);
  const nested = evaluate("[".repeat(240) + "value.a + 1.5" + "]".repeat(240), { a: 1 });
  assert.equal(JSON.stringify(nested), "[".repeat(240) + "2.5" + "]".repeat(240));
  assert.deepEqual(evaluate("value.a" + ".map(x, x)".repeat(240), { a: [1] }), [1]);
});

Deno.test("long expressions work", () => {
  const terms = Array.from({ length: 7000 }, (_, i) => `value.a == ${i}`);
  assert.equal(evaluate(terms.join(" || "), { a: 6999 }), true);
  assert.equal(evaluate(terms.map((term) => `!(${term})`).join(" && "), { a: 7000 }), true);
  assert.equal(
    evaluate(`value.a in [${Array.from({ length: 20_000 }, (_, i) => i).join(", ")}]`, { a: 19_999 }),
    true,
  );
  assert.equal(evaluate(`'${"x".repeat(100_000)}' == value.s`, { s: "x".repeat(100_000) }), true);
  assert.equal((evaluate(`b'\\x00${"x".repeat(200_000)}'`) as Uint8Array).length, 200_001);
  const keys = Array.from({ length: 5000 }, (_, i) => `"k${i}": ${i}`);
  assert.equal(Object.keys(evaluate(`{${keys.join(", ")}}`) as object).length, 5000);
  assert.equal(evaluate(`value.a //${"/".repeat(100_000)}`, { a: 1 }), 1);
});

Deno.test("an endless name is not repeated in the message", () => {
  for (const text of ["a".repeat(100_000), `value.s.${"b".repeat(100_000)}()`, "1" + "c".repeat(100_000)]) {
    assert.throws(
      () => evaluate(text),
      (error) => error instanceof ExpressionError && error.message.length < 200,
    );
  }
});

Deno.test("thousands of mistakes are cut off", () => {
  const text = Array.from({ length: 5000 }, (_, i) => `u${i}`).join(" || ");
  assert.throws(
    () => evaluate(text),
    (error) => error instanceof ExpressionError && error.problems.length === 100,
  );
});

Deno.test("patterns that ruin a backtracking engine take linear time", () => {
  const s = "a".repeat(50_000) + "!";
  for (
    const pattern of ["(a+)+$", "(a|aa)+$", "(.*a){20}$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a?){30}a{30}b"]
  ) {
    assert.equal(evaluate(`value.s.matches('${pattern}')`, { s }), false, pattern);
    assert.equal(evaluate("value.s.matches(value.p)", { s, p: pattern }), false, pattern);
  }
});

Deno.test("patterns of a size that blows up are refused", () => {
  for (const pattern of ["((a{50}){50}){50}", "a{1001}", "x".repeat(1001)]) {
    assert.throws(() => evaluate(`'a'.matches('${pattern}')`), ExpressionError);
    assert.throws(() => evaluate("'a'.matches(value.p)", { p: pattern }), { code: "expression_failed" });
  }
});

Deno.test("records nested too deeply to walk are failures, not a broken stack", () => {
  const deep = (): unknown => JSON.parse("[".repeat(50_000) + "]".repeat(50_000));
  const failed = (error: unknown): boolean =>
    error instanceof MailerError && error.code === "expression_failed";
  assert.throws(() => evaluate("value.a == value.b", { a: deep(), b: deep() }), failed);
  assert.throws(() => evaluate("[1.0, value.a].map(x, x)", { a: deep() }), failed);
  const value = { a: deep() };
  assert.equal((evaluate('{"a": value.a}', value) as typeof value).a, value.a);
});

Deno.test("no member of the engine's own objects can be reached", () => {
  for (const name of ["constructor", "__proto__", "prototype", "caller", "arguments", "call", "apply"]) {
    for (
      const base of [
        "value",
        "value.list",
        "value.text",
        "value.n",
        "'a'",
        "1",
        "1.0",
        "1u",
        "timestamp(0)",
        "type(1)",
        "size",
        "[1]",
        "{}",
      ]
    ) {
      for (const text of [`${base}.${name}`, `${base}["${name}"]`, `${base}[value.name]`]) {
        try {
          const found = evaluate(text, { list: [], text: "", n: 1, name }, "flows");
          assert.equal(found, null, text);
        } catch (error) {
          assert.ok(
            error instanceof MailerError && error.code === "expression_failed",
            `${text}: ${String(error)}`,
          );
        }
      }
    }
  }
});
