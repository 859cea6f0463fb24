import { parseFlow } from "./parse.ts";
import assert from "node:assert/strict";
import { problemText } from "../../workflow/problem.ts";
import { EVERYTHING, flowOf, nodes, nodesOf, parsed, problemsOf } from "./kit_test.ts";

const TASK = "{ id: a, type: task, kind: k }";

Deno.test("D2: defaults are filled in", () => {
  assert.deepEqual(flowOf(nodes(TASK)).definition, {
    name: "t",
    version: "1",
    start: "a",
    channels: {},
    nodes: [{ id: "a", type: "task", kind: "k", priority: 0, dynamic: [] }],
    budget: {},
    maxSteps: 1000,
    searchAttributes: {},
    onExpire: "archive",
    triggers: [],
  });
  const list = nodesOf(
    "{ id: a, type: task, kind: k, retry: { max_attempts: 2 }, next: f }",
    "{ id: f, type: fanout, branches: [b, c], next: j }",
    "{ id: b, type: subflow, flow: other }",
    "{ id: c, type: task, kind: http, with: { url: 'http://x' } }",
    "{ id: j, type: join, next: m }",
    "{ id: m, type: map, over: input.items, kind: k, next: n, max_parallel: 0 }",
    "{ id: n, type: map, over: input.items, flow: other, next: w }",
    "{ id: w, type: await, signal: s, timeout: 1s, next: v }",
    "{ id: v, type: await, signals: [s, t], timeout: 1s, next: x }",
    "{ id: x, type: choice, rules: [ { default: false, when: 'true', to: $end }, { default: true, to: y } ] }",
    "{ id: y, type: fail, message: no }",
  );
  const retry = {
    maxAttempts: 2,
    backoff: "fixed",
    delay: 1000,
    maxDelay: 300_000,
    jitter: 0,
    except: [],
  };
  assert.deepEqual(list, [
    { id: "a", type: "task", next: "f", kind: "k", retry, priority: 0, dynamic: [] },
    { id: "f", type: "fanout", next: "j", branches: ["b", "c"] },
    { id: "b", type: "subflow", flow: "other", onParentClose: "cancel" },
    {
      id: "c",
      type: "task",
      kind: "http",
      with: { method: "GET", url: "http://x", headers: {}, expect: [] },
      priority: 0,
      dynamic: [],
    },
    { id: "j", type: "join", next: "m", policy: "all" },
    { id: "m", type: "map", next: "n", over: "input.items", maxParallel: 100, kind: "k", priority: 0 },
    {
      id: "n",
      type: "map",
      next: "w",
      over: "input.items",
      maxParallel: 100,
      flow: "other",
      onParentClose: "cancel",
    },
    { id: "w", type: "await", next: "v", signals: ["s"], timeout: 1000, policy: "all" },
    { id: "v", type: "await", next: "x", signals: ["s", "t"], timeout: 1000, policy: "all" },
    { id: "x", type: "choice", rules: [{ when: "true", to: "$end" }, { default: true, to: "y" }] },
    { id: "y", type: "fail", message: "no" },
  ]);
});

