/**
 * The Kafka source over a cluster in memory: reading, positions, decoding, errors. Groups: see `source/group_test.ts`.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { RecordsRead } from "../../lib/connector.ts";
import { bytesFormat, jsonFormat, stringFormat } from "../../lib/format/mod.ts";
import { failure, sourceContract } from "../../lib/testing/source_contract.ts";
import { settle, VirtualClock } from "../../lib/testing/virtual_clock.ts";
import { kafkaSource } from "./kafka_source.ts";
import { cluster, Driven, write } from "./source/kit_test.ts";
import { FakeKafka } from "./testing/fake_client.ts";
import { KafkaError, OffsetOutOfRangeError } from "./errors.ts";

const connection = { brokers: ["fake:9092"] };

/** A partition with all there can be in one: transactions, gaps, markers, tombstones, what cannot be decoded. */
function variedTopic(): FakeKafka {
  const kafka = cluster(new FakeKafka(new VirtualClock()));
  write(kafka, "t/0", 0, 1, 2);
  kafka.write("t", 0, [{ key: "k", value: null }, { key: "k", value: "{" }, {
    value: '"x"',
    headers: [["h", new Uint8Array([1])]],
  }]);
  const aborted = kafka.begin("a"), committed = kafka.begin("b");
  kafka.write("t", 0, [{ value: '"aborted"' }], aborted);
  kafka.write("t", 0, [{ value: '"committed"' }], committed);
  kafka.write("t", 0, [{ value: '"aborted too"' }], aborted);
  kafka.end(aborted, "abort");
  kafka.end(committed, "commit");
  write(kafka, "t/0", 3, 4, 5);
  kafka.compact("t", 0, [1, 12]);
  return kafka;
}

sourceContract({
  name: "kafka source",
  setUp: () => ({
    source: kafkaSource({
      ...connection,
      topics: ["t"],
      until: "end",
      sasl: { mechanism: "plain", username: "u", password: "geheim" },
      client: variedTopic().connect,
    }),
  }),
  expected: [{ split: "t/0", records: [0, 2, null, failure("not_json"), "x", "committed", 3, 5] }],
  positions: "replays",
  waiting: () => ({
    source: kafkaSource({
      ...connection,
      topics: ["t"],
      client: cluster(new FakeKafka(new VirtualClock())).connect,
    }),
  }),
  secrets: ["geheim"],
});

function world(partitions = 1) {
  const clock = new VirtualClock();
  return { clock, kafka: cluster(new FakeKafka(clock), partitions) };
}

Deno.test("a read has the key, headers, time and offset of each record", async () => {
  const { kafka } = world();
  const headers = [["a", new Uint8Array([1])], ["b", new Uint8Array()], ["a", new Uint8Array([2])]] as const;
  kafka.write("t", 0, [
    { key: "k1", value: "1", timestamp: 1000, headers },
    { value: "2", timestamp: 900 },
    { key: "", value: "3", timestamp: -5 },
  ]);
  const driven = await Driven.open(kafka, {});
  const read = driven.reads.find(({ kind }) => kind === "records") as RecordsRead;
  assert.deepEqual(read.values, [1, 2, 3]);
  assert.deepEqual(read.keys, ["k1", null, ""]);
  assert.deepEqual([...read.timestamps!], [1000, 900, -5]);
  assert.equal(read.firstOffset, 0);
  assert.deepEqual(read.headers, [headers, undefined, undefined]);
  assert.deepEqual(read.texts!.map((text) => new TextDecoder().decode(text as Uint8Array)), ["1", "2", "3"]);
  assert.equal(read.position, 3);
  await driven.close();
});

