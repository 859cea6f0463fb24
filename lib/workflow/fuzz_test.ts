import assert from "node:assert/strict";
import fc from "fast-check";
import { COMPONENTS } from "./components/mod.ts";
import { parsed } from "./kit_test.ts";
import { lintWorkflow } from "./lint.ts";
import { stringifyJson } from "../json.ts";
import { problemJson, problemText } from "./problem.ts";
import { valueOf } from "./reader.ts";
import { documentAround, template } from "./template.ts";
import { parseTests } from "./test_document.ts";
import { parseTree } from "./yaml.ts";

const DOCUMENTS: readonly string[] = [
  template("workflow"),
  ...COMPONENTS.map((component) => documentAround(component, "plain")),
  `name: all
env: { checkpointing: { interval: 10s }, state: { backend: kv }, restart: { attempts: 2 } }
sources:
  - { name: a, source: { type: file, file: { path: a, format: csv, csv: { types: { n: number } } }, timestamp: { field: at } } }
  - { name: b, source: { type: slice, records: [ { key: 1, value: { x: [1] } } ], watermark: { maxOutOfOrderness: 1s } } }
pipeline:
  - { id: split, from: a, type: route, route: { routes: [ { name: x, when: 'value.n > 1' } ], default: y } }
  - { id: k, from: [split.x, b], type: keyBy, keyBy: { fields: [u, "v w"], partitions: 3 } }
  - { id: w, type: window, window: { type: sliding, size: 1w, slide: 1d, timezone: Europe/Berlin, trigger: { early: 1s } } }
  - { id: agg, type: aggregate, onError: dlq, aggregate: { functions: [ { function: percentile, field: n, p: 95 }, { as: c, function: count } ] } }
sinks:
  - { id: out, from: agg, type: stdout }
  - { id: late, from: [w.late, split.y], type: file, retry: { attempts: 2 }, file: { path: late } }
dlq: { type: file, file: { path: dead } }
`,
];

/** A JSON value with one thing in it changed. */
function mutated(value: unknown, random: () => number): unknown {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
  const odd = (): unknown =>
    pick<unknown>([
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
      "a.b",
      "source",
      "${X}",
      "${",
      "1m",
      "-1m",
      "1d",
      "__proto__",
      "value.",
      "'",
      "\u0000",
      "type",
      "k",
      "split",
      "😀",
      12345678901234567890,
    ]);
  const change = (node: unknown, depth: number): unknown => {
    if (typeof node !== "object" || node === null || random() < 0.12 * depth) return odd();
    if (Array.isArray(node)) {
      if (node.length === 0) return [odd()];
      const at = Math.floor(random() * node.length);
      const kind = random();
      if (kind < 0.1) return node.toSpliced(at, 1);
      if (kind < 0.2) return [...node, node[at]];
      return node.with(at, change(node[at], depth + 1));
    }
    const entries = Object.entries(node);
    if (entries.length === 0) return { [String(odd())]: odd() };
    const at = Math.floor(random() * entries.length), [key, inner] = entries[at]!;
    const kind = random();
    if (kind < 0.1) return Object.fromEntries(entries.toSpliced(at, 1));
    if (kind < 0.2) return Object.fromEntries(entries.with(at, [`${key}x`, inner]));
    if (kind < 0.25) {
      return Object.fromEntries([...entries, [
        pick(["type", "from", "id", "kafka", "window", "constructor"]),
        odd(),
      ]]);
    }
    return Object.fromEntries(entries.with(at, [key, change(inner, depth + 1)]));
  };
  return change(value, 0);
}

/** Numbers in [0, 1) out of a list of integers, over and over. */
function randomOf(numbers: readonly number[]): () => number {
  let at = 0;
  return () => numbers[at++ % numbers.length]! / 2 ** 31;
}

const numbers = fc.array(fc.integer({ min: 0, max: 2 ** 31 - 1 }), { minLength: 8, maxLength: 64 });

Deno.test("V1, V2: whatever is changed in a document, reading it gives a spec or problems, never an error", () => {
  let right = 0, wrong = 0;
  fc.assert(
    fc.property(
      fc.constantFrom(...DOCUMENTS),
      numbers,
      fc.integer({ min: 1, max: 3 }),
      (text, seeds, times) => {
        const random = randomOf(seeds);
        let value = valueOf(parseTree(text).root!);
        for (let i = 0; i < times; i++) value = mutated(value, random);
        const { spec, problems, tree } = parsed(stringifyJson(value), {
          file: "f.json",
          env: { X: "sentinel-value" },
        });
        assert.equal(spec === undefined, problems.length > 0);
        if (spec !== undefined) {
          right++;
          for (const problem of lintWorkflow(spec, tree!)) problemText(problem);
        } else wrong++;
        problems.forEach((problem, i) => {
          assert.ok(problem.line >= 1 && problem.column >= 1 && problem.message !== "");
          const before = problems[i - 1];
          assert.ok(before === undefined || before.line < problem.line || before.column <= problem.column);
          JSON.parse(problemJson(problem));
        });
      },
    ),
    { numRuns: 1500 },
  );
  assert.ok(right > 50 && wrong > 500, `${right} right, ${wrong} wrong`);
});

Deno.test("V1: whatever is done to the text of a document, reading it ends with a spec or problems", () => {
  const edit = fc.record({
    at: fc.nat(),
    drop: fc.nat({ max: 8 }),
    put: fc.constantFrom(
      "",
      "\t",
      "\n",
      "{",
      "}",
      "[",
      "]",
      ":",
      "- ",
      "'",
      '"',
      "&a ",
      "*a",
      "!!x ",
      "|",
      "#",
      "${",
      "}",
      "\u0000",
      "\r",
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
        const { spec, problems } = parsed(text);
        assert.equal(spec === undefined, problems.length > 0, text);
        parseTests(text, { file: "f.test.yaml", resolveSecret: () => undefined });
      },
    ),
    { numRuns: 1500 },
  );
});

Deno.test("JSON and YAML of one document give the same spec", () => {
  for (const text of DOCUMENTS) {
    const value = valueOf(parseTree(text).root!);
    const yaml = parsed(text), json = parsed(stringifyJson(value), { file: "flow.json" });
    assert.deepEqual(withoutPlaces(json.spec), withoutPlaces(yaml.spec));
    assert.ok(yaml.spec !== undefined, yaml.problems.map(problemText).join("\n"));
  }
});

/** A spec without what hangs on how the document was written. */
function withoutPlaces(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (key, inner) => {
    if (
      key === "place" || key === "line" || key === "column" || key === "file" && typeof inner === "string"
    ) return undefined;
    return typeof inner === "bigint" ? `${inner}n` : inner;
  }));
}
