/**
 * The Kafka port over a cluster in memory: see {@link FakeKafka}.
 *
 * @module
 */
import type {
  CallOptions,
  ClusterMetadata,
  FetcherOptions,
  GroupOptions,
  KafkaAdmin,
  KafkaClient,
  KafkaClientContext,
  KafkaConnection,
  KafkaFetcher,
  KafkaGroup,
  KafkaProducer,
  KafkaTransactionalProducer,
  NewTopic,
  OffsetSpec,
  PartitionOffset,
  ProducerOptions,
  TopicMetadata,
  TopicPartition,
  TransactionalProducerOptions,
  TransactionState,
} from "../client.ts";
import { GenerationLostError, KafkaError } from "../errors.ts";
import { FakeFetcher } from "./fake_fetcher.ts";
import { FakeGroup } from "./fake_group.ts";
import { type FakeCall, type FakeKafka, nameOf } from "./fake_kafka.ts";
import { FakeProducer, FakeTransactionalProducer } from "./fake_producer.ts";

export {
  type FakeCall,
  FakeKafka,
  type FakeKafkaOptions,
  type FakeRecord,
  type FakeTransaction,
  type FaultOptions,
  type HeldCall,
  type StoredRecord,
} from "./fake_kafka.ts";
export { fetchedRecords } from "./fake_fetcher.ts";

/** A client of a {@link FakeKafka}. */
export class FakeClient implements KafkaClient {
  readonly connection: KafkaConnection;
  readonly context: KafkaClientContext;
  readonly admin: KafkaAdmin;
  /** Fetchers that were made, the last one at the end. */
  readonly fetchers: FakeFetcher[] = [];
  /** Members that were made, the last one at the end. */
  readonly groups: FakeGroup[] = [];
  readonly #kafka: FakeKafka;
  readonly #closed = new AbortController();
  readonly #producers: { close(): Promise<void> }[] = [];

