/** What no real broker can be made to say: answers that leave something out, throttle, or never come. */
import assert from "node:assert/strict";
import { type Clock, systemClock } from "../../../lib/clock.ts";
import { silentLogger } from "../../../lib/log.ts";
import { VirtualClock } from "../../../lib/testing/virtual_clock.ts";
import type { KafkaClient, KafkaConnection } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { PLAIN_STAMP, RecordBatchBuilder } from "../protocol/record_batch_builder.ts";
import type { WireReader, WireWriter } from "../protocol/wire.ts";
import { answerMetadata, type FakeAnswer, FakeBroker, isMetadata } from "./fake_broker.ts";
import { kafkaClient } from "./mod.ts";

const PRODUCE = 0;
const FETCH = 1;
const LIST_OFFSETS = 2;
const FIND_COORDINATOR = 10;
const INIT_PRODUCER_ID = 22;
const ADD_PARTITIONS = 24;
const END_TXN = 26;

const NOT_LEADER = 6;

async function withFake(
  answer: (broker: FakeBroker) => FakeAnswer,
  run: (client: KafkaClient, broker: FakeBroker) => Promise<void>,
  { clock = systemClock, ...connection }: Partial<KafkaConnection> & { readonly clock?: Clock } = {},
): Promise<void> {
  const answers: FakeAnswer[] = [];
  await using broker = new FakeBroker((request, to) => answers[0]!(request, to));
  answers.push(answer(broker));
  const client = kafkaClient({ brokers: [broker.address], ...connection }, { clock, logger: silentLogger });
  try {
    await run(client, broker);
  } finally {
    await client.close();
  }
}

function batch(partition: number, ...values: string[]) {
  const records = new RecordBatchBuilder();
  for (const value of values) records.append(null, value, 1);
  return { topic: "t", partition, records };
}

/** Partitions of a produce request, with the bytes of their batches. */
function readProduce(body: WireReader): { partition: number; bytes: Uint8Array }[] {
  body.nullableString();
  body.int16();
  body.int32();
  return body.array(() => {
    body.string();
    return body.array(() => ({ partition: body.int32(), bytes: body.bytes() }));
  }).flat();
}

function answerProduce(to: WireWriter, results: readonly { partition: number; error?: number }[]): void {
  to.array(["t"], (topic) => {
    to.string(topic).array(results, ({ partition, error = 0 }) => {
      to.int32(partition).int16(error).int64(error === 0 ? 100 : -1).int64(-1).int64(0);
      to.array([], () => {}).nullableString(undefined);
    });
  }).int32(0);
}

/** Answers what every producer asks before it sends. */
function preliminaries(broker: FakeBroker, partitions: number, more: FakeAnswer): FakeAnswer {
  return (request, to) => {
    if (isMetadata(request)) return answerMetadata(to, broker.port, "t", partitions);
    if (request.key === FIND_COORDINATOR) {
      return void to.int32(0).int16(0).nullableString(undefined).int32(1).string("127.0.0.1").int32(
        broker.port,
      );
    }
    if (request.key === INIT_PRODUCER_ID) {
      return void to.noTags().int32(0).int16(0).int64(77).int16(3).noTags();
    }
    if (request.key === ADD_PARTITIONS) {
      request.body.string();
      request.body.int64();
      request.body.int16();
      to.int32(0).array(
        request.body.array(() =>
          [request.body.string(), request.body.array(() => request.body.int32())] as const
        ),
        (
          [topic, partitions],
        ) => to.string(topic).array(partitions, (partition) => to.int32(partition).int16(0)),
      );
      return;
    }
    return more(request, to);
  };
}

Deno.test("hazard 1: a batch the answer does not mention is sent again, the same bytes; others are not", async () => {
  const sent: string[] = [];
  let round = 0;
  await withFake((broker) =>
    preliminaries(broker, 3, ({ body }, to) => {
      const batches = readProduce(body);
      for (const { partition, bytes } of batches) sent.push(`${partition} ${[...bytes]}`);
      answerProduce(to, round++ === 0 ? [{ partition: 0 }, { partition: 2, error: NOT_LEADER }] : batches);
    }), async (client, broker) => {
    const written = await client.producer().send([batch(0, "a"), batch(1, "b"), batch(2, "c")]);
    assert.deepEqual(written.map(({ partition, baseOffset }) => [partition, baseOffset]), [
      [0, 100],
      [1, 100],
      [2, 100],
    ]);
    assert.equal(broker.requests.filter((key) => key === INIT_PRODUCER_ID).length, 1);
  });
  const of = (partition: number) => sent.filter((entry) => entry.startsWith(`${partition} `));
  assert.deepEqual([of(0).length, of(1).length, of(2).length], [1, 2, 2]);
  assert.equal(new Set(of(1)).size, 1);
  assert.equal(new Set(of(2)).size, 1);
});