Deno.test("a tombstone is null, an empty value is not; a record that cannot be decoded is a failure in its place", async () => {
  const { kafka } = world();
  kafka.write("t", 0, [
    { key: "k", value: "1" },
    { key: "k", value: "" },
    { key: "k", value: null },
    { key: new Uint8Array([0xff]), value: "2" },
    { key: "k", value: "3" },
  ]);
  const driven = await Driven.open(kafka, {});
  const read = driven.reads.find(({ kind }) => kind === "records") as RecordsRead;
  assert.deepEqual(read.values, [1, null, 3]);
  assert.deepEqual([...read.offsets!], [0, 2, 4]);
  assert.deepEqual(
    read.failures!.map(({ before, offset, key }) => [before, offset, key]),
    [[1, 1, "k"], [2, 3, new Uint8Array([0xff])]],
  );
  assert.deepEqual(read.failures![1]!.text, new TextEncoder().encode("2"));
  assert.deepEqual([read.keys!.length, read.texts!.length, read.timestamps!.length], [3, 3, 3]);
  await driven.close();
});

Deno.test("keys and values have formats of their own", async () => {
  const { kafka } = world();
  kafka.write("t", 0, [{ key: '{"id":7}', value: new Uint8Array([1, 2]) }, { value: null }]);
  const driven = await Driven.open(kafka, { format: bytesFormat(), keyFormat: jsonFormat() });
  const read = driven.reads.find(({ kind }) => kind === "records") as RecordsRead;
  assert.deepEqual(read.values, [new Uint8Array([1, 2]), null]);
  assert.deepEqual(read.keys, [{ id: 7 }, null]);
  await driven.close();
  const texts = await Driven.open(kafka, { format: stringFormat(), topics: ["t"] });
  assert.deepEqual(texts.values, ["\x01\x02", null]);
  await texts.close();
});

Deno.test("start: earliest, latest, a time, offsets", async () => {
  const { kafka } = world(2);
  kafka.write("t", 0, [10, 20, 30].map((time) => ({ value: `${time}`, timestamp: time })));
  kafka.write("t", 1, [{ value: "1", timestamp: 5 }]);
  const begins = async (start: Parameters<typeof kafkaSource>[0]["start"]) => {
    const driven = await Driven.open(kafka, start === undefined ? {} : { start });
    write(kafka, "t/0", 0);
    await settle();
    const begin = driven.values;
    await driven.close();
    kafka.partition({ topic: "t", partition: 0 }).entries.pop();
    kafka.partition({ topic: "t", partition: 0 }).end--;
    return begin;
  };
  assert.deepEqual(await begins(undefined), [10, 20, 30, 1, 0]);
  assert.deepEqual(await begins("latest"), [0]);
  assert.deepEqual(await begins({ timestamp: 15 }), [20, 30, 0]);
  assert.deepEqual(await begins({ offsets: { "t/0": 2 } }), [30, 1, 0]);
});

Deno.test("restored positions win over start; a partition the checkpoint does not know is new, and read from its first record", async () => {
  const { kafka } = world(2);
  write(kafka, "t/0", 0, 1, 2);
  write(kafka, "t/1", 10);
  const driven = await Driven.open(kafka, { start: "latest" }, { restored: { "t/0": 2 } });
  assert.deepEqual(driven.values.toSorted(), [10, 2]);
  await driven.close();
});

Deno.test("a position that is no offset is refused, with its split", async () => {
  const { kafka } = world();
  await assert.rejects(
    Driven.open(kafka, {}, { restored: { "t/0": { bytes: 3 } } }),
    { code: "invalid_position", message: 'split "t/0": {"bytes":3} is no offset' },
  );
  assert.equal(kafka.clients.size, 0, "what was opened is closed");
});

Deno.test("with checkpoints the position is known from the start: what comes while the process is down is not passed over", async () => {
  const { kafka } = world();
  write(kafka, "t/0", 0, 1);
  const first = await Driven.open(kafka, { start: "latest" }, { checkpoints: true });
  assert.deepEqual(first.log, ["split t/0", "t/0:  → 2"]);
  await first.close();
  write(kafka, "t/0", 2);
  const second = await Driven.open(kafka, { start: "latest" }, {
    checkpoints: true,
    restored: Object.fromEntries(first.positions),
  });
  assert.deepEqual(second.values, [2]);
  await second.close();
});

