/**
 * The real servers themselves: that they come up, do what tests want of them, and leave nothing behind.
 *
 * @module
 */
import assert from "node:assert/strict";
import { connect } from "node:tls";
import { isThere } from "./cache.ts";
import { kafkaService } from "./kafka.ts";
import { serviceTest } from "./kit.ts";
import { postgresService } from "./postgres.ts";
import { answers } from "./ports.ts";
import { pause, run } from "./process.ts";
import { schemaRegistry } from "./registry.ts";
import { toxiproxy } from "./toxiproxy.ts";
import type { KafkaCluster } from "./kafka_cluster.ts";
import type { ReadRecord } from "./java_kafka.ts";

const text = (bytes: Uint8Array | null) => bytes === null ? null : new TextDecoder().decode(bytes);
const values = (records: readonly ReadRecord[]) => records.map(({ value }) => text(value));
const portOf = (address: string) => Number(address.split(":")[1]);

/** Command lines of processes that work in a folder. */
async function processesOf(folder: string): Promise<string[]> {
  const { stdout } = await run(["ps", "-eo", "args="]);
  return stdout.split("\n").filter((line) => line.includes(folder) && !line.startsWith("ps "));
}

/** A few lines in a process of their own. */
function module(code: string, env: Readonly<Record<string, string>> = {}): Deno.Command {
  const from = JSON.stringify(new URL("mod.ts", import.meta.url).href);
  const text = `import { kafkaService, postgresService } from ${from};\n${code}`;
  const url = `data:application/typescript,${encodeURIComponent(text)}`;
  return new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-check", "--no-config", "--no-lock", url],
    env: { ...env },
    stdout: "piped",
    stderr: "inherit",
  });
}

serviceTest("Kafka keeps what its Java clients write: codecs, null, empty, headers", ["kafka"], async () => {
  await using kafka = await kafkaService();
  const topic = await kafka.java.createTopic("codecs", { partitions: 2 });
  for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"] as const) {
    await kafka.java.produce(topic, [{
      partition: 1,
      timestamp: 1_000,
      key: codec,
      value: codec.repeat(500),
    }], { codec });
  }
  const odd = [
    { partition: 0, key: null, value: null },
    { partition: 0, key: "", value: "", headers: [["b", "1"], ["a", null], ["b", ""]] as const },
    { partition: 0, value: Uint8Array.of(0, 255, 10, 13) },
  ];
  const places = await kafka.java.produce(topic, odd);
  assert.deepEqual(places, [0, 1, 2].map((offset) => ({ partition: 0, offset })));

  const records = await kafka.java.records(topic), [none, empty, bytes] = records;
  assert.deepEqual(records.map(({ partition, offset }) => [partition, offset]), [
    ...[0, 1, 2].map((offset) => [0, offset]),
    ...[0, 1, 2, 3, 4].map((offset) => [1, offset]),
  ]);
  assert.deepEqual([none!.key, none!.value], [null, null]);
  assert.deepEqual([empty!.key, empty!.value], [new Uint8Array(), new Uint8Array()]);
  assert.deepEqual(empty!.headers.map(([name, value]) => [name, text(value)]), [["b", "1"], ["a", null], [
    "b",
    "",
  ]]);
  assert.deepEqual(bytes!.value, Uint8Array.of(0, 255, 10, 13));
  assert.deepEqual(records.slice(3).map(({ key, timestamp }) => [text(key), timestamp]), [
    ["none", 1_000],
    ["gzip", 1_000],
    ["snappy", 1_000],
    ["lz4", 1_000],
    ["zstd", 1_000],
  ]);
  assert.equal(text(records.at(-1)!.value), "zstd".repeat(500));
});

serviceTest("Kafka shows what is committed, and what is not when asked", ["kafka"], async () => {
  await using kafka = await kafkaService();
  const { java } = kafka, topic = await java.createTopic("transactions");
  const write = (value: string, id: string, end: "commit" | "abort" | "open") =>
    java.produce(topic, [{ value }], { transaction: { id: `${topic}-${id}`, end } });
  await write("a", "one", "commit");
  await write("b", "two", "abort");
  await write("c", "one", "open");
  await java.produce(topic, [{ value: "d" }]);
  // a, marker, b, marker, c, d: the open transaction holds back all behind it.
  assert.deepEqual(values(await java.records(topic)), ["a"]);
  assert.deepEqual(values(await java.records(topic, "read_uncommitted")), ["a", "b", "c", "d"]);
  assert.deepEqual(await java.offsets(topic), [{ partition: 0, earliest: 0, stable: 4, end: 6 }]);
  await write("e", "one", "commit");
  assert.deepEqual(values(await java.records(topic)), ["a", "c", "d", "e"]);
  assert.deepEqual(await java.offsets(topic), [{ partition: 0, earliest: 0, stable: 8, end: 8 }]);
});

