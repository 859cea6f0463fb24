import assert from "node:assert/strict";
import { flowOf, nodesOf, Run, T0 } from "./fold_fixture.ts";
import {
  abort,
  checkHistory,
  childId,
  childRefused,
  type Command,
  decide,
  decideFork,
  decideMigration,
  decodeState,
  encodeState,
  migrationProblems,
  sameState,
  statusOf,
} from "./mod.ts";
import { parseExact, stringifyJson } from "../../json.ts";

const ONE = nodesOf("id: a, type: task, kind: k");
const CHILD = nodesOf("id: s, type: subflow, flow: child");

Deno.test("F30 a start is idempotent: it joins what is there, also what has ended; another flow's id is a conflict", () => {
  const run = new Run(ONE);
  run.start({ n: 1 });
  const again = run.ask("start", { flow: "f", input: { n: 2 } });
  assert.ok(again.ok && again.joined && again.events.length === 0);
  assert.deepEqual(run.state!.input, { n: 1 });
  assert.equal(run.refused("start", { flow: "other" }), "conflict");
  run.complete("a");
  assert.ok(run.ask("start", { flow: "f" }).ok);
  assert.equal(run.refused("start", { flow: "other" }), "conflict");
});

Deno.test("a start whose input is no object is refused, and nothing is there", () => {
  for (const input of [5, "x", [1], true]) {
    const run = new Run(ONE);
    assert.equal(run.refused("start", { flow: "f", input }), "invalid");
    assert.equal(run.state, undefined);
  }
  const run = new Run(ONE);
  run.start();
  assert.deepEqual(run.state!.input, {});
  assert.equal(new Run(ONE, { execId: "a.b" }).refused("start", { flow: "f" }), "invalid");
  assert.equal(new Run(ONE, { execId: "" }).refused("start", { flow: "f" }), "invalid");
});

Deno.test("commands for what is not there", () => {
  for (const [type, data] of COMMANDS) {
    if (type !== "start") {
      assert.equal(new Run(ONE).refused(type as "cancel", data as never), "not_found", type);
    }
  }
});

const COMMANDS: readonly (readonly [string, unknown])[] = [
  ["complete", { key: "a", generation: 1, attempt: 1, output: {} }],
  ["fail", { key: "a", generation: 1, attempt: 1, error: "e", retryable: true }],
  ["interrupt", { key: "a", generation: 1, attempt: 1 }],
  ["resume", { node: "a" }],
  ["signal", { name: "go" }],
  ["cancel", {}],
  ["pause", {}],
  ["unpause", {}],
  ["timer", { timer_id: "t1" }],
  ["child_done", { child_id: "x-c1", status: "completed" }],
];

Deno.test("F38 an end is final: everything that comes later is nothing, an update is refused", () => {
  const ends: readonly ((run: Run) => unknown)[] = [
    (run) => run.complete("a"),
    (run) => run.fail("a"),
    (run) => run.send("cancel", {}),
  ];
  for (const end of ends) {
    const run = new Run(ONE);
    run.start();
    end(run);
    const { events } = run.state!;
    for (const [type, data] of COMMANDS) {
      assert.deepEqual(run.send(type as "cancel", data as never), [], type);
    }
    assert.equal(run.refused("update", { writes: {} }), "rejected");
    assert.equal(run.state!.events, events);
  }
});

