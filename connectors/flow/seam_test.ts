/**
 * Streams and flows together, with checkpoints and crashes: each record starts one execution, each event is counted once.
 *
 * @module
 */
import assert from "node:assert/strict";
import { nodes, Scene } from "../../lib/flow/engine/kit_test.ts";
import type { Sink } from "../../lib/connector.ts";
import { collectingSink } from "../../lib/testing/mod.ts";
import { createEnv, memory } from "../../mod.ts";
import { sliceSource } from "../memory/mod.ts";
import { flowEvents, flowSink } from "./mod.ts";

const FLOW = nodes("order", "id: a, type: task, kind: k");

/** A sink that fails the run with one of its batches, once. */
function failingAt<T>(sink: Sink<T>, batch: number): Sink<T> {
  let left = batch;
  return {
    ...sink,
    async open(context) {
      const writer = await sink.open(context);
      return {
        async write(each) {
          await writer.write(each);
          if (--left === 0) throw new Error("crashed on purpose, after it was written");
        },
        flush: () => writer.flush(),
        close: (outcome) => writer.close(outcome),
      };
    },
  };
}

Deno.test("a run that crashes and goes on from a checkpoint starts an execution for each record, once", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await using scene = await Scene.open({ flows: [FLOW], workers: { k: () => ({}) } });
    const orders = Array.from({ length: 3000 }, (_, n) => ({ n }));
    let failed = 0;
    for (const crashAt of [2, 3, 0]) {
      const env = createEnv({ name: "orders" }).withCheckpointing("1ms").withStateBackend(
        memory(folder),
      );
      env.fromSource(sliceSource(orders), { id: "orders" }).toSink(
        failingAt(flowSink({ engine: scene.engine, flow: "order" }), crashAt),
        { id: "flows" },
      );
      await env.execute().catch(() => failed++);
    }
    assert.equal(failed, 2);
    const seen = new Set<number>();
    let count = 0, page = await scene.client.list({ limit: 1000 });
    for (;;) {
      for (const { id } of page.items) {
        seen.add(((await scene.client.get(id)).input as { n: number }).n);
        count++;
      }
      if (page.cursor === undefined) break;
      page = await scene.client.list({ limit: 1000, cursor: page.cursor });
    }
    assert.deepEqual([count, seen.size], [3000, 3000]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("events are counted exactly once over runs that stop and crash, while executions go on", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await using scene = await Scene.open({ flows: [FLOW], workers: { k: () => ({}) } });
    let started = 0;
    const startSome = async (count: number): Promise<void> => {
      const ids = Array.from({ length: count }, () => `e${started++}`);
      for (const id of ids) await scene.client.start("order", {}, { id });
      for (const id of ids) await scene.client.wait(id);
    };
    const last: Record<string, number> = {};
    for (const crashes of [false, true, false, false]) {
      await startSome(100);
      const sink = collectingSink<{ type: string; count: number }>();
      const env = createEnv({ name: "events" }).withCheckpointing("1ms").withStateBackend(memory(folder));
      env.fromSource(flowEvents({ store: scene.store }), { id: "events" })
        .keyBy(({ type }) => type)
        .reduce((count: number | undefined) => (count ?? 0) + 1)
        .map((count, { key }) => ({ type: key as string, count }))
        .toSink(crashes ? failingAt(sink.sink, 2) : sink.sink, { id: "out" });
      const run = env.start();
      if (crashes) {
        await assert.rejects(run.done, /on purpose/);
        continue;
      }
      for (let more = 0; more < 2; more++) { // what was there, and what comes while it runs
        await startSome(more);
        await scene.until("all is counted", () => {
          for (const { value: { type, count } } of sink.records) {
            last[type] = Math.max(last[type] ?? 0, count);
          }
          return last["ExecutionCompleted"]! >= started;
        });
      }
      await run.stop();
    }
    const types = (await scene.client.history("e0")).map(({ type }) => type);
    assert.deepEqual(last, Object.fromEntries(types.map((type) => [type, started])));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
