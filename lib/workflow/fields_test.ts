import assert from "node:assert/strict";
import { parsed, pipeline, problemsOf, specOf } from "./kit_test.ts";
import { MailerError } from "../errors.ts";
import { problemText } from "./problem.ts";
import { parseWorkflow } from "./validate.ts";

/** Problems of one operator behind a keyBy, as `path code` inside it. */
function inOperator(line: string): string[] {
  const text = pipeline("  - { id: k, type: keyBy, keyBy: { field: a } }", `  - { id: x, ${line} }`);
  return parsed(text).problems.map(({ path, code }) => `${path.replace("pipeline[1].", "")} ${code}`)
    .filter((problem) => !problem.startsWith("sink after_window"));
}

function inWindow(block: string): string[] {
  const text = pipeline(
    "  - { id: k, type: keyBy, keyBy: { field: a } }",
    `  - { id: w, type: window, window: ${block} }`,
    "  - { id: n, type: reduce, reduce: { function: count } }",
  );
  return parsed(text).problems.map(({ path, code }) => `${path.replace("pipeline[1].window", "")} ${code}`);
}

Deno.test("blocks of operators, right and wrong", () => {
  const table: [line: string, ...problems: string[]][] = [
    ["type: filter, filter: { field: a, operator: equals, value: null }"],
    ["type: filter, filter: { field: a, operator: equals, value: 9007199254740993 }"],
    ["type: filter, filter: { field: a, operator: exists }"],
    ["type: filter, filter: { field: 'a.b[0].\"odd name\".c', operator: exists }"],
    ["type: filter, filter: { field: a, operator: equals }", "filter.value missing"],
    ["type: filter, filter: { field: a }", "filter.operator missing"],
    ["type: filter, filter: { operator: exists }", "filter.field missing"],
    ["type: filter, filter: {}", "filter.field missing"],
    ["type: filter, filter: { where: 'true', field: a, operator: exists }", "filter.field excluded"],
    ["type: filter, filter: { field: a, operator: exists, where: 'true' }", "filter.where excluded"],
    ["type: filter, filter: { value: 1, where: 'true' }", "filter.where excluded"],
    ["type: filter, filter: { field: a, operator: greater_than, value: [1] }", "filter.value bad_value"],
    ["type: filter, filter: { field: a, operator: less_than, value: 1.5e400 }"],
    ["type: filter, filter: { field: a, operator: contains, value: [1] }"],
    ["type: filter, filter: { field: 'a..b', operator: exists }", "filter.field invalid_path"],
    ["type: filter, filter: { field: 'a[x]', operator: exists }", "filter.field invalid_path"],
    ["type: filter, filter: { field: 5, operator: exists }", "filter.field wrong_type"],
    ["type: filter, filter: { field: '', operator: exists }", "filter.field invalid_path"],
    ["type: filter, filter: null", "filter wrong_type"],
    ["type: filter", "filter missing"],
    ["type: filter, filter: { where: 'true', parallelism: 2 }"],
    [
      "type: filter, parallelism: 2, filter: { where: 'true', parallelism: 2 }",
      "filter.parallelism excluded",
    ],
    ["type: filter, parallelism: 0, filter: { where: 'true' }", "parallelism wrong_type"],
    ["type: dedupe, parallelism: 2, dedupe: { ttl: 1h }", "parallelism excluded"],
    ["type: map, map: { expr: '1', ref: x }", "map.ref excluded"],
    ["type: map, map: {}", "map.expr missing"],
    ["type: map, map: { ref: './ops.ts#a.b' }"],
    ["type: map, map: { ref: registered }"],
    ["type: map, map: { ref: './ops.ts' }", "map.ref wrong_type"],
    ["type: map, map: { ref: '#x' }", "map.ref wrong_type"],
    ["type: map, map: { expr: ' ' }", "map.expr wrong_type"],
    ["type: map, map: { expr: 5 }", "map.expr wrong_type"],
    ["type: explode, explode: { field: a }"],
    ["type: explode, explode: {}", "explode.field missing"],
    ["type: selectFields, selectFields: { fields: [] }", "selectFields.fields too_few"],
    ["type: selectFields, selectFields: { fields: a }", "selectFields.fields wrong_type"],
    ["type: selectFields, selectFields: { fields: [a, 1] }", "selectFields.fields[1] wrong_type"],
    ["type: renameFields, renameFields: { renames: [ { from: a } ] }", "renameFields.renames[0].to missing"],
    ["type: setFields, setFields: { sets: [ { field: a } ] }", "setFields.sets[0].value missing"],
    [
      "type: setFields, setFields: { sets: [ { field: a, value: 1, expr: '1' } ] }",
      "setFields.sets[0].expr excluded",
    ],
    ["type: setFields, setFields: { sets: [ { field: a, value: null } ] }"],
    [
      "type: timestamp, timestamp: { field: at, format: epochMilis }",
      "timestamp.format invalid_timestamp_format",
    ],
    ["type: timestamp, timestamp: { field: at, format: 'dd/MM/yyyy HH:mm' }"],
    ["type: timestamp, timestamp: { field: at, format: \"yyyy-MM-dd'T'HH:mm:ss.SSSX\" }"],
    [
      "type: timestamp, timestamp: { field: at, format: 'yyyy-MM-dd T HH' }",
      "timestamp.format invalid_timestamp_format",
    ],
    [
      "type: timestamp, timestamp: { field: at, format: 'HH:mm' }",
      "timestamp.format invalid_timestamp_format",
    ],
    ["type: validate, validate: { schema: [1] }", "validate.schema wrong_type"],
    ["type: keyBy, keyBy: { field: a, fields: [b] }", "keyBy.fields excluded"],
    ["type: keyBy, keyBy: {}", "keyBy.field missing"],
    ["type: keyBy, keyBy: { fields: [a, a] }", "keyBy.fields[1] duplicate"],
    ["type: keyBy, keyBy: { field: a, partitions: -1 }", "keyBy.partitions wrong_type"],
    ["type: keyBy, keyBy: { field: a, partitions: 1.5 }", "keyBy.partitions wrong_type"],
    ["type: keyBy, keyBy: { field: a, partitions: '4' }", "keyBy.partitions wrong_type"],
    ["type: reduce, reduce: { function: sum }", "reduce.field missing"],
    ["type: reduce, reduce: { function: median }", "reduce.function unknown_value"],
    ["type: reduce, reduce: {}", "reduce.function missing"],
    ["type: aggregate, aggregate: { functions: [] }", "aggregate.functions too_few"],
    [
      "type: aggregate, aggregate: { functions: [ { function: percentile, field: x } ] }",
      "aggregate.functions[0].p missing",
    ],
    [
      "type: aggregate, aggregate: { functions: [ { function: percentile, field: x, p: 101 } ] }",
      "aggregate.functions[0].p wrong_type",
    ],
    [
      "type: aggregate, aggregate: { functions: [ { function: percentile, field: x, p: 0 } ] }",
      "aggregate.functions[0].p wrong_type",
    ],
    [
      "type: aggregate, aggregate: { functions: [ { function: sum } ] }",
      "aggregate.functions[0].field missing",
    ],
    [
      "type: aggregate, aggregate: { functions: [ { function: sum, field: x, p: 5 } ] }",
      "aggregate.functions[0].p unknown_key",
    ],
    ["type: aggregate, aggregate: { functions: [ { as: x } ] }", "aggregate.functions[0].function missing"],
    [
      "type: aggregate, aggregate: { functions: [ { function: topN, n: 0, by: x } ] }",
      "aggregate.functions[0].n wrong_type",
    ],
    ["type: aggregate, aggregate: { functions: [ { function: collect } ] }"],
    ["type: dedupe, dedupe: { ttl: 0s }", "dedupe.ttl wrong_type"],
    ["type: dedupe, dedupe: { ttl: 5 }", "dedupe.ttl wrong_type"],
    ["type: dedupe, dedupe: {}", "dedupe.ttl missing"],
    ["type: throttle, throttle: { rate: 0 }", "throttle.rate wrong_type"],
    ["type: throttle, throttle: { rate: 0.5, per: 1m }"],
    ["type: sample, sample: { ratio: 1.1 }", "sample.ratio wrong_type"],
    ["type: sample, sample: { ratio: 1 }"],
    ["type: batch, batch: {}", "batch.size missing"],
    ["type: batch, batch: { every: 1s }"],
    ["type: http, http: { url: 'ftp://x' }", "http.url wrong_type"],
    ["type: http, http: { urlExpr: 'value.u', headers: { a: 1 } }", "http.headers.a wrong_type"],
    ["type: map, map: { expr: '1' }, onError: ignore", "onError unknown_value"],
    ["type: map, map: { expr: '1' }, retry: { attempts: 0 }", "retry.attempts wrong_type"],
    ["type: map, map: { expr: '1' }, retry: {}"],
  ];
  for (const [line, ...problems] of table) assert.deepEqual(inOperator(line), problems, line);
});

