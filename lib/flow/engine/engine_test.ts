/**
 * The durable engine, in one process and on one clock.
 *
 * @module
 */
import assert from "node:assert/strict";
import { done, interrupt, type Job, PermanentError, withUsage } from "./mod.ts";
import { nodes, onStores, Scene } from "./kit_test.ts";

const THREE = nodes(
  "three",
  "id: a, type: task, kind: k, next: b",
  "id: b, type: task, kind: k, next: c",
  "id: c, type: task, kind: k",
);

onStores("three steps, each by a worker", async (place) => {
  const seen: string[] = [];
  const workers = {
    k: ({ node, context, idempotencyKey }: Job) => {
      seen.push(`${node} ${idempotencyKey}`);
      return { node, of: (context.input as { n: number }).n };
    },
  };
  await using scene = await Scene.open({ place, flows: [THREE], workers });
  const { id } = await scene.client.start("three", { n: 9007199254740993n }, { id: "e1" });
  const { status, output, results, seq } = await scene.ended(id);
  assert.equal(status, "completed");
  assert.deepEqual(output, { node: "c", of: 9007199254740993n });
  assert.deepEqual(results["a"], { node: "a", of: 9007199254740993n });
  assert.equal(seq, 4);
  assert.deepEqual(seen.map((line) => line.split(" ")[0]), ["a", "b", "c"]);
  assert.equal(new Set(seen).size, 3);
  const { decisions, jobs, conflicts } = scene.engine.counters;
  assert.deepEqual({ decisions, jobs, conflicts }, { decisions: 4, jobs: 3, conflicts: 0 });
});

onStores("an attempt that fails is tried again, after its wait", async (place) => {
  const attempts: number[] = [];
  const flow = `name: f
nodes:
  - { id: a, type: task, kind: k, retry: { max_attempts: 3, backoff: exponential, delay: 10s } }
`;
  const workers = {
    k: ({ attempt }: Job) => {
      attempts.push(attempt);
      if (attempt < 3) throw new Error(`no ${attempt}`);
      return { attempt };
    },
  };
  await using scene = await Scene.open({ place, flows: [flow], workers });
  const { id } = await scene.client.start("f");
  await scene.until(
    "the first attempt failed",
    async () => (await scene.client.get(id)).waiting.retries.length === 1,
  );
  await scene.clock.advance("9s");
  assert.deepEqual(attempts, [1]);
  await scene.clock.advance("1s");
  await scene.until("the second attempt failed", async () => {
    return (await scene.client.get(id)).waiting.retries[0]?.attempt === 2;
  });
  await scene.clock.advance("20s");
  assert.deepEqual((await scene.ended(id)).output, { attempt: 3 });
  assert.deepEqual(attempts, [1, 2, 3]);
});

onStores("a permanent error ends it; a throw that is no error fails the attempt", async (place) => {
  const flow = `name: f
nodes:
  - { id: a, type: task, kind: k, retry: { max_attempts: 3, backoff: fixed, delay: 1s } }
`;
  const workers = {
    k: ({ attempt }: Job) => {
      if (attempt === 1) throw withUsage("a text", { tokens: 3 });
      throw withUsage(new PermanentError("card refused"), { tokens: 4 });
    },
  };
  await using scene = await Scene.open({ place, flows: [flow], workers });
  const { id } = await scene.client.start("f");
  await scene.until("it waits", async () => (await scene.client.get(id)).waiting.retries.length === 1);
  await scene.clock.advance("1s");
  const { status, failure, counters } = await scene.ended(id);
  assert.equal(status, "failed");
  assert.deepEqual({ ...failure }, { error: "card refused", reason: "error", node: "a" });
  assert.deepEqual(counters, { tokens: 7 });
});

onStores("timers: a sleep, an await that is not heard in time, a deadline", async (place) => {
  const sleep = nodes("sleep", "id: s, type: sleep, for: 30d, next: a", "id: a, type: task, kind: k");
  const wait = nodes(
    "wait",
    "id: w, type: await, signal: go, timeout: 1h, on_timeout: a",
    "id: a, type: task, kind: k",
  );
  const late = `name: late\ndeadline: 2h\nnodes:\n  - { id: w, type: await, signal: go, timeout: 10h }\n`;
  const workers = { k: ({ node }: Job) => ({ node }) };
  await using scene = await Scene.open({ place, flows: [sleep, wait, late], workers });
  const start = scene.clock.now();
  for (const name of ["sleep", "wait", "late"]) await scene.client.start(name, {}, { id: name });
  assert.equal((await scene.client.get("sleep")).waiting.sleeps[0]!.until, start + 30 * 86_400_000);
  await scene.clock.advance("59m59s");
  assert.equal((await scene.client.get("wait")).status, "waiting");
  await scene.clock.advance("1s");
  assert.equal((await scene.ended("wait")).endedAt, start + 3_600_000);
  await scene.clock.advance("1h");
  const { failure, endedAt } = await scene.ended("late");
  assert.deepEqual([failure!.reason, endedAt], ["deadline_exceeded", start + 7_200_000]);
});

