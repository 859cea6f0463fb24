/**
 * The client, with an engine in the process.
 *
 * @module
 */
import assert from "node:assert/strict";
import { done, interrupt, type Job } from "../engine/mod.ts";
import { flowOf, nodes, onStores, Scene } from "../engine/kit_test.ts";
import { checkHistory } from "../fold/mod.ts";
import { compileFlow } from "../definition/mod.ts";
import { FlowClient, FlowClientError, type RecordedEvent } from "./mod.ts";

const LOOP = `name: loop
start: a
channels: { sum: { reducer: sum, default: 0 } }
max_steps: 100000
nodes:
  - { id: a, type: task, kind: add, next: c }
  - { id: c, type: choice, rules: [ { when: "channels.sum < input.to", to: a }, { default: true, to: w } ] }
  - { id: w, type: await, signal: go, timeout: 1h }
`;

const ONE = nodes("one", "id: a, type: task, kind: k");

async function refusal(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof FlowClientError, String(error));
    assert.ok(error.hint !== undefined);
    return error.code;
  }
  return "none";
}

onStores("F19 a long history is begun anew, and nothing of it is lost", async (place) => {
  const workers = { add: () => doneWith({ sum: 1 }) };
  await using scene = await Scene.open({
    place,
    flows: [LOOP],
    workers,
    historyLimit: 25,
    snapshotEvery: 10,
  });
  const { client } = scene;
  await client.start("loop", { to: 30 }, { id: "e" });
  await scene.reaches("e", "waiting");
  assert.ok(scene.engine.counters.continued > 3, `${scene.engine.counters.continued}`);
  const head = (await scene.store.executions.head("e"))!;
  assert.ok(head.firstSeq > 1);
  const history = await client.history("e");
  assert.deepEqual(history.map(({ i }) => i), history.map((_, i) => i + 1));
  const seqs = [...new Set(history.map(({ seq }) => seq))];
  assert.deepEqual(seqs, seqs.map((_, i) => i + 1));
  // What each decision led to, as folding the whole history says.
  const flow = compileFlow(flowOf(LOOP)), decisions: RecordedEvent[][] = [];
  for (const event of history) (decisions[event.seq - 1] ??= []).push(event);
  for (const seq of seqs.filter((seq) => seq % 5 === 0)) {
    const { state } = checkHistory(flow, decisions.slice(0, seq));
    const { channels, events, steps } = await client.stateAt("e", seq);
    assert.deepEqual([channels, events, steps], [state!.channels.toObject(), state!.events, state!.steps]);
  }
  assert.equal((await client.outputHistory("e", "a")).length, 30);
  await client.signal("e", "go", { done: true });
  assert.equal((await client.wait("e")).channels["sum"], 30);
  await client.archive("e");
  const { archived, channels } = await client.get("e");
  assert.deepEqual([archived, channels["sum"]], [true, 30]);
  const before = history.length;
  assert.deepEqual((await client.history("e")).slice(0, before), history);
  assert.deepEqual(await scene.store.executions.objects("e"), ["archive"]);
  assert.equal((await scene.store.executions.log("e")).length, 0);
  assert.equal((await client.stateAt("e", 10)).seq, 10);
  assert.equal(await refusal(client.signal("e", "go")), "execution_archived");
  assert.equal(await refusal(client.update("e", { sum: 1 })), "execution_archived");
  assert.equal((await client.start("loop", { to: 1 }, { id: "e" })).joined, true);
  await client.register(flowOf(ONE));
  assert.equal(await refusal(client.start("one", {}, { id: "e" })), "execution_conflict");
  const { id } = await client.fork("e", 20);
  await scene.reaches(id, "waiting");
  assert.equal((await client.get(id)).channels["sum"], 30);
});

function doneWith(writes: Record<string, unknown>) {
  return done({ writes });
}