Deno.test("E10: commit, abort, commit of one producer: only what is committed comes, and only when it is", async () => {
  const { kafka } = world();
  for (const [value, how] of [[1, "commit"], [2, "abort"], [3, "commit"]] as const) {
    const transaction = kafka.begin("p");
    kafka.write("t", 0, [{ value: `${value}` }], transaction);
    kafka.end(transaction, how);
  }
  const open = kafka.begin("p");
  kafka.write("t", 0, [{ value: "4" }], open);
  write(kafka, "t/0", 5);
  const committed = await Driven.open(kafka, {});
  assert.deepEqual(committed.values, [1, 3]);
  const all = await Driven.open(kafka, { isolation: "read_uncommitted" });
  assert.deepEqual(all.values, [1, 2, 3, 4, 5]);
  kafka.end(open, "commit");
  await settle();
  assert.deepEqual(committed.values, [1, 3, 4, 5]);
  await Promise.all([committed.close(), all.close()]);
});

Deno.test("E9: behind markers and aborted records the position moves on, no lag is left, and the checkpoint knows", async () => {
  const { kafka } = world();
  const transaction = kafka.begin("p");
  kafka.write("t", 0, [{ value: "1" }], transaction);
  kafka.end(transaction, "commit"); // offset 1 is its marker
  const driven = await Driven.open(kafka, {}, { checkpoints: true });
  assert.deepEqual(driven.log, ["split t/0", "t/0:  → 0", "t/0: 1 → 2"]);
  assert.deepEqual(driven.reader.lag(), [{ split: "t/0", end: 0, stable: 0 }]);
  const aborted = kafka.begin("p");
  kafka.write("t", 0, [{ value: "2" }], aborted);
  await settle();
  assert.deepEqual(driven.log.length, 3, "it is open");
  kafka.end(aborted, "abort");
  await settle();
  assert.deepEqual(driven.log.at(-1), "t/0:  → 4");
  assert.deepEqual(driven.reader.lag(), [{ split: "t/0", end: 0, stable: 0 }]);
  await driven.close();
  kafka.deleteRecords("t", 0, 4); // retention takes all of it
  const again = await Driven.open(kafka, {}, {
    restored: Object.fromEntries(driven.positions),
    checkpoints: true,
  });
  assert.equal(again.error, undefined, "nothing was lost");
  await again.close();
});

Deno.test("lag counts to the last record, and to what can be seen of it", async () => {
  const { kafka } = world();
  write(kafka, "t/0", 1, 2, 3);
  const open = kafka.begin("p");
  kafka.write("t", 0, [{ value: "4" }, { value: "5" }], open);
  const driven = await Driven.open(kafka, {}, { batchSize: 1 });
  assert.deepEqual(driven.reader.lag(), [{ split: "t/0", end: 2, stable: 0 }]);
  kafka.end(open, "commit");
  driven.pause();
  await settle();
  assert.deepEqual(driven.values, [1, 2, 3, 4]);
  assert.deepEqual(driven.reader.lag(), [{ split: "t/0", end: 2, stable: 2 }], "5 and the marker");
  await driven.close();
});

Deno.test("W1: a split is empty when a fetch says so, and only then", async () => {
  const { kafka, clock } = world(2);
  write(kafka, "t/0", 1);
  const driven = await Driven.open(kafka, {});
  driven.empties.length = 0;
  await clock.advance(600);
  assert.deepEqual(driven.empties.toSorted(), ["t/0", "t/1"]);
  driven.pause();
  write(kafka, "t/0", 2);
  await settle();
  await clock.advance("10m"); // it works on the record all the time
  assert.ok(driven.empties.length <= 4, `${driven.empties.length}`);
  await driven.close();
});

