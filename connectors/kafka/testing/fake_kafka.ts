/**
 * A cluster in memory, for unit tests of what talks to the Kafka port: logs of partitions with transactions, markers and what was
 * aborted; groups with generations; faults that a test asks for. Nothing happens by itself but what the clock brings.
 *
 * ```ts
 * const clock = new VirtualClock(), kafka = new FakeKafka(clock);
 * kafka.createTopic("orders", 2);
 * kafka.write("orders", 0, [{ key: "k", value: "v" }]);
 * const open = kafka.begin("other");                         // a transaction of somebody else
 * kafka.write("orders", 0, [{ value: "hidden" }], open);
 * kafka.end(open, "abort");
 * kafka.fail("commit", new Error("away"), { when: "after" }); // it commits, and the answer is lost
 * const held = kafka.hold("listOffsets");                    // … await held.reached; held.release();
 * const client = kafka.connect(connection, { clock, logger: silentLogger });
 * kafka.texts("orders");                                      // ["v"]: what a read_committed reader sees
 * ```
 *
 * @module
 */
import type { Alarm, Clock } from "../../../lib/clock.ts";
import { abortable } from "../../../lib/abortable.ts";
import type { Headers } from "../../../lib/record.ts";
import type {
  Isolation,
  KafkaClientFactory,
  OffsetSpec,
  PartitionOffset,
  TopicPartition,
} from "../client.ts";
import { KafkaError } from "../errors.ts";
import type { KafkaRecord } from "../protocol/types.ts";
import { FakeClient } from "./fake_client.ts";
import { FakeCoordinator } from "./fake_group.ts";

/** Calls that a test can make fail or wait. */
export type FakeCall =
  | "metadata"
  | "requireTopics"
  | "listOffsets"
  | "poll"
  | "send"
  | "initTransactions"
  | "sendOffsets"
  | "commit"
  | "abort"
  | "join"
  | "groupCommit"
  | "committedOffsets"
  | "commitOffsets"
  | "admin";

/** A record to be written; texts become UTF-8. */
export interface FakeRecord {
  /** Default: null. */
  readonly key?: string | Uint8Array | null;
  /** Null = a tombstone. */
  readonly value: string | Uint8Array | null;
  /** Ms since the epoch; default: the clock's. */
  readonly timestamp?: number;
  /** In order. */
  readonly headers?: Headers;
}

/** A record as it lies in a partition. */
export interface StoredRecord extends KafkaRecord, PartitionOffset {}

/** How far the transaction of a record has come. */
export interface FakeTransaction {
  readonly transactionalId: string;
  readonly producerId: number;
  epoch: number;
  state: "open" | "committed" | "aborted";
  /** Offset of its first record, by partition. */
  readonly first: Map<FakePartition, number>;
  /** Offsets it commits, by group. */
  readonly offsets: Map<string, PartitionOffset[]>;
  readonly startedAt: number;
  timeout: Alarm | undefined;
  /** Whether its markers are written. */
  isMarked: boolean;
}

/** What a name of a transactional producer stands for. */
export interface FakeTransactionalId {
  readonly producerId: number;
  epoch: number;
  timeoutMs: number;
  current: FakeTransaction | undefined;
}

/** One entry of a log. */
export interface FakeEntry {
  readonly offset: number;
  /** Undefined: a marker. */
  readonly record: KafkaRecord | undefined;
  readonly transaction: FakeTransaction | undefined;
  /** Entries that were written by one call. */
  readonly batch: number;
  readonly bytes: number;
}

/** One log. */
export class FakePartition {
  entries: FakeEntry[] = [];
  start = 0;
  end = 0;
  /** Transactions that have written here and have not ended. */
  readonly open = new Set<FakeTransaction>();
  /** Undefined: there is none just now. */
  leader: number | undefined;

  constructor(readonly topic: string, readonly partition: number, leader: number) {
    this.leader = leader;
  }

  /** Where `read_committed` gets to. */
  get stable(): number {
    let stable = this.end;
    for (const transaction of this.open) stable = Math.min(stable, transaction.first.get(this)!);
    return stable;
  }
}

interface FakeTopic {
  readonly partitions: FakePartition[];
  readonly config: Map<string, string>;
}

