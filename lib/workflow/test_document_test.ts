import assert from "node:assert/strict";
import { pipeline, specOf } from "./kit_test.ts";
import { problemText } from "./problem.ts";
import { parseTests } from "./test_document.ts";
import { checkTestNames } from "./test_names.ts";

function parsed(text: string, file = "t.test.yaml") {
  return parseTests(text, { file, resolveSecret: (name) => name === "X" ? "x" : undefined });
}

const ONE = `workflow: totals.yaml
cases:
  - name: pending orders do not count
    input:
      - { at: 2026-03-01T10:00:00Z, key: o-1, value: { customer: { id: c1 }, amount: 9007199254740993 } }
      - { at: 1772359200000, text: 'not json', headers: { a: b }, split: p1 }
      - { watermark: 2026-03-01T10:10:00.5+01:00 }
      - { value: null }
    expect:
      sink:
        - { customer: { id: c1 }, sum: 10 }
      per-minute.late: []
      dlq: { contains: [ { reason: decode } ] }
    end: false
  - name: from a file
    input: data.ndjson
    expect: { sink: { inOrder: [ 1, null ] } }
  - name: from several
    input: { a: [], b: b.ndjson }
    expect: { sink: { anyOrder: [] } }
  - name: as it stands
    expect: { sink: [] }
`;

Deno.test("tests of a workflow are read whole, each row with its place", () => {
  const { tests, problems } = parsed(ONE);
  assert.deepEqual(problems, []);
  const [first, second, third, fourth] = tests!.cases;
  assert.equal(tests!.workflow, "totals.yaml");
  assert.deepEqual([first!.name, first!.end, first!.path, first!.place], [
    "pending orders do not count",
    false,
    "cases[0]",
    { line: 3, column: 5 },
  ]);
  const [input] = first!.input;
  assert.ok(input !== undefined && "entries" in input.content);
  assert.deepEqual(input.content.entries, [
    {
      kind: "record",
      place: { line: 5, column: 9 },
      at: 1772359200000,
      key: "o-1",
      headers: {},
      value: { customer: { id: "c1" }, amount: 9007199254740993n },
    },
    {
      kind: "text",
      place: { line: 6, column: 9 },
      at: 1772359200000,
      headers: { a: "b" },
      split: "p1",
      text: "not json",
    },
    { kind: "watermark", place: { line: 7, column: 9 }, time: 1772356200500 },
    { kind: "record", place: { line: 8, column: 9 }, headers: {}, value: null },
  ]);
  assert.deepEqual(first!.expect.map(({ name, mode, rows, place }) => [name, mode, rows, place.line]), [
    [
      "sink",
      "anyOrder",
      [{ value: { customer: { id: "c1" }, sum: 10 }, place: { line: 11, column: 11 } }],
      10,
    ],
    ["per-minute.late", "anyOrder", [], 12],
    ["dlq", "contains", [{ value: { reason: "decode" }, place: { line: 13, column: 26 } }], 13],
  ]);
  assert.deepEqual([second!.end, second!.input[0]?.content, second!.expect[0]?.mode], [true, {
    file: "data.ndjson",
  }, "inOrder"]);
  assert.deepEqual(third!.input.map(({ source, content }) => [source, content]), [["a", { entries: [] }], [
    "b",
    { file: "b.ndjson" },
  ]]);
  assert.deepEqual(fourth!.input, []);
});

Deno.test("a workflow in place of tests is one problem, with the command for it", () => {
  const text = "nmae: a\nsource: { type: stdin }\npipeline: []\nsink: { type: stdout }\n";
  assert.deepEqual(parsed(text).problems.map(({ code, line, message }) => ({ code, line, message })), [
    { code: "not_tests", line: 1, message: "this document is a workflow, and holds no tests" },
  ]);
  assert.match(parsed(text).problems[0]!.hint!, /^mailer run \S+ runs it; .*mailer new test/);
  const mixed = parsed("cases: []\nsource: { type: stdin }\n").problems.map(({ code }) => code);
  assert.equal(mixed.includes("not_tests"), false);
});