Deno.test("S12: windows by their names and lengths, right and wrong", () => {
  const table: [block: string, ...problems: string[]][] = [
    ["{ type: tumbling, size: 1h30m }"],
    ["{ type: tumbling, size: 1d, timezone: Asia/Kolkata, offset: 9h }"],
    ["{ type: tumbling, size: 2w }"],
    ["{ type: tumbling, size: 3mo }"],
    ["{ type: sliding, size: 1mo, slide: 1d }"],
    ["{ type: sliding, size: 1m, slide: 1m, offset: -5s }"],
    ["{ type: session, gap: 30m, allowedLateness: 0 }"],
    ["{ type: count, size: 10, slide: 10 }"],
    ["{ type: global }"],
    ["{ type: global, trigger: { every: 5 } }"],
    ["{ type: tumbling, size: 1m, trigger: { early: 10s }, time: processing, idleTimeout: 3m, label: x }"],
    ["{ type: tumbling }", ".size missing"],
    ["{ type: tumbling, size: 1d12h }", ".size wrong_type"],
    ["{ type: tumbling, size: 1.5d }", ".size wrong_type"],
    ["{ type: tumbling, size: 0d }", ".size wrong_type"],
    ["{ type: tumbling, size: 0s }", ".size wrong_type"],
    ["{ type: tumbling, size: 1.5ms }", ".size wrong_type"],
    ["{ type: tumbling, size: 60 }", ".size wrong_type"],
    ["{ type: tumbling, size: 5 minutes }", ".size wrong_type"],
    ["{ type: tumbling, size: 1y }", ".size wrong_type"],
    ["{ type: tumbling, size: 1m, slide: 1m }", ".slide unknown_key"],
    ["{ type: tumbling, size: 1m, every: 1m }", ".every unknown_key"],
    ["{ type: sliding, size: 1m }", ".slide missing"],
    ["{ type: sliding, size: 1m, slide: 2m }", ".slide bad_value"],
    ["{ type: sliding, size: 1w, slide: 8d }", ".slide bad_value"],
    ["{ type: sliding, size: 1d, slide: 1h }", ".slide bad_value"],
    ["{ type: session }", ".gap missing"],
    ["{ type: session, gap: 0s }", ".gap wrong_type"],
    ["{ type: session, gap: 1m, size: 1m }", ".size unknown_key"],
    ["{ type: count, size: 1m }", ".size wrong_type"],
    ["{ type: count, size: 0 }", ".size wrong_type"],
    ["{ type: count, size: 2, slide: 3 }", ".slide bad_value"],
    ["{ type: count, size: 2, timezone: UTC }", ".timezone unknown_key"],
    ["{ type: count, size: 2, allowedLateness: 1s }", ".allowedLateness unknown_key"],
    ["{ type: tumbling, size: 1m, trigger: {} }", ".trigger.early missing"],
    ["{ type: tumbling, size: 1m, trigger: { early: 1s, every: 5 } }", ".trigger.every excluded"],
    ["{ type: tumbling, size: 1m, allowedLateness: -1s }", ".allowedLateness wrong_type"],
    ["{ type: tumbling, size: 1m, time: evnt }", ".time unknown_value"],
    ["{ size: 1m }", ".type missing"],
    ["{ type: hopping, size: 1m }", ".type unknown_value"],
  ];
  for (const [block, ...problems] of table) assert.deepEqual(inWindow(block), problems, block);
});

