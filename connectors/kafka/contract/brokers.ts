/**
 * What a client must do when brokers die: three of them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { type KafkaCluster, kafkaService, serviceTest } from "../../../tests/services/mod.ts";
import type { KafkaClient, KafkaClientFactory } from "../client.ts";
import { batch, pause, text, texts, timed, unique, withClient } from "./kit.ts";

/** The suite. */
export function brokersContract(name: string, factory: KafkaClientFactory): void {
  serviceTest(`${name}: with three brokers of which one dies`, ["own kafka"], async (test) => {
    await using kafka = await kafkaService({ brokers: 3 });
    const step = (what: string, run: (kafka: KafkaCluster, client: KafkaClient) => Promise<void>) =>
      test.step(
        what,
        () =>
          withClient(
            factory,
            { brokers: kafka.brokers, requestTimeoutMs: 10_000 },
            (client) => run(kafka, client),
          ),
      );
    await step("a leader without records does not hold the others up", emptyLeaders);
    await step("hazard 1: a leader that dies during sends loses and doubles nothing", dyingLeader);
    await step("hazard 1: nor in a transaction", dyingLeaderInTransaction);
    await step("a coordinator that dies before a commit", dyingCoordinator);
    await step("a reader goes on with the next leader", dyingLeaderOfReader);
  });
}

/** Kills the leader of a partition, runs, and brings it back with all copies complete. */
async function withoutLeader(
  kafka: KafkaCluster,
  topic: string,
  partition: number,
  run: () => Promise<void>,
): Promise<void> {
  await kafka.java.whole(topic);
  const { leader } = (await kafka.java.partitions(topic)).find((entry) => entry.partition === partition)!;
  await kafka.kill(leader);
  try {
    await run();
  } finally {
    await kafka.start(leader);
    await kafka.java.whole(topic);
  }
}

async function emptyLeaders(kafka: KafkaCluster, client: KafkaClient): Promise<void> {
  const topic = await kafka.java.createTopic("empty", { partitions: 3 });
  assert.equal(new Set((await kafka.java.partitions(topic)).map(({ leader }) => leader)).size, 3);
  const fetcher = client.fetcher({ isolation: "read_committed", maxWaitMs: 20_000 });
  for (const partition of [0, 1, 2]) fetcher.assign({ topic, partition }, 0);
  const producer = client.producer();
  const found: string[] = [];
  const took = await timed(async () => {
    for (let i = 0; i < 10; i++) {
      await producer.send([batch(topic, 1, [String(i)])]);
      while (found.length <= i) {
        for (const { records } of await fetcher.poll()) {
          for (const run of records) found.push(run.valueText(0)!);
        }
      }
    }
  });
  await fetcher.close();
  assert.deepEqual(found, Array.from({ length: 10 }, (_, i) => String(i)));
  assert.ok(took < 10_000, `${took} ms`);
}

const PARTITIONS = [0, 1, 2, 3, 4, 5];

async function dyingLeader(kafka: KafkaCluster, client: KafkaClient): Promise<void> {
  const topic = await kafka.java.createTopic("leader", { partitions: PARTITIONS.length });
  const producer = client.producer();
  let round = 0;
  const sends: Promise<unknown>[] = [];
  const sendRound = () => {
    sends.push(
      producer.send(PARTITIONS.map((partition) => batch(topic, partition, [`${round}a`, `${round}b`]))),
    );
    round++;
  };
  for (let i = 0; i < 5; i++) sendRound();
  await Promise.all(sends);
  await withoutLeader(kafka, topic, 0, async () => {
    for (let i = 0; i < 30; i++) {
      sendRound(); // also while its connection has just broken
      await pause(20);
    }
    await Promise.all(sends);
  });
  sendRound();
  await Promise.all(sends);
  const found = await kafka.java.records(topic);
  const expected = Array.from({ length: round }, (_, i) => [`${i}a`, `${i}b`]).flat();
  for (const partition of PARTITIONS) {
    assert.deepEqual(
      texts(found.filter((record) => record.partition === partition)),
      expected,
      `partition ${partition}`,
    );
  }
}

