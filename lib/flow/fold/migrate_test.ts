import assert from "node:assert/strict";
import type { CompiledFlow } from "../definition/types.ts";
import { flowOf, Run, T0 } from "./fold_fixture.ts";
import { checkHistory, decideMigration, migrationProblems, type NodeNames, sameState } from "./mod.ts";

const flow = (nodes: string, more = ""): CompiledFlow => flowOf(`name: f\n${more}\nnodes:\n${nodes}`);

const FAN = `
  - { id: fan, type: fanout, branches: [a, b], next: join }
  - { id: a, type: task, kind: k }
  - { id: b, type: subflow, flow: child }
  - { id: join, type: join, next: end }
  - { id: end, type: task, kind: k }
`;
const V1 = flow(FAN);

function problems(
  to: CompiledFlow,
  names?: NodeNames,
  from = V1,
  prepare: (run: Run) => unknown = () => {},
): string[] {
  const run = new Run(from);
  run.start();
  prepare(run);
  return migrationProblems(from, to, run.state!, names);
}

Deno.test("what is open has to mean the same in the other version", () => {
  assert.deepEqual(
    problems(flow(FAN.replace("id: end, type: task, kind: k", "id: end, type: fail, message: m"))),
    [],
  );
  assert.deepEqual(
    problems(flow(FAN.replace("[a, b]", "[a, b, c]") + "  - { id: c, type: task, kind: k }\n")),
    [
      'the node "fan" is open, and "fan" has another set of branches',
    ],
  );
  assert.deepEqual(
    problems(flow(FAN.replace("id: a, type: task, kind: k", "id: a, type: task, kind: other"))),
    [
      'the node "a" is open, and "a" has another kind',
    ],
  );
  assert.deepEqual(problems(flow(FAN.replace("flow: child", "flow: other"))), [
    'the node "b" is open, and "b" has another flow',
  ]);
  assert.deepEqual(problems(flow(FAN.replaceAll("join", "gate").replace("type: gate", "type: join"))), [
    'the node "fan" is open, and "fan" has another join',
  ]);
  assert.deepEqual(problems(flowOf(`name: other\nnodes: [{ id: a, type: task, kind: k }]\n`)), [
    '"other" is another flow than "f"',
  ]);
  assert.deepEqual(problems(V1, { fan: "gone" }), ['there is no node "gone" to become of "fan"']);
});

Deno.test("awaits keep their signals and policy, channels their reducers, ways that are held their nodes", () => {
  const wait = (how: string) => flow(`  - { id: w, type: await, ${how}, timeout: 1h }\n`);
  const from = wait("signals: [a, b], policy: all");
  assert.deepEqual(problems(wait("signals: [b, a], policy: all"), {}, from), []);
  assert.deepEqual(problems(wait("signals: [a, b], policy: any"), {}, from), [
    'the node "w" is open, and "w" has another policy',
  ]);
  assert.deepEqual(problems(wait("signals: [a, c], policy: all"), {}, from), [
    'the node "w" is open, and "w" has another set of signals',
  ]);

  const task = "  - { id: a, type: task, kind: k, next: b }\n  - { id: b, type: task, kind: k }\n";
  const channels = flow(task, "channels: { x: { reducer: sum, default: 0 }, constructor: { default: 1 } }");
  assert.deepEqual(problems(flow(task), {}, channels), [
    'the channel "constructor" is not there',
    'the channel "x" is not there',
  ]);
  assert.deepEqual(
    problems(flow(task, "channels: { x: { reducer: append, default: [] }, constructor: {} }"), {}, channels),
    ['the channel "x" has another reducer'],
  );
  const held = (run: Run): void => {
    run.send("pause", {});
    run.complete("a");
  };
  const renamed = flow("  - { id: a, type: task, kind: k, next: c }\n  - { id: c, type: task, kind: k }\n");
  assert.deepEqual(problems(renamed, {}, flow(task), held), ['the way on leads to "b", which is not there']);
  assert.deepEqual(problems(renamed, { b: "c" }, flow(task), held), []);
});

