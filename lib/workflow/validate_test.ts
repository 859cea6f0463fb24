import assert from "node:assert/strict";
import { MailerError } from "../errors.ts";
import { parsed, pipeline, problemsOf, specOf } from "./kit_test.ts";
import { parseWorkflow } from "./validate.ts";
import { problemJson, problemText } from "./problem.ts";

Deno.test("all problems of a document come at once, in its order, each with its place and a hint", () => {
  const text = `name: "no good!"
source:
  type: file
  file: { paht: in.ndjson }
  watermark: { maxOutOfOrderness: 3 minutes }
pipeline:
  - id: keep
    type: filter
    filter: { field: status, operator: equal, value: ok }
  - id: keep
    type: reduce
    reduce: { function: avg }
  - id: w
    type: window
    window: { type: tumbling, size: -5s }
  - id: typo
    type: keyby
    keyby: { field: x }
sink: { type: stdout }
`;
  assert.deepEqual(parsed(text).problems.map(problemText), [
    'flow.yaml:1:7: name: expected letters, digits, _ . and -, the first a letter or digit, found "no good!"',
    "flow.yaml:4:3: source.file.path: needs path (for example path: data/*.ndjson)",
    'flow.yaml:4:11: source.file.paht: "paht" is not known here (did you mean "path"?)',
    'flow.yaml:5:35: source.watermark.maxOutOfOrderness: expected a duration such as 30s, found "3 minutes" (write a number with a unit, such as 500ms, 30s, 5m, 1h30m or 1d)',
    'flow.yaml:9:40: pipeline[0] "keep".filter.operator: "equal" is not known here, expected one of equals, not_equals, greater_than, greater_than_or_equal, less_than, less_than_or_equal, contains, exists, not_exists (did you mean "equals"?)',
    'flow.yaml:10:9: pipeline[1] "keep".id: the id "keep" is taken by the operator in line 7',
    'flow.yaml:11:11: pipeline[1] "keep": reduce needs a keyBy in front of it (put a keyBy in front of "keep")',
    'flow.yaml:12:5: pipeline[1] "keep".reduce.field: avg needs a field',
    'flow.yaml:14:11: pipeline[2] "w": window needs a keyBy in front of it (put a keyBy in front of "w")',
    'flow.yaml:15:37: pipeline[2] "w".window.size: expected a length such as 5m, 1h, 1d, 1w or 1mo, found "-5s"',
    'flow.yaml:17:11: pipeline[3] "typo".type: "keyby" is no operator (did you mean "keyBy"?)',
  ]);
});

Deno.test("as JSON a problem is one line, its path without ids", () => {
  const [problem] =
    parsed(pipeline("  - { id: f, type: filter, filter: { field: a, operator: equals } }")).problems;
  assert.equal(
    problemJson(problem!),
    '{"file":"flow.yaml","line":4,"column":28,"path":"pipeline[0].filter.value","code":"missing",' +
      '"message":"equals needs a value to compare with","hint":null}',
  );
});

Deno.test("Y1: a key on the wrong level is told where it belongs", () => {
  const text = `name: nesting
bufferSize: 10
source:
  type: kafka
  brokers: [localhost:9092]
  kafka:
    topic: in
    groupID: g
    timestamp: { field: at }
sink:
  type: file
  path: out.ndjson
`;
  assert.deepEqual(parsed(text).problems.map(({ line, path, hint }) => [line, path, hint]), [
    [2, "bufferSize", "it belongs under env:"],
    [5, "source.brokers", "it belongs under kafka:"],
    [6, "source.kafka.brokers", 'for example brokers: ["localhost:9092"]'],
    [9, "source.kafka.timestamp", "it belongs beside kafka:, not inside"],
    [10, "sink.file", "file is a block"],
    [12, "sink.path", "it belongs under file:"],
  ]);
});

