/**
 * The Kafka source in a group, over a cluster in memory: partitions that change hands, offsets, state by key.
 *
 * @module
 */
import assert from "node:assert/strict";
import { settle, VirtualClock } from "../../../lib/testing/virtual_clock.ts";
import { codeOf } from "../../../lib/errors.ts";
import type { KafkaSourceOptions } from "../kafka_source.ts";
import { FakeClient, FakeKafka } from "../testing/fake_client.ts";
import { KafkaError } from "../errors.ts";
import { cluster, Driven, type DriveOptions, write } from "./kit_test.ts";

function world(partitions = 4) {
  const clock = new VirtualClock(), kafka = cluster(new FakeKafka(clock), partitions);
  const start = (drive: DriveOptions = { checkpoints: true }, options: Partial<KafkaSourceOptions> = {}) =>
    Driven.start(kafka, { groupId: "g", ...options }, drive);
  const open = async (drive?: DriveOptions, options?: Partial<KafkaSourceOptions>) => {
    const driven = start(drive, options);
    await driven.opened;
    await settle();
    return driven;
  };
  const writeAll = (from: number, to: number) => {
    for (let i = from; i < to; i++) write(kafka, `t/${i % partitions}`, i);
  };
  return { clock, kafka, start, open, writeAll };
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
const sorted = (...lists: unknown[][]) => (lists.flat() as number[]).toSorted((a, b) => a - b);
const splitsOf = ({ log }: Driven) =>
  log.filter((line) => line.startsWith("split")).map((line) => line.slice(6));

Deno.test("C1: nothing is committed to the group before a checkpoint is complete; then what it stands for is", async () => {
  const { kafka, clock, open, writeAll } = world(2);
  writeAll(0, 6);
  const driven = await open();
  assert.deepEqual(driven.values.length, 6);
  await clock.advance("1m");
  assert.deepEqual(kafka.committed("g"), {});
  const positions = new Map(driven.positions);
  writeAll(6, 8);
  await settle();
  await driven.reader.checkpointed(positions);
  assert.deepEqual(kafka.committed("g"), { "t/0": 3, "t/1": 3 });
  await driven.close("done");
  assert.deepEqual(kafka.committed("g"), { "t/0": 3, "t/1": 3 });
});

Deno.test("C1: what failed to be committed is reported to whoever told of the checkpoint, and comes with the next one", async () => {
  const { kafka, open, writeAll } = world(1);
  writeAll(0, 2);
  const driven = await open();
  kafka.fail("groupCommit", new KafkaError("kafka_timeout", "no answer"));
  await assert.rejects(driven.checkpoint(), { code: "kafka_timeout" });
  await driven.checkpoint();
  assert.deepEqual(kafka.committed("g"), { "t/0": 2 });
  await driven.close();
});

Deno.test("C3: what has not changed is not committed again", async () => {
  const { kafka, open, writeAll } = world(2);
  writeAll(0, 2);
  const driven = await open();
  await driven.checkpoint();
  write(kafka, "t/1", 2);
  await settle();
  await driven.checkpoint();
  await driven.checkpoint();
  assert.deepEqual(kafka.calls.filter((call) => call.startsWith("groupCommit")), [
    "groupCommit g t/0:1 t/1:1",
    "groupCommit g t/1:2",
  ]);
  await driven.close();
});

Deno.test("C2: without checkpoints, what was handed out before the latest read is committed every 5 s", async () => {
  const { kafka, clock, open } = world(1);
  write(kafka, "t/0", 0, 1, 2);
  const driven = await open({ batchSize: 1 });
  driven.pause();
  write(kafka, "t/0", 3, 4);
  await settle();
  assert.deepEqual(driven.values, [0, 1, 2, 3]);
  await clock.advance("4s");
  assert.deepEqual(kafka.committed("g"), {});
  await clock.advance("2s");
  assert.deepEqual(kafka.committed("g"), { "t/0": 3 }, "3 may not have been worked on");
  await driven.resume();
  await clock.advance("5s");
  assert.deepEqual(kafka.committed("g"), { "t/0": 5 });
  await driven.close();
});

Deno.test("C2: at a regular end all is committed, at another one the latest read is not", async () => {
  for (const [outcome, committed] of [["done", 3], ["failed", 2]] as const) {
    const { kafka, open } = world(1);
    write(kafka, "t/0", 0, 1, 2, 3);
    const { reader } = await open({ batchSize: 1, byHand: true });
    for (let i = 0; i < 3; i++) await reader.read();
    await reader.close(outcome);
    assert.deepEqual(kafka.committed("g"), { "t/0": committed });
  }
});

Deno.test("offsets of the group win over start, and the larger one of group and checkpoint holds", async () => {
  const { kafka, open, writeAll } = world(4);
  writeAll(0, 40);
  kafka.group("g").store([
    { topic: "t", partition: 0, offset: 9 },
    { topic: "t", partition: 1, offset: 2 },
  ]);
  const driven = await open({ checkpoints: true, restored: { "t/1": 8, "t/2": 7 } }, { start: "latest" });
  // 0 from the group, 1 and 2 from the checkpoint; 3 is new to both.
  assert.deepEqual(
    sorted(driven.values),
    sorted([36], [33, 37], [30, 34, 38], range(0, 10).map((i) => i * 4 + 3)),
  );
  await driven.close();
});

Deno.test("start latest in a group: two processes that begin together both begin at the end; a partition made later does not", async () => {
  const { kafka, clock, open, start, writeAll } = world(2);
  writeAll(0, 4);
  const first = await open({ checkpoints: true }, { start: "latest" });
  await first.checkpoint();
  assert.deepEqual(kafka.committed("g"), { "t/0": 2, "t/1": 2 });
  kafka.growTopic("t", 3);
  write(kafka, "t/2", 100);
  await clock.advance("31s");
  assert.deepEqual(first.values, [100]);
  const second = start({ checkpoints: true }, { start: "latest" });
  await second.opened;
  await settle();
  write(kafka, "t/0", 5);
  write(kafka, "t/1", 6);
  await settle();
  assert.deepEqual(sorted(first.values, second.values), [5, 6, 100]);
  await Promise.all([first.close(), second.close()]);
});

Deno.test("R12: 1 → 2 → 1 processes with a slow one: every record once, and the one that stays reads all partitions again", async () => {
  const { kafka, clock, open, start, writeAll } = world(4);
  writeAll(0, 40);
  const slow = await open({ checkpoints: true, batchSize: 2 });
  slow.pause();
  writeAll(40, 80);
  await settle();
  const quick = start();
  await settle();
  assert.deepEqual(slow.requested, 1, "the group waits for it");
  await slow.resume();
  await quick.opened;
  await settle();
  assert.deepEqual([...slow.reader.lag()].map(({ split }) => split), ["t/0", "t/1"]);
  assert.deepEqual(splitsOf(quick), ["t/2", "t/3"]);
  writeAll(80, 120);
  await settle();
  assert.deepEqual(sorted(slow.values, quick.values), range(0, 120));
  await quick.checkpoint();
  await quick.close("done");
  writeAll(120, 160);
  await clock.advance("1s");
  assert.deepEqual(sorted(slow.values, quick.values), range(0, 160));
  assert.equal(slow.error, undefined);
  assert.deepEqual(kafka.members("g").length, 1);
  await slow.close();
});

Deno.test("R1: what was fetched of revoked partitions and not handed out is dropped, and nothing is committed for them", async () => {
  const { kafka, open, start } = world(2);
  write(kafka, "t/1", ...range(0, 10));
  const first = await open({ checkpoints: true, batchSize: 1 });
  await first.checkpoint();
  first.pause();
  write(kafka, "t/1", ...range(10, 20));
  await settle();
  assert.deepEqual(first.values, range(0, 11), "10 is being worked on, the others wait");
  const stale = new Map(first.positions);
  const second = start();
  await second.opened;
  await settle();
  assert.deepEqual(second.values, range(11, 20));
  await second.checkpoint();
  await first.resume();
  assert.deepEqual(first.values, range(0, 11));
  assert.ok(first.log.includes("removed t/1"));
  await first.reader.checkpointed(stale);
  assert.equal(kafka.committed("g")["t/1"], 20);
  await Promise.all([first.close(), second.close()]);
});

Deno.test("R1: a checkpoint that is complete after the group has moved on commits nothing, and that is no failure", async () => {
  const { kafka, open, writeAll } = world(2);
  writeAll(0, 4);
  const driven = await open();
  const held = kafka.hold("groupCommit");
  const told = driven.checkpoint();
  await held.reached;
  kafka.group("g").generation++; // others have gone on
  held.release();
  await told;
  assert.deepEqual(kafka.committed("g"), {});
  assert.equal(driven.said("debug").length, 1);
  await driven.close();
});

Deno.test("G1: when partitions go, a checkpoint is asked for first; who gets them goes on behind it", async () => {
  const { kafka, open, start, writeAll } = world(2);
  writeAll(0, 10);
  const first = await open();
  const before = Promise.withResolvers<void>();
  first.beforeCheckpoint = () => before.promise;
  const second = start();
  await settle();
  assert.deepEqual(kafka.committed("g"), {});
  writeAll(10, 20);
  await settle();
  assert.deepEqual(sorted(first.values), range(0, 10), "nothing is handed out meanwhile");
  before.resolve();
  await second.opened;
  await settle();
  assert.deepEqual(kafka.committed("g"), { "t/0": 5, "t/1": 5 });
  assert.deepEqual(sorted(first.values, second.values), range(0, 20));
  await Promise.all([first.close(), second.close()]);
});

Deno.test("G1: a checkpoint that takes too long is not waited for: the group goes on, what was not committed is read again", async () => {
  const { clock, open, start, writeAll } = world(2);
  writeAll(0, 10);
  const first = await open();
  first.beforeCheckpoint = () => new Promise(() => {});
  const second = start();
  await clock.advance("39s");
  assert.equal(second.log.length, 0);
  await clock.advance("2s"); // the rebalance timeout is 60 s
  await second.opened;
  await settle();
  assert.match(first.said("warn").join(), /not there in time/);
  assert.deepEqual(sorted(second.values), [1, 3, 5, 7, 9]);
  assert.deepEqual(sorted(first.values), range(0, 10), "G2: what it keeps it does not read again");
  assert.equal(first.error, undefined);
  await Promise.all([first.close(), second.close()]);
});

Deno.test("G1: a checkpoint that fails is said, and partitions go all the same", async () => {
  const { open, start, writeAll } = world(2);
  writeAll(0, 4);
  const first = await open();
  first.beforeCheckpoint = () => {
    throw new Error("a sink is away");
  };
  const second = start();
  await second.opened;
  await settle();
  assert.match(first.said("warn").join(), /a sink is away/);
  assert.deepEqual(sorted(second.values), [1, 3]);
  await Promise.all([first.close(), second.close()]);
});

Deno.test("G1: where nothing was handed out since the last checkpoint, none is asked for", async () => {
  const { open, start, writeAll } = world(2);
  writeAll(0, 4);
  const first = await open();
  await first.checkpoint();
  const second = start();
  await second.opened;
  assert.equal(first.requested, 1);
  await Promise.all([first.close(), second.close()]);
});

Deno.test("G1: without checkpoints all that was handed out is committed before partitions go", async () => {
  const { kafka, open, start, writeAll } = world(2);
  writeAll(0, 10);
  const first = await open({});
  const second = start({});
  await second.opened;
  await settle();
  assert.deepEqual(kafka.committed("g"), { "t/0": 5, "t/1": 5 });
  assert.deepEqual(second.values, []);
  await Promise.all([first.close(), second.close()]);
});

Deno.test("G3: lost partitions are gone at once, without a checkpoint; what comes back is read on where this process was", async () => {
  const { kafka, open, start, writeAll } = world(2);
  writeAll(0, 10);
  const first = await open();
  const second = start();
  await second.opened;
  await settle();
  writeAll(10, 20);
  await settle();
  assert.equal(first.requested, 1);
  const held = kafka.hold("join");
  kafka.expire("g", kafka.members("g")[0]!);
  await held.reached;
  await settle();
  assert.equal(first.requested, 1, "no checkpoint");
  assert.ok(first.log.includes("removed t/0"));
  assert.match(first.said("warn").join(), /partitions lost/);
  assert.deepEqual(
    sorted(second.values).filter((value) => value % 2 === 0),
    [10, 12, 14, 16, 18],
    "not committed: again",
  );
  second.beforeCheckpoint = () => {
    throw new Error("a sink is away");
  };
  held.release();
  await settle();
  writeAll(20, 30);
  await settle();
  assert.deepEqual([...new Set(sorted(first.values, second.values))], range(0, 30));
  assert.equal(first.values.length, new Set(first.values).size, "no record twice in one process");
  assert.deepEqual(first.log.filter((line) => /added/.test(line)), ["added t/0"]);
  await Promise.all([first.close(), second.close()]);
});

Deno.test("R2: a rebalance while positions are looked up: the look-up is given up, and what is assigned then is read", async () => {
  const { kafka, start, writeAll } = world(4);
  writeAll(0, 16);
  const held = kafka.hold("committedOffsets");
  const first = start();
  await held.reached;
  const second = start();
  await second.opened;
  await first.opened;
  await settle();
  held.release(new Error("too late"));
  await settle();
  assert.deepEqual([splitsOf(first), splitsOf(second)], [["t/0", "t/1"], ["t/2", "t/3"]]);
  assert.deepEqual(sorted(first.values, second.values), range(0, 16));
  assert.deepEqual([first.error, second.error], [undefined, undefined]);
  await Promise.all([first.close(), second.close()]);
});

Deno.test("G4: what is found out for a round that is over is not used", async () => {
  const { kafka, open, writeAll } = world(4);
  writeAll(0, 16);
  const held = kafka.hold("committedOffsets");
  const first = Driven.start(kafka, {
    groupId: "g",
    client: (connection, context) => {
      const client = kafka.connect(connection, context);
      client.committedOffsets = (group, partitions) =>
        FakeClient.prototype.committedOffsets.call(client, group, partitions);
      return client;
    },
  }, { checkpoints: true });
  await held.reached;
  const joining = open();
  await settle();
  held.release(); // the answer comes after all
  const second = await joining;
  await first.opened;
  await settle();
  assert.deepEqual([splitsOf(first), splitsOf(second)], [["t/0", "t/1"], ["t/2", "t/3"]]);
  assert.deepEqual(sorted(first.values), range(0, 16).filter((n) => n % 4 < 2));
  assert.deepEqual(sorted(second.values), range(0, 16).filter((n) => n % 4 >= 2));
  await Promise.all([first.close(), second.close()]);
});

Deno.test("C3: what others have committed meanwhile is not taken for what this process has", async () => {
  const { kafka, open, start, writeAll } = world(2);
  writeAll(0, 10);
  const first = await open();
  await first.checkpoint();
  const second = start();
  await second.opened;
  kafka.group("g").store([{ topic: "t", partition: 1, offset: 2 }]); // somebody sets the group back
  await second.close();
  await settle();
  await first.checkpoint();
  assert.deepEqual(kafka.committed("g"), { "t/0": 5, "t/1": 5 });
  await first.close();
});

Deno.test("what was still to be said of a split is not said when it has gone", async () => {
  const { kafka, open, start } = world(2);
  const first = await open({ checkpoints: true, byHand: true });
  kafka.group("g").rebalance();
  const second = start(); // first has not read once since it was opened
  await second.opened;
  await settle();
  const next = [await first.reader.read(), await first.reader.read()];
  assert.deepEqual(next, [
    { kind: "position", split: "t/0", position: 0 },
    { kind: "removed", splits: ["t/1"] },
  ]);
  await Promise.all([first.reader.close("done"), second.close()]);
});

Deno.test("R2: the set of partitions changes between opening and the first read of a restored run", async () => {
  const { kafka, open, writeAll, start } = world(2);
  writeAll(0, 10);
  const first = start({ checkpoints: true, restored: { "t/0": 2, "t/1": 3 } });
  first.pause(); // the run restores its state
  await first.opened;
  await settle();
  const second = await open();
  await first.resume();
  writeAll(10, 14);
  await settle();
  assert.deepEqual(sorted(first.values), [4, 6, 8, 10, 12]);
  assert.deepEqual(sorted(second.values).slice(-2), [11, 13]);
  assert.ok(first.log.includes("removed t/1"));
  assert.deepEqual([...first.positions.keys()], ["t/0"]);
  assert.deepEqual(kafka.members("g").length, 2);
  await Promise.all([first.close(), second.close()]);
});

Deno.test("splits of the checkpoint that others read are no longer in it, those no broker lists are", async () => {
  const { kafka, open } = world(3);
  const other = await open();
  const hidden = kafka.topic("t").partitions.pop()!;
  const driven = await open({ checkpoints: true, restored: { "t/0": 0, "t/1": 0, "t/2": 5 } });
  assert.deepEqual(driven.log, ["split t/1", "removed t/0"]);
  kafka.topic("t").partitions.push(hidden);
  await Promise.all([driven.close(), other.close()]);
});

Deno.test("K6: a process that works on one record for 10 minutes stays in the group and goes on", async () => {
  const { kafka, clock, open } = world(1);
  const driven = await open({ checkpoints: true, batchSize: 1 });
  driven.pause();
  write(kafka, "t/0", 1, 2);
  await settle();
  await clock.advance("10m");
  assert.equal(kafka.members("g").length, 1);
  await driven.resume();
  assert.deepEqual(driven.values, [1, 2]);
  await driven.checkpoint();
  assert.deepEqual(kafka.committed("g"), { "t/0": 2 });
  await driven.close();
});

Deno.test("W2: a process without partitions has no splits, and gets some when another leaves", async () => {
  const { kafka, open } = world(1);
  const first = await open(), second = await open();
  assert.deepEqual([splitsOf(first), splitsOf(second)], [["t/0"], []]);
  write(kafka, "t/0", 1);
  await settle();
  await first.close();
  write(kafka, "t/0", 2);
  await settle();
  assert.deepEqual(second.log.filter((line) => !line.startsWith("t/0:  ")), ["added t/0", "t/0: 1,2 → 2"]);
  await second.close();
});

Deno.test("R5: a group with a pattern takes topics up that are made later", async () => {
  const { kafka, clock, open } = world(1);
  kafka.createTopic("orders-a");
  write(kafka, "orders-a/0", 1);
  const driven = await open({ checkpoints: true }, { pattern: /^orders-/, start: "latest" });
  kafka.createTopic("orders-b");
  write(kafka, "orders-b/0", 2);
  await clock.advance("31s");
  assert.deepEqual(driven.values, [2]);
  assert.deepEqual(kafka.members("g").length, 1);
  write(kafka, "orders-a/0", 3);
  await settle();
  assert.deepEqual(driven.values, [2, 3]);
  await driven.close();
});

Deno.test("R5: a group with a pattern that matches nothing yet waits for a topic", async () => {
  const { kafka, clock, open } = world(1);
  for (const keepsState of [false, true]) {
    const driven = await open({ keepsState }, {
      pattern: new RegExp(`^x${keepsState}`),
      groupId: `${keepsState}`,
    });
    kafka.createTopic(`x${keepsState}`);
    write(kafka, `x${keepsState}/0`, 1);
    await clock.advance("31s");
    assert.deepEqual(driven.values, [1]);
    await driven.close();
  }
});

Deno.test("a group that cannot be joined ends the opening, a member that is out ends the run; both with the error", async () => {
  const { kafka, start, open } = world(1);
  for (const keepsState of [false, true]) {
    kafka.fail("join", new KafkaError("kafka_not_authorised", "group g: not authorised"));
    await assert.rejects(start({ keepsState }).opened, {
      code: "kafka_not_authorised",
      hint: /READ on the group "g"/,
    });
    assert.equal(kafka.clients.size, 0);
    const driven = await open({ keepsState });
    kafka.fail("committedOffsets", new KafkaError("kafka_timeout", "no answer"));
    kafka.fail("join", new KafkaError("kafka_timeout", "no answer"));
    kafka.expire("g", kafka.members("g")[0]!);
    await settle();
    assert.equal(codeOf(driven.error), "kafka_timeout");
    await driven.close();
    kafka.heal();
  }
});

Deno.test("until end in a group: each process ends when its share has been read", async () => {
  const { kafka, open, writeAll } = world(2);
  writeAll(0, 10);
  const driven = await open({ checkpoints: true }, { until: "end" });
  assert.equal(driven.log.at(-1), "end");
  assert.deepEqual(sorted(driven.values), range(0, 10));
  await driven.checkpoint();
  assert.deepEqual(kafka.committed("g"), { "t/0": 5, "t/1": 5 });
  await driven.close("done");
});

// State by key: one process has to have all partitions.

const KEYED: DriveOptions = { checkpoints: true, keepsState: true };

Deno.test("O1: state by key: a second process that is not given all partitions refuses to run; the first goes on", async () => {
  const { open, start, writeAll } = world(2);
  writeAll(0, 4);
  const first = await open(KEYED);
  assert.deepEqual(splitsOf(first), ["t/0", "t/1"]);
  await assert.rejects(start(KEYED).opened, {
    code: "kafka_group_shared",
    message: 'source "in": another process in the group "g" has 1 of the partitions (t/0), ' +
      "but this pipeline keeps state by key, which cannot be split over processes",
    hint: "give this pipeline a group of its own, or stop the other process first",
  });
  await settle();
  writeAll(4, 8);
  await settle();
  assert.deepEqual(sorted(first.values), range(0, 8));
  assert.deepEqual(
    first.log.filter((line) => /removed|added/.test(line)),
    [],
    "its splits were its own all the time",
  );
  assert.equal(first.error, undefined);
  await first.close();
});

Deno.test("O2: state by key: while another process has partitions nothing is handed out; when it leaves in time, all goes on", async () => {
  const { kafka, clock, open, writeAll } = world(2);
  const first = await open(KEYED);
  const stranger = await open({ checkpoints: true }); // a pipeline without state by key, by mistake in the same group
  writeAll(0, 4);
  await settle();
  assert.deepEqual(first.values, []);
  assert.match(first.said("warn").join(), /reading waits for it to leave/);
  await clock.advance("29s");
  await stranger.close();
  await settle();
  assert.deepEqual(sorted(first.values), range(0, 4), "its own positions, not the group's");
  await clock.advance("1m");
  assert.equal(first.error, undefined);
  assert.equal(kafka.members("g").length, 1);
  await first.close();
});

Deno.test("O2: state by key: where the other process stays, the first one ends and says why", async () => {
  const { clock, open } = world(2);
  const first = await open(KEYED), stranger = await open({ checkpoints: true });
  await clock.advance("29s");
  assert.equal(first.error, undefined);
  await clock.advance("2s");
  assert.equal(codeOf(first.error), "kafka_group_shared");
  await first.close();
  await stranger.close();
});

Deno.test("O2: state by key: where partitions are gone for good, nobody else is blamed", async () => {
  const { kafka, clock, open } = world(2);
  const first = await open(KEYED);
  kafka.topic("t").partitions.pop();
  kafka.group("g").rebalance();
  await settle();
  await clock.advance("31s");
  assert.match(String(first.error), /partitions that were read do not exist any more \(t\/1\)/);
  await first.close();
});

Deno.test("O3: state by key: the checkpoint wins over the group; without one the group's offsets hold", async () => {
  const { kafka, open, writeAll } = world(2);
  writeAll(0, 10);
  kafka.group("g").store([
    { topic: "t", partition: 0, offset: 4 },
    { topic: "t", partition: 1, offset: 4 },
  ]);
  const restored = await open({ ...KEYED, restored: { "t/0": 2, "t/1": 5 } });
  assert.deepEqual(sorted(restored.values), [4, 6, 8]);
  await restored.close();
  const fresh = await open(KEYED);
  assert.deepEqual(sorted(fresh.values), [8, 9]);
  await fresh.checkpoint();
  assert.deepEqual(kafka.committed("g"), { "t/0": 5, "t/1": 5 });
  await fresh.close();
});

Deno.test("O3: state by key: a round that changes nothing changes nothing; new partitions are added", async () => {
  const { kafka, clock, open, writeAll } = world(2);
  writeAll(0, 6);
  const driven = await open(KEYED);
  kafka.group("g").rebalance();
  await settle();
  writeAll(6, 8);
  await settle();
  kafka.growTopic("t", 3);
  write(kafka, "t/2", 100);
  await clock.advance("31s");
  assert.deepEqual(sorted(driven.values), [...range(0, 8), 100]);
  assert.deepEqual(driven.log.filter((line) => /removed|added/.test(line)), ["added t/2"]);
  await driven.close();
});

Deno.test("O2: state by key: partitions that were added count as well when another process comes", async () => {
  const { kafka, clock, open } = world(2);
  const first = await open(KEYED);
  kafka.growTopic("t", 3);
  await clock.advance("31s");
  const stranger = await open({ checkpoints: true });
  assert.deepEqual(splitsOf(stranger), ["t/2"]);
  assert.match(first.said("warn").join(), /reading waits for it to leave .*"splits":\["t\/2"\]/);
  await Promise.all([first.close(), stranger.close()]);
});

Deno.test("R7: state by key: a partition the brokers hide is read on when it is back, though the group does not assign it", async () => {
  const { kafka, clock, open, writeAll } = world(2);
  writeAll(0, 6);
  const hidden = kafka.topic("t").partitions.pop()!;
  const driven = await open({ ...KEYED, restored: { "t/0": 3, "t/1": 2 } });
  assert.deepEqual(driven.reader.splits, ["t/0", "t/1"]);
  kafka.topic("t").partitions.push(hidden);
  kafka.changed();
  await clock.advance("31s");
  assert.deepEqual(driven.values, [5]);
  await driven.close();
});

Deno.test("O3: state by key: a process that lost touch with the group and gets all partitions back goes on where it was", async () => {
  const { kafka, open, writeAll } = world(2);
  writeAll(0, 6);
  const driven = await open(KEYED);
  kafka.expire("g", kafka.members("g")[0]!);
  writeAll(6, 8);
  await settle();
  assert.deepEqual(sorted(driven.values), range(0, 8));
  assert.deepEqual(driven.log.filter((line) => /removed|added/.test(line)), []);
  await driven.close();
});

Deno.test("state by key: a process that comes after one that was killed waits for the group to notice, and gets all", async () => {
  const { kafka, open, start, writeAll } = world(2);
  writeAll(0, 6);
  const first = await open(KEYED);
  await first.checkpoint();
  await first.crash();
  const second = start({ ...KEYED, restored: Object.fromEntries(first.positions) });
  await settle();
  assert.deepEqual(second.log, []);
  kafka.expire("g", kafka.members("g")[0]!);
  await second.opened;
  writeAll(6, 8);
  await settle();
  assert.deepEqual(sorted(second.values), [6, 7]);
  await second.close();
});
