/**
 * Settings of the Kafka source, and what they have to be.
 *
 * @module
 */
import { type Duration, parseDuration } from "../../../lib/duration.ts";
import { MailerError } from "../../../lib/errors.ts";
import { type Format, jsonFormat, stringFormat } from "../../../lib/format/mod.ts";
import type { Isolation, KafkaClientFactory, KafkaConnection, OffsetSpec } from "../client.ts";

/**
 * Where to begin in a partition for which no checkpoint and no group knows a place. `timestamp`: the first record with this time, ms
 * since the epoch, or a later one. `offsets` by `topic/partition`; partitions that are not named begin at their first record.
 */
export type KafkaStart =
  | "earliest"
  | "latest"
  | { readonly timestamp: number }
  | { readonly offsets: Readonly<Record<string, number>> };

/** Settings of {@link kafkaSource}. */
export interface KafkaSourceOptions<T = unknown> extends KafkaConnection {
  /** Names of topics; or give `pattern`. */
  readonly topics?: readonly string[];
  /** Topics whose name matches, also those that are made later; never the broker's own. */
  readonly pattern?: RegExp;
  /** Only these partitions of the topics; not with a group or a pattern. */
  readonly partitions?: readonly number[];
  /**
   * Consumer group: processes with the same one share the partitions out, and lag can be seen from outside. Where the pipeline keeps
   * state by key, one process has to get all of them. Default: none, and this process reads all partitions.
   */
  readonly groupId?: string | undefined;
  /** Name of this process in the group that survives a restart: it gets its partitions back without a rebalance. */
  readonly instanceId?: string | undefined;
  /** Default `earliest`. */
  readonly start?: KafkaStart;
  /** How values are written. Default: JSON. A null value (tombstone) is null in any format. */
  readonly format?: Format<T>;
  /** How keys are written. Default: text. A missing key is null. */
  readonly keyFormat?: Format;
  /** Default `read_committed`: nothing of transactions that are open or aborted. */
  readonly isolation?: Isolation;
  /**
   * What to do where records were deleted before they were read. Default `fail`; `earliest` goes on with the first record there is,
   * `latest` behind the last one. What is lost is logged.
   */
  readonly onOffsetLost?: "fail" | "earliest" | "latest";
  /** How often to look for new partitions, which are read from their first record. Default 30 s; `false`: never. */
  readonly discovery?: Duration | false;
  /** `end`: reads what there is at the start and ends. Default: goes on for ever. */
  readonly until?: "end";
  /** Bytes that are read ahead, as brokers send them, for all partitions together; each has its share. Default 64 MiB. */
  readonly prefetchBytes?: number;
  /** How much a broker waits for before it answers, bytes. Default 1. */
  readonly fetchMinBytes?: number;
  /** The most one answer of a broker has, bytes; a larger batch still comes. Default 10 MiB. */
  readonly fetchMaxBytes?: number;
  /** How long a broker waits for `fetchMinBytes`; so often an empty partition is noticed. Default 500 ms. */
  readonly fetchMaxWait?: Duration;
  /** Without a sign of life for this long, the group goes on without this process. Default 45 s. */
  readonly sessionTimeout?: Duration;
  /** How long this process may take to finish what it has read when partitions are taken away. Default 60 s. */
  readonly rebalanceTimeout?: Duration;
  /** Makes the client. Default: the one on kafkajs. */
  readonly client?: KafkaClientFactory;
}

/** What a reader was told, with all defaults; durations in ms. */
export interface CheckedKafkaSource {
  readonly connection: KafkaConnection;
  readonly topics: readonly string[];
  readonly pattern: RegExp | undefined;
  readonly partitions: readonly number[] | undefined;
  readonly group: string | undefined;
  readonly instanceId: string | undefined;
  readonly start: KafkaStart;
  readonly format: Format;
  readonly keyFormat: Format;
  readonly isolation: Isolation;
  readonly onOffsetLost: "fail" | "earliest" | "latest";
  /** Undefined: never. */
  readonly discovery: number | undefined;
  readonly isBounded: boolean;
  readonly prefetchBytes: number;
  readonly fetchMinBytes: number;
  readonly fetchMaxBytes: number;
  readonly fetchMaxWait: number;
  readonly sessionTimeout: number;
  readonly rebalanceTimeout: number;
  readonly client: KafkaClientFactory | undefined;
}

const DEFAULT_PREFETCH_BYTES = 64 * 2 ** 20;
const DEFAULT_FETCH_MAX_BYTES = 10 * 2 ** 20;

function invalid(message: string, hint?: string): MailerError {
  return new MailerError(
    "invalid_kafka_options",
    `kafka source: ${message}`,
    hint === undefined ? {} : { hint },
  );
}