Deno.test("every field arrives", () => {
  const { definition } = flowOf(EVERYTHING);
  const { nodes: list, ...rest } = definition;
  assert.deepEqual(rest, {
    name: "everything",
    version: "1",
    description: "all there is",
    start: "first",
    channels: {
      log: { reducer: "append", default: ["a"] },
      total: { reducer: "sum", default: 0 },
      seen: { reducer: "merge", default: { big: 9007199254740993n } },
      last: { reducer: "replace", default: null },
    },
    output: '{"total": channels.total, "turns": visits["first"]}',
    budget: { tokens: 100.5, steps: 50 },
    maxSteps: 200,
    searchAttributes: { customer: "input.customer", big: "input.amount > 100" },
    retention: 30 * 86_400_000,
    onExpire: "archive",
    archiveRetention: 8760 * 3_600_000,
    triggers: [{ subject: "orders.created" }, { subject: "orders.*", stream: "ORDERS" }],
    deadline: 36 * 3_600_000,
  });
  const { meta, ...first } = list[0]!;
  assert.equal(String(meta!.big), "12345678901234567890");
  assert.equal(String(meta!.exact), "0.1000000000000000000001");
  assert.deepEqual(first, {
    id: "first",
    type: "task",
    kind: "model",
    timeout: 30_000,
    heartbeat: 5000,
    retry: {
      maxAttempts: 4,
      backoff: "exponential",
      delay: 10_000,
      maxDelay: 3_600_000,
      jitter: 0.2,
      maxElapsed: 7_200_000,
      except: ["CardRefused", "timeout"],
    },
    outputSchema: { type: "object", properties: { n: { type: "integer" } }, required: ["n"] },
    cache: { ttl: 3_600_000 },
    concurrency: { key: "input.customer", max: 3 },
    rate: { max: 10, per: 60_000, key: "input.customer" },
    priority: 7,
    dynamic: ["ask", "first"],
    next: "ask",
    onFailure: "refused",
  });
  const at = (id: string) => list.find((node) => node.id === id)!;
  assert.deepEqual(at("c"), {
    id: "c",
    type: "task",
    kind: "http",
    with: {
      method: "POST",
      url: "https://example.com/{{ input.customer }}?n={{ {a: {b: 1}}.a.b }}",
      headers: { "x-total": "{{ channels.total }}" },
      body: { total: "channels.total", list: ["input.a", 1, true, null] },
      expect: [200, 404],
    },
    priority: 0,
    dynamic: [],
  });
  assert.deepEqual(at("votes"), {
    id: "votes",
    type: "join",
    next: "wait",
    onFailure: "refused",
    waitFor: ["a", "c"],
    policy: "quorum:1",
  });
  assert.deepEqual(at("nap"), { id: "nap", type: "sleep", next: "later", for: 5_400_000 });
  assert.deepEqual(at("both"), {
    id: "both",
    type: "await",
    next: "check",
    timeout: 3_600_000,
    signals: ["paid", "shipped"],
    policy: "any",
  });
});

Deno.test("D1: nothing of a definition can be changed", () => {
  const { definition } = flowOf(EVERYTHING);
  const open: string[] = [];
  const look = (value: unknown, path: string) => {
    if (typeof value !== "object" || value === null) return;
    if (!Object.isFrozen(value)) open.push(path);
    for (const [key, inner] of Object.entries(value)) look(inner, `${path}.${key}`);
  };
  look(definition, "flow");
  assert.deepEqual(open, []);
});

Deno.test("D3: durations are whole milliseconds, rounded up; max_delay is never below delay; one attempt is no retry", () => {
  const [a, b] = nodesOf(
    "{ id: a, type: task, kind: k, timeout: 1.5ms, retry: { max_attempts: 3, delay: 10m }, next: b }",
    "{ id: b, type: task, kind: k, retry: { max_attempts: 1, delay: 3s } }",
  );
  assert.ok(a?.type === "task" && b?.type === "task");
  assert.equal(a.timeout, 2);
  assert.equal(a.retry?.maxDelay, 600_000);
  assert.equal(b.retry, undefined);
});

Deno.test("the version may be written as a number, subjects may have wildcards", () => {
  assert.equal(flowOf("version: 1\n" + nodes(TASK)).hash, flowOf(nodes(TASK)).hash);
  assert.deepEqual(problemsOf("version: 2\n" + nodes(TASK)), ["1:10 version wrong_type"]);
  for (const subject of [">", "*", "a", "a.*.b", "a.>", "*.*.>"]) {
    flowOf(`triggers: [ { subject: "${subject}" } ]\n${nodes(TASK)}`);
  }
});

Deno.test("max_steps of 0 is the default", () => {
  assert.equal(flowOf("max_steps: 0\n" + nodes(TASK)).definition.maxSteps, 1000);
  assert.equal(flowOf("max_steps: 7\n" + nodes(TASK)).definition.maxSteps, 7);
});

