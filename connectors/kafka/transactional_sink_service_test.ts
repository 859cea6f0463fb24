/**
 * The transactional Kafka sink against a real broker. What a `read_committed` reader sees is judged by Kafka's Java consumer.
 *
 * @module
 */
import assert from "node:assert/strict";
import { delay, systemClock } from "../../lib/clock.ts";
import type { Committable, Recovered, Sink, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import { type Logger, silentLogger } from "../../lib/log.ts";
import { commitContract } from "../../lib/testing/commit_contract.ts";
import type { Headers } from "../../lib/record.ts";
import { batchOf, sinkContract } from "../../lib/testing/sink_contract.ts";
import { sinkContext } from "../../lib/testing/sink_scene.ts";
import {
  type JavaKafka,
  kafkaService,
  type ReadRecord,
  serviceTest,
  toxiproxy,
} from "../../tests/services/mod.ts";
import type { KafkaClientFactory } from "./client.ts";
import { FencedError } from "./errors.ts";
import { kafkaClient } from "./kafkajs/mod.ts";
import { transactionalKafkaSink, type TransactionalKafkaSinkOptions } from "./transactional_sink.ts";

const text = new TextDecoder();
/** Records of the tests have times long past: a broker would soon delete them for that. */
const FOR_EVER = { "retention.ms": "-1" };
const valueOf = ({ value }: ReadRecord): unknown => value === null ? null : JSON.parse(text.decode(value));
const unique = (prefix: string) => `${prefix}-${crypto.randomUUID().slice(0, 8)}`;

/** A broker. */
interface Broker {
  readonly brokers: readonly string[];
  readonly java: JavaKafka;
}

/** Runs of one sink, one after the other or side by side. */
class Runs {
  readonly kafka: Broker;
  readonly topic: string;
  readonly transactionalId: string;
  readonly sink: Sink;
  readonly log: string[] = [];
  readonly #open = new Set<SinkWriter>();
  writer!: SinkWriter;

  constructor(kafka: Broker, topic: string, options: Partial<TransactionalKafkaSinkOptions> = {}) {
    this.kafka = kafka;
    this.topic = topic;
    this.transactionalId = options.transactionalId ?? unique("sink");
    this.sink = transactionalKafkaSink({
      brokers: kafka.brokers,
      topic,
      ...options,
      transactionalId: this.transactionalId,
    });
  }

  static async on(
    kafka: Broker,
    options: Partial<TransactionalKafkaSinkOptions> = {},
    partitions = 1,
  ): Promise<Runs> {
    return new Runs(
      kafka,
      await kafka.java.createTopic("txn-sink", { partitions, configs: FOR_EVER }),
      options,
    );
  }

  get context(): SinkContext {
    const logger: Logger = {
      log: (level, message, fields) => this.log.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`),
    };
    return sinkContext({ clock: systemClock, logger });
  }

  async open(restored?: Committable, interval = 1000): Promise<SinkWriter> {
    this.writer = await this.sink.open({ ...this.context, checkpoints: { restored, interval } });
    this.#open.add(this.writer);
    return this.writer;
  }

  async write(...values: unknown[]): Promise<void> {
    await this.writer.write(batchOf(values));
  }

  async prepare(checkpoint: number): Promise<Committable> {
    return JSON.parse(JSON.stringify(await this.writer.prepare!(checkpoint)));
  }

  async checkpoint(number: number): Promise<Committable> {
    const committable = await this.prepare(number);
    await this.writer.commit!(committable);
    return committable;
  }

  async recover(committable: Committable): Promise<Recovered> {
    return await this.sink.recover!(committable, this.context);
  }

  /** What readers see when the broker has written the markers of all that is decided. */
  async visible(): Promise<unknown[]> {
    await decided(this.kafka, this.transactionalId);
    return (await this.kafka.java.records(this.topic)).map(valueOf);
  }

  async close(outcome: "done" | "failed" = "failed"): Promise<void> {
    this.#open.delete(this.writer);
    await this.writer.close(outcome);
  }

  /** Closes all there were; those that were left behind stand for processes that were killed. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const writer of this.#open) await writer.close("failed");
  }
}

/** Waits until no transaction of a sink is between its decision and its markers. */
async function decided({ brokers }: Broker, transactionalId: string): Promise<void> {
  const client = kafkaClient({ brokers }, { clock: systemClock, logger: silentLogger });
  try {
    const ids = [0, 1, 2, 3].map((index) => index === 0 ? transactionalId : `${transactionalId}#${index}`);
    while ((await client.admin.describeTransactions(ids)).some(({ state }) => state.startsWith("Prepare"))) {
      await delay(systemClock, 5);
    }
  } finally {
    await client.close();
  }
}

async function rejected(promise: unknown): Promise<MailerError> {
  let caught: unknown;
  await Promise.resolve(promise).catch((error) => caught = error);
  assert.ok(caught instanceof MailerError, `no error, or another: ${caught}`);
  return caught;
}

/** The contract suites hand out a clock that stands still; a broker goes by its own. */
function inRealTime(sink: Sink): Sink {
  return {
    ...sink,
    open: (context) => sink.open({ ...context, clock: systemClock }),
    recover: (committable, context) => sink.recover!(committable, { ...context, clock: systemClock }),
  };
}

/** Each flush is a checkpoint. */
function committingAtFlush(sink: Sink): Sink {
  return {
    type: sink.type,
    describe: () => sink.describe(),
    async open(context) {
      const writer = await sink.open({ ...context, checkpoints: { restored: undefined, interval: 1000 } });
      let checkpoint = 0;
      return {
        write: (batch) => writer.write(batch),
        flush: async () => writer.commit!(await writer.prepare!(++checkpoint)),
        close: (outcome) => writer.close(outcome),
      };
    },
  };
}

async function setUp() {
  const kafka = await kafkaService(), runs = await Runs.on(kafka);
  return { sink: inRealTime(runs.sink), written: () => runs.visible(), tearDown: () => kafka.stop() };
}
const test = (name: string, run: () => Promise<void>) => serviceTest(name, ["kafka"], run);

commitContract({ name: "transactional kafka sink on a broker", commits: "atomic", setUp, test });

sinkContract({
  name: "transactional kafka sink on a broker",
  async setUp() {
    const under = await setUp();
    return { ...under, sink: committingAtFlush(under.sink) };
  },
  unwritable: { value: NaN, code: "not_json_number" },
  test,
});

serviceTest("E5, E12: a run that was killed: prepared and not committed is lost, committed is there", [
  "kafka",
], async () => {
  await using kafka = await kafkaService();
  await using runs = await Runs.on(kafka, {}, 3);
  await runs.open();
  await runs.write(1, 2, 3);
  const first = await runs.checkpoint(1);
  await runs.write(4);
  const second = await runs.prepare(2);
  await runs.write(5); // behind it, in a transaction of another producer
  await runs.writer.flush();
  assert.equal(await runs.recover(second), "lost"); // the writer is left as if it were killed
  assert.equal(await runs.recover(first), "committed");
  await runs.open(first);
  await runs.write(4, 5);
  const third = await runs.checkpoint(2);
  assert.equal(await runs.recover(third), "committed");
  assert.deepEqual((await runs.visible()).toSorted(), [1, 2, 3, 4, 5]);
  const places = [
    ...await kafka.java.offsets(runs.topic),
    ...await kafka.java.offsets(`${runs.topic}.checkpoints`),
  ];
  for (const { stable, end } of places) assert.equal(stable, end, "readers are held back");
});

serviceTest(
  "E1: a transaction that took longer than its timeout is lost aloud, and comes again",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    await using runs = await Runs.on(kafka, { transactionTimeout: "1s" });
    await runs.open(undefined, 100);
    await runs.write(1);
    const first = await runs.checkpoint(1);
    await runs.write(2);
    const second = await runs.prepare(2);
    // The broker looks for them every 10 s.
    const client = kafkaClient({ brokers: kafka.brokers }, { clock: systemClock, logger: silentLogger });
    try {
      for (;;) {
        const [state] = await client.admin.describeTransactions([runs.transactionalId]);
        if (state!.state === "CompleteAbort") break;
        await delay(systemClock, 200);
      }
    } finally {
      await client.close();
    }
    const error = await rejected(runs.writer.commit!(second));
    assert.match(error.code, /^kafka_(fenced|transaction_failed)$/);
    await runs.close();
    assert.equal(await runs.recover(second), "lost");
    await runs.open(first, 100);
    await runs.write(2);
    await runs.checkpoint(3);
    assert.deepEqual(await runs.visible(), [1, 2]);
  },
);

serviceTest(
  "E2: a timeout that the broker does not allow is said at the start, with both values",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    await using runs = await Runs.on(kafka, { transactionTimeout: "16m" });
    const error = await rejected(runs.open());
    assert.equal(error.code, "kafka_transaction_timeout");
    assert.match(error.message, /16m.*15m/);
  },
);

