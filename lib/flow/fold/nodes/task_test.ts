import assert from "node:assert/strict";
import { flowOf, nodesOf, Run, T0 } from "../fold_fixture.ts";
import { jobBody } from "../mod.ts";

const ONE = nodesOf("id: a, type: task, kind: k, retry: { max_attempts: 3, delay: 1s }");

Deno.test("answers to any attempt but the live one change nothing", () => {
  const run = new Run(ONE);
  run.start();
  const first = run.attempt("a");
  for (
    const stale of [
      { ...first, attempt: 2 },
      { ...first, generation: 2 },
      { ...first, generation: 0 },
      { ...first, key: "b" },
      { ...first, key: "__proto__" },
    ]
  ) {
    assert.deepEqual(run.send("complete", stale), []);
    assert.deepEqual(run.send("fail", { ...stale, error: "e", retryable: true }), []);
    assert.deepEqual(run.send("interrupt", stale), []);
  }
  run.fail("a");
  assert.deepEqual(run.send("complete", first), [], "the attempt has failed");
  run.fire("retry");
  assert.deepEqual(run.send("complete", first), [], "there is another attempt");
  run.complete("a");
  assert.deepEqual(run.send("complete", first), []);
  assert.equal(run.state!.phase, "completed");
});

Deno.test("what an output has to be", () => {
  const flow = flowOf(`
name: f
channels: { total: { reducer: sum, default: 0 }, seen: { reducer: merge } }
nodes:
  - id: a
    type: task
    kind: k
    retry: { max_attempts: 2, delay: 1s }
    dynamic: [b]
    output_schema: { type: object, required: [n], properties: { n: { type: integer, minimum: 1 } } }
  - { id: b, type: task, kind: k }
start: a
`);
  const table: readonly (readonly [string, Record<string, unknown>, string])[] = [
    ["a list", { output: [1] }, "NodeFailed a invalid_output"],
    ["a text", { output: "x" }, "NodeFailed a invalid_output"],
    ["writes that are no object", { output: { n: 1 }, writes: [1] }, "NodeFailed a invalid_output"],
    ["an unknown channel", { output: { n: 1 }, writes: { other: 1 } }, "NodeFailed a invalid_output"],
    ["a misfit write", { output: { n: 1 }, writes: { total: "1" } }, "NodeFailed a invalid_output"],
    ["one misfit of two", { output: { n: 1 }, writes: { total: 1, seen: 1 } }, "NodeFailed a invalid_output"],
    ["an undeclared next", { output: { n: 1 }, next: "a" }, "NodeFailed a invalid_output"],
    ["a next that is no text", { output: { n: 1 }, next: 7 }, "NodeFailed a invalid_output"],
    ["a usage that is none", { output: { n: 1 }, usage: { cost: "much" } }, "NodeFailed a invalid_output"],
    ["a misfit of the schema", { output: { n: 0 } }, "NodeFailed a invalid_output again"],
    ["no output, checked as null", {}, "NodeFailed a invalid_output again"],
    ["null is no output", { output: null }, "NodeFailed a invalid_output again"],
    [
      "all is well",
      { output: { n: 1 }, writes: { total: 2 }, next: "b", usage: { cost: 1 } },
      "NodeCompleted a",
    ],
    ["nothing but the output", { output: { n: 2 }, writes: null, next: null }, "NodeCompleted a"],
  ];
  for (const [name, answer, expected] of table) {
    const run = new Run(flow);
    run.start();
    assert.equal(run.send("complete", { ...run.attempt("a"), ...answer })[0], expected, name);
    if (expected !== "NodeCompleted a") assert.equal(run.state!.channels.get("total"), 0, name);
  }
});

