/**
 * What a client must do with transactions: on a broker that others may use too.
 *
 * @module
 */
import assert from "node:assert/strict";
import { systemClock } from "../../../lib/clock.ts";
import { kafkaService, serviceTest } from "../../../tests/services/mod.ts";
import type { KafkaClient, KafkaClientFactory } from "../client.ts";
import { FencedError } from "../errors.ts";
import { batch, texts, timed, unique, until, withClient } from "./kit.ts";

const TIMEOUT_MS = 60_000;

const start = (client: KafkaClient, transactionalId: string) =>
  client.transactionalProducer({ transactionalId, transactionTimeoutMs: TIMEOUT_MS });

/** The suite. */
export function transactionsContract(name: string, factory: KafkaClientFactory): void {
  serviceTest(
    `${name}: commit, abort, commit: readers see what was committed, with the offsets`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = await kafka.java.createTopic("transactions", { partitions: 2 });
        const input = await kafka.java.createTopic("input", { partitions: 4 });
        const [id, group] = [unique("t"), unique("g")];
        const producer = await start(client, id);
        const expected: string[] = [];
        for (let round = 0; round < 6; round++) {
          assert.equal(producer.open, false);
          await producer.send([batch(topic, 0, [`${round}a`]), batch(topic, 1, [`${round}b`])]);
          await producer.send([batch(topic, 0, [`${round}c`])]);
          await producer.sendOffsets(group, [{ topic: input, partition: 3, offset: 10 + round }]);
          assert.equal(producer.open, true);
          if (round % 3 === 1) await producer.abort();
          else {
            await producer.commit();
            expected.push(`${round}a`, `${round}b`, `${round}c`);
          }
        }
        await start(client, id); // now everything is visible
        assert.deepEqual(texts(await kafka.java.records(topic)).sort(), expected.sort());
        assert.deepEqual((await kafka.java.groupOffsets(group)).map(({ offset }) => offset), [15]);
        assert.deepEqual(
          await client.committedOffsets(group, [3, 0].map((partition) => ({ topic: input, partition }))),
          [15, undefined],
        );
      });
    },
  );

  serviceTest(
    `${name}: a transaction without anything in it asks the broker nothing`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const id = unique("empty");
        const producer = await start(client, id);
        await producer.commit();
        await producer.abort();
        await producer.sendOffsets(unique("g"), []);
        await producer.commit();
        const [state] = await client.admin.describeTransactions([id]);
        assert.equal(state!.state, "Empty");
      });
    },
  );

  serviceTest(`${name}: hazard 8: the next transaction begins right behind a commit, with either call`, [
    "kafka",
  ], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("behind");
      const group = unique("g");
      const producer = await start(client, unique("t"));
      const took = await timed(async () => {
        for (let i = 0; i < 20; i++) {
          if (i % 2 === 0) await producer.send([batch(topic, 0, [String(i)])]);
          await producer.sendOffsets(group, [{ topic, partition: 0, offset: i }]);
          await producer.commit();
        }
      });
      assert.ok(took < 4000, `20 transactions took ${took} ms`); // 250 ms each with the usual pauses
      assert.deepEqual(await client.committedOffsets(group, [{ topic, partition: 0 }]), [19]);
    });
  });

  serviceTest(`${name}: hazard 9: behind a commit, offsets are read as committed`, ["kafka"], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("exact");
      const group = unique("g");
      const producer = await start(client, unique("t"));
      for (let offset = 1; offset <= 10; offset++) {
        await producer.sendOffsets(group, [{ topic, partition: 0, offset }]);
        await producer.commit();
        assert.deepEqual(await client.committedOffsets(group, [{ topic, partition: 0 }]), [offset]);
      }
    });
  });

  serviceTest(`${name}: hazard 9: when a producer has started, nothing of the one before is undecided`, [
    "kafka",
  ], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("decided");
      const id = unique("t");
      for (let round = 0; round < 5; round++) {
        const producer = await start(client, id);
        const ends = () =>
          client.listOffsets([{ topic, partition: 0, at: "stable" }, { topic, partition: 0, at: "end" }]);
        const [stable, end] = await ends();
        assert.equal(stable, end);
        await producer.send([batch(topic, 0, [String(round)])]);
        if (round % 2 === 0) await producer.commit(); // else it is left open
        await producer.close();
      }
      await start(client, id);
      assert.deepEqual(texts(await kafka.java.records(topic)), ["0", "2", "4"]);
    });
  });

  serviceTest(
    `${name}: hazard 10: who was fenced stops, whatever it calls, and fences nobody`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = await kafka.java.createTopic("fenced");
        const calls = {
          send: (p) => p.send([batch(topic, 0, ["old"])]),
          sendOffsets: (p) => p.sendOffsets(unique("g"), [{ topic, partition: 0, offset: 1 }]),
          commit: (p) => p.commit(),
          abort: (p) => p.abort(),
        } satisfies Record<string, (producer: Awaited<ReturnType<typeof start>>) => Promise<unknown>>;
        for (const [what, call] of Object.entries(calls)) {
          const id = unique("fenced");
          const older = await start(client, id);
          await older.send([batch(topic, 0, ["old, lost"])]);
          const newer = await start(client, id);
          assert.equal(newer.producerId, older.producerId);
          assert.ok(newer.epoch > older.epoch);
          await assert.rejects(call(older), FencedError, what);
          for (const later of Object.values(calls)) await assert.rejects(later(older), FencedError, what);
          await newer.send([batch(topic, 0, [`new ${what}`])]);
          await newer.commit();
        }
        await until("all of it", async () => (await kafka.java.records(topic)).length === 4);
        assert.deepEqual(
          texts(await kafka.java.records(topic)),
          Object.keys(calls).map((what) => `new ${what}`),
        );
      });
    },
  );

  serviceTest(`${name}: hazard 11: after a failed send nothing is committed; then the producer goes on`, [
    "kafka",
  ], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = unique("failed");
      await client.admin.createTopics([{
        name: topic,
        partitions: 2,
        config: { "max.message.bytes": "2000" },
      }]);
      const id = unique("t");
      const producer = await start(client, id);
      for (const round of [1, 2, 3]) {
        await producer.send([batch(topic, 0, ["of the failed one"])]);
        const tooLarge = producer.send([batch(topic, 1, ["x".repeat(3000)])]);
        await assert.rejects(tooLarge, { code: "kafka_record_too_large" });
        await assert.rejects(producer.send([batch(topic, 0, ["later"])]), {
          code: "kafka_transaction_failed",
        });
        await assert.rejects(producer.commit(), { code: "kafka_transaction_failed" });
        await producer.abort();
        await producer.send([batch(topic, 0, [`good ${round}`]), batch(topic, 1, [`good ${round}`])]);
        await producer.commit();
      }
      await start(client, id);
      const good = ["good 1", "good 2", "good 3"];
      assert.deepEqual(texts(await kafka.java.records(topic)), [...good, ...good]);
    });
  });

  serviceTest(
    `${name}: hazard 11: a commit waits for what is being sent, and fails with it`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = unique("waits");
        await client.admin.createTopics([{ name: topic, config: { "max.message.bytes": "2000" } }]);
        const id = unique("t");
        const producer = await start(client, id);
        const good = producer.send([batch(topic, 0, ["good"])]);
        await producer.commit();
        await good;
        const bad = assert.rejects(producer.send([batch(topic, 0, ["x".repeat(3000)])]));
        await assert.rejects(producer.commit(), { code: "kafka_transaction_failed" });
        await bad;
        await start(client, id);
        assert.deepEqual(texts(await kafka.java.records(topic)), ["good"]);
      });
    },
  );

  serviceTest(`${name}: hazard 12: a timeout the broker does not allow is an error that names both`, [
    "kafka",
  ], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const settings = await client.admin.settings({ broker: undefined }, ["transaction.max.timeout.ms"]);
      const most = Number(settings.get("transaction.max.timeout.ms"));
      assert.ok(most > 0);
      const starting = client.transactionalProducer({
        transactionalId: unique("t"),
        transactionTimeoutMs: most + 1,
      });
      await assert.rejects(starting, {
        code: "kafka_transaction_timeout",
        message: new RegExp(String(most + 1)),
      });
      await client.transactionalProducer({ transactionalId: unique("t"), transactionTimeoutMs: most });
    });
  });

  serviceTest(`${name}: offsets of a member that has lost its place are refused, with the transaction`, [
    "kafka",
  ], async () => {
    await using kafka = await kafkaService();
    await withClient(factory, { brokers: kafka.brokers }, async (client) => {
      const topic = await kafka.java.createTopic("stale");
      const group = unique("g");
      const id = unique("t");
      const producer = await start(client, id);
      let joined = 0;
      const member = client.group({
        group,
        topics: [topic],
        assigned: () => void joined++,
        revoked() {},
        failed: (error) => assert.fail(error),
      });
      await until("a member", () => joined === 1);
      const now = member.member!;
      await producer.send([batch(topic, 0, ["good"])]);
      await producer.sendOffsets(group, [{ topic, partition: 0, offset: 1 }], now);
      await producer.commit();
      for (const stale of [{ ...now, generation: now.generation - 1 }, { ...now, memberId: "stranger" }]) {
        await producer.send([batch(topic, 0, ["stale"])]);
        const offsets = producer.sendOffsets(group, [{ topic, partition: 0, offset: 99 }], stale);
        await assert.rejects(offsets, { code: "kafka_generation_lost" });
        await assert.rejects(producer.commit(), { code: "kafka_transaction_failed" });
        await producer.abort();
      }
      await start(client, id);
      assert.deepEqual(texts(await kafka.java.records(topic)), ["good"]);
      assert.deepEqual(await client.committedOffsets(group, [{ topic, partition: 0 }]), [1]);
      await member.close();
    });
  });

  serviceTest(
    `${name}: open transactions are found, and can be aborted from outside`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      await withClient(factory, { brokers: kafka.brokers }, async (client) => {
        const topic = await kafka.java.createTopic("stuck");
        const id = unique("stuck");
        const producer = await start(client, id);
        await producer.send([batch(topic, 0, ["stuck"])]);
        assert.ok(
          (await client.admin.listTransactions()).some((entry) =>
            entry.transactionalId === id && entry.state === "Ongoing"
          ),
        );
        const [state, ...others] = await client.admin.describeTransactions([id, unique("none")]);
        assert.deepEqual(others, []);
        assert.deepEqual(
          [
            state!.transactionalId,
            state!.producerId,
            state!.epoch,
            state!.state,
            state!.timeoutMs,
            state!.partitions,
          ],
          [id, producer.producerId, producer.epoch, "Ongoing", TIMEOUT_MS, [{ topic, partition: 0 }]],
        );
        assert.ok(Math.abs(state!.startedAt! - systemClock.now()) < 60_000);
        await client.admin.abortTransaction(id);
        const [stable, end] = await client.listOffsets([
          { topic, partition: 0, at: "stable" },
          { topic, partition: 0, at: "end" },
        ]);
        assert.equal(stable, end);
        assert.deepEqual(await kafka.java.records(topic), []);
        await assert.rejects(producer.commit(), FencedError);
      });
    },
  );
}