Deno.test("L5, Z7: lateness is zero and the zone is UTC unless a window says otherwise", () => {
  const text = (block: string) =>
    pipeline(
      "  - { id: k, type: keyBy, keyBy: { field: a } }",
      `  - { id: w, type: window, window: ${block} }`,
      "  - { id: n, type: reduce, reduce: { function: count } }",
    );
  const [, plain] = specOf(text("{ type: tumbling, size: 1d }")).operators;
  assert.deepEqual(plain?.type === "window" && plain.window, {
    type: "tumbling",
    size: { kind: "calendar", unit: "day", count: 1 },
    offset: 0,
    time: "event",
    allowedLateness: 0,
    timezone: "UTC",
  });
  const [, zoned] =
    specOf(text("{ type: sliding, size: 24h, slide: 90s, timezone: Europe/Berlin, allowedLateness: 1m }"))
      .operators;
  assert.deepEqual(zoned?.type === "window" && zoned.window, {
    type: "sliding",
    size: { kind: "fixed", ms: 86_400_000 },
    slide: { kind: "fixed", ms: 90_000 },
    offset: 0,
    time: "event",
    allowedLateness: 60_000,
    timezone: "Europe/Berlin",
  });
});

Deno.test("Z7: a zone that does not exist is a problem, with the one that was probably meant", () => {
  const text = pipeline(
    "  - { id: k, type: keyBy, keyBy: { field: a } }",
    "  - { id: w, type: window, window: { type: tumbling, size: 1d, timezone: Europe/Berln } }",
    "  - { id: n, type: reduce, reduce: { function: count } }",
  );
  const [problem, ...others] = parsed(text).problems;
  assert.deepEqual(others, []);
  assert.equal(
    problemText(problem!),
    'flow.yaml:5:74: pipeline[1] "w".window.timezone: "Europe/Berln" is not a time zone (did you mean "Europe/Berlin"?)',
  );
});

