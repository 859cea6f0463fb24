/**
 * What a client must do when answers are lost, connections break and transactions take too long: one broker behind a proxy.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  type KafkaCluster,
  kafkaService,
  type Proxy,
  serviceTest,
  toxiproxy,
} from "../../../tests/services/mod.ts";
import type { KafkaClient, KafkaClientFactory, KafkaConnection } from "../client.ts";
import { FencedError, UnknownOutcomeError } from "../errors.ts";
import { batch, pause, readAll, texts, timed, unique, until, withClient } from "./kit.ts";

const NEEDS = ["own kafka", "toxiproxy"] as const;

/** What a test is handed: all of it new, and gone at the end. */
interface Faulty {
  readonly kafka: KafkaCluster;
  readonly proxy: Proxy;
  readonly client: KafkaClient;
}

/** The suite. */
export function faultsContract(name: string, factory: KafkaClientFactory): void {
  serviceTest(`${name}: on a line with faults`, NEEDS, async (test) => {
    await using proxies = await toxiproxy();
    await using kafka = await kafkaService({
      through: proxies,
      properties: {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
        "connections.max.idle.ms": 2000,
      },
    });
    const proxy = kafka.proxy(1);
    const step = (
      what: string,
      run: (faulty: Faulty) => Promise<void>,
      options: Partial<KafkaConnection> = {},
    ) =>
      test.step(what, async () => {
        const connection = {
          brokers: kafka.brokers,
          requestTimeoutMs: 1000,
          connectTimeoutMs: 1000,
          ...options,
        };
        try {
          await withClient(factory, connection, (client) => run({ kafka, proxy, client }));
        } finally {
          await proxies.reset();
        }
      });
    await step("hazard 3: a lost answer to a send makes no second copy", lostAnswer);
    await step(
      "a connection that breaks in the middle of sends loses and doubles nothing",
      brokenConnections,
    );
    await step("hazard 11b: a lost answer to a commit is asked for again", lostCommit);
    await step(
      "hazard 11b: a commit whose answer never comes is unknown, and can be found out",
      unknownCommit,
    );
    await step("hazard 11b: a commit that was lost, then fenced, is unknown too", lostThenFenced);
    await step("hazard 10: a transaction that took too long is fenced", expired);
    await step("hazard 13: retries in a transaction come to an end, and an abort helps", finiteRetries);
    await step("a connection that was closed for being idle is opened again", idleConnection);
    await step("a reader goes on where it was when connections break", brokenReader);
    await step("a member that was cut off has lost its partitions, and comes back", cutOffMember);
    await step("a broker that is away is an error in time, and does no harm when it is back", awayBroker);
  });
}

/** Lets answers get lost, runs, and lets them through again some time later. */
async function losingAnswers<T>(proxy: Proxy, run: () => Promise<T>, forMs = 1500): Promise<T> {
  const mend = await proxy.add({ type: "timeout", timeout: 0 });
  const mended = pause(forMs).then(mend);
  try {
    return await run();
  } finally {
    await mended;
  }
}