Deno.test("Y1: unknown keys are problems at every level, with the name that was probably meant", () => {
  const table: [text: string, problem: string, hint: string | undefined][] = [
    [pipeline().replace("pipeline:\n", "pipline: []\n"), "3 pipline unknown_key", 'did you mean "pipeline"?'],
    [pipeline() + "kind: sdk\n", "6 kind unknown_key", undefined],
    [
      "env: { restart: { delays: 1s } }\n" + pipeline(),
      "1 env.restart.delays unknown_key",
      'did you mean "delay"?',
    ],
    [
      pipeline("  - { id: a, typ: filter, type: filter, filter: { where: 'true' } }"),
      "4 pipeline[0].typ unknown_key",
      undefined,
    ],
    [
      pipeline("  - { id: a, type: filter, filter: { where: 'true' }, map: { expr: '1' } }"),
      "4 pipeline[0].map unknown_key",
      "the block of type: filter is filter:, this one is for type: map",
    ],
    [
      pipeline("  - { id: a, type: setFields, setFields: { sets: [ { feld: a, field: a, value: 1 } ] } }"),
      "4 pipeline[0].setFields.sets[0].feld unknown_key",
      undefined,
    ],
    [
      pipeline(
        "  - { id: k, type: keyBy, keyBy: { field: a } }",
        "  - { id: w, type: window, window: { type: tumbling, size: 1m, gap: 1m } }",
        "  - { id: r, type: reduce, reduce: { function: count } }",
      ),
      "5 pipeline[1].window.gap unknown_key",
      "it belongs to type: session",
    ],
  ];
  for (const [text, problem, hint] of table) {
    const { problems } = parsed(text);
    assert.deepEqual(problems.map(({ line, path, code }) => `${line} ${path} ${code}`), [problem], text);
    if (hint !== undefined) assert.equal(problems[0]!.hint, hint);
  }
});

Deno.test("Y3: the branch is chosen by type, and only that branch is spoken of", () => {
  const of = (line: string) =>
    parsed(pipeline(line)).problems.map(({ path, message, hint }) => [path, message, hint]);
  assert.deepEqual(of("  - { id: a, type: filtr, filtr: { nonsense: 1 } }"), [
    ["pipeline[0].type", '"filtr" is no operator', 'did you mean "filter"?'],
  ]);
  assert.deepEqual(of("  - { id: a, type: kafka, kafka: { nonsense: 1 } }"), [
    ["pipeline[0].type", '"kafka" is no operator', "it is a source"],
  ]);
  assert.deepEqual(of("  - { id: a, filter: { where: 'true' } }"), [
    ["pipeline[0].type", "needs type: which operator it is", "write type: filter"],
  ]);
  assert.deepEqual(of("  - { id: k, type: join, join: { type: windw, left: source, right: source } }"), [
    [
      "pipeline[0].join.type",
      '"windw" is not known here, expected one of interval, window, lookup',
      'did you mean "window"?',
    ],
  ]);
});

Deno.test("an expression that is none is shown at the character where it goes wrong", () => {
  // Each with the part of the document that the problem is at.
  const table: [lines: string, part: string][] = [
    ["  - { id: a, type: filter, filter: { where: 'value.a >' } }", "' } }"],
    ["  - { id: a, type: filter, filter: { where: valu.a } }", "valu.a"],
    ["  - { id: a, type: filter, filter: { where: 'value.a == \"x\" && valu' } }", "valu'"],
    ["  - { id: a, type: filter, filter: { where: '''x'' == valu.a' } }", "valu.a"],
    ['  - { id: a, type: filter, filter: { where: "\\"x\\" == valu.a" } }', "valu.a"],
    ["  - { id: a, type: filter, filter: { where: \"'\\u00e9\\U0001F600' == valu.a\" } }", "valu.a"],
    [
      "  - id: a\n    type: filter\n    filter:\n      where: |\n        value.a > 1 &&\n        valu.b > 1",
      "valu.b",
    ],
    [
      "  - id: a\n    type: filter\n    filter:\n      where: >-\n        value.a > 1 &&\n        valu.b > 1",
      "valu.b",
    ],
    ["  - id: a\n    type: filter\n    filter:\n      where: value.a > 1 &&\n        valu.b > 1", "valu.b"],
    ['  - id: a\n    type: filter\n    filter:\n      where: "value.a > 1 &&\n        valu.b > 1"', "valu.b"],
  ];
  for (const [lines, part] of table) {
    for (const end of ["\n", "\r\n"]) {
      const text = pipeline(lines).replaceAll("\n", end);
      const rows = text.split("\n"), row = rows.findIndex((line) => line.includes(part));
      const { problems } = parsed(text);
      assert.deepEqual(problems.map(({ code }) => code), ["invalid_expression"], text);
      const { line, column } = problems[0]!;
      assert.deepEqual([line, column], [row + 1, rows[row]!.indexOf(part) + 1], text + problems[0]!.message);
    }
  }
  const inserted = pipeline("  - { id: a, type: filter, filter: { where: '${X} == valu' } }");
  const [problem] = parsed(inserted, { env: { X: "1" } }).problems;
  assert.deepEqual([problem?.line, problem?.column], [4, 45]);
});