Deno.test("blocks of sources and sinks, right and wrong", () => {
  const kafka = (more: string) => `{ type: kafka, kafka: { brokers: [b:1], ${more} } }`;
  const sources: [source: string, ...problems: string[]][] = [
    ["{ type: file, file: { path: a, format: csv, csv: { types: { n: number }, delimiter: ';', nulls: [NA] } } }"],
    ["{ type: file, file: { path: a, csv: { delimiter: ';' } } }", "source.file.csv excluded"],
    [
      "{ type: file, file: { path: a, format: csv, csv: { delimiter: ';;' } } }",
      "source.file.csv.delimiter wrong_type",
    ],
    [
      "{ type: file, file: { path: a, format: csv, csv: { types: { n: int } } } }",
      "source.file.csv.types.n unknown_value",
    ],
    ["{ type: file, file: { path: a, maxLineBytes: 64KiB } }"],
    ["{ type: file, file: { path: a, maxLineBytes: 64K } }", "source.file.maxLineBytes wrong_type"],
    ["{ type: file, file: { path: a, maxLineBytes: 0 } }", "source.file.maxLineBytes wrong_type"],
    ["{ type: file, file: { path: '' } }", "source.file.path wrong_type"],
    ["{ type: file, onError: retry, file: { path: a } }", "source.onError unknown_value"],
    ["{ type: file, file: { path: a }, timestamp: { format: auto } }", "source.timestamp.field missing"],
    [
      "{ type: file, file: { path: a }, watermark: { idleTimeout: 0s } }",
      "source.watermark.idleTimeout wrong_type",
    ],
    ["{ type: stdin }"],
    ["{ type: stdin, stdin: {} }"],
    ["{ type: slice }", "source.records missing"],
    ["{ type: slice, records: [] }"],
    ["{ type: slice, records: [ { key: a } ] }", "source.records[0].value missing"],
    ["{ type: slice, records: [ { value: { a: 1 } } ] }"],
    ["{ type: slice, slice: { records: [] } }", "source.records missing", "source.slice unknown_key"],
    ["{ type: file, file: { path: a }, records: [] }", "source.records unknown_key"],
    ["{ type: nats, nats: {} }", "source.type unknown_type"],
    ["{ file: { path: a } }", "source.type missing"],
    [kafka("topic: t, groupID: g")],
    [kafka("topics: [a, b], parallel: true")],
    [kafka("groupID: g"), "source.kafka.topic missing"],
    [kafka("topic: t, topics: [a], groupID: g"), "source.kafka.topics excluded"],
    [kafka("topic: t"), "source.kafka.groupID missing"],
    [kafka("topic: t, groupID: g, parallel: true"), "source.kafka.groupID excluded"],
    [kafka("topic: t, groupID: 5"), "source.kafka.groupID wrong_type"],
    [kafka("topic: t, groupID: g, deserialize: ''")],
    [kafka("topic: t, groupID: g, deserialize: avro, schemaRegistry: { url: 'http://r:8081' }")],
    [kafka("topic: t, groupID: g, deserialize: avro"), "source.kafka.schemaRegistry missing"],
    [
      kafka("topic: t, groupID: g, schemaRegistry: { url: 'http://r' }, readerSchema: { type: int }"),
      "source.kafka.schemaRegistry excluded",
      "source.kafka.readerSchema excluded",
    ],
    [
      kafka("topic: t, groupID: g, deserialize: avro, schemaRegistry: { url: 'r:8081' }"),
      "source.kafka.schemaRegistry.url wrong_type",
    ],
    [
      kafka("topic: t, groupID: g, deserialize: avro, schemaRegistry: { url: 'http://u:p@r' }"),
      "source.kafka.schemaRegistry.url wrong_type",
    ],
    [
      kafka("topic: t, groupID: g, deserialize: avro, schemaRegistry: { url: 'http://r', username: u }"),
      "source.kafka.schemaRegistry.password missing",
    ],
    [
      kafka(
        "topic: t, groupID: g, deserialize: avro, schemaRegistry: { url: 'http://r', username: u, password: p, token: t }",
      ),
      "source.kafka.schemaRegistry.token excluded",
    ],
    ["{ type: file, file: { path: a, deserialize: avro } }", "source.file.deserialize unknown_value"],
    [kafka("topic: t, groupID: g, tls: { certFile: a }"), "source.kafka.tls.keyFile missing"],
    [
      kafka("topic: t, groupID: g, sasl: { mechanism: PLAIN, username: u, password: p }"),
      "source.kafka.sasl.mechanism unknown_value",
    ],
    [
      kafka("topic: t, groupID: g, watermark: { maxOutOfOrderness: 1s }").replace(
        "{ type",
        "{ watermark: {}, type",
      ),
      "source.watermark excluded",
    ],
  ];
  for (const [source, ...problems] of sources) {
    const found = problemsOf(`name: t\nsource: ${source}\nsink: { type: stdout }\n`);
    assert.deepEqual(found.map((text) => text.replace(/^\d+ /, "")), problems, source);
  }
  const postgres = (more: string) =>
    `{ type: postgres, postgres: { dsn: 'postgres://h/d', table: t, ${more} } }`;
  const avro = (more: string) =>
    `{ type: kafka, kafka: { brokers: [b:1], topic: t, serialize: avro, schemaRegistry: { url: 'https://r' }${more} } }`;
  const sinks: [sink: string, ...problems: string[]][] = [
    ["{ type: stdout, stdout: {} }"],
    ["{ type: stdout, stdout: { a: 1 } }", "sink.stdout.a unknown_key"],
    ["{ type: file, file: { path: a, rollSize: 64MiB, rollEvery: 1h, append: true } }"],
    ["{ type: file, file: { path: a/ } }", "sink.file.path wrong_type"],
    ["{ type: kafka, kafka: { brokers: [], topic: t } }", "sink.kafka.brokers too_few"],
    ["{ type: kafka, kafka: { brokers: [b:1], topic: 'a b' } }", "sink.kafka.topic wrong_type"],
    [
      "{ type: kafka, kafka: { brokers: [b:1], topic: t, onError: dlq } }",
      "sink.kafka.onError unknown_value",
    ],
    [
      "{ type: kafka, onError: drop, kafka: { brokers: [b:1], topic: t, onError: drop } }",
      "sink.kafka.onError excluded",
    ],
    [avro("")],
    [avro(", schema: { type: record, name: R, fields: [] }, subject: s, autoRegister: false")],
    [avro(", schema: [int]"), "sink.kafka.schema wrong_type"],
    [avro("").replace(/, schemaRegistry.*?\}/, ""), "sink.kafka.schemaRegistry missing"],
    [
      avro(", schema: { type: int }, subject: s, autoRegister: true").replace("avro", "json"),
      "sink.kafka.schemaRegistry excluded",
      "sink.kafka.schema excluded",
      "sink.kafka.subject excluded",
      "sink.kafka.autoRegister excluded",
    ],
    [postgres("mapping: { a.b: c }")],
    [postgres("mapping: {}"), "sink.postgres.mapping too_few"],
    [postgres("mapping: { 'a..b': c }"), 'sink.postgres.mapping["a..b"] invalid_path'],
    [postgres("mapping: { a: c, b: c }"), "sink.postgres.mapping.b duplicate"],
    [postgres("mapping: { a: a }, mode: upsert"), "sink.postgres.conflictColumns missing"],
    [postgres("mapping: { a: a }, conflictColumns: [a]"), "sink.postgres.conflictColumns excluded"],
    [
      postgres("mapping: { a: a }, mode: upsert, conflictColumns: [b]"),
      "sink.postgres.conflictColumns[0] unknown_column",
    ],
    [postgres("mapping: { a: a, b: b }, mode: upsert, conflictColumns: [a], updateColumns: [b]")],
    [postgres("mapping: { a: a }").replace("table: t", "table: 'a.b.c'"), "sink.postgres.table wrong_type"],
  ];
  for (const [sink, ...problems] of sinks) {
    const found = problemsOf(`name: t\nsource: { type: stdin }\nsink: ${sink}\n`);
    assert.deepEqual(found.map((text) => text.replace(/^\d+ /, "")), problems, sink);
  }
});

