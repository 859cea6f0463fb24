/**
 * The examples with Kafka and Postgres, run as their reader would run them, against real servers. What comes out is compared with
 * what is counted here, and read by Java's consumer.
 */
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { kafkaService, postgresService, serviceTest } from "../services/mod.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const START = Date.UTC(2026, 2, 1, 9);
const COUNT = 3000;

interface Order {
  readonly customer: string;
  readonly status: "completed" | "pending";
  readonly amount: number;
  readonly at: string;
}

/** Orders of twenty customers over fifty minutes, a little out of order. */
const ORDERS: readonly Order[] = Array.from({ length: COUNT }, (_, i) => ({
  customer: `c${(i * 7) % 20}`,
  status: i % 3 === 0 ? "pending" : "completed",
  amount: (i * 31) % 97,
  at: new Date(START + i * 1000 - ((i * 13) % 5) * 1000).toISOString(),
}));

interface Total {
  readonly customer: string;
  readonly orders: number;
  readonly spent: number;
}

function totals(orders: readonly Order[]): Total[] {
  const found = new Map<string, Total>();
  for (const { customer, amount } of orders) {
    const { orders = 0, spent = 0 } = found.get(customer) ?? {};
    found.set(customer, { customer, orders: orders + 1, spent: spent + amount });
  }
  return [...found.values()];
}

/** Starts an example, waits until `isOver`, interrupts it, and expects a regular end. */
async function run(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  isOver: () => Promise<boolean>,
): Promise<void> {
  const data = await Deno.makeTempDir();
  const child = new Deno.Command(Deno.execPath(), {
    args: [...args],
    cwd: root,
    env: { ...env, DATA_DIR: data },
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const said = new Response(child.stderr).text();
  let isRunning = true;
  const status = child.status.finally(() => isRunning = false);
  try {
    const until = Date.now() + 60_000;
    while (isRunning && !(await isOver())) {
      if (Date.now() > until) throw new Error("it does not come to its end");
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  } finally {
    if (isRunning) child.kill("SIGINT");
    const { code } = await status;
    const text = await said;
    await Deno.remove(data, { recursive: true });
    assert.equal(code, 0, text);
  }
}

/** The YAML and the TypeScript form of an example. */
function forms(name: string): readonly (readonly string[])[] {
  return [
    ["run", "-A", "cli.ts", "run", "--data-dir", "DATA", `examples/${name}.yaml`],
    ["run", "-A", "--unstable-kv", `examples/${name.replaceAll("-", "_")}.ts`],
  ];
}

for (const name of ["kafka-orders", "kafka-to-kafka-exactly-once", "kafka-to-postgres"]) {
  for (const form of forms(name)) {
    const isYaml = form.at(-1)!.endsWith(".yaml");
    const needs = name === "kafka-to-postgres" ? ["kafka", "postgres"] as const : ["kafka"] as const;
    serviceTest(`example ${name}, as ${isYaml ? "YAML" : "TypeScript"}`, needs, async () => {
      await using kafka = await kafkaService();
      const orders = await kafka.java.createTopic("orders", { partitions: 3 });
      const out = await kafka.java.createTopic("totals", { partitions: 2 });
      await kafka.java.produce(
        orders,
        ORDERS.map((order, i) => ({ partition: i % 3, key: order.customer, value: JSON.stringify(order) })),
      );
      const env = {
        KAFKA_BROKERS: kafka.brokers.join(),
        ORDERS_TOPIC: orders,
        ORDERS_GROUP: `group-${out}`,
        TOTALS_TOPIC: out,
      };
      const folder = await Deno.makeTempDir();
      const args = form.map((arg) => arg === "DATA" ? folder : arg);
      const rows = async () =>
        (await kafka.java.records(out)).map(({ value }) => JSON.parse(new TextDecoder().decode(value!)));
      try {
        if (name === "kafka-orders") {
          const completed = ORDERS.filter(({ status }) => status === "completed");
          await run(args, env, async () => (await rows()).length >= completed.length);
          const last = new Map((await rows()).map((row: Total) => [row.customer, row]));
          assert.deepEqual(sorted([...last.values()]), sorted(totals(completed)));
        } else if (name === "kafka-to-kafka-exactly-once") {
          const closed = perMinute();
          await run(args, env, async () => (await rows()).length >= closed.length);
          assert.deepEqual(sorted(await rows()), sorted(closed));
        } else {
          await using postgres = await postgresService();
          const table = out.replaceAll("-", "_");
          await postgres.execute(
            `create table ${table} (customer text primary key, orders bigint, spent numeric)`,
          );
          const read = async () =>
            await postgres.rows(`select customer, orders::int, spent::int from ${table}`);
          const more = { ...env, DATABASE_URL: postgres.url, TOTALS_TABLE: table };
          await run(args, more, async () => {
            const { length } = (await read()).filter(({ orders }) => orders === COUNT / 20);
            return length === 20;
          });
          assert.deepEqual(sorted(await read()), sorted(totals(ORDERS)));
          await postgres.execute(`drop table ${table}`);
        }
      } finally {
        await Deno.remove(folder, { recursive: true });
      }
    });
  }
}

/** The minutes that are over: ten seconds behind the least of the partitions' newest orders. */
function perMinute(): unknown[] {
  const newest = [0, 1, 2].map((partition) =>
    Math.max(...ORDERS.filter((_, i) => i % 3 === partition).map(({ at }) => Date.parse(at)))
  );
  const watermark = Math.min(...newest) - 10_000, minute = 60_000;
  const byWindow = new Map<string, Order[]>();
  for (const order of ORDERS) {
    const start = Math.floor(Date.parse(order.at) / minute) * minute;
    if (start + minute > watermark) continue;
    const key = `${order.customer} ${start}`;
    byWindow.set(key, [...byWindow.get(key) ?? [], order]);
  }
  return [...byWindow].map(([key, orders]) => {
    const start = Number(key.split(" ")[1]);
    const window = { start: new Date(start).toISOString(), end: new Date(start + minute).toISOString() };
    return { ...totals(orders)[0]!, window };
  });
}

function sorted(rows: readonly unknown[]): string[] {
  return rows.map((row) => JSON.stringify(row)).sort();
}