async function dyingLeaderInTransaction(kafka: KafkaCluster, client: KafkaClient): Promise<void> {
  const topic = await kafka.java.createTopic("transaction", { partitions: PARTITIONS.length });
  const options = { transactionalId: unique("t"), transactionTimeoutMs: 60_000 };
  const producer = await client.transactionalProducer(options);
  const committed: string[] = [];
  const transaction = async (name: string) => {
    await producer.send(PARTITIONS.map((partition) => batch(topic, partition, [name])));
    await producer.sendOffsets("dying", [{ topic, partition: 0, offset: committed.length }]);
    await producer.commit();
    committed.push(name);
  };
  for (const value of ["0", "1"]) await transaction(value);
  for (const victim of [1, 2]) {
    const open = producer.send(PARTITIONS.map((partition) => batch(topic, partition, [`begun ${victim}`])));
    await withoutLeader(kafka, topic, victim, async () => {
      await open;
      await producer.send(PARTITIONS.map((partition) => batch(topic, partition, [`ended ${victim}`])));
      await producer.commit();
      committed.push(`begun ${victim}`, `ended ${victim}`);
      await transaction(`behind ${victim}`);
    });
  }
  await client.transactionalProducer(options);
  const found = await kafka.java.records(topic);
  for (const partition of PARTITIONS) {
    assert.deepEqual(
      texts(found.filter((record) => record.partition === partition)),
      committed,
      `partition ${partition}`,
    );
  }
}

async function dyingCoordinator(kafka: KafkaCluster, client: KafkaClient): Promise<void> {
  const topic = await kafka.java.createTopic("coordinator", { partitions: 3 });
  const options = { transactionalId: unique("t"), transactionTimeoutMs: 60_000 };
  const producer = await client.transactionalProducer(options);
  await producer.send([0, 1, 2].map((partition) => batch(topic, partition, ["before"])));
  // Which of them coordinates is not told: each dies once, with a transaction open.
  for (const broker of [1, 2, 3]) {
    await kafka.java.whole(topic);
    await kafka.java.whole("__transaction_state");
    await kafka.kill(broker);
    await producer.commit();
    await kafka.start(broker);
    await producer.send([0, 1, 2].map((partition) => batch(topic, partition, [`behind ${broker}`])));
  }
  await producer.commit();
  await client.transactionalProducer(options);
  const expected = ["before", "behind 1", "behind 2", "behind 3"];
  assert.deepEqual(texts(await kafka.java.records(topic)), [...expected, ...expected, ...expected]);
}

async function dyingLeaderOfReader(kafka: KafkaCluster, client: KafkaClient): Promise<void> {
  const topic = await kafka.java.createTopic("read", { partitions: 3 });
  const fetcher = client.fetcher({ isolation: "read_committed", maxWaitMs: 100, maxPartitionBytes: 500 });
  for (const partition of [0, 1, 2]) fetcher.assign({ topic, partition }, 0);
  const found: string[] = [];
  const readUntil = async (count: number) => {
    while (found.length < count) {
      for (const { partition, records } of await fetcher.poll()) {
        for (const run of records) {
          for (let i = 0; i < run.length; i++) {
            found.push(`${partition}/${run.offsets[i]} ${run.valueText(i)}`);
          }
        }
      }
    }
  };
  const write = (name: string) =>
    kafka.java.produce(
      topic,
      Array.from({ length: 60 }, (_, i) => ({ partition: i % 3, value: `${name} ${i}` })),
    );
  await write("before");
  await readUntil(20);
  await withoutLeader(kafka, topic, 1, async () => {
    await write("without");
    await readUntil(120);
  });
  await write("after");
  await readUntil(180);
  await fetcher.close();
  const expected = (await kafka.java.records(topic)).map(({ partition, offset, value }) =>
    `${partition}/${offset} ${text(value)}`
  );
  assert.deepEqual(found.sort(), expected.sort());
}
