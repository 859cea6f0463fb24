/** The events of typical decisions, one test a row. */
import assert from "node:assert/strict";
import { flowOf, nodesOf, Run } from "./fold_fixture.ts";
import { decideFork } from "./mod.ts";

const TWO = nodesOf("id: a, type: task, kind: k, timeout: 30s, next: b", "id: b, type: task, kind: k");

Deno.test("start of a flow that begins with a task", () => {
  assert.deepEqual(new Run(TWO).start(), [
    "ExecutionStarted",
    "NodeEntered a",
    "NodeScheduled a 1.1",
    "TimerScheduled timeout 30000",
  ]);
});

Deno.test("complete, the next one is a task; then a terminal node", () => {
  const run = new Run(TWO);
  run.start();
  assert.deepEqual(run.complete("a", { ok: true }), [
    "NodeCompleted a",
    "NodeEntered b",
    "NodeScheduled b 3.1",
  ]);
  assert.deepEqual(run.complete("b", { n: 1 }), ["NodeCompleted b", "ExecutionCompleted"]);
  assert.deepEqual(run.state!.output, { n: 1 });
});

Deno.test("complete, then a choice, then a task", () => {
  const run = new Run(flowOf(`
name: f
start: a
nodes:
  - { id: a, type: task, kind: k, next: c }
  - { id: c, type: choice, rules: [{ when: "results.a.n > 1", to: b }, { default: true, to: $end }] }
  - { id: b, type: task, kind: k }
`));
  run.start();
  assert.deepEqual(run.complete("a", { n: 2 }), [
    "NodeCompleted a",
    "NodeEntered c",
    "ChoiceEvaluated b",
    "NodeEntered b",
    "NodeScheduled b 2.1",
  ]);
});

Deno.test("complete over the budget", () => {
  const run = new Run(flowOf(`
name: f
budget: { cost: 10 }
nodes: [{ id: a, type: task, kind: k, on_failure: b }, { id: b, type: task, kind: k }]
`));
  run.start();
  assert.deepEqual(run.complete("a", {}, { usage: { cost: 10.5 } }), [
    "NodeCompleted a",
    "ExecutionFailed budget_exceeded a",
  ]);
});

Deno.test("fail with retries left, then the retry", () => {
  const run = new Run(nodesOf(
    "id: a, type: task, kind: k, timeout: 1m, retry: { max_attempts: 3, delay: 5s, backoff: linear }",
  ));
  run.start();
  assert.deepEqual(run.fail("a"), ["NodeFailed a error again", "TimerScheduled retry 5000"]);
  assert.deepEqual(run.fire("retry"), ["TimerFired", "NodeScheduled a 1.2", "TimerScheduled timeout 60000"]);
  assert.deepEqual(run.fail("a"), ["NodeFailed a error again", "TimerScheduled retry 10000"]);
});

Deno.test("fail, exhausted: without a route and with one", () => {
  const bare = new Run(nodesOf("id: a, type: task, kind: k"));
  bare.start();
  assert.deepEqual(bare.fail("a"), ["NodeFailed a error", "ExecutionFailed error a"]);
  const routed = new Run(nodesOf("id: a, type: task, kind: k, on_failure: h", "id: h, type: task, kind: k"));
  routed.start();
  assert.deepEqual(routed.fail("a"), ["NodeFailed a error", "NodeEntered h", "NodeScheduled h 2.1"]);
  assert.equal(routed.state!.lastNode, "a");
  assert.deepEqual(routed.state!.errors.get("a"), { error: "broken", reason: "error", attempt: 1 });
});

Deno.test("the time of an attempt is up", () => {
  const run = new Run(TWO);
  run.start();
  assert.deepEqual(run.fire(), ["TimerFired", "NodeFailed a timeout", "ExecutionFailed timeout a"]);
});

const FAN = flowOf(`
name: f
nodes:
  - { id: fan, type: fanout, branches: [b, a, s], next: join }
  - { id: a, type: task, kind: k, timeout: 1m }
  - { id: b, type: task, kind: k }
  - { id: s, type: subflow, flow: child }
  - { id: join, type: join, policy: any, next: end }
  - { id: end, type: task, kind: k }
`);

