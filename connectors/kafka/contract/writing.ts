/**
 * What a client must do when it writes: on a broker that others may use too.
 *
 * @module
 */
import assert from "node:assert/strict";
import { systemClock } from "../../../lib/clock.ts";
import { kafkaService, serviceTest } from "../../../tests/services/mod.ts";
import type { KafkaClientFactory } from "../client.ts";
import type { KafkaRecord } from "../protocol/types.ts";
import { batch, batchOf, text, texts, timed, unique, utf8, withClient } from "./kit.ts";

const RECORDS: readonly KafkaRecord[] = [
  {
    key: utf8("key"),
    value: utf8("value"),
    timestamp: 1_700_000_000_000,
    headers: [["b", utf8("1")], ["7", utf8("")], ["b", utf8("2")], ["a", Uint8Array.of(0, 255)]],
  },
  { key: null, value: utf8(""), timestamp: 0 },
  { key: utf8(""), value: null, timestamp: 1 },
  { key: Uint8Array.of(0, 255, 128), value: utf8("x".repeat(5000)), timestamp: 1_600_000_000_000 },
];

/** The suite. */
export function writingContract(name: string, factory: KafkaClientFactory): void {
  for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"] as const) {
    serviceTest(
      `${name}: Java reads what was written with codec ${codec}, to the byte`,
      ["kafka"],
      async () => {
        await using kafka = await kafkaService();
        await withClient(factory, { brokers: kafka.brokers }, async (client) => {
          const topic = await kafka.java.createTopic("written", { partitions: 2 });
          const written = await client.producer({ codec }).send([
            batchOf(topic, 1, RECORDS),
            batchOf(topic, 0, RECORDS),
          ]);
          assert.deepEqual(
            written,
            [1, 0].map((partition) => ({ topic, partition, baseOffset: 0, count: 4 })),
          );
          const found = await kafka.java.records(topic);
          const expected = [0, 1].flatMap((partition) =>
            RECORDS.map(({ key, value, timestamp, headers }, offset) => ({
              partition,
              offset,
              timestamp,
              key,
              value,
              headers: headers ?? [],
            }))
          );
          assert.deepEqual(found, expected);
        });
      },
    );
  }

  serviceTest(`${name}: hazard 2: a partition that was added since metadata was read is written to`, [
    "kafka",
  ], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("grown");
      const producer = client.producer();
      await producer.send([batch(topic, 0, ["before"])]);
      await kafka.java.addPartitions(topic, 3);
      const written = await producer.send([batch(topic, 2, ["late"]), batch(topic, 0, ["after"])]);
      assert.deepEqual(written.map(({ partition, baseOffset }) => [partition, baseOffset]), [[2, 0], [0, 1]]);
      assert.deepEqual(texts(await kafka.java.records(topic)), ["before", "after", "late"]);
    });
  });

  serviceTest(
    `${name}: hazard 2: a partition that does not exist is an error, not dropped`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = await kafka.java.createTopic("few", { partitions: 2 });
        const producer = client.producer();
        const took = await timed(async () => {
          const sending = producer.send([batch(topic, 1, ["there"]), batch(topic, 9, ["nowhere"])]);
          await assert.rejects(sending, { code: "kafka_unknown_topic", message: new RegExp(`${topic}/9`) });
        });
        assert.ok(took < 15_000, `${took} ms`);
        await producer.send([batch(topic, 1, ["still"])]);
        assert.deepEqual(texts(await kafka.java.records(topic)), ["there", "still"]);
      });
    },
  );

  serviceTest(`${name}: what is sent at the same time keeps its order, once each`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("order", { partitions: 3 });
      const producer = client.producer({ maxRequestBytes: 500 });
      await Promise.all(
        Array.from({ length: 90 }, (_, i) => producer.send([batch(topic, i % 3, [`${i}`, `${i}+`])])),
      );
      const found = await kafka.java.records(topic);
      for (const partition of [0, 1, 2]) {
        assert.deepEqual(
          texts(found.filter((record) => record.partition === partition)),
          Array.from({ length: 30 }, (_, i) => [`${3 * i + partition}`, `${3 * i + partition}+`]).flat(),
        );
      }
    });
  });

  for (const acks of ["none", "leader", "all"] as const) {
    serviceTest(`${name}: acks ${acks}, without numbers`, ["kafka"], async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = await kafka.java.createTopic("acks");
        const producer = client.producer({ acks, idempotent: false });
        const offsets: number[] = [];
        for (const value of ["1", "2", "3"]) {
          offsets.push((await producer.send([batch(topic, 0, [value])]))[0]!.baseOffset);
        }
        assert.deepEqual(offsets, acks === "none" ? [-1, -1, -1] : [0, 1, 2]);
        await client.producer().send([batch(topic, 0, ["4"])]); // behind them on the same connection
        assert.deepEqual(texts(await kafka.java.records(topic)), ["1", "2", "3", "4"]);
      });
    });
  }

  serviceTest(`${name}: numbers without acks all make no sense`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      assert.throws(() => client.producer({ acks: "leader", idempotent: true }), {
        code: "kafka_invalid_setting",
      });
      await Promise.resolve();
    });
  });

  serviceTest(
    `${name}: what the broker refuses is an error; then the partition goes on`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = unique("refused");
        await client.admin.createTopics([{
          name: topic,
          partitions: 2,
          config: { "max.message.bytes": "2000", "message.timestamp.after.max.ms": "3600000" },
        }]);
        const producer = client.producer();
        await producer.send([batch(topic, 0, ["1"]), batch(topic, 1, ["1"])]);
        const refused = producer.send([batch(topic, 0, ["x".repeat(3000)])]);
        const behind = producer.send([batch(topic, 0, ["behind the gap"])]);
        const beside = producer.send([batch(topic, 1, ["beside"])]);
        await assert.rejects(refused, { code: "kafka_record_too_large", broker: "MESSAGE_TOO_LARGE" });
        await assert.rejects(behind, { code: "kafka_record_too_large" });
        await beside;
        await producer.send([batch(topic, 0, ["2"]), batch(topic, 1, ["2"])]);
        const future = batchOf(topic, 0, [{
          key: null,
          value: null,
          timestamp: systemClock.now() + 3 * 3_600_000,
        }]);
        await assert.rejects(producer.send([future]), {
          code: "kafka_invalid_record",
          broker: "INVALID_TIMESTAMP",
        });
        await producer.send([batch(topic, 0, ["3"])]);
        const found = await kafka.java.records(topic);
        assert.deepEqual(found.map(({ partition, value }) => `${partition} ${text(value)}`), [
          "0 1",
          "0 2",
          "0 3",
          "1 1",
          "1 beside",
          "1 2",
        ]);
      });
    },
  );

  serviceTest(`${name}: a time far in the past or before the epoch is kept`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("times");
      const times = [-86_400_000, 0, 5, 1_700_000_000_123];
      await client.producer().send([
        batchOf(topic, 0, times.map((timestamp) => ({ key: null, value: null, timestamp }))),
      ]);
      assert.deepEqual((await kafka.java.records(topic)).map(({ timestamp }) => timestamp), times);
    });
  });

  serviceTest(`${name}: a closed producer says so, and what it was sending too`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("closed");
      const producer = client.producer();
      const sending = assert.rejects(producer.send([batch(topic, 0, ["1"])]), { code: "kafka_closed" });
      await producer.close();
      await sending;
      await assert.rejects(producer.send([batch(topic, 0, ["2"])]), { code: "kafka_closed" });
      await producer.close();
    });
  });

  serviceTest(`${name}: topics are made once, grown and deleted`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = unique("made");
      const wanted = { name: topic, partitions: 2, config: { "cleanup.policy": "compact" } };
      assert.deepEqual(await client.admin.createTopics([wanted]), [topic]);
      assert.deepEqual(await client.admin.createTopics([wanted]), []);
      await client.admin.growTopic(topic, 4);
      assert.equal((await kafka.java.partitions(topic)).length, 4);
      assert.deepEqual(
        await client.admin.settings({ topic }, ["cleanup.policy", "no.such.setting"]),
        new Map([["cleanup.policy", "compact"]]),
      );
      await client.admin.deleteTopics([topic]);
      await client.admin.deleteTopics([topic]);
      assert.deepEqual((await client.metadata([topic])).topics, []);
      const wrong = client.admin.createTopics([{ name: "no good!" }]);
      await assert.rejects(wrong, { code: "kafka_invalid_setting" });
    });
  });
}
