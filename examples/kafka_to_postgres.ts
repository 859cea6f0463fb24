/**
 * What each customer has spent so far, from a topic to a table that always shows the newest total, exactly once.
 * The table: create table customer_totals (customer text primary key, orders bigint, spent numeric)
 *
 * DATABASE_URL=postgres://… KAFKA_BROKERS=localhost:9092 deno run -A examples/kafka_to_postgres.ts
 */
import { count, createEnv, memory, sum } from "@mailer/core";
import { kafkaSource } from "@mailer/core/connectors/kafka";
import { postgresSink } from "@mailer/core/connectors/postgres";
import { setting, untilInterrupted } from "./settings.ts";

interface Order {
  readonly customer: string;
  readonly amount: number;
}

const env = createEnv({ name: "kafka-to-postgres" })
  .withCheckpointing("1s")
  .withStateBackend(memory(setting("DATA_DIR", "data")));
env
  .fromSource(kafkaSource<Order>({
    brokers: setting("KAFKA_BROKERS", "localhost:9092").split(","),
    topics: [setting("ORDERS_TOPIC", "orders")],
    groupId: setting("ORDERS_GROUP", "customer-totals"),
  }))
  .keyBy((order) => order.customer)
  .aggregate({ orders: count(), spent: sum("amount") })
  .map((row, { key }) => ({ customer: key, ...row }))
  .toSink(postgresSink({
    dsn: setting("DATABASE_URL", "postgres://localhost/postgres"),
    table: setting("TOTALS_TABLE", "customer_totals"),
    mapping: { customer: "customer", orders: "orders", spent: "spent" },
    mode: "upsert",
    conflictColumns: ["customer"],
    batchSize: 5000,
  }));
await env.execute({ signal: untilInterrupted() });
