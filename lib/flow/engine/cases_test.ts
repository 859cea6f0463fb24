/**
 * What users of durable engines report, as scenes: each name begins with the number of the case.
 *
 * @module
 */
import assert from "node:assert/strict";
import { FlowClient } from "../client/mod.ts";
import { FlowEngine } from "./mod.ts";
import { flowOf, nodes, onStores, Scene } from "./kit_test.ts";

const ALL = { partitions: [0, 1, 2, 3] };
const ONE = nodes("one", "id: a, type: task, kind: k");

/** The error of a call. */
async function errorOf(
  promise: Promise<unknown>,
): Promise<{ readonly code: string; readonly message: string }> {
  return await promise.then(() => assert.fail("it went well"), (error) => error);
}

/** An engine and a client of a scene whose own engine has no partition. */
async function engineOf(scene: Scene, flows?: readonly string[]): Promise<readonly [FlowEngine, FlowClient]> {
  const given = flows === undefined ? {} : { flows: flows.map(flowOf) };
  const engine = await scene.newEngine(scene.store, { ...ALL, ...given }).start();
  return [engine, new FlowClient({ store: scene.store, engine, clock: scene.clock })];
}

/** Appends a decision that no version of the fold has made. */
async function damage({ store }: Scene, execId: string, events: string): Promise<void> {
  const ownership = await store.partitions.acquire(store.partitions.of(execId), "vandal", 1000);
  const head = (await store.executions.head(execId))!;
  const outcome = await store.executions.commit({
    execId,
    ownership: ownership!,
    head,
    events,
    lastIndex: head.events + 1,
  });
  assert.equal(outcome.kind, "committed");
  await store.partitions.release(ownership!);
}

const PARENT = nodes(
  "parent",
  "id: f, type: fanout, branches: [p, q, r], next: j",
  "id: p, type: subflow, flow: child",
  "id: q, type: subflow, flow: child, on_parent_close: abandon",
  "id: r, type: task, kind: slow",
  "id: j, type: join",
);
const CHILD = nodes("child", "id: w, type: await, signal: go, timeout: 1h");
const GRAND = nodes(
  "grand",
  "id: s, type: subflow, flow: parent, on_failure: c",
  "id: c, type: task, kind: k",
);

onStores(
  "F4 a damaged history: parked alone; read, had as it is, forked, cancelled and deleted",
  async (place) => {
    const flows = [GRAND, PARENT, CHILD];
    const scene = await Scene.open({ place, flows, partitions: [], workers: { k: () => ({ sorry: 1 }) } });
    try {
      const [first, before] = await engineOf(scene);
      await before.start("grand", {}, { id: "g" });
      const [{ id }] = (await before.get("g")).waiting.children as never as [{ id: string }];
      await scene.until("the children are there", async () => {
        const { items } = await before.list({ flow: "child", status: "waiting" });
        return items.length === 2;
      });
      const children = (await before.get(id)).waiting.children.map(({ id, node }) => [node, id] as const);
      await first.drain();
      const bad = JSON.stringify([{
        type: "FromTheFuture",
        v: 1,
        i: 99,
        time: "2026-01-01T00:00:00Z",
        data: { n: 1 },
      }]);
      const good = await before.get(id);
      await damage(scene, id, bad);
      const [engine, client] = await engineOf(scene);
      await client.signal("g", "nothing"); // its partition, and all others, go on
      assert.equal((await errorOf(client.get(id))).code, "unknown_event");
      await scene.store.inbox.push([{
        execId: id,
        id: "u1",
        text: JSON.stringify({ id: "u1", type: "signal", exec_id: id, data: { name: "go" } }),
      }]);
      await scene.until("it is parked", async () => (await client.quarantined()).length === 1);
      const [parked] = await client.quarantined();
      assert.deepEqual([parked!.id, parked!.seq], [id, good.seq + 1]);
      assert.match(
        parked!.reason,
        /^flow parent@[0-9a-f]{16}, decision 2: the event type "FromTheFuture" is unknown; it was/,
      );
      assert.equal(engine.counters.quarantined, 1);
      assert.equal(scene.logged.filter((line) => line.startsWith("warn an execution was parked")).length, 1);
      // Read as far as that goes.
      const { quarantined, status, waiting } = await client.get(id);
      assert.deepEqual([quarantined, status, waiting], [true, good.status, good.waiting]);
      assert.deepEqual((await client.list({ flow: "parent" })).items.map((line) => line.quarantined), [true]);
      assert.deepEqual((await client.stateAt(id, 1)).seq, 1);
      assert.equal((await client.history(id)).at(-1)!.seq, good.seq);
      assert.deepEqual((await client.rawHistory(id)).at(-1), { seq: 2, events: JSON.parse(bad) });
      // It stays as it is, and keeps what comes for it.
      assert.deepEqual(await client.signal(id, "go", {}, { id: "kept" }), { id: "kept" });
      assert.equal((await errorOf(client.unquarantine(id))).code, "rejected");
      assert.equal((await errorOf(client.delete(id))).code, "rejected");
      const fork = await client.fork(id, 1);
      assert.equal((await client.get(fork.id)).status, good.status);
      await client.cancel(fork.id);
      assert.equal((await scene.store.executions.head(id))!.seq, 2);
      // Its end reaches its children, its work and its parent.
      assert.equal((await client.cancel(id, "beyond repair")).changed, true);
      assert.equal((await client.cancel(id, "beyond repair")).changed, false);
      assert.equal((await client.wait(id)).status, "cancelled");
      assert.deepEqual((await client.wait("g")).output, { sorry: 1 });
      const statuses = await Promise.all(children.map(async ([node, child]) => {
        if (node === "p") await client.wait(child);
        return [node, (await client.get(child)).status];
      }));
      assert.deepEqual(statuses, [["p", "cancelled"], ["q", "waiting"]]);
      const { jobs, timers } = (await scene.store.executions.head(id))!;
      assert.deepEqual([jobs, timers], [{}, {}]);
      assert.equal((await client.delete(id)).changed, true);
      assert.deepEqual(await client.quarantined(), []);
      assert.equal((await errorOf(client.get(id))).code, "execution_not_found");
    } finally {
      await scene.end();
    }
  },
);

