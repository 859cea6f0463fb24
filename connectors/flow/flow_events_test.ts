/**
 * Events of executions as a source: the contract of sources, positions, what has moved or gone.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { SourceContext, SourceReader } from "../../lib/connector.ts";
import { codeOf } from "../../lib/errors.ts";
import { type Job, PermanentError } from "../../lib/flow/engine/mod.ts";
import { nodes, Scene } from "../../lib/flow/engine/kit_test.ts";
import { silentLogger } from "../../lib/log.ts";
import { sourceContract, VirtualClock } from "../../lib/testing/mod.ts";
import { type FlowEventRecord, flowEvents, type FlowEventsOptions } from "./mod.ts";

const TWO = nodes("two", "id: a, type: task, kind: k, next: b", "id: b, type: task, kind: k");
const OTHER = nodes("other", "id: w, type: await, signal: go, timeout: 1h");

const workers = {
  k: ({ node, context }: Job) => {
    if ((context.input as { fail?: string }).fail === node) throw new PermanentError("on purpose");
    return { node };
  },
};

/** Some executions that have ended. */
async function busy(place: "memory" | "kv" = "memory"): Promise<Scene> {
  const scene = await Scene.open({ place, flows: [TWO, OTHER], workers, count: 3 });
  for (let n = 0; n < 12; n++) {
    await scene.client.start("two", n % 4 === 0 ? { fail: "b" } : { n }, { id: `e${n}` });
    await scene.client.wait(`e${n}`);
  }
  return scene;
}

/** What there is to be found, by partition, from the histories. */
async function expected(scene: Scene): Promise<{ split: string; records: FlowEventRecord[] }[]> {
  const { client, store } = scene,
    splits = [0, 1, 2].map((p) => ({ split: String(p), records: [] as FlowEventRecord[] }));
  for (let partition = 0; partition < 3; partition++) {
    for (const { execId, seq } of await store.feed.read(partition, 0, 10_000)) {
      const [decision] = await client.history(execId, { from: seq, limit: 1 }).then((all) => [all]);
      const { flow } = await client.get(execId);
      for (const { i, type, time, data } of decision!) {
        splits[partition]!.records.push({ execution: execId, flow, seq, i, type, time, data });
      }
    }
  }
  return splits;
}

const known = await (async () => {
  const scene = await busy(), splits = await expected(scene);
  await scene.end();
  return splits;
})();
assert.ok(known.every(({ records }) => records.length > 10));

sourceContract({
  name: "flow events",
  expected: known,
  positions: "replays",
  async setUp() {
    const scene = await busy();
    return { source: flowEvents({ store: scene.store, until: "end" }), tearDown: () => scene.end() };
  },
  async waiting() {
    const scene = await Scene.open({ flows: [TWO], workers });
    return { source: flowEvents({ store: scene.store }), tearDown: () => scene.end() };
  },
});

/** Reads as a run would. */
class Reading {
  readonly records: FlowEventRecord[] = [];
  readonly positions = new Map<string, unknown>();
  readonly offsets: number[] = [];
  readonly abort = new AbortController();
  #reader!: SourceReader<FlowEventRecord>;

  async open(options: FlowEventsOptions, restored?: ReadonlyMap<string, unknown>): Promise<this> {
    const context: SourceContext = {
      id: "events",
      batchSize: 3,
      clock: new VirtualClock(),
      logger: silentLogger,
      signal: this.abort.signal,
      restored,
      keepsState: false,
    };
    this.#reader = await flowEvents(options).open(context);
    return this;
  }

  /** Reads until every split is empty, or it has ended. */
  async drain(): Promise<void> {
    const empty = new Set<string>();
    while (empty.size < this.#reader.splits.length) {
      const read = await this.#reader.read();
      if (read.kind === "end") return;
      if (read.kind === "empty") empty.add(read.split);
      if (read.kind === "records") {
        this.records.push(...read.values);
        this.offsets.push(...read.offsets!);
      }
      if (read.kind === "records" || read.kind === "position") this.positions.set(read.split, read.position);
    }
  }

  async close(): Promise<void> {
    await this.#reader.close("done");
  }
}

const text = ({ execution, i, type }: FlowEventRecord) => `${execution} ${i} ${type}`;

