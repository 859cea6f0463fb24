import assert from "node:assert/strict";
import { world, type WorldOptions } from "../kit_test.ts";

const SUMS = `name: sums
source: { id: in, type: stdin, timestamp: { field: at }, onError: dlq }
pipeline:
  - { id: by-user, type: keyBy, keyBy: { field: u } }
  - { id: minute, type: window, window: { type: tumbling, size: 1m } }
  - { id: sum, type: reduce, reduce: { function: sum, field: n }, onError: dlq }
sinks:
  - { id: out, type: stdout }
  - { id: late, from: minute.late, type: blackhole }
dlq: { type: file, file: { path: dead.ndjson } }
`;
const MINUTE = `window: { start: "2026-03-01T10:00:00.000Z", end: "2026-03-01T10:01:00.000Z" }`;

/** Runs cases on a workflow. */
async function tested(
  cases: string,
  options: WorldOptions & { readonly workflow?: string; readonly args?: readonly string[] } = {},
) {
  const { workflow = SUMS, args = [], files = {}, ...rest } = options;
  await using w = await world({
    ...rest,
    files: { "w.yaml": workflow, "w.test.yaml": `workflow: w.yaml\ncases:\n${cases}`, ...files },
  });
  const before = w.files();
  const ended = await w.mailer("test", ...args, "w.test.yaml");
  assert.deepEqual(w.files(), before, "a test leaves nothing behind");
  return ended;
}

async function passes(cases: string, options: Parameters<typeof tested>[1] = {}): Promise<void> {
  const { code, out, err } = await tested(cases, options);
  assert.deepEqual([code, err], [0, ""], out);
  assert.match(out, /\n1 passed, 0 failed\n$/);
}

Deno.test("records, rows, late records and dead letters; `at` beats the document's timestamp", () =>
  passes(`
  - name: all of it
    input:
      - { at: 2026-03-01T10:00:00Z, value: { u: a, n: 1, at: "1999-01-01T00:00:00Z" } }
      - { value: { u: a, n: 2, at: "2026-03-01T10:00:30Z" } }
      - { text: '{"u":"a","n":12345678901234567890,"at":"2026-03-01T10:00:40Z"}' }
      - { text: '{bad' }
      - { text: '' }
      - { at: 2026-03-01T10:02:00Z, value: { u: b, n: 2.50 } }
      - { at: 2026-03-01T10:00:00Z, value: { u: b, n: 9 } }
      - { value: { u: b, n: 9 } }
      - { at: 2026-03-01T10:02:00Z, value: { u: b, n: x } }
    expect:
      out:
        - { u: b, sum: 2.5, window: { start: "2026-03-01T10:02:00.000Z", end: "2026-03-01T10:03:00.000Z" } }
        - { ${MINUTE}, sum: 12345678901234567893, u: a }
      late: [ { u: b, n: 9 } ]
      minute.late: [ { u: b, n: 9 } ]
      dlq:
        - { operator: sum, value: { u: b, n: x }, offset: 7 }
        - { operator: in, error: { code: not_json }, value: "{bad", offset: 3 }
        - { operator: in, error: { code: no_timestamp } }
`));

Deno.test("with a watermark only watermarks advance event time, before the first record too", () =>
  passes(`
  - name: watermarks
    end: false
    input:
      - { watermark: 2026-03-01T09:00:00Z }
      - { at: 2026-03-01T08:00:00Z, value: { u: a, n: 1 } }
      - { at: 2026-03-01T11:00:00Z, value: { u: a, n: 2 } }
      - { at: 2026-03-01T10:00:00Z, value: { u: a, n: 4 } }
      - { watermark: 2026-03-01T10:01:00Z }
      - { at: 2026-03-01T10:00:59Z, value: { u: a, n: 8 } }
    expect:
      out: [ { u: a, sum: 4, ${MINUTE} } ]
      late: { inOrder: [ { u: a, n: 1 }, { u: a, n: 8 } ] }
`));

Deno.test("the end closes windows unless `end: false`", async () => {
  const input = "input: [ { at: 2026-03-01T10:00:00Z, value: { u: a, n: 1 } } ]";
  await passes(`  - { name: ends, ${input}, expect: { out: [ { u: a, sum: 1, ${MINUTE} } ] } }`);
  await passes(`  - { name: open, end: false, ${input}, expect: { out: [] } }`);
});

