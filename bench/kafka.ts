/**
 * Program: `deno run -A bench/kafka.ts [NAME…] [--records N] [--json]`.
 *
 * What reading from and writing to Kafka costs, with a broker of its own on the same machine, one topic of four partitions, and records
 * that are 150 bytes of JSON without a key. `produce`: makes and writes them, acknowledged by all; `consume`: reads them all; `window`:
 * reads, sums the amounts of a thousand customers in windows of 10 s, about a row for ten records, and writes exactly once, with a
 * checkpoint every second; `postgres`: reads a quarter and upserts it into a table, a checkpoint every second.
 *
 * CPU time of the client is that of this process, with JSON and all else; that of the broker (and of Postgres) stands by itself. Every
 * run is checked by somebody else: Kafka's Java consumer, and psql.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { kafkaSink, kafkaSource, transactionalKafkaSink } from "../connectors/kafka/mod.ts";
import { postgresSink } from "../connectors/postgres/mod.ts";
import { systemClock } from "../lib/clock.ts";
import type { SinkContext } from "../lib/connector.ts";
import { silentLogger } from "../lib/log.ts";
import { batchOf } from "../lib/testing/sink_contract.ts";
import { boundedOutOfOrderness, count, createEnv, type Env, memory, sum, tumbling } from "../mod.ts";
import { type KafkaCluster, kafkaService, type Postgres, postgresService } from "../tests/services/mod.ts";
import { measure } from "./measure.ts";
import { tallySink } from "./memory.ts";
import { type Column, print, printHead, printRow, rounded } from "./print.ts";
import { circumstances } from "./process.ts";
import { cpuOfServer, parentOf } from "./server_cpu.ts";

/** What moving records cost. */
export interface KafkaCost {
  readonly name: KafkaJob;
  readonly records: number;
  /** Records that came out. */
  readonly rows: number;
  readonly recordsPerSecond: number;
  /** Of one core of this process. */
  readonly recordsPerCpuSecond: number;
  /** Seconds a million records. */
  readonly clientCpu: number;
  /** Seconds a million records. */
  readonly brokerCpu: number;
  /** Seconds a million records; 0 without it. */
  readonly postgresCpu: number;
  readonly peakMiB: number;
}

/** What can be measured. */
export type KafkaJob = "produce" | "consume" | "window" | "postgres";

/** All, in the order in which they are run. */
export const KAFKA_JOBS: readonly KafkaJob[] = ["produce", "consume", "window", "postgres"];

interface Order {
  readonly id: number;
  readonly customer: string;
  readonly amount: number;
  /** Ms since the epoch. */
  readonly at: number;
  readonly note: string;
}

interface Total {
  readonly customer: string;
  readonly start: number;
  readonly count: number;
  readonly total: number;
}

const PARTITIONS = 4, CUSTOMERS = 1000, BYTES = 150;
const WINDOW_MS = 10_000, FIRST_AT = 1_700_000_000_000;
/** Records of one write. */
const TOGETHER = 1024;

/** What a run needs. */
interface Scene {
  readonly kafka: KafkaCluster;
  readonly brokerPid: number;
  readonly records: number;
  /** Has `records` records once `produce` has run. */
  readonly input: string;
  /** For checkpoints. */
  readonly folder: string;
}

/** What a job did. */
interface Done {
  readonly records: number;
  /** Work and check are apart: only the first is measured. @returns Records that came out. */
  check(): Promise<number>;
}