Deno.test("W1: hidden records do not keep a split from being empty", async () => {
  const { kafka } = world();
  const driven = await Driven.open(kafka, {});
  const aborted = kafka.begin("p");
  kafka.write("t", 0, [{ value: "1" }], aborted);
  kafka.end(aborted, "abort");
  await settle();
  assert.deepEqual(driven.empties, ["t/0"]);
  await driven.close();
});

Deno.test("B2: the share of a partition is the budget by the number of partitions", async () => {
  const { kafka } = world(8);
  const driven = await Driven.open(kafka, { prefetchBytes: 64 * 1024 });
  const limits = driven.client.fetchers.at(-1)!.options;
  assert.ok(limits.maxPartitionBytes! * 8 * 2 <= 64 * 1024, `${limits.maxPartitionBytes}`);
  assert.ok(limits.maxBytes! * 2 <= 64 * 1024);
  kafka.growTopic("t", 16);
  await (kafka.clock as VirtualClock).advance("31s");
  assert.ok(driven.client.fetchers.at(-1)!.options.maxPartitionBytes! * 16 * 2 <= 64 * 1024);
  await driven.close();
});

Deno.test("B2: while nobody asks, nothing more is fetched", async () => {
  const { kafka } = world();
  for (let i = 0; i < 50; i++) kafka.write("t", 0, [{ value: JSON.stringify("x".repeat(1000)) }]);
  const driven = await Driven.open(kafka, { prefetchBytes: 8 * 1024 });
  assert.equal(driven.values.length, 50);
  driven.pause();
  for (let i = 0; i < 50; i++) kafka.write("t", 0, [{ value: JSON.stringify("x".repeat(1000)) }]);
  await settle();
  const polls = kafka.calls.filter((call) => call.startsWith("poll")).length;
  await (kafka.clock as VirtualClock).advance("1m");
  assert.equal(kafka.calls.filter((call) => call.startsWith("poll")).length, polls);
  await driven.resume();
  assert.equal(driven.values.length, 100);
  await driven.close();
});

Deno.test("B4: a partition with much to read lets the others have their turn", async () => {
  const { kafka } = world(3);
  write(kafka, "t/0", ...Array.from({ length: 1000 }, (_, i) => i));
  write(kafka, "t/1", "b");
  write(kafka, "t/2", "c");
  const driven = await Driven.open(kafka, {}, { batchSize: 10 });
  const order = driven.reads.flatMap((read) => read.kind === "records" ? [read.split] : []);
  assert.deepEqual(order.slice(0, 3).toSorted(), ["t/0", "t/1", "t/2"]);
  assert.equal(driven.values.length, 1002);
  await driven.close();
});

Deno.test("B4: a source that waits leaves nothing behind", async () => {
  const { kafka, clock } = world(2);
  const driven = await Driven.open(kafka, {});
  await clock.advance("1m");
  const alarms = clock.alarms;
  await clock.advance("5m");
  assert.equal(clock.alarms, alarms);
  await driven.close();
  assert.equal(clock.alarms, 0);
  assert.equal(kafka.clients.size, 0);
});

Deno.test("R3: a position that retention has deleted ends the run and names both offsets", async () => {
  const { kafka } = world();
  write(kafka, "t/0", 0, 1, 2, 3);
  kafka.deleteRecords("t", 0, 3);
  const driven = await Driven.open(kafka, {}, { restored: { "t/0": 1 } });
  assert.ok(driven.error instanceof OffsetOutOfRangeError);
  assert.match(driven.error.message, /t\/0 has no offset 1: it has 3 to 4/);
  assert.ok(driven.error.hint);
  await driven.close();
});

