import assert from "node:assert/strict";
import { MailerError } from "../../errors.ts";
import { compileFlow } from "./compile.ts";
import { EVERYTHING, flowOf, nodes } from "./kit_test.ts";
import { compileSchema } from "./output_schema.ts";
import type { CompiledNode, FlowContext } from "./types.ts";

const CONTEXT: FlowContext = {
  input: { customer: "c 1/ä", amount: 120, due: "2026-05-01T00:00:00Z", items: [{ sku: "x" }], a: [1] },
  channels: { total: 9007199254740993n, log: [] },
  results: { first: { items: [1, 2] } },
  visits: { first: 2 },
  signals: { decision: { ok: true } },
  branches: { a: "completed" },
  counters: {},
  errors: { first: { error: "busy", reason: "error", attempt: 2 } },
};
const flow = compileFlow(flowOf(EVERYTHING));
const at = (id: string): CompiledNode => flow.nodes.get(id)!;
const fails = (run: () => unknown, message: RegExp) =>
  assert.throws(run, (error) => {
    assert.ok(error instanceof MailerError && error.code === "expression_failed");
    assert.match(error.message, message);
    return true;
  });

Deno.test("the graph of a compiled flow", () => {
  assert.equal(flow.hash, flowOf(EVERYTHING).hash);
  assert.deepEqual([...flow.nodes.keys()], flow.definition.nodes.map(({ id }) => id));
  assert.deepEqual(["a", "b", "c", "first"].map((id) => at(id).branchOf), ["ask", "ask", "ask", undefined]);
  assert.deepEqual(at("votes").join, { fanout: "ask", awaited: ["a", "c"], needed: 1 });
  const join = (policy: string, more = "") =>
    compileFlow(flowOf(nodes(
      "{ id: f, type: fanout, branches: [a, b, c], next: j }",
      ...["a", "b", "c"].map((id) => `{ id: ${id}, type: task, kind: k }`),
      `{ id: j, type: join, policy: ${policy}${more} }`,
    ))).nodes.get("j")!.join!;
  assert.equal(join("all").needed, 3);
  assert.equal(join("any").needed, 1);
  assert.equal(join("quorum:2").needed, 2);
  assert.deepEqual(join("all", ", wait_for: [c, a]"), { fanout: "f", awaited: ["a", "c"], needed: 2 });
});

Deno.test("expressions of a compiled flow", () => {
  assert.deepEqual(flow.output!(CONTEXT), { total: 9007199254740993n, turns: 2 });
  const attributes = [...flow.searchAttributes].map(([name, evaluate]) => [name, evaluate(CONTEXT)]);
  assert.deepEqual(attributes, [["customer", "c 1/ä"], ["big", true]]);
  assert.deepEqual(at("check").rules!.map((rule) => rule?.(CONTEXT)), [undefined, true]);
  assert.deepEqual(at("each").over!(CONTEXT), [1, 2]);
  assert.deepEqual(at("children").input!({ ...CONTEXT, item: 7, index: 3 }), { n: 7 });
  assert.deepEqual(at("b").input!(CONTEXT), { customer: "c 1/ä" });
  assert.equal(at("later").until!(CONTEXT), "2026-05-01T00:00:00Z");
  assert.equal(at("first").concurrencyKey!(CONTEXT), "c 1/ä");
  assert.equal(at("first").rateKey!(CONTEXT), "c 1/ä");
  assert.equal(at("nap").until, undefined);
  assert.equal(at("a").with, undefined);
  fails(() => at("check").rules![1]!({ ...CONTEXT, signals: {} }), /null/);
});

Deno.test("counts are 0 before the first, what is missing is null", () => {
  const { output } = compileFlow(flowOf(
    `${
      nodes("{ id: a, type: task, kind: k }")
    }output: "{v: visits.a, c: counters.x, l: last_node, e: errors.a.error}"\n`,
  ));
  assert.deepEqual(output!({ ...CONTEXT, visits: {}, errors: {} }), { v: 0, c: 0, l: null, e: null });
});