Deno.test("hazard 1: an answer that never mentions a batch fails the send in the end", async () => {
  await withFake(
    (broker) => preliminaries(broker, 2, (_, to) => answerProduce(to, [{ partition: 0 }])),
    async (client) => {
      const sending = client.producer({ deliveryTimeoutMs: 300 }).send([batch(0, "a"), batch(1, "b")]);
      await assert.rejects(sending, { code: "kafka_incomplete_answer", message: /t\/1/ });
    },
  );
});

Deno.test("batches of one partition wait for each other, and are numbered by their records", async () => {
  const firsts: number[] = [];
  await withFake((broker) =>
    preliminaries(broker, 1, ({ body }, to) => {
      const batches = readProduce(body);
      for (const { bytes } of batches) firsts.push(new DataView(bytes.buffer, bytes.byteOffset).getInt32(53));
      answerProduce(to, batches);
    }), async (client) => {
    const producer = client.producer();
    await Promise.all(
      [["a"], ["b", "c", "d"], ["e", "f"], ["g"]].map((values) => producer.send([batch(0, ...values)])),
    );
  });
  assert.deepEqual(firsts, [0, 1, 4, 6]);
});

Deno.test("what the broker recognises as sent before counts as written", async () => {
  await withFake(
    (broker) => preliminaries(broker, 1, (_, to) => answerProduce(to, [{ partition: 0, error: 46 }])),
    async (client) => {
      assert.deepEqual(await client.producer().send([batch(0, "a", "b")]), [
        { topic: "t", partition: 0, baseOffset: -1, count: 2 },
      ]);
    },
  );
});

Deno.test("a partition the answer to a fetch leaves out is asked for again", async () => {
  let round = 0;
  const asked: number[] = [];
  await withFake((broker) =>
    preliminaries(broker, 2, (_, to) => {
      asked.push(round);
      to.int32(0).int16(0).int32(0).array(["t"], (topic) => {
        const partitions = round++ === 0 ? [0] : [0, 1];
        to.string(topic).array(partitions, (partition) => {
          const records = new RecordBatchBuilder();
          records.append(null, `p${partition}`, 1);
          to.int32(partition).int16(0).int64(1).int64(1).int64(0).array([], () => {}).int32(-1);
          to.bytes(partition === 1 || round === 1 ? records.encode(PLAIN_STAMP) : new Uint8Array(0));
        });
      });
    }), async (client) => {
    const fetcher = client.fetcher({ isolation: "read_committed" });
    fetcher.assign({ topic: "t", partition: 0 }, 0);
    fetcher.assign({ topic: "t", partition: 1 }, 0);
    const seen = new Set<string>();
    while (seen.size < 2) {
      for (const { records } of await fetcher.poll()) for (const run of records) seen.add(run.valueText(0)!);
    }
    assert.deepEqual([...seen].sort(), ["p0", "p1"]);
    await fetcher.close();
  });
  assert.ok(asked.length >= 2);
});

Deno.test("a damaged answer to a fetch is an error", async () => {
  await withFake((broker) =>
    preliminaries(broker, 1, (_, to) => {
      const records = new RecordBatchBuilder();
      records.append("key", "value", 1);
      const bytes = records.encode(PLAIN_STAMP).slice();
      bytes[bytes.length - 3]! ^= 1;
      to.int32(0).int16(0).int32(0).array(["t"], (topic) => {
        to.string(topic).array([0], (partition) => {
          to.int32(partition).int16(0).int64(1).int64(1).int64(0).array([], () => {}).int32(-1).bytes(bytes);
        });
      });
    }), async (client) => {
    const fetcher = client.fetcher({ isolation: "read_committed" });
    fetcher.assign({ topic: "t", partition: 0 }, 0);
    await assert.rejects(fetcher.poll(), { code: "kafka_corrupt" });
    await assert.rejects(fetcher.poll(), { code: "kafka_corrupt" });
    await fetcher.close();
  });
});

Deno.test("a batch that never comes whole is an error in the end", async () => {
  await withFake((broker) =>
    preliminaries(broker, 1, (_, to) => {
      const records = new RecordBatchBuilder();
      records.append("key", "value", 1);
      const bytes = records.encode(PLAIN_STAMP).slice();
      new DataView(bytes.buffer).setInt32(8, 1_000_000);
      to.int32(0).int16(0).int32(0).array(["t"], (topic) => {
        to.string(topic).array([0], (partition) => {
          to.int32(partition).int16(0).int64(1).int64(1).int64(0).array([], () => {}).int32(-1).bytes(bytes);
        });
      });
    }), async (client) => {
    const fetcher = client.fetcher({ isolation: "read_committed" });
    fetcher.assign({ topic: "t", partition: 0 }, 0);
    await assert.rejects(async () => {
      while ((await fetcher.poll()).every(({ records }) => records.length === 0));
    }, { code: "kafka_corrupt", message: /t\/0: at offset 0/ });
    await fetcher.close();
  });
});