for (const place of ["memory", "kv"] as const) {
  Deno.test(`E1: goes on as things happen, each event once, those of an execution in order (${place})`, async () => {
    await using scene = await busy(place);
    const reading = await new Reading().open({ store: scene.store });
    await reading.drain();
    const before = reading.records.length;
    await scene.client.start("two", { n: 100 }, { id: "later" });
    await scene.client.wait("later");
    await reading.drain();
    const later = reading.records.slice(before);
    assert.deepEqual(
      later.map(({ type }) => type),
      (await scene.client.history("later")).map(({ type }) => type),
    );
    assert.deepEqual(later.map(({ i }) => i), later.map((_, n) => n + 1));
    const all = reading.records.map(text);
    assert.equal(new Set(all).size, all.length);
    const histories = await Promise.all(
      (await scene.client.list({ limit: 100 })).items.map(({ id }) => scene.client.history(id)),
    );
    assert.equal(all.length, histories.flat().length);
    await reading.close();
  });
}

Deno.test("E2: with positions of anywhere nothing comes twice and nothing is missing, also within a decision", async () => {
  await using scene = await busy();
  const whole = await new Reading().open({ store: scene.store, until: "end" });
  await whole.drain();
  await whole.close();
  for (const [n, offset] of whole.offsets.entries()) {
    const split = String(scene.store.partitions.of(whole.records[n]!.execution));
    const rest = await new Reading().open({ store: scene.store, until: "end" }, new Map([[split, offset]]));
    await rest.drain();
    await rest.close();
    const mine = ({ execution }: FlowEventRecord) => String(scene.store.partitions.of(execution)) === split;
    const from = whole.records.slice(n).filter(mine);
    assert.deepEqual(rest.records.filter(mine), from);
  }
});

Deno.test("only some types, only some flows; positions go on all the same", async () => {
  await using scene = await busy();
  await scene.client.start("other", {}, { id: "o" });
  const ends = ["ExecutionCompleted", "ExecutionFailed"];
  const reading = await new Reading().open({ store: scene.store, types: ends, flows: ["two"] });
  await reading.drain();
  await reading.close();
  assert.deepEqual(new Set(reading.records.map(({ flow }) => flow)), new Set(["two"]));
  assert.equal(reading.records.length, 12);
  assert.equal(reading.records.filter(({ type }) => type === "ExecutionFailed").length, 3);
  for (const [split, position] of reading.positions) {
    assert.equal(Math.floor(position as number / 65_536), await scene.store.feed.end(Number(split)));
  }
  const latest = await new Reading().open({ store: scene.store, start: "latest" });
  await latest.drain();
  assert.deepEqual(latest.records, []);
  await scene.client.signal("o", "go");
  await latest.drain();
  await latest.close();
  assert.deepEqual(new Set(latest.records.map(({ execution }) => execution)), new Set(["o"]));
});

Deno.test("E3: histories begun anew and archived are read; what was deleted is said; what was cut is an error", async () => {
  const loop = `name: loop
start: a
nodes:
  - { id: a, type: task, kind: again, dynamic: [ a, b ], next: b }
  - { id: b, type: task, kind: k }
`;
  await using scene = await Scene.open({
    flows: [TWO, loop],
    workers: {
      ...workers,
      again: ({ context }: Job) => ({ n: context.visits["a"] }),
    },
    count: 1,
    historyLimit: 6,
    snapshotEvery: 3,
  });
  const { client, store } = scene;
  await client.start("loop", {}, { id: "long" });
  await client.start("two", {}, { id: "kept" });
  await client.start("two", {}, { id: "gone" });
  for (const id of ["long", "kept", "gone"]) await client.wait(id);
  const first = await new Reading().open({ store, until: "end" });
  await first.drain();
  await client.archive("kept");
  await scene.clock.advance("11m"); // an execution may be deleted then
  await client.delete("gone");
  const second = await new Reading().open({ store, until: "end" });
  await second.drain();
  const of = (reading: Reading, id: string) => reading.records.filter(({ execution }) => execution === id);
  for (const id of ["long", "kept"]) {
    const seqs = new Set(of(first, id).map(({ seq }) => seq));
    assert.deepEqual(of(second, id).filter(({ seq }) => seqs.has(seq)), of(first, id), id);
  }
  assert.ok(of(second, "gone").length > 0);
  assert.ok(
    of(second, "gone").every(({ gone, data, flow }) => gone === true && data === null && flow === null),
  );
  assert.deepEqual(
    new Set(of(second, "gone").map(({ type }) => type)),
    new Set(of(first, "gone").map(({ type }) => type)),
  );
  await store.feed.trim(0, 5);
  const third = await new Reading().open({ store }, new Map([["0", 65_536]]));
  await assert.rejects(third.drain(), (error) => codeOf(error) === "feed_trimmed");
  const bad = new Reading().open({ store }, new Map([["0", "x"]]));
  await assert.rejects(bad, (error) => codeOf(error) === "invalid_position");
  for (const each of [first, second, third]) await each.close();
});
