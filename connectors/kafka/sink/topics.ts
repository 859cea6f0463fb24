/**
 * What is known of the topics that are written to.
 *
 * P1 A topic is asked for before its first record, and again now and then: a topic that has grown is used whole.
 * P2 While it cannot be asked for again, what was known stays.
 *
 * @module
 */
import type { Clock } from "../../../lib/clock.ts";
import { asError, codeOf } from "../../../lib/errors.ts";
import type { Logger } from "../../../lib/log.ts";
import type { KafkaClient } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { Partitioner } from "../protocol/partitioner.ts";

/** A topic that exists. */
export interface KnownTopic {
  readonly partitions: number;
  /** Chooses by keys, and by turns. */
  readonly partitioner: Partitioner;
  /** The largest batch the topic takes, bytes as they are sent; undefined where nobody says. */
  readonly maxBatchBytes: number | undefined;
}

interface Looked {
  readonly topic: KnownTopic | KafkaError;
  /** When it is to be looked at again, by the monotonic clock. */
  readonly until: number;
}

const MAX_AGE_MS = 300_000;
/** One that does not exist may be made any moment. */
const MISSING_AGE_MS = 30_000;

/** Topics by name. */
export class Topics {
  readonly #client: KafkaClient;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #signal: AbortSignal;
  readonly #known = new Map<string, Looked>();
  /** When the first of them is to be looked at again, by the monotonic clock. */
  #nextLook = Infinity;

  constructor(
    client: KafkaClient,
    { clock, logger, signal }: { clock: Clock; logger: Logger; signal: AbortSignal },
  ) {
    this.#client = client;
    this.#clock = clock;
    this.#logger = logger;
    this.#signal = signal;
  }

  /** A topic; an error where it does not exist, undefined where it has not been looked for. */
  get(name: string): KnownTopic | KafkaError | undefined {
    return this.#known.get(name)?.topic;
  }

  /** Looks for a topic. Rejects where it cannot be found out whether it exists. */
  async find(name: string): Promise<KnownTopic | KafkaError> {
    const topic = await this.#look(name);
    this.#note(name, topic);
    return topic;
  }

  /** P1. Undefined where all is fresh. */
  refreshed(): Promise<void> | undefined {
    const now = this.#clock.monotonic();
    if (now < this.#nextLook) return undefined;
    this.#nextLook = Infinity;
    return this.#refresh(now);
  }

  async #refresh(now: number): Promise<void> {
    for (const [name, { topic, until }] of [...this.#known]) {
      let fresh = topic;
      if (now < until) {
        this.#nextLook = Math.min(this.#nextLook, until);
        continue;
      }
      try {
        const found = await this.#look(name);
        const isSame = !(topic instanceof KafkaError) && !(found instanceof KafkaError) &&
          found.partitions === topic.partitions;
        if (!isSame) fresh = found; // the partitioner knows whose turn it is
      } catch (error) {
        this.#signal.throwIfAborted();
        this.#logger.log("warn", "topic not looked up again", { topic: name, error: asError(error).message });
      }
      this.#note(name, fresh);
    }
  }

  #note(name: string, topic: KnownTopic | KafkaError): void {
    const until = this.#clock.monotonic() + (topic instanceof KafkaError ? MISSING_AGE_MS : MAX_AGE_MS);
    this.#known.set(name, { topic, until });
    this.#nextLook = Math.min(this.#nextLook, until);
  }

  async #look(name: string): Promise<KnownTopic | KafkaError> {
    const call = { signal: this.#signal };
    try {
      const partitions = (await this.#client.requireTopics([name], call)).get(name)!;
      const partitioner = new Partitioner(partitions, Math.floor(this.#clock.now()));
      return { partitions, partitioner, maxBatchBytes: await this.#maxBatchBytes(name) };
    } catch (error) {
      if (error instanceof KafkaError && error.code === "kafka_unknown_topic") return error;
      throw error;
    }
  }

  async #maxBatchBytes(name: string): Promise<number | undefined> {
    try {
      const settings = await this.#client.admin.settings({ topic: name }, ["max.message.bytes"], {
        signal: this.#signal,
      });
      const bytes = Number(settings.get("max.message.bytes"));
      return bytes > 0 ? bytes : undefined;
    } catch (error) {
      if (codeOf(error) !== "kafka_not_authorised") throw error;
      this.#logger.log("debug", "settings of a topic may not be read", { topic: name });
      return undefined; // the broker says so when a batch is too large
    }
  }
}
