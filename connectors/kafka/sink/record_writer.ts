/**
 * Takes batches apart for the lanes: what both sinks do with a write.
 *
 * W1 A record that cannot be written goes to the failure policy with its place; the others are written.
 * W2 A write that failed may be made again with the same batch: no record is added, or rejected, twice.
 * W3 A write waits while too much is under way, until the run gives up.
 * W4 Records without a key go on with another partition when a batch of them has come together, be it sent or not: while nothing is
 *    acknowledged, all partitions fill alike.
 *
 * @module
 */
import { abortable } from "../../../lib/abortable.ts";
import type { SinkContext } from "../../../lib/connector.ts";
import { asError } from "../../../lib/errors.ts";
import type { Batch } from "../../../lib/record.ts";
import { KafkaError } from "../errors.ts";
import type { Chunk, Lanes } from "./lanes.ts";
import { type Outgoing, RecordEncoder } from "./record_encoder.ts";
import type { RecordSettings } from "./settings.ts";
import type { KnownTopic, Topics } from "./topics.ts";

/** Bytes to have room for before a record is encoded. */
const SOME_RECORD = 256;

/** Where records without a key go at the moment. */
interface Sticky {
  readonly topic: string;
  readonly partition: number;
  readonly known: KnownTopic;
  /** Records that went there. */
  records: number;
  /** Bytes of their values. */
  bytes: number;
}

/** Puts the records of batches into lanes. */
export class RecordWriter {
  readonly encoder: RecordEncoder;
  readonly #settings: RecordSettings;
  readonly #context: SinkContext;
  readonly #topics: Topics;
  /** How much of a batch is done. */
  #begun: { readonly batch: Batch; next: number } | undefined;
  /** Where the last record without a key went. */
  #sticky: Sticky | undefined;

  constructor(settings: RecordSettings, context: SinkContext, topics: Topics) {
    this.encoder = new RecordEncoder(settings, context.clock);
    this.#settings = settings;
    this.#context = context;
    this.#topics = topics;
  }

  /**
   * Adds the records of a batch.
   *
   * @param lanes Where to put them; asked for before the first that is encoded.
   */
  async write(batch: Batch, lanes: () => Lanes | Promise<Lanes>): Promise<void> {
    if (this.#begun?.batch !== batch) this.#begun = { batch, next: 0 };
    const begun = this.#begun;
    await this.#topics.refreshed();
    this.encoder.lookAtClock();
    let into: Lanes | undefined;
    while (begun.next < batch.length) {
      const index = begun.next, topic = this.#topic(batch, index);
      if (topic === undefined) continue;
      const known = this.#topics.get(topic) ?? await this.#topics.find(topic);
      if (known instanceof KafkaError) {
        if (typeof this.#settings.topic === "string") throw known; // no fault of the record
        this.#reject(batch, index, known);
        continue;
      }
      into ??= await lanes();
      if (!into.hasRoom(SOME_RECORD)) await this.#room(into);
      this.#add(batch, index, topic, known, into);
    }
    this.#begun = undefined;
  }

  /** A chunk is being sent: records without a key go on with another partition. */
  taken({ topic, partition }: Chunk): void {
    const sticky = this.#sticky;
    if (sticky?.topic === topic && sticky.partition === partition) this.#goOn(sticky);
  }

  #goOn({ known }: Sticky): void {
    known.partitioner.nextBatch();
    this.#sticky = undefined;
  }

  /** A record without a key is to be added. */
  #stick({ topic, partition }: Outgoing, known: KnownTopic): void {
    const sticky = this.#sticky;
    if (sticky?.topic === topic && sticky.partition === partition) return;
    this.#sticky = { topic, partition, known, records: 0, bytes: 0 };
  }

  /** W4. It was added. */
  #count({ topic, partition, value }: Outgoing): void {
    const sticky = this.#sticky, { batchSize, batchBytes } = this.#settings;
    if (sticky?.topic !== topic || sticky.partition !== partition) return; // it went at once
    sticky.records++;
    sticky.bytes += value?.length ?? 0;
    if (sticky.records >= batchSize || sticky.bytes >= batchBytes) this.#goOn(sticky);
  }

  #topic(batch: Batch, index: number): string | undefined {
    try {
      return this.encoder.topic(batch, index);
    } catch (error) {
      this.#reject(batch, index, asError(error));
      return undefined;
    }
  }

  #add(batch: Batch, index: number, topic: string, known: KnownTopic, lanes: Lanes): void {
    try {
      const record = this.encoder.encode(batch, index, topic, known);
      const goesAround = record.key === null && this.#settings.partition === undefined;
      if (goesAround) this.#stick(record, known);
      lanes.add(record, known.maxBatchBytes, batch, index);
      this.#begun!.next++;
      if (goesAround) this.#count(record);
    } catch (error) {
      this.#reject(batch, index, asError(error));
    }
  }

  #reject(batch: Batch, index: number, error: Error): void {
    this.#context.reject(batch, index, error);
    this.#begun!.next++;
  }

  async #room(lanes: Lanes): Promise<void> {
    while (!lanes.hasRoom(SOME_RECORD)) {
      if (lanes.failure !== undefined) throw lanes.failure.error;
      await abortable(lanes.change(), this.#context.signal);
    }
    this.encoder.lookAtClock();
  }
}
