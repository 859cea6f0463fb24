import assert from "node:assert/strict";
import { flowOf, nodesOf, Run, T0 } from "./fold_fixture.ts";
import { statusOf } from "./mod.ts";

Deno.test("choice: the first true rule, else the default wherever it stands; failing ones count as not true", () => {
  const choice = (rules: string, more = "") =>
    flowOf(`
name: f
start: c
nodes:
  - { id: c, type: choice, rules: [{ when: "false", to: a }, { when: "false", to: b }, ${rules}]${more} }
  - { id: a, type: task, kind: k }
  - { id: b, type: task, kind: k }
`);
  const way = (rules: string, more = ""): string[] => new Run(choice(rules, more)).start({ n: 1 }).slice(2);
  const taken = (to: string) => [`ChoiceEvaluated ${to}`, `NodeEntered ${to}`, `NodeScheduled ${to} 1.1`];
  assert.deepEqual(
    way("{ when: input.n == 1, to: a }, { when: input.n > 0, to: b }, { default: true, to: b }"),
    taken("a"),
  );
  assert.deepEqual(way("{ default: true, to: b }, { when: input.n == 1, to: a }"), taken("a"));
  assert.deepEqual(way("{ default: true, to: b }, { when: input.n == 2, to: a }"), taken("b"));
  assert.deepEqual(way("{ when: input.gone > 1, to: a }, { default: true, to: b }"), taken("b"));
  assert.deepEqual(way("{ when: input.n, to: a }, { default: true, to: b }"), taken("b"), "no boolean");
  assert.deepEqual(
    way("{ when: input.gone > 1, to: a }, { when: input.n == 1, to: a }, { default: true, to: b }"),
    taken("a"),
  );
  assert.deepEqual(way("{ when: input.n, to: a }, { default: true, to: b }", ", on_error: fail"), [
    "ChoiceEvaluated -",
    "ExecutionFailed expression_error c",
  ]);
  assert.deepEqual(way("{ default: true, to: $end }"), ["ChoiceEvaluated $end", "ExecutionCompleted"]);
  const run = new Run(choice("{ when: input.gone > 1, to: a }, { default: true, to: b }"));
  run.start();
  const { data } = run.log[0]!.find((event) => event.type === "ChoiceEvaluated")!;
  assert.equal(data.rule, 3);
  assert.match(data.error!, /null/);
  assert.equal(run.state!.lastNode, undefined, "a choice is never the last node");
});

Deno.test("output: the expression's, else the channels, else the last result", () => {
  const end = (yaml: string, output: unknown) => {
    const run = new Run(flowOf(`name: f\n${yaml}\nnodes: [{ id: a, type: task, kind: k }]\n`));
    run.start();
    run.complete("a", output);
    return run.state!.phase === "completed" ? run.state!.output : run.state!.failure!.reason;
  };
  assert.deepEqual(end("output: '{\"n\": results.a.n}'", { n: 1 }), { n: 1 });
  assert.equal(end("output: results.a", undefined), undefined, "null is none");
  assert.equal(end("output: results.a.n", { n: 1 }), "expression_error");
  assert.equal(end("output: '[1]'", {}), "expression_error");
  assert.equal(end("output: results.a.n + 1", {}), "expression_error");
  assert.deepEqual(end("channels: { log: { reducer: append, default: [1] }, last: {} }", {}), { log: [1] });
  assert.deepEqual(end("", { n: 2 }), { n: 2 });
  assert.equal(end("", undefined), undefined);
});

Deno.test("max_steps counts every entry, branches and joins too; nothing goes out of the decision that breaks it", () => {
  const fan = (steps: number) =>
    flowOf(`
name: f
max_steps: ${steps}
nodes:
  - { id: fan, type: fanout, branches: [a, s, b], next: join }
  - { id: a, type: task, kind: k, timeout: 1m }
  - { id: s, type: subflow, flow: child }
  - { id: b, type: task, kind: k }
  - { id: join, type: join }
`);
  const narrow = new Run(fan(3));
  assert.equal(narrow.start().at(-1), "ExecutionFailed max_steps b");
  assert.deepEqual(narrow.effects.map(({ type }) => type), ["index"]);
  assert.equal(narrow.state!.steps, 3);
  const wider = new Run(fan(4));
  wider.start();
  wider.complete("a");
  wider.childDone("s");
  assert.equal(wider.complete("b").at(-1), "ExecutionFailed max_steps join");
  const enough = new Run(fan(5));
  enough.start();
  enough.complete("a");
  enough.childDone("s");
  assert.equal(enough.complete("b").at(-1), "ExecutionCompleted");
});

Deno.test("the budget of steps is entries", () => {
  const run = new Run(flowOf(`
name: f
start: a
budget: { steps: 3 }
nodes: [{ id: a, type: task, kind: k, next: b }, { id: b, type: task, kind: k, next: a }]
`));
  run.start();
  run.complete("a", {}, { usage: { steps: 100 } });
  run.complete("b");
  assert.deepEqual(run.complete("a"), ["NodeCompleted a", "ExecutionFailed budget_exceeded b"]);
  assert.equal(run.state!.steps, 3);
});