serviceTest("Kafka: topics grow, lose their beginning, and go", ["kafka"], async () => {
  await using kafka = await kafkaService();
  const { java } = kafka,
    topic = await java.createTopic("changing", { configs: { "max.message.bytes": "1000" } });
  await java.produce(topic, [{ value: "a" }, { value: "b" }, { value: "c" }]);
  await java.deleteRecords(topic, 0, 2);
  await java.addPartitions(topic, 3);
  assert.deepEqual((await java.offsets(topic)).map(({ earliest, end }) => [earliest, end]), [[2, 3], [0, 0], [
    0,
    0,
  ]]);
  assert.deepEqual(values(await java.records(topic)), ["c"]);
  await assert.rejects(java.produce(topic, [{ value: "x".repeat(2_000) }]), /RecordTooLargeException/);
  await java.deleteTopic(topic);
  await assert.rejects(java.offsets(topic), /UnknownTopicOrPartitionException/);
  assert.deepEqual(await java.groupOffsets(`${topic}-nobody`), []);
});

serviceTest("all who want some Kafka get the same one", ["kafka"], async () => {
  await using one = await kafkaService();
  await using other = await kafkaService();
  assert.deepEqual(one.brokers, other.brokers);
  const topic = await one.java.createTopic("shared");
  await one.java.produce(topic, [{ value: "a" }]);
  // Another process too.
  const { stdout } = await module(`
    await using kafka = await kafkaService();
    console.log(JSON.stringify(kafka.brokers));
  `).output();
  assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)), one.brokers);
  await one.stop();
  assert.deepEqual(values(await other.java.records(topic)), ["a"]);
});

serviceTest("a broker that was killed has its records when it is started again", ["own kafka"], async () => {
  const kafka = await kafkaService({ brokers: 1, properties: { "message.max.bytes": 2_000 } });
  try {
    const topic = await kafka.java.createTopic("kept");
    await kafka.java.produce(topic, [{ key: "k", value: "a" }]);
    await assert.rejects(
      kafka.java.produce(topic, [{ value: "x".repeat(3_000) }]),
      /RecordTooLargeException/,
    );
    await kafka.kill(1);
    assert.equal(await answers(portOf(kafka.brokers[0]!)), false);
    await kafka.start(1);
    await kafka.java.produce(topic, [{ value: "b" }]);
    await kafka.stop(1);
    assert.equal(kafka.isUp(1), false);
    await kafka.start(1);
    assert.deepEqual(values(await kafka.java.records(topic)), ["a", "b"]);
  } finally {
    await kafka.stop();
  }
  assert.equal(isThere(kafka.folder), false);
  assert.deepEqual(await processesOf(kafka.folder), []);
});

serviceTest("of three brokers one may go", ["own kafka"], async () => {
  await using kafka = await kafkaService({ brokers: 3 });
  assert.equal(kafka.brokers.length, 3);
  const { java } = kafka, topic = await java.createTopic("replicated", { partitions: 3 });
  const before = await java.partitions(topic);
  for (const { replicas } of before) assert.deepEqual(replicas.toSorted(), [1, 2, 3]);
  await java.produce(topic, [0, 1, 2].map((partition) => ({ partition, value: `before ${partition}` })));
  const { leader } = before[0]!;
  await kafka.kill(leader);
  await java.produce(topic, [0, 1, 2].map((partition) => ({ partition, value: `after ${partition}` })));
  for (const { leader: now, inSync } of await java.partitions(topic)) {
    assert.notEqual(now, leader);
    assert.equal(inSync.includes(leader), false);
  }
  assert.deepEqual(
    values(await java.records(topic)),
    [0, 1, 2].flatMap((partition) => [`before ${partition}`, `after ${partition}`]),
  );
  await kafka.start(leader);
  await java.whole(topic);
  for (const { inSync } of await java.partitions(topic)) assert.deepEqual(inSync.toSorted(), [1, 2, 3]);
});

