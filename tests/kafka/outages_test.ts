/**
 * A pipeline from Kafka to Kafka, exactly once, while its brokers die and come back, change leaders and lose answers; and a process
 * that was asleep while another took over. What readers of committed records see, Java's consumer says.
 *
 * @module
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { kafkaService, serviceTest, toxiproxy } from "../services/mod.ts";

const cli = fileURLToPath(new URL("../../cli.ts", import.meta.url));
const text = (bytes: Uint8Array | null): string => new TextDecoder().decode(bytes!);
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

interface Step {
  readonly key: string;
  readonly n: number;
}

/** Steps of ten keys; each key's are numbers from 1, so a running sum tells whether one is missing or there twice. */
function steps(from: number, to: number): Step[] {
  return Array.from(
    { length: to - from },
    (_, i) => ({ key: `k${(from + i) % 10}`, n: Math.floor((from + i) / 10) + 1 }),
  );
}

/** The running sums of `count` steps. */
function sums(count: number): string[] {
  const sum = new Map<string, number>();
  return steps(0, count).map(({ key, n }) => {
    sum.set(key, (sum.get(key) ?? 0) + n);
    return `${key} ${sum.get(key)}`;
  });
}

function document(brokers: readonly string[], source: string, out: string, id: string): string {
  return `name: outages
env:
  checkpointing: { interval: 500ms }
  restart: { attempts: 50, delay: 200ms, maxDelay: 2s }
source:
  type: kafka
  kafka: { brokers: [${brokers.join(", ")}], topic: ${source}, groupID: ${id}, exactlyOnce: true }
pipeline:
  - { id: by, type: keyBy, keyBy: { field: key, partitions: 4 } }
  - { id: sum, type: reduce, reduce: { function: sum, field: n } }
sink:
  type: txnKafka
  txnKafka: { brokers: [${brokers.join(", ")}], topic: ${out}, transactionalID: ${id} }
`;
}

function start(folder: string, data = "data") {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", cli, "run", "--data-dir", `${folder}/${data}`, `${folder}/w.yaml`],
    stdout: "null",
    stderr: "piped",
  }).spawn();
  return { child, said: new Response(child.stderr).text(), status: child.status };
}

/** Ends it, unless it has ended; one that sleeps, too. */
function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}

serviceTest(
  "brokers that die, change leaders and lose answers: every step is counted once",
  ["own kafka", "toxiproxy"],
  async () => {
    await using proxies = await toxiproxy();
    await using kafka = await kafkaService({ brokers: 3, through: proxies });
    const source = await kafka.java.createTopic("steps", { partitions: 3 });
    const out = await kafka.java.createTopic("sums", { partitions: 3 });
    const folder = await Deno.makeTempDir();
    const rows = async () =>
      (await kafka.java.records(out)).map(({ value }) => {
        const { key, sum } = JSON.parse(text(value));
        return `${key} ${sum}`;
      });
    let written = 0;
    const write = async (count: number) => {
      const some = steps(written, written + count);
      await kafka.java.produce(
        source,
        some.map((step) => ({
          partition: Number(step.key.slice(1)) % 3,
          key: step.key,
          value: JSON.stringify(step),
        })),
      );
      written += count;
    };
    const settled = async (what: string) => {
      for (const until = Date.now() + 90_000;; await pause(300)) {
        const { length } = await rows();
        if (length >= written) return;
        assert.ok(Date.now() < until, `${what}: ${length} of ${written} rows came`);
      }
    };
    await Deno.writeTextFile(`${folder}/w.yaml`, document(kafka.brokers, source, out, `id-${out}`));
    const { child, said, status } = start(folder);
    try {
      await write(200);
      await settled("at first");
      await write(200);
      await kafka.kill(2);
      await write(200);
      await settled("with a broker less");
      await kafka.start(2);
      await kafka.java.whole(source);
      await kafka.java.whole(out);
      await write(200);
      const mend = await kafka.proxy(1).add({ type: "timeout", timeout: 0 });
      await pause(3000);
      await mend();
      await write(200);
      await settled("after answers were lost");
      await kafka.stop(3);
      await write(200);
      await settled("with other leaders");
      await kafka.start(3);
      await write(100);
      await settled("in the end");
      child.kill("SIGINT");
      const { code } = await status;
      assert.equal(code, 0, await said);
      assert.deepEqual((await rows()).sort(), sums(written).sort(), await said);
    } finally {
      kill(child);
      await status;
      await said;
      await Deno.remove(folder, { recursive: true });
    }
  },
);

serviceTest(
  "a process that slept while another took over is fenced, and ends with code 4",
  ["kafka"],
  async () => {
    await using kafka = await kafkaService();
    const source = await kafka.java.createTopic("steps", { partitions: 3 });
    const out = await kafka.java.createTopic("sums", { partitions: 2 });
    const folder = await Deno.makeTempDir(), COUNT = 300;
    const rows = async () => (await kafka.java.records(out)).map(({ value }) => text(value));
    const until = async (count: number) => {
      for (const end = Date.now() + 60_000; (await rows()).length < count; await pause(200)) {
        assert.ok(Date.now() < end, `${(await rows()).length} of ${count} rows came`);
      }
    };
    const write = async (from: number, to: number) =>
      await kafka.java.produce(
        source,
        steps(from, to).map((step) => ({
          partition: Number(step.key.slice(1)) % 3,
          key: step.key,
          value: JSON.stringify(step),
        })),
      );
    // Without a group: the group would not give the successor the partitions of one that only sleeps.
    const text1 = document(kafka.brokers, source, out, `id-${out}`).replace(
      `groupID: id-${out}, `,
      "parallel: true, ",
    );
    await Deno.writeTextFile(`${folder}/w.yaml`, text1);
    const children: ReturnType<typeof start>[] = [];
    try {
      await write(0, 100);
      const first = start(folder);
      children.push(first);
      await until(100);
      first.child.kill("SIGSTOP");
      await write(100, 200);
      // The successor goes on from what the first had kept.
      await Deno.copyFile(`${folder}/w.yaml`, `${folder}/copy.yaml`);
      await copyFolder(`${folder}/data`, `${folder}/data2`);
      const second = start(folder, "data2");
      children.push(second);
      await until(200);
      first.child.kill("SIGCONT");
      await write(200, COUNT);
      const { code } = await first.status;
      assert.equal(code, 4, await first.said);
      assert.match(await first.said, /taken over/);
      await until(COUNT);
      second.child.kill("SIGINT");
      assert.equal((await second.status).code, 0, await second.said);
      const found = (await rows()).map((row) => {
        const { key, sum } = JSON.parse(row);
        return `${key} ${sum}`;
      });
      assert.deepEqual(found.sort(), sums(COUNT).sort());
    } finally {
      for (const { child, status, said } of children) {
        kill(child);
        await status;
        await said;
      }
      await Deno.remove(folder, { recursive: true });
    }
  },
);

async function copyFolder(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (isDirectory) await copyFolder(`${from}/${name}`, `${to}/${name}`);
    else if (!name.includes("lock")) await Deno.copyFile(`${from}/${name}`, `${to}/${name}`);
  }
}