onStores("watching gives what the history holds, and goes on where it was broken off", async (place) => {
  const workers = { add: () => doneWith({ sum: 1 }) };
  await using scene = await Scene.open({ place, flows: [LOOP], workers, historyLimit: 20 });
  const { client } = scene;
  await client.start("loop", { to: 15 }, { id: "e" });
  const seen: RecordedEvent[] = [];
  let from = 1;
  for await (const event of client.watch("e")) {
    seen.push(event);
    from = event.seq + 1;
    if (event.last && seen.length >= 10) break;
  }
  const rest = (async () => {
    for await (const event of client.watch("e", { from })) seen.push(event);
  })();
  await scene.reaches("e", "waiting");
  await client.signal("e", "go");
  await rest;
  assert.deepEqual(seen, await client.history("e"));
  const after: RecordedEvent[] = [];
  for await (const event of client.watch("e", { from: seen.at(-1)!.seq + 1 })) after.push(event);
  assert.deepEqual(after, []);
  const stop = new AbortController();
  await client.start("loop", { to: 1 }, { id: "f" });
  await scene.reaches("f", "waiting");
  const stopped = (async () => {
    for await (const { type } of client.watch("f", { signal: stop.signal })) {
      if (type === "AwaitStarted") stop.abort(new Error("enough"));
    }
  })();
  await assert.rejects(stopped, /enough/);
});

onStores("an update is there when it resolves, once", async (place) => {
  await using scene = await Scene.open({
    place,
    flows: [LOOP],
    workers: { add: () => doneWith({ sum: 1 }) },
  });
  const { client } = scene;
  await client.start("loop", { to: 1 }, { id: "e" });
  await scene.reaches("e", "waiting");
  assert.equal((await client.update("e", { sum: 5 }, { id: "u" })).channels["sum"], 6);
  assert.equal((await client.update("e", { sum: 5 }, { id: "u" })).channels["sum"], 6);
  assert.equal(await refusal(client.update("e", { none: 5 })), "invalid_argument");
  assert.equal(await refusal(client.update("e", { sum: "x" })), "invalid_argument");
  await client.signal("e", "go");
  await client.wait("e");
  assert.equal(await refusal(client.update("e", { sum: 5 })), "execution_ended");
});

onStores("ids and names are checked first", async (place) => {
  await using scene = await Scene.open({ place, flows: [ONE], workers: { k: () => ({}) } });
  const { client } = scene;
  const bad = ["", "a.b", "a b", "*", ">", "a/b", "ä", "x".repeat(129), "a\n"];
  for (const id of bad) {
    const calls = [
      client.start("one", {}, { id }),
      client.start(id, {}),
      client.signal(id, "go"),
      client.signal("e", id),
      client.resume(id, "a"),
      client.resume("e", id),
      client.cancel(id),
      client.pause(id),
      client.unpause(id),
      client.update(id, {}),
      client.get(id),
      client.stateAt(id, 1),
      client.history(id),
      client.outputHistory("e", id),
      client.wait(id),
      client.fork(id, 1),
      client.fork("e", 1, { id }),
      client.rerun("e", id),
      client.migrate(id),
      client.archive(id),
      client.delete(id),
      client.flow(id),
      client.list({ flow: id }),
      client.start("one", {}, { signals: [{ name: id }] }),
    ];
    for (const [i, call] of calls.entries()) {
      assert.equal(await refusal(call), "invalid_argument", `${i} ${id}`);
    }
    assert.throws(() => client.watch(id), { code: "invalid_argument" });
  }
  for (const input of [[1], "x", 7, true, new Date(0)]) {
    assert.equal(await refusal(client.start("one", input)), "invalid_argument", String(input));
  }
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  assert.equal(await refusal(client.start("one", cycle)), "invalid_argument");
  assert.equal(await refusal(client.signal("e", "go", 1, { id: "" })), "invalid_argument");
  assert.equal(await refusal(client.start("one", {}, { startAt: new Date(NaN) })), "invalid_argument");
  assert.equal(await refusal(client.start("one", {}, { version: "../x" })), "invalid_argument");
  assert.equal(await refusal(client.list({ status: "done" })), "invalid_argument");
});

