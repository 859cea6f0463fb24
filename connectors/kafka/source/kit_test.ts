/**
 * Drives a Kafka source over the cluster in memory as a run would.
 *
 * @module
 */
import type { Position, SourceContext, SourceRead } from "../../../lib/connector.ts";
import { stringifyJson } from "../../../lib/json.ts";
import type { LogLevel } from "../../../lib/log.ts";
import { settle, type VirtualClock } from "../../../lib/testing/virtual_clock.ts";
import { kafkaSource, type KafkaSourceOptions } from "../kafka_source.ts";
import type { FakeClient, FakeKafka } from "../testing/fake_client.ts";
import type { KafkaReader } from "./reader.ts";

/** How it is driven. */
export interface DriveOptions {
  readonly restored?: Readonly<Record<string, Position>>;
  /** Default: none are taken. */
  readonly checkpoints?: true;
  readonly keepsState?: boolean;
  readonly batchSize?: number;
  /** The test reads. */
  readonly byHand?: true;
}

/** A source that is read as fast as it goes, unless it is paused. */
export class Driven {
  readonly kafka: FakeKafka;
  readonly controller = new AbortController();
  /** All reads but `empty`, in short: `orders/0: 1,2 → 2`. */
  readonly log: string[] = [];
  /** Splits that were said to be empty, one entry each time. */
  readonly empties: string[] = [];
  /** All values, in the order of the reads. */
  readonly values: unknown[] = [];
  readonly reads: SourceRead[] = [];
  readonly messages: { readonly level: LogLevel; readonly message: string; readonly fields: unknown }[] = [];
  /** Positions as a checkpoint would have them. */
  readonly positions = new Map<string, Position>();
  error: unknown;
  /** Called in front of the barrier of a checkpoint that was asked for. */
  beforeCheckpoint: () => void | Promise<void> = () => {};
  requested = 0;
  client!: FakeClient;
  reader!: KafkaReader;
  #gate: PromiseWithResolvers<void> | undefined;
  #pumping: Promise<void> | undefined;

  private constructor(kafka: FakeKafka) {
    this.kafka = kafka;
  }

  /** Opens it, and reads. */
  static async open(
    kafka: FakeKafka,
    options: Partial<KafkaSourceOptions>,
    drive: DriveOptions = {},
  ): Promise<Driven> {
    const driven = Driven.start(kafka, options, drive);
    await driven.opened;
    await settle();
    return driven;
  }

  opened!: Promise<void>;

  /** Begins to open it. */
  static start(kafka: FakeKafka, options: Partial<KafkaSourceOptions>, drive: DriveOptions = {}): Driven {
    const driven = new Driven(kafka), { pattern, topics } = options;
    const source = kafkaSource({
      brokers: ["fake:9092"],
      ...(pattern === undefined && topics === undefined ? { topics: ["t"] } : {}),
      ...options,
      client: (connection, context) =>
        driven.client = (options.client ?? kafka.connect)(connection, context) as FakeClient,
    });
    for (const [split, position] of Object.entries(drive.restored ?? {})) {
      driven.positions.set(split, position);
    }
    driven.opened = (async () => {
      driven.reader = await source.open(driven.#context(drive)) as KafkaReader;
      for (const split of driven.reader.splits) driven.log.push(`split ${split}`);
      if (drive.byHand === undefined) driven.#pumping = driven.#pump();
    })();
    driven.opened.catch(() => {}); // it is awaited by who wants to know
    return driven;
  }

  #context({ restored, checkpoints, keepsState = false, batchSize = 1024 }: DriveOptions): SourceContext {
    return {
      id: "in",
      batchSize,
      clock: this.kafka.clock,
      logger: { log: (level, message, fields) => this.messages.push({ level, message, fields }) },
      signal: this.controller.signal,
      restored: restored === undefined ? undefined : new Map(Object.entries(restored)),
      keepsState,
      ...(checkpoints === undefined ? {} : { checkpoints: { request: () => this.checkpoint() } }),
    };
  }

  /** Takes a checkpoint of what was read. */
  async checkpoint(): Promise<void> {
    this.requested++;
    await this.beforeCheckpoint();
    await this.reader.checkpointed(new Map(this.positions));
  }

  /** Works on what was read last until `resume`. */
  pause(): void {
    this.#gate ??= Promise.withResolvers<void>();
  }

  async resume(): Promise<void> {
    this.#gate?.resolve();
    this.#gate = undefined;
    await settle();
  }

  async close(outcome: "done" | "failed" = "failed"): Promise<void> {
    this.controller.abort(new Error("stopped"));
    await this.resume();
    await this.#pumping;
    await this.reader.close(outcome);
  }

  /** Is gone without a word, as a process that was killed. */
  async crash(): Promise<void> {
    this.controller.abort(new Error("killed"));
    await this.resume();
    this.client.crash();
    await settle();
  }

  /** Log lines of a level, with their fields. */
  said(level: LogLevel): string[] {
    return this.messages.filter((each) => each.level === level).map(({ message, fields }) =>
      `${message} ${JSON.stringify(fields)}`
    );
  }

  async #pump(): Promise<void> {
    try {
      for (;;) {
        const read = await this.reader.read();
        this.#take(read);
        if (read.kind === "end") return;
        if (this.#gate !== undefined) await this.#gate.promise;
      }
    } catch (error) {
      if (!this.controller.signal.aborted) this.error = error;
    }
  }

  #take(read: SourceRead): void {
    if (read.kind === "empty") {
      this.empties.push(read.split);
      return;
    }
    this.reads.push(read);
    switch (read.kind) {
      case "records":
        this.values.push(...read.values);
        this.positions.set(read.split, read.position);
        this.log.push(
          `${read.split}: ${read.values.map((value) => stringifyJson(value)).join()} → ${read.position}`,
        );
        break;
      case "position":
        this.positions.set(read.split, read.position);
        this.log.push(`${read.split}:  → ${read.position}`);
        break;
      case "removed":
        for (const split of read.splits) this.positions.delete(split);
        this.log.push(`removed ${read.splits.join()}`);
        break;
      case "added":
        this.log.push(`added ${read.splits.join()}`);
        break;
      case "ended":
        this.log.push(`ended ${read.split}`);
        break;
      default:
        this.log.push(read.kind);
    }
  }
}

/** Writes numbers, as JSON. @returns The offset of the first. */
export function write(kafka: FakeKafka, split: string, ...values: unknown[]): number {
  const [topic, partition] = split.split("/");
  return kafka.write(topic!, Number(partition), values.map((value) => ({ value: stringifyJson(value) })));
}

/** A cluster with one topic. */
export function cluster(kafka: FakeKafka, partitions = 1, topic = "t"): FakeKafka {
  kafka.createTopic(topic, partitions);
  return kafka;
}

export type { VirtualClock };