// In memory only: an hour of virtual time is over before Deno KV has given a job back, and its lease runs out meanwhile.
Deno.test(
  "F4 what is for a parked execution is kept: commands, timers, jobs and answers, also by another engine",
  async () => {
    const flow = nodes(
      "f",
      "id: f, type: fanout, branches: [a, b], next: j",
      "id: a, type: task, kind: k",
      "id: b, type: task, kind: later",
      "id: j, type: join, next: w",
      "id: w, type: await, signal: go, timeout: 1h, next: v",
      "id: v, type: await, signal: go, timeout: 1h",
    );
    const gate = Promise.withResolvers<unknown>();
    await using scene = await Scene.open({ place: "memory", flows: [flow], partitions: [], pollMs: 1000 });
    const [first, before] = await engineOf(scene);
    await before.start("f", {}, { id: "e", deadline: scene.clock.now() + 3 * 3_600_000 });
    const [work] = await scene.store.jobs.lease({ kind: "k", max: 1, worker: "w", leaseMs: 86_400_000 });
    await first.drain();
    const { name, hash } = (await scene.store.definitions.list())[0]!;
    await scene.store.definitions.delete(name, hash);
    const answer = JSON.stringify({
      id: "answer",
      type: "complete",
      exec_id: "e",
      data: { ...JSON.parse(work!.text) as object, output: { n: 1 } },
    });
    const signal = (id: string, n: number): string =>
      JSON.stringify({ id, type: "signal", exec_id: "e", data: { name: "go", payload: { n } } });
    await scene.store.inbox.push([
      { execId: "e", id: "answer", text: answer },
      { execId: "e", id: "s1", text: signal("s1", 1) },
    ]);
    for (let round = 0; round < 3; round++) {
      const engine = await scene.newEngine(scene.store, { ...ALL, flows: [] }, { later: () => gate.promise })
        .start();
      await scene.clock.advance("20m"); // more than a command or job would be tried again and again
      const client = new FlowClient({ store: scene.store, engine, clock: scene.clock });
      assert.deepEqual((await client.quarantined()).map(({ id }) => id), ["e"]);
      assert.equal((await errorOf(client.get("e"))).code, "execution_quarantined");
      await engine.drain();
    }
    assert.equal(scene.logged.filter((line) => line.includes("was parked")).length, 1);
    const engine = scene.newEngine(scene.store, { ...ALL, flows: [] }, { later: () => gate.promise });
    const client = new FlowClient({ store: scene.store, engine: await engine.start(), clock: scene.clock });
    await scene.store.inbox.push([{ execId: "e", id: "s2", text: signal("s2", 2) }]);
    await engine.register(flowOf(flow));
    assert.equal((await client.unquarantine("e")).changed, true);
    assert.equal((await client.unquarantine("e")).changed, false);
    await scene.clock.advance("1m");
    gate.resolve({ late: true });
    const { results, signals, status } = await scene.ended("e");
    assert.deepEqual([status, results["a"], results["b"]], ["completed", { n: 1 }, { late: true }]);
    assert.deepEqual([results["w"], signals["go"]], [{ n: 1 }, { n: 2 }]);
    assert.deepEqual((await client.deadLetters()).items, []);
  },
);

Deno.test("F4 a store that does not answer parks nobody", async () => {
  let isDown = false;
  await using scene = await Scene.open({
    flows: [nodes("f", "id: s, type: sleep, for: 1s, next: a", "id: a, type: task, kind: k")],
    workers: { k: () => ({}) },
    fault: () => isDown ? "fail" : undefined,
  });
  for (let i = 0; i < 8; i++) await scene.client.start("f", {}, { id: `e${i}` });
  isDown = true;
  await scene.clock.advance("2m");
  isDown = false;
  await scene.clock.advance("2m");
  for (let i = 0; i < 8; i++) assert.equal((await scene.ended(`e${i}`)).status, "completed");
  assert.deepEqual([scene.engine.counters.quarantined, await scene.client.quarantined()], [0, []]);
});

Deno.test("F3 what does not fit a history is named: flow, node, what there was and what came, and what to do", async () => {
  const scene = await Scene.open({ flows: [ONE], partitions: [] });
  try {
    const [first, before] = await engineOf(scene);
    await before.start("one", {}, { id: "e" });
    await first.drain();
    const [decision] = await before.rawHistory("e");
    const scheduled = (decision!.events as readonly Record<string, unknown>[]).find(({ type }) =>
      type === "NodeScheduled"
    );
    await damage(scene, "e", JSON.stringify([{ ...scheduled, i: 17 }]));
    const [, client] = await engineOf(scene);
    await errorOf(client.signal("e", "go")).catch(() => undefined);
    await client.cancel("e");
    assert.match(
      (await client.quarantined())[0]!.reason,
      /^flow one@[0-9a-f]{16}, node "a", decision 2: event 17, NodeScheduled, follows event 3 of "e"; .+/,
    );
  } finally {
    await scene.end();
  }
});
