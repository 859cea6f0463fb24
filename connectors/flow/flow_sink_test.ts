/**
 * The flow sink: the contract of sinks, identities, what is refused; over an engine and over HTTP.
 *
 * @module
 */
import assert from "node:assert/strict";
import { codeOf } from "../../lib/errors.ts";
import type { FlowClient } from "../../lib/flow/client/mod.ts";
import { FlowClient as Client } from "../../lib/flow/client/mod.ts";
import { flowOf, nodes, Scene } from "../../lib/flow/engine/kit_test.ts";
import { FlowEngine } from "../../lib/flow/engine/mod.ts";
import { MemoryDisk, openMemoryStore } from "../../lib/flow/store/memory.ts";
import { Batch } from "../../lib/record.ts";
import { createEnv } from "../../mod.ts";
import { batchOf, sinkContract, VirtualClock } from "../../lib/testing/mod.ts";
import { sinkContext } from "../../lib/testing/sink_scene.ts";
import { inScene } from "../../lib/flow/http/kit_test.ts";
import { sliceSource } from "../memory/mod.ts";
import { derivedId } from "./identity.ts";
import { flowSink } from "./mod.ts";

const FLOW = nodes("order", "id: w, type: await, signal: go, timeout: 1000h");

/** Inputs of all executions, by id. */
async function inputs(client: FlowClient): Promise<Map<string, unknown>> {
  const found = new Map<string, unknown>();
  let page = await client.list({ limit: 1000 });
  for (;;) {
    for (const { id } of page.items) found.set(id, (await client.get(id)).input);
    if (page.cursor === undefined) return found;
    page = await client.list({ limit: 1000, cursor: page.cursor });
  }
}

sinkContract({
  name: "flow sink",
  unwritable: { value: "no id", code: "invalid_flow_id" },
  async setUp() {
    const scene = await Scene.open({ flows: [FLOW] });
    let n = 0;
    return {
      sink: flowSink({
        engine: scene.engine,
        flow: "order",
        id: (value) => value === "no id" ? "no id" : `e-${String(n++).padStart(6, "0")}`,
        input: (value) => ({ value }),
      }),
      written: async () => {
        const all = [...await inputs(scene.client)].sort(([a], [b]) => a < b ? -1 : 1);
        return all.map(([, input]) => (input as { value: unknown }).value);
      },
      tearDown: () => scene.end(),
    };
  },
  blocked: () => {
    const client = { start: () => new Promise(() => {}) } as unknown as FlowClient;
    return { sink: flowSink({ client, flow: "order" }), written: () => [] };
  },
});

Deno.test("F1: a record that is written again starts nothing twice; another place is another execution", async () => {
  await using scene = await Scene.open({ flows: [FLOW] });
  const sink = flowSink({ engine: scene.engine, flow: "order" });
  for (let run = 0; run < 3; run++) {
    const writer = await sink.open(sinkContext());
    await writer.write(batchOf([{ n: 1 }, "text", 2n ** 60n], 10));
    await writer.write(batchOf([{ n: 1 }], 13 + run));
    await writer.flush();
    await writer.close("done");
  }
  const found = await inputs(scene.client), { source, split } = batchOf([1]).position(0);
  const id = (offset: number) => derivedId("order", "r", [source, split, offset]);
  assert.deepEqual(
    new Map([...found].sort()),
    new Map(
      ([
        [id(10), { n: 1 }],
        [id(11), { data: "text" }],
        [id(12), { data: 2n ** 60n }],
        [id(13), { n: 1 }],
        [id(14), { n: 1 }],
        [id(15), { n: 1 }],
      ] as [string, unknown][]).sort(([a], [b]) => a < b ? -1 : 1),
    ),
  );
  assert.match(id(10), /^order-r[a-z2-7]{26}$/);
});

