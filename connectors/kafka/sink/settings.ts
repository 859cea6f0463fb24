/**
 * Settings that both Kafka sinks share, checked and with their defaults.
 *
 * @module
 */
import { type Duration, parseDuration } from "../../../lib/duration.ts";
import { MailerError } from "../../../lib/errors.ts";
import { type Format, jsonFormat } from "../../../lib/format/mod.ts";
import type { RecordContext } from "../../../lib/record.ts";
import type { KafkaClient, KafkaClientContext, KafkaClientFactory, KafkaConnection } from "../client.ts";
import type { Codec } from "../protocol/types.ts";

/** Where to connect, what a record becomes in Kafka, and how records are put together. */
export interface KafkaRecordOptions<T = unknown> extends KafkaConnection {
  /** Topic to write to, which must exist; a function chooses one for each record. */
  readonly topic: string | ((value: T, record: RecordContext) => string);
  /**
   * Key of a record. Default: the key it has, be it of a `keyBy` or of the source. Texts are written as UTF-8 and bytes as they are,
   * null and undefined are no key, anything else is written as JSON.
   */
  readonly key?: (value: T, record: RecordContext) => unknown;
  /** Partition of a record, 0 ≤ it < `partitions`. Default: by the key, as Java's producer; records without a key by turns. */
  readonly partition?: (value: T, record: RecordContext, partitions: number) => number;
  /** How values are written; default json. Null is no value: a tombstone. */
  readonly format?: Format;
  /** How batches are compressed. Default: `none`. */
  readonly codec?: Codec;
  /** Records of a partition that go without waiting for more. More go together while a batch is under way. Default 1000. */
  readonly batchSize?: number;
  /** The most bytes of a batch, before compression; one larger record still goes. Default 256 KiB. */
  readonly batchBytes?: number;
  /** Longest wait of a record for others to go with it. Default 5 ms. */
  readonly batchTimeout?: Duration;
  /** Bytes that may wait or be under way until a write waits. Default 32 MiB. */
  readonly bufferBytes?: number;
  /** For how long the client tries a batch again. Default 2 minutes. */
  readonly deliveryTimeout?: Duration;
  /** Makes the client. Default: the one on kafkajs. */
  readonly client?: KafkaClientFactory;
}

/** {@link KafkaRecordOptions} with everything said. */
export interface RecordSettings {
  readonly connection: KafkaConnection;
  /** Undefined: the one on kafkajs. */
  readonly client: KafkaClientFactory | undefined;
  readonly topic: string | ((value: unknown, record: RecordContext) => string);
  readonly key: ((value: unknown, record: RecordContext) => unknown) | undefined;
  readonly partition: ((value: unknown, record: RecordContext, partitions: number) => number) | undefined;
  readonly format: Format;
  readonly codec: Codec;
  readonly batchSize: number;
  readonly batchBytes: number;
  readonly batchTimeoutMs: number;
  readonly bufferBytes: number;
  readonly deliveryTimeoutMs: number;
}

const TOPIC = /^[A-Za-z0-9._-]{1,249}$/;
const CODECS: readonly Codec[] = ["none", "gzip", "snappy", "lz4", "zstd"];

/** @throws {MailerError} `invalid_kafka_options`, `invalid_duration` */
export function recordSettings<T>(options: KafkaRecordOptions<T>): RecordSettings {
  const settings: RecordSettings = {
    connection: connectionOf(options),
    client: options.client,
    topic: options.topic as RecordSettings["topic"],
    key: options.key as RecordSettings["key"],
    partition: options.partition as RecordSettings["partition"],
    format: options.format ?? jsonFormat(),
    codec: options.codec ?? "none",
    batchSize: options.batchSize ?? 1000,
    batchBytes: options.batchBytes ?? 256 * 1024,
    batchTimeoutMs: parseDuration(options.batchTimeout ?? 5),
    bufferBytes: options.bufferBytes ?? 32 * 2 ** 20,
    deliveryTimeoutMs: parseDuration(options.deliveryTimeout ?? "2m"),
  };
  const { topic, codec, batchSize, batchBytes, bufferBytes, batchTimeoutMs, deliveryTimeoutMs } = settings;
  if (typeof topic !== "function") checkTopic("topic", topic);
  if (!CODECS.includes(codec)) {
    throw invalid(`\`codec\` is one of ${CODECS.join(", ")}, not ${String(codec)}`);
  }
  for (const [name, value] of Object.entries({ batchSize, batchBytes, bufferBytes })) {
    if (!Number.isInteger(value) || value < 1) {
      throw invalid(`\`${name}\` is a whole number ≥ 1, not ${value}`);
    }
  }
  if (batchTimeoutMs < 0) throw invalid("`batchTimeout` is not negative");
  if (!(deliveryTimeoutMs > 0)) throw invalid("`deliveryTimeout` is more than 0");
  return settings;
}

function connectionOf(
  { brokers, clientId, tls, sasl, connectTimeoutMs, requestTimeoutMs }: KafkaConnection,
): KafkaConnection {
  if (!Array.isArray(brokers) || brokers.length === 0) {
    throw invalid('`brokers` are missing, e.g. brokers: ["localhost:9092"]');
  }
  return {
    brokers,
    tls,
    sasl,
    ...(clientId === undefined ? {} : { clientId }),
    ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
    ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
  };
}

/** A client as the settings say. The one on kafkajs is loaded when it is wanted. */
export async function connect(
  { client, connection }: Pick<RecordSettings, "client" | "connection">,
  { clock, logger }: KafkaClientContext,
): Promise<KafkaClient> {
  const factory = client ?? (await import("../kafkajs/mod.ts")).kafkaClient;
  return factory(connection, { clock, logger });
}

/** Whether a broker would take it as the name of a topic. */
export function isTopicName(name: unknown): name is string {
  return typeof name === "string" && TOPIC.test(name) && name !== "." && name !== "..";
}

/** @throws {MailerError} `invalid_kafka_options` */
export function checkTopic(field: string, name: unknown): asserts name is string {
  if (isTopicName(name)) return;
  throw invalid(
    `\`${field}\` is a name of letters, digits, ., _ and -, at most 249 of them, not ${JSON.stringify(name)}`,
  );
}

/** An error about the options of a sink. */
export function invalid(message: string): MailerError {
  return new MailerError("invalid_kafka_options", `kafka sink: ${message}`, { lasting: true });
}

/** What `describe` says of these settings. */
export function describeSettings(settings: RecordSettings): Record<string, unknown> {
  const { connection, topic, format, codec } = settings;
  return {
    brokers: connection.brokers,
    topic: typeof topic === "function" ? "(by record)" : topic,
    format: format.name,
    ...(codec === "none" ? {} : { codec }),
    ...(connection.tls === undefined ? {} : { tls: true }),
    ...(connection.sasl === undefined ? {} : { sasl: connection.sasl.mechanism }),
  };
}