onStores("subflows and their failures", async (place) => {
  const parent = nodes(
    "parent",
    "id: p, type: subflow, flow: child, input: '{n: input.n}', next: q, on_failure: r",
    "id: q, type: task, kind: k",
    "id: r, type: task, kind: sorry",
  );
  const child = nodes("child", "id: c, type: task, kind: k");
  const orphan = nodes(
    "orphan",
    "id: p, type: subflow, flow: nobody, on_failure: r",
    "id: r, type: task, kind: sorry",
  );
  const workers = {
    k: ({ context, flow }: Job) => {
      const { n } = context.input as { n: number };
      if (n < 0 && flow === "child") throw new PermanentError("negative");
      return { n: n + 1 };
    },
    sorry: ({ context }: Job) => ({ sorry: context.errors["p"]!.error }),
  };
  await using scene = await Scene.open({ place, flows: [parent, child, orphan], workers });
  await scene.client.start("parent", { n: 1 }, { id: "good" });
  await scene.client.start("parent", { n: -1 }, { id: "bad" });
  await scene.client.start("orphan", {}, { id: "orphan" });
  assert.deepEqual((await scene.ended("good")).results, { p: { n: 2 }, q: { n: 2 } });
  assert.deepEqual((await scene.ended("bad")).output, { sorry: "negative" });
  assert.match(
    (await scene.ended("orphan") as { output: { sorry: string } }).output.sorry,
    /no flow "nobody"/,
  );
  assert.equal((await scene.client.deadLetters()).items.length, 1);
});

onStores("a map of 1,000 children", async (place) => {
  const parent = nodes("parent", "id: m, type: map, over: input.items, flow: child, max_parallel: 200");
  const child = nodes("child", "id: c, type: task, kind: k");
  const workers = { k: ({ context }: Job) => ({ twice: 2 * (context.input as { n: number }).n }) };
  await using scene = await Scene.open({
    place,
    flows: [parent, child],
    workers,
    worker: { concurrency: 50 },
  });
  const items = Array.from({ length: 1000 }, (_, n) => ({ n }));
  const { id } = await scene.client.start("parent", { items });
  const { results, status } = await scene.ended(id);
  assert.equal(status, "completed");
  assert.deepEqual(results["m"], items.map(({ n }) => ({ twice: 2 * n })));
});

onStores("signals: early, doubled, with a start; interrupts", async (place) => {
  const flow = nodes(
    "f",
    "id: a, type: task, kind: ask, next: w",
    "id: w, type: await, signal: go, timeout: 1h, next: v",
    "id: v, type: await, signal: go, timeout: 1h",
  );
  const workers = {
    ask: ({ context }: Job) =>
      context.resume === undefined ? interrupt({ ask: 1 }) : { heard: context.resume },
  };
  await using scene = await Scene.open({ place, flows: [flow], workers });
  const { client } = scene;
  const first = await client.start("f", {}, {
    id: "e",
    signals: [{ name: "go", payload: { n: 1 }, id: "s1" }],
  });
  assert.equal(first.joined, false);
  const again = await client.start("f", {}, {
    id: "e",
    signals: [{ name: "go", payload: { n: 1 }, id: "s1" }],
  });
  assert.equal(again.joined, true);
  await scene.reaches("e", "waiting");
  assert.deepEqual((await client.get("e")).waiting.interrupts, [{
    node: "a",
    key: "a",
    payload: { ask: 1 },
  }]);
  assert.deepEqual((await client.get("e")).unread, { go: 1 });
  assert.equal((await client.signal("e", "go", { n: 1 }, { id: "s1" })).changed, false);
  await client.resume("e", "a", "yes", { id: "r1" });
  await scene.until("the second await", async () => (await client.get("e")).waiting.awaits[0]?.node === "v");
  assert.equal((await client.signal("e", "go", { n: 2 }, { id: "s2" })).changed, true);
  const { results } = await scene.ended("e");
  assert.deepEqual(results, { a: { heard: "yes" }, w: { n: 1 }, v: { n: 2 } });
});

