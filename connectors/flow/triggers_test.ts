/**
 * Messages that start flows: by hand, and from a cluster in memory.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Flow } from "../../lib/flow/definition/mod.ts";
import { flowOf, Scene } from "../../lib/flow/engine/kit_test.ts";
import { stringifyJson } from "../../lib/json.ts";
import { VirtualClock } from "../../lib/testing/virtual_clock.ts";
import { FakeKafka } from "../kafka/testing/fake_client.ts";
import { derivedId } from "./identity.ts";
import { FlowTriggers, kafkaTrigger, type KafkaTriggerOptions, type TriggerMessage } from "./mod.ts";
import { subjectFits } from "./triggers.ts";

function triggered(name: string, triggers: string, more = ""): string {
  return `name: ${name}
triggers: ${triggers}
${more}nodes:
  - { id: w, type: await, signal: go, timeout: 1000h }
`;
}

const ORDERS = triggered("order", "[ { subject: orders.created, stream: ORDERS } ]");
const AUDIT = triggered(
  "audit",
  "[ { subject: 'orders.>', stream: ORDERS }, { subject: x, stream: OTHER } ]",
);
const QUIET = triggered("quiet", "[ { subject: orders.created } ]");
const FLOWS = [ORDERS, AUDIT, QUIET];
const encoder = new TextEncoder();

function message(more: Partial<TriggerMessage> = {}): TriggerMessage {
  return { stream: "ORDERS", subject: "orders.created", place: "0/1", body: `{"n":1}`, ...more };
}

/** Flow and input of all executions, by id. */
async function inputs({ client }: Scene): Promise<Map<string, readonly [string, unknown]>> {
  const found = new Map<string, readonly [string, unknown]>();
  const { items } = await client.list({ limit: 1000 });
  for (const { id, flow } of items) found.set(id, [flow, (await client.get(id)).input]);
  return found;
}

Deno.test("subjects: each part, one star a part, the rest", () => {
  const fitting = [["a.b", "a.b"], ["a.*", "a.b"], ["*.b", "a.b"], [">", "a"], [">", "a.b.c"], [
    "a.>",
    "a.b.c",
  ]];
  const others = [["a.b", "a.c"], ["a.*", "a"], ["a.*", "a.b.c"], ["a.>", "a"], ["a", "a.b"], ["a.b", "a"]];
  for (const [pattern, subject] of fitting) {
    assert.equal(subjectFits(pattern!, subject!), true, `${pattern} ${subject}`);
  }
  for (const [pattern, subject] of others) {
    assert.equal(subjectFits(pattern!, subject!), false, `${pattern} ${subject}`);
  }
});

Deno.test("G2: each flow that wants it runs once, whenever the message comes again", async () => {
  await using scene = await Scene.open({ flows: FLOWS });
  const triggers = new FlowTriggers({ engine: scene.engine, flows: FLOWS.map(flowOf), sources: [] });
  for (let round = 0; round < 2; round++) {
    await triggers.deliver(message());
    await triggers.deliver(message({ place: "0/2", subject: "orders.paid" }));
    await triggers.deliver(message({ place: "0/3", id: "dedup-1", body: "[1]" }));
    await triggers.deliver(message({ place: "0/4", id: "dedup-1", body: "[1]" }));
    await triggers.deliver(message({ stream: "OTHER", subject: "orders.created" }));
  }
  const at = (flow: string, place: string) => derivedId(flow, "t", ["at", "ORDERS", place]);
  const by = (flow: string, id: string) => derivedId(flow, "t", ["msg", id]);
  assert.deepEqual(
    new Map([...await inputs(scene)].sort()),
    new Map(
      ([
        [at("order", "0/1"), ["order", { n: 1 }]],
        [at("audit", "0/1"), ["audit", { n: 1 }]],
        [at("audit", "0/2"), ["audit", { n: 1 }]],
        [by("order", "dedup-1"), ["order", { data: [1] }]],
        [by("audit", "dedup-1"), ["audit", { data: [1] }]],
      ] as [string, [string, unknown]][]).sort(([a], [b]) => a < b ? -1 : 1),
    ),
  );
});