Deno.test("what is wrong at the top of a flow", () => {
  const rest = `\nnodes: [ ${TASK} ]\n`;
  const table: [text: string, ...problems: string[]][] = [
    ["", "1:1  empty"],
    ["~", "1:1  empty"],
    ["- a", "1:1  wrong_type"],
    ["name: t", "1:1 nodes missing"],
    ["name: t\nnodes: []", "2:8 nodes too_few"],
    ["name: t\nnodes: { a: { type: task } }", "2:8 nodes wrong_type"],
    ["nodes: [ { id: a, type: task, kind: k } ]", "1:1 name missing"],
    [`name: t.u${rest}`, "1:7 name wrong_type"],
    [`name: ${"x".repeat(129)}${rest}`, "1:7 name wrong_type"],
    [`name: 5${rest}`, "1:7 name wrong_type"],
    [`name: t\nversion: "2"${rest}`, "2:10 version unknown_value"],
    [`name: t\nmaxSteps: 3${rest}`, "2:1 maxSteps unknown_key"],
    [`name: t\nretry: {}${rest}`, "2:1 retry unknown_key"],
    [`name: t\nname: u${rest}`, "2:1 name duplicate_key"],
    [`name: t\nmax_steps: -1${rest}`, "2:12 max_steps wrong_type"],
    [
      `name: t\nbudget: { a: 0, "b c": 1, d: x }${rest}`,
      "2:14 budget.a wrong_type",
      '2:17 budget["b c"] invalid_name',
      "2:30 budget.d wrong_type",
    ],
    [`name: t\nretention: -1s${rest}`, "2:12 retention wrong_type"],
    [`name: t\non_expire: delete${rest}`, "2:1 on_expire excluded"],
    [
      `name: t\nretention: 1h\non_expire: delete\narchive_retention: 1h${rest}`,
      "4:1 archive_retention excluded",
    ],
    [`name: t\nretention: 1h\non_expire: drop${rest}`, "3:12 on_expire unknown_value"],
    [`name: t\ndeadline: 0s${rest}`, "2:11 deadline wrong_type"],
    [`name: t\ndeadline: 30${rest}`, "2:11 deadline wrong_type"],
    [`name: t\noutput: 5${rest}`, "2:9 output wrong_type"],
    [`name: t\noutput: ""${rest}`, "2:9 output wrong_type"],
    [`name: t\nchannels: { a: { reducer: max } }${rest}`, "2:27 channels.a.reducer unknown_value"],
    [
      `name: t\nchannels: { a: { reducer: append, default: 1 } }${rest}`,
      "2:44 channels.a.default wrong_type",
    ],
    [
      `name: t\nchannels: { a: { reducer: merge, default: [] } }${rest}`,
      "2:43 channels.a.default wrong_type",
    ],
    [`name: t\nchannels: { a: { reducer: sum, default: "1" } }${rest}`, "2:41 channels.a.default wrong_type"],
    [`name: t\nchannels: { a.b: {} }${rest}`, '2:13 channels["a.b"] invalid_name'],
    [`name: t\nchannels: { a: }${rest}`, "2:16 channels.a wrong_type"],
    [
      `name: t\ntriggers: [ { subject: "a b" }, { stream: S } ]${rest}`,
      "2:24 triggers[0].subject wrong_type",
      "2:33 triggers[1].subject missing",
    ],
    ...["a..b", ".a", "a.", "a*.b", "a.>.b", "a b", ""].map((subject): [string, string] => [
      `name: t\ntriggers: [ { subject: "${subject}" } ]${rest}`,
      "2:24 triggers[0].subject wrong_type",
    ]),
    [`name: t\nstart: b${rest}`, "2:8 start unknown_node"],
    ["a: b: c", "1:4  syntax"],
    ["flow: x.yaml\ncases: []", "1:1  not_a_flow"],
    ["name: t\nsource: { type: stdin }\nsink: { type: stdout }", "1:1  not_a_flow"],
  ];
  for (const [text, ...problems] of table) assert.deepEqual(problemsOf(text), problems, text);
});