interface Fault {
  readonly call: FakeCall;
  readonly matching: string | undefined;
  readonly when: "before" | "after";
  readonly act: () => void | Promise<void>;
  left: number;
}

/** When a fault strikes. */
export interface FaultOptions {
  /** How many calls. Default 1. */
  readonly times?: number;
  /** `after`: it happened, but the answer is lost. Default `before`. */
  readonly when?: "before" | "after";
  /** Part of what the call is about (topics, group, transactional id). */
  readonly matching?: string;
}

/** A call that waits. */
export interface HeldCall {
  /** Resolves when a call has come to where it waits. */
  readonly reached: Promise<void>;
  /** Lets it go on, or fail. */
  release(error?: Error): void;
}

/** Settings of {@link FakeKafka}. */
export interface FakeKafkaOptions {
  /** Number of brokers; each leads every so many-th partition. Default 1. */
  readonly brokers?: number;
  /** From the decision of a transaction to its markers, ms. Default 0: at once. */
  readonly markerDelayMs?: number;
  /** Longest transaction timeout, ms. Default 15 minutes. */
  readonly maxTransactionTimeoutMs?: number;
}

const encoder = new TextEncoder(), decoder = new TextDecoder();
const bytesOf = (content: string | Uint8Array | null | undefined): Uint8Array | null =>
  typeof content === "string" ? encoder.encode(content) : content ?? null;

/** The cluster. */
export class FakeKafka {
  readonly clock: Clock;
  readonly brokers: number;
  readonly markerDelayMs: number;
  readonly maxTransactionTimeoutMs: number;
  /** Makes clients of this cluster; to be handed to what is under test. */
  readonly connect: KafkaClientFactory = (connection, context) => {
    const client = new FakeClient(this, connection, context);
    this.clients.add(client);
    return client;
  };
  /** Clients that have not been closed. */
  readonly clients = new Set<FakeClient>();
  /** Calls so far: `name what`. */
  readonly calls: string[] = [];
  readonly transactionalIds = new Map<string, FakeTransactionalId>();
  readonly #topics = new Map<string, FakeTopic>();
  readonly #groups = new Map<string, FakeCoordinator>();
  readonly #faults: Fault[] = [];
  readonly #waiting = new Set<() => void>();
  #producers = 0;
  #batches = 0;
  #members = 0;

  /** Nothing is in it. */
  constructor(clock: Clock, options: FakeKafkaOptions = {}) {
    this.clock = clock;
    this.brokers = options.brokers ?? 1;
    this.markerDelayMs = options.markerDelayMs ?? 0;
    this.maxTransactionTimeoutMs = options.maxTransactionTimeoutMs ?? 900_000;
  }

  // Topics

  createTopic(name: string, partitions = 1, config: Readonly<Record<string, string>> = {}): void {
    this.#topics.set(name, { partitions: [], config: new Map(Object.entries(config)) });
    this.growTopic(name, partitions);
  }

  growTopic(name: string, partitions: number): void {
    const topic = this.topic(name);
    for (let i = topic.partitions.length; i < partitions; i++) {
      topic.partitions.push(new FakePartition(name, i, i % this.brokers));
    }
    this.changed();
  }

  deleteTopic(name: string): void {
    this.#topics.delete(name);
    this.changed();
  }

