import assert from "node:assert/strict";
import type { SinkContext, SinkWriter } from "../../lib/connector.ts";
import { codeOf } from "../../lib/errors.ts";
import { stringFormat } from "../../lib/format/mod.ts";
import { Batch, type Headers } from "../../lib/record.ts";
import { batchOf, sinkContract } from "../../lib/testing/sink_contract.ts";
import { sinkContext } from "../../lib/testing/sink_scene.ts";
import { settle, VirtualClock } from "../../lib/testing/virtual_clock.ts";
import { KafkaError } from "./errors.ts";
import { kafkaSink, type KafkaSinkOptions } from "./kafka_sink.ts";
import { partitionOfKey } from "./protocol/partitioner.ts";
import { FakeKafka, type StoredRecord } from "./testing/fake_client.ts";

const text = new TextDecoder(), bytes = new TextEncoder();
const parsed = (value: string | null): unknown => value === null ? null : JSON.parse(value);

function newKafka(partitions = 1, config: Readonly<Record<string, string>> = {}): FakeKafka {
  const kafka = new FakeKafka(new VirtualClock());
  kafka.createTopic("out", partitions, config);
  return kafka;
}

sinkContract({
  name: "kafka sink",
  setUp() {
    const kafka = newKafka();
    const sink = kafkaSink({
      brokers: ["b:9092"],
      topic: "out",
      client: kafka.connect,
      sasl: { mechanism: "plain", username: "anna", password: "geheim" },
    });
    return {
      sink,
      written: () => kafka.texts("out").map(parsed),
      tearDown: () => assert.equal(kafka.clients.size, 0, "a client was not closed"),
    };
  },
  unwritable: { value: NaN, code: "not_json_number" },
  blocked() {
    const kafka = newKafka();
    kafka.hold("send");
    const sink = kafkaSink({
      brokers: ["b"],
      topic: "out",
      client: kafka.connect,
      bufferBytes: 1,
      batchSize: 1,
    });
    return { sink, written: () => kafka.texts("out").map(parsed) };
  },
  secrets: ["geheim", "anna"],
});

/** A writer on a cluster, closed at the end. */
async function writing(
  kafka: FakeKafka,
  options: Partial<KafkaSinkOptions>,
  use: (writer: SinkWriter, clock: VirtualClock) => Promise<void>,
  context: Partial<SinkContext> = {},
): Promise<void> {
  const clock = kafka.clock as VirtualClock;
  const sink = kafkaSink({ brokers: ["b:9092"], topic: "out", client: kafka.connect, ...options });
  const writer = await sink.open(sinkContext({ clock, ...context }));
  try {
    await use(writer, clock);
  } finally {
    await writer.close("done");
  }
  assert.equal(kafka.clients.size, 0);
}

interface Row {
  readonly value: unknown;
  readonly key?: unknown;
  readonly at?: number;
  readonly headers?: Headers;
}

function batchWith(rows: readonly Row[]): Batch {
  const plain = batchOf(rows.map(({ value }) => value));
  return plain.withRows({
    ...plain.origin,
    keys: rows.map(({ key }) => key),
    timestamps: Float64Array.from(rows, ({ at }) => at ?? 1000),
    headers: rows.map(({ headers }) => headers),
  });
}

const keysOf = (records: readonly StoredRecord[]) =>
  records.map(({ key }) => key === null ? null : text.decode(key));

Deno.test("keys: text and bytes as they are, null and undefined none, the rest as JSON", async () => {
  const kafka = newKafka();
  await writing(kafka, {}, async (writer) => {
    const keys = ["a", "", bytes.encode("raw"), null, undefined, 7, { b: 1 }, true, 12345678901234567890n];
    await writer.write(batchWith(keys.map((key, value) => ({ key, value }))));
    await writer.flush();
  });
  const expected = ["a", "", "raw", null, null, "7", '{"b":1}', "true", "12345678901234567890"];
  assert.deepEqual(keysOf(kafka.records("out")), expected);
});

Deno.test("a key function is given value and record", async () => {
  const kafka = newKafka();
  const key = (value: unknown, { key }: { readonly key: unknown }) =>
    `${(value as { id: number }).id}/${key}`;
  await writing(kafka, { key }, async (writer) => {
    await writer.write(batchWith([{ value: { id: 7 }, key: "k" }, { value: { id: 8 }, key: "l" }]));
    await writer.flush();
  });
  assert.deepEqual(keysOf(kafka.records("out")), ["7/k", "8/l"]);
});

