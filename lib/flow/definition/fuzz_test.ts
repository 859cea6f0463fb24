import assert from "node:assert/strict";
import fc from "fast-check";
import { stringifyJson } from "../../json.ts";
import { problemJson } from "../../workflow/problem.ts";
import { valueOf } from "../../workflow/reader.ts";
import { parseTree } from "../../workflow/yaml.ts";
import { compileFlow } from "./compile.ts";
import { EVERYTHING, nodes, parsed } from "./kit_test.ts";

const DOCUMENTS = [
  EVERYTHING,
  `name: saga
start: reserve
channels: { undone: { reducer: append, default: [] } }
nodes:
  - { id: reserve, type: task, kind: reserve, next: charge, on_failure: refused }
  - { id: charge, type: task, kind: charge, timeout: 30s, retry: { max_attempts: 4, backoff: exponential }, on_failure: release }
  - { id: release, type: task, kind: release, next: refused }
  - { id: refused, type: fail, message: order refused }
output: '{"undone": channels.undone}'
`,
  nodes(
    "{ id: f, type: fanout, branches: [a, b], next: j }",
    "{ id: a, type: task, kind: k }",
    "{ id: b, type: subflow, flow: g }",
    "{ id: j, type: join, policy: any }",
  ),
];

const ODD: readonly unknown[] = [
  null,
  "",
  0,
  -1,
  1e308,
  true,
  [],
  {},
  [[]],
  { a: null },
  "a",
  "b",
  "$end",
  "refused",
  "first",
  "1m",
  "-1m",
  "__proto__",
  "constructor",
  "input.",
  "{{",
  "{{ input }}",
  "}}",
  "task",
  "join",
  "choice",
  "quorum:99",
  "'",
  "\u0000",
  "😀",
  "http",
  12345678901234567890n,
  "input.a.b(",
  "x".repeat(200),
];

/** A JSON value with one thing in it changed. */
function mutated(value: unknown, random: () => number): unknown {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const change = (node: unknown, depth: number): unknown => {
    if (typeof node !== "object" || node === null || random() < 0.08 * depth) return pick(ODD);
    if (Array.isArray(node)) {
      if (node.length === 0) return [pick(ODD)];
      const at = Math.floor(random() * node.length), kind = random();
      if (kind < 0.1) return node.toSpliced(at, 1);
      if (kind < 0.2) return [...node, node[at]];
      if (kind < 0.25) return node.toReversed();
      return node.with(at, change(node[at], depth + 1));
    }
    const entries = Object.entries(node);
    if (entries.length === 0) return { [String(pick(ODD))]: pick(ODD) };
    const at = Math.floor(random() * entries.length), [key, inner] = entries[at]!, kind = random();
    if (kind < 0.1) return Object.fromEntries(entries.toSpliced(at, 1));
    if (kind < 0.15) return Object.fromEntries(entries.with(at, [`${key}x`, inner]));
    if (kind < 0.25) {
      const added = pick([
        "next",
        "type",
        "kind",
        "with",
        "on_failure",
        "dynamic",
        "rules",
        "constructor",
        "branches",
        "when",
      ]);
      return Object.fromEntries([...entries, [added, pick(ODD)]]);
    }
    return Object.fromEntries(entries.with(at, [key, change(inner, depth + 1)]));
  };
  return change(value, 0);
}

function check(text: string, file: string): boolean {
  const { flow, problems, warnings } = parsed(text, file);
  assert.equal(flow === undefined, problems.length > 0, text);
  for (const list of [problems, warnings]) {
    list.forEach((problem, i) => {
      assert.ok(problem.line >= 1 && problem.column >= 1 && problem.message !== "");
      const before = list[i - 1];
      assert.ok(before === undefined || before.line < problem.line || before.column <= problem.column);
      JSON.parse(problemJson(problem));
    });
  }
  if (flow === undefined) return false;
  compileFlow(flow);
  assert.deepEqual(parsed(flow.canonical, "again.json").flow, flow);
  return true;
}

Deno.test("V1, V2: whatever is changed in a document, reading it gives a flow or problems, never an error", () => {
  const numbers = fc.array(fc.integer({ min: 0, max: 2 ** 31 - 1 }), { minLength: 8, maxLength: 64 });
  let right = 0, wrong = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...DOCUMENTS),
      numbers,
      fc.integer({ min: 1, max: 3 }),
      (text, seeds, times) => {
        let at = 0;
        const random = () => seeds[at++ % seeds.length]! / 2 ** 31;
        let value = valueOf(parseTree(text).root!);
        for (let i = 0; i < times; i++) value = mutated(value, random);
        if (check(stringifyJson(value), "f.json")) right++;
        else wrong++;
      },
    ),
    { numRuns: 800 },
  );
  assert.ok(right > 30 && wrong > 300, `${right} right, ${wrong} wrong`);
});

Deno.test("V1: whatever is done to the text of a document, reading it ends with a flow or problems", () => {
  const edit = fc.record({
    at: fc.nat(),
    drop: fc.nat({ max: 8 }),
    put: fc.constantFrom(
      ..."\t \n { } [ ] : ' \" | # }} {{ & * \u0000 \r ( ) , and in ?".split(" "),
      "- ",
      "&a ",
      "*a",
      "!!x ",
      "---\n",
      "  ",
    ),
  });
  fc.assert(
    fc.property(
      fc.constantFrom(...DOCUMENTS),
      fc.array(edit, { minLength: 1, maxLength: 4 }),
      (document, edits) => {
        let text = document;
        for (const { at, drop, put } of edits) {
          const from = at % (text.length + 1);
          text = text.slice(0, from) + put + text.slice(from + drop);
        }
        check(text, "f.yaml");
      },
    ),
    { numRuns: 800 },
  );
});

Deno.test("texts that want to be too much", () => {
  const task = "{ id: a, type: task, kind: k }";
  const documents = [
    "[".repeat(100_000),
    "{a: ".repeat(50_000),
    `a: &a [${"x, ".repeat(20)}]\n` +
    Array.from({ length: 9 }, (_, i) => `b${i}: &b${i} [${"*a, ".repeat(9)}]`).join("\n"),
    `${nodes(task)}output: ${"(".repeat(20_000)}\n`,
    `${nodes(task)}output: "${"{{".repeat(20_000)}"\n`,
    nodes(`{ id: a, type: fail, message: "${"{{ { ".repeat(3000)}${"}} ".repeat(3000)}" }`),
    nodes(`{ id: a, type: fail, message: "${"}}".repeat(50_000)}" }`),
    nodes(`{ id: a, type: task, kind: k, meta: ${"[".repeat(90)}${"]".repeat(90)} }`),
    nodes(`{ id: a, type: task, kind: k, output_schema: ${'{ "not": '.repeat(80)}{}${"}".repeat(80)} }`),
    nodes(`{ id: a, type: task, kind: k, output_schema: { pattern: "${"(a{1,50}){1,50}".repeat(20)}" } }`),
    nodes(`{ id: ${"a".repeat(100_000)}, type: task, kind: k }`),
    nodes(...Array.from({ length: 2000 }, () => task)),
    `name: t\nnodes:\n${"  - {}\n".repeat(5000)}`,
  ];
  for (const text of documents) check(text, "f.yaml");
});