Deno.test("F42 a cancel reaches the children and takes timers and jobs along", () => {
  const run = new Run(flowOf(`
name: f
retention: 1h
on_expire: delete
nodes:
  - { id: fan, type: fanout, branches: [a, s, t], next: join }
  - { id: a, type: task, kind: k, timeout: 1m }
  - { id: s, type: subflow, flow: child }
  - { id: t, type: subflow, flow: child, on_parent_close: abandon }
  - { id: join, type: join }
`));
  run.start({}, { parent: { exec_id: "p", node: "n", child_n: 3 } });
  const before = run.effects.length;
  run.send("cancel", { reason: "enough" });
  assert.deepEqual(run.effects.slice(before).map((effect) => ({ ...effect, summary: undefined })), [
    { type: "stop", id: "job.x.a.1.1", key: "a", generation: 1, attempt: 1, summary: undefined },
    { type: "timer_delete", id: "t2", summary: undefined },
    {
      type: "child_cancel",
      command: {
        id: "parent-closed.x-c3",
        type: "cancel",
        exec_id: "x-c3",
        data: { reason: 'the parent "x" no longer waits for it' },
      },
      summary: undefined,
    },
    {
      type: "parent_notice",
      command: {
        id: "child-done.x",
        type: "child_done",
        exec_id: "p",
        data: { child_id: "x", status: "cancelled", error: "enough" },
      },
      summary: undefined,
    },
    { type: "expire", at: T0 + 3_600_000, action: "delete", summary: undefined },
    { type: "index", before: "running", summary: undefined },
  ]);
});

Deno.test("F63 a child's id that is taken by another execution is a conflict, which the parent learns of", () => {
  const run = new Run(ONE, { execId: "p-c1" });
  const parent = { exec_id: "p", node: "s", child_n: 1 };
  run.start();
  assert.equal(run.refused("start", { flow: "f", parent }), "conflict");
  const child = new Run(ONE, { execId: "p-c1" });
  child.start({}, { parent });
  assert.deepEqual(child.start({}, { parent }), []);
  assert.equal(child.refused("start", { flow: "f", parent: { ...parent, exec_id: "q" } }), "conflict");
  const start = { id: "start.p-c1", type: "start", exec_id: "p-c1", data: { flow: "gone", parent } } as const;
  assert.deepEqual(childRefused(start, "there is no flow"), {
    id: "child-done.p-c1",
    type: "child_done",
    exec_id: "p",
    data: { child_id: "p-c1", status: "failed", error: "there is no flow" },
  });
  assert.equal(childRefused({ ...start, data: { flow: "gone" } }, "there is no flow"), undefined);
});

Deno.test("names that objects inherit are names like others", () => {
  const run = new Run(flowOf(`
name: toString
start: constructor
budget: { valueOf: 3 }
channels: { __proto__: { reducer: append, default: [] }, hasOwnProperty: {} }
nodes:
  - { id: constructor, type: fanout, branches: [__proto__, isPrototypeOf], next: valueOf }
  - { id: __proto__, type: task, kind: constructor }
  - { id: isPrototypeOf, type: task, kind: __proto__ }
  - { id: valueOf, type: join, next: toString }
  - { id: toString, type: await, signals: [__proto__, constructor], policy: all, timeout: 1h, next: c }
  - { id: c, type: choice, rules: [{ when: "visits.propertyIsEnumerable == 0 && branches['__proto__'] == 'completed'", to: m }, { default: true, to: $end }] }
  - { id: m, type: map, over: "[1, 2]", kind: k }
output: '{"join": results["valueOf"], "signals": results["toString"], "c": channels}'
`));
  run.start();
  const writes = JSON.parse('{"__proto__": 1}');
  run.complete("__proto__", { a: 1 }, { writes, usage: JSON.parse('{"__proto__": 2, "valueOf": 1}') });
  run.complete("isPrototypeOf", { b: 1 });
  run.signal("constructor", 1);
  run.signal("__proto__", 2);
  run.complete("m#0");
  run.complete("m#1");
  assert.equal(
    JSON.stringify(run.state!.output),
    '{"join":{"__proto__":{"a":1},"isPrototypeOf":{"b":1}},"signals":{"constructor":1,"__proto__":2},"c":{"__proto__":[1]}}',
  );
  assert.deepEqual(run.state!.counters.keys(), ["__proto__", "valueOf"]);
});

Deno.test("F44 a completion that comes twice is a success without events", () => {
  const run = new Run(ONE);
  run.start();
  const attempt = run.attempt("a");
  run.send("complete", attempt);
  const again = run.ask("complete", attempt);
  assert.ok(again.ok && again.events.length === 0);
});