Deno.test("output, writes and next are checked in this order, before the schema", () => {
  const flow = nodesOf(
    "id: a, type: task, kind: k, output_schema: { required: [n] }, retry: { max_attempts: 2, delay: 1s }",
  );
  const run = new Run(flow);
  run.start();
  run.complete("a", 7, { writes: 7, next: "zz" });
  assert.match(run.state!.failure!.error, /output is no object/);
  const second = new Run(flow);
  second.start();
  second.complete("a", {}, { writes: { x: 1 }, next: "zz" });
  assert.match(second.state!.failure!.error, /channel "x" is not declared/);
  const third = new Run(flow);
  third.start();
  third.complete("a", {}, { next: "zz" });
  assert.match(third.state!.failure!.error, /next is "zz"/);
});

Deno.test("a permanent failure, a named one and a reason that is excepted are not retried", () => {
  const flow = nodesOf(
    "id: a, type: task, kind: k, timeout: 5s, retry: { max_attempts: 5, delay: 1s, except: [timeout, CardRefused] }",
  );
  const run = (): Run => {
    const made = new Run(flow);
    made.start();
    return made;
  };
  assert.equal(run().fail("a", "e", { retryable: false })[0], "NodeFailed a error");
  assert.equal(run().fail("a", "e", { name: "CardRefused" })[0], "NodeFailed a error");
  assert.equal(run().fail("a", "e", { name: "Other" })[0], "NodeFailed a error again");
  assert.equal(run().fire("timeout")[1], "NodeFailed a timeout");
  assert.equal(
    run().fail("a", "e", { reason: "delivery_failed", retryable: false })[0],
    "NodeFailed a delivery_failed",
  );
});

Deno.test("settings of a built-in kind that cannot be worked out fail the execution, whatever it is part of", () => {
  const run = new Run(flowOf(`
name: f
nodes:
  - { id: fan, type: fanout, branches: [a, b], next: join }
  - { id: a, type: task, kind: http, with: { url: "https://x/{{ input.n + 1 }}" }, retry: { max_attempts: 3, delay: 1s } }
  - { id: b, type: task, kind: k }
  - { id: join, type: join, policy: any, on_failure: h }
  - { id: h, type: task, kind: k }
`));
  run.start();
  const attempt = run.attempt("a");
  assert.throws(() => jobBody(run.flow, run.state!, attempt), { code: "expression_failed" });
  assert.deepEqual(run.fail("a", "no number", { reason: "expression_error" }), [
    "NodeFailed a expression_error",
    "ExecutionFailed expression_error a",
  ]);
});

Deno.test("waits: fixed, linear, doubling, capped; the first at the failure", () => {
  const waits = (retry: string): number[] => {
    const run = new Run(nodesOf(`id: a, type: task, kind: k, retry: ${retry}`));
    run.start();
    const found: number[] = [];
    for (;;) {
      run.now += 700;
      const failed = run.now, events = run.fail("a");
      if (events.length !== 2 || !events[1]!.startsWith("TimerScheduled")) return found;
      run.fire("retry");
      found.push(run.now - failed);
    }
  };
  assert.deepEqual(waits("{ max_attempts: 3, delay: 2s }"), [2000, 2000]);
  assert.deepEqual(waits("{ max_attempts: 4, backoff: linear, delay: 2s, max_delay: 5s }"), [
    2000,
    4000,
    5000,
  ]);
  assert.deepEqual(waits("{ max_attempts: 5, backoff: exponential, delay: 2m }"), [
    120_000,
    240_000,
    300_000,
    300_000,
  ]);
  assert.deepEqual(waits("{ max_attempts: 3, delay: 10m }"), [600_000, 600_000]);
  const many = waits("{ max_attempts: 64, backoff: exponential, delay: 1s, max_delay: 1000000h }");
  assert.equal(many.length, 63);
  assert.equal(Math.max(...many), 3_600_000_000_000);
});

Deno.test("F87 the random part only shortens a wait, is recorded, and is the same when decided again", () => {
  const flow = nodesOf("id: a, type: task, kind: k, retry: { max_attempts: 2, delay: 100s, jitter: 0.5 }");
  const waitOf = (execId: string): number => {
    const run = new Run(flow, { execId });
    run.start();
    run.fail("a");
    return run.state!.timers.any()!.at - T0;
  };
  const waits = Array.from({ length: 200 }, (_, i) => waitOf(`e${i}`));
  assert.deepEqual(waits, Array.from({ length: 200 }, (_, i) => waitOf(`e${i}`)));
  assert.ok(waits.every((wait) => wait > 50_000 - 1 && wait <= 100_000 && Number.isInteger(wait)));
  assert.ok(Math.min(...waits) < 55_000 && Math.max(...waits) > 95_000, "spread over the whole range");
  assert.ok(new Set(waits).size > 190);
});