Deno.test("env, right and wrong", () => {
  const table: [env: string, ...problems: string[]][] = [
    [""],
    ["{}"],
    ["{ bufferSize: 0, shutdownTimeout: 45s, bufferBytes: 16MiB }"],
    ["{ bufferSize: -1 }", "env.bufferSize wrong_type"],
    ["{ checkpointing: {} }", "env.checkpointing.interval missing"],
    ["{ checkpointing: { interval: 0s } }", "env.checkpointing.interval wrong_type"],
    [
      "{ checkpointing: { interval: 1s, retainCompleted: 0 } }",
      "env.checkpointing.retainCompleted wrong_type",
    ],
    ["{ state: {} }", "env.state.backend missing"],
    ["{ state: { backend: '' } }", "env.state.backend unknown_value"],
    ["{ state: { backend: rocksdb } }", "env.state.backend unknown_value"],
    ["{ state: { backend: pebble, dir: x } }"],
    ["{ restart: {} }"],
    ["{ restart: { delay: 5m } }", "env.restart.delay bad_value"],
    ["[]", "env wrong_type"],
  ];
  for (const [env, ...problems] of table) {
    const found = problemsOf(`name: t\nenv: ${env}\nsource: { type: stdin }\nsink: { type: stdout }\n`);
    assert.deepEqual(found.map((text) => text.replace(/^\d+ /, "")), problems, env);
  }
});