Deno.test("null is a tombstone, an empty text is not; headers are passed on as they are", async () => {
  const kafka = newKafka();
  const headers: Headers = [["h", bytes.encode("1")], ["h", bytes.encode("2")], ["10", new Uint8Array()]];
  await writing(kafka, { format: stringFormat() }, async (writer) => {
    await writer.write(batchWith([{ value: null, key: "k", headers }, { value: "", key: "k" }]));
    await writer.flush();
  });
  const [first, second] = kafka.records("out");
  assert.equal(first!.value, null);
  assert.deepEqual(first!.headers, headers);
  assert.deepEqual(second!.value, new Uint8Array());
});

Deno.test("the time of a record is its event time, also 0 and before, and never later than now", async () => {
  const kafka = newKafka(), now = kafka.clock.now();
  await writing(kafka, {}, async (writer) => {
    const times = [0, -5, -1, 1234.75, now, now + 86_400_000, -Infinity, NaN];
    await writer.write(batchWith(times.map((at, value) => ({ at, value }))));
    await writer.flush();
  });
  assert.deepEqual(kafka.records("out").map(({ timestamp }) => timestamp), [
    0,
    -5,
    -1,
    1234,
    now,
    now,
    now,
    now,
  ]);
});

Deno.test("partitions: by murmur2 of the key, in the order of each key", async () => {
  const kafka = newKafka(5);
  const rows = Array.from({ length: 200 }, (_, i) => ({ key: `key-${i % 17}`, value: i }));
  await writing(kafka, { batchSize: 7 }, async (writer) => {
    for (let i = 0; i < 200; i += 30) await writer.write(batchWith(rows.slice(i, i + 30)));
    await writer.flush();
  });
  const records = kafka.records("out");
  assert.equal(records.length, 200);
  const last = new Map<string, number>();
  for (const { key, value, partition } of records) {
    assert.equal(partition, partitionOfKey(key!, 5));
    const name = text.decode(key!), number = Number(text.decode(value!));
    assert.ok(number > (last.get(name) ?? -1), `key ${name}: ${number} behind ${last.get(name)}`);
    last.set(name, number);
  }
});

Deno.test("partitions are those that Kafka's Java producer chooses", async () => {
  const kafka = newKafka(5);
  // Hashes from the tests of Kafka's own murmur2, modulo 5 without their sign.
  const keys = {
    "21": -973932308,
    foobar: -790332482,
    abc: 479470107,
    "a-little-bit-long-string": -985981536,
  };
  await writing(kafka, {}, async (writer) => {
    await writer.write(batchWith(Object.keys(keys).map((key) => ({ key, value: key }))));
    await writer.flush();
  });
  assert.deepEqual(
    Object.fromEntries(kafka.records("out").map(({ key, partition }) => [text.decode(key!), partition])),
    Object.fromEntries(Object.entries(keys).map(([key, hash]) => [key, (hash & 0x7fffffff) % 5])),
  );
});

Deno.test("records without a key stay together in a batch, and batches go around", async () => {
  const kafka = newKafka(4);
  await writing(kafka, { batchSize: 10 }, async (writer) => {
    for (let i = 0; i < 8; i++) {
      await writer.write(batchOf(Array.from({ length: 10 }, (_, j) => i * 10 + j)));
      await writer.flush();
    }
  });
  const perPartition = Map.groupBy(kafka.records("out"), ({ partition }) => partition);
  assert.deepEqual([...perPartition.values()].map((records) => records.length), [20, 20, 20, 20]);
});

Deno.test("W4: while nothing is acknowledged, records without a key fill all partitions alike", async () => {
  for (const limit of [{ batchSize: 10 }, { batchBytes: 3000 }]) {
    const kafka = newKafka(4);
    await writing(kafka, limit, async (writer) => {
      const held = kafka.hold("send");
      for (let i = 0; i < 400; i++) {
        await writer.write(batchOf(Array.from({ length: 10 }, () => "x".repeat(48))));
      }
      held.release();
      await writer.flush();
    });
    const perPartition = Map.groupBy(kafka.records("out"), ({ partition }) => partition);
    const counts = [...perPartition.values()].map((records) => records.length);
    assert.equal(counts.length, 4);
    assert.ok(counts.every((count) => count >= 800 && count <= 1200), counts.join());
  }
});

