/**
 * Tests of flows on virtual time: what comes when, whose answer an attempt gets, what a document may say.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type CompiledFlow, compileFlow, parseFlow } from "../definition/mod.ts";
import { checkFlowTests, type FlowTestReport, parseFlowTests, runFlowTest } from "./mod.ts";

function flowOf(text: string): CompiledFlow {
  const { flow, problems } = parseFlow(text, { file: "flow.yaml" });
  assert.deepEqual(problems, []);
  return compileFlow(flow!);
}

/** Runs the cases of a document; the first flow is the one under test. */
function reports(cases: string, ...flows: string[]): FlowTestReport[] {
  const { tests, problems } = parseFlowTests(`flow: flow.yaml\ncases:\n${cases}`, "flow.test.yaml");
  assert.deepEqual(problems, []);
  const compiled = flows.map(flowOf);
  assert.deepEqual(checkFlowTests(tests!, compiled, "flow.test.yaml"), []);
  const byName = new Map(compiled.map((flow) => [flow.definition.name, flow]));
  return tests!.cases.map((one) => runFlowTest(one, compiled[0]!.definition.name, byName));
}

/** What is wrong with a document: line, path and code. */
function problemsOf(text: string, ...flows: string[]): string[] {
  const { tests, problems } = parseFlowTests(text, "flow.test.yaml");
  const found = tests === undefined ? problems : checkFlowTests(tests, flows.map(flowOf), "flow.test.yaml");
  return found.map(({ line, path, code }) => `${line} ${path} ${code}`);
}

const TWO = `
name: two
nodes:
  - { id: a, type: task, kind: work, retry: { max_attempts: 3, delay: 10s }, next: b }
  - { id: b, type: task, kind: work }
`;

Deno.test("an entry of answers has one cursor for the whole case, across nodes of a kind; the last one repeats", () => {
  const [one, two] = reports(
    `
  - name: by kind
    tasks: { work: [ { error: busy }, { output: { n: 1 } }, { output: { n: 2 } } ] }
    expect: { status: completed, output: { n: 2 }, attempts: { a: 2, b: 1 }, elapsed: 10s }
  - name: by node first
    tasks: { a: { output: { from: node } }, work: { output: { from: kind } } }
    expect: { status: completed, output: { from: kind } }
`,
    TWO,
  );
  assert.deepEqual([one!.problems, two!.problems], [[], []]);
});

Deno.test("an attempt that nothing answers makes the case not ok, and so does what is not as expected", () => {
  const [report] = reports(
    `
  - name: wrong in every way
    tasks: { a: { output: {} } }
    expect:
      status: completed
      output: {}
      visited: [a]
      attempts: { a: 2, b: 7 }
      elapsed: 1s
      channels: { x: 1 }
      counters: { y: 1 }
      reason: error
`,
    TWO,
  );
  assert.equal(report!.ok, false);
  assert.deepEqual(report!.problems, [
    'nothing answers attempt 1 of "b" (kind work)',
    "status: waiting, expected completed",
    "output: null, expected {}",
    'visited: ["a","b"], expected ["a"]',
    "attempts of a: 1, expected 2",
    "attempts of b: 1, expected 7",
    "elapsed: 0ms, expected 1s",
    'channels: {}, expected {"x":1}',
    'counters: {}, expected {"y":1}',
    'reason: null, expected "error"',
  ]);
});

const WAITS = `
name: waits
channels: { seen: { reducer: append, default: [] } }
nodes:
  - { id: ask, type: task, kind: ask, next: wait }
  - { id: wait, type: await, signal: go, timeout: 1m, on_timeout: late, next: done }
  - { id: late, type: task, kind: note }
  - { id: done, type: task, kind: note }
`;

Deno.test("at one instant: answers, then signals, then commands, then timers", () => {
  const verdicts = reports(
    `
  - name: a signal just in time
    tasks: { ask: { output: {} }, note: { output: {} } }
    signals: [ { after: 1m, name: go } ]
    expect: { status: completed, visited: [ask, wait, done], elapsed: 1m }
  - name: a signal too late
    tasks: { ask: { output: {} }, note: { output: {} } }
    signals: [ { after: 60001ms, name: go } ]
    expect: { status: completed, visited: [ask, wait, late], elapsed: 1m }
  - name: an answer comes before a command
    tasks: { ask: { output: {}, takes: 5s }, note: { output: {} } }
    commands: [ { after: 5s, cancel: { reason: enough } } ]
    expect: { status: cancelled, visited: [ask, wait], reason: enough }
  - name: a signal comes before a command
    tasks: { ask: { output: {} }, note: { output: {}, takes: 1h } }
    commands: [ { after: 5s, cancel: true } ]
    signals: [ { after: 5s, name: go } ]
    expect: { status: cancelled, visited: [ask, wait, done] }
  - name: a command comes before a timer
    tasks: { ask: { output: {} } }
    commands: [ { after: 1m, cancel: true } ]
    expect: { status: cancelled, visited: [ask, wait] }
`,
    WAITS,
  );
  for (const { case: name, problems } of verdicts) assert.deepEqual(problems, [], name);
});

Deno.test("the time of a case is inclusive, and what is not settled then waits", () => {
  const verdicts = reports(
    `
  - name: just long enough
    tasks: { ask: { output: {} }, note: { output: {} } }
    for: 1m
    expect: { status: completed, elapsed: 1m }
  - name: too short
    tasks: { ask: { output: {} }, note: { output: {} } }
    for: 59s
    expect: { status: waiting, visited: [ask, wait], elapsed: 59s }
  - name: nothing to come
    tasks: { ask: { hangs: true } }
    expect: { status: waiting, visited: [ask], elapsed: 0s }
`,
    WAITS,
  );
  for (const { case: name, problems } of verdicts) assert.deepEqual(problems, [], name);
});