onStores("a cancel during a back-off, and of work under way with its children", async (place) => {
  const flow = `name: f
nodes:
  - { id: a, type: task, kind: k, retry: { max_attempts: 3, backoff: fixed, delay: 10s } }
`;
  const parent = nodes("parent", "id: p, type: subflow, flow: child");
  const child = nodes("child", "id: c, type: task, kind: hang");
  let told: unknown;
  const workers = {
    k: () => {
      throw new Error("no");
    },
    hang: ({ signal }: Job) =>
      new Promise((_, reject) =>
        signal.addEventListener("abort", () => {
          told = signal.reason;
          reject(signal.reason);
        })
      ),
  };
  await using scene = await Scene.open({ place, flows: [flow, parent, child], workers });
  const { client } = scene;
  await client.start("f", {}, { id: "e" });
  await scene.until("it waits", async () => (await client.get("e")).waiting.retries.length === 1);
  assert.equal((await client.cancel("e", "enough")).changed, true);
  assert.equal((await client.cancel("e", "enough")).changed, false);
  await scene.clock.advance("1m");
  const { status, cancelReason } = await client.get("e");
  assert.deepEqual([status, cancelReason], ["cancelled", "enough"]);
  await client.start("parent", {}, { id: "p" });
  await scene.until("the child works", () => scene.engine.counters.jobs === 2);
  const [{ id: childId }] = (await client.get("p")).waiting.children as never as [{ id: string }];
  await client.cancel("p");
  assert.equal((await client.wait(childId)).status, "cancelled");
  await scene.until("the worker is told", () => told !== undefined);
  assert.equal((told as { code: string }).code, "cancelled");
});

onStores("a pause holds timers that fall due, and lets them go", async (place) => {
  const flow = nodes("f", "id: s, type: sleep, for: 1m, next: a", "id: a, type: task, kind: k");
  await using scene = await Scene.open({ place, flows: [flow], workers: { k: () => ({}) } });
  const { client } = scene;
  await client.start("f", {}, { id: "e" });
  await client.pause("e", "wait");
  await scene.clock.advance("5m");
  assert.equal((await client.get("e")).waiting.sleeps.length, 1);
  await client.unpause("e");
  await scene.clock.advance("1ms");
  assert.equal((await scene.ended("e")).status, "completed");
});

onStores("usage, writes and the way a worker chose", async (place) => {
  const flow = `name: f
start: a
channels: { log: { reducer: append } }
nodes:
  - { id: a, type: task, kind: k, dynamic: [ a, b ], next: b }
  - { id: b, type: task, kind: k }
`;
  const workers = {
    k: ({ node, context }: Job) => {
      const n = context.visits[node]!;
      return done({
        output: { n },
        writes: { log: `${node}${n}` },
        usage: { calls: 1 },
        ...(n < 3 && node === "a" ? { next: "a" } : {}),
      });
    },
  };
  await using scene = await Scene.open({ place, flows: [flow], workers });
  const { id } = await scene.client.start("f");
  const { channels, counters, visits } = await scene.ended(id);
  assert.deepEqual(channels, { log: ["a1", "a2", "a3", "b1"] });
  assert.deepEqual(counters, { calls: 4 });
  assert.deepEqual({ ...visits }, { a: 3, b: 1 });
  assert.deepEqual((await scene.client.outputHistory(id, "a")).map(({ output }) => output), [{ n: 1 }, {
    n: 2,
  }, { n: 3 }]);
});

onStores("F14 payloads of any size", async (place) => {
  const big = "ü".repeat(1024 * 1024);
  const workers = { k: ({ context }: Job) => ({ text: (context.input as { text: string }).text + "!" }) };
  await using scene = await Scene.open({ place, flows: [THREE], workers });
  await scene.client.start("three", { text: big }, { id: "e", signals: [{ name: "x", payload: big }] });
  const { output, unread } = await scene.ended("e");
  assert.deepEqual(output, { text: `${big}!` });
  assert.deepEqual(unread, { x: 1 });
  await scene.client.archive("e");
  assert.equal((await scene.client.get("e")).output !== undefined, true);
  await scene.client.delete("e");
});