Deno.test("F1: what has no identity needs an id", async () => {
  await using scene = await Scene.open({ flows: [FLOW] });
  const { origin } = batchOf([1, 2]), rejected: unknown[] = [];
  const several = new Batch<unknown>([{ a: 1 }, { a: 2 }], origin, Int32Array.of(0, 0), undefined, false);
  const context = sinkContext({ reject: (...args) => void rejected.push(args) });
  const plain = await flowSink({ engine: scene.engine, flow: "order" }).open(context);
  await assert.rejects(async () => await plain.write(several), (error) => codeOf(error) === "flow_id_needed");
  assert.deepEqual(rejected, []);
  const named = await flowSink<unknown>({
    engine: scene.engine,
    flow: "order",
    id: (value) => (value as { a: number }).a,
  }).open(context);
  await named.write(several);
  assert.deepEqual([...(await inputs(scene.client)).keys()].sort(), ["1", "2"]);
});

Deno.test("F3: what can never be started is rejected with its reason, in order; the others are started", async () => {
  const strict =
    `name: strict\nsearch_attributes: { n: input.n }\nnodes:\n  - { id: w, type: await, signal: go, timeout: 1h }\n`;
  await using scene = await Scene.open({ flows: [FLOW, strict] });
  await scene.client.start("strict", {}, { id: "taken" });
  const rejected: [number, string][] = [];
  const context = sinkContext({ reject: (_, index, error) => void rejected.push([index, codeOf(error)]) });
  const writer = await flowSink<{ id: unknown; input?: unknown }>({
    engine: scene.engine,
    flow: "order",
    id: ({ id }) => {
      if (id === "throws") throw new Error("no id");
      return id;
    },
    input: ({ input = {} }) => input,
  }).open(context);
  await writer.write(batchOf([
    { id: "a" },
    { id: "taken" },
    { id: "b c" },
    { id: "throws" },
    { id: "d", input: [1] },
    { id: undefined },
    { id: 7n },
  ]));
  assert.deepEqual(rejected, [
    [1, "execution_conflict"],
    [2, "invalid_flow_id"],
    [3, "error"],
    [4, "invalid_flow_input"],
    [5, "invalid_flow_id"],
  ]);
  assert.deepEqual([...(await inputs(scene.client)).keys()].sort(), ["7", "a", "taken"]);
});

Deno.test("F3: a flow that is not there fails the write, and is seen by a check", async () => {
  await using scene = await Scene.open({ flows: [FLOW] });
  const sink = flowSink({ engine: scene.engine, flow: "nobody" }), context = sinkContext();
  const writer = await sink.open(context);
  await assert.rejects(
    async () => await writer.write(batchOf([1])),
    (error) => codeOf(error) === "unknown_flow",
  );
  const check = { ...context, checkpointInterval: undefined };
  assert.deepEqual((await sink.check!(check)).map(({ ok }) => ok), [false]);
  const found = await flowSink({ engine: scene.engine, flow: "order" }).check!(check);
  assert.deepEqual(found.map(({ ok }) => ok), [true]);
});

Deno.test("F2: a write whose answer is lost may be repeated: executions are there once", async () => {
  const clock = new VirtualClock(), disk = new MemoryDisk();
  await using store = await openMemoryStore({ clock, disk, partitions: 2 });
  await using engine = await new FlowEngine({ store, clock, flows: [flowOf(FLOW)] }).start();
  const real = new Client({ store, clock, engine });
  let calls = 0;
  // Of each three starts one answer is lost.
  const client = {
    start: async (...args: Parameters<Client["start"]>) => {
      const started = await real.start(...args);
      if (++calls % 3 === 0 && failed < 9) throw new Error("the connection is gone");
      return started;
    },
  } as unknown as FlowClient;
  const writer = await flowSink({ client, flow: "order", concurrency: 4 }).open(sinkContext());
  const batch = batchOf(Array.from({ length: 20 }, (_, n) => ({ n })));
  let failed = 0;
  for (let isDone = false; !isDone;) {
    calls = 0;
    isDone = await Promise.resolve(writer.write(batch)).then(() => true, () => (failed++, false));
  }
  assert.equal(failed, 9);
  assert.equal((await inputs(real)).size, 20);
});

