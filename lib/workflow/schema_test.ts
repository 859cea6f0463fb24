import assert from "node:assert/strict";
import Ajv2020 from "ajv/dist/2020.js";
import { COMPONENTS } from "./components/mod.ts";
import type { FieldType } from "./field_type.ts";
import { parsed, pipeline } from "./kit_test.ts";
import { problemText } from "./problem.ts";
import { valueOf } from "./reader.ts";
import { workflowSchema } from "./schema.ts";
import { documentAround } from "./template.ts";
import { parseTree } from "./yaml.ts";

// The package is CommonJS: its default export is the module.
const Ajv = Ajv2020 as unknown as typeof Ajv2020.default;
const accepts = new Ajv({ strict: true, strictTypes: false, strictRequired: false, allErrors: true }).compile(
  workflowSchema(),
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

Deno.test("the example of every component fits validation and the schema", () => {
  for (const component of COMPONENTS) {
    const text = documentAround(component, "plain");
    const { problems } = parsed(text);
    assert.deepEqual(problems.map(problemText), [], text);
    assert.ok(fitsSchema(text), `${component.type}: ${JSON.stringify(accepts.errors)}`);
  }
});

Deno.test("validation and schema agree on documents that are changed in one place", () => {
  const windowed = (window: string) =>
    pipeline(
      "  - { id: k, type: keyBy, keyBy: { field: a } }",
      `  - { id: w, type: window, window: ${window} }`,
      "  - { id: n, type: reduce, reduce: { function: count } }",
    );
  const one = (operator: string) => pipeline(`  - { id: x, ${operator} }`);
  const keyed = (operator: string) =>
    pipeline("  - { id: k, type: keyBy, keyBy: { field: a } }", `  - { id: x, ${operator} }`);
  const source = (text: string) => `name: t\nsource: ${text}\nsink: { type: stdout }\n`;
  const sink = (text: string) => `name: t\nsource: { type: stdin }\nsink: ${text}\n`;
  const table: [text: string, isRight: boolean][] = [
    [pipeline(), true],
    [pipeline().replace("name: t", "name: 5"), false],
    [pipeline().replace("name: t", "name: -t"), false],
    [pipeline() + "version: '1'\n", true],
    [pipeline() + "version: ''\n", true],
    [pipeline() + "version: '2'\n", false],
    [pipeline() + "extra: 1\n", false],
    [pipeline() + "env:\n", true],
    [pipeline() + "env: { bufferSize: 5 }\n", true],
    [pipeline() + "env: { bufferSize: 5.5 }\n", false],
    [pipeline() + "env: { bufferSise: 5 }\n", false],
    [pipeline() + "env: { shutdownTimeout: 5 }\n", false],
    [pipeline() + "env: { shutdownTimeout: 5s }\n", true],
    [pipeline() + "env: { shutdownTimeout: 0 }\n", true],
    [pipeline() + "env: { shutdownTimeout: -5s }\n", false],
    [pipeline() + "env: { bufferBytes: 16MiB }\n", true],
    [pipeline() + "env: { bufferBytes: 16M }\n", false],
    [pipeline() + "env: { state: { backend: pebble } }\n", true],
    [pipeline() + "env: { state: { backend: peble } }\n", false],
    [pipeline() + "env: { checkpointing: { dir: x } }\n", false],
    [pipeline() + "sinks: [ { id: a, type: stdout } ]\n", false],
    [pipeline() + "dlq: { type: file, file: { path: x } }\n", true],
    [pipeline() + "dlq: { type: stdout }\n", false],
    [
      pipeline().replace(
        "sink: { type: stdout }",
        "sinks: [ { id: a, type: stdout }, { id: b, type: blackhole } ]",
      ),
      true,
    ],
    [pipeline().replace("sink: { type: stdout }", "sinks: [ { type: stdout } ]"), false],
    [pipeline().replace("sink: { type: stdout }", "sinks: []"), false],
    [one("type: filter, filter: { where: 'true' }"), true],
    [one("type: filter, filter: { field: a, operator: equals, value: 1 }"), true],
    [one("type: filter, filter: { field: a, operator: equals, value: null }"), true],
    [one("type: filter, filter: { field: a, operator: equals }"), false],
    [one("type: filter, filter: { field: a, operator: exists }"), true],
    [one("type: filter, filter: { field: a, operator: exsts }"), false],
    [one("type: filter, filter: { field: a }"), false],
    [one("type: filter, filter: { where: 'true', field: a, operator: exists }"), false],
    [one("type: filter, filter: { where: 'true', value: 1 }"), false],
    [one("type: filter, filter: {}"), false],
    [one("type: filter"), false],
    [one("type: filter, filter: { where: 'true' }, map: { expr: '1' }"), false],
    [one("type: filtr, filtr: { where: 'true' }"), false],
    [one("filter: { where: 'true' }"), false],
    [one("type: map, map: { expr: value, ref: x }"), false],
    [one("type: map, map: { expr: value }, from: source"), true],
    [one("type: map, map: { expr: value }, from: [source]"), true],
    [one("type: map, map: { expr: value }, from: []"), false],
    [one("type: map, map: { expr: value }, from: 5"), false],
    [
      one(
        "type: map, map: { expr: value }, onError: drop, retry: { attempts: 2, delay: 1s }, parallelism: 2",
      ),
      true,
    ],
    [one("type: map, map: { expr: value }, onError: dorp"), false],
    [one("type: map, map: { expr: value }, parallelism: 0"), false],
    [one("type: setFields, setFields: { sets: [ { field: a, value: 1 }, { field: b, expr: '1' } ] }"), true],
    [one("type: setFields, setFields: { sets: [ { field: a } ] }"), false],
    [one("type: setFields, setFields: { sets: [ { field: a, value: 1, expr: '1' } ] }"), false],
    [one("type: setFields, setFields: { sets: [] }"), false],
    [one("type: keyBy, keyBy: { fields: [a, b] }"), true],
    [one("type: keyBy, keyBy: { field: a, expr: '1' }"), false],
    [one("type: sample, sample: { ratio: 1.5 }"), false],
    [one("type: throttle, throttle: { rate: 0 }"), false],
    [one("type: batch, batch: {}"), false],
    [one("type: batch, batch: { size: 5 }"), true],
    [keyed("type: reduce, reduce: { function: count }"), true],
    [keyed("type: reduce, reduce: { function: sum }"), false],
    [keyed("type: reduce, reduce: { function: sum, field: b }"), true],
    [keyed("type: aggregate, aggregate: { functions: [ { function: percentile, field: b, p: 95 } ] }"), true],
    [keyed("type: aggregate, aggregate: { functions: [ { function: percentile, field: b } ] }"), false],
    [keyed("type: aggregate, aggregate: { functions: [ { function: sum, field: b, p: 95 } ] }"), false],
    [keyed("type: aggregate, aggregate: { functions: [ { as: x } ] }"), false],
    [keyed("type: dedupe, dedupe: { ttl: 0s }"), false],
    [keyed("type: dedupe, dedupe: { ttl: 1h30m }"), true],
    [keyed("type: dedupe, dedupe: { ttl: 1h 30m }"), false],
    [windowed("{ type: tumbling, size: 1m }"), true],
    [windowed("{ type: tumbling, size: 1mo, timezone: UTC, offset: -1h }"), true],
    [windowed("{ type: tumbling, size: 1d12h }"), false],
    [windowed("{ type: tumbling, size: 60 }"), false],
    [windowed("{ type: tumbling, size: 0s }"), false],
    [windowed("{ type: tumbling, size: 1m, gap: 1m }"), false],
    [windowed("{ type: tumbling }"), false],
    [windowed("{ type: session, gap: 1m }"), true],
    [windowed("{ type: count, size: 1m }"), false],
    [windowed("{ type: count, size: 5, slide: 2 }"), true],
    [windowed("{ type: hopping, size: 1m }"), false],
    [windowed("{ size: 1m }"), false],
    [windowed("{ type: tumbling, size: 1m, trigger: { early: 1s, every: 1 } }"), false],
    [source("{ type: file, file: { path: a, format: csv, csv: { types: { n: number } } } }"), true],
    [source("{ type: file, file: { path: a, csv: {} } }"), false],
    [source("{ type: file, file: { path: a, format: ndjson, csv: {} } }"), false],
    [source("{ type: file }"), false],
    [source("{ type: stdin }"), true],
    [source("{ type: slice, records: [ { value: 1 } ] }"), true],
    [source("{ type: slice, records: [ { key: 1 } ] }"), false],
    [source("{ type: slice }"), false],
    [source("{ type: kafka, kafka: { brokers: [b:1], topic: t, groupID: g } }"), true],
    [source("{ type: kafka, kafka: { brokers: [b:1], topic: t } }"), false],
    [source("{ type: kafka, kafka: { brokers: [b:1], topic: t, parallel: true } }"), true],
    [source("{ type: kafka, kafka: { brokers: [b:1], topic: t, parallel: true, groupID: g } }"), false],
    [source("{ type: kafka, kafka: { brokers: [b:1], topic: t, topics: [u], groupID: g } }"), false],
    [source("{ type: kafka, brokers: [b:1], kafka: { topic: t, groupID: g } }"), false],
    [sink("{ type: postgres, postgres: { dsn: x, table: t, mapping: { a: a } } }"), true],
    [sink("{ type: postgres, postgres: { dsn: x, table: t, mapping: {} } }"), false],
    [sink("{ type: postgres, postgres: { dsn: x, table: t, mapping: { a: a }, mode: upsert } }"), false],
    [
      sink("{ type: postgres, postgres: { dsn: x, table: t, mapping: { a: a }, updateColumns: [a] } }"),
      false,
    ],
    [sink("{ type: stdout, stdout: {} }"), true],
    [sink("{ type: stdout, file: { path: a } }"), false],
    [sink("{ type: file, path: a }"), false],
  ];
  for (const [text, isRight] of table) {
    const { problems } = parsed(text);
    assert.equal(
      problems.length === 0,
      isRight,
      `validation: ${text}${problems.map(problemText).join("\n")}`,
    );
    assert.equal(fitsSchema(text), isRight, `schema: ${text}${JSON.stringify(accepts.errors)}`);
  }
});

Deno.test("S2: the schema accepts a reference wherever its value may be right", () => {
  const text = `name: "\${X}"
env: { bufferSize: "\${X}", shutdownTimeout: "\${X}", bufferBytes: "\${X}", state: { backend: "\${X}" } }
source: { type: kafka, kafka: { brokers: ["\${X}"], topic: t, groupID: g, exactlyOnce: "\${X}" } }
pipeline:
  - { id: k, type: keyBy, keyBy: { field: a, partitions: "\${X}" } }
  - { id: w, type: window, window: { type: tumbling, size: "\${X}", timezone: "\${X}" } }
  - { id: n, type: reduce, reduce: { function: "\${X}" } }
sink: { type: stdout }
`;
  assert.ok(fitsSchema(text), JSON.stringify(accepts.errors));
});

Deno.test("every field is described, and the schema accepts the defaults and examples it gives", () => {
  const schema = workflowSchema(), seen = new Set<string>();
  const look = (part: unknown): void => {
    if (typeof part !== "object" || part === null) return;
    const { default: standard, examples = [], description: _said, ...rest } = part as Record<string, unknown>;
    const values = [...standard === undefined ? [] : [standard], ...examples as unknown[]];
    const text = JSON.stringify(part);
    if (values.length > 0 && !seen.has(text)) {
      seen.add(text);
      const check = new Ajv({ strict: false }).compile({ ...rest, $defs: schema.$defs });
      for (const value of values) assert.ok(check(value), `${text}: ${JSON.stringify(value)}`);
    }
    for (const inner of Object.values(part)) look(inner);
  };
  look(schema);
  assert.ok(seen.size > 80, String(seen.size));
  let fields = 0;
  const describe = (type: FieldType): void => {
    if (type.kind === "list" || type.kind === "map") describe(type.of);
    const blocks = type.kind === "block"
      ? [type.fields]
      : type.kind === "variants"
      ? [type.common, ...Object.values(type.variants).map((variant) => variant.fields)]
      : [];
    for (const [name, field] of blocks.flatMap((block) => Object.entries(block))) {
      fields++;
      assert.match(field.summary, /^.*[^.\s]$/, `${name}: ${field.summary}`);
      describe(field.type);
    }
  };
  for (const { block, outer = {}, summary } of COMPONENTS) {
    assert.match(summary, /^[A-Z].*\.$/);
    if (block !== undefined) describe(block);
    for (const { type } of Object.values(outer)) describe(type);
  }
  assert.ok(fields > 150, String(fields));
});