Deno.test("defaults are filled in, durations are milliseconds, sizes bytes", () => {
  const spec = specOf(`name: t
env: { bufferSize: 0, restart: { attempts: 5 } }
source: { type: file, file: { path: a }, watermark: { maxOutOfOrderness: 5s } }
pipeline:
  - { id: r, type: map, onError: retry, map: { expr: value } }
  - { id: s, type: map, retry: { attempts: 7 }, onError: drop, map: { expr: value } }
  - { id: e, type: explode, explode: { field: items } }
sink: { type: kafka, kafka: { brokers: [b:1], topic: t, onError: drop } }
`);
  assert.deepEqual(spec.env, {
    bufferSize: 1024,
    shutdownTimeout: 30_000,
    restart: { attempts: 5, delay: 1000, maxDelay: 60_000 },
  });
  const [source] = spec.sources;
  assert.deepEqual(source, {
    id: "source",
    place: { line: 3, column: 1 },
    path: "source",
    type: "file",
    watermark: { maxOutOfOrderness: 5000, interval: 200 },
    hasEventTime: true,
    onError: "fail",
    file: {
      path: "a",
      format: "ndjson",
      compression: "auto",
      follow: false,
      csv: { types: {}, delimiter: ",", nulls: [""] },
      maxLineBytes: 1_048_576,
      deserialize: "json",
    },
  });
  const [retried, dropped, exploded] = spec.operators;
  assert.deepEqual([retried?.onError, retried?.retry], ["fail", { attempts: 3, delay: 1000 }]);
  assert.deepEqual([dropped?.onError, dropped?.retry], ["drop", { attempts: 7, delay: 1000 }]);
  assert.deepEqual(exploded?.type === "explode" && exploded.explode, { field: "items", as: "items" });
  const [sink] = spec.sinks;
  assert.deepEqual([sink?.onError, sink?.type === "kafka" && sink.kafka.batchTimeout], ["drop", 1000]);
  assert.ok(sink?.type === "kafka" && !("onError" in sink.kafka));
});

