/**
 * The Kafka source against real brokers. What goes in is written, and what comes out is judged, by Kafka's Java clients.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createEnv, type Env, type RunHandle } from "../../mod.ts";
import { type CollectingSink, collectingSink } from "../../testing.ts";
import { delay, systemClock } from "../../lib/clock.ts";
import { MailerError } from "../../lib/errors.ts";
import { bytesFormat } from "../../lib/format/mod.ts";
import { stringifyJson } from "../../lib/json.ts";
import { MemoryPages } from "../../lib/state/pages/memory.ts";
import { sum } from "../../lib/aggregate/mod.ts";
import { CrashPoint, lastingBackend } from "../../tests/durable/kit.ts";
import { type JavaKafka, kafkaService, serviceTest, toxiproxy } from "../../tests/services/mod.ts";
import type { GroupOptions, KafkaClientFactory } from "./client.ts";
import { KafkaError } from "./errors.ts";
import { kafkaClient } from "./kafkajs/mod.ts";
import { kafkaSource, type KafkaSourceOptions } from "./kafka_source.ts";

const unique = (prefix: string) => `${prefix}-${crypto.randomUUID().slice(0, 8)}`;
const numbers = (...sinks: CollectingSink<number>[]) =>
  sinks.flatMap(({ values }) => values).toSorted((a, b) => a - b);
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 30_000,
): Promise<void> {
  const end = systemClock.monotonic() + withinMs;
  while (!await holds()) {
    assert.ok(systemClock.monotonic() < end, `${what}: not within ${withinMs} ms`);
    await delay(systemClock, 20);
  }
}

/** The usual client, whose members notice sooner that a group is shared out anew. */
const brisk: KafkaClientFactory = (connection, context) => {
  const client = kafkaClient(connection, context);
  return new Proxy(client, {
    get(target, name) {
      if (name === "group") return (options: GroupOptions) => target.group({ ...options, heartbeatMs: 100 });
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
};

function source<T = number>(
  kafka: { readonly brokers: readonly string[] },
  options: Partial<KafkaSourceOptions<T>>,
) {
  return kafkaSource<T>({ brokers: kafka.brokers, client: brisk, fetchMaxWait: 100, ...options });
}

function checkpointed(pages = new MemoryPages(), name = "p"): Env {
  return createEnv({ name }).withCheckpointing("300ms").withStateBackend(
    lastingBackend(pages, new CrashPoint()),
  );
}

/** Writes numbers, round robin over the partitions. */
async function produce(
  java: JavaKafka,
  topic: string,
  partitions: number,
  from: number,
  to: number,
): Promise<void> {
  await java.produce(topic, range(from, to).map((n) => ({ partition: n % partitions, value: `${n}` })));
}

async function ended(handle: RunHandle): Promise<MailerError> {
  const error: unknown = await handle.done.then(() => undefined, (error) => error);
  assert.ok(error instanceof MailerError, `${error}`);
  return error;
}

serviceTest("what Java has written is read as Java reads it: codecs, keys, headers, times, null and empty", [
  "kafka",
], async () => {
  await using kafka = await kafkaService();
  const topic = await kafka.java.createTopic("read", { partitions: 3 });
  for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"] as const) {
    const records = range(0, 30).map((i) => ({
      partition: i % 3,
      timestamp: 1_000 + i,
      key: i % 4 === 0 ? null : i % 4 === 1 ? "" : `k${i}`,
      value: i % 5 === 0 ? null : i % 5 === 1 ? "" : codec.repeat(i),
      ...(i % 2 === 0 ? { headers: [["b", "1"], ["a", "x"], ["b", "2"]] as const } : {}),
    }));
    await kafka.java.produce(topic, records, { codec });
  }
  const read = collectingSink<Uint8Array | null>(), env = createEnv();
  env.fromSource(
    source(kafka, { topics: [topic], until: "end", format: bytesFormat(), keyFormat: bytesFormat() }),
  ).toSink(read.sink);
  await env.execute();
  const ours = read.records.map(({ split, offset, timestamp, key, value, headers }) => ({
    partition: Number(split.split("/").at(-1)),
    offset: offset!,
    timestamp,
    key: key as Uint8Array | null,
    value,
    headers: [...headers],
  })).toSorted((a, b) => a.partition - b.partition || a.offset - b.offset);
  const theirs = await kafka.java.records(topic);
  assert.equal(ours.length, 150);
  assert.deepEqual(ours.map(plain), theirs.map(plain));
});

/** Bytes as lists, so that buffers of different kinds compare. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (_, part) => part instanceof Uint8Array ? [...part] : part));
}

serviceTest(
  "E10, E9: only committed records come, in the order of the log, and no lag is left behind markers",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    const topic = await kafka.java.createTopic("transactions", { partitions: 2 }), group = unique("g");
    const write = async (id: string, end: "commit" | "abort" | "open", ...values: number[]) => {
      const records = values.flatMap((n) => [0, 1].map((partition) => ({ partition, value: `${n}` })));
      await kafka.java.produce(topic, records, { transaction: { id, end } });
    };
    const [a, b, c] = [unique("a"), unique("b"), unique("c")] as const;
    await write(a, "commit", 1, 2);
    await write(a, "abort", 3);
    await write(a, "commit", 4);
    await write(b, "open", 5);
    await write(c, "open", 6);
    await write(b, "abort", 7);
    await write(c, "commit", 8);
    await write(a, "abort", 9);
    const read = collectingSink<number>(), env = checkpointed();
    env.fromSource(source(kafka, { topics: [topic], groupId: group })).toSink(read.sink);
    const run = env.start();
    await run.running;
    await until("all is read", () => read.values.length === 10);
    await until("the group is at the end", async () => {
      const ends = await kafka.java.offsets(topic), committed = await kafka.java.groupOffsets(group);
      return ends.every(({ partition, end }) =>
        committed.some((at) => at.partition === partition && at.offset === end)
      );
    });
    for (const partition of [0, 1]) {
      const own = read.records.filter(({ split }) => split === `${topic}/${partition}`).map(({ value }) =>
        value
      );
      assert.deepEqual(own, [1, 2, 4, 6, 8]);
    }
    await run.stop();
  },
);

serviceTest("until end: what there was at the start, also where it ends in markers; twice the same", [
  "kafka",
], async () => {
  await using kafka = await kafkaService();
  const topic = await kafka.java.createTopic("bounded", { partitions: 3 });
  await produce(kafka.java, topic, 2, 0, 1000);
  await kafka.java.produce(topic, [{ partition: 0, value: "0" }], {
    transaction: { id: unique("x"), end: "abort" },
  });
  await kafka.java.produce(topic, [{ partition: 1, value: "0" }], {
    transaction: { id: unique("x"), end: "open" },
  });
  for (let i = 0; i < 2; i++) {
    const read = collectingSink<number>(), env = createEnv();
    env.fromSource(source(kafka, { topics: [topic], until: "end" })).toSink(read.sink);
    await env.execute();
    assert.deepEqual(numbers(read), range(0, 1000));
  }
});

serviceTest("start at a time, at offsets, at the end", ["kafka"], async () => {
  await using kafka = await kafkaService();
  const topic = await kafka.java.createTopic("starts", { partitions: 2 });
  await kafka.java.produce(
    topic,
    range(0, 20).map((n) => ({ partition: n % 2, value: `${n}`, timestamp: 1000 * n })),
  );
  const read = async (start: KafkaSourceOptions["start"]) => {
    const read = collectingSink<number>(), env = createEnv();
    env.fromSource(source(kafka, { topics: [topic], until: "end", start: start! })).toSink(read.sink);
    await env.execute();
    return numbers(read);
  };
  assert.deepEqual(await read({ timestamp: 14_500 }), range(15, 20));
  assert.deepEqual(await read({ timestamp: 1e12 }), []);
  assert.deepEqual(await read({ offsets: { [`${topic}/1`]: 9 } }), [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 19]);
  assert.deepEqual(await read("latest"), []);
});

serviceTest("R3: what retention has deleted ends the run with both offsets, or is passed over with a word", [
  "kafka",
], async () => {
  await using kafka = await kafkaService();
  const topic = await kafka.java.createTopic("retention");
  await produce(kafka.java, topic, 1, 0, 10);
  const start = { offsets: { [`${topic}/0`]: 3 } };
  await kafka.java.deleteRecords(topic, 0, 7);
  const env = createEnv();
  env.fromSource(source(kafka, { topics: [topic], start })).toSink(collectingSink().sink);
  const error = await ended(env.start());
  assert.equal(error.code, "kafka_offset_out_of_range");
  assert.match(error.message, /no offset 3: it has 7 to 10/);
  const read = collectingSink<number>(), again = createEnv(), said: string[] = [];
  again.withLogger({ log: (_, message, fields) => said.push(`${message} ${stringifyJson(fields ?? {})}`) });
  again.fromSource(source(kafka, { topics: [topic], start, onOffsetLost: "earliest", until: "end" })).toSink(
    read.sink,
  );
  await again.execute();
  assert.deepEqual(numbers(read), [7, 8, 9]);
  assert.match(said.join(), /records were deleted before they were read .*"wanted":3,"goesOnAt":7/);
});

serviceTest(
  "R5: partitions that are added are found and read from their first record",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    const topic = await kafka.java.createTopic("growing");
    const read = collectingSink<number>(), env = createEnv();
    env.fromSource(source(kafka, { topics: [topic], start: "latest", discovery: "300ms" })).toSink(read.sink);
    const run = env.start();
    await run.running;
    await kafka.java.addPartitions(topic, 3);
    await produce(kafka.java, topic, 3, 0, 30);
    await until("all is read", () => read.values.length === 30);
    assert.deepEqual(numbers(read), range(0, 30));
    await run.stop();
  },
);

serviceTest(
  "R12: 1 → 2 → 1 processes, one slow: every record once, offsets at the end",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    const topic = await kafka.java.createTopic("scale", { partitions: 4 }), group = unique("g");
    const build = (name: string, slow: boolean) => {
      const sink = collectingSink<number>(), env = checkpointed(new MemoryPages(), name).withBufferSize(8);
      const stream = env.fromSource(source<number>(kafka, { topics: [topic], groupId: group }));
      (slow ? stream.throttle(300) : stream).toSink(sink.sink);
      return { sink, run: env.start() };
    };
    await produce(kafka.java, topic, 4, 0, 200);
    const one = build("one", true);
    await until("it is at work", () => one.sink.values.length > 10);
    const two = build("two", false);
    await two.run.running;
    await produce(kafka.java, topic, 4, 200, 400);
    await until("both have read", () => one.sink.values.length + two.sink.values.length >= 400);
    assert.deepEqual(numbers(one.sink, two.sink), range(0, 400));
    assert.ok(two.sink.values.length >= 100, `${two.sink.values.length}`);
    await two.run.stop();
    await produce(kafka.java, topic, 4, 400, 600);
    await until("the first reads all", () => one.sink.values.length + two.sink.values.length >= 600);
    assert.deepEqual(numbers(one.sink, two.sink), range(0, 600));
    await one.run.stop();
    assert.deepEqual((await kafka.java.groupOffsets(group)).map(({ offset }) => offset), [
      150,
      150,
      150,
      150,
    ]);
  },
);

serviceTest("O1: a second process of a pipeline with state by key refuses; the first one's sums stay right", [
  "kafka",
], async () => {
  await using kafka = await kafkaService();
  const topic = await kafka.java.createTopic("keyed", { partitions: 2 }), group = unique("g");
  const build = (pages: MemoryPages, rows: CollectingSink<{ total: number }>) => {
    const env = checkpointed(pages);
    env.fromSource(source<number>(kafka, { topics: [topic], groupId: group })).keyBy(() => "all")
      .aggregate({ total: sum((n) => n) }).toSink(rows.sink);
    return env.start();
  };
  const pages = new MemoryPages(), rows = collectingSink<{ total: number }>();
  const first = build(pages, rows);
  await first.running;
  await produce(kafka.java, topic, 2, 0, 100);
  await until("the first has read", () => rows.values.length === 100);
  const error = await ended(build(new MemoryPages(), collectingSink()));
  assert.equal(error.code, "kafka_group_shared");
  await produce(kafka.java, topic, 2, 100, 200);
  await until("the first goes on", () => rows.values.length === 200);
  assert.equal(rows.values.at(-1)!.total, (199 * 200) / 2);
  await first.stop();
  const more = collectingSink<{ total: number }>(), second = build(pages, more);
  await second.running;
  await produce(kafka.java, topic, 2, 200, 201);
  await until("it goes on where it was", () => more.values.length === 1);
  assert.equal(more.values[0]!.total, (200 * 201) / 2);
  await second.stop();
});

serviceTest("a broker that is killed and comes back loses the source nothing, and nothing comes twice", [
  "own kafka",
], async () => {
  await using kafka = await kafkaService({});
  const topic = await kafka.java.createTopic("restart", { partitions: 2 }), group = unique("g");
  const read = collectingSink<number>(), env = checkpointed();
  env.fromSource(source(kafka, { topics: [topic], groupId: group })).toSink(read.sink);
  const run = env.start();
  await run.running;
  await produce(kafka.java, topic, 2, 0, 100);
  await until("it has read", () => read.values.length === 100);
  await kafka.kill(1);
  await delay(systemClock, 1000);
  await kafka.start(1);
  await produce(kafka.java, topic, 2, 100, 200);
  await until("it goes on", () => read.values.length >= 200);
  assert.deepEqual(numbers(read), range(0, 200));
  await run.stop();
  assert.deepEqual((await kafka.java.groupOffsets(group)).map(({ offset }) => offset), [100, 100]);
});

serviceTest("a process that loses touch with the brokers for longer than its session goes on where it was", [
  "own kafka",
  "toxiproxy",
], async () => {
  await using proxies = await toxiproxy();
  await using kafka = await kafkaService({ through: proxies });
  const topic = await kafka.java.createTopic("cut", { partitions: 2 });
  const options = { topics: [topic], sessionTimeout: "6s", requestTimeoutMs: 3000 } as const;
  const said: string[] = [];
  const shared = collectingSink<number>(), keyed = collectingSink<{ total: number }>();
  const env = checkpointed().withLogger({ log: (level, message) => level === "warn" && said.push(message) });
  env.fromSource(source<number>(kafka, { ...options, groupId: unique("g") })).toSink(shared.sink);
  const second = checkpointed();
  second.fromSource(source<number>(kafka, { ...options, groupId: unique("g") })).keyBy(() => "all")
    .aggregate({ total: sum((n) => n) }).toSink(keyed.sink);
  const runs = [env.start(), second.start()];
  await Promise.all(runs.map(({ running }) => running));
  await produce(kafka.java, topic, 2, 0, 100);
  await until("both have read", () => shared.values.length === 100 && keyed.values.length === 100);
  for (const proxy of proxies.proxies) await proxy.cut();
  await delay(systemClock, 9_000);
  await produce(kafka.java, topic, 2, 100, 200);
  await proxies.reset();
  await until("both go on", () => shared.values.length >= 200 && keyed.values.length >= 200, 60_000);
  assert.deepEqual(numbers(shared), range(0, 200));
  assert.equal(keyed.values.at(-1)!.total, (199 * 200) / 2);
  assert.ok(said.includes("partitions lost"), said.join());
  for (const run of runs) await run.stop();
});

/** A process of its own that reads numbers in a group, with checkpoints in a folder of its own. */
class ReadingProcess implements AsyncDisposable {
  readonly values: number[] = [];
  readonly #child: Deno.ChildProcess;
  readonly #folder = Deno.makeTempDirSync();
  readonly #reading: Promise<void>;

  constructor(brokers: readonly string[], topic: string, group: string) {
    const root = new URL("../../", import.meta.url);
    const code = `
      import { createEnv } from "${root.href}mod.ts";
      import { kafkaSource } from "${root.href}connectors/kafka/kafka_source.ts";
      const [brokers, topic, groupId] = Deno.args;
      const env = createEnv({ name: "p" }).withCheckpointing("200ms");
      env.fromSource(kafkaSource({ brokers: brokers.split(","), topics: [topic], groupId, sessionTimeout: "6s" }))
        .map((n) => { console.log(n); return n; })
        .toSink({ type: "none", describe: () => ({}), open: () => ({ write() {}, flush() {}, close() {} }) });
      await env.execute();`;
    const url = `data:application/typescript,${encodeURIComponent(code)}`;
    const config = ["-c", new URL("deno.json", root).pathname];
    this.#child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-check", ...config, url, brokers.join(","), topic, group],
      cwd: this.#folder,
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#reading = this.#collect();
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill().catch(() => {}); // it has ended
    await this.#reading;
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #collect(): Promise<void> {
    let rest = "";
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      this.values.push(...lines.map(Number));
    }
  }
}

serviceTest("a process of a group that is killed: the other one takes its partitions over, nothing is lost", [
  "kafka",
], async () => {
  await using kafka = await kafkaService();
  const topic = await kafka.java.createTopic("killed", { partitions: 4 }), group = unique("g");
  await using one = new ReadingProcess(kafka.brokers, topic, group);
  await produce(kafka.java, topic, 4, 0, 200);
  await until("the first reads", () => one.values.length === 200);
  await using two = new ReadingProcess(kafka.brokers, topic, group);
  let written = 200;
  await until("the second reads as well", async () => {
    await produce(kafka.java, topic, 4, written, written += 4);
    return two.values.length > 0;
  });
  await until("all is read", () => new Set([...one.values, ...two.values]).size === written);
  assert.equal(one.values.length + two.values.length, written, "and nothing twice so far");
  await one.kill();
  await produce(kafka.java, topic, 4, written, written += 200);
  await until(
    "the other one has it all",
    () => new Set([...one.values, ...two.values]).size === written,
    60_000,
  );
});

serviceTest("errors of the connection say what to do", ["own kafka", "certificates"], async () => {
  await using kafka = await kafkaService({ listeners: ["PLAINTEXT", "SASL_PLAINTEXT", "SSL"] });
  const topic = await kafka.java.createTopic("orders");
  const [plain, sasl, ssl] = (["PLAINTEXT", "SASL_PLAINTEXT", "SSL"] as const).map((listener) =>
    kafka.addresses(listener)
  );
  const quickly = { connectTimeoutMs: 1000, requestTimeoutMs: 3000 };
  const fails = async (brokers: readonly string[], options: Partial<KafkaSourceOptions>) => {
    const env = createEnv();
    env.fromSource(source({ brokers }, { topics: [topic], ...quickly, ...options })).toSink(
      collectingSink().sink,
    );
    const error = await ended(env.start());
    assert.ok(error instanceof KafkaError, `${error}`);
    return { code: error.code, message: error.message, hint: error.hint ?? "" };
  };
  const login = { mechanism: "plain", username: "alice", password: "wrong" } as const;
  const wrong = await fails(sasl!, { sasl: login });
  assert.equal(wrong.code, "kafka_authentication_failed");
  assert.match(wrong.hint, /username and password/);
  assert.ok(!`${wrong.message} ${wrong.hint}`.includes("wrong"), "no password is shown");
  const none = await fails(sasl!, {});
  assert.match(none.hint, /login/, JSON.stringify(none));
  const noTls = await fails(ssl!, {});
  assert.match(noTls.hint, /TLS/, JSON.stringify(noTls));
  const tls = await fails(plain!, { tls: {} });
  assert.match(tls.hint, /TLS/i, JSON.stringify(tls));
  const down = await fails(["127.0.0.1:1", "127.0.0.1:2"], {});
  assert.equal(down.code, "kafka_unreachable");
  assert.match(`${down.message} ${down.hint}`, /127\.0\.0\.1:1/);
  assert.match(`${down.message} ${down.hint}`, /127\.0\.0\.1:2/);
  const unknown = await fails(plain!, { topics: [topic.replace("orders", "order")] });
  assert.equal(unknown.code, "kafka_unknown_topic");
  assert.match(unknown.hint, new RegExp(topic));
});