Deno.test("what is wrong with a node", () => {
  const table: [node: string, ...problems: string[]][] = [
    ["5", "3:5 nodes[0] wrong_type"],
    ["{ type: task, kind: k }", "3:5 nodes[0].id missing"],
    ["{ id: a.b, type: task, kind: k }", "3:11 nodes[0].id wrong_type"],
    ["{ id: a }", "3:5 nodes[0].type missing"],
    ["{ id: a, type: taks, kind: k }", "3:20 nodes[0].type unknown_value"],
    // task
    ["{ id: a, type: task }", "3:5 nodes[0].kind missing"],
    ["{ id: a, type: task, kind: k l }", "3:32 nodes[0].kind wrong_type"],
    ["{ id: a, type: task, kind: k, onFailure: b }", "3:35 nodes[0].onFailure unknown_key"],
    ["{ id: a, type: task, kind: k, signal: s }", "3:35 nodes[0].signal unknown_key"],
    ["{ id: a, type: task, kind: k, timeout: 0s }", "3:44 nodes[0].timeout wrong_type"],
    ["{ id: a, type: task, kind: k, timeout: 30 }", "3:44 nodes[0].timeout wrong_type"],
    [
      "{ id: a, type: task, kind: k, timeout: soon, heartbeat: -1s }",
      "3:44 nodes[0].timeout wrong_type",
      "3:61 nodes[0].heartbeat wrong_type",
    ],
    [
      "{ id: a, type: task, kind: k, retry: { max_attempts: 65 } }",
      "3:58 nodes[0].retry.max_attempts wrong_type",
    ],
    ["{ id: a, type: task, kind: k, retry: { backoff: linear } }", "3:44 nodes[0].retry.backoff excluded"],
    [
      "{ id: a, type: task, kind: k, retry: { max_attempts: 1, backoff: linear } }",
      "3:61 nodes[0].retry.backoff excluded",
    ],
    [
      "{ id: a, type: task, kind: k, retry: { max_attempts: 2, backoff: quadratic } }",
      "3:70 nodes[0].retry.backoff unknown_value",
    ],
    [
      "{ id: a, type: task, kind: k, retry: { max_attempts: 2, jitter: 1.5 } }",
      "3:69 nodes[0].retry.jitter wrong_type",
    ],
    [
      "{ id: a, type: task, kind: k, retry: { max_attempts: 2, except: [] } }",
      "3:69 nodes[0].retry.except too_few",
    ],
    ["{ id: a, type: task, kind: k, cache: {} }", "3:35 nodes[0].cache.ttl missing"],
    ["{ id: a, type: task, kind: k, cache: { ttl: 0s } }", "3:49 nodes[0].cache.ttl wrong_type"],
    [
      "{ id: a, type: task, kind: k, concurrency: { key: input.x, max: 0 } }",
      "3:69 nodes[0].concurrency.max wrong_type",
    ],
    ["{ id: a, type: task, kind: k, concurrency: { max: 2 } }", "3:35 nodes[0].concurrency.key missing"],
    ["{ id: a, type: task, kind: k, rate: { per: 1s } }", "3:35 nodes[0].rate.max missing"],
    ["{ id: a, type: task, kind: k, priority: 101 }", "3:45 nodes[0].priority wrong_type"],
    ["{ id: a, type: task, kind: k, meta: [1] }", "3:41 nodes[0].meta wrong_type"],
    ["{ id: a, type: task, kind: k, dynamic: [] }", "3:44 nodes[0].dynamic too_few"],
    ["{ id: a, type: task, kind: k, dynamic: [a, a] }", "3:48 nodes[0].dynamic[1] duplicate"],
    [
      "{ id: a, type: task, kind: k, output_schema: { type: obj } }",
      "3:35 nodes[0].output_schema bad_schema",
    ],
    [
      "{ id: a, type: task, kind: k, output_schema: { $ref: 'http://x/y' } }",
      "3:35 nodes[0].output_schema bad_schema",
    ],
    [
      "{ id: a, type: task, kind: k, output_schema: { $ref: '#/$defs/x' } }",
      "3:35 nodes[0].output_schema bad_schema",
    ],
    [
      "{ id: a, type: task, kind: k, output_schema: { pattern: '(?=x)' } }",
      "3:35 nodes[0].output_schema bad_schema",
    ],
    [
      "{ id: a, type: task, kind: k, output_schema: { $schema: 'http://json-schema.org/draft-04/schema#' } }",
      "3:35 nodes[0].output_schema bad_schema",
    ],
    ["{ id: a, type: task, kind: k, output_schema: text }", "3:50 nodes[0].output_schema wrong_type"],
    // built-in kinds
    ["{ id: a, type: task, kind: k, with: { url: x } }", "3:35 nodes[0].with excluded"],
    ["{ id: a, type: task, kind: http, with: {} }", "3:38 nodes[0].with.url missing"],
    [
      "{ id: a, type: task, kind: http, with: { url: x, body: 'input.a' } }",
      "3:60 nodes[0].with.body excluded",
    ],
    [
      "{ id: a, type: task, kind: http, with: { url: x, method: post } }",
      "3:62 nodes[0].with.method unknown_value",
    ],
    [
      "{ id: a, type: task, kind: http, with: { url: x, expect: [20] } }",
      "3:63 nodes[0].with.expect[0] wrong_type",
    ],
    [
      "{ id: a, type: task, kind: http, with: { url: x, heders: {} } }",
      "3:54 nodes[0].with.heders unknown_key",
    ],
    ["{ id: a, type: task, kind: emit, with: { value: input } }", "3:38 nodes[0].with.source missing"],
    ["{ id: a, type: task, kind: emit, with: { topic: t } }", "3:38 nodes[0].with.value missing"],
    [
      "{ id: a, type: task, kind: emit, with: { topic: t, source: s, value: input } }",
      "3:56 nodes[0].with.source excluded",
    ],
    ["{ id: a, type: task, kind: log, with: { message: 5 } }", "3:54 nodes[0].with.message wrong_type"],
    ["{ id: a, type: task, kind: log, with: text }", "3:43 nodes[0].with wrong_type"],
    // choice
    ["{ id: a, type: choice }", "3:5 nodes[0].rules missing"],
    ["{ id: a, type: choice, rules: [] }", "3:35 nodes[0].rules too_few"],
    [
      "{ id: a, type: choice, next: b, rules: [ { default: true, to: $end } ] }",
      "3:28 nodes[0].next unknown_key",
    ],
    ["{ id: a, type: choice, rules: [ { when: 'true', to: $end } ] }", "3:35 nodes[0].rules missing"],
    [
      "{ id: a, type: choice, rules: [ { default: true, to: $end }, { default: true, to: $end } ] }",
      "3:77 nodes[0].rules[1].default duplicate",
    ],
    [
      "{ id: a, type: choice, rules: [ { default: true, when: 'true', to: $end } ] }",
      "3:60 nodes[0].rules[0].when excluded",
    ],
    [
      "{ id: a, type: choice, rules: [ { to: $end }, { default: true, to: $end } ] }",
      "3:37 nodes[0].rules[0].when missing",
    ],
    ["{ id: a, type: choice, rules: [ { default: true } ] }", "3:37 nodes[0].rules[0].to missing"],
    [
      "{ id: a, type: choice, rules: [ { default: true, to: $ende } ] }",
      "3:58 nodes[0].rules[0].to wrong_type",
    ],
    [
      "{ id: a, type: choice, on_error: drop, rules: [ { default: true, to: $end } ] }",
      "3:38 nodes[0].on_error unknown_value",
    ],
    // fanout, join
    ["{ id: a, type: fanout, branches: [] }", "3:5 nodes[0].next missing", "3:38 nodes[0].branches too_few"],
    ["{ id: a, type: fanout, branches: [b, b], next: j }", "3:42 nodes[0].branches[1] duplicate"],
    [
      `{ id: a, type: fanout, branches: [${
        Array.from({ length: 257 }, (_, i) => `b${i}`).join(",")
      }], next: j }`,
      "3:38 nodes[0].branches too_many",
    ],
    ["{ id: a, type: join, policy: most }", "3:34 nodes[0].policy wrong_type"],
    ["{ id: a, type: join, policy: 'quorum:0' }", "3:34 nodes[0].policy wrong_type"],
    ["{ id: a, type: join, wait_for: [] }", "3:36 nodes[0].wait_for too_few"],
    ["{ id: a, type: join, wait_for: [b, b] }", "3:40 nodes[0].wait_for[1] duplicate"],
    // await
    ["{ id: a, type: await, timeout: 1h }", "3:5 nodes[0].signal missing"],
    ["{ id: a, type: await, signal: s }", "3:5 nodes[0].timeout missing"],
    ["{ id: a, type: await, signal: s, timeout: 0s }", "3:47 nodes[0].timeout wrong_type"],
    ["{ id: a, type: await, signal: s, signals: [t, u], timeout: 1h }", "3:38 nodes[0].signals excluded"],
    ["{ id: a, type: await, signal: s, policy: any, timeout: 1h }", "3:38 nodes[0].policy excluded"],
    ["{ id: a, type: await, signals: [s], timeout: 1h }", "3:36 nodes[0].signals too_few"],
    ["{ id: a, type: await, signals: [s, s], timeout: 1h }", "3:40 nodes[0].signals[1] duplicate"],
    ["{ id: a, type: await, signal: s, timeout: 1h, on_failure: b }", "3:51 nodes[0].on_failure unknown_key"],
    // map, subflow
    ["{ id: a, type: map, kind: k }", "3:5 nodes[0].over missing"],
    ["{ id: a, type: map, over: input.l }", "3:5 nodes[0].kind missing"],
    ["{ id: a, type: map, over: input.l, kind: k, flow: f }", "3:49 nodes[0].flow excluded"],
    ["{ id: a, type: map, over: input.l, kind: k, input: item }", "3:49 nodes[0].input excluded"],
    ["{ id: a, type: map, over: input.l, flow: f, timeout: 1s }", "3:49 nodes[0].timeout excluded"],
    [
      "{ id: a, type: map, over: input.l, kind: k, max_parallel: 257 }",
      "3:63 nodes[0].max_parallel wrong_type",
    ],
    ["{ id: a, type: map, over: input.l, kind: k, dynamic: [b] }", "3:49 nodes[0].dynamic unknown_key"],
    ["{ id: a, type: subflow }", "3:5 nodes[0].flow missing"],
    [
      "{ id: a, type: subflow, flow: f, on_parent_close: kill }",
      "3:55 nodes[0].on_parent_close unknown_value",
    ],
    // sleep, fail
    ["{ id: a, type: sleep }", "3:5 nodes[0].for missing"],
    ["{ id: a, type: sleep, for: 1h, until: input.at }", "3:36 nodes[0].until excluded"],
    ["{ id: a, type: sleep, for: -1h }", "3:32 nodes[0].for wrong_type"],
    ["{ id: a, type: fail }", "3:5 nodes[0].message missing"],
    ["{ id: a, type: fail, message: no, next: b }", "3:39 nodes[0].next unknown_key"],
  ];
  for (const [node, ...problems] of table) assert.deepEqual(problemsOf(nodes(node)), problems, node);
});

