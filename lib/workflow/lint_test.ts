import assert from "node:assert/strict";
import { parsed, pipeline } from "./kit_test.ts";
import { lintWorkflow } from "./lint.ts";
import { problemText } from "./problem.ts";

function warnings(text: string): string[] {
  const { spec, tree, problems } = parsed(text);
  assert.ok(spec, problems.map(problemText).join("\n"));
  return lintWorkflow(spec, tree!).map(({ line, path, code }) => `${line} ${path} ${code}`);
}

const KEY = "  - { id: k, type: keyBy, keyBy: { field: a } }";
const COUNT = "  - { id: n, type: reduce, reduce: { function: count } }";
const window = (block: string) => `  - { id: w, type: window, window: ${block} }`;

Deno.test("a document that is as it should be has no warnings", () => {
  assert.deepEqual(warnings(pipeline("  - { id: f, type: filter, filter: { where: 'true' } }")), []);
  const late = pipeline(KEY, window("{ type: tumbling, size: 1m }"), COUNT)
    .replace("sink: {", "sinks: [ { id: late, from: w.late, type: stdout }, { id: rows, ").replace(
      "stdout }\n",
      "stdout } ]\n",
    );
  assert.deepEqual(warnings(late), []);
});

Deno.test("each warning stands where its reason is, with a remedy", () => {
  const table: [text: string, ...warnings: string[]][] = [
    [
      pipeline(
        "  - { id: a, type: map, map: { expr: value } }",
        "  - { id: b, from: source, type: map, map: { expr: value } }",
      ),
      "4 pipeline[0] unread",
    ],
    [
      pipeline(
        "  - { id: r, type: route, route: { routes: [ { name: x, when: 'true' }, { name: y, when: 'true' } ] } }",
      ).replace("stdout", "stdout, from: r.x"),
      "4 pipeline[0] unread_output",
      "4 pipeline[0].route no_default",
    ],
    [
      pipeline("  - { id: p, type: process, process: { ref: x, outputs: [bad] } }"),
      "4 pipeline[0] unread_output",
    ],
    [pipeline(KEY, window("{ type: tumbling, size: 1m }"), COUNT), "5 pipeline[1].window no_lateness"],
    [
      pipeline(KEY, window("{ type: tumbling, size: 1m, allowedLateness: 0s }"), COUNT),
      "5 pipeline[1] unread_output",
    ],
    [
      pipeline(KEY, window("{ type: tumbling, size: 1m, allowedLateness: 5s, idleTimeout: 1m }"), COUNT),
      "5 pipeline[1] unread_output",
      "5 pipeline[1].window.idleTimeout idle_timeout",
    ],
    [
      pipeline(
        KEY,
        window("{ type: tumbling, size: 1m, time: processing, idleTimeout: 1m, allowedLateness: 5s }"),
        COUNT,
      ),
      "5 pipeline[1].window.allowedLateness unused",
    ],
    [
      pipeline(KEY, window("{ type: tumbling, size: 1m, allowedLateness: 5s }"), COUNT).replace(
        ", timestamp: { field: at }",
        "",
      ),
      "5 pipeline[1] unread_output",
      "5 pipeline[1] no_event_time",
    ],
    [
      pipeline(
        "  - { id: t, type: timestamp, timestamp: { field: at } }",
        KEY,
        window("{ type: tumbling, size: 1m, allowedLateness: 5s }"),
        COUNT,
      ).replace(", timestamp: { field: at }", ""),
      "6 pipeline[2] unread_output",
    ],
    [
      pipeline("  - { id: m, type: map, map: { expr: value } }").replace(
        "timestamp: {",
        "watermark: { interval: 1s }, timestamp: {",
      ),
      "2 source.watermark.interval unused",
    ],
    [
      "name: t\nsources: [ { name: a, source: { type: stdin, watermark: { interval: 1s } } } ]\nsink: { type: stdout }\n",
      "2 sources[0].source.watermark.interval unused",
    ],
    [
      "env: { checkpointing: { interval: 1s } }\nname: t\nsource: { type: kafka, kafka: { brokers: [b:1], topic: t, groupID: g, watermark: { interval: 1s, idleTimeout: 1s } } }\nsink: { type: stdout }\n",
      "3 source.kafka.watermark.interval unused",
    ],
    [pipeline(KEY, window("{ type: global }"), COUNT), "5 pipeline[1].window no_trigger"],
    [pipeline(KEY, window("{ type: count, size: 5 }"), COUNT)],
    [
      pipeline(KEY.replace("field: a", "field: a, partitions: 129")),
      "4 pipeline[0].keyBy.partitions many_partitions",
    ],
    [
      pipeline("  - { id: m, type: map, parallelism: 2, map: { expr: value } }"),
      "4 pipeline[0].parallelism loses_order",
    ],
    [
      pipeline("  - { id: m, type: map, map: { expr: value, parallelism: 2 } }"),
      "4 pipeline[0].map.parallelism loses_order",
    ],
    [
      pipeline("  - { id: m, type: filter, filter: { field: a, operator: exists, value: 1 } }"),
      "4 pipeline[0].filter.value unused",
    ],
    [pipeline(KEY, COUNT.replace("count }", "count, field: x }")), "5 pipeline[1].reduce.field unused"],
    [
      pipeline("  - { id: m, type: map, onError: drop, map: { expr: value } }"),
      "4 pipeline[0].onError drops",
    ],
    [pipeline() + "dlq: { type: file, file: { path: x } }\n", "6 dlq unused_dlq"],
    [
      "env: { state: { backend: pebble } }\n" + pipeline(),
      "1 env.state no_checkpointing",
      "1 env.state.backend pebble",
    ],
    [
      "name: t\nsource: { type: kafka, watermark: {}, kafka: { brokers: [b:1], topic: t, groupID: g } }\nsink: { type: stdout, onError: drop }\n",
      "2 source no_checkpointing",
      "2 source.watermark no_idle_timeout",
      "3 sink.onError drops",
    ],
  ];
  for (const [text, ...expected] of table) assert.deepEqual(warnings(text), expected, text);
});

Deno.test("a warning reads like a problem, with the ids of its nodes", () => {
  const { spec, tree } = parsed(
    pipeline(KEY, window("{ type: tumbling, size: 1m, idleTimeout: 1m, allowedLateness: 1s }"), COUNT),
  );
  assert.equal(
    problemText(lintWorkflow(spec!, tree!)[1]!),
    'flow.yaml:5:64: pipeline[1] "w".window.idleTimeout: idleTimeout closes no window of event time early ' +
      "(set it on the source: watermark.idleTimeout)",
  );
});