serviceTest(
  "E6: who starts with the same id fences the other, in a write, a prepare, a commit",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    for (const call of ["write", "prepare", "commit"] as const) {
      await using old = await Runs.on(kafka);
      await old.open();
      await old.write(1);
      const first = await old.prepare(1);
      await using young = new Runs(kafka, old.topic, { transactionalId: old.transactionalId });
      await young.open();
      const calls = {
        write: async () => {
          await old.write(2);
          await old.writer.flush();
        },
        prepare: async () => {
          await old.write(2);
          await old.prepare(2);
        },
        commit: () => old.writer.commit!(first),
      };
      const error = await rejected(calls[call]());
      assert.ok(error instanceof FencedError, `${call}: ${error.code} ${error.message}`);
      assert.equal(await rejected(old.prepare(3)), error);
      await young.write("young");
      await young.checkpoint(1);
      await old.close();
      assert.deepEqual(await young.visible(), ["young"], call);
    }
  },
);

serviceTest(
  "E8: closing leaves no open transaction; nor does the start behind a kill, of however many producers",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    await using runs = await Runs.on(kafka);
    await runs.open();
    for (let i = 1; i <= 4; i++) {
      await runs.write(i);
      await runs.prepare(i);
    }
    const held = await kafka.java.offsets(runs.topic);
    assert.ok(held[0]!.stable < held[0]!.end);
    await runs.open(); // the first writer is left as if it were killed
    await decided(kafka, runs.transactionalId);
    const freed = await kafka.java.offsets(runs.topic);
    assert.equal(freed[0]!.stable, freed[0]!.end);
    await runs.write(5);
    await runs.writer.flush();
    await runs.close("done");
    await decided(kafka, runs.transactionalId);
    const closed = await kafka.java.offsets(runs.topic);
    assert.equal(closed[0]!.stable, closed[0]!.end);
    assert.deepEqual(await runs.visible(), []);
  },
);