Deno.test("watermarks are those of all splits, records those of their own", () =>
  passes(`
  - name: splits
    end: false
    input:
      - { at: 2026-03-01T10:00:00Z, split: x, value: { u: a, n: 1 } }
      - { at: 2026-03-01T10:05:00Z, split: y, value: { u: a, n: 2 } }
    expect:
      out: []
`));

Deno.test("input can be a file, read as the workflow's source reads", async () => {
  const cases = `
  - name: file
    input: in.csv
    expect: { out: [ { u: a, sum: 3, ${MINUTE} } ], dlq: [ { operator: in, value: "a,x,2026-03-01T10:00:02Z" } ] }
`;
  const csv = "u,n,at\na,1,2026-03-01T10:00:00Z\na,2,2026-03-01T10:00:01Z\na,x,2026-03-01T10:00:02Z\n";
  const workflow = SUMS.replace(
    "type: stdin",
    "type: stdin, stdin: { format: csv, csv: { types: { n: number } } }",
  );
  const { connectorsFor } = await import("../../../connectors/registry.ts");
  await using w = await world({
    files: { "w.yaml": workflow, "w.test.yaml": `workflow: w.yaml\ncases:\n${cases}`, "in.csv": csv },
  });
  const { main } = await import("../main.ts");
  const code = await main(["test", "w.test.yaml"], {
    ...w.host,
    connectors: connectorsFor,
  });
  assert.equal(code, 0, (w.host.stdout as unknown as { text: string }).text);
});

Deno.test("csv texts are lines of one file: the first is the header", () =>
  passes(
    `
  - name: csv
    input: [ { text: "u,n,at" }, { text: "a,1,2026-03-01T10:00:00Z" }, { text: "a,2" } ]
    expect: { out: [ { u: a, sum: 1, ${MINUTE} } ], dlq: [ { value: "a,2", offset: 1 } ] }
`,
    {
      workflow: SUMS.replace(
        "type: stdin",
        "type: stdin, stdin: { format: csv, csv: { types: { n: number } } }",
      ),
    },
  ));

const TWO = `name: two
sources:
  - { name: a, source: { type: slice, records: [ { value: 1 } ] } }
  - { name: b, source: { type: slice, records: [ { value: 2 } ] } }
pipeline: [ { id: key, from: [a, b], type: map, map: { expr: '{"v": value, "from": source, "key": key, "h": headers}' } } ]
sink: { type: stdout }
`;

Deno.test("input goes by source; a source without input gives nothing; without any the workflow's own are read", async () => {
  await passes(
    `
  - name: by source
    input: { b: [ { value: 5, key: k, headers: { x: y } } ] }
    expect: { sink: [ { v: 5, from: b, key: k, h: { x: y } } ] }
`,
    { workflow: TWO },
  );
  await passes(`  - { name: own, expect: { sink: { contains: [ { v: 2, from: b, key: null, h: {} } ] } } }`, {
    workflow: TWO,
  });
});

Deno.test("nothing waits for real time", () =>
  passes(
    `  - { name: slow, input: [ { value: 1 }, { value: 2 }, { value: 3 } ], expect: { sink: { inOrder: [1, 2, 3] } } }`,
    {
      workflow: `name: slow
source: { type: stdin }
pipeline: [ { id: slow, type: throttle, throttle: { rate: 1, per: 10h } } ]
sink: { type: stdout }
`,
    },
  ));

Deno.test("what stands for the outside need not be carried by this build", () =>
  passes(
    `  - { name: kafka, input: [ { value: { a: 1 } }, { text: '{"a":2}' } ], expect: { sink: [ { a: 1 }, { a: 2 } ] } }`,
    {
      workflow: `name: k
env: { checkpointing: { interval: 1s } }
source: { type: kafka, kafka: { brokers: [b:1], topic: t, groupID: g } }
sink: { type: kafka, kafka: { brokers: [b:1], topic: u } }
`,
    },
  ));

Deno.test("what is Avro outside is written as its JSON", () =>
  passes(`  - { name: avro, input: [ { text: '{"a":2}' } ], expect: { sink: [ { a: 2 } ] } }`, {
    workflow: `name: k
source:
  type: kafka
  kafka: { brokers: [b:1], topic: t, groupID: g, deserialize: avro, schemaRegistry: { url: "http://r" } }
sink: { type: stdout }
`,
  }));

