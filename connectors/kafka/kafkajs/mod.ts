/**
 * The Kafka client on kafkajs: its connections, with TLS, login and the versions a broker speaks, and everything else our own.
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
  OffsetSpec,
  PartitionOffset,
  ProducerOptions,
  TopicPartition,
  TransactionalProducerOptions,
} from "../client.ts";
import { errorOf } from "../protocol/error_codes.ts";
import type { MetadataAnswer } from "../protocol/requests/cluster.ts";
import { Admin } from "./admin.ts";
import { Cluster } from "./cluster.ts";
import { commitOffsets, committedOffsets } from "./committed.ts";
import { Fetcher } from "./fetcher.ts";
import { Group } from "./group.ts";
import { lookUpOffsets } from "./offsets.ts";
import { Producer } from "./producer.ts";
import { startTransactionalProducer } from "./transactional_producer.ts";

const UNKNOWN_TOPIC = 3;
const TOPIC_ERRORS_TO_LEAVE_OUT = new Set([0, 3, 5]);

/** A client of one cluster. Nothing is opened before the first call. */
export function kafkaClient(connection: KafkaConnection, context: KafkaClientContext): KafkaClient {
  return new KafkajsClient(connection, context);
}

class KafkajsClient implements KafkaClient {
  readonly admin: KafkaAdmin;
  readonly #cluster: Cluster;
  readonly #groups = new Set<KafkaGroup>();

  constructor(connection: KafkaConnection, { clock, logger }: KafkaClientContext) {
    this.#cluster = new Cluster({ connection, clock, logger });
    this.admin = new Admin(this.#cluster);
  }

  async metadata(topics: readonly string[] | undefined, options?: CallOptions): Promise<ClusterMetadata> {
    return await this.#retry(
      options,
      async () => asMetadata(await this.#cluster.refresh(topics, options?.signal)),
    );
  }

  async requireTopics(
    topics: readonly string[],
    options?: CallOptions,
  ): Promise<ReadonlyMap<string, number>> {
    return await this.#retry(options, async () => {
      const { topics: found } = await this.#cluster.refresh(topics, options?.signal);
      return new Map(topics.map((name) => {
        const topic = found.find((entry) => entry.name === name);
        const error = topic === undefined ? UNKNOWN_TOPIC : topic.error;
        if (error !== 0) throw errorOf(error, `looking for topic ${name}`);
        return [name, topic!.partitions.length];
      }));
    });
  }

  async listOffsets(
    questions: readonly (TopicPartition & { readonly at: OffsetSpec })[],
    options?: CallOptions,
  ): Promise<readonly number[]> {
    return await lookUpOffsets(this.#cluster, questions, options?.signal);
  }

  fetcher(options: FetcherOptions): KafkaFetcher {
    return new Fetcher(this.#cluster, options);
  }

  producer(options: ProducerOptions = {}): KafkaProducer {
    return new Producer(this.#cluster, options);
  }

  async transactionalProducer(
    options: TransactionalProducerOptions,
    call?: CallOptions,
  ): Promise<KafkaTransactionalProducer> {
    return await startTransactionalProducer(this.#cluster, options, call?.signal);
  }

  group(options: GroupOptions): KafkaGroup {
    const group = new Group(this.#cluster, options);
    this.#groups.add(group);
    return group;
  }

  async committedOffsets(
    group: string,
    partitions: readonly TopicPartition[],
    options?: CallOptions,
  ): Promise<readonly (number | undefined)[]> {
    return await committedOffsets(this.#cluster, group, partitions, options?.signal);
  }

  async commitOffsets(
    group: string,
    offsets: readonly PartitionOffset[],
    options?: CallOptions,
  ): Promise<void> {
    const outsider = { group, generation: -1, memberId: "", instanceId: undefined };
    await commitOffsets(this.#cluster, outsider, offsets, options?.signal);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#groups].map((group) => group.close()));
    this.#cluster.close();
  }

  #retry<T>(options: CallOptions | undefined, attempt: () => Promise<T>): Promise<T> {
    const until = this.#cluster.within(this.#cluster.requestTimeoutMs);
    return this.#cluster.retry({ until, signal: options?.signal }, attempt);
  }
}

function asMetadata({ brokers, topics }: MetadataAnswer): ClusterMetadata {
  for (const { name, error } of topics) {
    if (!TOPIC_ERRORS_TO_LEAVE_OUT.has(error)) throw errorOf(error, `looking for topic ${name}`);
  }
  return {
    brokers,
    topics: topics.filter(({ error }) => error !== UNKNOWN_TOPIC).map(({ name, internal, partitions }) => ({
      name,
      internal,
      partitions: partitions.map(({ partition, leader, replicas, inSync }) => ({
        partition,
        leader: leader < 0 ? undefined : leader,
        replicas,
        inSync,
      })).sort((a, b) => a.partition - b.partition),
    })).sort((a, b) => a.name < b.name ? -1 : 1),
  };
}
