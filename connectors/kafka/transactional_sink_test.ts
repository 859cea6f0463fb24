import assert from "node:assert/strict";
import type { Committable, Recovered, Sink, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { codeOf, MailerError } from "../../lib/errors.ts";
import type { Batch } from "../../lib/record.ts";
import { commitContract } from "../../lib/testing/commit_contract.ts";
import { batchOf, sinkContract } from "../../lib/testing/sink_contract.ts";
import { sinkContext } from "../../lib/testing/sink_scene.ts";
import { settle, VirtualClock } from "../../lib/testing/virtual_clock.ts";
import { FencedError, KafkaError, UnknownOutcomeError } from "./errors.ts";
import { FakeKafka, type FakeKafkaOptions } from "./testing/fake_client.ts";
import { transactionalKafkaSink, type TransactionalKafkaSinkOptions } from "./transactional_sink.ts";

const parsed = (value: string | null): unknown => value === null ? null : JSON.parse(value);

function newKafka(options: FakeKafkaOptions = {}): FakeKafka {
  const kafka = new FakeKafka(new VirtualClock(), options);
  kafka.createTopic("out");
  return kafka;
}

function sinkOn(kafka: FakeKafka, options: Partial<TransactionalKafkaSinkOptions> = {}): Sink {
  return transactionalKafkaSink({
    brokers: ["b:9092"],
    topic: "out",
    transactionalId: "sums",
    client: kafka.connect,
    sasl: { mechanism: "plain", username: "anna", password: "geheim" },
    ...options,
  });
}

const setUp = (kafka = newKafka()) => ({
  sink: sinkOn(kafka),
  written: () => kafka.texts("out").map(parsed),
  tearDown: () => assert.equal(kafka.clients.size, 0, "a client was not closed"),
});

commitContract({ name: "transactional kafka sink", commits: "atomic", setUp: () => setUp() });

/** Opened as by a pipeline with checkpoints; each flush is a checkpoint. */
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

sinkContract({
  name: "transactional kafka sink",
  setUp() {
    const under = setUp();
    return { ...under, sink: committingAtFlush(under.sink) };
  },
  unwritable: { value: NaN, code: "not_json_number" },
  blocked() {
    const kafka = newKafka();
    kafka.hold("send");
    const sink = sinkOn(kafka, { bufferBytes: 1, batchSize: 1 });
    return { sink: committingAtFlush(sink), written: () => kafka.texts("out").map(parsed) };
  },
  secrets: ["geheim", "anna"],
});

/** One run after the other of a sink. */
class Runs {
  readonly kafka: FakeKafka;
  readonly clock: VirtualClock;
  readonly sink: Sink;
  readonly log: string[] = [];
  readonly rejected: [number, string][] = [];
  #writer: SinkWriter | undefined;

  constructor(kafka = newKafka(), options: Partial<TransactionalKafkaSinkOptions> = {}) {
    this.kafka = kafka;
    this.clock = kafka.clock as VirtualClock;
    this.sink = sinkOn(kafka, options);
  }

  get context(): SinkContext {
    return sinkContext({
      clock: this.clock,
      logger: {
        log: (level, message, fields) => this.log.push(`${level} ${message} ${JSON.stringify(fields)}`),
      },
      reject: (_: Batch, index: number, error: Error) => void this.rejected.push([index, codeOf(error)]),
    });
  }

  get writer(): SinkWriter {
    return this.#writer!;
  }

  async open(restored?: Committable, interval = 1000): Promise<SinkWriter> {
    return this.#writer = await this.sink.open({ ...this.context, checkpoints: { restored, interval } });
  }

  async write(...values: unknown[]): Promise<void> {
    await this.writer.write(batchOf(values));
  }

  async prepare(checkpoint: number): Promise<Committable> {
    return JSON.parse(JSON.stringify(await this.writer.prepare!(checkpoint)));
  }

  async commit(committable: Committable): Promise<void> {
    await this.writer.commit!(committable);
  }

  async checkpoint(number: number): Promise<Committable> {
    const committable = await this.prepare(number);
    await this.commit(committable);
    return committable;
  }

  async recover(committable: Committable): Promise<Recovered> {
    return await this.sink.recover!(committable, this.context);
  }

  /** The process is gone: nothing is closed, nothing aborted. */
  crash(): void {
    this.#writer = undefined;
  }

  async close(): Promise<void> {
    await this.#writer?.close("failed");
    this.#writer = undefined;
  }

  sees(...values: unknown[]): void {
    assert.deepEqual(this.kafka.texts("out").map(parsed), values);
  }
}

/** Runs a body, and closes what it has left open. */
async function running(body: (runs: Runs) => Promise<void>, runs = new Runs()): Promise<void> {
  try {
    await body(runs);
  } finally {
    runs.kafka.heal();
    await runs.close();
  }
}

const states = (kafka: FakeKafka) =>
  Object.fromEntries([...kafka.transactionalIds].map(([id, { current }]) => [id, current?.state ?? "none"]));

Deno.test("without checkpoints it is not opened: half of exactly once is none", async () => {
  const kafka = newKafka();
  const error = await rejected(sinkOn(kafka).open(sinkContext()));
  assert.equal(error.code, "no_checkpointing");
  assert.match(error.hint!, /checkpointing/);
  assert.equal(kafka.clients.size, 0);
  assert.deepEqual(kafka.calls, []);
});

async function rejected(promise: unknown): Promise<MailerError> {
  let caught: unknown;
  await Promise.resolve(promise).catch((error) => caught = error);
  assert.ok(caught instanceof MailerError, `no error, or another: ${caught}`);
  return caught;
}

Deno.test("everything between two barriers is in one transaction, the marker as well", async () => {
  await running(async (runs) => {
    await runs.open();
    await runs.write(1, 2);
    await runs.write(3);
    const first = await runs.prepare(7) as { run: string };
    assert.deepEqual(states(runs.kafka), { sums: "open", "sums#1": "none" });
    const marker = runs.kafka.records("out.checkpoints", "read_uncommitted")[0]!;
    assert.equal(new TextDecoder().decode(marker.key!), "sums");
    assert.deepEqual(JSON.parse(new TextDecoder().decode(marker.value!)), { run: first.run, checkpoint: 7 });
    assert.deepEqual(runs.kafka.records("out.checkpoints"), []);
    await runs.commit(first);
    runs.sees(1, 2, 3);
    assert.equal(runs.kafka.records("out.checkpoints").length, 1);
  });
});

Deno.test("the marker topic is made with one partition and kept by key; one that exists stays as it is", async () => {
  const kafka = newKafka(), runs = new Runs(kafka, { markerTopic: "marks" });
  await running(async (runs) => void await runs.open(), runs);
  assert.equal(kafka.topic("marks").partitions.length, 1);
  assert.deepEqual([...kafka.topic("marks").config], [["cleanup.policy", "compact"]]);
  await running(async (runs) => void await runs.open(), new Runs(kafka, { markerTopic: "marks" }));
  assert.equal(kafka.calls.filter((call) => call.includes("createTopics")).length, 1);
});

Deno.test("a marker topic that may not be made is named, with the remedy", async () => {
  const runs = new Runs();
  runs.kafka.fail("admin", new KafkaError("kafka_not_authorised", "no"), { matching: "createTopics" });
  const error = await rejected(runs.open());
  assert.equal(error.code, "no_marker_topic");
  assert.match(error.message, /out\.checkpoints/);
  assert.equal(runs.kafka.clients.size, 0);
});

Deno.test("K7: an interval without records has no transaction, and is committed whatever happens", async () => {
  await running(async (runs) => {
    await runs.open();
    const empty = await runs.prepare(1);
    assert.deepEqual((empty as { transactions: unknown[] }).transactions, []);
    await runs.commit(empty);
    await runs.write();
    await runs.checkpoint(2);
    assert.equal(runs.kafka.records("out.checkpoints", "read_uncommitted").length, 0);
    assert.deepEqual(runs.kafka.calls.filter((call) => call.startsWith("commit")), []);
    runs.crash();
    runs.kafka.deleteTopic("out.checkpoints"); // nothing to be looked up
    assert.equal(await runs.recover(empty), "committed");
  });
});

Deno.test("an interval all of whose records were rejected has no transaction", async () => {
  await running(async (runs) => {
    await runs.open();
    await runs.write(NaN, Infinity);
    assert.deepEqual(runs.rejected, [[0, "not_json_number"], [1, "not_json_number"]]);
    const { transactions } = await runs.prepare(1) as { transactions: unknown[] };
    assert.deepEqual(transactions, []);
    await runs.write(1);
    await runs.checkpoint(2);
    runs.sees(1);
  });
});

Deno.test("writes do not wait for a commit: they go into the transaction of another producer", async () => {
  await running(async (runs) => {
    await runs.open();
    const prepared: Committable[] = [];
    for (let i = 1; i <= 4; i++) {
      await runs.write(i);
      prepared.push(await runs.prepare(i));
    }
    assert.deepEqual(states(runs.kafka), {
      sums: "open",
      "sums#1": "open",
      "sums#2": "open",
      "sums#3": "open",
    });
    for (const [i, committable] of prepared.entries()) {
      await runs.commit(committable);
      assert.equal(runs.kafka.texts("out.checkpoints").length, i + 1);
    }
    await runs.write(5);
    await runs.checkpoint(5);
    runs.sees(1, 2, 3, 4, 5);
    assert.equal(runs.kafka.transactionalIds.size, 4, "producers that are free are used again");
  });
});

Deno.test("E2: a timeout that the broker does not allow is said at the start, with both values", async () => {
  const kafka = newKafka({ maxTransactionTimeoutMs: 300_000 });
  const error = await rejected(new Runs(kafka).open());
  assert.equal(error.code, "kafka_transaction_timeout");
  assert.match(error.message, /10m/);
  assert.match(error.message, /5m/);
  assert.match(error.message, /transaction\.max\.timeout\.ms/);
  assert.equal(kafka.transactionalIds.size, 0, "nobody was fenced");
  await running(async (runs) => void await runs.open(), new Runs(kafka, { transactionTimeout: "5m" }));
});

Deno.test("E1, E2: the timeout is well above the checkpoint interval, or the run does not start", async () => {
  const kafka = newKafka();
  const timeout = async (interval: number, transactionTimeout?: string): Promise<number | undefined> => {
    await running(
      async (runs) => void await runs.open(undefined, interval),
      new Runs(kafka, transactionTimeout === undefined ? {} : { transactionTimeout }),
    );
    return kafka.transactionalIds.get("sums")?.timeoutMs;
  };
  assert.equal(await timeout(10_000), 600_000);
  assert.equal(await timeout(400_000), 800_000);
  assert.equal(await timeout(10_000, "21s"), 21_000);
  assert.equal(await timeout(600_000, "11m1s"), 661_000);
  for (const [interval, short] of [[10_000, "20s"], [10_000, "5s"], [600_000, "11m"]] as const) {
    const error = await rejected(timeout(interval, short));
    assert.equal(error.code, "invalid_kafka_options");
    assert.match(error.message, new RegExp(`${short}.*${interval === 10_000 ? "10s" : "10m"} apart`));
  }
  assert.equal((await rejected(timeout(500_000))).code, "kafka_transaction_timeout");
});

Deno.test("E1: a transaction that took longer than its timeout is lost aloud", async () => {
  await running(async (runs) => {
    await runs.open();
    await runs.write(1);
    const first = await runs.checkpoint(4);
    await runs.write(2);
    await runs.writer.flush();
    await runs.clock.advance("11m");
    const error = await rejected(runs.prepare(5));
    assert.ok(error instanceof FencedError);
    const line = runs.log.find((line) => line.startsWith("error"))!;
    assert.match(line, /longer than its timeout/);
    assert.match(line, /since checkpoint 4/);
    assert.equal(await rejected(runs.write(3)), error, "nothing more is written");
    await runs.close();
    await runs.open(first);
    await runs.write(2);
    await runs.checkpoint(5);
    runs.sees(1, 2);
  });
});

Deno.test("E1: one that is old is warned of before it is lost", async () => {
  await running(async (runs) => {
    await runs.open();
    for (const [i, age] of ["1s", "4m59s", "5m"].entries()) {
      await runs.write(i);
      await runs.writer.flush();
      await runs.clock.advance(age);
      await runs.checkpoint(i);
    }
    assert.deepEqual(runs.log.filter((line) => line.includes("half of its timeout")).length, 1);
    assert.match(runs.log.at(-1)!, /"ageMs":300000,"timeoutMs":600000/);
  });
});

Deno.test("E5: a commit whose answer is lost, though it was made, is settled by its marker", async () => {
  await running(async (runs) => {
    await runs.open();
    await runs.write(1);
    const first = await runs.prepare(1);
    await runs.write(2);
    runs.kafka.fail("commit", new UnknownOutcomeError("sums", "commit"), { when: "after" });
    await runs.commit(first);
    runs.sees(1);
    const second = await runs.prepare(2);
    await runs.write(3);
    await runs.commit(second);
    await runs.checkpoint(3);
    runs.sees(1, 2, 3);
  });
});

Deno.test("E5: so is one whose markers are late", async () => {
  const kafka = newKafka({ markerDelayMs: 5000 }), runs = new Runs(kafka);
  await running(async () => {
    await runs.open();
    await runs.write(1);
    const first = await runs.prepare(1);
    kafka.fail("commit", new UnknownOutcomeError("sums", "commit"), { when: "after" });
    await runs.commit(first);
    runs.sees(1);
  }, runs);
});

Deno.test("E5: a commit that was not made is lost, and said so; the run goes on from the checkpoint before", async () => {
  for (
    const error of [new UnknownOutcomeError("sums", "commit"), new KafkaError("kafka_timeout", "no answer")]
  ) {
    await running(async (runs) => {
      await runs.open();
      await runs.write(1);
      const first = await runs.checkpoint(1);
      await runs.write(2);
      const second = await runs.prepare(2);
      await runs.write(3);
      runs.kafka.fail("commit", error, { when: "before" });
      const lost = await rejected(runs.commit(second));
      assert.equal(lost.code, "transaction_lost");
      assert.equal(await rejected(runs.write(4)), lost);
      runs.sees(1);
      await runs.close();
      assert.equal(await runs.recover(second), "lost");
      await runs.open(first);
      await runs.write(2, 3);
      await runs.checkpoint(3);
      runs.sees(1, 2, 3);
    });
  }
});

Deno.test("E5: an answer that is lost while the broker cannot be asked leaves it to the next run", async () => {
  await running(async (runs) => {
    await runs.open();
    await runs.write(1);
    const first = await runs.prepare(1);
    runs.kafka.fail("commit", new UnknownOutcomeError("sums", "commit"), { when: "after" });
    runs.kafka.fail("initTransactions", new KafkaError("kafka_unreachable", "away", { retriable: true }));
    assert.equal((await rejected(runs.commit(first))).code, "kafka_unreachable");
    await runs.close();
    assert.equal(await runs.recover(first), "committed");
    await runs.open(first);
    await runs.write(2);
    await runs.checkpoint(2);
    runs.sees(1, 2);
  });
});

Deno.test("E6: who starts with the same id fences the other, whose error passes unchanged, and nothing of it is committed", async () => {
  const kafka = newKafka();
  await running(async (old) => {
    await old.open();
    await old.write(1);
    const first = await old.prepare(1);
    await old.write(2);
    await running(async (young) => {
      await young.open();
      const error = await rejected(old.commit(first));
      assert.ok(error instanceof FencedError);
      assert.equal(error.code, "kafka_fenced");
      assert.match(old.log.find((line) => line.startsWith("error"))!, /another instance/);
      assert.equal(await rejected(old.write(3)), error);
      assert.equal(await rejected(old.prepare(2)), error);
      young.sees();
      await young.write("a");
      await young.checkpoint(1);
      await old.close();
      young.sees("a");
    }, new Runs(kafka));
  }, new Runs(kafka));
});

Deno.test("E7: no id of a sink is one of another sink's producers", () => {
  const kafka = newKafka();
  for (const transactionalId of ["sums#1", "a#23", ""]) {
    assert.throws(
      () => sinkOn(kafka, { transactionalId }),
      { code: "invalid_kafka_options" },
      transactionalId,
    );
  }
  for (const transactionalId of ["sums-1", "sums#", "sums#1a", "1"]) sinkOn(kafka, { transactionalId });
});

Deno.test("E7: sinks whose ids begin alike do not disturb each other", async () => {
  const kafka = newKafka();
  await running(async (one) => {
    await one.open();
    await one.write("one");
    const first = await one.prepare(1);
    await running(async (other) => {
      await other.open();
      await other.write("other");
      await other.checkpoint(1);
    }, new Runs(kafka, { transactionalId: "sums-1" }));
    await one.commit(first);
    assert.deepEqual(kafka.texts("out").sort(), ['"one"', '"other"']);
  }, new Runs(kafka));
});

Deno.test("E8: closing aborts what is open, prepared or not, so that no reader waits", async () => {
  await running(async (runs) => {
    await runs.open();
    await runs.write(1);
    await runs.prepare(1);
    await runs.write(2);
    await runs.writer.flush();
    assert.deepEqual(states(runs.kafka), { sums: "open", "sums#1": "open" });
    await runs.close();
    assert.deepEqual(states(runs.kafka), { sums: "none", "sums#1": "none" });
    const { stable, end } = runs.kafka.partition({ topic: "out", partition: 0 });
    assert.equal(stable, end);
    runs.sees();
  });
});

Deno.test("E8: an abort that gets no answer does not hold the close up, and is said", async () => {
  const runs = new Runs();
  await runs.open();
  await runs.write(1);
  await runs.writer.flush();
  runs.kafka.hold("abort");
  const closing = runs.close();
  await runs.clock.advance("6s");
  await closing;
  assert.match(runs.log.at(-1)!, /left to its timeout/);
});

Deno.test("E8: a run that was killed leaves transactions of all its producers: opening aborts them, however many", async () => {
  const kafka = newKafka();
  for (const count of [1, 2, 3, 7, 8, 9, 17]) {
    const old = new Runs(kafka), before = kafka.texts("out").length;
    await old.open();
    for (let i = 1; i <= count; i++) {
      await old.write(i);
      await old.prepare(i);
    }
    old.crash();
    assert.equal(Object.values(states(kafka)).filter((state) => state === "open").length, count);
    await running(async (young) => {
      await young.open();
      assert.deepEqual(Object.values(states(kafka)).filter((state) => state === "open"), []);
      assert.equal(kafka.texts("out").length, before);
    }, new Runs(kafka));
  }
});

Deno.test("E8: where the broker is too old to say which there are, the usual ones are fenced", async () => {
  const kafka = newKafka(), old = new Runs(kafka);
  await old.open();
  for (let i = 1; i <= 3; i++) {
    await old.write(i);
    await old.prepare(i);
  }
  old.crash();
  kafka.fail("admin", new KafkaError("kafka_unsupported", "too old"), { matching: "describeTransactions" });
  await running(async (young) => {
    await young.open();
    assert.deepEqual(Object.values(states(kafka)).filter((state) => state === "open"), []);
  }, new Runs(kafka));
});

Deno.test("E12: a record that could not be sent makes the transaction fail: nothing of it is committed", async () => {
  await running(async (runs) => {
    await runs.open();
    await runs.write(1);
    const first = await runs.checkpoint(1);
    runs.kafka.fail("send", new KafkaError("kafka_timeout", "no answer", { retriable: true }), {
      when: "after",
    });
    await runs.write(2);
    const error = await rejected(runs.prepare(2));
    assert.equal(error.code, "kafka_timeout");
    assert.equal(await rejected(runs.prepare(2)), error, "asked again, it does not commit the rest");
    assert.equal(await rejected(runs.write(3)), error);
    await runs.close();
    runs.sees(1);
    await runs.open(first);
    await runs.write(2);
    await runs.checkpoint(2);
    runs.sees(1, 2);
  });
});

Deno.test("E12: a record the broker refuses is no matter for the policy of the sink: the run ends", async () => {
  await running(async (runs) => {
    await runs.open();
    runs.kafka.fail("send", new KafkaError("kafka_invalid_record", "its time"));
    await runs.write(1);
    assert.equal((await rejected(runs.prepare(1))).code, "kafka_invalid_record");
    assert.deepEqual(runs.rejected, []);
  });
});

Deno.test("a record larger than the topic takes goes to the policy before it is in the transaction", async () => {
  const kafka = new FakeKafka(new VirtualClock());
  kafka.createTopic("out", 1, { "max.message.bytes": "1000" });
  await running(async (runs) => {
    await runs.open();
    await runs.write("a", "x".repeat(2000), "b");
    await runs.checkpoint(1);
    assert.deepEqual(runs.rejected, [[1, "kafka_record_too_large"]]);
    runs.sees("a", "b");
  }, new Runs(kafka));
});

Deno.test("what failed on its way shows at the next write", async () => {
  await running(async (runs) => {
    await runs.open();
    runs.kafka.fail("send", new KafkaError("kafka_timeout", "no answer"));
    await runs.write(1);
    await runs.clock.advance("1s");
    assert.equal((await rejected(runs.write(2))).code, "kafka_timeout");
  }, new Runs(newKafka(), { batchTimeout: "100ms" }));
});

Deno.test("E13: a batch nobody acknowledged makes the transaction fail", async () => {
  const kafka = newKafka();
  const client: FakeKafka["connect"] = (connection, context) => {
    const made = kafka.connect(connection, context), start = made.transactionalProducer.bind(made);
    made.transactionalProducer = async (options, call) => {
      const inner = await start(options, call), send = inner.send.bind(inner);
      inner.send = async (batches, call) =>
        (await send(batches, call)).filter(({ topic }) => topic !== "out");
      return inner;
    };
    return made;
  };
  await running(async (runs) => {
    await runs.open();
    await runs.write(1);
    assert.equal((await rejected(runs.prepare(1))).code, "kafka_incomplete_answer");
  }, new Runs(kafka, { client }));
  assert.deepEqual(kafka.texts("out"), []);
});

Deno.test("a checkpoint of another id, or of another sink, is not taken for one's own", async () => {
  const kafka = newKafka(), runs = new Runs(kafka);
  await runs.open();
  await runs.write(1);
  const first = await runs.checkpoint(1);
  await runs.close();
  const other = new Runs(kafka, { transactionalId: "other" });
  const error = await rejected(other.recover(first));
  assert.equal(error.code, "output_changed");
  assert.match(error.message, /"sums"/);
  for (const foreign of [undefined, null, 7, {}, { file: "x" }, { ...first as object, transactions: [{}] }]) {
    assert.equal((await rejected(runs.recover(foreign))).code, "output_changed");
  }
});

const warned = (log: readonly string[]) => log.filter((line) => line.includes("it will be there twice"));

Deno.test("who goes back behind what readers see is told so; who goes on is not", async () => {
  const kafka = newKafka();
  const first = new Runs(kafka), committables: Committable[] = [];
  await running(async (runs) => {
    await runs.open();
    for (let i = 1; i <= 3; i++) {
      await runs.write(i);
      committables.push(await runs.checkpoint(i));
    }
    committables.push(await runs.checkpoint(4)); // without records
    await runs.write(5);
    await runs.prepare(5); // and lost
  }, first);
  assert.deepEqual(warned(first.log), []);
  for (
    const [restored, through] of [[undefined, 3], [committables[0], 3], [committables[2], undefined], [
      committables[3],
      undefined,
    ]]
  ) {
    const again = new Runs(kafka);
    await running(async (runs) => void await runs.open(restored), again);
    const lines = warned(again.log);
    assert.equal(lines.length, through === undefined ? 0 : 1, again.log.join("\n"));
    if (through !== undefined) assert.match(lines[0]!, /checkpoint 3/);
  }
  const other = new Runs(kafka, { transactionalId: "other" });
  await running(async (runs) => void await runs.open(), other);
  assert.deepEqual(warned(other.log), [], "what others have committed is no matter");
});

Deno.test("where that cannot be looked for, the run starts all the same", async () => {
  const runs = new Runs(), committable = await prepared(runs, "commit");
  runs.kafka.fail("poll", new KafkaError("kafka_corrupt", "a checksum"));
  await running(async () => void await runs.open(committable), runs);
  await running(async () => void await runs.open(), runs);
  assert.ok(runs.log.some((line) => line.includes("not looked for")));
});

Deno.test("records go to several topics in one transaction", async () => {
  const kafka = newKafka();
  kafka.createTopic("other", 2);
  assert.throws(() => sinkOn(kafka, { topic: () => "out" }), { code: "invalid_kafka_options" }); // where would markers be?
  await running(async (runs) => {
    await runs.open();
    await runs.write("out", "other", "nowhere");
    const first = await runs.prepare(1);
    assert.deepEqual([kafka.texts("out"), kafka.texts("other")], [[], []]);
    await runs.commit(first);
    assert.deepEqual([kafka.texts("out"), kafka.texts("other")], [['"out"'], ['"other"']]);
    assert.deepEqual(runs.rejected, [[2, "kafka_unknown_topic"]]);
  }, new Runs(kafka, { topic: (value) => value as string, markerTopic: "marks" }));
});

// Several transactions of one checkpoint.

Deno.test("of a checkpoint that was lost, what an earlier checkpoint had committed is no harm", async () => {
  await running(async (runs) => {
    await runs.open();
    await runs.write(1);
    const first = await runs.prepare(1);
    await runs.write(2);
    const second = await runs.prepare(2); // names both: the first is not committed yet
    await runs.commit(first);
    runs.crash();
    assert.equal(await runs.recover(second), "lost");
    await runs.open(first);
    await runs.write(2);
    await runs.checkpoint(3);
    runs.sees(1, 2);
  });
});

Deno.test("of a checkpoint that was lost, what only it would have committed may not be there: the run does not start", async () => {
  await running(async (runs) => {
    await runs.open();
    await runs.write(0);
    const before = await runs.checkpoint(1);
    await runs.write(1);
    await runs.prepare(2); // and fails
    await runs.write(2);
    const third = await runs.prepare(3);
    runs.kafka.fail("commit", new FencedError("sums#1", "committing"), { matching: "sums#1" });
    await rejected(runs.commit(third));
    runs.sees(0, 1);
    runs.crash();
    for (let again = 0; again < 2; again++) {
      assert.equal(await runs.recover(third), "lost");
      assert.equal((await rejected(runs.open(before))).code, "half_committed");
    }
    assert.equal(await runs.recover(third), "lost");
    assert.equal((await rejected(runs.open())).code, "half_committed");
  });
});

Deno.test("of a checkpoint with several transactions all are committed, though compaction kept one marker", async () => {
  await running(async (runs) => {
    await runs.open();
    await runs.write(1);
    await runs.prepare(1); // and fails
    await runs.write(2);
    const second = await runs.checkpoint(2);
    runs.crash();
    const [first] = runs.kafka.records("out.checkpoints");
    runs.kafka.compact("out.checkpoints", 0, [first!.offset]);
    assert.equal(await runs.recover(second), "committed");
  });
});

// What cannot be told.

async function prepared(runs: Runs, end: "commit" | "crash"): Promise<Committable> {
  await runs.open();
  await runs.write(0);
  await runs.checkpoint(1);
  await runs.write(1);
  const committable = await runs.prepare(2);
  if (end === "commit") await runs.commit(committable);
  runs.crash();
  return committable;
}

async function undecided(runs: Runs, committable: Committable, why: RegExp): Promise<void> {
  const error = await rejected(runs.recover(committable));
  assert.equal(error.code, "checkpoint_undecided", error.message);
  assert.match(error.message, why);
  assert.match(error.message, /checkpoint 2/);
  assert.ok(error.hint !== undefined);
  assert.equal(runs.kafka.clients.size, 1, "the crashed run's alone"); // it was closed
}

for (const end of ["commit", "crash"] as const) {
  Deno.test(`${end}: without the marker topic it cannot be told`, async () => {
    const runs = new Runs(), committable = await prepared(runs, end);
    runs.kafka.deleteTopic("out.checkpoints");
    await undecided(runs, committable, /no topic "out\.checkpoints"/);
  });

  Deno.test(`${end}: with a marker topic that was made anew it cannot be told`, async () => {
    const runs = new Runs(), committable = await prepared(runs, end);
    runs.kafka.deleteTopic("out.checkpoints");
    runs.kafka.createTopic("out.checkpoints");
    await undecided(runs, committable, /made anew/);
    runs.kafka.write("out.checkpoints", 0, Array.from({ length: 20 }, () => ({ key: "sums", value: "{}" })));
    await undecided(runs, committable, /made anew/);
  });

  Deno.test(`${end}: where the place of the marker was deleted it cannot be told`, async () => {
    const runs = new Runs(), committable = await prepared(runs, end);
    const { end: behind } = runs.kafka.partition({ topic: "out.checkpoints", partition: 0 });
    runs.kafka.deleteRecords("out.checkpoints", 0, behind);
    await undecided(runs, committable, /deleted/);
  });

  Deno.test(`${end}: the transaction of another producer is waited for; one that does not end is no answer`, async () => {
    const runs = new Runs(), { clock, kafka } = runs;
    kafka.createTopic("out.checkpoints");
    kafka.initTransactions("other", 900_000);
    const open = kafka.begin("other");
    kafka.write("out.checkpoints", 0, [{ key: "other", value: "{}" }], open);
    const committable = await prepared(runs, end);
    const waiting = rejected(runs.recover(committable));
    await clock.advance("61s");
    const error = await waiting;
    assert.equal(error.code, "checkpoint_undecided");
    assert.match(error.message, /another producer/);
    let outcome: Recovered | undefined;
    const asking = (async () => outcome = await runs.recover(committable))();
    await clock.advance("20s");
    assert.equal(outcome, undefined);
    kafka.end(open, "abort");
    await clock.advance("1s");
    await asking;
    assert.equal(outcome, end === "commit" ? "committed" : "lost");
  });

  Deno.test(`${end}: a marker whose offset the broker did not say is looked for from the start of the run`, async () => {
    const kafka = newKafka();
    kafka.createTopic("out.checkpoints");
    kafka.write("out.checkpoints", 0, [{ key: "other", value: "{}" }, { key: "other", value: "{}" }]);
    kafka.deleteRecords("out.checkpoints", 0, 1);
    const runs = new Runs(kafka, { client: withoutOffsets(kafka) }), committable = await prepared(runs, end);
    assert.equal(await runs.recover(committable), end === "commit" ? "committed" : "lost");
    kafka.deleteRecords("out.checkpoints", 0, 3);
    await undecided(runs, committable, /deleted/);
    kafka.deleteTopic("out.checkpoints");
    kafka.createTopic("out.checkpoints");
    await undecided(runs, committable, /made anew/);
  });

  Deno.test(`${end}: markers of others, of other runs and other checkpoints are no answer`, async () => {
    const kafka = newKafka(), runs = new Runs(kafka, { client: withoutOffsets(kafka) });
    await runs.open();
    await runs.write(1);
    const committable = await runs.prepare(2) as { run: string };
    if (end === "commit") await runs.commit(committable);
    runs.crash();
    const { run } = committable;
    const others = [
      { key: "other", value: JSON.stringify({ run, checkpoint: 2 }) },
      { key: "sums", value: JSON.stringify({ run: "9.9", checkpoint: 2 }) },
      { key: "sums", value: JSON.stringify({ run, checkpoint: 3 }) },
      { key: "sums", value: "no JSON" },
      { key: "sums", value: "null" },
      { key: "sums", value: null },
      { key: null, value: "null" },
    ];
    kafka.write("out.checkpoints", 0, others);
    assert.equal(await runs.recover(committable), end === "commit" ? "committed" : "lost");
  });
}

/** A cluster whose answers do not say where a batch was written. */
function withoutOffsets(kafka: FakeKafka): FakeKafka["connect"] {
  return (connection, context) => {
    const made = kafka.connect(connection, context), start = made.transactionalProducer.bind(made);
    made.transactionalProducer = async (options, call) => {
      const inner = await start(options, call), send = inner.send.bind(inner);
      inner.send = async (batches, call) =>
        (await send(batches, call)).map((written) => ({ ...written, baseOffset: -1 }));
      return inner;
    };
    return made;
  };
}

Deno.test("a broker that is away is no answer either", async () => {
  const runs = new Runs(), committable = await prepared(runs, "commit");
  for (const call of ["initTransactions", "listOffsets", "poll"] as const) {
    runs.kafka.fail(call, new KafkaError("kafka_unreachable", "away", { retriable: true }));
    assert.equal((await rejected(runs.recover(committable))).code, "kafka_unreachable");
    runs.kafka.heal();
  }
  runs.kafka.hold("poll");
  const waiting = rejected(runs.recover(committable));
  await runs.clock.advance("61s");
  assert.equal((await waiting).code, "checkpoint_undecided");
});

Deno.test("recovering fences first: what is open then can neither be committed later nor hide the marker", async () => {
  const runs = new Runs();
  await runs.open();
  await runs.write(1);
  const committable = await runs.prepare(1);
  const zombie = runs.writer;
  assert.equal(await runs.recover(committable), "lost");
  assert.ok(await rejected(zombie.commit!(committable)) instanceof FencedError);
  runs.sees();
  const order = runs.kafka.calls.filter((call) => /initTransactions|listOffsets/.test(call)).slice(-4);
  assert.match(order[0]!, /initTransactions/);
  await zombie.close("failed");
});

Deno.test("a run that gives up while recovering stops waiting", async () => {
  const runs = new Runs(), committable = await prepared(runs, "commit");
  const gone = new AbortController(), reason = new Error("given up");
  runs.kafka.hold("poll");
  const recovering = runs.sink.recover!(committable, { ...runs.context, signal: gone.signal });
  await settle();
  gone.abort(reason);
  await assert.rejects(async () => await recovering, reason);
  assert.equal(runs.kafka.clients.size, 1);
});

Deno.test("a check says what a start would do, and does nothing of it", async () => {
  const kafka = newKafka();
  const check = async (checkpointInterval: number | undefined, options = {}) =>
    await sinkOn(kafka, options).check!({ ...sinkContext(), checkpointInterval });
  const topic = { ok: true, text: 'topic "out" at b:9092, 1 partition' };
  assert.deepEqual(await check(10_000), [
    topic,
    { ok: true, text: "transactions may take 10m, checkpoints are 10s apart" },
    { ok: true, text: 'marker topic "out.checkpoints" will be made' },
  ]);
  assert.equal(
    (await check(undefined)).find(({ ok }) => !ok)?.hint,
    "switch checkpointing on with an interval",
  );
  assert.equal(
    (await rejected(check(10_000, { transactionTimeout: "16m" }))).code,
    "kafka_transaction_timeout",
  );
  assert.deepEqual([kafka.transactionalIds.size, kafka.hasTopic("out.checkpoints")], [0, false]);
  await running(async (runs) => {
    await runs.open();
    await runs.write(1);
    const first = await runs.prepare(1);
    const findings = await check(10_000);
    assert.deepEqual(findings[2], { ok: true, text: 'marker topic "out.checkpoints"' });
    assert.match(findings[3]!.text, /"sums" has an open transaction/);
    await runs.commit(first); // it was not fenced
  }, new Runs(kafka));
});