serviceTest(
  "E10: one transaction right behind the other, committed and aborted by turns, and only those committed are seen",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    await using runs = await Runs.on(kafka, {}, 2);
    const expected: number[] = [];
    let restored: Committable | undefined;
    for (let run = 0; run < 6; run++) {
      await runs.open(restored);
      for (let i = 0; i < 5; i++) {
        const value = run * 10 + i;
        await runs.write(value);
        if (i < 3) {
          restored = await runs.checkpoint(value);
          expected.push(value);
        } else await runs.prepare(value);
      }
      await runs.close();
    }
    assert.deepEqual((await runs.visible() as number[]).toSorted((a, b) => a - b), expected);
  },
);

serviceTest("E4, K3: transactions right behind each other: none fails, none loses its first record", [
  "kafka",
], async () => {
  await using kafka = await kafkaService();
  await using runs = await Runs.on(kafka, {}, 3);
  await runs.open();
  for (let i = 0; i < 100; i++) {
    await runs.write(i);
    await runs.checkpoint(i);
  }
  const values = await runs.visible() as number[];
  assert.deepEqual(values.toSorted((a, b) => a - b), Array.from({ length: 100 }, (_, i) => i));
});

serviceTest(
  "K4: an empty transaction, or one that was taken back, does not stand in the way of the next run",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    await using runs = await Runs.on(kafka);
    let restored: Committable | undefined;
    for (let i = 0; i < 4; i++) {
      await runs.open(restored);
      await runs.close("done"); // nothing was written
      await runs.open(restored);
      await runs.write("gone");
      if (i % 2 === 0) await runs.writer.flush();
      await runs.close(); // taken back
      await runs.open(restored);
      await runs.write(i);
      restored = await runs.checkpoint(i + 1);
      await runs.close("done");
    }
    assert.deepEqual(await runs.visible(), [0, 1, 2, 3]);
  },
);

