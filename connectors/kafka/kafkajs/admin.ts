/**
 * Looks after topics and transactions.
 *
 * @module
 */
import type { CallOptions, KafkaAdmin, NewTopic, PartitionOffset, TransactionState } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { brokerError, errorOf } from "../protocol/error_codes.ts";
import type { Api, Throttled } from "../protocol/requests/api.ts";
import {
  createPartitions,
  createTopics,
  deleteRecords,
  deleteTopics,
  describeConfigs,
  metadata,
  SETTINGS_OF,
  type TopicResult,
} from "../protocol/requests/cluster.ts";
import { describeTransactions, listTransactions } from "../protocol/requests/transactions.ts";
import type { Cluster } from "./cluster.ts";
import { initialise } from "./transactional_producer.ts";

const TOPIC_ALREADY_EXISTS = 36;
const UNKNOWN_TOPIC_OR_PARTITION = 3;
const TRANSACTIONAL_ID_NOT_FOUND = 105;
/** Of the producer that is started to abort another one's transaction; it never opens one. */
const TIMEOUT_OF_ABORT_MS = 60_000;

/** Looks after topics and transactions. */
export class Admin implements KafkaAdmin {
  readonly #cluster: Cluster;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  async createTopics(topics: readonly NewTopic[], options?: CallOptions): Promise<readonly string[]> {
    const wanted = topics.map(({ name, partitions, replicas, config }) => ({
      name,
      partitions: partitions ?? -1,
      replicas: replicas ?? -1,
      config: config ?? {},
    }));
    const made = new Set<string>();
    await this.#retry(options, async () => {
      const question = { topics: wanted, timeoutMs: this.#cluster.requestTimeoutMs };
      const { results } = await this.#askController(createTopics, question, options);
      for (const { name } of wanted) {
        const error = errorIn(results, name, TOPIC_ALREADY_EXISTS, `making topic ${name}`);
        if (error !== undefined) throw error;
        if (results.find(({ topic }) => topic === name)?.error === 0) made.add(name);
      }
    });
    await this.#waitUntilLed(topics.map(({ name }) => name), () => 1, options);
    return [...made];
  }

  async growTopic(topic: string, partitions: number, options?: CallOptions): Promise<void> {
    await this.#retry(options, async () => {
      const question = { topic, partitions, timeoutMs: this.#cluster.requestTimeoutMs };
      const { results } = await this.#askController(createPartitions, question, options);
      const error = errorIn(results, topic, 0, `giving topic ${topic} ${partitions} partitions`);
      if (error !== undefined) throw error;
    });
    await this.#waitUntilLed([topic], () => partitions, options);
  }

  async deleteTopics(topics: readonly string[], options?: CallOptions): Promise<void> {
    await this.#retry(options, async () => {
      const question = { topics, timeoutMs: this.#cluster.requestTimeoutMs };
      const { results } = await this.#askController(deleteTopics, question, options);
      for (const topic of topics) {
        const error = errorIn(results, topic, UNKNOWN_TOPIC_OR_PARTITION, `deleting topic ${topic}`);
        if (error !== undefined) throw error;
      }
    });
  }

  async deleteRecords(before: readonly PartitionOffset[], options?: CallOptions): Promise<void> {
    await this.#retry(options, async () => {
      const leaders = await this.#cluster.leaders(before, options?.signal);
      for (const leader of new Set(leaders)) {
        const ofLeader = before.filter((_, i) => leaders[i] === leader);
        const question = { before: ofLeader, timeoutMs: this.#cluster.requestTimeoutMs };
        const { results } = await this.#askBroker(leader, deleteRecords, question, options);
        for (const { topic, partition, error } of results) {
          if (error !== 0) throw errorOf(error, `deleting records of ${topic}/${partition}`);
        }
      }
    });
  }

  async settings(
    of: { readonly topic: string } | { readonly broker: number | undefined },
    names: readonly string[],
    options?: CallOptions,
  ): Promise<ReadonlyMap<string, string>> {
    return await this.#retry(options, async () => {
      const isTopic = "topic" in of;
      const broker = isTopic ? undefined : of.broker ?? (await this.#cluster.brokerIds(options?.signal))[0]!;
      const name = isTopic ? of.topic : String(broker);
      const question = { type: SETTINGS_OF[isTopic ? "topic" : "broker"], name, settings: names };
      const answer = broker === undefined
        ? await this.#cluster.any(describeConfigs, question, options?.signal)
        : await this.#askBroker(broker, describeConfigs, question, options);
      if (answer.error !== 0) {
        throw errorOf(
          answer.error,
          `reading settings of ${isTopic ? "topic" : "broker"} ${name}`,
          answer.detail,
        );
      }
      return new Map(
        answer.settings.flatMap(({ name, value }) => value === undefined ? [] : [[name, value] as const]),
      );
    });
  }

  // Transactions

  async listTransactions(
    options?: CallOptions,
  ): Promise<readonly { readonly transactionalId: string; readonly state: string }[]> {
    return await this.#retry(options, async () => {
      const brokers = await this.#cluster.brokerIds(options?.signal);
      const answers = await Promise.all(
        brokers.map((id) => this.#askBroker(id, listTransactions, undefined, options)),
      );
      return answers.flatMap(({ error, transactions }) => {
        if (error !== 0) throw errorOf(error, "listing transactions");
        return transactions.map(({ transactionalId, state }) => ({ transactionalId, state }));
      });
    });
  }

  async describeTransactions(
    transactionalIds: readonly string[],
    options?: CallOptions,
  ): Promise<readonly TransactionState[]> {
    const found = await Promise.all(transactionalIds.map((id) => this.#describe(id, options)));
    return found.filter((state) => state !== undefined);
  }

  #describe(
    transactionalId: string,
    options: CallOptions | undefined,
  ): Promise<TransactionState | undefined> {
    return this.#retry(options, async () => {
      const to = { of: "transaction", name: transactionalId } as const;
      const question = { transactionalIds: [transactionalId] };
      const usual = this.#cluster.usual(options?.signal);
      const { transactions: [found] } = await this.#cluster.coordinated(
        to,
        describeTransactions,
        question,
        usual,
      );
      if (found === undefined || found.error === TRANSACTIONAL_ID_NOT_FOUND) return undefined;
      if (found.error !== 0) {
        if (brokerError(found.error).moved) this.#cluster.forgetCoordinator("transaction", transactionalId);
        throw errorOf(found.error, `looking at transactional id "${transactionalId}"`);
      }
      const { producerId, epoch, state, timeoutMs, startedAt, partitions } = found;
      return {
        transactionalId,
        producerId,
        epoch,
        state,
        timeoutMs,
        startedAt: startedAt < 0 ? undefined : startedAt,
        partitions,
      };
    });
  }

  async abortTransaction(transactionalId: string, options?: CallOptions): Promise<void> {
    const producer = { transactionalId, transactionTimeoutMs: TIMEOUT_OF_ABORT_MS };
    await initialise(this.#cluster, producer, { producerId: -1, epoch: -1 }, options?.signal);
  }

  // Asking

  #retry<T>(options: CallOptions | undefined, attempt: () => Promise<T>): Promise<T> {
    const until = this.#cluster.within(this.#cluster.requestTimeoutMs);
    return this.#cluster.retry({ until, signal: options?.signal }, attempt);
  }

  async #askController<Question, Answer extends Throttled>(
    api: Api<Question, Answer>,
    question: Question,
    options: CallOptions | undefined,
  ): Promise<Answer> {
    return await this.#askBroker(await this.#cluster.controller(options?.signal), api, question, options);
  }

  async #askBroker<Question, Answer extends Throttled>(
    id: number,
    api: Api<Question, Answer>,
    question: Question,
    options: CallOptions | undefined,
  ): Promise<Answer> {
    const link = await this.#cluster.link(id, "main", options?.signal);
    const usual = this.#cluster.usual(options?.signal);
    return await link.request(api, question, { ...usual, timeoutMs: usual.timeoutMs * 2 }); // the broker waits that long itself
  }

  /** Until every topic has so many partitions, all with a leader. */
  async #waitUntilLed(
    names: readonly string[],
    partitions: () => number,
    options: CallOptions | undefined,
  ): Promise<void> {
    await this.#retry(options, async () => {
      for (const id of await this.#cluster.brokerIds(options?.signal)) { // each learns of it on its own
        const answer = await this.#askBroker(id, metadata, { topics: names }, options);
        for (const topic of answer.topics) {
          const led = topic.partitions.filter(({ leader }) => leader >= 0).length;
          if (topic.error !== 0) throw errorOf(topic.error, `waiting for topic ${topic.name}`);
          if (led < partitions() || led < topic.partitions.length) {
            throw errorOf(5, `waiting for topic ${topic.name}`);
          }
        }
      }
    });
    await this.#cluster.refresh(names, options?.signal);
  }
}

/** What went wrong with one topic; `fine` counts as success. */
function errorIn(
  results: readonly TopicResult[],
  topic: string,
  fine: number,
  doing: string,
): KafkaError | undefined {
  const result = results.find((entry) => entry.topic === topic);
  if (result === undefined) {
    return new KafkaError("kafka_incomplete_answer", `the broker did not answer while ${doing}`);
  }
  return result.error === 0 || result.error === fine
    ? undefined
    : errorOf(result.error, doing, result.detail);
}