Deno.test("a partition function chooses, and what it may not choose is rejected", async () => {
  const kafka = newKafka(3), rejected: [number, string][] = [];
  const reject = (_: Batch, index: number, error: Error) => void rejected.push([index, codeOf(error)]);
  const partition = (value: unknown, _: unknown, count: number) =>
    (value as number) === 9 ? count : (value as number);
  await writing(kafka, { partition }, async (writer) => {
    await writer.write(batchOf([2, 9, 0, 2, 1.5]));
    await writer.flush();
  }, { reject });
  assert.deepEqual(kafka.records("out").map(({ partition }) => partition), [0, 2, 2]);
  assert.deepEqual(rejected, [[1, "invalid_partition"], [4, "invalid_partition"]]);
});

Deno.test("a topic function chooses; what is no name, and a topic that does not exist, are rejected", async () => {
  const kafka = newKafka(), rejected: [number, string][] = [];
  kafka.createTopic("other", 2);
  const reject = (_: Batch, index: number, error: Error) => void rejected.push([index, codeOf(error)]);
  await writing(kafka, { topic: (value) => (value as { to: string }).to }, async (writer, clock) => {
    await writer.write(batchOf([{ to: "other" }, { to: "no such" }, { to: "missing" }, { to: "out" }]));
    kafka.createTopic("missing");
    await clock.advance("31s");
    await writer.write(batchOf([{ to: "missing" }]));
    await writer.flush();
  }, { reject });
  assert.deepEqual(rejected, [[1, "invalid_topic"], [2, "kafka_unknown_topic"]]);
  for (const topic of ["other", "out", "missing"]) {
    assert.deepEqual(kafka.texts(topic).map(parsed), [{ to: topic }]);
  }
});

Deno.test("a topic that does not exist is said at the start", async () => {
  const kafka = newKafka();
  const sink = kafkaSink({ brokers: ["b"], topic: "nowhere", client: kafka.connect });
  await assert.rejects(async () => await sink.open(sinkContext()), { code: "kafka_unknown_topic" });
  assert.equal(kafka.clients.size, 0);
});

Deno.test("a topic that goes while it is written to is no fault of the records", async () => {
  const kafka = newKafka();
  await writing(kafka, {}, async (writer, clock) => {
    kafka.deleteTopic("out");
    await clock.advance("6m");
    await assert.rejects(async () => await writer.write(batchOf([1])), { code: "kafka_unknown_topic" });
  }, { reject: () => assert.fail("it was rejected") });
});

Deno.test("a topic that has grown is used whole", async () => {
  const kafka = newKafka(1);
  const rows = Array.from({ length: 50 }, (_, i) => ({ key: `key-${i}`, value: i }));
  await writing(kafka, {}, async (writer, clock) => {
    kafka.growTopic("out", 3);
    await writer.write(batchWith(rows));
    await clock.advance("6m");
    await writer.write(batchWith(rows));
    await writer.flush();
  });
  assert.deepEqual(
    kafka.records("out").map(({ partition }) => partition).sort(),
    [...rows.map(() => 0), ...rows.map(({ key }) => partitionOfKey(bytes.encode(key), 3))].sort(),
  );
});

Deno.test("batches go when they are full, or when their oldest record has waited long enough", async () => {
  const kafka = newKafka();
  await writing(kafka, { batchSize: 4, batchTimeout: "1s" }, async (writer, clock) => {
    await writer.write(batchOf([1, 2, 3]));
    await clock.advance("999ms");
    assert.deepEqual(kafka.texts("out"), []);
    await clock.advance("1ms");
    assert.deepEqual(kafka.texts("out"), ["1", "2", "3"]);
    await writer.write(batchOf([4, 5, 6]));
    await clock.advance("300ms");
    await writer.write(batchOf([7, 8]));
    await settle();
    assert.deepEqual(kafka.texts("out").length, 7, "a full batch waits");
    await clock.advance("1s");
    assert.deepEqual(kafka.texts("out").length, 8);
  });
});

Deno.test("batches are no larger than asked for, nor than the topic takes", async () => {
  for (const [batchBytes, config] of [[1000, {}], [1_000_000, { "max.message.bytes": "1000" }]] as const) {
    const kafka = newKafka(1, config);
    await writing(kafka, { batchBytes }, async (writer) => {
      await writer.write(batchOf(Array.from({ length: 40 }, () => "x".repeat(90))));
      await writer.flush();
    });
    assert.equal(kafka.texts("out").length, 40);
    assert.ok(kafka.calls.filter((call) => call.startsWith("send")).length >= 5);
  }
});