Deno.test("an offset the answer leaves out is an error in the end, not -1", async () => {
  const noOffsets: FakeAnswer = (_, to) => void to.int32(0).array([], () => {});
  await withFake((broker) => preliminaries(broker, 1, noOffsets), async (client, broker) => {
    const asking = client.listOffsets([{ topic: "t", partition: 0, at: "end" }]);
    await assert.rejects(asking, { code: "kafka_incomplete_answer" });
    assert.ok(broker.requests.filter((key) => key === LIST_OFFSETS).length > 1);
  }, { requestTimeoutMs: 300 });
});

Deno.test("an answer that ends too early is an error, not zeros", async () => {
  await withFake(() => (_, to) => void to.int32(0).int32(5), async (client) => {
    await assert.rejects(
      client.metadata(["t"]),
      (error) => error instanceof KafkaError && error.code === "kafka_corrupt",
    );
  });
});

Deno.test("an answer that never comes ends with the clock, and the connection with it", async () => {
  const clock = new VirtualClock();
  await withFake(() => () => false, async (client, broker) => {
    const failures: unknown[] = [];
    client.metadata(["t"]).catch((error) => failures.push(error));
    while (broker.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await clock.advance(6999);
    assert.equal(failures.length, 0);
    await clock.advance(1);
    const [failure] = failures;
    assert.ok(failure instanceof KafkaError);
    assert.deepEqual([failure.code, failure.retriable], ["kafka_timeout", true]);
    assert.match(failure.message, /did not answer Metadata within 7000 ms/);
  }, { clock, requestTimeoutMs: 7000 });
});

Deno.test("a broker that takes no word ends with the clock, too", async () => {
  const clock = new VirtualClock();
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const client = kafkaClient({
    brokers: [`127.0.0.1:${port}`],
    connectTimeoutMs: 3000,
    requestTimeoutMs: 1000,
  }, {
    clock,
    logger: silentLogger,
  });
  const failures: unknown[] = [];
  client.metadata(["t"]).catch((error) => failures.push(error));
  const connection = await listener.accept();
  await clock.advance(2999);
  assert.equal(failures.length, 0);
  await clock.advance(1);
  const [failure] = failures;
  assert.ok(failure instanceof KafkaError);
  assert.equal(failure.code, "kafka_unreachable");
  assert.match(failure.message, /within 3000 ms/);
  await client.close();
  connection.close();
  listener.close();
});

Deno.test("a broker that asks for patience gets it: the next request is held back, and then sent", async () => {
  await withFake((broker) => (request, to) => {
    if (!isMetadata(request)) throw new Error(`request ${request.key}`);
    answerMetadata(to, broker.port, "t", 1);
    if (broker.requests.length === 1) new DataView(to.finish().buffer).setInt32(4, 300); // throttle time
  }, async (client) => {
    await client.metadata(["t"]);
    const start = systemClock.monotonic();
    await Promise.all([client.metadata(["t"]), client.metadata(["t"])]);
    const took = systemClock.monotonic() - start;
    assert.ok(took >= 250 && took < 3000, `${took} ms`);
  });
});

Deno.test("a commit that never left was not a commit: nothing is unknown", async () => {
  await withFake((broker) =>
    preliminaries(broker, 1, ({ key, body }, to) => {
      if (key === PRODUCE) return answerProduce(to, readProduce(body));
      if (key === END_TXN) return void to.int32(0).int16(14); // the coordinator is loading
      throw new Error(`request ${key}`);
    }), async (client) => {
    const options = { transactionalId: "t", transactionTimeoutMs: 1000, endTimeoutMs: 200 };
    const producer = await client.transactionalProducer(options);
    assert.deepEqual([producer.producerId, producer.epoch], [77, 3]);
    await producer.send([batch(0, "a")]);
    await assert.rejects(producer.commit(), { code: "kafka_broker", broker: "COORDINATOR_LOAD_IN_PROGRESS" });
  });
});

Deno.test("hazard 11b: a commit that closed the connection, then is refused, is unknown", async () => {
  for (const refusal of [47, 48, 90]) {
    let ends = 0;
    await withFake((broker) =>
      preliminaries(broker, 1, ({ key, body }, to) => {
        if (key === PRODUCE) return answerProduce(to, readProduce(body));
        if (key === END_TXN) return ends++ === 0 ? "close" : void to.int32(0).int16(refusal);
        throw new Error(`request ${key}`);
      }), async (client) => {
      const producer = await client.transactionalProducer({
        transactionalId: "t",
        transactionTimeoutMs: 1000,
      });
      await producer.send([batch(0, "a")]);
      await assert.rejects(producer.commit(), { code: "kafka_unknown_outcome" });
    });
    assert.equal(ends, 2);
  }
});

Deno.test("a fetch that is under way when its fetcher is closed leaves no connection behind", async () => {
  await withFake((broker) => preliminaries(broker, 1, () => false), async (client, broker) => {
    const fetcher = client.fetcher({ isolation: "read_committed" });
    fetcher.assign({ topic: "t", partition: 0 }, 0);
    const polling = assert.rejects(fetcher.poll(), { code: "kafka_closed" });
    while (!broker.requests.includes(FETCH)) await new Promise((resolve) => setTimeout(resolve, 1));
    await fetcher.close();
    await polling;
  });
});