Deno.test("F22 signals that come with a start are there before the first node; they reach one that is there, once", () => {
  const flow = nodesOf(
    "id: w, type: await, signal: go, timeout: 1h, next: w2",
    "id: w2, type: await, signal: go, timeout: 1h",
  );
  const run = new Run(flow);
  const signals = [{ id: "s1", name: "go", payload: 1 }];
  assert.deepEqual(run.start({}, { signals }).slice(0, 3), [
    "ExecutionStarted",
    "SignalReceived go",
    "NodeEntered w",
  ]);
  assert.deepEqual(run.state!.awaits.keys(), ["w2"]);
  assert.deepEqual(run.start({}, { signals }), []);
  assert.deepEqual(run.start({}, { signals: [{ id: "s2", name: "go" }] }).at(-1), "ExecutionCompleted");
});

Deno.test("a delayed start keeps signals and can be cancelled; its deadline counts from when it sets out", () => {
  const flow = flowOf(`
name: f
deadline: 1h
nodes: [{ id: w, type: await, signal: go, timeout: 30m, next: a }, { id: a, type: task, kind: k }]
`);
  const run = new Run(flow);
  assert.deepEqual(run.start({}, { start_at: T0 + 60_000 }), [
    "ExecutionStarted",
    "TimerScheduled deadline 3660000",
    "TimerScheduled start 60000",
  ]);
  assert.equal(statusOf(run.state!), "waiting");
  run.signal("go");
  assert.deepEqual(run.fire("start").slice(0, 2), ["TimerFired", "NodeEntered w"]);
  assert.deepEqual(Object.keys(run.state!.tasks.toObject()), ["a"]);
  const cancelled = new Run(flow);
  cancelled.start({}, { start_at: T0 + 60_000 });
  assert.deepEqual(cancelled.send("cancel", {}), ["ExecutionCancelled"]);
  assert.deepEqual(new Run(flow).start({}, { start_at: T0 - 1 })[2], "NodeEntered w", "that was before");
});

Deno.test("F55 a deadline is one instant, whatever happens on the way", () => {
  const run = new Run(flowOf(`
name: f
deadline: 1h
nodes: [{ id: a, type: task, kind: k, retry: { max_attempts: 5, delay: 50m }, on_failure: b }, { id: b, type: task, kind: k }]
`));
  run.start();
  run.now += 1000;
  run.fail("a");
  run.fire("retry");
  run.fail("a");
  assert.equal(run.state!.deadlineAt, T0 + 3_600_000);
  assert.deepEqual(run.fire("deadline"), ["TimerFired", "ExecutionFailed deadline_exceeded"]);
  assert.equal(run.now, T0 + 3_600_000);
  const asked = new Run(ONE);
  assert.equal(asked.start({}, { deadline_at: T0 + 5000 })[1], "TimerScheduled deadline 5000");
});

Deno.test("search attributes: what is null or fails is left out, the rest is text", () => {
  const run = new Run(flowOf(`
name: f
search_attributes: { order: input.order, n: input.n, gone: input.gone, bad: input.order + 1, list: input.list }
nodes: [{ id: a, type: task, kind: k }]
`));
  run.start({ order: "o-1", n: 9007199254740993n, list: [1] });
  assert.deepEqual(run.state!.attrs, { order: "o-1", n: "9007199254740993", list: "[1]" });
});

Deno.test("an update: at once, once an id, refused when it does not fit", () => {
  const run = new Run(flowOf(`
name: f
channels: { log: { reducer: append, default: [] }, last: {} }
nodes: [{ id: a, type: task, kind: k }]
`));
  run.start();
  assert.deepEqual(run.send("update", { writes: { log: [1, 2], last: { x: 1 } } }, "u1"), [
    "ChannelsUpdated",
  ]);
  assert.deepEqual(run.send("update", { writes: { log: 3 } }, "u1"), []);
  for (const writes of [{ other: 1 }, 7, null, [1]]) {
    assert.equal(run.refused("update", { writes }), "invalid");
  }
  assert.deepEqual(run.state!.channels.toObject(), { last: { x: 1 }, log: [1, 2] });
});