Deno.test("a record larger than the topic takes is rejected alone, before it is sent", async () => {
  const kafka = newKafka(1, { "max.message.bytes": "1000" }), rejected: [number, string][] = [];
  const reject = (_: Batch, index: number, error: Error) => void rejected.push([index, codeOf(error)]);
  await writing(kafka, {}, async (writer) => {
    await writer.write(batchOf(["a", "x".repeat(2000), "b", "y".repeat(800)]));
    await writer.flush();
  }, { reject });
  assert.deepEqual(rejected, [[1, "kafka_record_too_large"]]);
  assert.deepEqual(kafka.texts("out").map((value) => value!.length), [3, 3, 802]);
});

/** A cluster that refuses batches with certain values, as a broker does: without saying which record it is. */
function refusing(
  kafka: FakeKafka,
  isBad: (value: string) => boolean,
  code: "kafka_invalid_record" | "kafka_record_too_large",
) {
  const connect: FakeKafka["connect"] = (connection, context) => {
    const client = kafka.connect(connection, context), producer = client.producer.bind(client);
    client.producer = (options) => {
      const made = producer(options), send = made.send.bind(made);
      made.send = async (batches, call) => {
        const { decodeRecordSet } = await import("./protocol/record_set.ts");
        const { PLAIN_STAMP } = await import("./protocol/record_batch_builder.ts");
        for (const { records } of batches) {
          const set = decodeRecordSet(records.encode(PLAIN_STAMP).slice(), {
            fetchOffset: 0,
            aborted: undefined,
          });
          for (const run of set.records) {
            for (let i = 0; i < run.length; i++) {
              if (isBad(text.decode(run.value(i)!))) throw new KafkaError(code, "refused");
            }
          }
        }
        return await send(batches, call);
      };
      return made;
    };
    return client;
  };
  return connect;
}

for (const code of ["kafka_invalid_record", "kafka_record_too_large"] as const) {
  Deno.test(`records the broker refuses (${code}) are found and rejected, in the flush; the others are written in order`, async () => {
    const kafka = newKafka(), rejected: [Batch, number, string][] = [];
    const reject = (batch: Batch, index: number, error: Error) =>
      void rejected.push([batch, index, codeOf(error)]);
    const client = refusing(kafka, (value) => Number(value) % 50 === 13, code);
    await writing(kafka, { client }, async (writer) => {
      const batches = [0, 100, 200].map((from) =>
        batchOf<unknown>(Array.from({ length: 100 }, (_, i) => from + i))
      );
      for (const batch of batches) await writer.write(batch);
      await settle();
      await writer.flush();
      assert.deepEqual(
        rejected.map(([batch, index, code]) => [batches.indexOf(batch), index, code]),
        [0, 1, 2].flatMap((batch) => [[batch, 13, code], [batch, 63, code]]),
      );
      await writer.write(batchOf([1000]));
      await writer.flush();
    }, { reject });
    const expected = Array.from({ length: 300 }, (_, i) => i).filter((i) => i % 50 !== 13).concat(1000);
    assert.deepEqual(kafka.texts("out").map(Number), expected);
  });
}

Deno.test("where the policy is to fail, a record that was refused fails the flush", async () => {
  const kafka = newKafka();
  const client = refusing(kafka, (value) => value === "2", "kafka_invalid_record");
  const failed = new Error("policy: fail");
  const reject = () => {
    throw failed;
  };
  await writing(kafka, { client }, async (writer) => {
    await writer.write(batchOf([1, 2, 3]));
    await assert.rejects(async () => await writer.flush(), failed);
  }, { reject });
});

Deno.test("what failed on its way shows at the next write; the call after sends it again, before what comes later", async () => {
  const kafka = newKafka();
  await writing(kafka, { batchSize: 2 }, async (writer) => {
    kafka.fail("send", new KafkaError("kafka_timeout", "no answer", { retriable: true }));
    await writer.write(batchOf([1, 2]));
    await settle();
    const next = batchOf([3, 4]);
    await assert.rejects(async () => await writer.write(next), { code: "kafka_timeout" });
    await writer.write(next);
    await writer.flush();
  });
  assert.deepEqual(kafka.texts("out"), ["1", "2", "3", "4"]);
});

Deno.test("a flush rejects where something is not acknowledged, and may be made again", async () => {
  const kafka = newKafka(3);
  await writing(kafka, {}, async (writer) => {
    kafka.fail("send", new KafkaError("kafka_timeout", "no answer"), { matching: "out/1", times: 2 });
    await writer.write(batchWith(Array.from({ length: 30 }, (_, i) => ({ key: `key-${i}`, value: i }))));
    for (let i = 0; i < 2; i++) {
      await assert.rejects(async () => await writer.flush(), { code: "kafka_timeout" });
    }
    await writer.flush();
  });
  assert.equal(new Set(kafka.texts("out")).size, 30);
  assert.equal(kafka.texts("out").length, 30);
});

