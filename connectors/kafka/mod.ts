/**
 * Kafka: a source, a sink that writes at least once, and one that writes exactly once.
 *
 * ```ts ignore
 * import { createEnv, sum } from "@mailer/core";
 * import { kafkaSource, transactionalKafkaSink } from "@mailer/core/connectors/kafka";
 *
 * const brokers = ["localhost:9092"];
 * const env = createEnv({ name: "order-totals" }).withCheckpointing("10s");
 * env
 *   .fromSource(kafkaSource<{ customer: string; amount: number }>({ brokers, topics: ["orders"], groupId: "order-totals" }))
 *   .keyBy((order) => order.customer)
 *   .aggregate({ total: sum("amount") })
 *   .toSink(transactionalKafkaSink({ brokers, topic: "order-totals", transactionalId: "order-totals-v1" }));
 * console.log(env.explain()); // await env.execute() runs it
 * ```
 *
 * @module
 */
export { avroFormat, type AvroFormatOptions } from "./avro/format.ts";
export { SchemaRegistryError, type SchemaRegistryOptions } from "./avro/registry.ts";
export type * from "./client.ts";
export * from "./errors.ts";
export { kafkaClient } from "./kafkajs/mod.ts";
export { kafkaSink, type KafkaSinkOptions } from "./kafka_sink.ts";
export { kafkaSource, type KafkaSourceOptions, type KafkaStart } from "./kafka_source.ts";
export { FetchedRecords } from "./protocol/fetched_records.ts";
export { type BatchStamp, RecordBatchBuilder } from "./protocol/record_batch_builder.ts";
export type { Codec, KafkaRecord } from "./protocol/types.ts";
export type { KafkaRecordOptions } from "./sink/settings.ts";
export { transactionalKafkaSink, type TransactionalKafkaSinkOptions } from "./transactional_sink.ts";