Deno.test("a fan-out, a branch that decides nothing, one that decides", () => {
  const run = new Run(FAN);
  assert.deepEqual(run.start(), [
    "ExecutionStarted",
    "NodeEntered fan",
    "FanoutStarted fan",
    "NodeEntered b",
    "NodeScheduled b 1.1",
    "NodeEntered a",
    "NodeScheduled a 2.1",
    "TimerScheduled timeout 60000",
    "NodeEntered s",
    "ChildStarted s x-c4",
  ]);
  assert.deepEqual(run.fail("b"), ["NodeFailed b error"]);
  assert.deepEqual(run.childDone("s", { output: { v: 1 } }), [
    "ChildCompleted s completed",
    "NodeCancelled a",
    "NodeEntered join",
    "JoinCompleted join ok",
    "NodeEntered end",
    "NodeScheduled end 5.1",
  ]);
  assert.deepEqual(run.state!.results.get("join"), { s: { v: 1 } });
  assert.deepEqual(run.state!.branches.toObject(), { a: "cancelled", b: "failed", s: "completed" });
});

Deno.test("a join that cannot be met any more", () => {
  const run = new Run(flowOf(`
name: f
nodes:
  - { id: fan, type: fanout, branches: [a, b, s], next: join }
  - { id: a, type: task, kind: k }
  - { id: b, type: task, kind: k }
  - { id: s, type: subflow, flow: child }
  - { id: join, type: join }
`));
  run.start();
  assert.deepEqual(run.fail("b"), [
    "NodeFailed b error",
    "NodeCancelled a",
    "NodeEntered join",
    "JoinCompleted join not met",
    "ExecutionFailed join_failed join",
  ]);
  const join = run.log.at(-1)!.find((event) => event.type === "JoinCompleted")!;
  assert.deepEqual(join.data, {
    node: "join",
    fanout: "fan",
    succeeded: [],
    failed: ["b"],
    cancelled: ["a", "s"],
    ok: false,
    output: {},
    error: '3 of 3 branches had to succeed; "b": broken',
    cancel_children: ["x-c3"],
  });
});

const AWAIT = nodesOf(
  "id: w, type: await, signal: go, timeout: 1h, on_timeout: late, next: done",
  "id: late, type: task, kind: k",
  "id: done, type: task, kind: k",
);

Deno.test("an await, a signal for it, a signal nobody waits for", () => {
  const run = new Run(AWAIT);
  assert.deepEqual(run.start(), [
    "ExecutionStarted",
    "NodeEntered w",
    "AwaitStarted w",
    "TimerScheduled await 3600000",
  ]);
  assert.deepEqual(run.signal("other"), ["SignalReceived other"]);
  assert.deepEqual(run.signal("go", { n: 1 }), [
    "SignalReceived go",
    "SignalConsumed w go",
    "NodeEntered done",
    "NodeScheduled done 2.1",
  ]);
  assert.deepEqual(run.state!.results.get("w"), { n: 1 });
});

Deno.test("an await whose signal came before", () => {
  const run = new Run(nodesOf(
    "id: a, type: task, kind: k, next: w",
    "id: w, type: await, signal: go, timeout: 1h",
  ));
  run.start();
  run.signal("go");
  assert.deepEqual(run.complete("a"), [
    "NodeCompleted a",
    "NodeEntered w",
    "AwaitStarted w",
    "TimerScheduled await 3600000",
    "SignalConsumed w go",
    "ExecutionCompleted",
  ]);
});

Deno.test("the time of an await is up, with a way on and without", () => {
  const run = new Run(AWAIT);
  run.start();
  assert.deepEqual(run.fire(), [
    "TimerFired",
    "AwaitTimedOut w",
    "NodeEntered late",
    "NodeScheduled late 2.1",
  ]);
  const bare = new Run(nodesOf("id: w, type: await, signal: go, timeout: 1h"));
  bare.start();
  assert.deepEqual(bare.fire(), ["TimerFired", "AwaitTimedOut w", "ExecutionFailed await_timeout w"]);
});

const MAP = nodesOf(
  "id: m, type: map, over: input.items, max_parallel: 2, kind: k, on_failure: h, next: e",
  "id: h, type: task, kind: k",
  "id: e, type: task, kind: k",
);

