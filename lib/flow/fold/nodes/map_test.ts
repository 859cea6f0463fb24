import assert from "node:assert/strict";
import { flowOf, nodesOf, Run } from "../fold_fixture.ts";
import { jobBody } from "../mod.ts";

Deno.test("what a map goes over", () => {
  const flow = nodesOf("id: m, type: map, over: input.items, kind: k");
  const end = (input: unknown): string => new Run(flow).start(input).at(-1)!;
  assert.equal(end({ items: null }), "ExecutionCompleted");
  assert.equal(end({}), "ExecutionCompleted", "missing reads as null");
  assert.equal(end({ items: 7 }), "ExecutionFailed expression_error m");
  assert.equal(end({ items: {} }), "ExecutionFailed expression_error m");
  assert.equal(
    new Run(
      nodesOf("id: m, type: map, over: input.a + 1, kind: k, on_failure: h", "id: h, type: task, kind: k"),
    )
      .start({}).at(-1),
    "ExecutionFailed expression_error m",
    "an expression is never routed",
  );
});

Deno.test("an item sees itself and its position; its writes go to channels", () => {
  const run = new Run(flowOf(`
name: f
channels: { total: { reducer: sum, default: 0 } }
nodes: [{ id: m, type: map, over: input.items, kind: k, meta: { a: 1 } }]
`));
  run.start({ items: [{ v: 1 }, null] });
  const [first, second] = ["m#0", "m#1"].map((key) => jobBody(run.flow, run.state!, run.attempt(key))!);
  assert.deepEqual([first!.context.item, first!.context.index, first!.index], [{ v: 1 }, 0, 0]);
  assert.deepEqual([second!.context.item, second!.context.index, first!.meta], [null, 1, { a: 1 }]);
  run.complete("m#1", { n: 2 }, { writes: { total: 5 } });
  assert.equal(
    run.send("complete", { ...run.attempt("m#0"), next: "m" })[0],
    "NodeFailed m#0 invalid_output",
  );
  assert.equal(run.state!.channels.get("total"), 5);
});

Deno.test("a failed item without a route fails the execution", () => {
  const run = new Run(
    nodesOf("id: m, type: map, over: '[1, 2]', kind: k, retry: { max_attempts: 2, delay: 1s }"),
  );
  run.start();
  assert.equal(run.fail("m#1")[0], "NodeFailed m#1 error again");
  run.fire();
  assert.deepEqual(run.fail("m#1"), ["NodeFailed m#1 error", "ExecutionFailed error m"]);
  assert.deepEqual(run.state!.errors.get("m"), { error: "broken", reason: "error", attempt: 2, index: 1 });
});

Deno.test("children of a map: inputs, results in order, usage, one that fails", () => {
  const flow = flowOf(`
name: f
budget: { cost: 10 }
nodes:
  - id: m
    type: map
    over: input.items
    max_parallel: 2
    flow: child
    input: '{"v": item, "at": index, "all": input.all}'
    on_failure: h
  - { id: h, type: task, kind: k }
`);
  const run = new Run(flow);
  run.start({ items: ["p", "q", "r"], all: true });
  const inputs = () => run.effectsOf("child_start").map(({ command }) => command.data.input);
  assert.deepEqual(inputs(), [{ v: "p", at: 0, all: true }, { v: "q", at: 1, all: true }]);
  assert.deepEqual(run.childDone("m#1", { output: { n: 1 }, counters: { cost: 5 } }), [
    "ChildCompleted m#1 completed",
    "ChildStarted m#2 x-c3",
  ]);
  run.childDone("m#0", { output: { n: 0 }, counters: { cost: 5 } });
  const child = run.state!.children.any()!.childId;
  assert.deepEqual(run.childDone("m#2", { output: null }).slice(-2), [
    "MapCompleted m",
    "ExecutionCompleted",
  ]);
  assert.deepEqual(run.state!.output, [{ n: 0 }, { n: 1 }, null]);
  assert.deepEqual(run.state!.counters.toObject(), { cost: 10 });
  assert.deepEqual(run.send("child_done", { child_id: child, status: "completed" }), []);

  const failing = new Run(flow);
  failing.start({ items: [1, 2, 3] });
  assert.deepEqual(failing.childDone("m#0", { status: "cancelled" }), [
    "ChildCompleted m#0 cancelled",
    "MapAborted m",
    "NodeEntered h",
    "NodeScheduled h 3.1",
  ]);
  assert.deepEqual(failing.effectsOf("child_cancel").map(({ command }) => command.exec_id), ["x-c2"]);
  assert.deepEqual(failing.state!.errors.get("m"), {
    error: 'the child "x-c1" was cancelled',
    reason: "child_failed",
    index: 0,
  });
});

Deno.test("an item that is no object is no input of a child, and is never routed", () => {
  const run = new Run(nodesOf(
    "id: m, type: map, over: input.items, max_parallel: 1, flow: child, on_failure: h",
    "id: h, type: task, kind: k",
  ));
  run.start({ items: [{}, 7] });
  assert.deepEqual(run.childDone("m#0"), [
    "ChildCompleted m#0 completed",
    "ExecutionFailed expression_error m",
  ]);
  assert.match(run.state!.failure!.error, /item 1 is no object but 7/);
});

Deno.test("a thousand children: every item once, results in order", () => {
  const n = 1000,
    run = new Run(nodesOf("id: m, type: map, over: input.items, flow: child"), { thorough: false });
  run.start({ items: Array.from({ length: n }, (_, i) => ({ i })) });
  for (let open = run.state!.children; open.size > 0; open = run.state!.children) {
    assert.ok(open.size <= 100);
    const { key, index } = open.values()[open.size >> 1]!;
    run.childDone(key, { output: { twice: index! * 2 } });
  }
  assert.deepEqual(run.state!.output, Array.from({ length: n }, (_, i) => ({ twice: i * 2 })));
  run.check();
  assert.equal(run.effectsOf("child_start").length, n);
});
