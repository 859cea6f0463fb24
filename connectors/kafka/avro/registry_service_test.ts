/**
 * Avro with a real registry, Apicurio, and a real broker.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createEnv, MailerError } from "../../../mod.ts";
import { delay, systemClock } from "../../../lib/clock.ts";
import { parseWorkflow } from "../../../lib/workflow/mod.ts";
import { collectingSink } from "../../../testing.ts";
import { bytesFormat } from "../../../lib/format/mod.ts";
import { sliceSource } from "../../memory/mod.ts";
import { kafkaService, schemaRegistry, serviceTest } from "../../../tests/services/mod.ts";
import { kafkaSink } from "../kafka_sink.ts";
import { kafkaSource } from "../kafka_source.ts";
import { avroFormat, type AvroFormatOptions } from "./format.ts";
import { kafkaSinkOf, kafkaSourceOf } from "../workflow.ts";
import { context } from "./kit_test.ts";

const field = (name: string, type: unknown, more: object = {}) => ({ name, type, ...more });
const order = (...fields: unknown[]) => ({ type: "record", name: "Order", namespace: "com.example", fields });
const FIRST = order(
  field("id", "long"),
  field("amount", { type: "bytes", logicalType: "decimal", precision: 20, scale: 2 }),
  field("note", ["null", "string"], { default: null }),
);

serviceTest("register, write, evolve, read as the newest; a schema that does not fit is refused", [
  "kafka",
  "schema registry",
], async () => {
  await using registry = await schemaRegistry();
  await using kafka = await kafkaService();
  const topic = await kafka.java.createTopic("avro", { partitions: 1 }), { brokers } = kafka;
  const format = (options: Partial<AvroFormatOptions> = {}) => avroFormat({ registry, topic, ...options });
  const write = async (records: readonly unknown[], options: Partial<AvroFormatOptions>) => {
    const env = createEnv({ name: "write" });
    env.fromSource(sliceSource(records)).toSink(kafkaSink({ brokers, topic, format: format(options) }));
    await env.execute();
  };
  const read = async (options: Partial<AvroFormatOptions> = {}) => {
    const env = createEnv({ name: "read" }), collected = collectingSink<unknown>();
    env.fromSource(kafkaSource({ brokers, topics: [topic], until: "end", format: format(options) })).toSink(
      collected.sink,
    );
    await env.execute();
    return collected.values;
  };
  const fails = async (code: string, work: Promise<unknown>) =>
    await assert.rejects(work, (error) => error instanceof MailerError && error.code === code);
  const json = async (path: string, init?: RequestInit) => {
    const response = await fetch(registry.url + path, init);
    return await response.json() as Record<string, unknown>;
  };

  const records = [
    { id: 1, amount: 1.5, note: "a" },
    { id: 2n ** 62n, amount: -12.34, note: null },
  ];
  await fails("avro_unknown_schema", write(records, {})); // nobody has registered anything yet
  await fails("avro_unknown_schema", write(records, { schema: FIRST, autoRegister: false }));
  await write(records, { schema: FIRST });
  assert.deepEqual(await read(), records);
  const { id, schema } = await json(`/subjects/${topic}-value/versions/latest`) as {
    id: number;
    schema: string;
  };
  assert.deepEqual(
    (JSON.parse(schema) as typeof FIRST).fields.map((each) => (each as { name: string }).name),
    [
      "id",
      "amount",
      "note",
    ],
  );
  const [first] = await kafka.java.records(topic);
  assert.deepEqual((first!.value as Uint8Array).subarray(0, 6), Uint8Array.of(0, 0, 0, 0, id, 2));

  await json(`/config/${topic}-value`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: '{"compatibility":"BACKWARD"}',
  });
  const second = order(...FIRST.fields, field("source", "string", { default: "web" }));
  await write([{ id: 3, amount: 0, note: null, source: "app" }], { schema: second });
  await write([{ id: 4, amount: 0, note: null }], { schema: FIRST, autoRegister: false });
  await write([{ id: 5, amount: 0, note: null, source: "app" }], {}); // with the newest
  const all = [...records, ...[3, 4, 5].map((id) => ({ id, amount: 0, note: null }))];
  assert.deepEqual(
    await read({ readerSchema: second }),
    all.map((each) => ({
      ...each,
      source: each.id === 3 || each.id === 5 ? "app" : "web",
    })),
  );
  assert.deepEqual(await read({ readerSchema: order(field("id", "double")) }).then((rows) => rows.length), 5);

  const third = order(...FIRST.fields, field("missing", "string"));
  await fails("avro_incompatible", write([], { schema: third }));
  await fails("avro_schema", write([], { schema: { type: "recrod" } }));

  await json(`/subjects/${topic}-other/versions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      schemaType: "PROTOBUF",
      schema: 'syntax = "proto3"; message M { string a = 1; }',
    }),
  });
  const other = await json(`/subjects/${topic}-other/versions/latest`) as { id: number };
  const decoder = format().decoder(),
    payloads = [
      Uint8Array.of(0, 0, 0, 0, other.id, 0),
      Uint8Array.of(0, 0, 0, 255, 255, 0),
    ];
  await decoder.prepare!(payloads, context());
  const into = { values: [], failures: [] as { index: number; error: Error }[] };
  decoder.decode(payloads, into);
  assert.deepEqual(into.failures.map(({ error }) => (error as MailerError).code), [
    "avro_schema_type",
    "avro_unknown_schema",
  ]);

  await inDocuments({ brokers, url: registry.url, topic, second });

  await registry.stop();
  const known = createEnv({ name: "gone" }), sink = collectingSink<unknown>();
  known.fromSource(kafkaSource({
    brokers,
    topics: [topic],
    until: "end",
    format: avroFormat({ registry: { url: registry.url, timeout: 300 } }),
  })).toSink(sink.sink);
  await fails("schema_registry_unreachable", known.execute());
  assert.deepEqual(sink.values, []);
  const raw = createEnv({ name: "raw" }), bytes = collectingSink<Uint8Array>();
  raw.fromSource(kafkaSource({ brokers, topics: [topic], until: "end", format: bytesFormat() })).toSink(
    bytes.sink,
  );
  await raw.execute();
  assert.equal(bytes.values.length, 6);
});

/** What a workflow document says becomes the same. */
async function inDocuments({ brokers, url, topic, second }: {
  readonly brokers: readonly string[];
  readonly url: string;
  readonly topic: string;
  readonly second: object;
}): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/order.avsc`, JSON.stringify(second));
    const resolveSecret = () => undefined;
    const specOf = (document: object) => {
      const { spec, problems } = parseWorkflow(JSON.stringify(document), { file: "w.json", resolveSecret });
      assert.ok(spec, JSON.stringify(problems));
      return spec;
    };
    const avro = { brokers, topic, schemaRegistry: { url } };
    const spec = specOf({
      name: "w",
      source: {
        type: "kafka",
        kafka: { ...avro, parallel: true, deserialize: "avro", readerSchema: "order.avsc" },
      },
      sink: { type: "kafka", kafka: { ...avro, serialize: "avro", schema: second, autoRegister: false } },
    });
    const [from] = spec.sources, [to] = spec.sinks;
    assert.ok(from?.type === "kafka" && to?.type === "kafka");
    const writing = createEnv({ name: "write" }), last = { id: 6, amount: 1, note: null, source: "document" };
    writing.fromSource(sliceSource([last])).toSink(kafkaSinkOf(to.kafka, folder));
    await writing.execute();
    const reading = createEnv({ name: "read" }), collected = collectingSink<unknown>();
    reading.fromSource(kafkaSourceOf(from.kafka, folder)).toSink(collected.sink);
    const run = reading.start();
    while (collected.values.length < 6) await Promise.race([run.done, delay(systemClock, 20)]);
    await run.stop();
    assert.deepEqual(collected.values.at(-1), last);
    assert.equal((collected.values[0] as { source: string }).source, "web", "read as the schema of the file");
    const gone = kafkaSourceOf({ ...from.kafka, readerSchema: "absent.avsc" }, folder);
    const failing = createEnv({ name: "absent" });
    failing.fromSource(gone).toSink(collectingSink().sink);
    await assert.rejects(failing.execute(), /readerSchema "absent.avsc" cannot be read/);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