Deno.test("F72 a pause is no end: what is under way goes on, the way on waits", () => {
  const run = new Run(nodesOf("id: a, type: task, kind: k, next: b", "id: b, type: task, kind: k"));
  run.start();
  assert.deepEqual(run.send("pause", { reason: "incident" }), ["ExecutionPaused"]);
  assert.deepEqual(run.send("pause", {}), []);
  assert.deepEqual(run.complete("a"), ["NodeCompleted a", "RouteHeld b"]);
  assert.equal(statusOf(run.state!), "waiting");
  assert.deepEqual(run.send("unpause", {}), ["ExecutionUnpaused", "NodeEntered b", "NodeScheduled b 2.1"]);
  assert.deepEqual(run.send("unpause", {}), []);
  run.send("pause", {});
  assert.deepEqual(run.complete("b"), ["NodeCompleted b", "RouteHeld $end"]);
  assert.deepEqual(run.send("unpause", {}), ["ExecutionUnpaused", "ExecutionCompleted"]);
});

Deno.test("a pause holds retries, sleeps and awaits; their timers are set again behind it", () => {
  const run = new Run(
    nodesOf(
      "id: a, type: task, kind: k, retry: { max_attempts: 2, delay: 1s }, next: z",
      "id: z, type: sleep, for: 1m, next: w",
      "id: w, type: await, signal: go, timeout: 1m",
    ),
  );
  run.start();
  run.fail("a");
  run.send("pause", {});
  assert.deepEqual(run.fire(), []);
  const timer = run.state!.timers.any()!;
  assert.deepEqual(run.send("unpause", {}), ["ExecutionUnpaused"]);
  const set = run.effectsOf("timer_set").at(-1)!;
  assert.deepEqual([set.id, set.at, set.command.id], [timer.id, timer.at, `timer.x.${timer.id}`]);
  assert.deepEqual(run.fire(), ["TimerFired", "NodeScheduled a 1.2"]);
  run.complete("a");
  run.send("pause", {});
  assert.deepEqual(run.fire(), []);
  run.send("unpause", {});
  assert.deepEqual(run.fire().slice(0, 2), ["TimerFired", "NodeEntered w"]);
  run.send("pause", {});
  assert.deepEqual(run.fire(), []);
  assert.deepEqual(run.signal("go"), ["SignalReceived go"]);
  assert.deepEqual(run.send("unpause", {}), [
    "ExecutionUnpaused",
    "SignalConsumed w go",
    "ExecutionCompleted",
  ]);
});

Deno.test("while it is paused attempts still run out of time, and maps begin no more items", () => {
  const run = new Run(
    nodesOf(
      "id: m, type: map, over: '[1, 2, 3]', max_parallel: 1, kind: k, timeout: 5s, retry: { max_attempts: 2, delay: 1s }",
    ),
  );
  run.start();
  run.complete("m#0");
  run.send("pause", {});
  assert.deepEqual(run.fire("timeout").slice(0, 2), ["TimerFired", "NodeFailed m#1 timeout again"]);
  assert.deepEqual(run.fire("retry"), []);
  run.send("unpause", {});
  run.fire("retry");
  run.send("pause", {});
  assert.deepEqual(run.complete("m#1"), ["NodeCompleted m#1"]);
  assert.deepEqual(run.send("unpause", {})[1], "NodeScheduled m#2 7.1");
  run.send("interrupt", run.attempt("m#2"));
  run.send("pause", {});
  assert.equal(run.refused("resume", { node: "m" }), "rejected");
});

Deno.test("a deadline holds while it is paused", () => {
  const run = new Run(nodesOf("id: a, type: task, kind: k"));
  run.start({}, { deadline_at: T0 + 5000 });
  run.send("pause", {});
  assert.deepEqual(run.fire(), ["TimerFired", "ExecutionFailed deadline_exceeded"]);
});