Deno.test("a failure shows its line, what is missing and what was not expected", async () => {
  const { code, out } = await tested(`  - name: wrong
    input:
      - { at: 2026-03-01T10:00:00Z, value: { u: a, n: 1 } }
      - { at: 2026-03-01T10:00:00Z, value: { u: b, n: 1 } }
    expect:
      out:
        - { u: a, sum: 1, ${MINUTE} }
        - { u: b, sum: 2, ${MINUTE} }
      dlq:
        contains: [ { operator: nope } ]
`);
  const window = '"window":{"start":"2026-03-01T10:00:00.000Z","end":"2026-03-01T10:01:00.000Z"}';
  assert.equal(code, 1);
  assert.equal(
    out,
    `w.test.yaml
  FAILED  wrong
    w.test.yaml:8: out: 2 rows, expected 2
      - {"u":"b","sum":2,${window}}   (line 10) missing
      + {"u":"b","sum":1,${window}}   unexpected
    w.test.yaml:11: dlq: 0 rows, expected among them 1
      - {"operator":"nope"}   (line 12) missing
0 passed, 1 failed
`,
  );
});

Deno.test("rows in another order are a failure only where order is asked for", async () => {
  const cases = (mode: string) => `
  - name: order
    input: [ { value: 1 }, { value: 2 } ]
    expect: { sink: { ${mode}: [2, 1] } }
`;
  const workflow = "name: w\nsource: { type: stdin }\nsink: { type: stdout }\n";
  await passes(cases("anyOrder"), { workflow });
  const { code, out } = await tested(cases("inOrder"), { workflow });
  assert.equal(code, 1);
  assert.match(
    out,
    /w\.test\.yaml:6: sink: the rows are those expected, in another order: row 1 should be 2, is 1\n/,
  );
});

Deno.test("a run that fails is a failed case; --json gives a line a case", async () => {
  const cases = `
  - { name: fails, input: [ { value: 1 } ], expect: { sink: [ 1 ] } }
  - { name: good, input: [ { value: { a: 1 } } ], expect: { sink: [ 1 ] } }
`;
  const workflow =
    "name: w\nsource: { type: stdin }\npipeline: [ { id: a, type: map, map: { expr: value.a } } ]\nsink: { type: stdout }\n";
  const { code, out, err } = await tested(cases, { workflow, args: ["--json"] });
  assert.deepEqual([code, err], [1, "1 passed, 1 failed\n"]);
  const [first, second, ...rest] = out.split("\n");
  assert.deepEqual(rest, [""]);
  assert.deepEqual(JSON.parse(second!), {
    file: "w.test.yaml",
    case: "good",
    line: 5,
    ok: true,
    problems: [],
  });
  const { problems, ...failed } = JSON.parse(first!);
  assert.deepEqual(failed, { file: "w.test.yaml", case: "fails", line: 4, ok: false });
  assert.match(problems[0].message, /^the run failed: operator "a": .*offset 0\)$/);
});

Deno.test("problems of test documents and of their workflows come before anything runs", async () => {
  const cases = "  - { name: a, input: [], expect: { outt: [] } }\n";
  const { code, out, err } = await tested(cases);
  assert.deepEqual([code, out], [2, ""]);
  assert.match(err, /^w\.test\.yaml:3:\d+: cases\[0\]\.expect\.outt: .*did you mean "out"/m);
  const json = await tested(cases, { args: ["--json"] });
  assert.equal(JSON.parse(json.out).file, "w.test.yaml");
  assert.match(
    (await tested(cases, { workflow: SUMS.replace("stdout", "stdou") })).err,
    /^w\.yaml:8:\d+: sinks\[0\]/m,
  );
});

Deno.test("code that a document names runs in its tests, too", () =>
  passes(`  - { name: ref, input: [ { value: 1 }, { value: 2 } ], expect: { sink: [ 2, 4 ] } }`, {
    workflow:
      `name: w\nsource: { type: stdin }\npipeline: [ { id: a, type: map, map: { ref: ./ops.ts#twice } } ]\nsink: { type: stdout }\n`,
    files: { "ops.ts": "export const twice = (n: number): number => 2 * n;" },
  }));
