import assert from "node:assert/strict";
import { flowOf, nodesOf, Run } from "../fold_fixture.ts";

Deno.test("F22 early signals are kept, the oldest of a name comes first, others wait", () => {
  const run = new Run(nodesOf(
    "id: a, type: task, kind: k, next: w1",
    "id: w1, type: await, signal: go, timeout: 1h, next: w2",
    "id: w2, type: await, signal: go, timeout: 1h, next: w3",
    "id: w3, type: await, signal: go, timeout: 1h",
  ));
  run.start();
  run.signal("go", 1);
  run.signal("other", 9);
  run.signal("go", 2);
  run.complete("a");
  assert.deepEqual([run.state!.results.get("w1"), run.state!.results.get("w2")], [1, 2]);
  assert.deepEqual(run.state!.awaits.keys(), ["w3"]);
  assert.deepEqual(run.signal("go"), ["SignalReceived go", "SignalConsumed w3 go", "ExecutionCompleted"]);
  assert.equal(run.state!.results.get("w3"), null, "without a payload");
  assert.deepEqual(run.state!.signals.toObject(), { go: null });
});

Deno.test("F27 a signal that comes twice is one; its id is remembered after it was taken", () => {
  const run = new Run(nodesOf(
    "id: w1, type: await, signal: go, timeout: 1h, next: w2",
    "id: w2, type: await, signal: go, timeout: 1h",
  ));
  run.start();
  assert.equal(run.signal("go", 1, "s1").length, 5);
  assert.deepEqual(run.signal("go", 1, "s1"), []);
  assert.deepEqual(run.state!.awaits.keys(), ["w2"]);
});

Deno.test("F21 signals that nobody took are reported by the end", () => {
  const run = new Run(nodesOf("id: a, type: task, kind: k"));
  run.start();
  for (const name of ["go", "go", "stop"]) run.signal(name);
  run.complete("a");
  assert.deepEqual(run.log.at(-1)!.at(-1)!.data, { unread: { go: 2, stop: 1 } });
});

Deno.test("F65 several signals: any is enough, or all are needed; results by name", () => {
  const any = nodesOf("id: w, type: await, signals: [yes, no], policy: any, timeout: 1h");
  const first = new Run(any);
  first.start();
  first.signal("no", { why: "late" });
  assert.deepEqual(first.state!.output, { no: { why: "late" } });

  const all = flowOf(`
name: f
start: a
nodes:
  - { id: a, type: task, kind: k, next: w }
  - { id: w, type: await, signals: [b, c], policy: all, timeout: 1h }
`);
  const second = new Run(all);
  second.start();
  second.signal("c", 1);
  second.signal("c", 2);
  assert.deepEqual(second.complete("a").slice(-2), ["TimerScheduled await 3600000", "SignalConsumed w c"]);
  assert.deepEqual(second.signal("c", 3), ["SignalReceived c"], "it has one of these");
  assert.deepEqual(second.signal("b", 0).slice(1), ["SignalConsumed w b", "ExecutionCompleted"]);
  assert.deepEqual(second.state!.output, { c: 1, b: 0 });
  assert.deepEqual(second.log.at(-1)!.at(-1)!.data, { output: { c: 1, b: 0 }, unread: { c: 2 } });
});

Deno.test("any of several takes what came first, whatever its name", () => {
  const run = new Run(nodesOf(
    "id: a, type: task, kind: k, next: w",
    "id: w, type: await, signals: [yes, no], policy: any, timeout: 1h",
  ));
  run.start();
  run.signal("no", 1);
  run.signal("yes", 2);
  run.complete("a");
  assert.deepEqual(run.state!.output, { no: 1 });
});

Deno.test("a time-out leaves last_node and the result alone; a late timer changes nothing", () => {
  const run = new Run(nodesOf(
    "id: a, type: task, kind: k, next: w",
    "id: w, type: await, signal: go, timeout: 1h, on_timeout: b, next: b",
    "id: b, type: task, kind: k",
  ));
  run.start();
  run.complete("a", { n: 1 });
  const timer = run.state!.timers.any()!.id;
  run.fire();
  assert.equal(run.state!.lastNode, "a");
  assert.equal(run.state!.results.has("w"), false);
  assert.deepEqual(run.send("timer", { timer_id: timer }), []);
});

Deno.test("a signal goes to the first await in the order of the nodes; a signal taken ends its timer", () => {
  const run = new Run(
    nodesOf("id: w, type: await, signal: go, timeout: 1h, next: a", "id: a, type: task, kind: k"),
  );
  run.start();
  run.signal("go");
  assert.equal(run.state!.timers.size, 0);
  assert.deepEqual(run.effectsOf("timer_delete").map(({ id }) => id), ["t1"]);
});