Deno.test("templates", () => {
  const message = (text: string) =>
    compileFlow(flowOf(nodes(`{ id: a, type: fail, message: ${JSON.stringify(text)} }`))).nodes.get("a")!
      .message!;
  const table: [text: string, filled: string][] = [
    ["plain", "plain"],
    ["", ""],
    ["{ } }} {x}", "{ } }} {x}"],
    ["{{input.amount}}", "120"],
    ["a {{ input.amount }} b {{ input.customer }}", "a 120 b c 1/ä"],
    ["{{ input.none }}", "null"],
    ["{{ input.items }}", '[{"sku":"x"}]'],
    ["{{ channels.total }}", "9007199254740993"],
    ['{{ "}}" }}', "}}"],
    ['{{ "{{" }}', "{{"],
    ["{{ {a: {b: 1}} }}", '{"a":{"b":1}}'],
    ["{{{a: 1}}}", '{"a":1}'],
    ["{{ true }}{{ 1.5 }}", "true1.5"],
    ["two\nlines {{ input.amount }}\n", "two\nlines 120\n"],
  ];
  for (const [text, filled] of table) assert.equal(message(text)(CONTEXT), filled, text);
  fails(() => message("{{ input.none + 1 }}")(CONTEXT), /null/);
  assert.equal(at("refused").message!(CONTEXT), "refused: busy");
});

Deno.test("settings of the built-in kinds", () => {
  assert.deepEqual(at("c").with!(CONTEXT), {
    method: "POST",
    url: "https://example.com/c%201%2F%C3%A4?n=1",
    headers: { "x-total": "9007199254740993" },
    expect: [200, 404],
    body: { total: 9007199254740993n, list: [[1], 1, true, null] },
  });
  const item = { ...CONTEXT, item: { sku: "s" }, index: 4 };
  assert.deepEqual(at("each").with!(item), { topic: "prices", key: "s", value: { sku: "s", n: 4 } });
  assert.match(String(at("tell").with!(CONTEXT).message), /^done \{"customer":"c 1\/ä"/);
  const one = (node: string) => compileFlow(flowOf(nodes(node))).nodes.get("a")!.with;
  assert.deepEqual(one("{ id: a, type: task, kind: log }")!(CONTEXT), {});
  assert.equal(one("{ id: a, type: task, kind: http }"), undefined);
  const url = one("{ id: a, type: task, kind: http, with: { url: 'http://x/{{ input.none }}' } }")!;
  const whole = one("{ id: a, type: task, kind: http, with: { url: '{{ input.due }}/{{ input.due }}' } }")!;
  assert.equal(whole(CONTEXT).url, "2026-05-01T00:00:00Z/2026-05-01T00%3A00%3A00Z");
  fails(() => url(CONTEXT), /input.none is null and cannot be put into a url/);
});

Deno.test("schemas of outputs", () => {
  const { outputProblem } = at("first");
  assert.equal(outputProblem!({ n: 5 }), undefined);
  assert.equal(outputProblem!({ n: 12345678901234567890n }), undefined);
  assert.match(outputProblem!({ n: 1.5 })!, /output\/n must be integer/);
  assert.match(outputProblem!({})!, /must have required property 'n'/);
  assert.match(outputProblem!(null)!, /output must be object/);
  assert.equal(at("a").outputProblem, undefined);
});

Deno.test("J1, J2: schemas refer to themselves only, know their drafts, and have patterns that end", () => {
  const check = (schema: object, value: unknown) => {
    const compiled = compileSchema(schema);
    assert.ok(typeof compiled === "function", JSON.stringify(compiled));
    return compiled(value) === undefined;
  };
  const tree = {
    $id: "https://example.com/tree",
    type: "object",
    properties: { left: { $ref: "#" }, v: { type: "integer" } },
  };
  assert.equal(check(tree, { left: { left: { v: 1 } } }), true);
  assert.equal(check(tree, { left: { left: { v: "1" } } }), false);
  assert.equal(check({ ...tree }, {}), true); // the same id again
  assert.ok("problem" in compileSchema({ $ref: "https://example.com/tree" })); // what another schema is called
  const meta = { $id: "https://json-schema.org/draft/2020-12/schema", type: "object" };
  compileSchema(meta);
  assert.equal(check({ type: "object", $defs: { a: { type: "string" } } }, {}), true);
  for (
    const $schema of [
      "http://json-schema.org/draft-07/schema#",
      "https://json-schema.org/draft/2019-09/schema",
      "https://json-schema.org/draft/2020-12/schema",
    ]
  ) {
    assert.equal(check({ $schema, type: "object", required: ["a"] }, { a: 1 }), true);
    assert.equal(check({ $schema, type: "object", required: ["a"] }, {}), false);
  }
  const patterns = {
    properties: { a: { pattern: "^(a+)+$" } },
    patternProperties: { "^x-": { type: "number" } },
  };
  assert.equal(check(patterns, { a: "aaa", "x-y": 1 }), true);
  assert.equal(check(patterns, { "x-y": "1" }), false);
  assert.equal(check(patterns, { a: "a".repeat(5000) + "!" }), false); // for ever, with patterns that go back
  assert.equal(check({ format: "email" }, "no mail"), true); // says something, asks for nothing
});