serviceTest(
  "Kafka asks for a password or a certificate where it should",
  ["own kafka", "certificates"],
  async () => {
    await using kafka = await kafkaService({
      listeners: ["SASL_PLAINTEXT", "SASL_SSL", "SSL"],
      users: { alice: "alice-secret", bob: "bob-secret" },
    });
    const topic = await kafka.java.createTopic("guarded");
    const module = (mechanism: string) =>
      `org.apache.kafka.common.security.${
        mechanism === "PLAIN" ? "plain.PlainLoginModule" : "scram.ScramLoginModule"
      }`;
    const sasl = (mechanism: string, password: string) => ({
      "sasl.mechanism": mechanism,
      "sasl.jaas.config": `${module(mechanism)} required username="bob" password="${password}";`,
    });
    const { authority, client, stranger } = kafka.certificates!;
    const trust = {
      "max.block.ms": "10000",
      "ssl.truststore.type": "PEM",
      "ssl.truststore.certificates": authority,
    };
    const show = ({ certificate, key }: typeof client) => ({
      "ssl.keystore.type": "PEM",
      "ssl.keystore.key": key,
      "ssl.keystore.certificate.chain": certificate,
    });
    const good = [
      kafka.clients("SASL_PLAINTEXT", sasl("PLAIN", "bob-secret")),
      kafka.clients("SASL_PLAINTEXT", sasl("SCRAM-SHA-256", "bob-secret")),
      kafka.clients("SASL_SSL", { ...sasl("SCRAM-SHA-512", "bob-secret"), ...trust }),
      kafka.clients("SSL", { ...trust, ...show(client) }),
    ];
    for (const [i, java] of good.entries()) await java.produce(topic, [{ value: String(i) }]);
    assert.deepEqual(values(await kafka.java.records(topic)), ["0", "1", "2", "3"]);
    const bad = kafka.clients("SASL_PLAINTEXT", sasl("SCRAM-SHA-512", "wrong"));
    await assert.rejects(bad.produce(topic, [{ value: "x" }]), /SaslAuthenticationException/);
    const unknown = kafka.clients("SSL", { ...trust, ...show(stranger) });
    await assert.rejects(
      unknown.produce(topic, [{ value: "x" }]),
      /SslAuthenticationException|TimeoutException/,
    );

    // And by somebody else's TLS.
    const port = portOf(kafka.addresses("SSL")[0]!);
    assert.equal(await greets(port, { ca: authority, cert: client.certificate, key: client.key }), true);
    assert.equal(await greets(port, { ca: authority }), false);
  },
);

/** Whether a TLS connection stands and stays. */
function greets(port: number, options: { ca: string; cert?: string; key?: string }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, servername: "localhost", ...options });
    // A server that misses a certificate says so after the greeting: an answer to a request shows that it did not.
    const versions = Uint8Array.of(0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, 255, 255);
    const end = (is: boolean) => {
      socket.destroy();
      resolve(is);
    };
    socket.on("secureConnect", () => socket.write(versions)).on("data", () => end(true));
    socket.on("error", () => end(false)).on("close", () => end(false));
  });
}

serviceTest("a proxy stands between Kafka and its clients", ["own kafka", "toxiproxy"], async () => {
  await using proxies = await toxiproxy();
  await using kafka = await kafkaService({ through: proxies });
  assert.deepEqual(kafka.brokers, [kafka.proxy(1).address]);
  const topic = await kafka.java.createTopic("proxied");
  const settings = { "request.timeout.ms": "1000", "delivery.timeout.ms": "1500", "max.block.ms": "3000" };
  const far: KafkaCluster["java"] = kafka.clients("PLAINTEXT", settings);
  await far.produce(topic, [{ value: "a" }]);
  await kafka.proxy(1).cut();
  assert.equal(await answers(kafka.proxy(1).port), false);
  await assert.rejects(far.produce(topic, [{ value: "lost" }]), /TimeoutException/);
  await kafka.java.produce(topic, [{ value: "b" }]); // past the proxy
  await kafka.proxy(1).mend();
  await far.produce(topic, [{ value: "c" }]);
  assert.deepEqual(values(await kafka.java.records(topic)), ["a", "b", "c"]);
});

