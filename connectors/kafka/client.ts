/**
 * The port all Kafka code talks to: narrow, so that a second client can stand behind it. `client_contract.ts` is the suite both
 * would have to pass.
 *
 * K1 Nothing is lost silently: what a call sent or asked for is answered partition by partition, or the call rejects.
 * K2 Who sends names the partition; a retry never changes partition, order or sequence number. So a lost answer makes no second copy.
 * K3 `read_committed` gives the records of committed transactions and no others.
 * K4 An offset outside of what a partition has is an error with both ends, never a silent jump.
 * K5 Positions belong to the caller. What a group has committed is used by nobody unless the caller asks for it.
 * K6 An outcome that is not known is an error of its own, never guessed.
 *
 * Offsets, producer ids and sizes are numbers. The wire has 64 bits; an offset above 2^53 is refused as corrupt (at a million
 * records a second that is 285 years). Timestamps above 2^53 (nanoseconds by mistake) are rounded, not refused.
 *
 * @module
 */
import type { Clock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import type { FetchedRecords } from "./protocol/fetched_records.ts";
import type { RecordBatchBuilder } from "./protocol/record_batch_builder.ts";
import type { Codec } from "./protocol/types.ts";

/** Where and as whom to connect. */
export interface KafkaConnection {
  /** `host:port` of some brokers; the others are found through them. IPv6 as `[::1]:9092`. */
  readonly brokers: readonly string[];
  /** Name in the broker's logs and quotas. Default: `mailer`. */
  readonly clientId?: string;
  /** TLS; without it the connection is in plain text. */
  readonly tls?: KafkaTls | undefined;
  /** User and password; without it nobody logs in. */
  readonly sasl?: KafkaSasl | undefined;
  /** How long opening a connection, with TLS and login, may take, ms. Default: 10,000. */
  readonly connectTimeoutMs?: number;
  /** How long the answer to one request may take, ms. Default: 30,000. */
  readonly requestTimeoutMs?: number;
}

/** How to check the broker, and what to show it. All of it is PEM text, not a path. */
export interface KafkaTls {
  /** Certificates to trust. Default: those of the system. */
  readonly ca?: string | undefined;
  /** Client certificate. */
  readonly cert?: string | undefined;
  /** Key of the client certificate. */
  readonly key?: string | undefined;
  /** Name the broker's certificate must have. Default: the host. */
  readonly serverName?: string | undefined;
  /** Takes any certificate. For tests. */
  readonly insecureSkipVerify?: boolean | undefined;
}

/** How to log in. */
export interface KafkaSasl {
  /** Spelt as here, in lower case. */
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512";
  /** Name of the user. */
  readonly username: string;
  /** Never shown in an error or a log. */
  readonly password: string;
}

/** What the client is handed. */
export interface KafkaClientContext {
  /** Deadlines, pauses between retries, heartbeats. */
  readonly clock: Clock;
  /** Where reconnects and the like are reported; never a secret. */
  readonly logger: Logger;
}

/** Opens nothing by itself: the first call connects. */
export type KafkaClientFactory = (connection: KafkaConnection, context: KafkaClientContext) => KafkaClient;

/** One partition of one topic. */
export interface TopicPartition {
  /** Name of the topic. */
  readonly topic: string;
  /** Number of the partition, from 0. */
  readonly partition: number;
}

/** A place in a partition. */
export interface PartitionOffset extends TopicPartition {
  /** Offset of the next record to be read. */
  readonly offset: number;
}

/** Ends a call early: it rejects with the signal's reason. */
export interface CallOptions {
  /** What has been sent may still happen. */
  readonly signal?: AbortSignal | undefined;
}

/** Which records a reader sees. */
export type Isolation = "read_committed" | "read_uncommitted";

/** What is known of the cluster. */
export interface ClusterMetadata {
  /** The brokers that are up. */
  readonly brokers: readonly { readonly id: number; readonly host: string; readonly port: number }[];
  /** The topics asked for that exist, in the order of the names. */
  readonly topics: readonly TopicMetadata[];
}

/** One topic. */
export interface TopicMetadata {
  /** Its name. */
  readonly name: string;
  /** Made by the broker for itself, e.g. `__consumer_offsets`. */
  readonly internal: boolean;
  /** By number, without gaps unless the broker left some out. */
  readonly partitions: readonly PartitionMetadata[];
}

/** One partition. */
export interface PartitionMetadata {
  /** Its number. */
  readonly partition: number;
  /** Broker that leads it; undefined while there is none. */
  readonly leader: number | undefined;
  /** Brokers that have a copy. */
  readonly replicas: readonly number[];
  /** Those of them whose copy is complete. */
  readonly inSync: readonly number[];
}

/**
 * Which offset to look up:
 * - `earliest`: the first one the partition still has;
 * - `end`: behind the last record that is safe (the high watermark), whether its transaction has committed or not;
 * - `stable`: the last stable offset, where a `read_committed` reader gets to: the first record of the oldest open transaction,
 *   or `end`;
 * - `{timestamp}`, ms since the epoch: the first record with this timestamp or a later one; the end (`end`) where there is none.
 */
export type OffsetSpec = "earliest" | "end" | "stable" | { readonly timestamp: number };

/** Client of one cluster. All methods may be called at the same time. */
export interface KafkaClient {
  /**
   * Topics, partitions and leaders.
   *
   * @param topics Names; undefined = all. Names that do not exist are left out: ask `requireTopics` where they must.
   */
  metadata(topics: readonly string[] | undefined, options?: CallOptions): Promise<ClusterMetadata>;
  /** Number of partitions of each topic; throws `kafka_unknown_topic` where one does not exist. Rides out a topic just made. */
  requireTopics(topics: readonly string[], options?: CallOptions): Promise<ReadonlyMap<string, number>>;
  /** One answer for each question, in their order. Asks the leaders; retries while there is none, up to the request timeout. */
  listOffsets(
    questions: readonly (TopicPartition & { readonly at: OffsetSpec })[],
    options?: CallOptions,
  ): Promise<readonly number[]>;
  /** Reads partitions by position, without a group. */
  fetcher(options: FetcherOptions): KafkaFetcher;
  /** Sends batches, outside of transactions. */
  producer(options?: ProducerOptions): KafkaProducer;
  /**
   * Starts a producer with a stable transactional id. When it resolves, older producers with the same id are fenced and what they
   * left open is aborted or committed for good, with the markers written: nothing of theirs is in flight.
   *
   * @throws {KafkaError} `kafka_transaction_timeout` where the broker does not allow the timeout.
   */
  transactionalProducer(
    options: TransactionalProducerOptions,
    call?: CallOptions,
  ): Promise<KafkaTransactionalProducer>;
  /** Joins a group, which divides partitions among its members. Resolves at once; see {@link GroupOptions} for what is called back. */
  group(options: GroupOptions): KafkaGroup;
  /**
   * What a group has committed; undefined where it has not. Waits for offsets that are in a transaction about to be completed, so
   * it is exact after a commit.
   */
  committedOffsets(
    group: string,
    partitions: readonly TopicPartition[],
    options?: CallOptions,
  ): Promise<readonly (number | undefined)[]>;
  /** Commits without being a member; the broker refuses it while the group has members (`kafka_generation_lost`). */
  commitOffsets(group: string, offsets: readonly PartitionOffset[], options?: CallOptions): Promise<void>;
  /** What is needed to look after topics and transactions. */
  readonly admin: KafkaAdmin;
  /** Closes everything made by this client: calls under way reject with `kafka_closed`. May be called again. */
  close(): Promise<void>;
}

/** How a fetcher reads. */
export interface FetcherOptions {
  /** Which records it gives. */
  readonly isolation: Isolation;
  /** The most one answer of one broker may have, bytes; one batch larger than that still comes. Default: 10 MiB. */
  readonly maxBytes?: number;
  /** The most one partition may have in an answer, bytes. Default: 1 MiB. */
  readonly maxPartitionBytes?: number;
  /** How much the broker waits for before it answers, bytes. Default: 1. */
  readonly minBytes?: number;
  /** How long the broker waits for that, ms; also how often empty partitions are reported. Default: 500. */
  readonly maxWaitMs?: number;
  /** For how long a partition may fail with what is retriable until `poll` rejects, ms. Default: 120,000; Infinity = never. */
  readonly giveUpAfterMs?: number;
}

/**
 * Reads assigned partitions from their leaders, all leaders at once: a slow one does not hold the others up. While an answer is
 * being worked on, the next one of the same broker is fetched; no more is kept than that.
 */
export interface KafkaFetcher {
  /** Adds a partition, or moves it: what was fetched for its former position is dropped. */
  assign(partition: TopicPartition, offset: number): void;
  /** Takes a partition away: nothing of it is given out any more. */
  revoke(partition: TopicPartition): void;
  /** Offset of the next record `poll` would give; undefined where it is not assigned. */
  position(partition: TopicPartition): number | undefined;
  /**
   * The next answer of a broker: for each of its partitions what came, also nothing. Waits while there is none. Not to be called
   * again before it has settled.
   *
   * @throws {OffsetOutOfRangeError} The fetcher goes on when the partition has been assigned anew, or revoked.
   * @throws {KafkaError} Anything else that a retry does not help, or has not helped for long enough.
   */
  poll(signal?: AbortSignal): Promise<readonly FetchedPartition[]>;
  /** Ends the requests under way. */
  close(): Promise<void>;
}

/** What came of one partition. */
export interface FetchedPartition extends TopicPartition {
  /** Records in order, none from aborted transactions if so wanted; empty where nothing came, or only what is hidden. */
  readonly records: readonly FetchedRecords[];
  /** Offset to go on from: behind the last batch, so also behind hidden records and markers of transactions. */
  readonly nextOffset: number;
  /** The first offset the partition still has. */
  readonly logStartOffset: number;
  /** Behind the last record that is safe. */
  readonly highWatermark: number;
  /** Where `read_committed` gets to. */
  readonly lastStableOffset: number;
  /** `nextOffset` has reached what this reader can see at the moment. */
  readonly atEnd: boolean;
  /** Bytes received, compressed as they may be. */
  readonly bytes: number;
}

/** How a producer sends. */
export interface ProducerOptions {
  /** Who must have a batch before it counts as sent: all in-sync copies, the leader, or nobody. Default: `all`. */
  readonly acks?: "all" | "leader" | "none";
  /** Number batches, so that a retry makes no second copy; needs acks `all`. Default: true with acks `all`. */
  readonly idempotent?: boolean;
  /** Default: `none`. */
  readonly codec?: Codec;
  /** For how long a batch is retried until `send` rejects, ms. Default: 120,000. */
  readonly deliveryTimeoutMs?: number;
  /** The most one request may have, bytes; one batch larger than that still goes. Default: 1 MiB. */
  readonly maxRequestBytes?: number;
}

/** Records for one partition. */
export interface OutgoingBatch extends TopicPartition {
  /** At least one record. It is sent as one batch and belongs to the producer from then on. */
  readonly records: RecordBatchBuilder;
}

/** Where a batch was written. */
export interface WrittenBatch extends TopicPartition {
  /** Offset of its first record; -1 where the broker did not say (acks `none`, or a retry of what was already there). */
  readonly baseOffset: number;
  /** Number of records. */
  readonly count: number;
}

/** Sends batches. Those for one partition are written in the order of the calls. */
export interface KafkaProducer {
  /**
   * Resolves when every batch is acknowledged, with one entry each, in their order. A batch that failed rejects the call; what
   * became of the others is then not said. With idempotence on, batches of the same partition that came later fail too.
   */
  send(batches: readonly OutgoingBatch[], options?: CallOptions): Promise<readonly WrittenBatch[]>;
  /** Waits for nothing: calls under way reject with `kafka_closed`. */
  close(): Promise<void>;
}

/** How a transactional producer works. */
export interface TransactionalProducerOptions {
  /** Stable name: who starts with the same name fences whoever had it. */
  readonly transactionalId: string;
  /** After how long the broker aborts an open transaction, ms. */
  readonly transactionTimeoutMs: number;
  /** Default: `none`. */
  readonly codec?: Codec;
  /** For how long a batch is retried, ms. Default: 120,000. */
  readonly deliveryTimeoutMs?: number;
  /** For how long a commit or abort is retried until its outcome counts as unknown, ms. Default: 60,000. */
  readonly endTimeoutMs?: number;
  /** The most one request may have, bytes. Default: 1 MiB. */
  readonly maxRequestBytes?: number;
}

/** Who commits offsets in a transaction: with it a member that has lost its partitions is refused. */
export interface GroupMembership {
  /** As the group gave it. */
  readonly memberId: string;
  /** Number of the round in which partitions were handed out. */
  readonly generation: number;
}

/**
 * One transaction after the other. It begins by itself with the first `send` or `sendOffsets`.
 *
 * After a call rejected, only `abort` or `close` are allowed, and `commit` rejects with `kafka_transaction_failed` (nothing of the
 * transaction is committed). After {@link FencedError} or {@link UnknownOutcomeError} the producer is dead: every call rejects
 * with the same error.
 */
export interface KafkaTransactionalProducer {
  /** Its name. */
  readonly transactionalId: string;
  /** Given by the broker; the same for all producers with this name, with rising epochs. */
  readonly producerId: number;
  /** Given by the broker, rises with every start. */
  readonly epoch: number;
  /** Whether something has been added since the last commit or abort. */
  readonly open: boolean;
  /** As {@link KafkaProducer.send}, into the transaction. */
  send(batches: readonly OutgoingBatch[], options?: CallOptions): Promise<readonly WrittenBatch[]>;
  /** Commits offsets of a group together with the transaction. */
  sendOffsets(
    group: string,
    offsets: readonly PartitionOffset[],
    member?: GroupMembership,
    options?: CallOptions,
  ): Promise<void>;
  /**
   * Makes all of it visible; without an open transaction nothing happens. Rejects unless the commit is certain. Readers may see
   * it some ms later. To be called when every `send` has resolved.
   *
   * @throws {UnknownOutcomeError} No answer came, though it was asked again and again.
   * @throws {FencedError} Nothing of it is committed.
   */
  commit(): Promise<void>;
  /** Takes all of it back; without an open transaction nothing happens. Waits for sends under way to settle. */
  abort(): Promise<void>;
  /** Does not end an open transaction: abort first, or readers wait for the transaction timeout. */
  close(): Promise<void>;
}

/** How to take part in a group, and what is called back. */
export interface GroupOptions {
  /** Name of the group. */
  readonly group: string;
  /** Topics to share out. */
  readonly topics: readonly string[];
  /** How partitions are shared out; all members must know one in common. Default: `range`. */
  readonly assignor?: "range" | "roundrobin";
  /** Name that survives a restart: the member gets the same partitions back without a rebalance. */
  readonly instanceId?: string | undefined;
  /** Without heartbeats for this long the group goes on without this member, ms. Default: 45,000. */
  readonly sessionTimeoutMs?: number;
  /** How long a member may take to give partitions up and join again, ms. Default: 300,000. */
  readonly rebalanceTimeoutMs?: number;
  /** Pause between heartbeats, ms; they do not depend on how busy the caller is. Default: 3,000. */
  readonly heartbeatMs?: number;
  /** How often new partitions are looked for, ms. Default: 30,000. */
  readonly discoverMs?: number;
  /** For how long the group may be out of reach until `failed` is called, ms. Default: 120,000. */
  readonly giveUpAfterMs?: number;
  /**
   * These partitions are this member's from now on; the list is complete. Heartbeats go on while it runs.
   *
   * The signal is aborted when they are about to be taken away again.
   */
  assigned(
    partitions: readonly TopicPartition[],
    member: GroupMembership,
    signal: AbortSignal,
  ): void | Promise<void>;
  /**
   * All partitions are about to be taken away; the group waits until it resolves (up to the rebalance timeout), and offsets can
   * still be committed, unless `lost`: then they belong to others already.
   */
  revoked(partitions: readonly TopicPartition[], lost: boolean): void | Promise<void>;
  /** The member is out for good: what a retry does not help, or a callback that threw. Called at most once. */
  failed(error: Error): void;
}

/** A member of a group. */
export interface KafkaGroup {
  /** The round the member is in; undefined while it is in none. */
  readonly member: GroupMembership | undefined;
  /** What the member owns. */
  readonly assignment: readonly TopicPartition[];
  /**
   * Commits offsets as this member.
   *
   * @throws {GenerationLostError} The partitions are no longer (or not certainly) this member's.
   */
  commit(offsets: readonly PartitionOffset[], options?: CallOptions): Promise<void>;
  /** Gives the partitions up (`revoked` is called) and leaves; a member with an instance id stays known. */
  close(): Promise<void>;
}

/** A topic to be made. */
export interface NewTopic {
  /** Its name. */
  readonly name: string;
  /** Number of partitions. Default: as the broker is set. */
  readonly partitions?: number;
  /** Number of copies. Default: as the broker is set. */
  readonly replicas?: number;
  /** Settings of the topic, e.g. `cleanup.policy`. */
  readonly config?: Readonly<Record<string, string>>;
}

/** A transaction as its coordinator sees it. */
export interface TransactionState {
  /** Name of the producer. */
  readonly transactionalId: string;
  /** Its number. */
  readonly producerId: number;
  /** Its epoch. */
  readonly epoch: number;
  /** E.g. `Ongoing`, `PrepareCommit`, `CompleteAbort`, `Empty`. */
  readonly state: string;
  /** After how long it is aborted, ms. */
  readonly timeoutMs: number;
  /** When it began, ms since the epoch; undefined where it has not. */
  readonly startedAt: number | undefined;
  /** What it has written to. */
  readonly partitions: readonly TopicPartition[];
}

/** Looking after topics and transactions. */
export interface KafkaAdmin {
  /** Makes topics and waits until all have leaders. A topic that exists is left as it is; the answer names those that were made. */
  createTopics(topics: readonly NewTopic[], options?: CallOptions): Promise<readonly string[]>;
  /** Raises the number of partitions of a topic. */
  growTopic(topic: string, partitions: number, options?: CallOptions): Promise<void>;
  /** Deletes topics; one that does not exist counts as deleted. */
  deleteTopics(topics: readonly string[], options?: CallOptions): Promise<void>;
  /** Deletes the records in front of each offset. */
  deleteRecords(before: readonly PartitionOffset[], options?: CallOptions): Promise<void>;
  /**
   * Settings of a topic, or of a broker (undefined = any), by name; those the broker does not know or hides are left out.
   *
   * The longest transaction timeout is `transaction.max.timeout.ms` of any broker.
   */
  settings(
    of: { readonly topic: string } | { readonly broker: number | undefined },
    names: readonly string[],
    options?: CallOptions,
  ): Promise<ReadonlyMap<string, string>>;
  /** The transactional ids the cluster knows, with their states. Needs Kafka 3.0 or later. */
  listTransactions(
    options?: CallOptions,
  ): Promise<readonly { readonly transactionalId: string; readonly state: string }[]>;
  /** Transactions by id; those that do not exist are left out. Needs Kafka 3.0 or later. */
  describeTransactions(
    transactionalIds: readonly string[],
    options?: CallOptions,
  ): Promise<readonly TransactionState[]>;
  /** Aborts what is open under this id and fences its producer. */
  abortTransaction(transactionalId: string, options?: CallOptions): Promise<void>;
}
