/**
 * The command line against a real Kafka: a document with everything (login, TLS, filters, sessions, exactly once), `dry-run`, `txn`.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { kafkaService, serviceTest } from "../services/mod.ts";

const cli = fileURLToPath(new URL("../../cli.ts", import.meta.url));

async function mailer(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", cli, ...args],
    env,
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const START = Date.UTC(2026, 0, 5, 8);

/** Clicks of five visitors, three visits each, an hour apart; some are of bots, of previews, or without a visitor. */
const CLICKS = Array.from({ length: 5 * 3 * 4 }, (_, i) => {
  const visitor = i % 5, visit = Math.floor(i / 20), at = START + visit * 3_600_000 + (i % 20) * 30_000;
  return { visitor: { id: `v${visitor}` }, page: { path: `/${i}` }, agent: { kind: "human" }, at };
});
const NOISE = [
  { ...CLICKS[0], agent: { kind: "bot" } },
  { ...CLICKS[1], preview: true },
  { page: { path: "/" }, agent: { kind: "human" }, at: START },
];

function sessions(
  brokers: readonly string[],
  { clicks, hits, id }: Readonly<Record<"clicks" | "hits" | "id", string>>,
) {
  return `
name: site-sessions
version: "1"
env:
  bufferSize: 4096
  shutdownTimeout: 45s
  checkpointing: { interval: 1s, retainCompleted: 5 }
  state: { backend: pebble }
source:
  type: kafka
  kafka:
    brokers: [${brokers.join(", ")}]
    topics: [${clicks}]
    groupID: ${id}
    startFrom: earliest
    exactlyOnce: true
    deserialize: json
    watermark: { maxOutOfOrderness: 20s, interval: 1s, idleTimeout: 2s }
    sasl: { mechanism: scram-sha-256, username: "\${CLICK_USER}", password: "\${CLICK_PASS}" }
    tls: { caFile: certs/ca.pem }
  timestamp: { field: at }
pipeline:
  - { id: no-bots, type: filter, filter: { field: agent.kind, operator: not_equals, value: bot } }
  - { id: has-visitor, type: filter, filter: { field: visitor.id, operator: exists } }
  - { id: no-preview, type: filter, filter: { field: preview, operator: not_exists } }
  - { id: slim, type: selectFields, selectFields: { fields: [visitor.id, page.path, at] } }
  - { id: names, type: renameFields, renameFields: { renames: [ { from: visitor.id, to: visitor } ] } }
  - { id: tag, type: setFields, setFields: { sets: [ { field: meta.v, value: 2 } ] } }
  - { id: by-visitor, type: keyBy, keyBy: { field: visitor, partitions: 12 } }
  - { id: visit, type: window, window: { type: session, gap: 20m, allowedLateness: 2m } }
  - { id: hits, type: reduce, reduce: { function: count } }
sink:
  type: txnKafka
  txnKafka:
    brokers: [${brokers.join(", ")}]
    topic: ${hits}
    transactionalID: ${id}
    markerTopic: ${hits}.markers
    serialize: json
    sasl: { mechanism: scram-sha-256, username: "\${CLICK_USER}", password: "\${CLICK_PASS}" }
    tls: { caFile: certs/ca.pem }
`;
}