Deno.test("Y1: tests are read as strictly as workflows", () => {
  const of = (lines: string) =>
    parsed(lines).problems.map(({ line, path, code }) => `${line} ${path} ${code}`);
  const one = (lines: string) =>
    of(`workflow: a.yaml\ncases:\n  - name: n\n${lines.split("\n").map((line) => `    ${line}\n`).join("")}`);
  assert.deepEqual(of(""), ["1  wrong_type"]);
  assert.deepEqual(of("{}"), ["1 workflow missing", "1 cases missing"]);
  assert.deepEqual(of("workflow: 5\ncases: []\nx: 1\n"), [
    "1 workflow wrong_type",
    "2 cases too_few",
    "3 x unknown_key",
  ]);
  assert.deepEqual(of("workflow: a\ncases: {}\n"), ["2 cases wrong_type"]);
  assert.deepEqual(of("workflow: a\ncases: [ 5 ]\n"), ["2 cases[0] wrong_type"]);
  assert.deepEqual(one("expect: { sink: [] }\nexpects: 1"), ["5 cases[0].expects unknown_key"]);
  assert.deepEqual(one("input: []"), ["3 cases[0].expect missing"]);
  assert.deepEqual(one("expect: {}"), ["4 cases[0].expect too_few"]);
  assert.deepEqual(one("expect: []"), ["4 cases[0].expect wrong_type"]);
  assert.deepEqual(one("expect: { sink: 5 }"), ["4 cases[0].expect.sink wrong_type"]);
  assert.deepEqual(one("expect: { sink: {} }"), ["4 cases[0].expect.sink missing"]);
  assert.deepEqual(one("expect: { sink: { inOrder: [], contains: [] } }"), [
    "4 cases[0].expect.sink excluded",
  ]);
  assert.deepEqual(one("expect: { sink: { inOrdr: [] } }"), [
    "4 cases[0].expect.sink missing",
    "4 cases[0].expect.sink.inOrdr unknown_key",
  ]);
  assert.deepEqual(one("expect: { sink: { inOrder: 5 } }"), ["4 cases[0].expect.sink.inOrder wrong_type"]);
  assert.deepEqual(one("expect: { a.late: [] }\ninput: 5"), ["5 cases[0].input wrong_type"]);
  const entry = (text: string) => one(`expect: { sink: [] }\ninput: [ ${text} ]`);
  assert.deepEqual(entry("{ value: 1, txt: 2 }"), ["5 cases[0].input[0].txt unknown_key"]);
  assert.deepEqual(entry("{ at: 5 }"), ["5 cases[0].input[0].value missing"]);
  assert.deepEqual(entry("{ value: 1, text: a }"), ["5 cases[0].input[0].text excluded"]);
  assert.deepEqual(entry("{ watermark: 5, value: 1 }"), ["5 cases[0].input[0].value excluded"]);
  assert.deepEqual(entry("{ watermark: soon }"), ["5 cases[0].input[0].watermark wrong_type"]);
  assert.deepEqual(entry("{ at: 2026-13-01T10:00:00Z, value: 1 }"), ["5 cases[0].input[0].at wrong_type"]);
  assert.deepEqual(entry("{ at: 2026-03-01T10:00:00, value: 1 }"), ["5 cases[0].input[0].at wrong_type"]);
  assert.deepEqual(entry("5"), ["5 cases[0].input[0] wrong_type"]);
  assert.deepEqual(
    of("workflow: a\ncases:\n  - { name: n, expect: { s: [] } }\n  - { name: n, expect: { s: [] } }\n"),
    ["4 cases[1].name duplicate"],
  );
  assert.deepEqual(of("workflow: ${NONE}\ncases: [ { name: n, expect: { s: [] } } ]\n"), [
    "1 workflow unset_variable",
  ]);
  assert.equal(parsed("workflow: ${X}\ncases: [ { name: n, expect: { s: [] } } ]\n").tests?.workflow, "x");
  assert.deepEqual(parsed("workflow: [\n").problems.map(({ code }) => code), ["syntax"]);
});

Deno.test("names in tests are those of the workflow: sinks, side outputs, dlq and sources", () => {
  const spec = specOf(pipeline(
    "  - { id: k, type: keyBy, keyBy: { field: a } }",
    "  - { id: per-minute, type: window, window: { type: tumbling, size: 1m } }",
    "  - { id: n, type: reduce, reduce: { function: count } }",
  ));
  const { tests } = parsed(`workflow: a.yaml
cases:
  - { name: right, input: [], expect: { sink: [], per-minute.late: [], dlq: [] } }
  - { name: by source, input: { source: [] }, expect: { sink: [] } }
  - { name: wrong, input: { sorce: [] }, expect: { sinc: [], per-minute.lat: [], n: [] } }
`);
  assert.deepEqual(checkTestNames(tests!, spec).map(problemText), [
    't.test.yaml:5:29: cases[2].input.sorce: the workflow has no source "sorce" (did you mean "source"?)',
    't.test.yaml:5:52: cases[2].expect.sinc: the workflow has no sink or side output "sinc" (did you mean "sink"?)',
    't.test.yaml:5:62: cases[2].expect["per-minute.lat"]: the workflow has no sink or side output "per-minute.lat" (did you mean "per-minute.late"?)',
    't.test.yaml:5:82: cases[2].expect.n: the workflow has no sink or side output "n" (one of: sink, per-minute.late, dlq)',
  ]);
  const several = specOf(
    pipeline("  - { id: m, from: [a, b], type: map, map: { expr: value } }").replace(
      /source: .*/,
      "sources: [ { name: a, source: { type: stdin } }, { name: b, source: { type: stdin } } ]",
    ),
  );
  const [problem] = checkTestNames(
    parsed("workflow: a\ncases: [ { name: n, input: [], expect: { sink: [] } } ]\n").tests!,
    several,
  );
  assert.deepEqual([problem?.path, problem?.code], ["cases[0].input", "missing"]);
  const open = specOf(pipeline("  - { id: p, type: process, process: { ref: x } }"));
  assert.deepEqual(
    checkTestNames(parsed("workflow: a\ncases: [ { name: n, expect: { p.any: [] } } ]\n").tests!, open),
    [],
  );
});