onStores("what is not there is said", async (place) => {
  const other = nodes("other", "id: w, type: await, signal: go, timeout: 1h");
  await using scene = await Scene.open({ place, flows: [ONE, other], workers: { k: () => ({}) } });
  const { client } = scene;
  assert.equal(await refusal(client.start("none")), "unknown_flow");
  assert.equal(await refusal(client.start("one", {}, { version: "0123456789abcdef" })), "unknown_flow");
  for (
    const call of [
      client.signal("e", "go"),
      client.cancel("e"),
      client.update("e", {}),
      client.resume("e", "a"),
      client.get("e"),
      client.history("e"),
      client.wait("e"),
      client.fork("e", 1),
      client.rerun("e", "a"),
      client.migrate("e"),
      client.archive("e"),
      client.delete("e"),
      client.watch("e").next(),
    ]
  ) {
    assert.equal(await refusal(call), "execution_not_found");
  }
  await client.start("one", {}, { id: "e" });
  await client.wait("e");
  assert.equal(await refusal(client.start("other", {}, { id: "e" })), "execution_conflict");
  assert.equal(await refusal(client.start("one", {}, { id: "e", joinExisting: false })), "execution_exists");
  assert.equal(await refusal(client.start("one", {}, { id: "new", joinExisting: false })), "none");
  for (
    const call of [
      client.signal("e", "go"),
      client.pause("e"),
      client.unpause("e"),
      client.resume("e", "a"),
      client.migrate("e"),
    ]
  ) {
    assert.equal(await refusal(call), "execution_ended");
  }
  assert.equal((await client.cancel("e")).changed, false);
  await client.start("other", {}, { id: "w" });
  assert.equal(await refusal(client.resume("w", "w")), "rejected");
  assert.equal(await refusal(client.resume("w", "x")), "invalid_argument");
  assert.equal(await refusal(client.archive("w")), "rejected");
  assert.equal(await refusal(client.delete("w")), "rejected");
  assert.equal(await refusal(client.fork("w", 99)), "invalid_argument");
  assert.equal(await refusal(client.redrive("none")), "dead_letter_not_found");
  await client.cancel("w");
  const never = await client.waitUntil("w", ({ visits }) => (visits["w"] ?? 0) > 1).catch((error) => error);
  assert.deepEqual([never.code, never.execution.status], ["execution_ended", "cancelled"]);
  await client.start("other", {}, { id: "v" });
  const late = refusal(client.wait("v", { timeoutMs: 1000 }));
  await scene.clock.advance("1s");
  assert.equal(await late, "wait_timed_out");
});

onStores("forks and reruns", async (place) => {
  const flow = `name: f
start: a
channels: { x: { reducer: replace, default: 1 } }
output: "{x: channels.x, b: results.b.n}"
nodes:
  - { id: a, type: task, kind: k, next: c }
  - { id: c, type: choice, rules: [ { default: true, to: b } ] }
  - { id: b, type: task, kind: k }
`;
  let n = 0;
  await using scene = await Scene.open({ place, flows: [flow], workers: { k: () => ({ n: ++n }) } });
  const { client } = scene;
  await client.start("f", {}, { id: "e" });
  assert.deepEqual((await client.wait("e")).output, { x: 1, b: 2 });
  const again = await client.rerun("e", "b", { id: "again", writes: { x: 9 } });
  assert.deepEqual(again, { id: "again", from: "e", seq: 2, joined: false });
  assert.deepEqual((await client.wait("again")).output, { x: 9, b: 3 });
  assert.equal((await client.rerun("e", "b", { id: "again", writes: { x: 9 } })).joined, true);
  assert.equal(await refusal(client.fork("e", 1, { id: "again" })), "execution_exists");
  assert.equal(await refusal(client.rerun("e", "c")), "rejected");
  assert.equal(await refusal(client.rerun("e", "z")), "rejected");
  assert.equal(await refusal(client.fork("e", 3, { writes: { x: 2 } })), "invalid_argument");
  assert.equal(await refusal(client.fork("e", 1, { writes: { none: 2 } })), "invalid_argument");
  const { forkedFrom } = await client.get("again");
  assert.deepEqual(forkedFrom, { id: "e", seq: 2 });
  const copy = await client.fork("e", 3, { id: "copy" });
  assert.equal((await client.get(copy.id)).status, "completed");
});