Deno.test("bodies: objects are inputs, anything else is their data", async () => {
  await using scene = await Scene.open({ flows: [ORDERS] });
  const triggers = new FlowTriggers({ engine: scene.engine, flows: [flowOf(ORDERS)], sources: [] });
  const bodies: [TriggerMessage["body"], unknown][] = [
    [`{"big":123456789012345678901}`, { big: 123456789012345678901n }],
    [encoder.encode(`{"a":1}`), { a: 1 }],
    ["17", { data: 17 }],
    ["null", { data: null }],
    [null, { data: null }],
    ["not json", { data: "not json" }],
    ["", { data: "" }],
    [Uint8Array.of(0xff, 0xfe), { data: "//4=", encoding: "base64" }],
  ];
  for (const [n, [body]] of bodies.entries()) await triggers.deliver(message({ place: String(n), body }));
  const found = await inputs(scene);
  for (const [n, [, input]] of bodies.entries()) {
    assert.deepEqual(found.get(derivedId("order", "t", ["at", "ORDERS", String(n)]))![1], input);
  }
});

Deno.test("G3: a flow that is not there becomes a dead letter after its tries; done again it starts", async () => {
  await using scene = await Scene.open({ flows: [AUDIT] });
  const both = [ORDERS, AUDIT].map(flowOf);
  const triggers = new FlowTriggers({ engine: scene.engine, flows: both, sources: [] });
  let isDone = false;
  const delivered = triggers.deliver(message({ headers: [["subject", encoder.encode("orders.created")]] }))
    .then(() => isDone = true);
  await scene.clock.advance("2999ms");
  assert.equal(isDone, false, "it is tried again after 1 s, then after 2 s");
  await scene.clock.advance("1ms");
  await delivered;
  const { items: [letter, ...others] } = await scene.client.deadLetters();
  assert.deepEqual(others, []);
  const id = derivedId("order", "t", ["at", "ORDERS", "0/1"]);
  const { kind, key, deliveries, reason } = letter!;
  assert.deepEqual([kind, key, deliveries], ["trigger", id, 3]);
  assert.match(reason, /no flow "order"/);
  assert.deepEqual([...(await inputs(scene)).values()], [["audit", { n: 1 }]]);
  await scene.client.register(both[0]!);
  assert.deepEqual(await scene.client.redrive(letter!.id), { execution: id });
  await scene.until("it is started", async () => (await inputs(scene)).has(id));
  assert.deepEqual((await scene.client.deadLetters()).items, []);
});

Deno.test("G3: an id that is another flow's is refused at once", async () => {
  await using scene = await Scene.open({ flows: FLOWS });
  await scene.client.start("quiet", {}, { id: derivedId("order", "t", ["at", "ORDERS", "0/1"]) });
  await new FlowTriggers({ engine: scene.engine, flows: [flowOf(ORDERS)], sources: [] }).deliver(message());
  const { items } = await scene.client.deadLetters();
  assert.deepEqual(items.map(({ kind, deliveries }) => [kind, deliveries]), [["trigger", 1]]);
});

/** Triggers on a cluster in memory, on the clock of a scene. */
class Cluster implements AsyncDisposable {
  readonly kafka: FakeKafka;
  #triggers: FlowTriggers[] = [];

  constructor(readonly scene: Scene) {
    this.kafka = new FakeKafka(scene.clock as VirtualClock);
  }

  trigger(flows: readonly Flow[], more: Partial<KafkaTriggerOptions> = {}): FlowTriggers {
    const source = kafkaTrigger({
      brokers: ["fake:9092"],
      groupId: "g",
      client: this.kafka.connect,
      ...more,
    });
    const triggers = new FlowTriggers({ engine: this.scene.engine, flows, sources: [source] });
    this.#triggers.push(triggers);
    return triggers.start();
  }

  write(
    topic: string,
    partition: number,
    ...records: readonly (readonly [unknown, Readonly<Record<string, string>>?])[]
  ): void {
    this.kafka.write(
      topic,
      partition,
      records.map(([value, headers = {}]) => ({
        value: value === null ? null : stringifyJson(value),
        headers: Object.entries(headers).map(([name, text]) => [name, encoder.encode(text)] as const),
      })),
    );
  }

  async committed(topic: string, partition: number): Promise<number | undefined> {
    const client = this.kafka.connect({ brokers: ["fake:9092"] }, {
      clock: this.scene.clock,
      logger: { log() {} },
    });
    const [offset] = await client.committedOffsets(`g.${topic}`, [{ topic, partition }]);
    await client.close();
    return offset;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const triggers of this.#triggers) await triggers.stop();
  }
}