Deno.test("V1: all problems at once, in the order of the document; R1: one node hides nothing of another", () => {
  const text = `nmae: t
nodes:
  - { id: a, type: task, kind: k, timeot: 3s, next: b }
  - { id: b, type: choice, rules: [ { when: "input.a >", to: c }, { default: true, to: $end } ] }
  - { id: c, type: awiat }
  - { id: d, type: task, kind: k, next: elsewhere }
max_steps: many
`;
  assert.deepEqual(parsed(text).problems.map(problemText), [
    `flow.yaml:1:1: nmae: "nmae" is not known here (did you mean "name"?)`,
    `flow.yaml:1:1: name: needs name (for example name: order-saga)`,
    `flow.yaml:3:35: nodes[0] "a".timeot: "timeot" is not known here (did you mean "timeout"?)`,
    `flow.yaml:4:55: nodes[1] "b".rules[0].when: the expression ends where a value should follow`,
    `flow.yaml:5:20: nodes[2] "c".type: "awiat" is not known here, expected one of task, choice, fanout, join, await, map, subflow, sleep, fail (did you mean "await"?)`,
    `flow.yaml:6:41: nodes[3] "d".next: there is no node "elsewhere" (one of: a, b, c, d)`,
    `flow.yaml:7:12: max_steps: expected a whole number of at least 0, found "many"`,
  ]);
});

