/**
 * The Kafka sink that writes at once, against a real broker. Kafka's Java consumer judges what is there.
 *
 * @module
 */
import assert from "node:assert/strict";
import { systemClock } from "../../lib/clock.ts";
import type { Sink, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { codeOf } from "../../lib/errors.ts";
import { Batch, type Headers } from "../../lib/record.ts";
import { batchOf, sinkContract } from "../../lib/testing/sink_contract.ts";
import { sinkContext } from "../../lib/testing/sink_scene.ts";
import { kafkaService, type ReadRecord, serviceTest, toxiproxy } from "../../tests/services/mod.ts";
import { kafkaSink, type KafkaSinkOptions } from "./kafka_sink.ts";

const text = new TextDecoder(), bytes = new TextEncoder();
/** Records of the tests have times long past: a broker would soon delete them for that. */
const FOR_EVER = { "retention.ms": "-1" };
const valueOf = ({ value }: ReadRecord): unknown => value === null ? null : JSON.parse(text.decode(value));

/** The contract suite hands out a clock that stands still; a broker goes by its own. */
function inRealTime(sink: Sink): Sink {
  return { ...sink, open: (context) => sink.open({ ...context, clock: systemClock }) };
}

sinkContract({
  name: "kafka sink on a broker",
  async setUp() {
    const kafka = await kafkaService();
    const topic = await kafka.java.createTopic("sink-contract", { configs: FOR_EVER });
    return {
      sink: inRealTime(kafkaSink({ brokers: kafka.brokers, topic })),
      written: async () => (await kafka.java.records(topic)).map(valueOf),
      tearDown: () => kafka.stop(),
    };
  },
  unwritable: { value: NaN, code: "not_json_number" },
  test: (name, run) => serviceTest(name, ["kafka"], run),
});

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

async function writing(
  { brokers }: { readonly brokers: readonly string[] },
  options: Partial<KafkaSinkOptions> & { readonly topic: string },
  use: (writer: SinkWriter) => Promise<void>,
  context: Partial<SinkContext> = {},
): Promise<void> {
  const writer = await kafkaSink({ brokers, ...options }).open(
    sinkContext({ clock: systemClock, ...context }),
  );
  try {
    await use(writer);
  } finally {
    await writer.close("done");
  }
}

serviceTest("records come out as they went in: keys, null and empty, headers, times", ["kafka"], async () => {
  await using kafka = await kafkaService();
  const topic = await kafka.java.createTopic("sink-records", { configs: FOR_EVER });
  const headers: Headers = [["b", bytes.encode("1")], ["a", bytes.encode("ü")], ["b", new Uint8Array()]];
  const before = systemClock.now();
  await writing(kafka, { topic }, async (writer) => {
    await writer.write(batchWith([
      { value: { a: 1 }, key: "k", headers, at: 1_700_000_000_123 },
      { value: null, key: "k", at: 0 },
      { value: "", key: null, at: -1000 },
      { value: 12345678901234567890n, key: "", at: 86_400_000 * 40_000 }, // the end of a window in the year 2079
      { value: 1, key: bytes.encode("\u0000é"), at: NaN },
    ]));
    await writer.flush();
  });
  const records = await kafka.java.records(topic);
  const after = systemClock.now();
  assert.deepEqual(records.map(({ key }) => key === null ? null : text.decode(key)), [
    "k",
    "k",
    null,
    "",
    "\u0000é",
  ]);
  assert.deepEqual(
    records.map(({ value }) => value === null ? null : text.decode(value)),
    ['{"a":1}', null, '""', "12345678901234567890", "1"],
  );
  assert.deepEqual(records[0]!.headers, headers);
  assert.deepEqual(records.slice(1).map(({ headers }) => headers), [[], [], [], []]);
  assert.deepEqual(records.slice(0, 3).map(({ timestamp }) => timestamp), [1_700_000_000_123, 0, -1000]);
  for (const { timestamp } of records.slice(3)) {
    assert.ok(before <= timestamp && timestamp <= after, `${timestamp}`);
  }
});

serviceTest("keys go where Kafka's own producer sends them", ["kafka"], async () => {
  await using kafka = await kafkaService();
  const ours = await kafka.java.createTopic("sink-keys", { partitions: 7, configs: FOR_EVER });
  const theirs = await kafka.java.createTopic("sink-keys", { partitions: 7, configs: FOR_EVER });
  const keys = Array.from({ length: 100 }, (_, i) => `key ${"é".repeat(i % 5)}${i}`);
  await writing(kafka, { topic: ours }, async (writer) => {
    await writer.write(batchWith(keys.map((key) => ({ key, value: key }))));
    await writer.flush();
  });
  await kafka.java.produce(theirs, keys.map((key) => ({ key, value: JSON.stringify(key) })));
  const places = (records: readonly ReadRecord[]) =>
    records.map(({ partition, key }) => `${partition} ${text.decode(key!)}`).sort();
  assert.deepEqual(places(await kafka.java.records(ours)), places(await kafka.java.records(theirs)));
});

serviceTest("all codecs, all acks; order by key", ["kafka"], async () => {
  await using kafka = await kafkaService();
  for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"] as const) {
    for (const acks of codec === "none" ? ["all", "leader", "none"] as const : ["all"] as const) {
      const topic = await kafka.java.createTopic("sink-codec", { partitions: 3, configs: FOR_EVER });
      const rows = Array.from(
        { length: 3000 },
        (_, i) => ({ key: `k${i % 10}`, value: { i, pad: "x".repeat(50) } }),
      );
      await writing(kafka, { topic, codec, acks, batchSize: 100 }, async (writer) => {
        for (let at = 0; at < rows.length; at += 250) await writer.write(batchWith(rows.slice(at, at + 250)));
        await writer.flush();
        if (acks === "none") await new Promise((resolve) => setTimeout(resolve, 300)); // nobody says when it is there
      });
      const records = await kafka.java.records(topic), last = new Map<string, number>();
      assert.equal(records.length, 3000, `${codec} ${acks}`);
      for (const record of records) {
        const key = text.decode(record.key!), { i } = valueOf(record) as { i: number };
        assert.ok((last.get(key) ?? -1) < i, `${codec} ${acks}: ${i} of ${key}`);
        last.set(key, i);
      }
    }
  }
});