Deno.test("a function that is not there is told by its name here, also where it comes from another language", () => {
  const table: [expression: string, hint: string | undefined][] = [
    ["lenght(value.a) > 1", 'did you mean "size"?'],
    ["value.a.length() > 1", 'did you mean "size"?'],
    ["siez(value.a) > 1", 'did you mean "size"?'],
    ["value.a.startWith('b')", 'did you mean "startsWith"?'],
    ["number(value.a) > 1.0", 'did you mean "double"?'],
    ["value.a.includes('b')", 'did you mean "contains"?'],
    ["frobnicate(value.a)", undefined],
  ];
  for (const [expression, hint] of table) {
    const { problems } = parsed(pipeline(`  - { id: a, type: filter, filter: { where: "${expression}" } }`));
    assert.deepEqual(
      problems.map(({ code, hint }) => [code, hint]),
      [["invalid_expression", hint]],
      expression,
    );
  }
});

Deno.test("a text where a list is expected is shown as a list, unless it may be secret or is no element", () => {
  const hint = (line: string, options: Parameters<typeof parsed>[1] = {}) => {
    const { problems } = parsed(pipeline(`  - { id: a, ${line} }`), options);
    assert.deepEqual(problems.map(({ code }) => code), ["wrong_type"], line);
    return problems[0]!.hint;
  };
  assert.equal(hint("type: keyBy, keyBy: { fields: text }"), "write fields: [text]");
  assert.equal(hint('type: selectFields, selectFields: { fields: "a.b, c" }'), 'write fields: ["a.b, c"]');
  assert.equal(
    hint("type: selectFields, selectFields: { fields: '${SET}' }", { env: { SET: "hunter2secret" } }),
    'write fields: ["${SET}"]',
  );
  assert.equal(hint("type: selectFields, selectFields: { fields: 5 }"), undefined);
  assert.equal(hint("type: renameFields, renameFields: { renames: a }"), undefined);
  assert.equal(hint("type: selectFields, selectFields: { fields: 'a b: [' }"), undefined);
});

Deno.test("tests in place of a workflow are one problem, with the command for them", () => {
  const file = "flow.test.yaml",
    problem = {
      code: "not_a_workflow",
      line: 1,
      message: "this document holds tests, and not a workflow",
      hint: "mailer test flow.test.yaml runs them",
    };
  const of = (text: string) =>
    parsed(text, { file }).problems.map(({ code, line, message, hint }) => ({ code, line, message, hint }));
  assert.deepEqual(of("workflow: flow.yaml\ncases: [ { name: a, expect: { sink: [] } } ]\n"), [problem]);
  assert.deepEqual(of("workflow: flow.yaml\n"), [problem]);
  assert.deepEqual(of("cases: []\n"), [problem]);
  const mixed = of("name: a\nworkflow: b\nsource: { type: stdin }\nsink: { type: stdout }\n");
  assert.deepEqual(mixed.map(({ code }) => code), ["unknown_key"]);
  assert.equal(of("workflow: { name: a }\n").some(({ code }) => code === "not_a_workflow"), false);
});

Deno.test("expressions are checked wherever they stand, for what they name and what they give", () => {
  const table: [line: string, path: string, code: string][] = [
    ["{ id: a, type: filter, filter: { where: 'value.a + 1' } }", "filter.where", "wrong_kind"],
    ["{ id: a, type: filter, filter: { where: '\"text\"' } }", "filter.where", "wrong_kind"],
    ["{ id: a, type: map, map: { expr: 'vlue' } }", "map.expr", "invalid_expression"],
    ["{ id: a, type: flatMap, flatMap: { expr: '1' } }", "flatMap.expr", "wrong_kind"],
    [
      "{ id: a, type: setFields, setFields: { sets: [ { field: a, expr: '(' } ] } }",
      "setFields.sets[0].expr",
      "invalid_expression",
    ],
    ["{ id: a, type: keyBy, keyBy: { expr: 'key.' } }", "keyBy.expr", "invalid_expression"],
    ["{ id: a, type: http, http: { urlExpr: 'nope' } }", "http.urlExpr", "invalid_expression"],
    ["{ id: a, type: flow, flow: { name: f, id: 'nope' } }", "flow.id", "invalid_expression"],
    ["{ id: a, type: map, map: { expr: 'window.start' } }", "map.expr", "invalid_expression"],
  ];
  for (const [line, path, code] of table) {
    assert.deepEqual(problemsOf(pipeline(`  - ${line}`)), [`4 pipeline[0].${path} ${code}`], line);
  }
  const route = pipeline(
    "  - { id: a, type: route, route: { routes: [ { name: x, when: 'value' }, { name: y, when: '[1]' } ] } }",
  )
    .replace("type: stdout", "type: stdout, from: a.x");
  assert.deepEqual(problemsOf(route), ["4 pipeline[0].route.routes[1].when wrong_kind"]);
});