Deno.test("F26 whoever waits has something that wakes him", () => {
  // `checkHistory` asks this behind every decision of every test; here the statuses that users see.
  const waiting = (...nodes: string[]) => {
    const run = new Run(nodesOf(...nodes));
    run.start();
    return run;
  };
  assert.equal(statusOf(waiting("id: w, type: await, signal: go, timeout: 1h").state!), "waiting");
  assert.equal(statusOf(waiting("id: z, type: sleep, for: 1h").state!), "waiting");
  assert.equal(statusOf(waiting("id: s, type: subflow, flow: c").state!), "running");
  assert.equal(statusOf(waiting("id: m, type: map, over: '[1]', kind: k").state!), "running");
  const run = waiting("id: a, type: task, kind: k");
  assert.equal(statusOf(run.state!), "running");
  run.send("interrupt", run.attempt("a"));
  assert.equal(statusOf(run.state!), "waiting");
});

Deno.test("F63 a history that was continued changes nothing else: ids, timers, visits, policies", () => {
  const run = new Run(flowOf(`
name: f
start: a
channels: { log: { reducer: append, default: [] } }
nodes:
  - { id: a, type: task, kind: k, timeout: 1m, next: c }
  - { id: c, type: choice, rules: [{ when: 'visits.a > 3', to: s }, { default: true, to: a }] }
  - { id: s, type: subflow, flow: child }
`));
  run.start({ big: 12345678901234567890n });
  run.signal("later", 1, "s1");
  run.complete("a", {}, { writes: { log: 1 } });
  const { base: _, segments: __, events: ___, ...before } = encodeState(run.state!) as Record<
    string,
    unknown
  >;
  const segment = {
    object: "x.seg.1",
    first_index: 1,
    last_index: run.state!.events,
    first_seq: 1,
    last_seq: 3,
  };
  run.send("continue", { segment });
  const { base, segments, events, ...after } = encodeState(run.state!) as Record<string, unknown>;
  assert.deepEqual(after, before);
  assert.deepEqual([base, segments, events], [segment.last_index + 1, [segment], segment.last_index + 1]);

  // The live log alone is enough to go on from.
  const live = new Run(run.flow);
  const carried = run.log.at(-1)!;
  live.log.push(carried);
  live.state = decodeState(
    parseExact(stringifyJson((carried[0]!.data as { readonly state: unknown }).state)),
  );
  live.state = { ...live.state, base: base as number, segments: [segment], events: events as number };
  live.check();
  assert.deepEqual(run.signal("later", 1, "s1"), [], "its id is still known");
  run.complete("a");
  run.complete("a");
  run.complete("a");
  assert.deepEqual(run.send("cancel", {}), ["ExecutionCancelled"]);
  assert.equal(run.effectsOf("child_cancel").length, 1);
});

Deno.test("ids of children are worked out; those of long ids are cut to fit", () => {
  assert.equal(childId("x", 7), "x-c7");
  const long = "p".repeat(126), id = childId(long, 12);
  assert.match(id, /^[0-9a-f]{24}-c12$/);
  assert.equal(id, childId(long, 12));
  assert.notEqual(id, childId("q".repeat(126), 12));
  const run = new Run(CHILD, { execId: "y".repeat(128) });
  run.start();
  assert.match(run.effectsOf("child_start")[0]!.command.exec_id, /^[0-9a-f]{24}-c1$/);
  run.send("cancel", {});
  assert.equal(run.effectsOf("child_cancel").length, 1);
});

Deno.test("F74 a child that fails or is cancelled fails its parent, unless that has a handler; usage comes along", () => {
  for (
    const [status, error] of [["failed", "no stock"], [
      "cancelled",
      'the child "x-c1" was cancelled',
    ]] as const
  ) {
    const run = new Run(CHILD);
    run.start();
    assert.deepEqual(
      run.childDone("s", { status, ...(status === "failed" ? { error } : {}), counters: { cost: 2 } }),
      [`ChildCompleted s ${status}`, "ExecutionFailed child_failed s"],
    );
    assert.equal(run.state!.failure!.error, error);
    assert.deepEqual(run.state!.counters.toObject(), { cost: 2 });
  }
});