/** Measures some jobs with `records` records; `produce` runs always, for it makes the input. */
export async function benchKafka(
  records: number,
  jobs: readonly KafkaJob[] = KAFKA_JOBS,
  around: (name: KafkaJob, work: () => Promise<void>) => Promise<void> = (_, work) => work(),
): Promise<KafkaCost[]> {
  await using kafka = await kafkaService({ compiler: "fast" });
  const folder = await Deno.makeTempDir({ prefix: "mailer-bench-" });
  try {
    const input = await kafka.java.createTopic("orders", { partitions: PARTITIONS });
    const scene: Scene = { kafka, brokerPid: await brokerPid(kafka), records, input, folder };
    const costs: KafkaCost[] = [];
    for (const name of KAFKA_JOBS.filter((name) => name === "produce" || jobs.includes(name))) {
      await around(name, async () => void costs.push(await JOBS[name](scene)));
    }
    return costs.filter(({ name }) => jobs.includes(name));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

const JOBS: Readonly<Record<KafkaJob, (scene: Scene) => Promise<KafkaCost>>> = {
  produce: (scene) => costOf("produce", scene, () => produce(scene)),
  consume: (scene) => costOf("consume", scene, () => consume(scene)),
  window: async (scene) => {
    const output = await scene.kafka.java.createTopic("totals", { partitions: PARTITIONS });
    return await costOf("window", scene, () => windowSums(scene, output));
  },
  postgres: async (scene) => {
    const settings = { fsync: "on", max_wal_size: "4GB" };
    await using postgres = await postgresService({ own: true, settings });
    await postgres.execute(
      "create table orders (id bigint primary key, customer text, amount bigint, at bigint)",
    );
    const [row] = await postgres.rows("select pid from pg_stat_activity where backend_type = 'checkpointer'");
    return await costOf("postgres", scene, () => upsert(scene, postgres), parentOf(Number(row!["pid"])));
  },
};

async function costOf(
  name: KafkaJob,
  { brokerPid }: Scene,
  work: () => Promise<Done>,
  postgresPid?: number,
): Promise<KafkaCost> {
  const postgres = () => postgresPid === undefined ? 0 : cpuOfServer(postgresPid);
  const broker = cpuOfServer(brokerPid), database = postgres();
  const { result, cost } = await measure(work);
  const brokerSeconds = cpuOfServer(brokerPid) - broker, postgresSeconds = postgres() - database;
  const rows = await result.check();
  const { records } = result, perMillion = (seconds: number) => rounded(seconds / records * 1e6);
  return {
    name,
    records,
    rows,
    recordsPerSecond: rounded(records / cost.wallSeconds),
    recordsPerCpuSecond: rounded(records / cost.cpuSeconds),
    clientCpu: perMillion(cost.cpuSeconds),
    brokerCpu: perMillion(brokerSeconds),
    postgresCpu: perMillion(postgresSeconds),
    peakMiB: Math.round(cost.peakMiB),
  };
}

// The jobs

async function produce({ kafka, input, records }: Scene): Promise<Done> {
  const { brokers } = kafka,
    context: SinkContext = {
      id: "bench",
      clock: systemClock,
      logger: silentLogger,
      signal: new AbortController().signal,
      reject(_batch, _index, error) {
        throw error;
      },
    };
  const partition = ({ id }: Order): number => Math.floor(id / TOGETHER) % PARTITIONS;
  const writer = await kafkaSink<Order>({ brokers, topic: input, partition }).open(context);
  for (let from = 0; from < records; from += TOGETHER) {
    const orders = Array.from({ length: Math.min(TOGETHER, records - from) }, (_, i) => order(from + i));
    await writer.write(batchOf(orders));
  }
  await writer.flush();
  await writer.close("done");
  return {
    records,
    async check() {
      const ends = await kafka.java.offsets(input);
      same("produce: records", ends.reduce((total, { end }) => total + end, 0), records);
      return records;
    },
  };
}

async function consume(scene: Scene): Promise<Done> {
  let rows = 0, total = 0;
  const env = createEnv({ name: "consume" });
  env.fromSource(orders(scene)).toSink(tallySink((batch, i) => {
    rows++;
    total += batch.values[i]!.amount;
  }));
  await env.execute();
  return {
    records: scene.records,
    check() {
      same("consume: records", rows, scene.records);
      same("consume: amounts", total, amounts(scene.records));
      return Promise.resolve(rows);
    },
  };
}

async function windowSums(scene: Scene, output: string): Promise<Done> {
  const { kafka, records } = scene, { brokers } = kafka;
  await checkpointed(scene, "window", (env) =>
    env
      .fromSource(orders(scene), {
        timestamp: ({ at }) => at,
        watermarks: boundedOutOfOrderness(0),
      })
      .keyBy(({ customer }) => customer)
      .window(tumbling(WINDOW_MS))
      .aggregate({ count: count(), total: sum("amount") })
      .map(({ count, total }, { key, window }) => ({ customer: key, start: window!.start, count, total }))
      .toSink(transactionalKafkaSink({ brokers, topic: output, transactionalId: output })));
  return {
    records,
    async check() {
      const rows = await kafka.java.records(output), seen = new Set<string>(), text = new TextDecoder();
      let many = 0, all = 0;
      for (const { value } of rows) {
        const { customer, start, count, total } = JSON.parse(text.decode(value!)) as Total;
        seen.add(`${customer} ${start}`);
        many += count;
        all += total;
      }
      same("window: rows without repetitions", seen.size, rows.length);
      same("window: records", many, records);
      same("window: amounts", all, amounts(records));
      return rows.length;
    },
  };
}

async function upsert(scene: Scene, postgres: Postgres): Promise<Done> {
  await checkpointed(scene, "postgres", (env) =>
    env
      .fromSource(orders(scene, [0]))
      .toSink(postgresSink({
        dsn: postgres.url,
        table: "orders",
        mapping: { id: "id", customer: "customer", amount: "amount", at: "at" },
        mode: "upsert",
        conflictColumns: ["id"],
        batchSize: 1000,
      })));
  const [found] = await postgres.rows("select count(*)::int as count from orders");
  const rows = found!["count"] as number;
  return {
    records: rows,
    async check() {
      const [end] = (await scene.kafka.java.offsets(scene.input)).filter(({ partition }) => partition === 0);
      same("postgres: rows", rows, end!.end);
      const [wrong] = await postgres.rows(
        `select count(*)::int as count from orders where at <> ${FIRST_AT} + id or customer <> 'customer-' || (id * 7919) % ${CUSTOMERS}`,
      );
      same("postgres: rows that are wrong", wrong!["count"] as number, 0);
      return rows;
    },
  };
}

// What they share

function orders({ kafka, input }: Scene, partitions?: readonly number[]) {
  return kafkaSource<Order>({
    brokers: kafka.brokers,
    topics: [input],
    until: "end",
    ...(partitions === undefined ? {} : { partitions }),
  });
}

async function checkpointed({ folder }: Scene, name: string, build: (env: Env) => unknown): Promise<void> {
  const env = createEnv({ name }).withCheckpointing("1s").withStateBackend(memory(folder));
  build(env);
  await env.execute();
}

function order(id: number): Order {
  const customer = (id * 7919) % CUSTOMERS, amount = id % 997;
  const digits = `${id}${customer}${amount}`.length;
  return { id, customer: `customer-${customer}`, amount, at: FIRST_AT + id, note: NOTE.slice(digits) };
}

/** Fills a record up to its length; shorter by the digits in front of it. */
const NOTE = "x".repeat(
  BYTES - '{"id":,"customer":"customer-","amount":,"at":1700000000000,"note":""}'.length,
);

/** Sum of all amounts. */
function amounts(records: number): number {
  const rounds = Math.floor(records / 997), rest = records % 997;
  return rounds * (997 * 996 / 2) + rest * (rest - 1) / 2;
}

function same(what: string, found: number, expected: number): void {
  if (found !== expected) throw new Error(`${what}: ${found}, expected ${expected}`);
}

async function brokerPid({ folder }: KafkaCluster): Promise<number> {
  for await (const { name } of Deno.readDir(`${folder}/pids`)) {
    if (name.startsWith("broker-")) return Number(await Deno.readTextFile(`${folder}/pids/${name}`));
  }
  throw new Error("the broker is not there");
}

const COLUMNS: readonly Column[] = [
  ["", 10],
  ["records", 9],
  ["rows", 9],
  ["records/s", 10],
  ["÷ client CPU s", 15],
  ["client CPU s/M", 15],
  ["broker", 7],
  ["Postgres", 9],
  ["peak MiB", 9],
];

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    options: { records: { type: "string" }, json: { type: "boolean" } },
    allowPositionals: true,
  });
  const jobs = positionals.length === 0 ? KAFKA_JOBS : positionals as KafkaJob[];
  const costs = await benchKafka(Number(values.records ?? 2_000_000), jobs);
  if (values.json === true) print(JSON.stringify({ circumstances: await circumstances(), costs }));
  else {
    print(await circumstances());
    printHead(COLUMNS);
    for (const cost of costs) {
      const { name, records, rows, recordsPerSecond, recordsPerCpuSecond } = cost;
      const { clientCpu, brokerCpu, postgresCpu, peakMiB } = cost;
      printRow(COLUMNS, [
        name,
        ...[records, rows, recordsPerSecond, recordsPerCpuSecond, clientCpu, brokerCpu, postgresCpu, peakMiB]
          .map(String),
      ]);
    }
  }
}
