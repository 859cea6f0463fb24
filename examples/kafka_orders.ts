/**
 * What each customer has spent so far on completed orders, from a topic to a topic: at least once.
 *
 * KAFKA_BROKERS=localhost:9092 deno run -A examples/kafka_orders.ts
 */
import { count, createEnv, memory, sum } from "@mailer/core";
import { kafkaSink, kafkaSource } from "@mailer/core/connectors/kafka";
import { setting, untilInterrupted } from "./settings.ts";

interface Order {
  readonly customer: string;
  readonly status: "completed" | "pending";
  readonly amount: number;
}

const brokers = setting("KAFKA_BROKERS", "localhost:9092").split(",");
const env = createEnv({ name: "kafka-orders" })
  .withCheckpointing("5s")
  .withStateBackend(memory(setting("DATA_DIR", "data")));
env
  .fromSource(kafkaSource<Order>({
    brokers,
    topics: [setting("ORDERS_TOPIC", "orders")],
    groupId: setting("ORDERS_GROUP", "order-totals"),
  }))
  .filter((order) => order.status === "completed")
  .keyBy((order) => order.customer)
  .aggregate({ orders: count(), spent: sum("amount") })
  .map((row, { key }) => ({ customer: key, ...row }))
  .toSink(kafkaSink({ brokers, topic: setting("TOTALS_TOPIC", "order-totals") }));
await env.execute({ signal: untilInterrupted() });
