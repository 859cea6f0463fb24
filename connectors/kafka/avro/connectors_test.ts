/**
 * Avro through the Kafka source and sinks, H4 of the reader: who asks the registry, when, and what becomes of it. And connectors that
 * ask nobody.
 *
 * @module
 */
import assert from "node:assert/strict";
import { batchOf } from "../../../lib/testing/sink_contract.ts";
import { sinkContext } from "../../../lib/testing/sink_scene.ts";
import { settle, VirtualClock } from "../../../lib/testing/virtual_clock.ts";
import { MailerError } from "../../../lib/errors.ts";
import { fileSink } from "../../file/mod.ts";
import { blackholeSink, sliceSource } from "../../memory/mod.ts";
import { stdoutSink } from "../../stdio/mod.ts";
import { kafkaSink } from "../kafka_sink.ts";
import { cluster, Driven } from "../source/kit_test.ts";
import { FakeKafka } from "../testing/fake_client.ts";
import { transactionalKafkaSink } from "../transactional_sink.ts";
import { avroFormat } from "./format.ts";
import { encoded, FakeRegistry } from "./kit_test.ts";

const ORDER = JSON.stringify({ type: "record", name: "Order", fields: [{ name: "id", type: "long" }] });

/** Lets the real world answer. */
async function until(holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 2_000 && !holds(); turn++) await settle();
  assert.ok(holds());
}

Deno.test("source: schemas are fetched before records are handed out, keys as well; null stays null", async () => {
  await using registry = new FakeRegistry();
  const values = avroFormat({ registry, topic: "t", schema: ORDER });
  const keys = avroFormat({ registry, subject: "t-key", schema: '"string"' });
  const [one, two] = await encoded(values, { id: 1 }, { id: 2 });
  const [key] = await encoded(keys, "k");
  const kafka = cluster(new FakeKafka(new VirtualClock()));
  kafka.write("t", 0, [{ key: key!, value: one! }, { value: null }, { value: two! }]);
  registry.asked.length = 0;
  const driven = await Driven.open(kafka, {
    format: avroFormat({ registry }),
    keyFormat: avroFormat({ registry }),
    until: "end",
  });
  await until(() => driven.log.at(-1) === "end");
  assert.deepEqual(driven.values, [{ id: 1 }, null, { id: 2 }]);
  assert.deepEqual(driven.reads.flatMap((read) => read.kind === "records" ? read.keys : []), [
    "k",
    null,
    null,
  ]);
  assert.deepEqual(registry.asked.toSorted(), ["GET /schemas/ids/1", "GET /schemas/ids/2"]);
  await driven.close("done");
});

Deno.test("source: while the registry is silent nothing is handed out, and partitions may go; then all goes on", async () => {
  await using registry = new FakeRegistry();
  const [one] = await encoded(avroFormat({ registry, topic: "t", schema: ORDER }), { id: 1 });
  const kafka = cluster(new FakeKafka(new VirtualClock()), 2);
  kafka.write("t", 0, [{ value: one! }]);
  kafka.write("t", 1, [{ value: one! }]);
  const silent = Promise.withResolvers<undefined>();
  registry.instead = () => silent.promise;
  registry.asked.length = 0;
  const driven = await Driven.open(kafka, { format: avroFormat({ registry }), groupId: "g" });
  await until(() => registry.asked.length === 1);
  assert.deepEqual(driven.values, []);
  const other = await Driven.open(kafka, { groupId: "g", format: avroFormat({ registry }) });
  await (kafka.clock as VirtualClock).advance("6s");
  assert.deepEqual(driven.values, []);
  assert.ok(driven.log.some((line) => line.startsWith("removed")), driven.log.join("\n"));
  silent.resolve(undefined);
  registry.instead = () => undefined;
  await until(() => driven.values.length + other.values.length === 2);
  assert.deepEqual([driven.values, other.values], [[{ id: 1 }], [{ id: 1 }]], "each its own partition, once");
  await driven.close();
  await other.close();
});