Deno.test("interrupts, updates and pauses; a command that is refused makes the case not ok", () => {
  const [fine, refused] = reports(
    `
  - name: asked and answered
    tasks: { ask: [ { interrupt: { q: 1 } }, { output: {} } ], note: { output: {} } }
    commands:
      - { after: 1s, update: { writes: { seen: x } } }
      - { after: 2s, resume: { node: ask, value: yes } }
      - { after: 3s, pause: true }
      - { after: 10s, unpause: true }
    signals: [ { after: 4s, name: go } ]
    expect: { status: completed, visited: [ask, wait, done], channels: { seen: [x] }, elapsed: 10s }
  - name: nothing to answer
    tasks: { ask: { output: {} }, note: { output: {} } }
    commands: [ { after: 1s, resume: { node: ask } } ]
    expect: { status: completed }
`,
    WAITS,
  );
  assert.deepEqual(fine!.problems, []);
  assert.deepEqual(refused!.problems, [`resume after 1s was refused: nothing is interrupted at "ask"`]);
});

Deno.test("a worker that hangs is given up after its heartbeat; results are kept for the same inputs; log needs no answer", () => {
  const verdicts = reports(
    `
  - name: silent
    tasks: { slow: [ { hangs: true }, { output: { n: 1 } } ] }
    expect: { status: completed, attempts: { slow: 2 }, elapsed: 21s, output: { a: { n: 1 }, b: null } }
`,
    `
name: silent
nodes:
  - { id: slow, type: task, kind: slow, heartbeat: 20s, retry: { max_attempts: 2, delay: 1s }, next: say }
  - { id: say, type: task, kind: log }
output: '{"a": results.slow, "b": results.none}'
`,
  );
  assert.deepEqual(verdicts[0]!.problems, []);
  const [cached] = reports(
    `
  - name: once
    tasks: { price: [ { output: { p: 1 } }, { output: { p: 2 } } ] }
    expect: { status: completed, output: { prices: [ { p: 1 }, { p: 1 } ] } }
`,
    `
name: parent
nodes:
  - { id: each, type: map, over: "[1, 1]", flow: child, input: "{}", max_parallel: 1 }
output: '{"prices": results.each}'
`,
    `
name: child
nodes:
  - { id: price, type: task, kind: price, cache: { ttl: 1h } }
`,
  );
  assert.deepEqual(cached!.problems, []);
});

Deno.test("a child of a flow that is not there is a failure its parent can route", () => {
  const parent = `
name: parent
nodes:
  - { id: kid, type: subflow, flow: nobody, on_failure: sorry }
  - { id: sorry, type: task, kind: log }
output: '{"why": errors.kid.error}'
`;
  const [report] = reports(
    `
  - name: no child
    expect: { status: completed, visited: [kid, sorry], output: { why: 'there is no flow "nobody"' } }
`,
    parent,
  );
  assert.deepEqual(report!.problems, []);
});

Deno.test("a document is read strictly: every problem with its place", () => {
  const document = (text: string) =>
    `flow: two.yaml\ncases:\n  - name: x\n    expect: { status: completed }\n${text}`;
  const table: readonly (readonly [string, readonly string[]])[] = [
    ["", ["1  wrong_type"]],
    ["name: x\nnodes: []\n", ["1  not_tests"]],
    ["flow: a\ncases: 5\n", ["2 cases wrong_type"]],
    ["flow: a\ncases: [ { name: x, expect: { state: completed } } ]\n", [
      "2 cases[0].expect.state unknown_key",
    ]],
    ["flow: a\ncases: [ { name: x, expect: { status: done } } ]\n", [
      "2 cases[0].expect.status unknown_value",
    ]],
    [document("    tasks: { a: [] }\n"), ["5 cases[0].tasks.a too_few"]],
    [document("    tasks: { a: { error: no, output: {} } }\n"), ["5 cases[0].tasks.a.output excluded"]],
    [document("    tasks: { a: { outputs: {} } }\n"), ["5 cases[0].tasks.a.outputs unknown_key"]],
    [document("    signals: [ { name: go } ]\n"), ["5 cases[0].signals[0].after missing"]],
    [document("    commands: [ { after: 1s } ]\n"), ["5 cases[0].commands[0] missing"]],
    [document("    commands: [ { after: 1s, cancel: true, resume: { node: a } } ]\n"), [
      "5 cases[0].commands[0] excluded",
    ]],
    [document("    commands: [ { after: 1s, resume: true } ]\n"), [
      "5 cases[0].commands[0].resume wrong_type",
    ]],
    [document("    tasks: { c: { output: {} } }\n"), ["5 cases[0].tasks.c unknown_task"]],
    [document("  - name: x\n    expect: {}\n"), ["5 cases[1].name duplicate"]],
  ];
  for (const [text, expected] of table) assert.deepEqual(problemsOf(text, TWO), expected, text);
});

Deno.test("what would reach outside has to be answered", () => {
  const http = `
name: http
nodes:
  - { id: call, type: task, kind: http, with: { url: "https://example.com/" } }
`;
  const cases = "flow: http.yaml\ncases:\n  - name: x\n    expect: { status: completed }\n";
  assert.deepEqual(problemsOf(cases, http), ["3 cases[0].tasks unmocked"]);
  assert.deepEqual(problemsOf(`${cases}    tasks: { call: { output: {} } }\n`, http), []);
});