serviceTest(
  "K5, K8, K12: many small batches under way, in every codec: in order by key, headers as they were",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    const headers: Headers = [["b", new Uint8Array([1])], ["a", new Uint8Array()], [
      "b",
      new Uint8Array([2]),
    ]];
    for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"] as const) {
      await using runs = await Runs.on(kafka, { codec, batchSize: 1, batchBytes: 400 }, 6);
      await runs.open();
      for (let interval = 0; interval < 3; interval++) {
        const plain = batchOf(Array.from({ length: 500 }, (_, i) => interval * 500 + i));
        const batch = plain.withRows({
          ...plain.origin,
          keys: plain.values.map((value) => `k${value % 20}`),
          headers: plain.values.map(() => headers),
        });
        await runs.writer.write(batch);
        await runs.checkpoint(interval);
      }
      await decided(kafka, runs.transactionalId);
      const records = await kafka.java.records(runs.topic), last = new Map<string, number>();
      assert.equal(records.length, 1500, codec);
      for (const record of records) {
        const key = text.decode(record.key!), value = valueOf(record) as number;
        assert.ok((last.get(key) ?? -1) < value, `${codec}: ${value} of ${key}`);
        last.set(key, value);
        assert.deepEqual(record.headers, headers);
      }
    }
  },
);

serviceTest("a marker topic that is gone, or has lost its records, is no answer", ["kafka"], async () => {
  await using kafka = await kafkaService();
  for (const end of ["commit", "kill"] as const) {
    await using runs = await Runs.on(kafka, { markerTopic: await kafka.java.createTopic("marks") });
    const { markerTopic } = runs.sink.describe() as { markerTopic: string };
    await runs.open();
    await runs.write(1);
    const first = end === "commit" ? await runs.checkpoint(1) : await runs.prepare(1);
    assert.equal(await runs.recover(first), end === "commit" ? "committed" : "lost");
    const [marks] = await kafka.java.offsets(markerTopic);
    await kafka.java.deleteRecords(markerTopic, 0, marks!.end);
    assert.equal((await rejected(runs.recover(first))).code, "checkpoint_undecided");
    await kafka.java.deleteTopic(markerTopic);
    assert.equal((await rejected(runs.recover(first))).code, "checkpoint_undecided");
  }
});

serviceTest("a transaction of somebody else in the marker topic is waited for", ["kafka"], async () => {
  await using kafka = await kafkaService();
  const markerTopic = await kafka.java.createTopic("marks"), other = unique("other");
  await kafka.java.produce(markerTopic, [{ key: "other", value: "{}" }], {
    transaction: { id: other, end: "open" },
  });
  await using runs = await Runs.on(kafka, { markerTopic });
  await runs.open();
  await runs.write(1);
  const first = await runs.checkpoint(1);
  let outcome: Recovered | undefined;
  const asking = runs.recover(first).then((found) => outcome = found);
  await delay(systemClock, 1500);
  assert.equal(outcome, undefined);
  await kafka.java.produce(markerTopic, [{ key: "other", value: "{}" }], {
    transaction: { id: other, end: "abort" },
  });
  await asking;
  assert.equal(outcome, "committed");
});

/** The usual client, whose producers soon give up on an answer to a commit. */
const impatient: KafkaClientFactory = (connection, context) => {
  const client = kafkaClient(connection, context), start = client.transactionalProducer.bind(client);
  client.transactionalProducer = (options, call) => start({ ...options, endTimeoutMs: 500 }, call);
  return client;
};

for (const client of [undefined, impatient]) {
  const how = client === undefined ? "asked for again" : "settled by the marker";
  serviceTest(`E5: a commit whose answer is lost is ${how}`, ["own kafka", "toxiproxy"], async () => {
    await using proxies = await toxiproxy();
    await using kafka = await kafkaService({ through: proxies });
    await using runs = await Runs.on(kafka, {
      requestTimeoutMs: 1000,
      ...(client === undefined ? {} : { client }),
    });
    await runs.open();
    for (let i = 1; i <= 2; i++) {
      await runs.write(i);
      const prepared = await runs.prepare(i);
      await runs.write(-i); // of the next interval, in the transaction of another producer
      await runs.writer.flush();
      const heal = await kafka.proxy(1).add({ type: "timeout", timeout: 0 });
      const committing = runs.writer.commit!(prepared);
      await delay(systemClock, 2500);
      await heal();
      await committing;
    }
    assert.deepEqual(await runs.visible(), [1, -1, 2]);
    const looked = runs.log.filter((line) => line.includes("looking for its marker"));
    assert.equal(looked.length, client === undefined ? 0 : 2, runs.log.join("\n"));
  });
}