onStores("a running execution moves to another version, when that fits", async (place) => {
  const first = nodes(
    "f",
    "id: w, type: await, signal: go, timeout: 1h, next: a",
    "id: a, type: task, kind: k",
  );
  const second = nodes(
    "f",
    "id: w2, type: await, signal: go, timeout: 1h, next: b",
    "id: b, type: task, kind: k",
  );
  await using scene = await Scene.open({
    place,
    flows: [first],
    workers: { k: ({ node }: Job) => ({ node }) },
  });
  const { client } = scene;
  await client.start("f", {}, { id: "e" });
  await client.start("f", {}, { id: "stays" });
  const { hash } = await client.register(flowOf(second));
  const dry = await client.migrate("e", { dryRun: true });
  assert.equal(dry.migrated, false);
  assert.match(dry.problems.join(), /"w" is open/);
  assert.equal(await refusal(client.migrate("e")), "rejected");
  assert.deepEqual(await client.migrate("e", { nodes: { w: "w2" } }), {
    from: flowOf(first).hash,
    to: hash,
    problems: [],
    migrated: true,
  });
  for (const id of ["e", "stays"]) await client.signal(id, "go");
  assert.deepEqual((await client.wait("e")).output, { node: "b" });
  assert.deepEqual((await client.wait("stays")).output, { node: "a" });
  assert.deepEqual((await client.flows()).map(({ latest }) => latest).sort(), [false, true]);
  assert.equal((await client.flow("f")).hash, hash);
});

onStores("F89 what is deleted or expired is gone, and its id is free", async (place) => {
  const keep = `name: keep\nretention: 1h\non_expire: delete\nnodes:\n  - { id: a, type: task, kind: k }\n`;
  const cold =
    `name: cold\nretention: 1h\narchive_retention: 1h\nnodes:\n  - { id: a, type: task, kind: k }\n`;
  let n = 0;
  await using scene = await Scene.open({
    place,
    flows: [ONE, keep, cold],
    workers: { k: () => ({ n: ++n }) },
  });
  const { client } = scene;
  await client.start("one", {}, { id: "e" });
  await client.wait("e");
  assert.equal((await client.delete("e")).changed, true);
  assert.equal(await refusal(client.get("e")), "execution_not_found");
  assert.deepEqual((await client.list()).items, []);
  assert.equal((await client.start("one", {}, { id: "e" })).joined, false);
  assert.deepEqual((await client.wait("e")).output, { n: 2 });
  await client.start("keep", {}, { id: "k" });
  await client.start("cold", {}, { id: "c" });
  await client.wait("k");
  await client.wait("c");
  await scene.clock.advance("1h");
  await scene.until("it is deleted", async () => await refusal(client.get("k")) === "execution_not_found");
  await scene.until("it is archived", async () => (await client.get("c")).archived);
  assert.equal((await client.history("c")).length, 5);
  await scene.clock.advance("1h");
  await scene.until("it is deleted", async () => await refusal(client.get("c")) === "execution_not_found");
});

onStores("a command that is repeated with its id happens once", async (place) => {
  const flow = nodes("f", "id: a, type: task, kind: ask");
  const workers = {
    ask: ({ context }: Job) =>
      (context.resume as { last?: true } | undefined)?.last ? {} : interrupt(context.resume),
  };
  await using scene = await Scene.open({ place, flows: [flow], workers });
  const { client } = scene;
  const asks = (n: number): Promise<void> =>
    scene.until("it asks", async () => {
      const [open] = (await client.get("e")).waiting.interrupts;
      return open !== undefined && (open.payload as { n?: number } | null)?.n === (n === 0 ? undefined : n);
    });
  await client.start("f", {}, { id: "e" });
  await asks(0);
  assert.equal((await client.resume("e", "a", { n: 1 }, { id: "r1" })).changed, true);
  await asks(1);
  // It is interrupted anew, and this answer was given before.
  assert.equal((await client.resume("e", "a", { n: 1 }, { id: "r1" })).changed, false);
  assert.equal((await client.pause("e", "x", { id: "p1" })).changed, true);
  assert.equal((await client.unpause("e", { id: "u1" })).changed, true);
  assert.equal((await client.pause("e", "x", { id: "p1" })).changed, false);
  assert.equal((await client.get("e")).paused, false);
  assert.equal((await client.resume("e", "a", { last: true }, { id: "r2" })).changed, true);
  await client.wait("e");
  assert.equal((await client.resume("e", "a", { last: true }, { id: "r2" })).changed, false);
  assert.equal((await client.unpause("e", { id: "u1" })).changed, false);
  assert.equal(await refusal(client.resume("e", "a", {}, { id: "r3" })), "execution_ended");
});

