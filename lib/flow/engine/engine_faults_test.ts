/**
 * The engine among others, and where workers and stores fail.
 *
 * @module
 */
import assert from "node:assert/strict";
import { yieldToEventLoop } from "../../scheduling.ts";
import type { Fault } from "../store/faults.ts";
import { FlowClient } from "../client/mod.ts";
import { type Job, PermanentError } from "./mod.ts";
import { flowOf, nodes, onStores, Scene } from "./kit_test.ts";

const ONE = nodes("one", "id: a, type: task, kind: k");
const THREE = nodes(
  "three",
  "id: a, type: task, kind: k, next: b",
  "id: b, type: task, kind: k, next: c",
  "id: c, type: task, kind: k",
);

onStores("draining lets work under way come to its end, and takes nothing new in", async (place) => {
  const gate = Promise.withResolvers<void>();
  let runs = 0;
  const workers = {
    k: async ({ node }: Job) => {
      runs++;
      await gate.promise;
      return { node };
    },
  };
  await using scene = await Scene.open({ place, flows: [THREE], workers });
  await scene.client.start("three", {}, { id: "e" });
  await scene.until("it works", () => runs === 1);
  const drained = scene.engine.drain();
  gate.resolve();
  await drained;
  assert.equal(runs, 1);
  const { results, waiting } = await scene.client.get("e");
  assert.deepEqual(results, { a: { node: "a" } });
  assert.deepEqual(waiting.tasks.map(({ node }) => node), ["b"]);
  const next = scene.newEngine(scene.store);
  await next.start();
  assert.equal((await scene.ended("e")).status, "completed");
  assert.equal(runs, 3);
});

