/**
 * Orders per customer and minute, from a topic to a topic, exactly once: each checkpoint is a transaction.
 *
 * KAFKA_BROKERS=localhost:9092 deno run -A --unstable-kv examples/kafka_to_kafka_exactly_once.ts
 */
import { boundedOutOfOrderness, count, createEnv, kv, sum, tumbling } from "@mailer/core";
import { kafkaSource, transactionalKafkaSink } from "@mailer/core/connectors/kafka";
import { setting, untilInterrupted } from "./settings.ts";

interface Order {
  readonly customer: string;
  readonly amount: number;
  readonly at: string;
}

const brokers = setting("KAFKA_BROKERS", "localhost:9092").split(",");
const group = setting("ORDERS_GROUP", "orders-per-minute");
const env = createEnv({ name: "kafka-to-kafka-exactly-once" })
  .withCheckpointing("1s")
  .withStateBackend(kv(setting("DATA_DIR", "data")))
  .withRestart({ attempts: 10 });
env
  .fromSource(
    kafkaSource<Order>({ brokers, topics: [setting("ORDERS_TOPIC", "orders")], groupId: group }),
    {
      timestamp: (order) => Date.parse(order.at),
      watermarks: boundedOutOfOrderness("10s", { idleTimeout: "5s" }),
    },
  )
  .keyBy((order) => order.customer)
  .window(tumbling("1m"))
  .aggregate({ orders: count(), spent: sum("amount") })
  .map((row, { key, window }) => ({
    customer: key,
    ...row,
    window: { start: new Date(window!.start).toISOString(), end: new Date(window!.end).toISOString() },
  }))
  .toSink(transactionalKafkaSink({
    brokers,
    topic: setting("TOTALS_TOPIC", "orders-per-minute"),
    transactionalId: group,
  }));
await env.execute({ signal: untilInterrupted() });
