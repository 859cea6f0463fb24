import assert from "node:assert/strict";
import { flowOf, Run } from "../fold_fixture.ts";

const fan = (join: string, extra = "", branches = "a, b, c") =>
  flowOf(`
name: f
nodes:
  - { id: fan, type: fanout, branches: [${branches}], next: join }
  - { id: a, type: task, kind: k }
  - { id: b, type: task, kind: k }
  - { id: c, type: task, kind: k, retry: { max_attempts: 2, delay: 1s } }
  - { id: join, type: join${join} }
${extra}`);

Deno.test("when a join settles: every policy against every order of ends", () => {
  // The three ends in order, and after which of them the join settles, as what.
  const table: readonly (readonly [string, string, number, boolean])[] = [
    ["", "+++", 3, true],
    ["", "++-", 3, false],
    ["", "-++", 1, false],
    [", policy: any", "+", 1, true],
    [", policy: any", "--+", 3, true],
    [", policy: any", "---", 3, false],
    [", policy: 'quorum:2'", "++", 2, true],
    [", policy: 'quorum:2'", "-++", 3, true],
    [", policy: 'quorum:2'", "+--", 3, false],
    [", policy: 'quorum:2'", "--", 2, false],
    [", wait_for: [a, b]", "++", 2, true],
    [", wait_for: [b], policy: any", "++", 2, true],
    [", wait_for: [b]", "+-", 2, false],
    [", wait_for: [c]", "--+", 3, true],
  ];
  for (const [policy, ends, after, ok] of table) {
    const run = new Run(fan(policy));
    run.start();
    for (const [i, end] of [...ends].entries()) {
      const key = "abc"[i]!;
      const events = end === "+" ? run.complete(key, { key }) : run.fail(key, "e", { retryable: false });
      const settled = events.find((event) => event.startsWith("JoinCompleted"));
      const expected = i + 1 === after ? `JoinCompleted join ${ok ? "ok" : "not met"}` : undefined;
      assert.equal(settled, expected, `${policy} ${ends} after ${i + 1}`);
      if (settled !== undefined) break;
    }
    assert.equal(run.state!.phase, ok ? "completed" : "failed");
  }
});

Deno.test("the result holds every branch that had succeeded, awaited or not, in listed order, also when not met", () => {
  const run = new Run(fan(", wait_for: [c], on_failure: h", "  - { id: h, type: task, kind: k }", "c, b, a"));
  run.start();
  run.complete("a", { v: 1 });
  run.complete("b");
  assert.deepEqual(run.fail("c", "e", { retryable: false }).slice(-2), [
    "NodeEntered h",
    "NodeScheduled h 4.1",
  ]);
  const { state } = run;
  assert.equal(JSON.stringify(state!.results.get("join")), '{"b":null,"a":{"v":1}}');
  assert.equal(state!.lastNode, "join");
  assert.deepEqual(state!.errors.get("join"), {
    error: '1 of 1 branches had to succeed; "c": e',
    reason: "join_failed",
  });
  assert.deepEqual(state!.branches.toObject(), { a: "completed", b: "completed", c: "failed" });
});

Deno.test("a branch that waits for its retry is open, and is cancelled with the rest", () => {
  const run = new Run(fan(", policy: any"));
  run.start();
  assert.deepEqual(run.fail("c"), ["NodeFailed c error again", "TimerScheduled retry 1000"]);
  assert.deepEqual(run.complete("a"), [
    "NodeCompleted a",
    "NodeCancelled b",
    "NodeCancelled c",
    "NodeEntered join",
    "JoinCompleted join ok",
    "ExecutionCompleted",
  ]);
  assert.deepEqual(run.state!.branches.toObject(), { a: "completed", b: "cancelled", c: "cancelled" });
  assert.deepEqual(run.effectsOf("stop").map(({ key }) => key), ["b"], "the one that waits has no job");
});

Deno.test("late ends of cancelled branches change nothing", () => {
  const run = new Run(fan(", policy: any, next: end", "  - { id: end, type: task, kind: k }"));
  run.start();
  const late = run.attempt("b");
  run.complete("a");
  assert.deepEqual(run.send("complete", late), []);
  assert.deepEqual(run.send("fail", { ...late, error: "e", retryable: false }), []);
  assert.equal(run.state!.branches.get("b"), "cancelled");
});

Deno.test("F76 a fan-out entered again begins with fresh branches", () => {
  const run = new Run(flowOf(`
name: f
start: fan
nodes:
  - { id: fan, type: fanout, branches: [a, b], next: join }
  - { id: a, type: task, kind: k }
  - { id: b, type: task, kind: k }
  - { id: join, type: join, on_failure: fan }
`));
  run.start();
  const old = run.attempt("b");
  run.complete("a", { turn: 1 });
  assert.deepEqual(run.fail("b").slice(2, 6), [
    "JoinCompleted join not met",
    "NodeEntered fan",
    "FanoutStarted fan",
    "NodeEntered a",
  ]);
  assert.deepEqual(run.state!.branches.toObject(), { a: "pending", b: "pending" });
  assert.deepEqual(run.send("complete", old), [], "of the first round");
  run.complete("b", { turn: 2 });
  run.complete("a", { turn: 2 });
  assert.deepEqual(run.state!.results.get("join"), { a: { turn: 2 }, b: { turn: 2 } });
  assert.equal(run.state!.errors.has("join"), false, "cleared by a later success");
});

Deno.test("F71 a failure that was tolerated stays visible", () => {
  const run = new Run(fan(", policy: 'quorum:2'"));
  run.start();
  run.fail("a", "no stock");
  run.complete("b");
  run.complete("c");
  const join = run.log.flat().find((event) => event.type === "JoinCompleted")!;
  assert.deepEqual(join.data.failed, ["a"]);
  assert.equal(run.state!.errors.get("a")!.error, "no stock");
});

Deno.test("F66 children of branches are cancelled with the join, unless they are abandoned", () => {
  const run = new Run(flowOf(`
name: f
nodes:
  - { id: fan, type: fanout, branches: [s, t, a], next: join }
  - { id: s, type: subflow, flow: child }
  - { id: t, type: subflow, flow: child, on_parent_close: abandon }
  - { id: a, type: task, kind: k }
  - { id: join, type: join, policy: any }
`));
  run.start();
  run.complete("a");
  assert.deepEqual(run.effectsOf("child_cancel").map(({ command }) => command.id), ["parent-closed.x-c1"]);
  const join = run.log.flat().find((event) => event.type === "JoinCompleted")!;
  assert.deepEqual(join.data.cancelled, ["s", "t"]);
  assert.deepEqual(run.send("child_done", { child_id: "x-c2", status: "completed" }), []);
});