Deno.test("R3: with onOffsetLost it goes on where it is told to, and says what is lost", async () => {
  for (const [onOffsetLost, values, goesOnAt] of [["earliest", [3, 4], 3], ["latest", [4], 4]] as const) {
    const { kafka } = world(2);
    write(kafka, "t/0", 0, 1, 2, 3);
    kafka.deleteRecords("t", 0, 3);
    const driven = await Driven.open(kafka, { onOffsetLost }, {
      restored: { "t/0": 1, "t/1": 0 },
      checkpoints: true,
    });
    write(kafka, "t/0", 4);
    write(kafka, "t/1", 9);
    await settle();
    assert.deepEqual(driven.values.toSorted(), [...values, 9]);
    assert.equal(driven.error, undefined);
    assert.deepEqual(driven.said("warn"), [
      `records were deleted before they were read {"source":"in","split":"t/0","wanted":1,"goesOnAt":${goesOnAt},"onOffsetLost":"${onOffsetLost}"}`,
    ]);
    assert.equal(driven.positions.get("t/0"), 5);
    await driven.close();
  }
});

Deno.test("R3: a topic that was made anew is not read from the old offsets", async () => {
  const { kafka } = world();
  write(kafka, "t/0", 0);
  const driven = await Driven.open(kafka, { onOffsetLost: "earliest" }, { restored: { "t/0": 77 } });
  assert.deepEqual(driven.values, [0]);
  await driven.close();
});

Deno.test("R5: new partitions are found, and read from their first record whatever start says", async () => {
  const { kafka, clock } = world();
  write(kafka, "t/0", 0);
  const driven = await Driven.open(kafka, { start: "latest" }, { checkpoints: true });
  kafka.growTopic("t", 2);
  write(kafka, "t/1", 1, 2);
  write(kafka, "t/0", 3);
  await clock.advance("31s");
  assert.deepEqual(driven.log, [
    "split t/0",
    "t/0:  → 1",
    "t/0: 3 → 2",
    "added t/1",
    "t/1:  → 0",
    "t/1: 1,2 → 2",
  ]);
  await driven.close();
});

Deno.test("R5: topics of a pattern are found when they are made; the broker's own and others are not", async () => {
  const { kafka, clock } = world();
  kafka.createTopic("orders-eu");
  kafka.createTopic("__orders-x");
  write(kafka, "orders-eu/0", 1);
  const driven = await Driven.open(kafka, { pattern: /orders-/g });
  kafka.createTopic("orders-us");
  write(kafka, "orders-us/0", 2);
  kafka.createTopic("invoices");
  await clock.advance("31s");
  assert.deepEqual(driven.log, [
    "split orders-eu/0",
    "orders-eu/0: 1 → 1",
    "added orders-us/0",
    "orders-us/0: 2 → 1",
  ]);
  await driven.close();
});

Deno.test("R5: a look for new partitions that fails is said, and the next one comes", async () => {
  const { kafka, clock } = world();
  const driven = await Driven.open(kafka, {});
  kafka.fail("requireTopics", new KafkaError("kafka_unreachable", "away"));
  kafka.growTopic("t", 2);
  write(kafka, "t/1", 1);
  await clock.advance("31s");
  assert.deepEqual(driven.values, []);
  assert.deepEqual(driven.said("warn"), ['looking for new partitions failed {"source":"in","error":"away"}']);
  await clock.advance("31s");
  assert.deepEqual(driven.values, [1]);
  await driven.close();
});

Deno.test("R5: with discovery false nothing is looked for", async () => {
  const { kafka, clock } = world();
  const driven = await Driven.open(kafka, { discovery: false });
  const calls = kafka.calls.filter((call) => call.startsWith("requireTopics")).length;
  await clock.advance("5m");
  assert.equal(kafka.calls.filter((call) => call.startsWith("requireTopics")).length, calls);
  await driven.close();
});

Deno.test("R7: a partition the brokers hide is read from where the checkpoint has it when it is back", async () => {
  const { kafka, clock } = world(2);
  write(kafka, "t/1", 0, 1, 2);
  const hidden = kafka.topic("t").partitions.pop()!;
  const driven = await Driven.open(kafka, { start: "latest" }, {
    restored: { "t/0": 0, "t/1": 2 },
    checkpoints: true,
  });
  assert.deepEqual(driven.reader.splits, ["t/0", "t/1"]);
  assert.equal(driven.positions.get("t/1"), 2, "it stays in the checkpoint");
  kafka.topic("t").partitions.push(hidden);
  kafka.changed();
  await clock.advance("1s");
  assert.deepEqual(driven.values, [2]);
  await driven.close();
});

