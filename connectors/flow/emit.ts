/**
 * Records that flows emit (`kind: emit`): to a source of a stream in this process, or to a topic of Kafka.
 *
 * M1 The task is done when its record is safe: written to its topic, or covered by a checkpoint of the stream that reads it. Where the
 *    stream takes no checkpoints: when the stream has taken it.
 * M2 A task that is done again, after a crash, emits again: the record has the task's key as header `idempotency-key`.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import { type Clock, systemClock } from "../../lib/clock.ts";
import type { Source, SourceContext, SourceRead, SourceReader } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import {
  type BuiltInOptions,
  type EmittedRecord,
  type Job,
  PermanentError,
} from "../../lib/flow/engine/mod.ts";
import { stringifyJson } from "../../lib/json.ts";
import { type Logger, silentLogger } from "../../lib/log.ts";
import type { Headers } from "../../lib/record.ts";
import type { KafkaClient, KafkaClientFactory, KafkaConnection, KafkaProducer } from "../kafka/client.ts";
import { partitionOfKey } from "../kafka/protocol/partitioner.ts";
import { RecordBatchBuilder } from "../kafka/protocol/record_batch_builder.ts";

const encoder = new TextEncoder();
const KEY_HEADER = "idempotency-key";

/** A record on its way into a stream. */
interface Emitted {
  readonly key: unknown;
  readonly value: unknown;
  readonly headers: Headers;
  readonly time: number;
  readonly done: PromiseWithResolvers<void>;
}

/** A source that flows of this process emit to. */
export interface EmitSource extends Source {
  /** Hands a record over; resolves when it is safe, see M1. */
  emit(key: unknown, value: unknown, headers?: Headers, signal?: AbortSignal): Promise<void>;
}

/** Settings of {@link emitSource}. */
export interface EmitSourceOptions {
  /** Records that may wait to be read; more have to wait outside. Default 1,000. */
  readonly capacity?: number;
}

/** A source of records that are handed to it. One run at a time reads it; what that has not made safe the next one reads again. */
export function emitSource({ capacity = 1000 }: EmitSourceOptions = {}): EmitSource {
  const queue = new EmitQueue(capacity);
  return {
    type: "emit",
    replayable: false,
    describe: () => ({ capacity }),
    open: (context) => queue.open(context),
    emit: (key, value, headers, signal) => queue.emit(key, value, headers ?? [], signal),
  };
}

class EmitQueue {
  readonly #capacity: number;
  /** Not read yet. */
  readonly waiting: Emitted[] = [];
  /** Read, and not safe yet; in order. */
  taken: { readonly offset: number; readonly record: Emitted }[] = [];
  #reader: EmitReader | undefined;
  #room: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  open(context: SourceContext): SourceReader {
    if (this.#reader !== undefined) {
      throw new MailerError("emit_source_in_use", "emit source: another run reads it");
    }
    // What the run before took and did not make safe comes first.
    this.waiting.unshift(...this.taken.map(({ record }) => record));
    this.taken = [];
    return this.#reader = new EmitReader(this, context, () => this.#reader = undefined);
  }

  async emit(key: unknown, value: unknown, headers: Headers, signal?: AbortSignal): Promise<void> {
    const end = signal ?? new AbortController().signal;
    while (this.waiting.length >= this.#capacity) await abortable(this.#room.promise, end);
    end.throwIfAborted();
    const record: Emitted = { key, value, headers, time: 0, done: Promise.withResolvers() };
    this.waiting.push(record);
    this.#reader?.wake();
    try {
      await abortable(record.done.promise, end);
    } catch (reason) {
      const at = this.waiting.indexOf(record);
      if (at >= 0) this.waiting.splice(at, 1); // nobody waits for it any more, and nobody has read it
      throw reason;
    }
  }

  take(count: number): Emitted[] {
    const records = this.waiting.splice(0, count);
    this.#room.resolve();
    this.#room = Promise.withResolvers();
    return records;
  }
}

const SPLIT = "emit";

class EmitReader implements SourceReader {
  readonly splits: readonly string[] = [SPLIT];
  readonly #queue: EmitQueue;
  readonly #context: SourceContext;
  readonly #onClose: () => void;
  #wake: PromiseWithResolvers<void> = Promise.withResolvers();
  #next: number;

  constructor(queue: EmitQueue, context: SourceContext, onClose: () => void) {
    this.#queue = queue;
    this.#context = context;
    this.#onClose = onClose;
    const restored = context.restored?.get(SPLIT);
    this.#next = typeof restored === "number" ? restored : 0;
  }

  wake(): void {
    this.#wake.resolve();
  }