Deno.test("the budget holds for what children used, and is never routed", () => {
  const run = new Run(flowOf(`
name: f
budget: { cost: 5 }
nodes: [{ id: s, type: subflow, flow: child, on_failure: h }, { id: h, type: task, kind: k }]
`));
  run.start();
  assert.deepEqual(run.childDone("s", { status: "failed", counters: { cost: 6 } }), [
    "ChildCompleted s failed",
    "ExecutionFailed budget_exceeded s",
  ]);
});

Deno.test("commands that are not for this function, this execution or this version are refused", () => {
  const run = new Run(ONE);
  run.start();
  const code = (command: Record<string, unknown>) => {
    const verdict = decide(ONE, run.state, { id: "c", exec_id: "x", ...command } as unknown as Command, T0);
    return verdict.ok ? "ok" : verdict.code;
  };
  for (const type of ["archive", "delete", "redispatch", "fork", "migrate"]) {
    assert.equal(code({ type, data: {} }), "invalid");
  }
  assert.equal(code({ type: "cancel", exec_id: "y", data: {} }), "invalid");
  assert.equal(code({ type: "cancel", id: "", data: {} }), "invalid");
  assert.equal(code({ type: "cancel", id: "c".repeat(257), data: {} }), "invalid");
  assert.equal(code({ type: "signal", data: { name: "a b" } }), "invalid");
  assert.equal(new Run(ONE).refused("start", { flow: "other" }), "invalid");
});

Deno.test("what cannot be stored fails the execution; one that is not there is begun for it", () => {
  const start = {
    id: "s",
    type: "start",
    exec_id: "x",
    data: { flow: "f", parent: { exec_id: "p", node: "n", child_n: 1 } },
  } as const;
  const begun = abort(ONE, undefined, start, T0, "too large");
  assert.ok(begun.ok);
  assert.deepEqual(begun.events.map(({ type }) => type), ["ExecutionStarted", "ExecutionFailed"]);
  assert.deepEqual(begun.state.failure, { error: "too large", reason: "decision_too_large" });
  assert.deepEqual(begun.effects.map(({ type }) => type), ["parent_notice", "index"]);
  const signal = { id: "g", type: "signal", exec_id: "x", data: { name: "go" } } as const;
  const missing = abort(ONE, undefined, signal, T0, "too large");
  assert.ok(!missing.ok && missing.code === "not_found");
  const ended = abort(ONE, begun.state, signal, T0, "too large");
  assert.ok(ended.ok && ended.events.length === 0);
  const bad = abort(ONE, undefined, { ...start, data: { flow: "f", input: 7 } }, T0, "too large");
  assert.ok(!bad.ok && bad.code === "invalid");
});

Deno.test("the input of a child: the parent's by default; what it passes on is no part of the parent's state", () => {
  const run = new Run(
    nodesOf("id: a, type: task, kind: k, next: s", "id: s, type: subflow, flow: child, input: results"),
  );
  run.start({ n: 1 });
  run.complete("a", { v: 1 });
  const { input } = run.effectsOf("child_start")[0]!.command.data;
  run.childDone("s", { output: { w: 2 } });
  assert.deepEqual(input, { a: { v: 1 } });
  const plain = new Run(CHILD);
  plain.start({ n: 1 });
  assert.deepEqual(plain.effectsOf("child_start")[0]!.command, {
    id: "start.x-c1",
    type: "start",
    exec_id: "x-c1",
    data: { flow: "child", input: { n: 1 }, parent: { exec_id: "x", node: "s", child_n: 1 } },
  });
});

function fork(run: Run, data: Record<string, unknown> = {}, seq = 1) {
  const command = { id: "fork.y", type: "fork", exec_id: "y", data: { from: "x", seq, ...data } };
  return decideFork(run.flow, undefined, run.state!, command as Command & { type: "fork" }, run.now + 5000);
}

