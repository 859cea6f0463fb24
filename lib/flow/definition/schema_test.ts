import assert from "node:assert/strict";
import Ajv2020 from "ajv/dist/2020.js";
import fc from "fast-check";
import { parseExact } from "../../json.ts";
import { problemText } from "../../workflow/problem.ts";
import { valueOf } from "../../workflow/reader.ts";
import { parseTree } from "../../workflow/yaml.ts";
import { flowSpec } from "./arbitrary_test.ts";
import { defineFlow } from "./builder.ts";
import { BUILT_IN_KINDS } from "./fields.ts";
import { EVERYTHING, nodes, parsed, problemsOf } from "./kit_test.ts";
import { NODE_KINDS } from "./node_kinds.ts";
import { flowReference } from "./reference.ts";
import { flowSchema } from "./schema.ts";

// The package is CommonJS: its default export is the module.
const Ajv = Ajv2020 as unknown as typeof Ajv2020.default;
const accepts = new Ajv({ strict: true, strictTypes: false, strictRequired: false, allErrors: true }).compile(
  flowSchema(),
);

function fitsSchema(text: string): boolean {
  const { root, problems } = parseTree(text);
  assert.deepEqual(problems, []);
  return accepts(plain(valueOf(root!)));
}

/** Numbers as a schema validator knows them. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, v) => typeof v === "bigint" ? Number(v) : v));
}

const EXAMPLES = [...NODE_KINDS, ...BUILT_IN_KINDS].map(({ example }) => example);

/** A flow in which a node stands as in its example, with whatever it leads to. */
function around(example: string): string {
  const { root } = parseTree(example);
  const node = valueOf(root!) as Record<string, unknown>;
  const others = new Map<string, string>();
  for (const field of ["next", "on_failure", "on_timeout"]) {
    if (typeof node[field] === "string") {
      others.set(node[field], `{ id: ${node[field]}, type: task, kind: k }`);
    }
  }
  for (const { to } of node.rules as { to: string }[] | undefined ?? []) {
    if (to !== "$end") others.set(to, `{ id: ${to}, type: task, kind: k }`);
  }
  const lines = [...others].map(([, text]) => `  - ${text}\n`);
  const own = `  - ${example.trimEnd().replaceAll("\n", "\n    ")}\n`;
  if (node.type === "fanout") {
    const branches = (node.branches as string[]).map((id) => `  - { id: ${id}, type: task, kind: k }\n`);
    return `name: t\nnodes:\n${own}${branches.join("")}  - { id: ${node.next}, type: join }\n`;
  }
  if (node.type === "join") {
    const fan = `  - { id: f, type: fanout, branches: [a, b], next: ${node.id} }\n`;
    const branches = ["a", "b"].map((id) => `  - { id: ${id}, type: task, kind: k }\n`);
    return `name: t\nnodes:\n${fan}${branches.join("")}${own}${lines.join("")}`;
  }
  return `name: t\nnodes:\n${own}${lines.join("")}`;
}

Deno.test("the example of every kind of node, and of every built-in kind, fits validation and the schema", () => {
  for (const example of EXAMPLES) {
    const text = around(example);
    const { problems, warnings } = parsed(text);
    // What an example names of other nodes is not there.
    assert.deepEqual(problems.map(problemText), [], text);
    assert.deepEqual(warnings.filter(({ code }) => code !== "unknown_name"), []);
    assert.ok(fitsSchema(text), `${text}${JSON.stringify(accepts.errors)}`);
  }
});

Deno.test("S1: what validation accepts, the schema accepts", () => {
  assert.ok(fitsSchema(EVERYTHING), JSON.stringify(accepts.errors));
  fc.assert(
    fc.property(flowSpec, (spec) => {
      const value = plain(parseExact(defineFlow(spec).canonical));
      assert.ok(accepts(value), JSON.stringify(accepts.errors));
    }),
    { numRuns: 200 },
  );
});