Deno.test("K1: Kafka: records start flows, offsets are committed behind them; a second run starts nothing twice", async () => {
  await using scene = await Scene.open({ flows: FLOWS });
  await using cluster = new Cluster(scene);
  cluster.kafka.createTopic("ORDERS", 2);
  const first = cluster.trigger([flowOf(ORDERS)]);
  cluster.write("ORDERS", 0, [{ n: 1 }, { subject: "orders.created" }], [{ n: 2 }, {
    subject: "orders.paid",
  }]);
  cluster.write("ORDERS", 1, [{ n: 3 }, { subject: "orders.created", "Idempotency-Key": "k" }], [{ n: 4 }]);
  await scene.clock.advance("2s");
  const id = (...parts: unknown[]) => derivedId("order", "t", parts);
  const expected = [id("at", "ORDERS", "ORDERS/0/0"), id("msg", "k")].sort();
  assert.deepEqual([...(await inputs(scene)).keys()].sort(), expected);
  assert.deepEqual([await cluster.committed("ORDERS", 0), await cluster.committed("ORDERS", 1)], [2, 2]);
  await first.stop();
  cluster.write("ORDERS", 0, [{ n: 3 }, { subject: "orders.created", "idempotency-key": "k" }]); // sent again
  cluster.write("ORDERS", 0, [{ n: 5 }, { subject: "orders.created" }]);
  cluster.trigger([flowOf(ORDERS)]);
  await scene.clock.advance("2s");
  expected.push(id("at", "ORDERS", "ORDERS/0/3"));
  assert.deepEqual([...(await inputs(scene)).keys()].sort(), expected.sort());
  assert.equal(await cluster.committed("ORDERS", 0), 4);
});

Deno.test("K1: what could not be started is not committed, and comes again", async () => {
  let isAway = false;
  await using scene = await Scene.open({ flows: FLOWS, fault: () => isAway ? "fail" : undefined });
  await using cluster = new Cluster(scene);
  cluster.kafka.createTopic("orders.created", 1);
  const topics = { ORDERS: "orders.created" };
  const first = cluster.trigger([flowOf(ORDERS)], { topics });
  cluster.write("orders.created", 0, [{ n: 1 }]);
  await scene.clock.advance("1s");
  isAway = true;
  cluster.write("orders.created", 0, [{ n: 2 }]);
  await scene.clock.advance("10s");
  assert.equal(await cluster.committed("orders.created", 0), 1);
  await first.stop(); // as if the process had ended
  isAway = false;
  assert.equal(await cluster.committed("orders.created", 0), 1);
  cluster.trigger([flowOf(ORDERS)], { topics });
  await scene.clock.advance("5s");
  assert.deepEqual(
    [...(await inputs(scene)).values()].map(([, input]) => (input as { n: number }).n).sort(),
    [1, 2],
  );
  assert.equal((await inputs(scene)).size, 2);
  assert.equal(await cluster.committed("orders.created", 0), 2);
});

Deno.test("G4: a topic that is made later", async () => {
  await using scene = await Scene.open({ flows: FLOWS });
  await using cluster = new Cluster(scene);
  cluster.trigger([flowOf(ORDERS)]);
  await scene.clock.advance("5s");
  assert.ok(scene.logged.some((line) => line.includes("cannot be read")));
  cluster.kafka.createTopic("ORDERS", 1);
  cluster.write("ORDERS", 0, [{ n: 1 }, { subject: "orders.created" }]);
  await scene.clock.advance("1m");
  assert.equal((await inputs(scene)).size, 1);
});

Deno.test("K2: two processes share the messages out; none is lost or doubled when one comes and goes", async () => {
  await using scene = await Scene.open({ flows: FLOWS });
  await using cluster = new Cluster(scene);
  cluster.kafka.createTopic("ORDERS", 4);
  const counts: number[] = [];
  cluster.trigger([flowOf(AUDIT)]);
  let second: FlowTriggers | undefined;
  for (let n = 0; n < 60; n++) {
    cluster.write("ORDERS", n % 4, [{ n }, { subject: "orders.created" }]);
    if (n === 20) second = cluster.trigger([flowOf(AUDIT)]);
    if (n === 40) await second!.stop();
    await scene.clock.advance("200ms");
  }
  await scene.clock.advance("10s");
  for (const [, input] of (await inputs(scene)).values()) counts.push((input as { n: number }).n);
  assert.deepEqual(counts.sort((a, b) => a - b), Array.from({ length: 60 }, (_, n) => n));
});