Deno.test("F7 a fork with edits goes its own way and leaves its source alone", () => {
  const run = new Run(flowOf(`
name: f
deadline: 1h
channels: { total: { reducer: sum, default: 0 } }
nodes:
  - { id: a, type: task, kind: k, next: b }
  - { id: b, type: task, kind: k, retry: { max_attempts: 2, delay: 1s }, next: c }
  - { id: c, type: choice, rules: [{ when: "channels.total > 5", to: d }, { default: true, to: $end }] }
  - { id: d, type: task, kind: k }
`));
  run.start({}, { parent: { exec_id: "p", node: "n", child_n: 1 } });
  run.complete("a", {}, { writes: { total: 5 } });
  run.fail("b");
  const verdict = fork(run, { writes: { total: 1 } });
  assert.ok(verdict.ok);
  const other = new Run(run.flow, { execId: "y" });
  other.keep(verdict);
  assert.deepEqual(other.history, [
    "ExecutionForked",
    "ChannelsUpdated",
    "TimerScheduled deadline 3600000",
    "NodeScheduled b 6.1",
  ]);
  assert.deepEqual([other.state!.forkedFrom, other.state!.forkSeq, other.state!.steps], ["x", 1, 2]);
  assert.deepEqual(other.complete("b").slice(-2), ["NodeEntered d", "NodeScheduled d 7.1"]);
  other.complete("d");
  assert.equal(other.effectsOf("parent_notice").length, 0, "a fork is nobody's child");
  assert.equal(run.state!.channels.get("total"), 5);

  const bad = fork(run, { writes: { other: 1 } });
  assert.ok(!bad.ok && bad.code === "invalid");
  run.send("cancel", {});
  assert.ok(!fork(run, { writes: { total: 1 } }).ok, "it has ended");
  const copy = fork(run);
  assert.ok(copy.ok && copy.events.length === 1 && copy.state.phase === "cancelled");
  const existing = decideFork(run.flow, other.state, run.state!, {
    id: "fork.y",
    type: "fork",
    exec_id: "y",
    data: { from: "x", seq: 1 },
  }, T0);
  assert.ok(existing.ok && existing.joined && existing.events.length === 0);
});

Deno.test("a fork keeps interrupts, answers, sleeps and half an await; its failure cancels none of its source's children", () => {
  const asked = new Run(nodesOf("id: m, type: map, over: '[1, 2]', kind: k"));
  asked.start();
  asked.send("interrupt", { ...asked.attempt("m#0"), payload: "?" });
  asked.send("resume", { node: "m", value: "!" });
  asked.send("interrupt", { ...asked.attempt("m#1"), payload: "??" });
  const first = fork(asked);
  assert.ok(first.ok);
  assert.deepEqual(
    first.state.tasks.values().map((
      { key, status, generation, resume, interrupt },
    ) => [key, status, generation, resume?.value, interrupt?.payload]),
    [
      ["m#0", "scheduled", 4, "!", "?"],
      ["m#1", "interrupted", 2, undefined, "??"],
    ],
  );
  const delayed = new Run(nodesOf("id: z, type: sleep, for: 1h"));
  delayed.start({}, { start_at: T0 + 60_000 });
  const early = fork(delayed);
  assert.ok(early.ok && early.state.phase === "delayed" && early.state.timers.any()!.at === T0 + 60_000);
  const paused = new Run(nodesOf("id: a, type: task, kind: k, next: b", "id: b, type: task, kind: k"));
  paused.start();
  paused.send("pause", {});
  paused.complete("a");
  const going = fork(paused);
  assert.ok(
    going.ok && going.state.paused === undefined && going.state.tasks.has("b"),
    "a fork is not paused",
  );
  const asleep = new Run(nodesOf("id: z, type: sleep, for: 1h"));
  asleep.start();
  const second = fork(asleep);
  assert.ok(second.ok && second.state.timers.any()!.at === T0 + 3_600_000);
  const half = new Run(nodesOf("id: w, type: await, signals: [a, b], policy: all, timeout: 1h"));
  half.start();
  half.signal("a", 1);
  const third = fork(half);
  assert.ok(third.ok);
  const woken = new Run(half.flow, { execId: "y" });
  woken.keep(third);
  woken.signal("b", 2);
  assert.deepEqual(woken.state!.output, { a: 1, b: 2 });

  const parent = new Run(CHILD);
  parent.start();
  const failing = decideFork(
    parent.flow,
    undefined,
    parent.state!,
    {
      id: "fork.y",
      type: "fork",
      exec_id: "y",
      data: { from: "x", seq: 1 },
    },
    T0,
    { maxEvents: 1 },
  );
  assert.ok(failing.ok);
  assert.deepEqual(failing.events.map(({ type }) => type), ["ExecutionForked", "ExecutionFailed"]);
  assert.deepEqual(failing.effects.map(({ type }) => type), ["index"]);
});

