/**
 * Takes batches apart for the lanes: what both sinks do with a write.
 *
 * W1 A record that cannot be written goes to the failure policy with its place; the others are written.
 * W2 A write that failed may be made again with the same batch: no record is added, or rejected, twice.
 * W3 A write waits while too much is under way, until the run gives up.
 *
 * @module
 */
import { abortable } from "../../../lib/abortable.ts";
import type { SinkContext } from "../../../lib/connector.ts";
import { asError } from "../../../lib/errors.ts";
import type { Batch } from "../../../lib/record.ts";
import { KafkaError } from "../errors.ts";
import type { Chunk, Lanes } from "./lanes.ts";
import { RecordEncoder } from "./record_encoder.ts";
import type { RecordSettings } from "./settings.ts";
import type { KnownTopic, Topics } from "./topics.ts";

/** Bytes to have room for before a record is encoded. */
const SOME_RECORD = 256;

/** Puts the records of batches into lanes. */
export class RecordWriter {
  readonly encoder: RecordEncoder;
  readonly #settings: RecordSettings;
  readonly #context: SinkContext;
  readonly #topics: Topics;
  /** How much of a batch is done. */
  #begun: { readonly batch: Batch; next: number } | undefined;
  /** Where the last record without a key went. */
  #sticky: { readonly topic: string; readonly partition: number; readonly known: KnownTopic } | undefined;

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
    if (sticky?.topic !== topic || sticky.partition !== partition) return;
    sticky.known.partitioner.nextBatch();
    this.#sticky = undefined;
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
      if (record.key === null && this.#settings.partition === undefined) {
        this.#sticky = { topic, partition: record.partition, known };
      }
      lanes.add(record, known.maxBatchBytes, batch, index);
      this.#begun!.next++;
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
  }
}
