import assert from "node:assert/strict";
import fc from "fast-check";
import { stringifyJson } from "../../json.ts";
import { flowSpec } from "./arbitrary_test.ts";
import { defineFlow } from "./builder.ts";
import { canonicalForm, durationText, flowDocument, flowYaml } from "./canonical.ts";
import { EVERYTHING, flowOf, nodes } from "./kit_test.ts";

const TASK = "{ id: a, type: task, kind: k }";

/** Canonical form and hash, the latter computed by `hashlib` of Python over the bytes of the former. */
const GOLDEN: readonly [text: string, canonical: string, hash: string][] = [
  [
    nodes(TASK),
    `{"name":"t","start":"a","nodes":[{"id":"a","type":"task","kind":"k"}]}`,
    "c1b2c5c7af617122",
  ],
  [
    `# comments and order do not count
output: "{b: 1}"
nodes:
  - on_failure: b
    kind: "k"
    id: a
    retry: { delay: 90000ms, max_attempts: 3, backoff: fixed }
    type: task
    meta: { z: 1.0, a: { d: 12345678901234567890, c: [ é, 1e2 ] } }
    timeout: 1h30m
  - { type: fail, message: "no", id: b }
max_steps: 1000
channels: { b: { reducer: replace }, a: { default: 0, reducer: sum } }
name: t
version: "1"
`,
    `{"name":"t","start":"a","channels":{"a":{"reducer":"sum","default":0},"b":{}},"output":"{b: 1}","nodes":[` +
    `{"id":"a","type":"task","meta":{"a":{"c":["é",100],"d":12345678901234567890},"z":1},"on_failure":"b","kind":"k",` +
    `"timeout":"1h30m","retry":{"max_attempts":3,"delay":"1m30s"}},{"id":"b","type":"fail","message":"no"}]}`,
    "cccb1d909d5a4dc4",
  ],
];

Deno.test("canonical forms and hashes are what they always were", () => {
  for (const [text, canonical, hash] of GOLDEN) {
    const flow = flowOf(text);
    assert.equal(flow.canonical, canonical);
    assert.equal(flow.hash, hash);
    assert.equal(canonicalForm(flow.definition), canonical);
  }
  assert.equal(flowOf(EVERYTHING).hash, "8ec99753a47c2bb7");
});

Deno.test("C1: what means the same has one hash, what does not has another", () => {
  const { hash } = flowOf(nodes(TASK));
  const same = [
    `start: a\n${nodes(TASK)}`,
    `version: "1"\nchannels: {}\nbudget: {}\ntriggers: []\nmax_steps: 0\n${nodes(TASK)}`,
    nodes(
      "{ kind: k, priority: 0, type: task, meta: {}, output_schema: {}, retry: { max_attempts: 1 }, id: a }",
    ),
  ];
  const choice = (more: string) =>
    flowOf(nodes(`{ id: a, type: choice, ${more}rules: [ { default: true, to: $end } ] }`)).hash;
  assert.deepEqual([choice('on_error: "", '), choice("on_error: skip, ")], [choice(""), choice("")]);
  assert.notEqual(choice("on_error: fail, "), choice(""));
  for (const text of same) assert.equal(flowOf(text).hash, hash, text);
  const different = [
    nodes(TASK).replace("name: t", "name: u"),
    nodes(TASK.replace("kind: k", "kind: l")),
    `description: x\n${nodes(TASK)}`,
    `max_steps: 999\n${nodes(TASK)}`,
    `channels: { a: {} }\n${nodes(TASK)}`,
    `channels: { a: { default: null } }\n${nodes(TASK)}`,
    nodes("{ id: a, type: task, kind: k, meta: { a: 1 } }"),
    nodes("{ id: a, type: task, kind: k, meta: { a: 1.5 } }"),
    nodes("{ id: a, type: task, kind: k, meta: { a: '1' } }"),
    nodes("{ id: a, type: task, kind: k, meta: { a: 9007199254740993 } }"),
    nodes("{ id: a, type: task, kind: k, meta: { a: 9007199254740992 } }"),
    nodes("{ id: a, type: task, kind: k, timeout: 1s }"),
    `start: a\n${nodes("{ id: a, type: task, kind: k, dynamic: [a] }")}`,
  ];
  const hashes = different.map((text) => flowOf(text).hash);
  assert.equal(new Set([hash, ...hashes]).size, different.length + 1);
  // The order of nodes, branches, rules and elements counts; that of keys does not.
  const pair = (a: string, b: string) => assert.notEqual(flowOf(a).hash, flowOf(b).hash);
  const fan = (branches: string) =>
    nodes(
      `{ id: f, type: fanout, branches: [${branches}], next: j }`,
      "{ id: a, type: task, kind: k }",
      "{ id: b, type: task, kind: k }",
      "{ id: j, type: join }",
    );
  pair(fan("a, b"), fan("b, a"));
});

Deno.test("C2: the canonical form, and the YAML of a definition, are documents of the same flow", () => {
  const flow = flowOf(EVERYTHING);
  assert.deepEqual(flowOf(flow.canonical, "flow.json"), flow);
  const yaml = flowYaml(flow.definition);
  assert.deepEqual(flowOf(yaml), flow);
  assert.equal(stringifyJson(flowDocument(flow.definition)), flow.canonical);
  assert.match(
    yaml,
    /^name: everything\ndescription: all there is\nstart: first\nchannels:\n {2}last:\n {4}default: null\n/,
  );
  assert.match(yaml, /\n {2}- id: votes\n {4}type: join\n {4}next: wait\n/);
});

Deno.test("any definition → JSON and YAML → the same definition and hash", () => {
  fc.assert(
    fc.property(flowSpec, (spec) => {
      const flow = defineFlow(spec);
      const yaml = flowYaml(flow.definition);
      assert.deepEqual(flowOf(flow.canonical, "f.json"), flow);
      assert.deepEqual(flowOf(yaml), flow, yaml);
    }),
    { numRuns: 150 },
  );
});

Deno.test("durations have one spelling", () => {
  const table: [number, string][] = [
    [0, "0s"],
    [1, "1ms"],
    [999, "999ms"],
    [1000, "1s"],
    [1500, "1.5s"],
    [1001, "1.001s"],
    [59_999, "59.999s"],
    [60_000, "1m"],
    [90_061_001, "25h1m1.001s"],
    [3_600_000, "1h"],
    [86_400_000 * 365, "8760h"],
  ];
  for (const [ms, text] of table) {
    assert.equal(durationText(ms), text);
    if (ms === 0) continue;
    const [node] = flowOf(nodes(`{ id: a, type: task, kind: k, timeout: ${text} }`)).definition.nodes;
    assert.equal(node?.type === "task" && node.timeout, ms);
  }
});