Deno.test("avro's passwords are secrets, and the file of its schema is looked for", () => {
  const text = `name: t
source: { type: stdin }
sink:
  type: kafka
  kafka:
    brokers: [b:1]
    topic: t
    serialize: avro
    schemaRegistry: { url: "http://r", username: ann, password: "\${PW}" }
    schema: absent.avsc
`;
  const { spec, secrets } = parsed(text, { env: { PW: "sesame-sesame" } });
  assert.ok(spec?.sinks[0]?.type === "kafka");
  assert.deepEqual(spec.sinks[0].kafka.schemaRegistry, {
    url: "http://r",
    username: "ann",
    password: "sesame-sesame",
  });
  assert.ok(secrets.includes("sesame-sesame"));
  const read = (content: string | undefined) =>
    parseWorkflow(text, {
      file: "flow.yaml",
      resolveSecret: () => "sesame-sesame",
      readFile: () => {
        if (content === undefined) throw new MailerError("x", "not there");
        return content;
      },
    }).problems.map(problemText);
  const at = "flow.yaml:10:13: sink.kafka.schema";
  assert.deepEqual(read('{"type":"int"}'), []);
  assert.deepEqual(read("int"), [`${at}: the file "absent.avsc" is not an Avro schema (a JSON object)`]);
  assert.deepEqual(read(undefined), [`${at}: the file "absent.avsc" cannot be read: not there`]);
});

Deno.test("kafka's own watermark block is the source's", () => {
  const spec = specOf(`name: t
source: { type: kafka, kafka: { brokers: [b:1], topic: t, groupID: g, watermark: { maxOutOfOrderness: 20s, interval: 1s } } }
sink: { type: stdout }
`);
  const [source] = spec.sources;
  assert.deepEqual(source?.watermark, { maxOutOfOrderness: 20_000, interval: 1000 });
  assert.deepEqual(source?.type === "kafka" && source.kafka.topics, ["t"]);
  assert.ok(source?.type === "kafka" && !("watermark" in source.kafka) && !("topic" in source.kafka));
});

Deno.test("values of a document are data: __proto__ and numbers come through as they are", () => {
  const spec = specOf(pipeline(
    "  - { id: a, type: filter, filter: { field: a, operator: equals, value: 9007199254740993 } }",
    "  - { id: b, type: setFields, setFields: { sets: [ { field: b, value: { __proto__: { x: 1 }, constructor: 2 } } ] } }",
  ));
  const [filter, set] = spec.operators;
  assert.equal(filter?.type === "filter" && filter.filter.value, 9007199254740993n);
  const value = set?.type === "setFields" ? set.setFields.sets[0]!.value as object : {};
  assert.deepEqual(Object.keys(value), ["__proto__", "constructor"]);
  assert.deepEqual(problemsOf(pipeline("  - { id: a, type: __proto__, __proto__: {} }")), [
    "4 pipeline[0].type unknown_type",
  ]);
  assert.deepEqual(problemsOf("__proto__: 1\n" + pipeline()), ["1 __proto__ unknown_key"]);
  assert.deepEqual(problemsOf("env: { constructor: 1 }\n" + pipeline()), ["1 env.constructor unknown_key"]);
});