/** Fills in defaults. @throws {MailerError} `invalid_kafka_options`, `invalid_duration` */
export function checkedOptions<T>(options: KafkaSourceOptions<T>): CheckedKafkaSource {
  const { topics = [], pattern, partitions, groupId, start = "earliest", until } = options;
  checkTopics(options);
  checkStart(start);
  if (groupId === "") throw invalid("groupId is empty");
  if (options.instanceId !== undefined && groupId === undefined) throw invalid("instanceId needs a groupId");
  if (until !== undefined && until !== "end") throw invalid(`until is "end" or left out, got "${until}"`);
  const { isolation = "read_committed", onOffsetLost = "fail", discovery = "30s" } = options;
  oneOf("isolation", isolation, ["read_committed", "read_uncommitted"]);
  oneOf("onOffsetLost", onOffsetLost, ["fail", "earliest", "latest"]);
  const isFixed = until === "end" || partitions !== undefined;
  return {
    connection: connectionOf(options),
    topics: [...new Set(topics)],
    // A `g` or `y` would make `test` remember where it was.
    pattern: pattern && new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, "")),
    partitions,
    group: groupId,
    instanceId: options.instanceId,
    start,
    format: options.format ?? jsonFormat(),
    keyFormat: options.keyFormat ?? stringFormat(),
    isolation,
    onOffsetLost,
    discovery: discovery === false || isFixed ? undefined : positive("discovery", parseDuration(discovery)),
    isBounded: until === "end",
    prefetchBytes: positive("prefetchBytes", options.prefetchBytes ?? DEFAULT_PREFETCH_BYTES),
    fetchMinBytes: positive("fetchMinBytes", options.fetchMinBytes ?? 1),
    fetchMaxBytes: positive("fetchMaxBytes", options.fetchMaxBytes ?? DEFAULT_FETCH_MAX_BYTES),
    fetchMaxWait: positive("fetchMaxWait", parseDuration(options.fetchMaxWait ?? 500)),
    sessionTimeout: positive("sessionTimeout", parseDuration(options.sessionTimeout ?? "45s")),
    rebalanceTimeout: positive("rebalanceTimeout", parseDuration(options.rebalanceTimeout ?? "60s")),
    client: options.client,
  };
}

function checkTopics(
  { topics, pattern, partitions, groupId }: Pick<
    KafkaSourceOptions,
    "topics" | "pattern" | "partitions" | "groupId"
  >,
): void {
  const hasTopics = topics !== undefined && topics.length > 0;
  if (hasTopics === (pattern !== undefined)) throw invalid("say which `topics` to read, or give a `pattern`");
  if (topics?.some((topic) => typeof topic !== "string" || topic === "")) {
    throw invalid("a topic has no name");
  }
  if (partitions === undefined) return;
  if (partitions.length === 0 || !partitions.every((number) => Number.isInteger(number) && number >= 0)) {
    throw invalid(`partitions are numbers from 0, got ${JSON.stringify(partitions)}`);
  }
  if (groupId !== undefined) {
    throw invalid("with a groupId the group decides about partitions", "leave out groupId or partitions");
  }
  if (pattern !== undefined) throw invalid("partitions go with `topics`, not with a `pattern`");
}

function checkStart(start: KafkaStart): void {
  if (typeof start === "string") return oneOf("start", start, ["earliest", "latest"]);
  if ("timestamp" in start) {
    if (Number.isFinite(start.timestamp)) return;
    throw invalid(`start.timestamp is in milliseconds since the epoch, got ${start.timestamp}`);
  }
  for (const [split, offset] of Object.entries(start.offsets)) {
    if (!/^.+\/\d+$/.test(split)) {
      throw invalid(`start.offsets are by topic/partition, e.g. "orders/0", got "${split}"`);
    }
    if (!Number.isSafeInteger(offset) || offset < 0) {
      throw invalid(`start.offsets of "${split}" is an offset, got ${offset}`);
    }
  }
}

function connectionOf(
  { brokers, clientId, tls, sasl, connectTimeoutMs, requestTimeoutMs }: KafkaConnection,
): KafkaConnection {
  if (!Array.isArray(brokers) || brokers.length === 0) {
    throw invalid("`brokers` are missing", 'e.g. brokers: ["localhost:9092"]');
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

function oneOf(name: string, value: string, allowed: readonly string[]): void {
  if (!allowed.includes(value)) throw invalid(`${name} is one of ${allowed.join(", ")}, got "${value}"`);
}

function positive(name: string, value: number): number {
  if (!(value > 0)) throw invalid(`${name} is more than 0, got ${value}`);
  return value;
}

/** What `describe` says: never a secret. */
export function describeOptions(options: CheckedKafkaSource): Record<string, unknown> {
  const { connection, topics, pattern, partitions, group, start, format, keyFormat, isolation } = options;
  return {
    brokers: connection.brokers,
    ...(pattern === undefined ? { topics } : { pattern: String(pattern) }),
    ...(partitions === undefined ? {} : { partitions }),
    ...(group === undefined ? {} : { group }),
    start,
    format: format.name,
    keyFormat: keyFormat.name,
    isolation,
    onOffsetLost: options.onOffsetLost,
    ...(options.isBounded ? { until: "end" } : {}),
    tls: connection.tls !== undefined,
    ...(connection.sasl === undefined ? {} : { sasl: connection.sasl.mechanism }),
  };
}

/** Where a reader with this isolation gets to at the moment. */
export function visibleEnd({ isolation }: Pick<CheckedKafkaSource, "isolation">): OffsetSpec & string {
  return isolation === "read_committed" ? "stable" : "end";
}