Deno.test("hints say where a field belongs", () => {
  const hint = (text: string) => parsed(text).problems.map((problem) => problem.hint);
  assert.deepEqual(hint(nodes("{ id: a, type: task, kind: k, signal: s }")), ["it belongs to type: await"]);
  assert.deepEqual(hint(`name: t\nretry: {}\nnodes: [ ${TASK} ]`), ["it belongs to a node, under nodes:"]);
  assert.deepEqual(hint(nodes("{ id: a, type: task, kind: htpp, with: {} }")), ['did you mean "http"?']);
  assert.deepEqual(hint(nodes("{ id: a, type: task, kind: k, with: {} }")), [
    "data for workers of your own goes into meta",
  ]);
});

Deno.test("JSON documents: strict, and durations may be whole nanoseconds", () => {
  const json = (value: unknown) => JSON.stringify(value);
  const node = {
    id: "a",
    type: "task",
    kind: "k",
    timeout: 1_500_000_000,
    retry: { max_attempts: 2, delay: 1 },
  };
  const { definition } = flowOf(json({ name: "t", nodes: [node], retention: 0 }), "flow.json");
  const [a] = definition.nodes;
  assert.ok(a?.type === "task");
  assert.deepEqual([a.timeout, a.retry?.delay, definition.retention], [1500, 1, 0]);
  assert.deepEqual(problemsOf(`{ "name": "t", "nodes": [ ${TASK} ] }`, "flow.json"), ["1:33  not_json"]);
  assert.deepEqual(problemsOf(json({ name: "t", nodes: [{ ...node, x: 1 }] }), "flow.json"), [
    "1:115 nodes[0].x unknown_key",
  ]);
  assert.deepEqual(problemsOf(json({ name: "t", nodes: [{ ...node, timeout: 1.5 }] }), "flow.json"), [
    "1:67 nodes[0].timeout wrong_type",
  ]);
});