  /** Names of all topics. */
  get topicNames(): string[] {
    return [...this.#topics.keys()];
  }

  hasTopic(name: string): boolean {
    return this.#topics.has(name);
  }

  topic(name: string): FakeTopic {
    const topic = this.#topics.get(name);
    if (topic === undefined) throw new KafkaError("kafka_unknown_topic", `there is no topic "${name}"`);
    return topic;
  }

  partition({ topic, partition }: TopicPartition): FakePartition {
    const found = this.topic(topic).partitions[partition];
    if (found === undefined) {
      throw new KafkaError("kafka_unknown_topic", `topic "${topic}" has no partition ${partition}`);
    }
    return found;
  }

  /** Deletes records in front of `offset`, as retention does. */
  deleteRecords(topic: string, partition: number, offset: number): void {
    const log = this.partition({ topic, partition });
    log.start = Math.max(log.start, offset);
    log.entries = log.entries.filter((entry) => entry.offset >= log.start);
    this.changed();
  }

  /** Takes single records away, as compaction does: offsets stay. */
  compact(topic: string, partition: number, offsets: readonly number[]): void {
    const log = this.partition({ topic, partition });
    log.entries = log.entries.filter(({ offset }) => !offsets.includes(offset));
  }

  // Records

  /** Writes records as one batch. @returns The offset of the first. */
  write(
    topic: string,
    partition: number,
    records: readonly FakeRecord[],
    transaction?: FakeTransaction,
  ): number {
    return this.append(
      { topic, partition },
      records.map((record) => ({
        key: bytesOf(record.key),
        value: bytesOf(record.value),
        timestamp: record.timestamp ?? this.clock.now(),
        headers: record.headers,
      })),
      transaction,
    );
  }

  append(
    at: TopicPartition,
    records: readonly KafkaRecord[],
    transaction: FakeTransaction | undefined,
  ): number {
    const log = this.partition(at), base = log.end, batch = this.#batches++;
    if (transaction !== undefined && !transaction.first.has(log)) {
      transaction.first.set(log, base);
      log.open.add(transaction);
    }
    for (const record of records) this.#push(log, record, transaction, batch);
    this.changed();
    return base;
  }

  #push(
    log: FakePartition,
    record: KafkaRecord | undefined,
    transaction: FakeTransaction | undefined,
    batch: number,
  ): void {
    const bytes = 20 + (record?.key?.length ?? 0) + (record?.value?.length ?? 0) +
      (record?.headers ?? []).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    log.entries.push({ offset: log.end++, record, transaction, batch, bytes });
  }

  /** What a reader sees of a topic, by partition and offset. Default `read_committed`. */
  records(topic: string, isolation: Isolation = "read_committed"): StoredRecord[] {
    return this.topic(topic).partitions.flatMap((log) => {
      const end = isolation === "read_committed" ? log.stable : log.end;
      return log.entries.filter((entry) => entry.offset < end && isVisible(entry, isolation)).map((
        entry,
      ) => ({
        topic,
        partition: log.partition,
        offset: entry.offset,
        ...entry.record!,
      }));
    });
  }

  /** Values of {@link records} as texts. */
  texts(topic: string, isolation: Isolation = "read_committed"): (string | null)[] {
    return this.records(topic, isolation).map(({ value }) => value === null ? null : decoder.decode(value));
  }

  offsetOf(at: TopicPartition, spec: OffsetSpec): number {
    const log = this.partition(at);
    if (spec === "earliest") return log.start;
    if (spec === "end") return log.end;
    if (spec === "stable") return log.stable;
    const { timestamp } = spec;
    return log.entries.find(({ record }) => record !== undefined && record.timestamp >= timestamp)?.offset ??
      log.end;
  }

  // Transactions

