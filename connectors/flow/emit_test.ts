/**
 * What flows emit: into a stream of the process, and to a topic.
 *
 * @module
 */
import assert from "node:assert/strict";
import { builtInWorkers } from "../../lib/flow/engine/mod.ts";
import { nodes, Scene } from "../../lib/flow/engine/kit_test.ts";
import { silentLogger } from "../../lib/log.ts";
import type { SourceContext } from "../../lib/connector.ts";
import { createEnv } from "../../mod.ts";
import { collectingSink, settle, VirtualClock } from "../../lib/testing/mod.ts";
import { FakeKafka } from "../kafka/testing/fake_client.ts";
import { emitSource, FlowEmitter } from "./mod.ts";

const decoder = new TextDecoder();
const TO_STREAM = nodes(
  "toStream",
  "id: e, type: task, kind: emit, with: { source: paid, key: input.customer, value: '{n: input.n}' }",
);
const TO_TOPIC = nodes(
  "toTopic",
  "id: e, type: task, kind: emit, with: { topic: out, value: '{n: 1}' }",
);

function context(more: Partial<SourceContext> = {}): SourceContext {
  return {
    id: "paid",
    batchSize: 10,
    clock: new VirtualClock(),
    logger: silentLogger,
    signal: new AbortController().signal,
    restored: undefined,
    keepsState: false,
    ...more,
  };
}

Deno.test("M1: emit ends when a checkpoint covers the record; without checkpoints when the stream has taken it", async () => {
  for (const checkpoints of [undefined, { request: () => Promise.resolve() }]) {
    const source = emitSource(), done: number[] = [];
    for (const n of [1, 2, 3]) void source.emit("k", n).then(() => done.push(n));
    const reader = await source.open(
      context({ batchSize: 2, ...(checkpoints === undefined ? {} : { checkpoints }) }),
    );
    const first = await reader.read();
    assert.deepEqual(first.kind === "records" && [first.values, first.position], [[1, 2], 2]);
    await settle();
    assert.deepEqual(done, []);
    await reader.read();
    await settle();
    assert.deepEqual(done, checkpoints === undefined ? [1, 2] : []);
    await reader.checkpointed!(new Map([["emit", 2]]));
    await settle();
    assert.deepEqual(done, [1, 2]);
    await reader.close("failed");
    // The run after it reads again what was not safe.
    const next = await source.open(context({ restored: new Map([["emit", 2]]) }));
    const again = await next.read();
    assert.deepEqual(again.kind === "records" && [again.values, again.firstOffset, again.position], [
      [3],
      2,
      3,
    ]);
    await next.close("done");
    await settle();
    // No checkpoint has covered it in either case; a regular end without checkpoints is as good as there is.
    assert.deepEqual(done, [1, 2, 3]);
  }
});

Deno.test("a full source has those who emit wait; who gives up leaves nothing behind", async () => {
  const source = emitSource({ capacity: 2 }), gone = new AbortController(), done: number[] = [];
  const outcomes = [1, 2, 3, 4].map((n) =>
    source.emit(null, n, [], gone.signal).then(() => done.push(n), () => -n)
  );
  await settle();
  gone.abort(new Error("enough"));
  assert.deepEqual(await Promise.all(outcomes), [-1, -2, -3, -4]);
  void source.emit(null, 5);
  const reader = await source.open(context());
  const read = await reader.read();
  assert.deepEqual(read.kind === "records" && read.values, [5]);
  await reader.close("done");
  assert.throws(() => {
    source.open(context());
    source.open(context());
  }, /another run/);
});

Deno.test("a flow emits to a stream in the same process", async () => {
  const paid = emitSource(), sink = collectingSink<unknown>();
  const emitter = new FlowEmitter({ sources: { paid } });
  await using scene = await Scene.open({
    flows: [TO_STREAM],
    workers: { emit: builtInWorkers({ logger: silentLogger, emit: emitter.emit }).emit },
  });
  const env = createEnv({ name: "paid" });
  env.fromSource(paid).toSink(sink.sink);
  const run = await env.start();
  for (let n = 0; n < 5; n++) await scene.client.start("toStream", { customer: `c${n}`, n }, { id: `e${n}` });
  for (let n = 0; n < 5; n++) assert.equal((await scene.client.wait(`e${n}`)).status, "completed");
  await run.stop();
  const found = sink.records.map((
    { value, key, headers },
  ) => [value, key, headers.map(([k, v]) => [k, decoder.decode(v)])]);
  assert.deepEqual(
    found.sort(),
    [0, 1, 2, 3, 4].map((n) => [{ n }, `c${n}`, [["idempotency-key", `e${n}.e.1`]]]),
  );
});

Deno.test("a flow emits to a topic; to what is not there it fails for good", async () => {
  const clock = new VirtualClock(), kafka = new FakeKafka(clock);
  kafka.createTopic("out", 3);
  await using emitter = new FlowEmitter({ kafka: { brokers: ["fake:9092"] }, client: kafka.connect, clock });
  const workers = { emit: builtInWorkers({ logger: silentLogger, emit: emitter.emit }).emit };
  await using scene = await Scene.open({ flows: [TO_STREAM, TO_TOPIC], workers });
  await scene.client.start("toTopic", {}, { id: "e" });
  assert.equal((await scene.client.wait("e")).status, "completed");
  assert.deepEqual(kafka.texts("out"), [`{"n":1}`]);
  const { id } = await scene.client.start("toStream", { customer: "c", n: 1 });
  const { status, failure } = await scene.client.wait(id);
  assert.equal(status, "failed");
  assert.match(failure!.error, /no source "paid"/);
  await using none = new FlowEmitter({});
  await assert.rejects(
    none.emit(
      { topic: "out", key: null, value: 1 },
      { idempotencyKey: "k", signal: new AbortController().signal } as never,
    ),
    /no Kafka/,
  );
});