Deno.test("window is a name behind a window over time, and nowhere else", () => {
  const keyed = "  - { id: k, type: keyBy, keyBy: { field: a } }";
  const counted = "  - { id: n, type: reduce, reduce: { function: count } }";
  const use = "  - { id: m, type: map, map: { expr: '{\"start\": window.start}' } }";
  const of = (window: string, ...rest: string[]) => {
    return problemsOf(pipeline(keyed, `  - { id: w, type: window, window: ${window} }`, counted, ...rest));
  };
  assert.deepEqual(of("{ type: tumbling, size: 1m }", use), []);
  assert.deepEqual(
    of("{ type: session, gap: 1m }", "  - { id: f, type: filter, filter: { where: 'true' } }", use),
    [],
  );
  assert.deepEqual(of("{ type: count, size: 3 }", use), ["7 pipeline[3].map.expr invalid_expression"]);
  const [problem] = parsed(pipeline(use)).problems;
  assert.equal(problem?.hint, "window is known behind a window only");
});

Deno.test("a half exactly-once workflow lacks each of its parts where it belongs", () => {
  const kafka = (more: string) => `{ type: kafka, kafka: { brokers: [b:1], topic: in, groupID: g${more} } }`;
  const txn = "{ type: txnKafka, txnKafka: { brokers: [b:1], topic: out, transactionalID: t } }";
  const of = (source: string, sink: string, env = "") =>
    problemsOf(`name: t\nsource: ${source}\nsink: ${sink}\n${env}`);
  const checkpointing = "env: { checkpointing: { interval: 10s } }\n";
  assert.deepEqual(of(kafka(""), txn), ["1 env.checkpointing missing", "2 source.kafka.exactlyOnce missing"]);
  assert.deepEqual(of(kafka(""), txn, checkpointing), ["2 source.kafka.exactlyOnce missing"]);
  assert.deepEqual(of(kafka(", exactlyOnce: false"), txn, checkpointing), [
    "2 source.kafka.exactlyOnce missing",
  ]);
  assert.deepEqual(of(kafka(", exactlyOnce: true"), txn, "env: { bufferSize: 9 }\n"), [
    "4 env.checkpointing missing",
  ]);
  assert.deepEqual(of(kafka(", exactlyOnce: true"), txn, checkpointing), []);
  assert.deepEqual(of(kafka(", exactlyOnce: true"), "{ type: stdout }", checkpointing), [
    "3 sink.type not_committing",
  ]);
  assert.deepEqual(of(kafka(", exactlyOnce: true"), "{ type: file, file: { path: x } }", checkpointing), []);
  assert.deepEqual(of("{ type: stdin }", txn, checkpointing), ["2 source.type not_replayable"]);
  assert.deepEqual(of("{ type: file, file: { path: x } }", txn, checkpointing), []);
  assert.deepEqual(
    of(kafka(", exactlyOnce: true"), "{ type: kafka, kafka: { brokers: [b:1], topic: out } }", checkpointing),
    ["3 sink.type not_committing"],
  );
});

Deno.test("two sinks that commit in transactions of their own are a problem, where checkpoints are taken", () => {
  const rows = "type: postgres, postgres: { dsn: 'postgres://h/d', table: t, mapping: { a: a } }";
  const of = (env: string, second: string) =>
    problemsOf(`name: t
source: { type: file, file: { path: x } }
sinks:
  - { id: one, ${rows} }
  - { id: two, ${second} }
${env}`);
  const checkpointing = "env: { checkpointing: { interval: 10s } }\n";
  assert.deepEqual(of(checkpointing, rows), ["5 sinks[1].type two_atomic_sinks"]);
  assert.deepEqual(of("", rows), []);
  assert.deepEqual(of(checkpointing, "type: file, file: { path: y }"), []);
});

Deno.test("what a workflow promises follows from its parts", () => {
  const of = (source: string, sink: string, env: string) =>
    specOf(`name: t\n${env}source: ${source}\nsink: ${sink}\n`).guarantee;
  const checkpointing = "env: { checkpointing: { interval: 10s } }\n";
  const file = "{ type: file, file: { path: x } }";
  assert.equal(of(file, file, ""), "at-most-once");
  assert.equal(of(file, file, checkpointing), "exactly-once");
  assert.equal(of(file, "{ type: stdout }", checkpointing), "at-least-once");
  assert.equal(of("{ type: stdin }", file, checkpointing), "at-most-once");
});