Deno.test("F87 no retry begins later than max_elapsed after the first attempt", () => {
  const run = new Run(
    nodesOf("id: a, type: task, kind: k, retry: { max_attempts: 60, delay: 10s, max_elapsed: 25s }"),
  );
  run.start();
  assert.equal(run.fail("a")[0], "NodeFailed a error again");
  run.fire();
  assert.equal(run.fail("a")[0], "NodeFailed a error again");
  run.fire();
  assert.equal(run.fail("a")[0], "NodeFailed a error");
});

Deno.test("a time-out is retried; its timer is gone with the attempt", () => {
  const run = new Run(
    nodesOf("id: a, type: task, kind: k, timeout: 5s, retry: { max_attempts: 2, delay: 1s }"),
  );
  run.start();
  const late = run.attempt("a");
  assert.deepEqual(run.send("timer", { timer_id: "t2", progress: { done: 3 } }).slice(0, 2), [
    "TimerFired",
    "NodeFailed a timeout again",
  ]);
  assert.deepEqual(run.send("complete", late), [], "too late");
  assert.deepEqual(run.send("timer", { timer_id: "t2" }), [], "it has fired");
  run.fire("retry");
  assert.deepEqual(jobBody(run.flow, run.state!, run.attempt("a"))!.context.progress, { done: 3 });
  const timer = run.state!.timers.any()!.id;
  run.complete("a", {});
  assert.deepEqual(run.send("timer", { timer_id: timer }), []);
  assert.equal(run.state!.timers.size, 0);
});

Deno.test("a worker that gives no sign of life: retried, with its last progress", () => {
  const run = new Run(
    nodesOf("id: a, type: task, kind: k, heartbeat: 5s, retry: { max_attempts: 2, delay: 1s }"),
  );
  run.start();
  assert.equal(run.effectsOf("job")[0]!.heartbeat, 5000);
  const lost = {
    error: "no sign of life for 5s",
    retryable: true,
    reason: "heartbeat_timeout",
    progress: 41,
  } as const;
  assert.deepEqual(
    run.send("fail", { ...run.attempt("a"), ...lost })[0],
    "NodeFailed a heartbeat_timeout again",
  );
  assert.deepEqual(run.effectsOf("stop").map(({ id }) => id), ["job.x.a.1.1"]);
  run.fire();
  assert.equal(jobBody(run.flow, run.state!, run.attempt("a"))!.context.progress, 41);
  run.send("fail", { ...run.attempt("a"), ...lost });
  assert.equal(run.state!.failure!.reason, "heartbeat_timeout");
});

Deno.test("interrupt, answer, second interrupt; every attempt of the resumed run sees both", () => {
  const run = new Run(
    nodesOf("id: a, type: task, kind: k, timeout: 1m, retry: { max_attempts: 2, delay: 1s }"),
  );
  run.start();
  const context = () => jobBody(run.flow, run.state!, run.attempt("a"))!.context;
  assert.equal("interrupt" in context(), false);
  run.send("interrupt", { ...run.attempt("a"), payload: { ask: 1 } });
  assert.equal(run.state!.timers.size, 0, "no time-out while a person thinks");
  run.send("resume", { node: "a", value: "yes" });
  assert.deepEqual([context().interrupt, context().resume], [{ ask: 1 }, "yes"]);
  run.fail("a");
  run.fire("retry");
  assert.deepEqual([context().interrupt, context().resume], [{ ask: 1 }, "yes"]);
  run.send("interrupt", { ...run.attempt("a"), payload: { ask: 2 } });
  run.send("resume", { node: "a" });
  assert.deepEqual([context().interrupt, context().resume], [{ ask: 2 }, null]);
  assert.deepEqual(run.complete("a"), ["NodeCompleted a", "ExecutionCompleted"]);
});