serviceTest("records the broker refuses go to the policy, alone", ["kafka"], async () => {
  await using kafka = await kafkaService();
  // Refused for their time: those that are too old for this topic.
  const configs = { ...FOR_EVER, "message.timestamp.before.max.ms": "3600000" };
  const topic = await kafka.java.createTopic("sink-refused", { configs });
  const rejected: [number, string][] = [], now = systemClock.now();
  const reject = (_: Batch, index: number, error: Error) => void rejected.push([index, codeOf(error)]);
  await writing(kafka, { topic }, async (writer) => {
    await writer.write(
      batchWith(
        Array.from({ length: 200 }, (_, i) => ({ value: i, at: i % 70 === 33 ? now - 86_400_000 : now })),
      ),
    );
    await writer.flush();
    assert.deepEqual(rejected, [33, 103, 173].map((index) => [index, "kafka_invalid_record"]));
    await writer.write(batchWith([{ value: 200, at: now }]));
    await writer.flush();
  }, { reject });
  const expected = Array.from({ length: 201 }, (_, i) => i).filter((i) => i % 70 !== 33);
  assert.deepEqual((await kafka.java.records(topic)).map(valueOf), expected);
});

serviceTest(
  "records without a key are refused by a compacted topic, those with one are not",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    const topic = await kafka.java.createTopic("sink-compact", { configs: { "cleanup.policy": "compact" } });
    const rejected: number[] = [];
    await writing(kafka, { topic }, async (writer) => {
      await writer.write(batchWith([{ value: 1, key: "a" }, { value: 2 }, { value: 3, key: "b" }]));
      await writer.flush();
    }, { reject: (_, index) => void rejected.push(index) });
    assert.deepEqual(rejected, [1]);
    assert.deepEqual((await kafka.java.records(topic)).map(valueOf), [1, 3]);
  },
);

serviceTest("what is too large for the topic goes to the policy, compressed or not", ["kafka"], async () => {
  await using kafka = await kafkaService();
  for (const codec of ["none", "gzip"] as const) {
    const topic = await kafka.java.createTopic("sink-large", {
      configs: { ...FOR_EVER, "max.message.bytes": "5000" },
    });
    const rejected: [number, string][] = [];
    const reject = (_: Batch, index: number, error: Error) => void rejected.push([index, codeOf(error)]);
    // Text that does not compress to less than 5000 bytes.
    const random = crypto.getRandomValues(new Uint8Array(12_000)).reduce(
      (s, byte) => s + (byte % 64).toString(36),
      "",
    );
    await writing(kafka, { topic, codec }, async (writer) => {
      await writer.write(batchOf(["begin", random, "a".repeat(codec === "gzip" ? 50_000 : 4000), "end"]));
      await writer.flush();
    }, { reject });
    assert.deepEqual(rejected, [[1, "kafka_record_too_large"]], codec);
    assert.equal((await kafka.java.records(topic)).length, 3, codec);
  }
});

serviceTest("answers that are lost make no second copy", ["own kafka", "toxiproxy"], async () => {
  await using proxies = await toxiproxy();
  await using kafka = await kafkaService({ through: proxies });
  const topic = await kafka.java.createTopic("sink-lost", { partitions: 3, configs: FOR_EVER });
  await writing(kafka, { topic, requestTimeoutMs: 1500 }, async (writer) => {
    await writer.write(batchOf(Array.from({ length: 300 }, (_, i) => i)));
    await writer.flush();
    const heal = await kafka.proxy(1).add({ type: "timeout", timeout: 0 });
    await writer.write(batchOf(Array.from({ length: 300 }, (_, i) => 300 + i)));
    const flushing = writer.flush();
    await new Promise((resolve) => setTimeout(resolve, 3000));
    await heal();
    await flushing;
  });
  const values = (await kafka.java.records(topic)).map((record) => valueOf(record) as number);
  assert.deepEqual(values.toSorted((a, b) => a - b), Array.from({ length: 600 }, (_, i) => i));
});