Deno.test("source: what cannot be decoded is a failure in its place; that nobody answers ends the run", async () => {
  await using registry = new FakeRegistry();
  const [one, two] = await encoded(avroFormat({ registry, topic: "t", schema: ORDER }), { id: 1 }, { id: 2 });
  const kafka = cluster(new FakeKafka(new VirtualClock()));
  kafka.write("t", 0, [{ value: one! }, { value: Uint8Array.of(0, 0, 0, 0, 77, 2) }, { value: "{}" }, {
    value: two!,
  }]);
  const format = () => avroFormat({ registry: { url: registry.url, timeout: "5s" } });
  const driven = await Driven.open(kafka, { format: format(), until: "end" });
  await until(() => driven.log.at(-1) === "end");
  assert.deepEqual(driven.values, [{ id: 1 }, { id: 2 }]);
  const failures = driven.reads.flatMap((read) => read.kind === "records" ? read.failures ?? [] : []);
  assert.deepEqual(failures.map(({ offset, error }) => [offset, (error as MailerError).code]), [
    [1, "avro_unknown_schema"],
    [2, "not_avro"],
  ]);
  await driven.close("done");

  registry.instead = () => new Response("", { status: 500 });
  const stuck = await Driven.open(kafka, { format: format() });
  for (let turn = 0; turn < 200 && stuck.error === undefined; turn++) {
    for (let wait = 0; wait < 20; wait++) await settle();
    await (kafka.clock as VirtualClock).advance(200);
  }
  assert.equal((stuck.error as MailerError).code, "schema_registry_unreachable");
  assert.deepEqual(stuck.values, []);
  await stuck.close();
});

Deno.test("sinks: the schema is registered before the first record; what does not fit is rejected", async () => {
  for (const isTransactional of [false, true]) {
    await using registry = new FakeRegistry(7);
    const kafka = new FakeKafka(new VirtualClock());
    kafka.createTopic("out", 1);
    const options = {
      brokers: ["b:9092"],
      topic: "out",
      client: kafka.connect,
      format: avroFormat({ registry, topic: "out", schema: ORDER }),
    };
    const rejected: string[] = [];
    const context = sinkContext({
      clock: kafka.clock,
      reject: (_batch, _index, error) => rejected.push(error.message),
      ...(isTransactional ? { checkpoints: { restored: undefined, interval: 1000 } } : {}),
    });
    const sink = isTransactional
      ? transactionalKafkaSink({ ...options, transactionalId: "x" })
      : kafkaSink(options);
    const writer = await sink.open(context);
    assert.deepEqual(registry.asked, ["POST /subjects/out-value/versions"]);
    await writer.write(batchOf([{ id: 1 }, { id: "x" }, { id: 2 ** 60 + 256 }, { id: 2n ** 60n }, null]));
    if (isTransactional) await writer.commit!(await writer.prepare!(1));
    else await writer.flush();
    await writer.close("done");
    const written = kafka.records("out").map(({ value }) => value);
    assert.deepEqual(written, [
      Uint8Array.of(0, 0, 0, 0, 7, 2),
      Uint8Array.of(0, 0, 0, 0, 7, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20),
      null,
    ]);
    assert.deepEqual(rejected, [
      'does not fit the schema "Order": id is "x", not a long',
      'does not fit the schema "Order": id is 1152921504606847200, not a long',
    ]);
  }
});

Deno.test("sinks: what the registry refuses stops the run before anything is written", async () => {
  await using registry = new FakeRegistry();
  registry.instead = () => Response.json({ error_code: 409, message: "no default" }, { status: 409 });
  const kafka = new FakeKafka(new VirtualClock());
  kafka.createTopic("out", 1);
  const format = avroFormat({ registry, topic: "out", schema: ORDER });
  const sink = kafkaSink({ brokers: ["b:9092"], topic: "out", client: kafka.connect, format });
  await assert.rejects(async () => await sink.open(sinkContext({ clock: kafka.clock })), {
    code: "avro_incompatible",
  });
  assert.equal(kafka.clients.size, 0);
});

Deno.test("connectors that ask nobody refuse the format", async () => {
  const format = avroFormat({ registry: { url: "http://localhost:1" }, topic: "t" });
  const refuses = async (name: string, open: () => unknown) =>
    await assert.rejects(async () => await open(), (error: MailerError) => {
      assert.equal(error.code, "format_not_supported");
      assert.equal(
        error.message,
        `the ${name} does not work with the format avro, which has to ask a registry first`,
      );
      return true;
    });
  await refuses("stdout sink", () => stdoutSink({ format }).open(sinkContext()));
  await refuses("blackhole sink", () => blackholeSink({ format }).open(sinkContext()));
  const folder = await Deno.makeTempDir();
  try {
    await refuses("file sink", async () => {
      const writer = await fileSink({ path: `${folder}/out`, format }).open(sinkContext());
      await writer.close("failed");
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
  await refuses("slice source", () =>
    sliceSource(["x"], { format }).open({
      id: "s",
      batchSize: 1,
      clock: new VirtualClock(),
      logger: { log: () => {} },
      signal: new AbortController().signal,
      restored: undefined,
      keepsState: false,
    }));
});