onStores("F40 lists, and the same with all they hold: what was changed is counted", async (place) => {
  const flow = `name: f
search_attributes: { tenant: input.tenant }
nodes:
  - { id: a, type: task, kind: k, next: w }
  - { id: w, type: await, signal: go, timeout: 1h }
`;
  await using scene = await Scene.open({ place, flows: [flow, ONE], workers: { k: () => ({}) } });
  const { client } = scene;
  for (let i = 0; i < 25; i++) {
    await client.start("f", { tenant: i % 2 === 0 ? "x" : "y" }, { id: `e${i}` });
    await scene.clock.advance("1ms");
  }
  for (let i = 0; i < 25; i++) await scene.reaches(`e${i}`, "waiting");
  const ids: string[] = [];
  for (let cursor: string | undefined;;) {
    const page = await client.list({
      flow: "f",
      limit: 7,
      order: "oldest",
      ...(cursor === undefined ? {} : { cursor }),
    });
    ids.push(...page.items.map(({ id }) => id));
    if ((cursor = page.cursor) === undefined) break;
  }
  assert.deepEqual(ids, Array.from({ length: 25 }, (_, i) => `e${i}`));
  const x = { attrs: [{ name: "tenant", op: "=", value: "x" }] } as const;
  assert.equal(await refusal(client.bulk({}, { do: "cancel" })), "invalid_argument");
  const counts = async (...args: Parameters<FlowClient["bulk"]>) => {
    const { matched, done, skipped, failed } = await client.bulk(...args);
    return [matched, done, skipped, failed];
  };
  assert.deepEqual(await counts(x, { do: "signal", name: "go" }, { dryRun: true }), [13, 13, 0, 0]);
  assert.deepEqual(await counts(x, { do: "signal", name: "go" }, { limit: 3 }), [3, 3, 0, 0]);
  assert.deepEqual(await counts(x, { do: "signal", name: "go" }), [13, 10, 3, 0]);
  assert.deepEqual(await counts({ flow: "f" }, { do: "cancel", reason: "enough" }), [25, 12, 13, 0]);
  assert.deepEqual(await counts({ status: "cancelled" }, { do: "rerun", node: "w" }), [12, 12, 0, 0]);
  assert.deepEqual(await counts({ status: "cancelled" }, { do: "rerun", node: "w" }), [12, 12, 0, 0]);
  assert.equal((await client.list({ status: "waiting" })).items.length, 12);
  assert.deepEqual(await counts({ status: "completed" }, { do: "archive" }), [13, 13, 0, 0]);
  assert.deepEqual(await counts({ status: "completed" }, { do: "archive" }), [13, 0, 13, 0]);
  assert.deepEqual(await counts({ flow: "f" }, { do: "delete" }), [37, 25, 12, 0]);
  assert.deepEqual(await counts({ flow: "f" }, { do: "rerun", node: "none" }), [12, 0, 0, 12]);
  assert.equal((await client.list({ limit: 1000 })).items.length, 12);
});