onStores("a decision that is too large fails its execution, and nothing hangs", async (place) => {
  const wide = nodes(
    "wide",
    `id: f, type: fanout, branches: [${Array.from({ length: 30 }, (_, i) => `b${i}`)}], next: j`,
    ...Array.from({ length: 30 }, (_, i) => `id: b${i}, type: task, kind: k`),
    "id: j, type: join, policy: all",
  );
  const parent = nodes("parent", "id: a, type: task, kind: k, next: p", "id: p, type: subflow, flow: wide");
  await using scene = await Scene.open({
    place,
    flows: [wide, parent],
    workers: { k: () => ({}) },
    maxEvents: 20,
  });
  await scene.client.start("wide", {}, { id: "e" });
  assert.equal((await scene.ended("e")).failure!.reason, "decision_too_large");
  await scene.client.start("parent", {}, { id: "p" });
  assert.equal((await scene.ended("p")).failure!.reason, "child_failed");
});

onStores("a result is used again, until it expires", async (place) => {
  const flow = `name: f
nodes: [ { id: a, type: task, kind: k, cache: { ttl: 1h } } ]
`;
  let runs = 0;
  await using scene = await Scene.open({ place, flows: [flow], workers: { k: () => ({ runs: ++runs }) } });
  const run = async (id: string, input: object): Promise<unknown> => {
    await scene.client.start("f", input, { id });
    return (await scene.ended(id)).output;
  };
  assert.deepEqual(await run("e1", { n: 1 }), { runs: 1 });
  assert.deepEqual(await run("e2", { n: 1 }), { runs: 1 });
  assert.deepEqual(await run("e3", { n: 2 }), { runs: 2 });
  assert.equal(scene.engine.counters.cacheHits, 1);
  await scene.clock.advance("1h");
  assert.deepEqual(await run("e4", { n: 1 }), { runs: 3 });
});

onStores("F67 a join that has what it needs stops the others; an abandoned child goes on", async (place) => {
  const flow = nodes(
    "f",
    "id: f, type: fanout, branches: [x, y, z], next: j",
    "id: x, type: task, kind: fast",
    "id: y, type: task, kind: hang",
    "id: z, type: subflow, flow: child, on_parent_close: abandon",
    "id: j, type: join, policy: any",
  );
  const child = nodes("child", "id: c, type: await, signal: go, timeout: 1h");
  const stopped: unknown[] = [], gate = Promise.withResolvers<void>();
  const workers = {
    fast: async () => {
      await gate.promise;
      return {};
    },
    hang: ({ signal }: Job) =>
      new Promise((_, reject) =>
        signal.addEventListener("abort", () => {
          stopped.push((signal.reason as { code: string }).code);
          reject(signal.reason);
        })
      ),
  };
  await using scene = await Scene.open({ place, flows: [flow, child], workers });
  await scene.client.start("f", {}, { id: "e" });
  await scene.until("all are under way", () => scene.engine.counters.jobs === 2);
  const [{ id }] = (await scene.client.get("e")).waiting.children as never as [{ id: string }];
  await scene.reaches(id, "waiting");
  gate.resolve();
  assert.equal((await scene.ended("e")).status, "completed");
  await scene.until("the worker is told", () => stopped.length === 1);
  assert.deepEqual(stopped, ["cancelled"]);
  assert.equal((await scene.client.signal(id, "go")).changed, true);
  assert.equal((await scene.ended(id)).status, "completed");
});

onStores("what is more urgent comes first, else what came first", async (place) => {
  const low = nodes("low", "id: a, type: task, kind: k, priority: -5");
  const high = nodes("high", "id: a, type: task, kind: k, priority: 5");
  const order: string[] = [];
  await using scene = await Scene.open({ place, flows: [low, high], worker: { concurrency: 1 } });
  for (const [i, flow] of ["low", "high", "low", "high"].entries()) {
    await scene.client.start(flow, {}, { id: `${flow}${i}` });
    await scene.clock.advance("1ms");
  }
  scene.engine.worker("k", ({ execId }) => {
    order.push(execId);
    return {};
  }, { concurrency: 1 });
  for (const id of ["low0", "high1", "low2", "high3"]) await scene.ended(id);
  assert.deepEqual(order, ["high1", "high3", "low0", "low2"]);
});

onStores("one commit a decision, where the worker waits for the job", async (place) => {
  await using scene = await Scene.open({ place, flows: [THREE], workers: { k: () => ({}) } });
  await scene.client.start("three", {}, { id: "warm" });
  await scene.ended("warm");
  const before = scene.store.stats();
  await scene.client.start("three", {}, { id: "e" });
  await scene.ended("e");
  const { commits, decisions } = scene.store.stats();
  assert.deepEqual([commits - before.commits, decisions - before.decisions], [4, 4]);
});