async function lostAnswer({ kafka, proxy, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("lost", { partitions: 3 });
  const producer = client.producer();
  await producer.send([batch(topic, 0, ["first"])]);
  await losingAnswers(
    proxy,
    () => producer.send([0, 1, 2].map((partition) => batch(topic, partition, ["a", "b"]))),
  );
  await producer.send([batch(topic, 0, ["last"])]);
  const found = (await kafka.java.records(topic)).map(({ partition, value }) =>
    `${partition} ${texts([{ value }])[0]}`
  );
  assert.deepEqual(found, ["0 first", "0 a", "0 b", "0 last", "1 a", "1 b", "2 a", "2 b"]);
  // In a transaction, too.
  const id = unique("t");
  const transactional = await client.transactionalProducer({
    transactionalId: id,
    transactionTimeoutMs: 60_000,
  });
  await transactional.send([batch(topic, 1, ["t1"])]);
  await losingAnswers(proxy, () => transactional.send([batch(topic, 1, ["t2"]), batch(topic, 2, ["t2"])]));
  await transactional.commit();
  await client.transactionalProducer({ transactionalId: id, transactionTimeoutMs: 60_000 });
  assert.deepEqual(texts(await kafka.java.records(topic)).slice(4), ["a", "b", "t1", "t2", "a", "b", "t2"]);
}

async function brokenConnections({ kafka, proxy, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("broken", { partitions: 2 });
  const producer = client.producer();
  const sends: Promise<unknown>[] = [];
  for (let i = 0; i < 200; i++) {
    sends.push(producer.send([batch(topic, i % 2, [String(i)])]));
    if (i % 40 === 20) {
      await proxy.cut();
      await proxy.mend();
    }
    if (i % 10 === 0) await pause(5);
  }
  await Promise.all(sends);
  const expected = [0, 1].flatMap((first) => Array.from({ length: 100 }, (_, i) => String(2 * i + first)));
  assert.deepEqual(texts(await kafka.java.records(topic)), expected);
}

const FAST = { transactionTimeoutMs: 30_000, endTimeoutMs: 20_000 };

async function lostCommit({ kafka, proxy, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("commit");
  const producer = await client.transactionalProducer({ transactionalId: unique("t"), ...FAST });
  for (const value of ["1", "2"]) {
    await producer.send([batch(topic, 0, [value])]);
    await losingAnswers(proxy, () => producer.commit());
  }
  await producer.send([batch(topic, 0, ["3"])]);
  await losingAnswers(proxy, () => producer.abort());
  await producer.send([batch(topic, 0, ["4"])]);
  await producer.commit();
  await until("visible", async () => (await kafka.java.records(topic)).length === 3);
  assert.deepEqual(texts(await kafka.java.records(topic)), ["1", "2", "4"]);
}

async function unknownCommit({ kafka, proxy, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("unknown");
  const options = { transactionalId: unique("t"), transactionTimeoutMs: 30_000, endTimeoutMs: 1500 };
  const producer = await client.transactionalProducer(options);
  await producer.send([batch(topic, 0, ["committed after all"])]);
  await losingAnswers(proxy, () => assert.rejects(producer.commit(), UnknownOutcomeError), 4000);
  for (const later of [producer.commit(), producer.abort(), producer.send([batch(topic, 0, ["more"])])]) {
    await assert.rejects(later, UnknownOutcomeError);
  }
  await client.transactionalProducer(options); // settles it
  assert.deepEqual(texts(await readAll(client, [{ topic, partition: 0 }])), ["committed after all"]);
}

async function lostThenFenced({ kafka, proxy, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("fenced");
  const id = unique("t");
  const producer = await client.transactionalProducer({ transactionalId: id, ...FAST });
  await producer.send([batch(topic, 0, ["lost"])]);
  const committing = losingAnswers(proxy, () => assert.rejects(producer.commit(), UnknownOutcomeError), 3000);
  // Java goes past the proxy and takes the id over.
  await kafka.java.produce(topic, [{ value: "taken over" }], { transaction: { id, end: "commit" } });
  await committing;
}

async function expired({ kafka, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("expired");
  const options = { transactionalId: unique("t"), transactionTimeoutMs: 1000 };
  const producer = await client.transactionalProducer(options);
  await producer.send([batch(topic, 0, ["too slow"])]);
  await until("the broker gives up", async () => {
    const [state] = await client.admin.describeTransactions([options.transactionalId]);
    return state!.state === "CompleteAbort";
  });
  await assert.rejects(producer.commit(), FencedError);
  await assert.rejects(producer.abort(), FencedError);
  assert.deepEqual(await kafka.java.records(topic), []);
}

async function finiteRetries({ kafka, proxy, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("finite");
  const options = { transactionalId: unique("t"), transactionTimeoutMs: 30_000, deliveryTimeoutMs: 1000 };
  const producer = await client.transactionalProducer(options);
  await producer.send([batch(topic, 0, ["lost"])]);
  await proxy.cut();
  const took = await timed(() =>
    assert.rejects(producer.send([batch(topic, 0, ["lost too"])]), { retriable: true })
  );
  assert.ok(took < 10_000, `${took} ms`);
  await proxy.mend();
  await assert.rejects(producer.commit(), { code: "kafka_transaction_failed" });
  await producer.abort();
  await producer.send([batch(topic, 0, ["good"])]);
  await producer.commit();
  await client.transactionalProducer(options);
  assert.deepEqual(texts(await kafka.java.records(topic)), ["good"]);
}

async function idleConnection({ kafka, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("idle");
  const producer = client.producer({ acks: "leader", idempotent: false }); // a retry would show as a second copy
  const transactional = await client.transactionalProducer({ transactionalId: unique("t"), ...FAST });
  for (const value of ["1", "2"]) {
    await producer.send([batch(topic, 0, [value])]);
    await transactional.sendOffsets("idle", [{ topic, partition: 0, offset: Number(value) }]);
    await transactional.commit();
    if (value === "1") await pause(3500);
  }
  assert.deepEqual(await client.committedOffsets("idle", [{ topic, partition: 0 }]), [2]);
  assert.deepEqual(texts(await kafka.java.records(topic)), ["1", "2"]);
}

async function brokenReader({ kafka, proxy, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("reader");
  const fetcher = client.fetcher({ isolation: "read_committed", maxWaitMs: 100, maxPartitionBytes: 2000 });
  fetcher.assign({ topic, partition: 0 }, 0);
  const found: string[] = [];
  for (let round = 0; found.length < 300; round++) {
    if (round < 6) {
      await kafka.java.produce(
        topic,
        Array.from({ length: 50 }, (_, i) => ({ value: `${round}-${i}-${"x".repeat(90)}` })),
      );
      if (round % 2 === 1) {
        await proxy.cut();
        await proxy.mend();
      }
    }
    for (const { records } of await fetcher.poll()) {
      for (const run of records) for (let i = 0; i < run.length; i++) found.push(run.valueText(i)!);
    }
  }
  await fetcher.close();
  assert.deepEqual(found, texts(await kafka.java.records(topic)));
}

async function cutOffMember({ kafka, proxy, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("member");
  const log: string[] = [];
  const group = client.group({
    group: unique("g"),
    topics: [topic],
    sessionTimeoutMs: 6000,
    heartbeatMs: 200,
    assigned: (partitions) => void log.push(`assigned ${partitions.length}`),
    revoked: (partitions, lost) => void log.push(`${lost ? "lost" : "revoked"} ${partitions.length}`),
    failed: (error) => void log.push(String(error)),
  });
  await until("assigned", () => log.length === 1);
  await proxy.cut();
  await until("lost", () => log.length === 2);
  await proxy.mend();
  await until("back", () => log.length === 3);
  await group.close();
  assert.deepEqual(log, ["assigned 1", "lost 1", "assigned 1", "revoked 1"]);
}

async function awayBroker({ kafka, proxy, client }: Faulty): Promise<void> {
  const topic = await kafka.java.createTopic("away");
  await client.requireTopics([topic]);
  await proxy.cut();
  await assert.rejects(client.listOffsets([{ topic, partition: 0, at: "end" }]), (error) => {
    assert.ok(error instanceof Error && "code" in error && "hint" in error);
    assert.equal(error.code, "kafka_unreachable");
    assert.match(String(error.hint), /broker|host/);
    return true;
  });
  await proxy.mend();
  assert.deepEqual(await client.listOffsets([{ topic, partition: 0, at: "end" }]), [0]);
}