Deno.test("sleep: for a while, until an instant, one that has passed; no result and no last node", () => {
  const sleep = (how: string) =>
    nodesOf(
      "id: a, type: task, kind: k, next: z",
      `id: z, type: sleep, ${how}, next: b`,
      "id: b, type: task, kind: k",
    );
  const run = new Run(sleep("for: 8760h"));
  run.start();
  assert.deepEqual(run.complete("a"), [
    "NodeCompleted a",
    "NodeEntered z",
    "TimerScheduled sleep 31536000000",
  ]);
  assert.equal(statusOf(run.state!), "waiting");
  assert.deepEqual(run.fire(), ["TimerFired", "NodeEntered b", "NodeScheduled b 3.1"]);
  assert.equal(run.now, T0 + 31_536_000_000);
  assert.equal(run.state!.lastNode, "a");
  assert.equal(run.state!.results.has("z"), false);

  const until = (value: unknown): string => {
    const made = new Run(sleep("until: input.at"));
    made.start({ at: value });
    return made.complete("a").at(-1)!;
  };
  assert.equal(until("2026-03-01T12:00:00+01:00"), "TimerScheduled sleep 3600000");
  assert.equal(until("2026-03-01T09:00:00Z"), "TimerScheduled sleep -3600000");
  assert.equal(until("2026-03-01T12:00:00"), "ExecutionFailed expression_error z", "an offset is needed");
  assert.equal(until("soon"), "ExecutionFailed expression_error z");
  assert.equal(until(null), "ExecutionFailed expression_error z");
});

Deno.test("fail: the message, and a message that fails", () => {
  const run = new Run(nodesOf("id: x, type: fail, message: 'order {{ input.order }} refused'"));
  assert.deepEqual(run.start({ order: "o-1" }), [
    "ExecutionStarted",
    "NodeEntered x",
    "ExecutionFailed failed x",
  ]);
  assert.deepEqual(run.state!.failure, { error: "order o-1 refused", reason: "failed", node: "x" });
  const failing = new Run(nodesOf("id: x, type: fail, message: 'order {{ input.order + 1 }} refused'"));
  failing.start({});
  assert.equal(failing.state!.failure!.reason, "expression_error");
});

Deno.test("failures lead to handlers, execution-level stops do not", () => {
  const saga = flowOf(`
name: f
start: a
nodes:
  - { id: a, type: task, kind: k, next: b }
  - { id: b, type: task, kind: k, on_failure: undo }
  - { id: undo, type: task, kind: k, retry: { max_attempts: 2, delay: 1s }, next: over }
  - { id: over, type: fail, message: undone }
`);
  const run = new Run(saga);
  run.start();
  run.complete("a", { id: 7 });
  run.fail("b", "no truck");
  assert.deepEqual(run.state!.errors.toObject(), { b: { error: "no truck", reason: "error", attempt: 1 } });
  assert.deepEqual(
    run.fail("undo"),
    ["NodeFailed undo error again", "TimerScheduled retry 1000"],
    "retries of its own",
  );
  run.fire();
  assert.equal(run.complete("undo").at(-1), "ExecutionFailed failed over");
});

Deno.test("conditions see the last node, counters, branches, errors and signals as they are", () => {
  const run = new Run(flowOf(`
name: f
start: a
nodes:
  - { id: a, type: task, kind: k, on_failure: c }
  - id: c
    type: choice
    rules:
      - { when: "last_node == 'a' && errors.a.reason == 'error' && counters.cost == 2 && visits.a == 1", to: a }
      - { when: "last_node == 'a' && errors.a.attempt == 1 && counters.cost == 3 && visits.a == 2", to: ok }
      - { default: true, to: $end }
  - { id: ok, type: task, kind: k, next: back }
  - { id: back, type: choice, rules: [{ when: "visits.a < 3", to: a }, { default: true, to: $end }] }
output: '{"errors": errors, "last": last_node, "counters": counters}'
`));
  run.start();
  assert.equal(run.fail("a", "e", { usage: { cost: 2 } })[3], "NodeEntered a");
  assert.equal(run.fail("a", "e", { usage: { cost: 1 } })[3], "NodeEntered ok");
  run.complete("ok");
  run.complete("a");
  assert.deepEqual(
    run.state!.output,
    { errors: {}, last: "a", counters: { cost: 3 } },
    "a success clears the error",
  );
});

Deno.test("a long chain of choices is no deep recursion", () => {
  const nodes = Array.from(
    { length: 499 },
    (_, i) =>
      `  - { id: c${i}, type: choice, rules: [{ default: true, to: ${i < 498 ? `c${i + 1}` : "$end"} }] }`,
  );
  const run = new Run(flowOf(`name: f\nstart: c0\nnodes:\n${nodes.join("\n")}\n`));
  assert.equal(run.start().length, 1000);
  assert.equal(run.state!.phase, "completed");
});

Deno.test("F11 a decision with too many events becomes the failure of the execution", () => {
  const run = new Run(flowOf(`
name: f
start: a
max_steps: 100000
nodes:
  - { id: a, type: choice, rules: [{ when: 'visits.a > 5000', to: $end }, { default: true, to: b }] }
  - { id: b, type: choice, rules: [{ default: true, to: a }] }
`));
  assert.deepEqual(run.start(), ["ExecutionStarted", "ExecutionFailed decision_too_large"]);
  const small = new Run(
    nodesOf("id: a, type: task, kind: k, next: m", "id: m, type: map, over: '[1, 2, 3, 4]', kind: k"),
    { maxEvents: 5 },
  );
  small.start();
  assert.deepEqual(small.complete("a"), ["ExecutionFailed decision_too_large"]);
  assert.deepEqual(small.effectsOf("stop").map(({ key }) => key), ["a"]);
});
