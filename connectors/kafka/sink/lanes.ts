/**
 * Records on their way to partitions: a lane for each, chunks in it.
 *
 * L1 One chunk of a lane is under way at a time, so whatever is tried again keeps the order.
 * L2 A chunk goes when it is full, when its oldest record has waited long enough, or when everything is to go. Chunks grow while
 *    one in front is under way.
 * L3 A chunk that failed stays at the head of its lane, and nothing of that lane passes it.
 * L4 What is buffered is bounded: whoever adds records asks for room first.
 *
 * @module
 */
import type { Alarm, Clock } from "../../../lib/clock.ts";
import type { Batch } from "../../../lib/record.ts";
import { KafkaError } from "../errors.ts";
import { BATCH_HEADER_BYTES, RecordBatchBuilder } from "../protocol/record_batch_builder.ts";
import type { Outgoing } from "./record_encoder.ts";
import type { RecordSettings } from "./settings.ts";

/** Records of one partition that go together, and which records they were. */
export class Chunk {
  readonly topic: string;
  readonly partition: number;
  readonly records: RecordBatchBuilder;
  /** For each record its batch, and its index there. */
  readonly batches: Batch[] = [];
  readonly indexes: number[] = [];
  /** It goes as soon as it can. */
  isDue = false;
  /** Nothing is added any more. */
  isSealed = false;

  constructor(topic: string, partition: number, capacity?: number) {
    this.topic = topic;
    this.partition = partition;
    this.records = new RecordBatchBuilder(capacity);
  }

  /** Adds a record. */
  add(
    { key, value, timestamp, headers }: Omit<Outgoing, "topic" | "partition">,
    batch: Batch,
    index: number,
  ): void {
    this.records.append(key, value, timestamp, headers);
    this.batches.push(batch);
    this.indexes.push(index);
  }
}

class Lane {
  readonly chunks: Chunk[] = [];
  isBusy = false;
  failed: { readonly error: unknown } | undefined;
}

/** What carries chunks. */
export interface Carrier {
  /** Resolves when the records are acknowledged, with what is to go in the place of those that are not. */
  send(chunk: Chunk): Promise<readonly Chunk[]>;
  /** A chunk is being taken; records without a key may go on elsewhere. */
  taken(chunk: Chunk): void;
}

type LaneSettings = Pick<
  RecordSettings,
  "batchSize" | "batchBytes" | "batchTimeoutMs" | "bufferBytes" | "codec"
>;

/** Bytes a chunk begins with. */
const LEAST_CAPACITY = 4096, MOST_CAPACITY = 65_536;