Deno.test("an execution with open branches, items and children goes on under new names", () => {
  const from = flow(`
  - { id: m, type: map, over: '[1, 2, 3]', max_parallel: 2, kind: k, timeout: 1m, next: fan }
${FAN.slice(1)}`);
  const to = flow(
    `
  - { id: each, type: map, over: '[1, 2, 3]', max_parallel: 2, kind: k, next: all }
${FAN.slice(1)}`
      .replace("id: fan", "id: all").replaceAll("[a, b]", "[x, b]").replace("id: a,", "id: x,"),
  );
  const names = { m: "each", fan: "all", a: "x" };
  const versions = (hash: string): CompiledFlow => hash === to.hash ? to : from;

  for (const prepare of [() => {}, (run: Run) => ["m#0", "m#1", "m#2"].forEach((key) => run.complete(key))]) {
    const before = new Run(from);
    before.start();
    prepare(before);
    const command = {
      id: "m",
      type: "migrate",
      exec_id: "x",
      data: { flow_hash: to.hash, nodes: names },
    } as const;
    const verdict = decideMigration(from, to, before.state!, command, T0);
    assert.ok(verdict.ok, verdict.ok ? "" : verdict.message);
    const again = decideMigration(from, to, verdict.state, command, T0);
    assert.ok(again.ok && again.events.length === 0, "it is there already");

    const after = new Run(to, { thorough: false });
    after.state = verdict.state;
    after.log.push(...before.log, verdict.events);
    const finish: readonly string[] = after.state.maps.size > 0 ? ["each#1", "each#0", "each#2"] : [];
    for (const key of finish) after.complete(key);
    after.complete("x");
    after.childDone("b");
    after.complete("end", { done: true });
    assert.equal(after.state.phase, "completed");
    assert.deepEqual(after.state.visits.toObject(), { all: 1, b: 1, each: 1, end: 1, join: 1, x: 1 });
    assert.equal(after.state.timers.size, 0);
    const checked = checkHistory(versions, after.log);
    assert.deepEqual(checked.problems, []);
    assert.ok(sameState(checked.state!, after.state));
  }
});

Deno.test("a migration is refused for another hash, another state and an execution that has ended", () => {
  const to = flow(FAN.replace("kind: k }\n  - { id: b", "kind: k, timeout: 1m }\n  - { id: b"));
  const run = new Run(V1);
  run.start();
  const ask = (flow_hash: string, from = V1) => {
    const command = { id: "m", type: "migrate", exec_id: "x", data: { flow_hash } } as const;
    const verdict = decideMigration(from, to, run.state!, command, T0);
    return verdict.ok ? "ok" : verdict.code;
  };
  assert.equal(ask("0000"), "invalid");
  assert.equal(ask(to.hash, flow(FAN, "max_steps: 7")), "invalid");
  assert.equal(ask(to.hash), "ok");
  run.send("cancel", {});
  assert.equal(ask(to.hash), "rejected");
});

Deno.test("timers that were set before fire for the nodes' new names", () => {
  const from = flow(
    "  - { id: a, type: task, kind: k, timeout: 1m, next: w }\n  - { id: w, type: await, signal: s, timeout: 1h }\n",
  );
  const to = flow(
    "  - { id: b, type: task, kind: k, next: v }\n  - { id: v, type: await, signal: s, timeout: 1h }\n",
  );
  const names = { a: "b", w: "v" };
  const moved = (prepare: (run: Run) => unknown): Run => {
    const before = new Run(from), after = new Run(to, { thorough: false });
    before.start();
    prepare(before);
    const command = {
      id: "m",
      type: "migrate",
      exec_id: "x",
      data: { flow_hash: to.hash, nodes: names },
    } as const;
    const verdict = decideMigration(from, to, before.state!, command, T0);
    assert.ok(verdict.ok);
    after.state = verdict.state;
    return after;
  };
  assert.deepEqual(moved(() => {}).fire(), [
    "TimerFired",
    "NodeFailed b timeout",
    "ExecutionFailed timeout b",
  ]);
  assert.deepEqual(moved((run) => run.complete("a")).fire(), [
    "TimerFired",
    "AwaitTimedOut v",
    "ExecutionFailed await_timeout v",
  ]);
});