  constructor(kafka: FakeKafka, connection: KafkaConnection, context: KafkaClientContext) {
    this.#kafka = kafka;
    this.connection = connection;
    this.context = context;
    this.admin = new FakeAdmin(kafka, (what, options, work) => this.#call("admin", what, options, work));
  }

  metadata(topics: readonly string[] | undefined, options?: CallOptions): Promise<ClusterMetadata> {
    return this.#call("metadata", topics?.join(" ") ?? "", options, () => ({
      brokers: Array.from(
        { length: this.#kafka.brokers },
        (_, id) => ({ id, host: "fake", port: 9092 + id }),
      ),
      topics: (topics ?? this.#kafka.topicNames).filter((name) => this.#kafka.hasTopic(name)).toSorted()
        .map((name) => this.#topic(name)),
    }));
  }

  #topic(name: string): TopicMetadata {
    const partitions = this.#kafka.topic(name).partitions.map(({ partition, leader }) => {
      const home = partition % this.#kafka.brokers;
      return { partition, leader, replicas: [home], inSync: leader === undefined ? [] : [home] };
    });
    return { name, internal: name.startsWith("__"), partitions };
  }

  requireTopics(topics: readonly string[], options?: CallOptions): Promise<ReadonlyMap<string, number>> {
    return this.#call(
      "requireTopics",
      topics.join(" "),
      options,
      () => new Map(topics.map((name) => [name, this.#kafka.topic(name).partitions.length])),
    );
  }

  listOffsets(
    questions: readonly (TopicPartition & { readonly at: OffsetSpec })[],
    options?: CallOptions,
  ): Promise<readonly number[]> {
    return this.#call(
      "listOffsets",
      questions.map(nameOf).join(" "),
      options,
      () => questions.map((question) => this.#kafka.offsetOf(question, question.at)),
    );
  }

  fetcher(options: FetcherOptions): KafkaFetcher {
    this.#closed.signal.throwIfAborted();
    const fetcher = new FakeFetcher(this.#kafka, options);
    this.fetchers.push(fetcher);
    return fetcher;
  }

  producer(options: ProducerOptions = {}): KafkaProducer {
    this.#closed.signal.throwIfAborted();
    const producer = new FakeProducer(this.#kafka, options);
    this.#producers.push(producer);
    return producer;
  }

  transactionalProducer(
    options: TransactionalProducerOptions,
    call?: CallOptions,
  ): Promise<KafkaTransactionalProducer> {
    return this.#call("initTransactions", options.transactionalId, call, () => {
      if (options.transactionTimeoutMs > this.#kafka.maxTransactionTimeoutMs) {
        throw new KafkaError(
          "kafka_transaction_timeout",
          `the broker does not allow ${options.transactionTimeoutMs} ms`,
        );
      }
      const producer = new FakeTransactionalProducer(this.#kafka, options);
      this.#producers.push(producer);
      return producer;
    });
  }

  group(options: GroupOptions): KafkaGroup {
    this.#closed.signal.throwIfAborted();
    const group = new FakeGroup(this.#kafka, options);
    this.groups.push(group);
    return group;
  }

  committedOffsets(
    group: string,
    partitions: readonly TopicPartition[],
    options?: CallOptions,
  ): Promise<readonly (number | undefined)[]> {
    return this.#call("committedOffsets", group, options, async () => {
      while (this.#isPending(group)) await this.#change();
      return partitions.map((at) => this.#kafka.group(group).offsets.get(nameOf(at)));
    });
  }

  /** Whether a transaction that is decided has not written its markers. */
  #isPending(group: string): boolean {
    return [...this.#kafka.transactionalIds.values()].some(({ current }) =>
      current !== undefined && current.state === "committed" && current.offsets.has(group)
    );
  }

  async #change(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const forget = this.#kafka.onChange(resolve);
    await promise;
    forget();
  }

  commitOffsets(group: string, offsets: readonly PartitionOffset[], options?: CallOptions): Promise<void> {
    const what = `${group} ${offsets.map((at) => `${nameOf(at)}:${at.offset}`).join(" ")}`;
    return this.#call("commitOffsets", what, options, () => {
      const coordinator = this.#kafka.group(group);
      if (coordinator.memberIds.length > 0) throw new GenerationLostError(group);
      coordinator.store(offsets);
    });
  }

  /** Is gone without a word, as with its process: nothing is called back. The broker does not know yet; see `FakeKafka.expire`. */
  crash(): void {
    this.#kafka.clients.delete(this);
    for (const group of this.groups) group.crash();
    for (const part of [...this.fetchers, ...this.#producers]) void part.close();
    this.#closed.abort(new KafkaError("kafka_closed", "the client is gone"));
  }

  async close(): Promise<void> {
    this.#kafka.clients.delete(this);
    await Promise.all(this.groups.map((group) => group.close()));
    await Promise.all([...this.fetchers, ...this.#producers].map((part) => part.close()));
    this.#closed.abort(new KafkaError("kafka_closed", "the client has been closed"));
  }

  async #call<R>(
    call: FakeCall,
    what: string,
    options: CallOptions | undefined,
    work: () => R | Promise<R>,
  ): Promise<R> {
    this.#closed.signal.throwIfAborted();
    const signal = options?.signal === undefined
      ? this.#closed.signal
      : AbortSignal.any([options.signal, this.#closed.signal]);
    return await this.#kafka.call(call, what, signal, work);
  }
}

type AdminCall = <R>(what: string, options: CallOptions | undefined, work: () => R) => Promise<R>;

class FakeAdmin implements KafkaAdmin {
  readonly #kafka: FakeKafka;
  readonly #call: AdminCall;

  constructor(kafka: FakeKafka, call: AdminCall) {
    this.#kafka = kafka;
    this.#call = call;
  }

  createTopics(topics: readonly NewTopic[], options?: CallOptions): Promise<readonly string[]> {
    return this.#call(`createTopics ${topics.map(({ name }) => name).join(" ")}`, options, () => {
      const made = topics.filter(({ name }) => !this.#kafka.hasTopic(name));
      for (const { name, partitions = 1, config } of made) this.#kafka.createTopic(name, partitions, config);
      return made.map(({ name }) => name);
    });
  }

  growTopic(topic: string, partitions: number, options?: CallOptions): Promise<void> {
    return this.#call(`growTopic ${topic}`, options, () => this.#kafka.growTopic(topic, partitions));
  }

  deleteTopics(topics: readonly string[], options?: CallOptions): Promise<void> {
    return this.#call(`deleteTopics ${topics.join(" ")}`, options, () => {
      for (const topic of topics) this.#kafka.deleteTopic(topic);
    });
  }

  deleteRecords(before: readonly PartitionOffset[], options?: CallOptions): Promise<void> {
    return this.#call(`deleteRecords ${before.map(nameOf).join(" ")}`, options, () => {
      for (const { topic, partition, offset } of before) this.#kafka.deleteRecords(topic, partition, offset);
    });
  }

  settings(
    of: { readonly topic: string } | { readonly broker: number | undefined },
    names: readonly string[],
    options?: CallOptions,
  ): Promise<ReadonlyMap<string, string>> {
    return this.#call(`settings ${"topic" in of ? of.topic : ""}`, options, () => {
      const all = "topic" in of
        ? this.#kafka.topic(of.topic).config
        : new Map([["transaction.max.timeout.ms", String(this.#kafka.maxTransactionTimeoutMs)]]);
      return new Map(
        names.flatMap((name): [string, string][] => all.has(name) ? [[name, all.get(name)!]] : []),
      );
    });
  }

  listTransactions(
    options?: CallOptions,
  ): Promise<readonly { readonly transactionalId: string; readonly state: string }[]> {
    return this.#call(
      "listTransactions",
      options,
      () =>
        [...this.#kafka.transactionalIds.keys()].map((transactionalId) => {
          const { state } = this.#state(transactionalId)!;
          return { transactionalId, state };
        }),
    );
  }

  describeTransactions(
    transactionalIds: readonly string[],
    options?: CallOptions,
  ): Promise<readonly TransactionState[]> {
    return this.#call(
      `describeTransactions ${transactionalIds.join(" ")}`,
      options,
      () => transactionalIds.map((id) => this.#state(id)).filter((state) => state !== undefined),
    );
  }

  #state(transactionalId: string): TransactionState | undefined {
    const known = this.#kafka.transactionalIds.get(transactionalId);
    if (known === undefined) return undefined;
    const { current, producerId, epoch, timeoutMs } = known;
    const states = { open: "Ongoing", committed: "PrepareCommit", aborted: "PrepareAbort" };
    return {
      transactionalId,
      producerId,
      epoch,
      state: current === undefined ? "Empty" : states[current.state],
      timeoutMs,
      startedAt: current?.startedAt,
      partitions: [...current?.first.keys() ?? []].map(({ topic, partition }) => ({ topic, partition })),
    };
  }

  abortTransaction(transactionalId: string, options?: CallOptions): Promise<void> {
    return this.#call(`abortTransaction ${transactionalId}`, options, () => {
      this.#kafka.initTransactions(
        transactionalId,
        this.#kafka.transactionalIds.get(transactionalId)?.timeoutMs ?? 60_000,
      );
    });
  }
}