Deno.test("a stream starts an execution for each record, and again starts none", async () => {
  await using scene = await Scene.open({ flows: [FLOW] });
  const orders = Array.from({ length: 500 }, (_, n) => ({ order: `o-${n % 400}`, amount: n }));
  for (let run = 0; run < 2; run++) {
    const env = createEnv({ name: "orders" });
    env.fromSource(sliceSource(orders))
      .filter(({ amount }) => amount >= 100)
      .toSink(flowSink<{ order: string }>({ engine: scene.engine, flow: "order", id: ({ order }) => order }));
    await env.execute();
  }
  const found = await inputs(scene.client);
  assert.equal(found.size, 400);
  assert.deepEqual(found.get("o-399"), { order: "o-399", amount: 399 });
});

Deno.test("settings that cannot be right", () => {
  const client = {} as FlowClient, url = "http://localhost:1";
  const target = (error: unknown) => codeOf(error) === "invalid_flow_target";
  assert.throws(() => flowSink({ flow: "f" }), target);
  assert.throws(() => flowSink({ flow: "f", client, url }), target);
  assert.throws(() => flowSink({ flow: "f", client, token: "t" }), target);
  assert.throws(() => flowSink({ flow: "f", url: "ftp://x" }), target);
  assert.throws(() => flowSink({ flow: "f", url: "http://user:secret@x" }), target);
  assert.throws(() => flowSink({ flow: "a b", client }), (error) => codeOf(error) === "invalid_flow_options");
  assert.throws(() => flowSink({ flow: "f", client, concurrency: 0 }), /concurrency/);
  const described = JSON.stringify(flowSink({ flow: "f", url, token: "s3cret-s3cret-s3cret" }).describe());
  assert.ok(!described.includes("s3cret") && described.includes("localhost"));
});

Deno.test("over HTTP: executions are started once, refusals are told from failures", async () => {
  const strict = flowOf(nodes("strict", "id: w, type: await, signal: go, timeout: 1h"));
  await inScene(
    { flows: [flowOf(FLOW), strict], token: "s3cret-s3cret-s3cret" },
    async ({ client, server }) => {
      const url = server.url, options = { url, token: "s3cret-s3cret-s3cret", flow: "order" };
      await client.start("strict", {}, { id: "taken" });
      const rejected: [number, string][] = [];
      const context = sinkContext({
        reject: (_, index, error) => void rejected.push([index, codeOf(error)]),
      });
      const sink = flowSink<{ id: string }>({ ...options, id: ({ id }) => id });
      const writer = await sink.open(context), batch = batchOf([{ id: "a" }, { id: "taken" }, { id: "b" }]);
      for (let round = 0; round < 2; round++) await writer.write(batch);
      assert.deepEqual([...(await inputs(client)).keys()].sort(), ["a", "b", "taken"]);
      assert.deepEqual((await client.get("a")).input, { id: "a" });
      assert.deepEqual(rejected, [[1, "execution_conflict"], [1, "execution_conflict"]]);
      const check = { ...context, checkpointInterval: undefined };
      assert.deepEqual((await sink.check!(check)).map(({ ok }) => ok), [true]);
      assert.deepEqual((await flowSink({ ...options, flow: "nobody" }).check!(check)).map(({ ok }) => ok), [
        false,
      ]);
      const stranger = await flowSink({ ...options, token: "another-token-of-some-length" }).open(context);
      await assert.rejects(
        async () => await stranger.write(batchOf([1])),
        (error) => codeOf(error) === "unauthorized",
      );
      await server[Symbol.asyncDispose]();
      await assert.rejects(
        async () => await writer.write(batch),
        (error) => codeOf(error) === "flow_server_unreachable",
      );
    },
  );
});