serviceTest("PostgreSQL keeps what was committed when it is killed", ["own postgres"], async () => {
  const postgres = await postgresService({ own: true, settings: { work_mem: "5MB" } });
  const { port } = new URL(postgres.url);
  assert.equal((await processesOf(`port=${port}`)).length, 1);
  try {
    await postgres.execute(
      "create table t (id int primary key, name text); insert into t values (1, 'ä;''x');",
    );
    await postgres.execute(
      "begin; insert into t values (2, 'prepared'); prepare transaction 'p'; begin; insert into t values (3);",
    );
    await postgres.kill();
    await assert.rejects(postgres.rows("select 1"), /psql: /);
    await postgres.start();
    assert.deepEqual(await postgres.rows("select * from t"), [{ id: 1, name: "ä;'x" }]);
    await postgres.execute("commit prepared 'p'");
    assert.deepEqual(await postgres.rows("select id from t order by id"), [{ id: 1 }, { id: 2 }]);
    assert.deepEqual(await postgres.rows("select current_setting('work_mem') as m"), [{ m: "5MB" }]);
  } finally {
    await postgres.stop();
  }
  assert.deepEqual(await processesOf(`port=${port}`), []);
  assert.equal(await answers(Number(port)), false);
});

serviceTest("servers that run already are used as they are", ["kafka", "own postgres"], async () => {
  await using kafka = await kafkaService();
  await using postgres = await postgresService({ own: true });
  const env = { KAFKA_BROKERS: ` ${kafka.brokers[0]}`, DATABASE_URL: postgres.url };
  const { stdout } = await module(
    `
    await using kafka = await kafkaService();
    await using postgres = await postgresService();
    await postgres.execute("create table from_outside (id int)");
    console.log(JSON.stringify([kafka.brokers, postgres.url, await kafka.java.createTopic("outside")]));
    const refused = await postgres.kill().then(() => "killed", (error) => error.message);
    console.log(refused);
  `,
    env,
  ).output();
  const [line, refused] = new TextDecoder().decode(stdout).split("\n");
  const [brokers, url, topic] = JSON.parse(line!) as [string[], string, string];
  assert.deepEqual([brokers, url], [kafka.brokers, postgres.url]);
  assert.equal((await kafka.java.partitions(topic)).length, 1);
  assert.deepEqual(await postgres.rows("select * from from_outside"), []);
  assert.match(refused!, /the server of DATABASE_URL is not killed/);
});

serviceTest("of a test that is killed no server is left", ["own kafka", "own postgres"], async () => {
  const child = module(`
    const [kafka, postgres] = await Promise.all([kafkaService({}), postgresService({ own: true })]);
    await kafka.java.createTopic("t");
    console.log(JSON.stringify([kafka.folder, postgres.url]));
    await new Promise(() => setTimeout(() => {}, 1e6));
  `).spawn();
  let line = "";
  for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
    line += part;
    if (line.includes("\n")) break;
  }
  const [folder, url] = JSON.parse(line) as [string, string];
  const left = async () => [...await processesOf(folder), ...await processesOf(`port=${new URL(url).port}`)];
  assert.ok((await left()).length >= 3); // broker, server, and the shell that watches
  child.kill("SIGKILL");
  await child.status;
  const deadline = performance.now() + 20_000;
  while ((await left()).length > 0 || isThere(folder)) {
    assert.ok(performance.now() < deadline, (await left()).join("\n"));
    await pause(100);
  }
});

serviceTest("toxiproxy delays, resets and cuts", ["own postgres", "toxiproxy"], async () => {
  await using postgres = await postgresService({ own: true });
  await using proxies = await toxiproxy();
  const proxy = await proxies.open("postgres", Number(new URL(postgres.url).port));
  const url = new URL(postgres.url);
  url.port = String(proxy.port);
  const ask = () => run(["psql", "-X", "-A", "-t", "-d", url.href, "-c", "select 42"]);
  const timed = async () => {
    const start = performance.now(), { stdout } = await ask();
    assert.equal(stdout, "42\n");
    return performance.now() - start;
  };
  await timed();
  const remove = await proxy.add({ type: "latency", latency: 300 });
  assert.ok(await timed() > 600); // greeting and answer
  await remove();
  await proxy.add({ type: "reset_peer", timeout: 0 });
  assert.equal((await ask()).success, false);
  await proxies.reset();
  await timed();
  await proxy.cut();
  assert.match((await ask()).output, /refused/);
});

serviceTest("the schema registry keeps schemas", ["schema registry"], async () => {
  await using registry = await schemaRegistry();
  const schema = JSON.stringify({ type: "record", name: "R", fields: [{ name: "a", type: "int" }] });
  const response = await fetch(`${registry.url}/subjects/orders-value/versions`, {
    method: "POST",
    headers: { "content-type": "application/vnd.schemaregistry.v1+json" },
    body: JSON.stringify({ schema }),
  });
  const { id } = await response.json() as { id: number };
  const read = await fetch(`${registry.url}/schemas/ids/${id}`);
  assert.deepEqual(JSON.parse((await read.json() as { schema: string }).schema), JSON.parse(schema));
});