Deno.test("several documents, and files of other kinds", () => {
  assert.deepEqual(problemsOf(`${nodes(TASK)}---\n${nodes(TASK)}`), ["4:1  several_documents"]);
  assert.deepEqual(problemsOf(nodes(TASK), "flow.txt"), ["1:1  unknown_extension"]);
  flowOf(nodes(TASK), "FLOW.YML");
});

Deno.test("names that objects inherit are names like others", () => {
  const { definition } = flowOf(`name: constructor
channels: { __proto__: { reducer: sum, default: 1 }, toString: {} }
nodes:
  - { id: __proto__, type: task, kind: k, meta: { __proto__: { a: 1 } }, next: constructor }
  - { id: constructor, type: choice, rules: [ { when: results.constructor == nil, to: hasOwnProperty }, { default: true, to: $end } ] }
  - { id: hasOwnProperty, type: fail, message: no }
`);
  assert.deepEqual(Object.keys(definition.channels), ["__proto__", "toString"]);
  assert.deepEqual(definition.nodes.map(({ id }) => id), ["__proto__", "constructor", "hasOwnProperty"]);
  assert.deepEqual(Object.keys(definition.nodes[0]!.meta!), ["__proto__"]);
});

Deno.test("names of a user's own mean nothing else: attributes called like fields, or like members of every object", () => {
  for (const name of ["toString", "constructor", "input", "output", "when", "over"]) {
    const { problems, warnings } = parseFlow(
      `name: x\nsearch_attributes: { ${name}: "1" }\nnodes: [ { id: a, type: task, kind: work } ]\n`,
      { file: "x.yaml" },
    );
    assert.deepEqual([problems, warnings], [[], []], name);
  }
});