Deno.test("what this build does not run is validated all the same, and listed by place", () => {
  const spec = specOf(`name: t
env:
  checkpointing: { interval: 10s }
  state: { backend: pebble }
source: { type: kafka, kafka: { brokers: [b:1], topic: in, groupID: g } }
pipeline:
  - { id: v, type: validate, validate: { schema: { type: object } } }
sink: { type: stdout }
`);
  assert.deepEqual(spec.uncarried.map(({ line, path, what }) => `${line} ${path}: ${what}`), [
    "7 pipeline[0]: operator validate",
  ]);
});

Deno.test("onError: dlq needs a dlq, which lacks at the top", () => {
  const line = "  - { id: m, type: map, onError: dlq, map: { expr: 'value' } }";
  const [problem, ...others] = parsed(pipeline(line)).problems;
  assert.deepEqual(others, []);
  assert.deepEqual([problem?.line, problem?.column, problem?.path], [1, 1, "dlq"]);
  assert.match(problem!.message, /line 4/);
  assert.deepEqual(problemsOf(pipeline(line) + "dlq: { type: file, file: { path: dead } }\n"), []);
  assert.deepEqual(problemsOf(pipeline(line) + "dlq: { type: stdout }\n"), ["6 dlq.type unknown_type"]);
});

Deno.test("the file's extension says what a document is", () => {
  const yaml = "name: t\nsource: { type: stdin }\nsink: { type: stdout }\n";
  const json = '{\n\t"name": "t",\n\t"source": { "type": "stdin" },\n\t"sink": { "type": "stdout" }\n}\n';
  for (const file of ["a.yaml", "a.yml", "A.YAML", "b/c.d.yml"]) {
    assert.deepEqual(problemsOf(yaml, { file }), []);
  }
  assert.deepEqual(problemsOf(json, { file: "a.json" }), []);
  assert.deepEqual(problemsOf(json.replace("\n", "\r\n"), { file: "a.json" }), []);
  assert.deepEqual(problemsOf(yaml, { file: "a.json" }), ["1  not_json"]);
  assert.deepEqual(problemsOf(json.replace('"t"', "t"), { file: "a.json" }), ["2  not_json"]);
  assert.deepEqual(problemsOf(json.replace('" }\n}', '" },\n}'), { file: "a.json" }), ["1  not_json"]);
  for (const file of ["a.toml", "a", "yaml", "a.yaml.bak", ""]) {
    assert.deepEqual(problemsOf(yaml, { file }), ["1  unknown_extension"], file);
  }
});

Deno.test("a document that is nothing, or no block, says so", () => {
  assert.deepEqual(problemsOf(""), ["1  empty"]);
  assert.deepEqual(problemsOf("# only a remark\n"), ["1  empty"]);
  assert.deepEqual(problemsOf("- a\n"), ["1  wrong_type"]);
  assert.deepEqual(problemsOf("text\n"), ["1  wrong_type"]);
  assert.deepEqual(problemsOf("{}"), ["1 name missing", "1 source missing", "1 sink missing"]);
});

Deno.test("files named by schema and ref are read where that is allowed, and nothing else is", () => {
  const text = pipeline(
    "  - { id: a, type: validate, validate: { schema: order.json } }",
    "  - { id: b, type: validate, validate: { schema: list.json } }",
    "  - { id: c, type: validate, validate: { schema: none.json } }",
    "  - { id: d, type: map, map: { ref: './none.ts#x' } }",
    "  - { id: e, type: map, map: { ref: 'registered' } }",
    "  - { id: f, type: map, map: { ref: 'npm:thing#x' } }",
  );
  const files: Record<string, string> = { "order.json": '{"type":"object"}', "list.json": "[1]" };
  const read: string[] = [];
  const options = {
    file: "f.yaml",
    resolveSecret: () => undefined,
    readFile(path: string): string {
      read.push(path);
      const found = files[path];
      if (found === undefined) throw new Deno.errors.NotFound(`no ${path}`);
      return found;
    },
  };
  const { problems } = parseWorkflow(text, options);
  assert.deepEqual(problems.map(({ path, code }) => `${path} ${code}`), [
    "pipeline[1].validate.schema bad_schema",
    "pipeline[2].validate.schema unreadable_file",
    "pipeline[3].map.ref unreadable_file",
  ]);
  const refused = {
    ...options,
    readFile: () => {
      throw new MailerError("unreadable_file", "no permission", { hint: "ask for it" });
    },
  };
  const { message, hint } = parseWorkflow(text, refused).problems[0]!;
  assert.equal(message, 'the file "order.json" cannot be read: no permission');
  assert.equal(hint, "ask for it");
  assert.deepEqual(read, ["order.json", "list.json", "none.json", "./none.ts"]);
  assert.deepEqual(problemsOf(text), []);
});