onStores("what hangs when the time for draining is over is done again by another", async (place) => {
  let runs = 0;
  const hang = ({ signal }: Job) =>
    new Promise((_, reject) => {
      runs++;
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  await using scene = await Scene.open({
    place,
    flows: [ONE],
    workers: { k: hang },
    drainMs: 5000,
    pollMs: 1000,
  });
  await scene.client.start("one", {}, { id: "e" });
  await scene.until("it works", () => runs === 1);
  const drained = scene.engine.drain();
  await scene.clock.advance("5s");
  await drained;
  const next = scene.newEngine(scene.store, {}, {
    k: ({ attempt, deliveries }: Job) => ({ attempt, deliveries }),
  });
  await next.start();
  await scene.clock.advance("31s");
  const { output } = await scene.ended("e");
  assert.deepEqual(output, { attempt: 1, deliveries: 2 });
});

Deno.test("F47 of two engines one dies, and the other takes over", async () => {
  let fault: Fault | undefined;
  const ran: string[] = [];
  await using scene = await Scene.open({
    flows: [THREE],
    workers: {},
    pollMs: 100,
    ownershipMs: 5000,
    partitions: [],
  });
  const dying = scene.newEngine(await scene.otherStore(() => fault), { partitions: [0, 1, 2, 3] }, {
    k: ({ node, execId }: Job) => {
      ran.push(`dying ${execId} ${node}`);
      if (node === "b") {
        fault = "crash";
        return new Promise<never>(() => {});
      }
      return { node };
    },
  });
  await dying.start();
  assert.deepEqual(dying.owned, [0, 1, 2, 3]);
  const surviving = scene.newEngine(await scene.otherStore(), { partitions: [0, 1, 2, 3] }, {
    k: ({ node, execId, deliveries }: Job) => {
      ran.push(`surviving ${execId} ${node}`);
      return { node, deliveries };
    },
  }).worker("none", () => ({}));
  await surviving.start();
  assert.deepEqual(surviving.owned, []);
  const ids = ["e1", "e2", "e3", "e4", "e5"];
  for (const id of ids) {
    await dying.core.store.inbox.push([{
      execId: id,
      id: `start.${id}`,
      text: JSON.stringify({ id: `start.${id}`, type: "start", exec_id: id, data: { flow: "three" } }),
    }]);
  }
  await scene.clock.advance("1m");
  for (const id of ids) assert.equal((await scene.ended(id)).status, "completed", id);
  assert.deepEqual(surviving.owned, [0, 1, 2, 3]);
  assert.equal(ran.filter((line) => line.startsWith("dying") && line.endsWith("b")).length >= 1, true);
});

Deno.test("what an engine remembers of a partition it had before counts for nothing", async () => {
  const flow = `name: f
channels: { x: { reducer: replace, default: 1 } }
nodes: [ { id: a, type: task, kind: k } ]
`;
  let fault: Fault | undefined;
  await using scene = await Scene.open({ flows: [flow], pollMs: 100, ownershipMs: 5000, partitions: [] });
  const all = { partitions: [0, 1, 2, 3] };
  const first = scene.newEngine(await scene.otherStore(() => fault), all);
  await first.start();
  await new FlowClient({ store: first.core.store, engine: first, clock: scene.clock }).start("f", {}, {
    id: "e",
  });
  fault = "fail";
  await scene.clock.advance("3s");
  const second = scene.newEngine(await scene.otherStore(), all);
  await second.start();
  await scene.clock.advance("5s");
  assert.deepEqual(second.owned, [0, 1, 2, 3]);
  await new FlowClient({ store: second.core.store, engine: second, clock: scene.clock }).update("e", {
    x: 5,
  });
  await second.drain();
  fault = undefined;
  await scene.clock.advance("5s");
  assert.deepEqual(first.owned, [0, 1, 2, 3]);
  first.worker("k", ({ context }) => ({ x: context.channels["x"] }));
  await scene.clock.advance("1s");
  assert.deepEqual((await scene.ended("e")).results["a"], { x: 5 });
});

Deno.test("a client without an engine: another process carries it out", async () => {
  await using scene = await Scene.open({ flows: [ONE], workers: { k: () => ({}) }, pollMs: 100 });
  const client = new FlowClient({ store: await scene.otherStore(), clock: scene.clock, timeoutMs: 5000 });
  const starting = client.start("one", {}, { id: "e" });
  await scene.clock.advance("1s");
  assert.deepEqual(await starting, { id: "e", joined: false });
  const waiting = client.wait("e");
  await scene.clock.advance("1s");
  assert.equal((await waiting).status, "completed");
  await scene.engine.drain();
  const lost = client.start("one", {}, { id: "lost" }).catch((error) => error);
  await scene.clock.advance("6s");
  assert.equal((await lost).code, "outcome_unknown");
  await scene.newEngine(scene.store).start();
  const again = client.start("one", {}, { id: "lost" });
  await scene.clock.advance("1s");
  assert.equal((await again).id, "lost");
  await scene.clock.advance("1s");
  assert.equal((await scene.client.get("lost")).status, "completed");
});

onStores("F48 a worker that goes silent: its progress is handed on", async (place) => {
  const flow = `name: f
nodes:
  - { id: a, type: task, kind: k, heartbeat: 10s, retry: { max_attempts: 2, backoff: fixed, delay: 1s } }
`;
  const aborted: string[] = [];
  const workers = {
    k: ({ attempt, heartbeat, context, signal }: Job) => {
      if (attempt === 2) return { from: context.progress };
      heartbeat({ done: 7 });
      signal.addEventListener("abort", () => aborted.push(String(signal.reason.message)));
      return new Promise(() => {});
    },
  };
  await using scene = await Scene.open({ place, flows: [flow], workers });
  const { client } = scene;
  await client.start("f", {}, { id: "e" });
  await scene.until("it works", () => scene.engine.counters.jobs === 1);
  await scene.clock.advance("10s");
  await scene.until("it is given up", async () => (await client.get("e")).waiting.retries.length === 1);
  await scene.clock.advance("1s");
  assert.deepEqual((await scene.ended("e")).output, { from: { done: 7 } });
  assert.equal(aborted.length, 1);
  const failed = (await client.history("e")).find(({ type }) => type === "NodeFailed");
  assert.equal((failed!.data as { reason: string }).reason, "heartbeat_timeout");
});

onStores("a time-out stops the attempt; what it gives later counts for nothing", async (place) => {
  const flow = `name: f
nodes:
  - { id: a, type: task, kind: k, timeout: 10s, retry: { max_attempts: 2, backoff: fixed, delay: 1s } }
`;
  const late = Promise.withResolvers<unknown>();
  const workers = { k: ({ attempt }: Job) => attempt === 2 ? { attempt } : late.promise };
  await using scene = await Scene.open({ place, flows: [flow], workers });
  await scene.client.start("f", {}, { id: "e" });
  await scene.until("it works", () => scene.engine.counters.jobs === 1);
  await scene.clock.advance("10s");
  await scene.until("it is given up", async () => (await scene.client.get("e")).waiting.retries.length === 1);
  late.resolve({ late: true });
  await scene.clock.advance("1s");
  assert.deepEqual((await scene.ended("e")).output, { attempt: 2 });
});

Deno.test("F86 a worker that dies again and again: the attempt is given up, and lies with the dead letters", async () => {
  const flow = nodes("f", "id: a, type: task, kind: k, on_failure: b", "id: b, type: task, kind: sorry");
  await using scene = await Scene.open({ flows: [flow], workers: { sorry: () => ({}) }, pollMs: 1000 });
  await scene.client.start("f", {}, { id: "e" });
  for (let delivery = 1; delivery <= 5; delivery++) {
    const [job] = await scene.store.jobs.lease({ kind: "k", max: 1, worker: "dies", leaseMs: 1000 });
    assert.equal(job!.deliveries, delivery);
    await scene.clock.advance("2s");
  }
  const other = scene.newEngine(scene.store, { partitions: [] }, {
    k: () => assert.fail("it is not handed out again"),
  });
  await other.start();
  await scene.clock.advance("2s");
  const { visits } = await scene.ended("e");
  assert.deepEqual({ ...visits }, { a: 1, b: 1 });
  assert.equal((await scene.client.deadLetters()).items[0]!.kind, "job");
});

Deno.test("a lease that was lost stops the handler, and its answer is not given", async () => {
  let runs = 0, told = false;
  const gate = Promise.withResolvers<unknown>();
  const workers = {
    k: ({ signal }: Job) => {
      signal.addEventListener("abort", () => told = true);
      return ++runs === 1 ? gate.promise : { runs };
    },
  };
  let fault: Fault | undefined;
  await using scene = await Scene.open({ flows: [ONE], pollMs: 1000, worker: { leaseMs: 3000 } });
  const other = scene.newEngine(await scene.otherStore(() => fault), { partitions: [] }, workers);
  await other.start();
  await scene.client.start("one", {}, { id: "e" });
  await scene.clock.advance("2s");
  assert.equal(runs, 1);
  fault = "fail"; // the store is not to be reached for a while, and the lease runs out
  await scene.clock.advance("5s");
  const second = scene.newEngine(await scene.otherStore(), { partitions: [] }, workers);
  await second.start();
  await scene.clock.advance("2s");
  fault = undefined;
  await scene.clock.advance("3s");
  gate.resolve({ late: true });
  assert.deepEqual((await scene.ended("e")).output, { runs: 2 });
  assert.equal(told, true);
});

onStores("F81 at most so many jobs with one key at once", async (place) => {
  const flow = nodes("f", "id: a, type: task, kind: k, concurrency: {key: input.tenant, max: 2}");
  const at = new Map<string, number>(), most = new Map<string, number>();
  const workers = {
    k: async ({ context }: Job) => {
      const { tenant } = context.input as { tenant: string };
      at.set(tenant, (at.get(tenant) ?? 0) + 1);
      most.set(tenant, Math.max(most.get(tenant) ?? 0, at.get(tenant)!));
      for (let turn = 0; turn < 50; turn++) await yieldToEventLoop();
      at.set(tenant, at.get(tenant)! - 1);
      return {};
    },
  };
  await using scene = await Scene.open({
    place,
    flows: [flow],
    workers,
    worker: { concurrency: 10 },
    pollMs: 50,
  });
  const ids = Array.from({ length: 20 }, (_, i) => `e${i}`);
  await Promise.all(ids.map((id, i) => scene.client.start("f", { tenant: i % 4 === 0 ? "y" : "x" }, { id })));
  const isDone = async (): Promise<boolean> => {
    await scene.clock.advance("200ms");
    return (await Promise.all(ids.map((id) => statusOf(scene, id)))).every((status) =>
      status === "completed"
    );
  };
  await scene.until("all are done", isDone);
  for (const id of ids) assert.equal((await scene.client.get(id)).status, "completed", id);
  assert.equal(most.get("x"), 2);
  assert.ok(most.get("y")! <= 2);
});

onStores("F8 a store that fails now and then loses nothing and doubles nothing", async (place) => {
  let n = 0, isOn = false;
  const fault = (): Fault | undefined => {
    if (!isOn || ++n % 7 !== 0) return undefined;
    return (["fail", "fail-after", "repeat", "busy"] as const)[(n / 7) % 4];
  };
  const ran = new Map<string, number>();
  const workers = {
    k: ({ idempotencyKey }: Job) => {
      ran.set(idempotencyKey, (ran.get(idempotencyKey) ?? 0) + 1);
      return {};
    },
  };
  await using scene = await Scene.open({
    place,
    flows: [THREE],
    workers,
    fault,
    pollMs: 200,
    worker: { leaseMs: 5000 },
  });
  isOn = true;
  const ids = Array.from({ length: 20 }, (_, i) => `e${i}`);
  await Promise.all(ids.map(async (id) => {
    for (;;) {
      try {
        return await scene.client.start("three", {}, { id });
      } catch (error) {
        assert.ok(error instanceof Error);
      }
    }
  }));
  for (let turn = 0; turn < 500; turn++) {
    await scene.clock.advance("1s");
    if (
      n % 7 !== 0 &&
      (await Promise.all(ids.map((id) => statusOf(scene, id)))).every((status) => status === "completed")
    ) break;
  }
  isOn = false;
  for (const id of ids) assert.equal((await scene.client.get(id)).status, "completed", id);
  assert.equal(ran.size, 60);
  assert.deepEqual((await scene.client.deadLetters()).items, []);
});

onStores("what a worker gives that is no output is a failure of the attempt", async (place) => {
  const answers: unknown[] = [[1], 7, 1n, new Date(0), () => 1, { a: () => 1 }, Symbol("x")];
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  answers.push(cycle);
  await using scene = await Scene.open({
    place,
    flows: [ONE],
    workers: { k: ({ context }: Job) => answers[(context.input as { n: number }).n] },
  });
  const statuses: string[] = [];
  for (const n of answers.keys()) {
    await scene.client.start("one", { n }, { id: `e${n}` });
    const { status, failure } = await scene.ended(`e${n}`);
    statuses.push(`${status} ${failure?.reason ?? ""}`.trim());
  }
  assert.deepEqual(statuses, [
    "failed invalid_output",
    "failed invalid_output",
    "failed invalid_output",
    "failed invalid_output",
    "failed invalid_output",
    "completed",
    "failed invalid_output",
    "failed invalid_output",
  ]);
});

Deno.test("F15 an execution that cannot go on keeps nobody else waiting, and goes on when it can", async () => {
  const flow = nodes("f", "id: s, type: sleep, for: 1s, next: a", "id: a, type: task, kind: k");
  await using scene = await Scene.open({
    flows: [flow],
    workers: { k: () => ({}) },
    pollMs: 1000,
    partitions: [],
  });
  const first = scene.newEngine(scene.store, { partitions: [0, 1, 2, 3] });
  await first.start();
  await new FlowClient({ store: scene.store, engine: first, clock: scene.clock }).start("f", {}, { id: "e" });
  await first.drain();
  const [{ name, hash }] = await scene.store.definitions.list() as never as [{ name: string; hash: string }];
  await scene.store.definitions.delete(name, hash);
  const second = scene.newEngine(scene.store, { partitions: [0, 1, 2, 3], flows: [] });
  await second.start();
  await scene.clock.advance("1m");
  assert.equal(scene.logged.filter((line) => line.includes("was parked")).length, 1);
  const client = new FlowClient({ store: scene.store, engine: second, clock: scene.clock });
  await second.register(flowOf(nodes("g", "id: s, type: sleep, for: 1s")));
  const others = Array.from({ length: 12 }, (_, i) => `o${i}`); // in every partition
  for (const id of others) await client.start("g", {}, { id });
  await scene.clock.advance("1s");
  for (const id of others) assert.equal((await scene.ended(id)).status, "completed");
  const [{ id, seq, reason }] = await client.quarantined() as never as [
    { id: string; seq: number; reason: string },
  ];
  assert.deepEqual([id, seq], ["e", 1]);
  assert.match(reason, new RegExp(`^flow f@${hash}, decision 1: .*runs on f@${hash}, which is not stored`));
  await second.register(flowOf(flow));
  assert.equal((await client.unquarantine("e")).changed, true);
  assert.equal((await scene.ended("e")).status, "completed");
  assert.deepEqual(await client.quarantined(), []);
});

Deno.test("a handler that refuses its signal still frees its place", async () => {
  const workers = {
    k: ({ execId }: Job) => {
      if (execId === "bad") throw new PermanentError("no");
      return {};
    },
  };
  await using scene = await Scene.open({ flows: [ONE], workers, worker: { concurrency: 1 } });
  for (const id of ["bad", "good"]) await scene.client.start("one", {}, { id });
  assert.equal((await scene.ended("bad")).status, "failed");
  assert.equal((await scene.ended("good")).status, "completed");
});

async function statusOf(scene: Scene, id: string): Promise<string> {
  try {
    return (await scene.client.get(id)).status;
  } catch (error) {
    return (error as Error).message;
  }
}