  /** Starts a producer with this name, as a client does: what it left open is aborted, older producers are fenced. */
  initTransactions(transactionalId: string, timeoutMs: number): FakeTransactionalId {
    let known = this.transactionalIds.get(transactionalId);
    if (known === undefined) {
      known = { producerId: ++this.#producers, epoch: -1, timeoutMs, current: undefined };
      this.transactionalIds.set(transactionalId, known);
    }
    if (known.current !== undefined) {
      this.end(known.current, known.current.state === "committed" ? "commit" : "abort", true);
    }
    known.epoch++;
    known.timeoutMs = timeoutMs;
    return known;
  }

  /** Begins a transaction of the producer with this name. */
  begin(transactionalId: string): FakeTransaction {
    const id = this.transactionalIds.get(transactionalId) ?? this.initTransactions(transactionalId, 60_000);
    const transaction: FakeTransaction = {
      transactionalId,
      producerId: id.producerId,
      epoch: id.epoch,
      state: "open",
      first: new Map(),
      offsets: new Map(),
      startedAt: this.clock.now(),
      timeout: undefined,
      isMarked: false,
    };
    transaction.timeout = this.clock.schedule(id.timeoutMs, () => {
      id.epoch++; // the producer is fenced
      this.end(transaction, "abort", true);
    });
    id.current = transaction;
    return transaction;
  }

  /** Decides a transaction. Its markers follow after the marker delay, or at once. */
  end(transaction: FakeTransaction, how: "commit" | "abort", atOnce = false): void {
    if (transaction.isMarked) return;
    transaction.timeout?.cancel();
    if (transaction.state === "open") transaction.state = how === "commit" ? "committed" : "aborted";
    if (atOnce || this.markerDelayMs === 0) this.#mark(transaction);
    else this.clock.schedule(this.markerDelayMs, () => this.#mark(transaction));
  }

  #mark(transaction: FakeTransaction): void {
    if (transaction.isMarked) return;
    transaction.isMarked = true;
    for (const log of transaction.first.keys()) {
      log.open.delete(transaction);
      this.#push(log, undefined, transaction, this.#batches++);
    }
    if (transaction.state === "committed") {
      for (const [group, offsets] of transaction.offsets) this.group(group).store(offsets);
    }
    const id = this.transactionalIds.get(transaction.transactionalId);
    if (id?.current === transaction) id.current = undefined;
    this.changed();
  }

  // Groups

  group(name: string): FakeCoordinator {
    let group = this.#groups.get(name);
    if (group === undefined) this.#groups.set(name, group = new FakeCoordinator(this, name));
    return group;
  }

  /** What a group has committed, as `topic/partition`. */
  committed(group: string): Record<string, number> {
    return Object.fromEntries(this.group(group).offsets);
  }

  /** Members of a group. */
  members(group: string): string[] {
    return this.group(group).memberIds;
  }

  /** The coordinator hears no more of a member: others get its partitions, and it is told that it has lost them. */
  expire(group: string, memberId: string): void {
    this.group(group).expire(memberId);
  }

  newMemberId(): string {
    return `member-${String(++this.#members).padStart(3, "0")}`;
  }

  // Faults

  /** Has calls fail. */
  fail(call: FakeCall, error: Error | (() => Error), options: FaultOptions = {}): void {
    const { times = 1, when = "before", matching } = options;
    const act = () => {
      throw typeof error === "function" ? error() : error;
    };
    this.#faults.push({ call, matching, when, act, left: times });
  }

  /** Has the next call wait until it is released. */
  hold(call: FakeCall, options: Omit<FaultOptions, "times"> = {}): HeldCall {
    const { when = "before", matching } = options;
    const reached = Promise.withResolvers<void>(), released = Promise.withResolvers<void>();
    released.promise.catch(() => {}); // of a call that never comes
    const act = () => {
      reached.resolve();
      return released.promise;
    };
    this.#faults.push({ call, matching, when, act, left: 1 });
    const release = (error?: Error) => error === undefined ? released.resolve() : released.reject(error);
    return { reached: reached.promise, release };
  }

  /** Forgets the faults that have not struck. */
  heal(): void {
    this.#faults.length = 0;
  }

  /** Makes a call as a client does: with what was asked to go wrong with it. */
  async call<R>(
    call: FakeCall,
    what: string,
    signal: AbortSignal | undefined,
    work: () => R | Promise<R>,
  ): Promise<R> {
    this.calls.push(`${call} ${what}`.trimEnd());
    const fault = this.#faults.find((each) =>
      each.call === call && each.left > 0 && (each.matching === undefined || what.includes(each.matching))
    );
    if (fault !== undefined) fault.left--;
    const wait = async () => {
      await null; // no call is answered at once
      if (fault?.when === "before") await fault.act();
      signal?.throwIfAborted(); // it has not been sent
      const result = await work();
      if (fault?.when === "after") await fault.act();
      return result;
    };
    return signal === undefined ? await wait() : await abortable(wait(), signal);
  }

  // Waiting

  /** Wakes whoever waits for records or partitions. */
  changed(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  /** Calls back at every change until the answer is called. */
  onChange(wake: () => void): () => void {
    this.#waiting.add(wake);
    return () => void this.#waiting.delete(wake);
  }
}

/** Whether a reader is given the entry. */
export function isVisible({ record, transaction }: FakeEntry, isolation: Isolation): boolean {
  if (record === undefined) return false;
  return isolation === "read_uncommitted" || transaction === undefined || transaction.state === "committed";
}

/** Name of a partition. */
export const nameOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`;
