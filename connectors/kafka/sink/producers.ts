/**
 * The producers of one transactional sink.
 *
 * P1 The first has the id of the sink, the others that id with `#1`, `#2` … behind it. No sink may have an id that ends like that, so
 *    those of two sinks never meet.
 * P2 All that an earlier run may have had are fenced before anything else: nothing of theirs is open, or can still be committed.
 * P3 A producer is one transaction's at a time. Where all have one, there is another producer: what is written does not wait
 *    for a commit.
 * P4 What has failed is thrown away, not used again.
 *
 * @module
 */
import type { KafkaClient, KafkaTransactionalProducer } from "../client.ts";
import { KafkaError } from "../errors.ts";
import type { Codec } from "../protocol/types.ts";
import { invalid } from "./settings.ts";

/** How producers are started. */
export interface ProducerSettings {
  readonly transactionalId: string;
  readonly transactionTimeoutMs: number;
  readonly deliveryTimeoutMs: number;
  readonly codec: Codec;
}

/** One is written to while the other is committed. */
const USUAL = 2;
/** So many ids are looked up together. */
const STRIDE = 8;
/** So many are fenced where the broker does not say which there are. */
const BLIND = 4;

/** Id of a producer. */
export function producerId(transactionalId: string, index: number): string {
  return index === 0 ? transactionalId : `${transactionalId}#${index}`;
}

/** @throws {MailerError} `invalid_kafka_options` */
export function checkTransactionalId(id: unknown): asserts id is string {
  if (typeof id !== "string" || id === "") {
    throw invalid("`transactionalId` is a text, the same in every run");
  }
  if (/#\d+$/.test(id)) {
    throw invalid(
      `\`transactionalId\` may not end in # and a number, as the sink's further producers do: "${id}"`,
    );
  }
}

/** The producers. */
export class Producers {
  readonly #client: KafkaClient;
  readonly #settings: ProducerSettings;
  readonly #signal: AbortSignal;
  /** By their numbers. */
  readonly #all: (KafkaTransactionalProducer | undefined)[] = [];
  readonly #busy = new Set<KafkaTransactionalProducer>();

  private constructor(client: KafkaClient, settings: ProducerSettings, signal: AbortSignal) {
    this.#client = client;
    this.#settings = settings;
    this.#signal = signal;
  }

  /** Starts all of them, which fences those of earlier runs (P2). */
  static async start(
    client: KafkaClient,
    settings: ProducerSettings,
    signal: AbortSignal,
  ): Promise<Producers> {
    const producers = new Producers(client, settings, signal);
    const count = Math.max(USUAL, await producers.#known());
    const started = await Promise.all(Array.from({ length: count }, (_, index) => producers.#start(index)));
    producers.#all.push(...started);
    return producers;
  }

  /** What no other run has: the broker gives the first producer an epoch of its own. */
  get run(): string {
    const { producerId, epoch } = this.#all[0]!;
    return `${producerId}.${epoch}`;
  }

  /** A producer for one transaction. */
  async take(): Promise<KafkaTransactionalProducer> {
    const free = this.#all.find((producer) => producer !== undefined && !this.#busy.has(producer));
    const producer = free ?? await this.#another();
    this.#busy.add(producer);
    return producer;
  }

  /** Its transaction has come to a good end. */
  release(producer: KafkaTransactionalProducer): void {
    this.#busy.delete(producer);
  }

  /** P4. Starts another with the same id, which settles what was under way. */
  async replace(producer: KafkaTransactionalProducer): Promise<void> {
    const index = this.#all.indexOf(producer);
    this.#all[index] = undefined;
    this.#busy.delete(producer);
    await producer.close();
    this.#all[index] = await this.#start(index);
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((producer) => producer?.close()));
  }

  async #another(): Promise<KafkaTransactionalProducer> {
    const gap = this.#all.indexOf(undefined), index = gap === -1 ? this.#all.length : gap;
    return this.#all[index] = await this.#start(index);
  }

  async #start(index: number): Promise<KafkaTransactionalProducer> {
    const { transactionalId, ...settings } = this.#settings;
    const options = { ...settings, transactionalId: producerId(transactionalId, index) };
    return await this.#client.transactionalProducer(options, { signal: this.#signal });
  }

  /** How many there may be: one more than the highest number the broker knows. */
  async #known(): Promise<number> {
    const { transactionalId } = this.#settings;
    try {
      for (let count = 0, from = 0;; from += STRIDE) {
        const ids = Array.from({ length: STRIDE }, (_, i) => producerId(transactionalId, from + i));
        const states = await this.#client.admin.describeTransactions(ids, { signal: this.#signal });
        const there = new Set(states.map((state) => state.transactionalId));
        const last = ids.findLastIndex((id) => there.has(id));
        if (last === -1) return count;
        count = from + last + 1;
      }
    } catch (error) {
      if (error instanceof KafkaError && error.code === "kafka_unsupported") return BLIND;
      throw error;
    }
  }
}
