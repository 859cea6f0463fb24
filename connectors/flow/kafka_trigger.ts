/**
 * Messages of Kafka that start flows. A stream is a topic; the subject of a message is a header, or else the name of the topic.
 *
 * K1 The offset of a message is committed to the group when the message is done, and not before: after a crash what was not done
 *    comes again, and starts nothing twice.
 * K2 When partitions go to another process, what is under way is finished and committed first.
 *
 * @module
 */
import type { RecordsRead, SourceReader } from "../../lib/connector.ts";
import { asError } from "../../lib/errors.ts";
import { bytesFormat } from "../../lib/format/mod.ts";
import type { Headers } from "../../lib/record.ts";
import { kafkaSource, type KafkaSourceOptions } from "../kafka/kafka_source.ts";
import type { TriggerContext, TriggerMessage, TriggerSource } from "./triggers.ts";

/** Settings of {@link kafkaTrigger}. */
export interface KafkaTriggerOptions extends
  Pick<
    KafkaSourceOptions,
    | "brokers"
    | "clientId"
    | "tls"
    | "sasl"
    | "connectTimeoutMs"
    | "requestTimeoutMs"
    | "instanceId"
    | "start"
    | "client"
  > {
  /** Begins the names of consumer groups: a stream has the group `<groupId>.<topic>`. Processes with the same one share its messages out. */
  readonly groupId: string;
  /** Topics by the names of streams; no other streams are read. Default: any, and a topic is called as the stream is. */
  readonly topics?: Readonly<Record<string, string>>;
  /** Header that says what a message is about. Default `subject`; a message without it is about its topic. */
  readonly subjectHeader?: string;
  /** Headers by which a sender tells repetitions, the first that is there counts. Default `idempotency-key`, `Nats-Msg-Id`. */
  readonly idHeaders?: readonly string[];
  /** Messages that are worked on at a time. Default 64. */
  readonly concurrency?: number;
}

const CONCURRENCY = 64;
const ID_HEADERS = ["idempotency-key", "Nats-Msg-Id"];
const decoder = new TextDecoder();

/** Messages of topics, each of which may start flows. */
export function kafkaTrigger(options: KafkaTriggerOptions): TriggerSource {
  const { topics, concurrency = CONCURRENCY, idHeaders: _i, subjectHeader: _s, ...source } = options;
  return {
    type: "kafka",
    streams: topics === undefined ? undefined : Object.keys(topics),
    async run(context) {
      const topic = topics?.[context.stream] ?? context.stream,
        reading = new Reading(options, context, topic);
      const reader = await kafkaSource({
        ...source,
        groupId: `${options.groupId}.${topic}`,
        topics: [topic],
        format: bytesFormat(),
        keyFormat: bytesFormat(),
      }).open({
        id: `trigger ${context.stream}`,
        batchSize: 4 * concurrency,
        clock: context.clock,
        logger: context.logger,
        signal: context.signal,
        restored: undefined,
        keepsState: false,
        checkpoints: { request: () => reading.settle() },
      });
      await reading.run(reader);
    },
  };
}

class Reading {
  readonly #options: KafkaTriggerOptions;
  readonly #context: TriggerContext;
  readonly #topic: string;
  /** Where to go on behind what is done, by split. */
  readonly #positions = new Map<string, unknown>();
  #reader!: SourceReader;
  #busy: Promise<void> = Promise.resolve();

  constructor(options: KafkaTriggerOptions, context: TriggerContext, topic: string) {
    this.#options = options;
    this.#context = context;
    this.#topic = topic;
  }

  async run(reader: SourceReader): Promise<void> {
    this.#reader = reader;
    try {
      for (;;) {
        const read = await reader.read();
        switch (read.kind) {
          case "records":
            this.#busy = this.#take(read);
            await this.#busy;
            await this.#commit();
            break;
          case "position":
            this.#positions.set(read.split, read.position);
            break;
          case "removed":
            for (const split of read.splits) this.#positions.delete(split);
            break;
          case "end":
            return;
        }
      }
    } catch (error) {
      if (!this.#context.signal.aborted) throw error;
    } finally {
      await reader.close("failed"); // what is done has been committed
    }
  }

  /** K2 */
  async settle(): Promise<void> {
    await this.#busy;
    await this.#reader.checkpointed?.(new Map(this.#positions));
  }

  async #commit(): Promise<void> {
    try {
      await this.#reader.checkpointed?.(new Map(this.#positions));
    } catch (error) {
      // They are committed with the next ones; until then they would come again, and start nothing twice.
      this.#context.logger.log("warn", "offsets of messages that trigger flows were not committed", {
        error: asError(error).message,
      });
    }
  }

  /** Some at a time. */
  async #take(read: RecordsRead): Promise<void> {
    const { concurrency = CONCURRENCY } = this.#options, { length } = read.values;
    let next = 0, isOver = false;
    const work = async (): Promise<void> => {
      while (next < length && !isOver) {
        try {
          await this.#context.deliver(this.#message(read, next++));
        } catch (error) {
          isOver = true;
          throw error;
        }
      }
    };
    const outcomes = await Promise.allSettled(Array.from({ length: Math.min(concurrency, length) }, work));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    this.#positions.set(read.split, read.position);
  }

  #message({ split, values, headers, firstOffset, offsets }: RecordsRead, index: number): TriggerMessage {
    const { subjectHeader = "subject", idHeaders = ID_HEADERS } = this.#options;
    const own = headers?.[index];
    const offset = offsets?.[index] ?? firstOffset! + index;
    return {
      stream: this.#context.stream,
      subject: headerOf(own, [subjectHeader]) ?? this.#topic,
      id: headerOf(own, idHeaders),
      place: `${split}/${offset}`,
      body: values[index] as Uint8Array | null,
      headers: own,
    };
  }
}

/** The first of some headers that is there and not empty. Names are the same in capitals and small letters. */
function headerOf(headers: Headers | undefined, names: readonly string[]): string | undefined {
  for (const name of names) {
    const found = headers?.find(([other]) => other.toLowerCase() === name.toLowerCase());
    const text = found === undefined ? "" : decoder.decode(found[1]);
    if (text !== "") return text;
  }
  return undefined;
}
