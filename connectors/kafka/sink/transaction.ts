/**
 * One transaction: the records between two barriers.
 *
 * T1 It begins with its first record. What is sent in one turn goes together.
 * T2 It is prepared when every record and its marker are acknowledged; nothing is added afterwards.
 * T3 After any failure nothing of it may be committed.
 *
 * @module
 */
import type { Clock } from "../../../lib/clock.ts";
import { MailerError } from "../../../lib/errors.ts";
import type { KafkaTransactionalProducer, OutgoingBatch, WrittenBatch } from "../client.ts";
import { RecordBatchBuilder } from "../protocol/record_batch_builder.ts";
import { sendAcknowledged } from "./acknowledged.ts";
import type { PreparedTransaction } from "./committable.ts";
import { type Chunk, Lanes } from "./lanes.ts";
import { type Marker, MARKER_PARTITION, markerValue } from "./markers.ts";
import type { RecordSettings } from "./settings.ts";

/** One transaction of one producer. */
export class Transaction {
  readonly producer: KafkaTransactionalProducer;
  readonly lanes: Lanes;
  /** When the first of it was sent, by the monotonic clock. */
  since: number | undefined;
  readonly #clock: Clock;
  readonly #over = new AbortController();
  #together: { readonly chunks: Chunk[]; readonly sent: Promise<void> } | undefined;

  /** @param taken Called for a chunk that is about to be sent. */
  constructor(
    producer: KafkaTransactionalProducer,
    settings: RecordSettings,
    clock: Clock,
    taken: (chunk: Chunk) => void,
  ) {
    this.producer = producer;
    this.#clock = clock;
    this.lanes = new Lanes(settings, clock, { send: (chunk) => this.#send(chunk), taken });
  }

  /**
   * T2.
   *
   * @param topic Where markers lie. @param from No marker of this run lies in front of this offset.
   */
  async prepare(marker: Marker, topic: string, from: number): Promise<PreparedTransaction> {
    await this.lanes.drain();
    const records = new RecordBatchBuilder(256);
    records.append(marker.transactionalId, markerValue(marker), this.#clock.now());
    const [written] = await sendAcknowledged(this.producer, [{
      topic,
      partition: MARKER_PARTITION,
      records,
    }]);
    const { baseOffset } = written!;
    this.lanes.close();
    return {
      checkpoint: marker.checkpoint,
      producer: this.producer.transactionalId,
      marker: { topic, partition: MARKER_PARTITION, offset: baseOffset < 0 ? null : baseOffset, from },
    };
  }

  /** Whether nothing was added. */
  get isEmpty(): boolean {
    return this.lanes.added === 0;
  }

  /** For how long it has been open, ms. */
  get age(): number {
    return this.since === undefined ? 0 : this.#clock.monotonic() - this.since;
  }

  /** Takes all of it back; does not wait for answers to what was sent. */
  async abort(): Promise<void> {
    this.lanes.close();
    this.#over.abort(new MailerError("aborted", "the transaction was given up"));
    await this.producer.abort();
  }

  /** Sends a chunk with all others of this turn. */
  async #send(chunk: Chunk): Promise<readonly Chunk[]> {
    this.since ??= this.#clock.monotonic();
    if (this.#together === undefined) {
      const chunks: Chunk[] = [];
      this.#together = { chunks, sent: Promise.resolve().then(() => this.#sendAll(chunks)) };
    }
    const { chunks, sent } = this.#together;
    chunks.push(chunk);
    await sent;
    return [];
  }

  async #sendAll(chunks: readonly Chunk[]): Promise<void> {
    this.#together = undefined;
    await this.#acknowledged(chunks);
  }

  #acknowledged(batches: readonly OutgoingBatch[]): Promise<readonly WrittenBatch[]> {
    return sendAcknowledged(this.producer, batches, { signal: this.#over.signal });
  }
}