Deno.test("F92 an answer is taken once; what is not interrupted cannot be resumed", () => {
  const run = new Run(nodesOf("id: m, type: map, over: '[1, 2, 3]', kind: k"));
  run.start();
  for (const key of ["m#2", "m#1"]) run.send("interrupt", run.attempt(key));
  assert.equal(run.refused("resume", { node: "m", key: "m#0" }), "rejected");
  assert.equal(run.refused("resume", { node: "none" }), "invalid");
  assert.deepEqual(run.send("resume", { node: "m" }), ["NodeScheduled m#1 4.1"], "the first by key");
  assert.deepEqual(run.send("resume", { node: "m", key: "m#2" }), ["NodeScheduled m#2 5.1"]);
  assert.equal(run.refused("resume", { node: "m" }), "rejected");
});

Deno.test("a next the worker names", () => {
  const run = new Run(flowOf(`
name: f
start: a
nodes:
  - { id: a, type: task, kind: k, dynamic: [c], next: b }
  - { id: b, type: task, kind: k }
  - { id: c, type: task, kind: k, next: a }
`));
  run.start();
  assert.deepEqual(run.complete("a", {}, { next: "c" })[1], "NodeEntered c");
  run.complete("c");
  assert.deepEqual(run.complete("a", {})[1], "NodeEntered b");
  assert.equal(run.state!.visits.get("a"), 2);
});

Deno.test("usage counts once an attempt, also of one that failed or waits; what is over the budget is not routed", () => {
  const flow = flowOf(`
name: f
budget: { cost: 10 }
nodes:
  - { id: a, type: task, kind: k, retry: { max_attempts: 5, delay: 1s }, on_failure: h }
  - { id: h, type: task, kind: k }
`);
  const run = new Run(flow);
  run.start();
  const attempt = run.attempt("a");
  run.fail("a", "e", { usage: { cost: 4, calls: 1 } });
  run.send("fail", { ...attempt, error: "e", retryable: true, usage: { cost: 4 } });
  assert.deepEqual(run.state!.counters.toObject(), { calls: 1, cost: 4 });
  run.fire();
  run.send("interrupt", { ...run.attempt("a"), usage: { cost: 6 } });
  assert.equal(run.state!.phase, "running", "used up exactly");
  run.send("resume", { node: "a" });
  assert.deepEqual(run.fail("a", "e", { usage: { cost: 0.5 } }), [
    "NodeFailed a error again",
    "ExecutionFailed budget_exceeded a",
  ]);
  const second = new Run(flow);
  second.start();
  assert.deepEqual(second.send("interrupt", { ...second.attempt("a"), usage: { cost: 11 } }), [
    "NodeInterrupted a",
    "ExecutionFailed budget_exceeded a",
  ]);
});

Deno.test("keys of limits are worked out when the work is scheduled, and kept by retries", () => {
  const run = new Run(nodesOf(
    "id: a, type: task, kind: k, concurrency: { key: input.tenant, max: 2 }, " +
      "rate: { max: 5, per: 1s, key: 'input.n' }, priority: 7, retry: { max_attempts: 2, delay: 1s }",
  ));
  run.start({ tenant: "t1", n: 5 });
  const limits = { concurrency: { key: "t1", max: 2 }, rate: { max: 5, per: 1000, key: "5" }, priority: 7 };
  const job = () => {
    const { concurrency, rate, priority } = run.effectsOf("job").at(-1)!;
    return { concurrency, rate, priority };
  };
  assert.deepEqual(job(), limits);
  run.fail("a");
  run.fire();
  assert.deepEqual(job(), limits);
  const failing = new Run(
    nodesOf("id: a, type: task, kind: k, concurrency: { key: input.gone + 1, max: 2 }"),
  );
  assert.deepEqual(failing.start(), [
    "ExecutionStarted",
    "NodeEntered a",
    "ExecutionFailed expression_error a",
  ]);
});