Deno.test("validation and schema agree on documents that are changed in one place", () => {
  const task = (more: string) => nodes(`{ id: a, type: task, kind: k, ${more} }`);
  const table: [text: string, isRight: boolean][] = [
    [nodes("{ id: a, type: task, kind: k }"), true],
    [nodes("{ id: a, type: task }"), false],
    [nodes("{ id: a, kind: k }"), false],
    [nodes("{ id: a.b, type: task, kind: k }"), false],
    [nodes("{ id: a, type: tsk, kind: k }"), false],
    ["name: t\nnodes: []\n", false],
    ["nodes: [ { id: a, type: task, kind: k } ]\n", false],
    [`extra: 1\n${task("timeout: 1s")}`, false],
    [`version: "2"\n${task("timeout: 1s")}`, false],
    [`version: ""\n${task("timeout: 1s")}`, true],
    [`name: \${X}\nnodes: [ { id: a, type: task, kind: k } ]\n`, false],
    [task("timeout: '${T}'"), false],
    [task("timeout: 0s"), false],
    [task("timeout: 5"), false],
    [task("timeout: 0.5ms"), true],
    [task("timeout: 1d"), true],
    [task("signal: s"), false],
    [task("retry: {}"), true],
    [task("retry: { max_attempts: 65 }"), false],
    [task("retry: { max_attempts: 1, backoff: linear }"), false],
    [task("retry: { backoff: linear }"), false],
    [task("retry: { max_attempts: 2, backoff: linear }"), true],
    [task("retry: { jitter: 2 }"), false],
    [task("priority: 101"), false],
    [task("cache: {}"), false],
    [task("meta: 5"), false],
    [task("meta: { a: [1] }"), true],
    [task("with: {}"), false],
    [nodes("{ id: a, type: task, kind: http, with: { url: x } }"), true],
    [nodes("{ id: a, type: task, kind: http, with: {} }"), false],
    [nodes("{ id: a, type: task, kind: http, with: { url: x, topic: t } }"), false],
    [nodes("{ id: a, type: task, kind: http }"), true],
    [nodes("{ id: a, type: task, kind: emit, with: { topic: t, value: 1 } }"), true],
    [nodes("{ id: a, type: task, kind: emit, with: { topic: t, source: s, value: 1 } }"), false],
    [nodes("{ id: a, type: map, over: input.l, kind: log, with: { message: x } }"), true],
    [nodes("{ id: a, type: map, over: input.l, kind: log, with: { mesage: x } }"), false],
    [nodes("{ id: a, type: map, over: input.l }"), false],
    [nodes("{ id: a, type: map, over: input.l, kind: k, flow: f }"), false],
    [nodes("{ id: a, type: map, over: input.l, flow: f, timeout: 1s }"), false],
    [nodes("{ id: a, type: await, signal: s, timeout: 1s }"), true],
    [nodes("{ id: a, type: await, signal: s, timeout: 1s, policy: any }"), false],
    [nodes("{ id: a, type: await, signals: [s, t], timeout: 1s, policy: any }"), true],
    [nodes("{ id: a, type: await, timeout: 1s }"), false],
    [nodes("{ id: a, type: sleep, for: 0s }"), true],
    [nodes("{ id: a, type: sleep, for: 0 }"), true],
    [nodes("{ id: a, type: sleep }"), false],
    [nodes("{ id: a, type: sleep, for: 1s, until: input.x }"), false],
    [nodes("{ id: a, type: choice, rules: [ { default: true, to: $end } ] }"), true],
    [nodes("{ id: a, type: choice, rules: [ { default: true, to: $other } ] }"), false],
    [`on_expire: delete\n${task("timeout: 1s")}`, false],
    [`on_expire: delete\nretention: 1h\n${task("timeout: 1s")}`, true],
    [`on_expire: delete\nretention: 1h\narchive_retention: 1h\n${task("timeout: 1s")}`, false],
    [`budget: { a: 0 }\n${task("timeout: 1s")}`, false],
    [`budget: { a b: 1 }\n${task("timeout: 1s")}`, false],
    [`channels: { a b: {} }\n${task("timeout: 1s")}`, false],
  ];
  for (const [text, isRight] of table) {
    assert.equal(problemsOf(text).length === 0, isRight, text + problemsOf(text).join("\n"));
    assert.equal(fitsSchema(text), isRight, text + JSON.stringify(accepts.errors));
  }
});

Deno.test("the reference page names every field, and its examples are those of the descriptions", () => {
  const page = flowReference();
  for (const { type, fields, example } of NODE_KINDS) {
    const [section] = page.split(`### node ${type}\n`).slice(1);
    const own = section!.split("\n### ")[0]!;
    for (const field of Object.keys(fields)) {
      assert.match(own, new RegExp(`\\| \`${field}\`( \\*)? \\|`), `${type}.${field}`);
    }
    assert.ok(own.includes(example));
  }
  for (const { kind, example } of BUILT_IN_KINDS) {
    assert.ok(page.split(`### kind ${kind}\n`)[1]!.includes(example));
  }
  assert.match(page, /\n## Expressions\n/);
  assert.doesNotMatch(page, /undefined|\[object/);
});