Deno.test("a split of the checkpoint that belongs to a topic which is not read any more is given up, and it is said", async () => {
  const { kafka } = world();
  const driven = await Driven.open(kafka, {}, { restored: { "old/0": 3, "t/0": 0 }, checkpoints: true });
  assert.deepEqual(driven.log, ["split t/0", "removed old/0"]);
  assert.equal(driven.said("warn").length, 1);
  await driven.close();
});

Deno.test("until end: what there was at the start is read, in every partition, and no more", async () => {
  const { kafka } = world(3);
  write(kafka, "t/0", 1, 2);
  const transaction = kafka.begin("p");
  kafka.write("t", 1, [{ value: "3" }], transaction);
  kafka.end(transaction, "commit");
  const open = kafka.begin("q");
  kafka.write("t", 0, [{ value: "4" }], open);
  const held = kafka.hold("poll");
  const driven = Driven.start(kafka, { until: "end" });
  await driven.opened;
  await held.reached;
  write(kafka, "t/1", 5);
  kafka.end(open, "commit");
  held.release();
  await settle();
  assert.deepEqual(driven.values.toSorted(), [1, 2, 3]);
  assert.deepEqual(driven.log.filter((line) => line.startsWith("ended")).toSorted(), [
    "ended t/0",
    "ended t/1",
    "ended t/2",
  ]);
  assert.equal(driven.log.at(-1), "end");
  assert.deepEqual(driven.reader.progress(), { done: 4, total: 4 });
  assert.deepEqual(
    driven.client.fetchers.map(({ assigned }) => assigned),
    [[]],
    "nothing is fetched that is not wanted",
  );
  await driven.close();
});

Deno.test("until end: behind nothing but hidden records it ends as well", async () => {
  const { kafka } = world();
  const transaction = kafka.begin("p");
  kafka.write("t", 0, [{ value: "3" }], transaction);
  kafka.end(transaction, "abort");
  const driven = await Driven.open(kafka, { until: "end" });
  assert.deepEqual(driven.log, ["split t/0", "ended t/0", "end"]);
  await driven.close();
});

Deno.test("only the partitions that are asked for", async () => {
  const { kafka } = world(3);
  for (const partition of [0, 1, 2]) write(kafka, `t/${partition}`, partition);
  const driven = await Driven.open(kafka, { partitions: [2, 0], until: "end" });
  assert.deepEqual(driven.values.toSorted(), [0, 2]);
  await driven.close();
  await assert.rejects(Driven.open(kafka, { partitions: [3] }), {
    code: "kafka_unknown_topic",
    message: 'kafka source: topic "t" has 3 partitions, and none with the number 3',
  });
});

Deno.test("a topic that does not exist is named, with those that may have been meant", async () => {
  const kafka = new FakeKafka(new VirtualClock());
  kafka.createTopic("orders");
  await assert.rejects(Driven.open(kafka, { topics: ["order"] }), {
    code: "kafka_unknown_topic",
    message: 'kafka source: topic "order" not found',
    hint: 'did you mean "orders"?',
  });
  await assert.rejects(Driven.open(kafka, { topics: ["orders", "x", "y"] }), {
    message: 'kafka source: topics "x", "y" not found',
    hint: "there are: orders",
  });
  assert.equal(kafka.clients.size, 0);
});