Deno.test("E13: an answer that does not name a batch is no acknowledgement", async () => {
  const kafka = newKafka();
  const client: FakeKafka["connect"] = (connection, context) => {
    const made = kafka.connect(connection, context), producer = made.producer.bind(made);
    made.producer = (options) => {
      const inner = producer(options);
      inner.send = () => Promise.resolve([]);
      return inner;
    };
    return made;
  };
  await writing(kafka, { client }, async (writer) => {
    await writer.write(batchOf([1]));
    await assert.rejects(async () => await writer.flush(), { code: "kafka_incomplete_answer" });
  });
});

Deno.test("a write waits while too much is under way, and goes on when there is room", async () => {
  const kafka = newKafka();
  await writing(kafka, { bufferBytes: 2000, batchSize: 1 }, async (writer) => {
    const held = kafka.hold("send");
    let isDone = false;
    const writes = (async () => {
      await writer.write(batchOf(Array.from({ length: 100 }, (_, i) => `${i}`.padStart(50, "0"))));
      isDone = true;
    })();
    await held.reached;
    await settle();
    assert.equal(isDone, false);
    held.release();
    await writes;
    await writer.flush();
    assert.equal(kafka.texts("out").length, 100);
  });
});

Deno.test("chunks grow while one is under way, so that a slow broker gets fewer and larger ones", async () => {
  const kafka = newKafka();
  await writing(kafka, { batchSize: 10 }, async (writer) => {
    const held = kafka.hold("send");
    for (let i = 0; i < 50; i++) {
      await writer.write(batchOf(Array.from({ length: 10 }, (_, j) => 10 * i + j)));
    }
    held.release();
    await writer.flush();
  });
  assert.deepEqual(kafka.texts("out").map(Number), Array.from({ length: 500 }, (_, i) => i));
  assert.equal(kafka.calls.filter((call) => call.startsWith("send")).length, 2);
});

Deno.test("options are checked at the door", () => {
  const good: KafkaSinkOptions = { brokers: ["b:9092"], topic: "out" };
  kafkaSink(good);
  const bad: Partial<KafkaSinkOptions>[] = [
    { brokers: [] },
    { topic: "" },
    { topic: "a b" },
    { topic: ".." },
    { batchSize: 0 },
    { batchSize: 1.5 },
    { batchBytes: -1 },
    { bufferBytes: NaN },
    { batchTimeout: -1 },
    { deliveryTimeout: 0 },
    { acks: "some" as "all" },
    { codec: "zip" as "gzip" },
  ];
  for (const options of bad) {
    assert.throws(
      () => kafkaSink({ ...good, ...options }),
      { code: "invalid_kafka_options" },
      JSON.stringify(options),
    );
  }
});

Deno.test("acks, codec and delivery timeout are those of the producer", async () => {
  const kafka = newKafka(), made: unknown[] = [];
  const client: FakeKafka["connect"] = (connection, context) => {
    const inner = kafka.connect(connection, context), producer = inner.producer.bind(inner);
    inner.producer = (options) => {
      made.push(options);
      return producer(options);
    };
    return inner;
  };
  for (const acks of ["all", "leader", "none"] as const) {
    await writing(kafka, { client, acks, codec: "zstd", deliveryTimeout: "10s" }, async (writer) => {
      await writer.write(batchOf([acks]));
      await writer.flush();
    });
  }
  assert.deepEqual(
    made,
    ["all", "leader", "none"].map((acks) => ({ acks, codec: "zstd", deliveryTimeoutMs: 10_000 })),
  );
  assert.deepEqual(kafka.texts("out").map(parsed), ["all", "leader", "none"]);
});

Deno.test("a check looks for the topic, and starts nothing", async () => {
  const kafka = newKafka(3), context = { ...sinkContext(), checkpointInterval: undefined };
  const check = (topic: KafkaSinkOptions["topic"]) =>
    kafkaSink({ brokers: ["b:9092"], topic, client: kafka.connect }).check!(context);
  assert.deepEqual(await check("out"), [{ ok: true, text: 'topic "out" at b:9092, 3 partitions' }]);
  assert.deepEqual(await check(() => "out"), [{ ok: true, text: "1 broker at b:9092" }]);
  await assert.rejects(async () => await check("nowhere"), { code: "kafka_unknown_topic" });
  assert.equal(kafka.clients.size, 0);
});
