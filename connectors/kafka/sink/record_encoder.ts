/**
 * Makes of a record what is written to Kafka.
 *
 * E1 Time: the record's event time, also 0 and before, but never later than now: brokers refuse what is far ahead, and the end of
 *    a window may be. Without event time it is now. (Brokers go by it when they delete what is older than `retention.ms`.)
 * E2 Partition: by the key as Java's producer has it, so that other producers of the topic agree; without a key by turns.
 * E3 Headers are passed on in their order, repeated ones as well.
 * E4 Null is no value, which is not the same as an empty one.
 *
 * @module
 */
import type { Clock } from "../../../lib/clock.ts";
import { MailerError } from "../../../lib/errors.ts";
import { encodeJson, type Encoder, type Payload } from "../../../lib/format/mod.ts";
import { type Batch, type Headers, RecordView } from "../../../lib/record.ts";
import { isTopicName, type RecordSettings } from "./settings.ts";
import type { KnownTopic } from "./topics.ts";

/** A record as it is written. */
export interface Outgoing {
  readonly topic: string;
  readonly partition: number;
  readonly key: Uint8Array | null;
  readonly value: Payload | null;
  /** Ms since the epoch. */
  readonly timestamp: number;
  readonly headers: Headers;
}

/** The largest time that there is, ms. */
const LAST_TIME = 8.64e15;
const UTF8 = new TextEncoder();

/** Encodes records, one after the other. Whatever it throws is about the record. */
export class RecordEncoder {
  readonly #settings: RecordSettings;
  readonly #clock: Clock;
  readonly #encoder: Encoder;
  readonly #view = new RecordView();
  /** Ms since the epoch. */
  #now: number;

  constructor(settings: RecordSettings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
    this.#now = clock.now();
    this.#encoder = settings.format.encoder();
  }

  /** Looks at the clock, which costs as much as all else about a record's time: once for many of them. */
  lookAtClock(): void {
    this.#now = this.#clock.now();
  }

  /** Topic of a record. @throws {MailerError} `invalid_topic` */
  topic(batch: Batch, index: number): string {
    const { topic } = this.#settings;
    if (typeof topic !== "function") return topic;
    const name = topic(batch.values[index], this.#viewOf(batch, index));
    if (isTopicName(name)) return name;
    throw new MailerError("invalid_topic", `${JSON.stringify(name)} is no name of a topic`, {
      hint: "names have letters, digits, ., _ and -, at most 249 of them",
    });
  }

  /** A record for a topic. @throws {MailerError} What the format throws, `invalid_partition`, and what user code throws. */
  encode(batch: Batch, index: number, topic: string, known: KnownTopic): Outgoing {
    const { key, value, timestamp, headers } = this.content(batch, index);
    return { topic, partition: this.#partition(batch, index, key, known), key, value, timestamp, headers };
  }

  /** A record without its place. */
  content(batch: Batch, index: number): Omit<Outgoing, "topic" | "partition"> {
    const value = batch.values[index];
    return {
      key: this.#key(batch, index),
      value: value === null || value === undefined ? null : this.#encoder.encode(value),
      timestamp: this.#time(batch.timestamp(index)),
      headers: batch.headers(index),
    };
  }

  #key(batch: Batch, index: number): Uint8Array | null {
    const { key } = this.#settings;
    const chosen = key === undefined
      ? batch.key(index)
      : key(batch.values[index], this.#viewOf(batch, index));
    if (chosen === null || chosen === undefined) return null;
    if (chosen instanceof Uint8Array) return chosen;
    return UTF8.encode(typeof chosen === "string" ? chosen : encodeJson(chosen));
  }

  /** E1. */
  #time(eventTime: number): number {
    const now = this.#now;
    return Math.floor(Math.abs(eventTime) <= LAST_TIME ? Math.min(eventTime, now) : now);
  }

  #partition(batch: Batch, index: number, key: Uint8Array | null, known: KnownTopic): number {
    const { partition } = this.#settings;
    if (partition === undefined) return known.partitioner.partition(key);
    const chosen = partition(batch.values[index], this.#viewOf(batch, index), known.partitions);
    if (Number.isInteger(chosen) && chosen >= 0 && chosen < known.partitions) return chosen;
    throw new MailerError(
      "invalid_partition",
      `partition ${String(chosen)} was chosen of ${known.partitions}: it is a whole number from 0 to ${
        known.partitions - 1
      }`,
    );
  }

  #viewOf(batch: Batch, index: number): RecordView {
    this.#view.batch = batch;
    this.#view.index = index;
    return this.#view;
  }
}