Deno.test("a map: its window, an item, its end", () => {
  const run = new Run(MAP);
  assert.deepEqual(run.start({ items: ["x", "y", "z"] }), [
    "ExecutionStarted",
    "NodeEntered m",
    "MapStarted m",
    "NodeScheduled m#0 1.1",
    "NodeScheduled m#1 2.1",
  ]);
  assert.deepEqual(run.complete("m#1", { v: 1 }), ["NodeCompleted m#1", "NodeScheduled m#2 3.1"]);
  assert.deepEqual(run.complete("m#2", { v: 2 }), ["NodeCompleted m#2"]);
  assert.deepEqual(run.complete("m#0"), [
    "NodeCompleted m#0",
    "MapCompleted m",
    "NodeEntered e",
    "NodeScheduled e 4.1",
  ]);
  assert.deepEqual(run.state!.results.get("m"), [null, { v: 1 }, { v: 2 }]);
});

Deno.test("an empty map", () => {
  assert.deepEqual(new Run(MAP).start({ items: [] }).slice(2), [
    "MapStarted m",
    "MapCompleted m",
    "NodeEntered e",
    "NodeScheduled e 1.1",
  ]);
});

Deno.test("an item that fails for good", () => {
  const run = new Run(MAP);
  run.start({ items: [1, 2, 3] });
  assert.deepEqual(run.fail("m#1"), [
    "NodeFailed m#1 error",
    "NodeCancelled m#0",
    "MapAborted m",
    "NodeEntered h",
    "NodeScheduled h 3.1",
  ]);
  assert.deepEqual(run.state!.errors.get("m"), { error: "broken", reason: "error", attempt: 1, index: 1 });
});

Deno.test("a subflow, and its end", () => {
  const flow = nodesOf(
    "id: s, type: subflow, flow: child, input: input.n, on_failure: h",
    "id: h, type: task, kind: k",
  );
  const run = new Run(flow);
  assert.deepEqual(run.start({ n: {} }), ["ExecutionStarted", "NodeEntered s", "ChildStarted s x-c1"]);
  assert.deepEqual(run.childDone("s", { status: "failed", error: "no stock" }), [
    "ChildCompleted s failed",
    "NodeEntered h",
    "NodeScheduled h 2.1",
  ]);
  assert.deepEqual(run.state!.errors.get("s"), { error: "no stock", reason: "child_failed" });
  assert.deepEqual(new Run(flow).start({ n: 7 }), [
    "ExecutionStarted",
    "NodeEntered s",
    "ExecutionFailed expression_error s",
  ]);
});

Deno.test("an interrupt and its answer", () => {
  const run = new Run(nodesOf("id: a, type: task, kind: k, timeout: 1m"));
  run.start();
  assert.deepEqual(run.send("interrupt", { ...run.attempt("a"), payload: "sure?" }), ["NodeInterrupted a"]);
  assert.deepEqual(run.send("resume", { node: "a", value: "yes" }), [
    "NodeScheduled a 3.1",
    "TimerScheduled timeout 60000",
  ]);
});

Deno.test("an update, a cancel", () => {
  const run = new Run(flowOf(`
name: f
channels: { log: { reducer: append, default: [] } }
nodes: [{ id: s, type: subflow, flow: child }]
`));
  run.start();
  assert.deepEqual(run.send("update", { writes: { log: "x" } }), ["ChannelsUpdated"]);
  assert.deepEqual(run.send("cancel", { reason: "enough" }), ["ExecutionCancelled"]);
  assert.deepEqual(run.log.at(-1)![0]!.data, { reason: "enough", cancel_children: ["x-c1"] });
});

Deno.test("a fork", () => {
  const run = new Run(FAN);
  run.start();
  run.fail("b");
  const fork = new Run(FAN, { execId: "y" });
  const verdict = decideFork(FAN, undefined, run.state!, {
    id: "fork.y",
    type: "fork",
    exec_id: "y",
    data: { from: "x", seq: 2 },
  }, run.now);
  assert.ok(verdict.ok);
  fork.keep(verdict);
  assert.deepEqual(fork.history, [
    "ExecutionForked",
    "NodeScheduled a 5.1",
    "TimerScheduled timeout 60000",
    "ChildStarted s y-c7",
  ]);
});

Deno.test("the history limit", () => {
  const run = new Run(TWO);
  run.start();
  const segment = { object: "x.seg.1", first_index: 1, last_index: 4, first_seq: 1, last_seq: 1 };
  assert.deepEqual(run.send("continue", { segment }), ["ExecutionContinued"]);
});