onStores("a start that waits, with a deadline; what is shown of it", async (place) => {
  const flow = nodes("f", "id: a, type: task, kind: ask");
  await using scene = await Scene.open({
    place,
    flows: [flow],
    workers: { ask: ({ context }: Job) => context.resume ?? interrupt({ q: "?" }) },
  });
  const { client } = scene, now = scene.clock.now();
  await client.start("f", {}, {
    id: "e",
    startAt: new Date(now + 60_000),
    deadline: now + 3_600_000,
    traceparent: "00-x",
  });
  const { status, waiting, deadlineAt } = await client.get("e");
  assert.deepEqual([status, waiting.start, deadlineAt], ["waiting", now + 60_000, now + 3_600_000]);
  await scene.clock.advance("1m");
  await scene.until("it asks", async () => (await client.get("e")).waiting.interrupts.length === 1);
  assert.ok((await client.history("e")).slice(0, 1).every(({ trace }) => trace === "00-x"));
  await client.pause("e");
  assert.equal((await client.get("e")).paused, true);
  assert.equal((await client.list()).items[0]!.paused, true);
  assert.equal(await refusal(client.resume("e", "a", {})), "rejected");
  await client.unpause("e");
  await client.resume("e", "a", { yes: 1 }, { key: "a" });
  assert.deepEqual((await client.wait("e")).output, { yes: 1 });
});

Deno.test("a command that nobody could carry out is redriven", async () => {
  await using scene = await Scene.open({ flows: [ONE], workers: { k: () => ({}) }, pollMs: 100 });
  const { client, store } = scene;
  const text = JSON.stringify({ id: "start.x", type: "start", exec_id: "x", data: { flow: "later" } });
  await store.inbox.push([{ execId: "x", id: "start.x", text }, { execId: "y", id: "bad", text: "{" }]);
  await scene.clock.advance("10s");
  const { items } = await client.deadLetters();
  assert.deepEqual(items.map(({ kind, key }) => [kind, key]).sort(), [["cmd", "x"], ["cmd", "y"]]);
  const byKey = new Map(items.map((letter) => [letter.key, letter]));
  assert.match(byKey.get("x")!.reason, /no flow "later"/);
  assert.equal(await refusal(client.redrive(byKey.get("y")!.id)), "rejected");
  await client.register(flowOf(nodes("later", "id: a, type: task, kind: k")));
  assert.deepEqual(await client.redrive(byKey.get("x")!.id), { execution: "x" });
  await scene.clock.advance("2s");
  assert.equal((await client.get("x")).status, "completed");
  assert.deepEqual((await client.deadLetters()).items.map(({ key }) => key), ["y"]);
});

Deno.test("everything without an engine of one's own", async () => {
  const flow = `name: f
channels: { x: { reducer: replace, default: 1 } }
nodes:
  - { id: a, type: task, kind: ask, next: w }
  - { id: w, type: await, signal: go, timeout: 1h }
`;
  await using scene = await Scene.open({
    flows: [flow],
    workers: { ask: ({ context }: Job) => context.resume ?? interrupt() },
    pollMs: 20,
  });
  const client = new FlowClient({ store: await scene.otherStore(), clock: scene.clock });
  const soon = async <T>(promise: Promise<T>): Promise<T> => {
    let isDone = false;
    const settled = promise.finally(() => isDone = true);
    settled.catch(() => undefined);
    for (let turn = 0; turn < 100 && !isDone; turn++) await scene.clock.advance("20ms");
    return await settled;
  };
  await soon(client.start("f", {}, { id: "e", signals: [{ name: "go", id: "s" }] }));
  await soon(client.waitUntil("e", ({ waiting }) => waiting.interrupts.length === 1));
  assert.equal(await refusal(soon(client.resume("e", "w"))), "rejected");
  assert.equal((await soon(client.update("e", { x: 2 }))).channels["x"], 2);
  assert.equal(await refusal(soon(client.update("e", { y: 2 }))), "invalid_argument");
  const fork = await soon(client.fork("e", 2, { id: "fork" }));
  assert.equal(fork.joined, false);
  assert.deepEqual(await soon(client.resume("e", "a", {}, { id: "r" })), { id: "r" });
  assert.equal((await soon(client.wait("e"))).status, "completed");
  assert.equal(
    await refusal(soon(client.start("f", {}, { id: "e", joinExisting: false }))),
    "execution_exists",
  );
  assert.equal((await soon(client.start("f", {}, { id: "n", joinExisting: false }))).joined, false);
  await soon(client.cancel("fork"));
  await soon(client.wait("fork"));
  assert.equal((await soon(client.archive("fork"))).changed, true);
  assert.equal((await soon(client.delete("e"))).changed, true);
  assert.equal(await refusal(client.get("e")), "execution_not_found");
});