const V2 = flowOf(`
name: f
start: b
channels: { total: { reducer: sum, default: 3 } }
nodes:
  - { id: b, type: task, kind: k, next: w }
  - { id: w, type: await, signal: go, timeout: 2h }
`);

Deno.test("F5 a running execution moves to another version when what is open exists there; it says first what does not", () => {
  const v1 = nodesOf(
    "id: a, type: task, kind: k, timeout: 1m, next: w",
    "id: w, type: await, signal: go, timeout: 1h",
  );
  const run = new Run(v1);
  run.start();
  assert.deepEqual(migrationProblems(v1, V2, run.state!), ['the node "a" is open, and there is no "a"']);
  assert.deepEqual(migrationProblems(v1, V2, run.state!, { a: "w" }), [
    'the node "a" is open, and "w" has another type',
  ]);
  assert.deepEqual(migrationProblems(v1, V2, run.state!, { a: "b", z: "w" }), [
    'there is no node "z" to rename',
  ]);
  assert.deepEqual(migrationProblems(v1, V2, run.state!, { a: "b" }), []);
  const migrate = (nodes?: Record<string, string>) =>
    decideMigration(v1, V2, run.state!, {
      id: "m1",
      type: "migrate",
      exec_id: "x",
      data: { flow_hash: V2.hash, ...(nodes === undefined ? {} : { nodes }) },
    }, T0);
  const refused = migrate();
  assert.ok(!refused.ok && refused.code === "rejected");
  const moved = migrate({ a: "b" });
  assert.ok(moved.ok);
  assert.deepEqual(moved.events.map(({ type }) => type), ["ExecutionMigrated"]);
  const { state } = moved;
  assert.deepEqual([state.flowHash, state.tasks.keys(), state.visits.toObject(), state.channels.toObject()], [
    V2.hash,
    ["b"],
    { b: 1 },
    { total: 3 },
  ]);
  const done = decide(V2, state, {
    id: "c",
    type: "complete",
    exec_id: "x",
    data: { key: "b", generation: 1, attempt: 1 },
  }, T0);
  assert.ok(done.ok && done.state.awaits.has("w") && done.state.timers.size === 1);
  assert.deepEqual(done.effects.map(({ type }) => type), ["timer_delete", "timer_set", "index"]);

  const versions = (hash: string) => hash === V2.hash ? V2 : v1;
  const checked = checkHistory(versions, [...run.log, moved.events, done.events]);
  assert.deepEqual(checked.problems, []);
  assert.ok(sameState(checked.state!, done.state));
  const stale = decide(v1, state, { id: "c2", type: "signal", exec_id: "x", data: { name: "go" } }, T0);
  assert.ok(!stale.ok && /runs on version/.test(stale.message));
});

Deno.test("F9 a loop of many turns keeps its state as small as what is open", () => {
  const run = new Run(
    flowOf(`
name: f
start: a
max_steps: 100000
nodes:
  - { id: a, type: task, kind: k, timeout: 1m, next: w }
  - { id: w, type: await, signal: go, timeout: 1h, next: a }
`),
    { thorough: false },
  );
  run.start();
  const sizes: number[] = [];
  for (let i = 0; i < 1000; i++) {
    run.now += 2 * 3_600_000;
    run.complete("a", { turn: i });
    run.signal("go", i, `s${i}`);
    sizes.push(stringifyJson(encodeState(run.state!)).length);
  }
  assert.ok(sizes[999]! < sizes[50]! + 50, `${sizes[50]} bytes became ${sizes[999]}`);
});