/** All lanes of one producer. */
export class Lanes {
  readonly #settings: LaneSettings;
  readonly #clock: Clock;
  readonly #carrier: Carrier;
  readonly #lanes = new Map<string, (Lane | undefined)[]>();
  /** Records that were added. */
  added = 0;
  #buffered = 0;
  #failure: { readonly error: unknown } | undefined;
  #alarm: Alarm | undefined;
  #changed = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(settings: LaneSettings, clock: Clock, carrier: Carrier) {
    this.#settings = settings;
    this.#clock = clock;
    this.#carrier = carrier;
  }

  /** The first failure since the last {@link Lanes.resume}. */
  get failure(): { readonly error: unknown } | undefined {
    return this.#failure;
  }

  /**
   * Adds a record.
   *
   * @param largest The most bytes of a batch, as it is sent, that the topic takes; undefined: not known.
   * @throws {KafkaError} `kafka_record_too_large`, `kafka_invalid_record`: it was not added.
   */
  add(record: Outgoing, largest: number | undefined, batch: Batch, index: number): void {
    const lane = this.#lane(record.topic, record.partition), last = lane.chunks.at(-1);
    const most = RecordBatchBuilder.mostBytes(record.key, record.value, record.headers);
    const limit = Math.min(this.#settings.batchBytes, largest ?? Infinity);
    if (last !== undefined && !last.isSealed && last.records.size + most <= limit) {
      const before = last.records.size;
      last.add(record, batch, index);
      this.added++;
      this.#buffered += last.records.size - before;
      return this.#pump(lane);
    }
    const capacity = Math.min(Math.max(most + BATCH_HEADER_BYTES, LEAST_CAPACITY), MOST_CAPACITY);
    const chunk = new Chunk(record.topic, record.partition, capacity);
    chunk.add(record, batch, index);
    const { size } = chunk.records; // what compression would make of it, only the broker says
    if (size > (largest ?? Infinity) && this.#settings.codec === "none") {
      throw tooLarge(record, size, largest!);
    }
    if (last !== undefined) last.isSealed = true;
    lane.chunks.push(chunk);
    this.added++;
    this.#buffered += size;
    this.#wait();
    this.#pump(lane);
  }

  /** Whether a record of about so many bytes may be added now. */
  hasRoom(bytes: number): boolean {
    return this.#buffered === 0 || this.#buffered + bytes <= this.#settings.bufferBytes;
  }

  /** Resolves when something has been acknowledged or has failed. What waits goes meanwhile. */
  async change(): Promise<void> {
    this.#push();
    await this.#changed.promise;
  }

  /** Sends everything; rejects with what fails. */
  async drain(): Promise<void> {
    while (this.#buffered > 0) {
      if (this.#failure !== undefined) throw this.#failure.error;
      await this.change();
    }
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Tries again what has failed. */
  resume(): void {
    this.#failure = undefined;
    for (const lane of this.#all()) {
      lane.failed = undefined;
      this.#pump(lane);
    }
  }

  /** Sends nothing more. */
  close(): void {
    this.#isClosed = true;
    this.#alarm?.cancel();
    this.#alarm = undefined;
  }

  #push(): void {
    for (const lane of this.#all()) {
      for (const chunk of lane.chunks) chunk.isDue = true;
      this.#pump(lane);
    }
  }

  *#all(): Iterable<Lane> {
    for (const lanes of this.#lanes.values()) for (const lane of lanes) if (lane !== undefined) yield lane;
  }

  #lane(topic: string, partition: number): Lane {
    let lanes = this.#lanes.get(topic);
    if (lanes === undefined) this.#lanes.set(topic, lanes = []);
    return lanes[partition] ??= new Lane();
  }

  /** L1, L2. */
  #pump(lane: Lane): void {
    const chunk = lane.chunks[0];
    if (chunk === undefined || lane.isBusy || lane.failed !== undefined || this.#isClosed) return;
    const { batchSize, batchBytes } = this.#settings, { records } = chunk;
    const isFull = chunk.isSealed || records.count >= batchSize || records.size >= batchBytes;
    if (!isFull && !chunk.isDue) return;
    lane.isBusy = true;
    chunk.isSealed = true;
    this.#carrier.taken(chunk);
    this.#carrier.send(chunk).then(
      (instead) => {
        lane.chunks.splice(0, 1, ...instead);
        this.#buffered -= records.size;
        for (const part of instead) {
          part.isSealed = true;
          this.#buffered += part.records.size;
        }
      },
      (error) => {
        lane.failed = { error };
        this.#failure ??= lane.failed;
      },
    ).then(() => {
      lane.isBusy = false;
      const changed = this.#changed;
      this.#changed = Promise.withResolvers();
      this.#pump(lane);
      changed.resolve();
    });
  }

  /** One alarm for all: no chunk waits longer than the timeout, except for one in front of it. */
  #wait(): void {
    this.#alarm ??= this.#clock.schedule(this.#settings.batchTimeoutMs, () => {
      this.#alarm = undefined;
      this.#push();
    });
  }
}

function tooLarge({ topic, partition }: Outgoing, bytes: number, largest: number): KafkaError {
  return new KafkaError(
    "kafka_record_too_large",
    `a record for ${topic}/${partition} takes ${bytes} bytes, and the topic takes ${largest}`,
    { hint: "raise max.message.bytes of the topic, or make records smaller" },
  );
}
