/**
 * Kills a process that runs a pipeline from Kafka to Kafka with `kill -9`, at random instants, and starts it again until all of
 * its input has come through. Kafka's Java consumer judges what a `read_committed` reader sees.
 *
 * As a program: `deno run -A tests/kafka/kill_rounds.ts [ROUNDS] [memory|kv|sqlite…]`.
 *
 * @module
 */
// deno-lint-ignore-file no-console -- a program prints
import assert from "node:assert/strict";
import { type Kafka, kafkaService } from "../services/mod.ts";
import type { Orders, Row } from "./killed.ts";

/** Backends there are. */
export const BACKENDS = ["memory", "kv", "sqlite"] as const;

/** What came of a round. */
export interface Round {
  /** Processes that were killed. */
  readonly kills: number;
  /** Processes that went on from a checkpoint. */
  readonly restored: number;
}

const PARTITIONS = 3;
const RECORDS = 12_000;
/** Records a second: so a run takes some seconds, on a busy machine as well. */
const RATE = 6000;
const PROGRAM = new URL("./killed.ts", import.meta.url).pathname;
const text = new TextDecoder();

/** Numbers 0 ≤ x < 1, the same for the same seed (Numerical Recipes' linear congruence). */
function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

/** A topic to read, and the rows that have to come of it, computed here by definition. */
export interface Input {
  readonly topic: string;
  readonly expected: readonly string[];
}

/** Writes the input. All records of a key are in one partition, so its rows do not depend on the order of reading. */
export async function writeInput(kafka: Kafka): Promise<Input> {
  const next = random(7), rows = new Map<string, Row>(), expected: string[] = [];
  const topic = await kafka.java.createTopic("killed-in", { partitions: PARTITIONS });
  const records = Array.from({ length: RECORDS }, () => {
    const k = `k${Math.floor(next() * 60)}`, v = Math.floor(next() * 100);
    const { n, sum } = rows.get(k) ?? { n: 0, sum: 0 }, row = { k, n: n + 1, sum: sum + v };
    rows.set(k, row);
    expected.push(JSON.stringify(row));
    return { partition: Number(k.slice(1)) % PARTITIONS, key: k, value: JSON.stringify({ k, v }) };
  });
  await kafka.java.produce(topic, records);
  return { topic, expected: expected.sort() };
}

/** One round: from nothing to the end, with kills in between. What is visible is what the definition says. */
export async function killRound(
  kafka: Kafka,
  input: Input,
  backend: Orders["backend"],
  seed: number,
  mostKills = 5,
): Promise<Round> {
  const folder = await Deno.makeTempDir({ prefix: "mailer-kafka-kill-" });
  try {
    const output = await kafka.java.createTopic("killed-out", { partitions: 2 }), next = random(seed);
    const orders = { brokers: kafka.brokers, input: input.topic, output, backend, folder, rate: RATE };
    const isThrough = async () => (await kafka.java.records(output)).length >= input.expected.length;
    let kills = 0, restored = 0;
    for (let isOver = false; !isOver;) {
      const said = kills < mostKills ? await runAndKill(orders, next) : await runToEnd(orders, isThrough);
      isOver = kills === mostKills;
      if (!isOver) kills++;
      if (/^restored /m.test(said)) restored++;
    }
    const what = `backend ${backend}, seed ${seed}, ${kills} kills, ${restored} restored`;
    const rows = (await kafka.java.records(output)).map(({ value }) => text.decode(value!));
    assert.deepEqual(rows.sort(), input.expected, what);
    for (const topic of [output, `${output}.checkpoints`]) {
      for (const { stable, end } of await kafka.java.offsets(topic)) {
        assert.equal(stable, end, `${what}: an open transaction holds readers of ${topic} back`);
      }
    }
    return { kills, restored };
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Starts a process; what it says is gathered, and `running` resolves when records flow. */
function start(orders: Orders) {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--unstable-kv", PROGRAM, JSON.stringify(orders)],
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const running = Promise.withResolvers<void>();
  const said = (async () => {
    let all = "";
    for await (const piece of child.stderr.pipeThrough(new TextDecoderStream())) {
      all += piece;
      if (/^running$/m.test(all)) running.resolve();
    }
    running.resolve(); // or it has ended
    return all;
  })();
  return { child, said, running: running.promise };
}

/** Some are killed while they start or recover, most of them while records flow. */
async function runAndKill(orders: Orders, next: () => number): Promise<string> {
  const { child, said, running } = start(orders);
  if (next() < 0.2) await delay(next() * 600);
  else {
    await running;
    await delay(next() * RECORDS / RATE * 500);
  }
  let isKilled = true;
  try {
    child.kill("SIGKILL");
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    isKilled = false;
  }
  const { signal, code } = await child.status, all = await said;
  assert.ok(isKilled && signal === "SIGKILL", `it ended by itself, with code ${code}: ${all}`);
  return all;
}

/** Runs until `isThrough`, then stops as an operator would. */
async function runToEnd(orders: Orders, isThrough: () => Promise<boolean>): Promise<string> {
  const { child, said, running } = start(orders);
  let isRunning = true;
  const status = child.status.finally(() => isRunning = false);
  await running;
  const until = performance.now() + 90_000;
  while (isRunning && !await isThrough() && performance.now() < until) await delay(200);
  if (isRunning) child.kill("SIGTERM");
  const { code } = await status, all = await said;
  assert.equal(code, 0, all);
  return all;
}

const delay = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

if (import.meta.main) {
  const [rounds = "50", ...named] = Deno.args;
  const backends = BACKENDS.filter((backend) => named.length === 0 || named.includes(backend));
  await using kafka = await kafkaService();
  const input = await writeInput(kafka);
  for (const backend of backends) {
    let kills = 0, restored = 0;
    for (let seed = 1; seed <= Number(rounds); seed++) {
      const round = await killRound(kafka, input, backend, seed);
      kills += round.kills;
      restored += round.restored;
      console.log(`${backend}, round ${seed}: right; ${kills} kills, ${restored} restored runs so far`);
    }
  }
}