  async read(): Promise<SourceRead> {
    const { checkpoints, clock, batchSize, signal } = this.#context;
    // Without checkpoints what was read before has been taken now.
    if (checkpoints === undefined) this.#safe(this.#next);
    while (this.#queue.waiting.length === 0) {
      this.#wake = Promise.withResolvers();
      await abortable(this.#wake.promise, signal);
    }
    const records = this.#queue.take(batchSize), firstOffset = this.#next, now = clock.now();
    for (const record of records) this.#queue.taken.push({ offset: this.#next++, record });
    return {
      kind: "records",
      split: SPLIT,
      values: records.map(({ value }) => value),
      keys: records.map(({ key }) => key),
      headers: records.map(({ headers }) => headers),
      timestamps: new Float64Array(records.length).fill(now),
      firstOffset,
      position: this.#next,
    };
  }

  checkpointed(positions: ReadonlyMap<string, unknown>): void {
    const position = positions.get(SPLIT);
    if (typeof position === "number") this.#safe(position);
  }

  close(outcome: "done" | "failed"): void {
    if (outcome === "done" && this.#context.checkpoints === undefined) this.#safe(this.#next);
    this.#onClose();
  }

  /** What lies in front of a position is safe. */
  #safe(position: number): void {
    const { taken } = this.#queue;
    let count = 0;
    while (count < taken.length && taken[count]!.offset < position) taken[count++]!.record.done.resolve();
    taken.splice(0, count);
  }
}

/** Where flows may emit to. */
export interface FlowEmitterOptions {
  /** Sources of streams in this process, by the name flows know them by. */
  readonly sources?: Readonly<Record<string, EmitSource>>;
  /** The cluster whose topics flows may emit to. */
  readonly kafka?: KafkaConnection;
  /** Makes the client. Default: the one on kafkajs. */
  readonly client?: KafkaClientFactory;
  /** Default: the machine's. */
  readonly clock?: Clock;
  /** Default: nowhere. */
  readonly logger?: Logger;
}

/** Hands on what flows emit: its `emit` is what the built-in workers of an engine are given. */
export class FlowEmitter implements AsyncDisposable {
  /** See `builtInWorkers`. */
  readonly emit: NonNullable<BuiltInOptions["emit"]>;
  readonly #options: FlowEmitterOptions;
  #client: Promise<KafkaClient> | undefined;
  #producer: KafkaProducer | undefined;
  /** Numbers of partitions, by topic. */
  readonly #partitions = new Map<string, number>();
  #turn = 0;

  /** Opens nothing. */
  constructor(options: FlowEmitterOptions) {
    this.#options = options;
    this.emit = (record, job) => this.#emit(record, job);
  }

  async #emit({ source, topic, key, value }: EmittedRecord, job: Job): Promise<void> {
    const headers: Headers = [[KEY_HEADER, encoder.encode(job.idempotencyKey)]];
    if (topic !== undefined) return await this.#send(topic, key, value, headers, job.signal);
    const { sources = {} } = this.#options;
    if (!Object.hasOwn(sources, source!)) {
      const known = Object.keys(sources).join(", ") || "none";
      throw new PermanentError(`emit: there is no source "${source}" in this process; known: ${known}`);
    }
    await sources[source!]!.emit(key, value, headers, job.signal);
  }

  async #send(
    topic: string,
    key: unknown,
    value: unknown,
    headers: Headers,
    signal: AbortSignal,
  ): Promise<void> {
    const client = await this.#connected(topic), { clock = systemClock } = this.#options;
    this.#producer ??= client.producer({ acks: "all" });
    let partitions = this.#partitions.get(topic);
    if (partitions === undefined) {
      partitions = (await client.requireTopics([topic], { signal })).get(topic)!;
      this.#partitions.set(topic, partitions);
    }
    const keyBytes = key === null || key === undefined ? null : encoder.encode(textOf(key));
    const partition = keyBytes === null ? this.#turn++ % partitions : partitionOfKey(keyBytes, partitions);
    const records = new RecordBatchBuilder();
    records.append(keyBytes, encoder.encode(stringifyJson(value ?? null)), clock.now(), headers);
    await this.#producer.send([{ topic, partition, records }], { signal });
  }

  #connected(topic: string): Promise<KafkaClient> {
    const { kafka, client: factory, clock = systemClock, logger = silentLogger } = this.#options;
    if (kafka === undefined) {
      return Promise.reject(
        new PermanentError(`emit: no Kafka is known here to write to the topic "${topic}"`),
      );
    }
    return this.#client ??= (async () => {
      const connect = factory ?? (await import("../kafka/kafkajs/mod.ts")).kafkaClient;
      return connect(kafka, { clock, logger });
    })();
  }

  /** Closes what was opened. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#producer?.close();
    await (await this.#client)?.close();
  }
}

/** A text is itself, anything else its JSON. */
function textOf(key: unknown): string {
  return typeof key === "string" ? key : stringifyJson(key);
}