serviceTest(
  "sessions of clicks, exactly once, over TLS with a login; what is wrong with either is said",
  ["own kafka", "certificates"],
  async () => {
    await using kafka = await kafkaService({ listeners: ["SASL_SSL"], users: { carol: "carol-secret" } });
    const clicks = await kafka.java.createTopic("web.clicks", { partitions: 3 });
    const hits = await kafka.java.createTopic("hits", { partitions: 2 });
    await kafka.java.produce(
      clicks,
      [...CLICKS, ...NOISE].map((click, i) => ({ partition: i % 3, value: JSON.stringify(click) })),
    );
    await inFolder(async (folder) => {
      await Deno.mkdir(`${folder}/certs`);
      await Deno.writeTextFile(`${folder}/certs/ca.pem`, kafka.certificates!.authority);
      await Deno.writeTextFile(
        `${folder}/s.yaml`,
        sessions(kafka.brokers, { clicks, hits, id: `id-${hits}` }),
      );
      const env = { CLICK_USER: "carol", CLICK_PASS: "carol-secret" };

      const wrong = await mailer(["dry-run", `${folder}/s.yaml`], { ...env, CLICK_PASS: "guessed-secret" });
      assert.equal(wrong.code, 1, wrong.out + wrong.err);
      assert.match(wrong.out, /^site-sessions: source source \(kafka\): not ok$/m);
      assert.equal((wrong.out + wrong.err).includes("guessed-secret"), false);
      const fine = await mailer(["dry-run", `${folder}/s.yaml`], env);
      assert.equal(fine.code, 0, fine.out + fine.err);
      await Deno.rename(`${folder}/certs/ca.pem`, `${folder}/certs/moved.pem`);
      const lost = await mailer(["dry-run", `${folder}/s.yaml`], env);
      assert.match(lost.out, /tls\.caFile "certs\/ca\.pem" cannot be read/);
      await Deno.rename(`${folder}/certs/moved.pem`, `${folder}/certs/ca.pem`);

      const child = new Deno.Command(Deno.execPath(), {
        args: ["run", "-A", cli, "run", "--data-dir", `${folder}/data`, `${folder}/s.yaml`],
        env,
        stdout: "null",
        stderr: "piped",
      }).spawn();
      const said = new Response(child.stderr).text();
      const rows = async () =>
        (await kafka.java.records(hits)).map(({ value }) => JSON.parse(new TextDecoder().decode(value!)));
      // The last visit of each is still going on: its window is open.
      const expected = 10, until = Date.now() + 60_000;
      while ((await rows()).length < expected && Date.now() < until) {
        await new Promise((r) => setTimeout(r, 200));
      }
      child.kill("SIGINT");
      assert.equal((await child.status).code, 0, await said);
      await said;
      const found = (await rows()).map((
        { visitor, count, window },
      ) => [visitor, count, Date.parse(window.start)]);
      const wanted = [0, 1, 2, 3, 4].flatMap((visitor) =>
        [0, 1].map((visit) => [`v${visitor}`, 4, START + visit * 3_600_000 + visitor * 30_000])
      );
      assert.deepEqual(found.map(String).sort(), wanted.map(String).sort());
    });
  },
);

serviceTest(
  "dry-run names what a run would fail of: a topic that is not there, a broker that does not answer",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    const topic = await kafka.java.createTopic("orders");
    const document = (brokers: string, name: string) => `
name: dry
source: { type: kafka, kafka: { brokers: [${brokers}], topic: ${name}, groupID: g } }
sink: { type: blackhole }
`;
    await inFolder(async (folder) => {
      const dryRun = async (text: string) => {
        await Deno.writeTextFile(`${folder}/d.yaml`, text);
        return await mailer(["dry-run", "--json", `${folder}/d.yaml`]);
      };
      const fine = await dryRun(document(kafka.brokers[0]!, topic));
      assert.equal(fine.code, 0, fine.out);
      assert.equal(JSON.parse(fine.out.split("\n")[0]!).findings.length > 0, true, fine.out);
      const missing = await dryRun(document(kafka.brokers[0]!, `${topic}x`));
      assert.equal(missing.code, 1);
      assert.equal(missing.out.includes(`${topic}x`), true, missing.out);
    });
  },
);

serviceTest(
  "txn: an open transaction is listed and aborted; what is not there is an error",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    const topic = await kafka.java.createTopic("txn", { partitions: 1 }), id = `left-${topic}`;
    await kafka.java.produce(topic, [{ partition: 0, key: "a", value: "1" }], {
      transaction: { id, end: "open" },
    });
    await kafka.java.produce(topic, [{ partition: 0, key: "b", value: "2" }]);
    await inFolder(async (folder) => {
      const file = `${folder}/t.yaml`, brokers = kafka.brokers.join(", ");
      await Deno.writeTextFile(
        file,
        `name: t
source: { type: kafka, kafka: { brokers: [${brokers}], topic: ${topic}, groupID: g } }
sink: { type: blackhole }
`,
      );
      const listed = (await mailer(["txn", "ls", file, "--json"])).out.trim().split("\n").map((line) =>
        JSON.parse(line)
      );
      const found = listed.find((one) => one.id === id);
      assert.deepEqual([found.isOpen, found.isOwn, found.writesTo], [true, false, [`${topic}/0`]]);
      assert.equal((await mailer(["txn", "abort", file, "nobody"])).code, 1);
      const aborted = await mailer(["txn", "abort", file, id]);
      assert.deepEqual([aborted.code, aborted.out], [
        0,
        `aborted: ${id} on ${kafka.brokers.toSorted().join()}\n`,
      ]);
      const seen = await kafka.java.records(topic);
      assert.deepEqual(
        seen.map(({ key }) => new TextDecoder().decode(key!)),
        ["b"],
        "readers go on behind it",
      );
      assert.equal((await mailer(["txn", "abort", file, id])).code, 1, "it is not open any more");
    });
  },
);
