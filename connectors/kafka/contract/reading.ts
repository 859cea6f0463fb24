/**
 * What a client must do when it reads: on a broker that others may use too.
 *
 * @module
 */
import assert from "node:assert/strict";
import { kafkaService, serviceTest } from "../../../tests/services/mod.ts";
import type { KafkaClientFactory } from "../client.ts";
import { OffsetOutOfRangeError } from "../errors.ts";
import { batch, pause, readAll, text, texts, timed, unique, until, utf8, withClient } from "./kit.ts";

const CODECS = ["none", "gzip", "snappy", "lz4", "zstd"] as const;

/** The suite. */
export function readingContract(name: string, factory: KafkaClientFactory): void {
  serviceTest(`${name}: metadata names what is there, and leaves out what is not`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("metadata", { partitions: 3 });
      const { topics, brokers } = await client.metadata([topic, unique("none")]);
      assert.deepEqual(topics.map(({ name }) => name), [topic]);
      assert.deepEqual(topics[0]!.partitions.map(({ partition }) => partition), [0, 1, 2]);
      assert.ok(topics[0]!.partitions.every(({ leader }) => brokers.some(({ id }) => id === leader)));
      assert.ok((await client.metadata(undefined)).topics.some(({ name }) => name === topic));
      assert.deepEqual(await client.requireTopics([topic]), new Map([[topic, 3]]));
    });
  });

  serviceTest(
    `${name}: hazard 18: a topic that does not exist is an error with its name`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = unique("none");
        const error = { code: "kafka_unknown_topic", message: new RegExp(topic) };
        const took = await timed(() =>
          Promise.all([
            assert.rejects(client.requireTopics([topic]), error),
            assert.rejects(client.listOffsets([{ topic, partition: 0, at: "end" }]), error),
          ])
        );
        assert.ok(took < 15_000, `${took} ms`);
      });
    },
  );

  serviceTest(`${name}: hazard 15: a producer elsewhere switches codec`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("codecs");
      for (const codec of CODECS) {
        await kafka.java.produce(topic, [
          {
            key: "k",
            value: `${codec} ${"x".repeat(3000)}`,
            timestamp: 7,
            headers: [["h", "1"], ["2", ""], ["h", "3"]],
          },
          { key: null, value: "", timestamp: 8 },
          { key: "", value: null, timestamp: 9 },
        ], { codec });
      }
      const all = await readAll(client, [{ topic, partition: 0 }]);
      assert.deepEqual(all.map(({ offset }) => offset), all.map((_, i) => i));
      assert.deepEqual(
        all.map(({ key, value, timestamp, headers }) => [
          text(key),
          text(value)?.slice(0, 8),
          timestamp,
          headers?.map(([name, value]) => [name, text(value)]),
        ]),
        CODECS.flatMap((codec) => [
          ["k", `${codec} xxxxxxxx`.slice(0, 8), 7, [["h", "1"], ["2", ""], ["h", "3"]]],
          [null, "", 8, undefined],
          ["", undefined, 9, undefined],
        ]),
      );
    });
  });

  serviceTest(`${name}: hazard 4: read_committed gives no aborted record`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("aborted");
      const [a, b] = [unique("a"), unique("b")];
      const write = (
        id: string,
        value: string,
        end: "commit" | "abort" | "open",
        key: Uint8Array | null = null,
      ) => kafka.java.produce(topic, [{ value, key }], { transaction: { id, end } });
      await write(a, "a1-aborted", "open");
      await write(b, "b1-aborted", "open");
      await write(a, "a1-key-aborted", "open", Uint8Array.of(0, 0, 0, 0)); // looks like an abort marker
      await write(a, "a1-end-aborted", "abort");
      await write(b, "b1-late-aborted", "open");
      await write(a, "a2-committed", "commit");
      await write(b, "b1-end-aborted", "abort");
      await write(a, "a3-aborted", "abort");
      await write(b, "b2-committed", "commit");
      await kafka.java.produce(topic, [{ value: "plain" }]);
      const partition = { topic, partition: 0 };
      await until("the markers", async () => {
        const [stable, end] = await client.listOffsets([{ ...partition, at: "stable" }, {
          ...partition,
          at: "end",
        }]);
        return stable === end;
      });
      await write(a, "a4-open", "open");
      const committed = texts(await kafka.java.records(topic));
      assert.deepEqual(committed, ["a2-committed", "b2-committed", "plain"]);
      assert.deepEqual(texts(await readAll(client, [partition])), committed);
      assert.deepEqual(
        texts(await readAll(client, [partition], { isolation: "read_uncommitted" })),
        texts(await kafka.java.records(topic, "read_uncommitted")),
      );
      // From every place in between: a fetch may begin inside of what was aborted.
      const [stable] = await client.listOffsets([{ ...partition, at: "stable" }]);
      const places = await readAll(client, [partition]);
      for (let from = 0; from <= stable!; from++) {
        const expected = texts(places.filter(({ offset }) => offset >= from));
        assert.deepEqual(texts(await readAll(client, [partition], {}, [from])), expected, `from ${from}`);
      }
      await write(a, "a4-end", "abort");
    });
  });

  serviceTest(`${name}: hazard 4: transactions that are longer than a fetch`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("long");
      const id = unique("long");
      for (const [round, end] of (["abort", "commit", "abort", "commit"] as const).entries()) {
        for (let part = 0; part < 4; part++) {
          const records = Array.from(
            { length: 20 },
            (_, i) => ({ value: `${round}/${part}/${i}/${"x".repeat(500)}` }),
          );
          await kafka.java.produce(topic, records, { transaction: { id, end: part === 3 ? end : "open" } });
        }
      }
      const found = texts(
        await readAll(client, [{ topic, partition: 0 }], { maxPartitionBytes: 1000, maxBytes: 1000 }),
      );
      assert.deepEqual(found, texts(await kafka.java.records(topic)));
      assert.equal(found.length, 160);
    });
  });

  serviceTest(`${name}: hazard 5: an offset that is gone is an error with both ends`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("gone", { partitions: 2 });
      const values = Array.from({ length: 10 }, (_, i) => ({ partition: 0, value: String(i) }));
      await kafka.java.produce(topic, [...values, { partition: 1, value: "other" }]);
      await client.admin.deleteRecords([{ topic, partition: 0, offset: 4 }]);
      const fetcher = client.fetcher({ isolation: "read_committed", maxWaitMs: 50 });
      try {
        for (const wrong of [0, 11, 1_000_000]) {
          fetcher.assign({ topic, partition: 0 }, wrong);
          await assert.rejects(fetcher.poll(), (error) => {
            assert.ok(error instanceof OffsetOutOfRangeError);
            const { partition, offset, earliest, latest } = error;
            assert.deepEqual([error.topic, partition, offset, earliest, latest], [topic, 0, wrong, 4, 10]);
            return true;
          });
        }
        // It goes on with others, and with a place that exists.
        fetcher.assign({ topic, partition: 1 }, 0);
        assert.deepEqual((await fetcher.poll()).map(({ records }) => records[0]?.valueText(0)), ["other"]);
        fetcher.assign({ topic, partition: 0 }, 4);
        fetcher.revoke({ topic, partition: 1 });
        const [again] = await fetcher.poll();
        assert.deepEqual([again!.records[0]!.firstOffset, again!.nextOffset, again!.logStartOffset], [
          4,
          10,
          4,
        ]);
      } finally {
        await fetcher.close();
      }
    });
  });

  serviceTest(
    `${name}: hazard 7: the end is reached behind markers and what is hidden`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = await kafka.java.createTopic("hidden");
        const id = unique("hidden");
        await kafka.java.produce(topic, [{ value: "1" }, { value: "2" }], {
          transaction: { id, end: "abort" },
        });
        await kafka.java.produce(topic, [{ value: "3" }], { transaction: { id, end: "abort" } });
        const fetcher = client.fetcher({ isolation: "read_committed", maxWaitMs: 50 });
        try {
          fetcher.assign({ topic, partition: 0 }, 0);
          const [{ records, nextOffset, atEnd, lastStableOffset } = assert.fail()] = await fetcher.poll();
          assert.deepEqual([records.length, nextOffset, atEnd, lastStableOffset], [0, 5, true, 5]);
          assert.equal(fetcher.position({ topic, partition: 0 }), 5);
          const [{ nextOffset: again, atEnd: still } = assert.fail()] = await fetcher.poll(); // an empty answer comes as well
          assert.deepEqual([again, still], [5, true]);
        } finally {
          await fetcher.close();
        }
      });
    },
  );

  serviceTest(
    `${name}: hazard 14: the end and the last stable offset are two things`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = await kafka.java.createTopic("ends");
        const id = unique("ends");
        await kafka.java.produce(topic, [{ value: "1", timestamp: 1000 }, { value: "2", timestamp: 2000 }]);
        await kafka.java.produce(topic, [{ value: "3", timestamp: 3000 }], {
          transaction: { id, end: "open" },
        });
        const partition = { topic, partition: 0 };
        const places = ["earliest", "end", "stable", { timestamp: 1500 }, { timestamp: 0 }, {
          timestamp: 4e12,
        }] as const;
        const ask = () => client.listOffsets(places.map((at) => ({ ...partition, at })));
        assert.deepEqual(await ask(), [0, 3, 2, 1, 0, 3]);
        await kafka.java.produce(topic, [{ value: "4", timestamp: 4000 }], {
          transaction: { id, end: "commit" },
        });
        await until("the marker", async () => (await ask())[2] === 5); // some ms behind the commit
        assert.deepEqual(await ask(), [0, 5, 5, 1, 0, 5]);
      });
    },
  );

  serviceTest(`${name}: everything is read once, however small the answers`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("small", { partitions: 5 });
      const producer = client.producer();
      const expected: string[] = [];
      for (let round = 0; round < 5; round++) {
        const batches = [0, 1, 2, 3, 4].map((partition) => {
          const values = Array.from(
            { length: 30 },
            (_, i) => `${partition}-${round}-${i}-${"y".repeat(100)}`,
          );
          expected.push(...values);
          return batch(topic, partition, values);
        });
        await producer.send(batches);
      }
      const partitions = [0, 1, 2, 3, 4].map((partition) => ({ topic, partition }));
      for (const limits of [{}, { maxBytes: 5000 }, { maxBytes: 1, maxPartitionBytes: 1 }]) {
        const all = await readAll(client, partitions, limits);
        assert.deepEqual(texts(all).sort(), [...expected].sort());
        for (const { partition } of partitions) {
          const offsets = all.filter((record) => record.partition === partition).map(({ offset }) => offset);
          assert.deepEqual(offsets, offsets.map((_, i) => i));
        }
      }
    });
  });

  for (const state of ["under way", "waiting"] as const) {
    serviceTest(
      `${name}: what is revoked or moved is not given out, its answer ${state}`,
      ["kafka"],
      async () => {
        await using kafka = await kafkaService();
        await withClient(factory, { brokers: kafka.brokers }, async (client) => {
          const topic = await kafka.java.createTopic("revoked", { partitions: 2 });
          const values = [0, 1].flatMap((partition) => ["a", "b"].map((value) => ({ partition, value })));
          await kafka.java.produce(topic, values);
          const fetcher = client.fetcher({ isolation: "read_uncommitted", maxWaitMs: 100 });
          try {
            fetcher.assign({ topic, partition: 0 }, 0);
            fetcher.assign({ topic, partition: 1 }, 0);
            while ((await fetcher.poll()).every(({ records }) => records.length === 0));
            await pause(state === "waiting" ? 500 : 0);
            fetcher.revoke({ topic, partition: 0 });
            fetcher.assign({ topic, partition: 1 }, 1);
            assert.equal(fetcher.position({ topic, partition: 0 }), undefined);
            const [first, ...others] = await fetcher.poll();
            assert.deepEqual(others, []);
            const { partition, records, nextOffset } = first!;
            assert.deepEqual([partition, records.map((run) => run.valueText(0)), nextOffset], [1, ["b"], 2]);
          } finally {
            await fetcher.close();
          }
        });
      },
    );
  }

  serviceTest(
    `${name}: a wait for records ends with the signal, and with the client`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = await kafka.java.createTopic("waits");
        const fetcher = client.fetcher({ isolation: "read_committed", maxWaitMs: 20_000 });
        fetcher.assign({ topic, partition: 0 }, 0);
        const stop = new AbortController();
        const waiting = assert.rejects(fetcher.poll(stop.signal), /enough/);
        stop.abort(new Error("enough"));
        await waiting;
        const again = assert.rejects(fetcher.poll(), { code: "kafka_closed" });
        assert.ok(await timed(() => client.close()) < 5000);
        await again;
      });
    },
  );

  serviceTest(`${name}: a client that is closed at once leaves nothing behind`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    for (const turns of [0, 1, 2, 4, 8, 16, 32]) {
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const asking = client.metadata(undefined).catch((error) => assert.equal(error.code, "kafka_closed"));
        for (let turn = 0; turn < turns; turn++) await Promise.resolve();
        await client.close();
        await asking;
        await assert.rejects(client.metadata(undefined), { code: "kafka_closed" });
        await client.close();
      });
    }
  });

  serviceTest(`${name}: records that come while a reader waits reach it at once`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("live");
      const fetcher = client.fetcher({ isolation: "read_committed", maxWaitMs: 10_000 });
      fetcher.assign({ topic, partition: 0 }, 0);
      const first = fetcher.poll();
      const took = await timed(async () => {
        await client.producer().send([batch(topic, 0, ["now"])]);
        assert.equal((await first)[0]!.records[0]!.valueText(0), "now");
      });
      assert.ok(took < 5000, `${took} ms`);
      await fetcher.close();
    });
  });

  serviceTest(`${name}: names and headers beyond ASCII`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("ascii");
      await kafka.java.produce(topic, [{ key: "ü", value: "€😀", headers: [["ключ", utf8("значение")]] }]);
      const [record] = await readAll(client, [{ topic, partition: 0 }]);
      assert.deepEqual([text(record!.key), text(record!.value)], ["ü", "€😀"]);
      assert.deepEqual(record!.headers!.map(([name, value]) => [name, text(value)]), [["ключ", "значение"]]);
    });
  });
}
