import assert from "node:assert/strict";
import { problemText } from "../../workflow/problem.ts";
import { nodes, parsed, problemsOf, warningsOf } from "./kit_test.ts";

const withOutput = (expression: string) =>
  `${
    nodes(
      "{ id: charge, type: task, kind: k, next: wait }",
      "{ id: wait, type: await, signal: approval, timeout: 1h }",
    )
  }` +
  `channels: { total: { reducer: sum } }\noutput: ${JSON.stringify(expression)}\n`;

Deno.test("mistakes of grammar are shown where they are, wherever an expression stands", () => {
  const table: [node: string, ...problems: string[]][] = [
    [
      "{ id: a, type: choice, rules: [ { when: 'input.a >', to: $end }, { default: true, to: $end } ] }",
      "3:55 nodes[0].rules[0].when invalid_expression",
    ],
    ["{ id: a, type: map, over: 'lenn(input.l)', kind: k }", "3:32 nodes[0].over invalid_expression"],
    [
      "{ id: a, type: map, over: input.l, flow: f, input: 'item.' }",
      "3:62 nodes[0].input invalid_expression",
    ],
    ["{ id: a, type: subflow, flow: f, input: '{' }", "3:47 nodes[0].input invalid_expression"],
    ["{ id: a, type: sleep, until: 'input.a b' }", "3:43 nodes[0].until invalid_expression"],
    [
      "{ id: a, type: task, kind: k, concurrency: { key: '(', max: 1 } }",
      "3:57 nodes[0].concurrency.key invalid_expression",
    ],
    [
      "{ id: a, type: task, kind: k, rate: { max: 1, key: '1 +' } }",
      "3:60 nodes[0].rate.key invalid_expression",
    ],
    ["{ id: a, type: fail, message: 'so {{ input. }} it is' }", "3:49 nodes[0].message invalid_expression"],
    ["{ id: a, type: fail, message: 'so {{ input.a' }", "3:39 nodes[0].message invalid_expression"],
    [
      "{ id: a, type: task, kind: http, with: { url: 'http://{{ ) }}' } }",
      "3:62 nodes[0].with.url invalid_expression",
    ],
    [
      "{ id: a, type: task, kind: http, with: { url: x, headers: { b: '{{ ] }}' } } }",
      "3:72 nodes[0].with.headers.b invalid_expression",
    ],
    [
      "{ id: a, type: task, kind: http, with: { url: x, method: PUT, body: { c: [ 1, 'd)' ] } } }",
      "3:85 nodes[0].with.body.c[1] invalid_expression",
    ],
    [
      "{ id: a, type: task, kind: emit, with: { topic: t, key: 'a b', value: 1 } }",
      "3:64 nodes[0].with.key invalid_expression",
    ],
    [
      "{ id: a, type: task, kind: log, with: { message: '{{' } }",
      "3:55 nodes[0].with.message invalid_expression",
    ],
  ];
  for (const [node, ...problems] of table) assert.deepEqual(problemsOf(nodes(node)), problems, node);
  assert.deepEqual(
    problemsOf(`search_attributes: { x: "input." }\n${nodes("{ id: a, type: task, kind: k }")}`),
    [
      "1:32 search_attributes.x invalid_expression",
    ],
  );
  assert.deepEqual(problemsOf(withOutput("results.charge.(").replace("output: ", "output:\n  ")), [
    "7:19 output invalid_expression",
  ]);
});

Deno.test("X1: a name that is nearly one is a mistake, X2: any other that does not exist a warning", () => {
  const problems = (expression: string) =>
    parsed(withOutput(expression)).problems.map(({ message, hint }) => `${message}; ${hint}`);
  assert.deepEqual(problems("results.chrage.id"), [
    'there is no results.chrage here; did you mean "results.charge"?',
  ]);
  assert.deepEqual(problems('visits["chargee"]'), [
    'there is no visits.chargee here; did you mean "visits.charge"?',
  ]);
  assert.deepEqual(problems("has(errors.cahrge)"), [
    'there is no errors.cahrge here; did you mean "errors.charge"?',
  ]);
  assert.deepEqual(problems("signals.aproval.ok"), [
    'there is no signals.aproval here; did you mean "signals.approval"?',
  ]);
  assert.deepEqual(problems("channels.totl"), [
    'there is no channels.totl here; did you mean "channels.total"?',
  ]);
  assert.deepEqual(problems("result.charge"), ['there is no result here; did you mean "results"?']);
  assert.deepEqual(warningsOf(withOutput("{a: foo == nil}")), ["6:14 output unknown_name"]);
  assert.deepEqual(warningsOf(withOutput("{a: results.other, b: branches.zz}")), [
    "6:22 output unknown_name",
    "6:41 output unknown_name",
  ]);
  const right =
    "{a: results.charge, b: input.anything.at.all, c: counters.tokens, d: channels.total, e: signals.approval, f: last_node}";
  assert.deepEqual(warningsOf(withOutput(right)), []);
  // Elements of macros are no variables.
  assert.deepEqual(warningsOf(withOutput("{a: input.list.map(results, results.x)}")), []);
});

Deno.test("names that are known elsewhere", () => {
  const a = "{ id: a, type: task, kind: k }";
  assert.deepEqual(problemsOf(`search_attributes: { x: results.a }\n${nodes(a)}`), [
    "1:25 search_attributes.x unknown_name",
  ]);
  assert.deepEqual(warningsOf(withOutput("{a: item}")), ["6:14 output unknown_name"]);
  assert.deepEqual(warningsOf(nodes("{ id: a, type: map, over: 'item', kind: k }")), [
    "3:32 nodes[0].over unknown_name",
  ]);
  assert.deepEqual(
    warningsOf(nodes(
      "{ id: a, type: map, over: input.l, flow: f, input: '{i: index, item: item}', next: b }",
      "{ id: b, type: map, over: input.l, kind: http, with: { url: 'http://x/{{ item.id }}' }, rate: { max: 1, key: item.id } }",
    )),
    [],
  );
});

Deno.test("X2: what is always of the wrong kind is a warning", () => {
  assert.deepEqual(warningsOf(withOutput("1 + 2")), ["6:9 output wrong_kind"]);
  assert.deepEqual(warningsOf(withOutput("nil")), []);
  assert.deepEqual(
    warningsOf(nodes(
      "{ id: a, type: choice, rules: [ { when: '\"x\"', to: b }, { default: true, to: $end } ] }",
      "{ id: b, type: map, over: '{a: 1}', kind: k, next: c }",
      "{ id: c, type: subflow, flow: f, input: '[1]', next: d }",
      "{ id: d, type: sleep, until: '5' }",
    )),
    [
      "3:45 nodes[0].rules[0].when wrong_kind",
      "4:31 nodes[1].over wrong_kind",
      "5:45 nodes[2].input wrong_kind",
      "6:34 nodes[3].until wrong_kind",
    ],
  );
});

Deno.test("warnings read as problems do", () => {
  const [warning] = parsed(withOutput("foo")).warnings;
  assert.equal(problemText(warning!), "flow.yaml:6:10: output: there is no foo here: it reads as null");
});