Deno.test("errors of the connection say what to look at", async () => {
  const cases = [
    ["kafka_authentication_failed", {}, /give `sasl`/],
    [
      "kafka_authentication_failed",
      { sasl: { mechanism: "plain", username: "u", password: "p" } },
      /mechanism \(plain\)/,
    ],
    ["kafka_tls", {}, /give `tls`/],
    ["kafka_tls", { tls: {} }, /ca, cert, key, serverName/],
    ["kafka_not_authorised", { groupId: "g" }, /READ on the group "g"/],
    ["kafka_unreachable", {}, /tls is off, sasl is off/],
  ] as const;
  for (const [code, options, hint] of cases) {
    const { kafka } = world();
    kafka.fail("requireTopics", new KafkaError(code, "no"));
    const error = await Driven.open(kafka, options).then(() => undefined, (error) => error);
    assert.ok(error instanceof KafkaError);
    assert.equal(error.code, code);
    assert.match(error.hint!, hint);
    if (code === "kafka_unreachable") assert.match(error.message, /tried fake:9092/);
    assert.equal(kafka.clients.size, 0);
  }
});

Deno.test("what goes wrong while reading ends the run, with a hint", async () => {
  const { kafka } = world();
  kafka.fail("poll", new KafkaError("kafka_not_authorised", "topic t: not authorised"));
  const driven = await Driven.open(kafka, {});
  assert.equal((driven.error as KafkaError).code, "kafka_not_authorised");
  assert.match((driven.error as KafkaError).hint!, /READ and DESCRIBE/);
  await driven.close();
});

Deno.test("what is fetched is dropped where others turn out to be further", async () => {
  const clock = new VirtualClock(), kafka = cluster(new FakeKafka(clock));
  write(kafka, "t/0", 0, 1, 2, 3, 4);
  const driven = await Driven.open(kafka, { groupId: "g" }, { batchSize: 1, byHand: true });
  const read = async () => (await driven.reader.read() as RecordsRead).values;
  assert.deepEqual(await read(), [0]);
  const held = kafka.hold("committedOffsets");
  kafka.group("g").rebalance();
  await held.reached;
  kafka.group("g").store([{ topic: "t", partition: 0, offset: 3 }]);
  held.release();
  await settle();
  assert.deepEqual([await read(), await read()], [[3], [4]]);
  await driven.reader.close("done");
});

Deno.test("R8: what is fetched of a partition that is not read is ignored", async () => {
  const { kafka } = world(2);
  write(kafka, "t/0", 0);
  const driven = await Driven.open(kafka, { partitions: [0] });
  const fetcher = driven.client.fetchers[0]!;
  fetcher.assign({ topic: "t", partition: 1 }, 0); // a client that answers for what was not asked for
  write(kafka, "t/1", 1);
  write(kafka, "t/0", 2);
  await settle();
  assert.deepEqual(driven.values, [0, 2]);
  assert.deepEqual([...driven.positions], [["t/0", 2]]);
  await driven.close();
});

Deno.test("settings that make no sense are refused", () => {
  const code = "invalid_kafka_options";
  const cases: [Parameters<typeof kafkaSource>[0], RegExp][] = [
    [{ brokers: [], topics: ["t"] }, /`brokers` are missing/],
    [{ ...connection }, /say which `topics`/],
    [{ ...connection, topics: ["t"], pattern: /t/ }, /say which `topics`/],
    [{ ...connection, topics: [""] }, /no name/],
    [{ ...connection, topics: ["t"], partitions: [0], groupId: "g" }, /the group decides/],
    [{ ...connection, topics: ["t"], partitions: [-1] }, /numbers from 0/],
    [{ ...connection, topics: ["t"], start: { offsets: { t: 3 } } }, /by topic\/partition/],
    [{ ...connection, topics: ["t"], start: { timestamp: NaN } }, /milliseconds/],
    [
      { ...connection, topics: ["t"], start: "first" as "latest" },
      /start is one of earliest, latest, got "first"/,
    ],
    [{ ...connection, topics: ["t"], prefetchBytes: 0 }, /prefetchBytes is more than 0/],
    [{ ...connection, topics: ["t"], instanceId: "i" }, /needs a groupId/],
  ];
  for (const [options, message] of cases) assert.throws(() => kafkaSource(options), { code, message });
});
