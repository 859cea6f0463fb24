/**
 * Producers of the cluster in memory.
 *
 * @module
 */
import type {
  CallOptions,
  GroupMembership,
  KafkaProducer,
  KafkaTransactionalProducer,
  OutgoingBatch,
  PartitionOffset,
  ProducerOptions,
  TransactionalProducerOptions,
  WrittenBatch,
} from "../client.ts";
import { FencedError, GenerationLostError, KafkaError, UnknownOutcomeError } from "../errors.ts";
import { PLAIN_STAMP } from "../protocol/record_batch_builder.ts";
import { decodeRecordSet } from "../protocol/record_set.ts";
import type { KafkaRecord } from "../protocol/types.ts";
import { type FakeKafka, type FakeTransaction, type FakeTransactionalId, nameOf } from "./fake_kafka.ts";

function closed(): KafkaError {
  return new KafkaError("kafka_closed", "the producer has been closed");
}

function recordsOf({ records }: OutgoingBatch): KafkaRecord[] {
  const { records: runs } = decodeRecordSet(records.encode(PLAIN_STAMP).slice(), {
    fetchOffset: 0,
    aborted: undefined,
  });
  return runs.flatMap((run) => Array.from({ length: run.length }, (_, i) => run.record(i)));
}

function write(
  kafka: FakeKafka,
  batches: readonly OutgoingBatch[],
  transaction?: () => FakeTransaction,
): WrittenBatch[] {
  for (const batch of batches) {
    kafka.partition(batch); // it is there
    const largest = Number(kafka.topic(batch.topic).config.get("max.message.bytes") ?? Infinity);
    if (batch.records.size > largest) {
      throw new KafkaError(
        "kafka_record_too_large",
        `a batch for ${nameOf(batch)} has ${batch.records.size} bytes`,
      );
    }
  }
  return batches.map((batch) => ({
    topic: batch.topic,
    partition: batch.partition,
    baseOffset: kafka.append(batch, recordsOf(batch), transaction?.()),
    count: batch.records.count,
  }));
}

/** Sends outside of transactions. */
export class FakeProducer implements KafkaProducer {
  readonly #kafka: FakeKafka;
  readonly #options: ProducerOptions;
  readonly #closed = new AbortController();

  constructor(kafka: FakeKafka, options: ProducerOptions) {
    this.#kafka = kafka;
    this.#options = options;
  }

  async send(batches: readonly OutgoingBatch[], options: CallOptions = {}): Promise<readonly WrittenBatch[]> {
    this.#closed.signal.throwIfAborted();
    const signal = options.signal === undefined
      ? this.#closed.signal
      : AbortSignal.any([options.signal, this.#closed.signal]);
    const written = await this.#kafka.call(
      "send",
      batches.map(nameOf).join(" "),
      signal,
      () => write(this.#kafka, batches),
    );
    return this.#options.acks === "none" ? written.map((batch) => ({ ...batch, baseOffset: -1 })) : written;
  }

  close(): Promise<void> {
    this.#closed.abort(closed());
    return Promise.resolve();
  }
}

/** One transaction after the other. */
export class FakeTransactionalProducer implements KafkaTransactionalProducer {
  readonly transactionalId: string;
  readonly producerId: number;
  readonly epoch: number;
  readonly #kafka: FakeKafka;
  readonly #id: FakeTransactionalId;
  readonly #closed = new AbortController();
  #transaction: FakeTransaction | undefined;
  #hasFailed = false;
  #dead: Error | undefined;
  /** Sends under way. */
  readonly #sends = new Set<Promise<unknown>>();

  constructor(kafka: FakeKafka, { transactionalId, transactionTimeoutMs }: TransactionalProducerOptions) {
    this.#kafka = kafka;
    this.transactionalId = transactionalId;
    this.#id = kafka.initTransactions(transactionalId, transactionTimeoutMs);
    this.producerId = this.#id.producerId;
    this.epoch = this.#id.epoch;
  }

  get open(): boolean {
    return this.#transaction !== undefined;
  }

  async send(batches: readonly OutgoingBatch[], options: CallOptions = {}): Promise<readonly WrittenBatch[]> {
    const what = `${this.transactionalId} ${batches.map(nameOf).join(" ")}`;
    return await this.#add("send", what, options, () => write(this.#kafka, batches, () => this.#begun()));
  }

  async sendOffsets(
    group: string,
    offsets: readonly PartitionOffset[],
    member?: GroupMembership,
    options: CallOptions = {},
  ): Promise<void> {
    await this.#add("sendOffsets", `${this.transactionalId} ${group}`, options, () => {
      const coordinator = this.#kafka.group(group);
      const isMember = member === undefined ||
        member.generation === coordinator.generation && coordinator.memberIds.includes(member.memberId);
      if (!isMember) throw new GenerationLostError(group);
      const all = this.#begun().offsets;
      all.set(group, [...all.get(group) ?? [], ...offsets]);
    });
  }

  async commit(): Promise<void> {
    this.#throwIfDead();
    if (this.#hasFailed) {
      throw new KafkaError(
        "kafka_transaction_failed",
        `transactional id "${this.transactionalId}": a call failed, abort`,
      );
    }
    await this.#end("commit");
  }

  async abort(): Promise<void> {
    this.#throwIfDead();
    await Promise.allSettled(this.#sends);
    await this.#end("abort");
    this.#hasFailed = false;
  }

  close(): Promise<void> {
    this.#closed.abort(closed());
    return Promise.resolve();
  }

  #begun(): FakeTransaction {
    this.#throwIfFenced("adding to a transaction");
    return this.#transaction ??= this.#kafka.begin(this.transactionalId);
  }

  async #add<R>(
    call: "send" | "sendOffsets",
    what: string,
    { signal }: CallOptions,
    work: () => R,
  ): Promise<R> {
    this.#throwIfDead();
    if (this.#hasFailed) {
      throw new KafkaError(
        "kafka_transaction_failed",
        `transactional id "${this.transactionalId}": a call failed, abort`,
      );
    }
    const either = signal === undefined
      ? this.#closed.signal
      : AbortSignal.any([signal, this.#closed.signal]);
    const sending = this.#kafka.call(call, what, either, () => {
      this.#throwIfFenced("adding to a transaction");
      return work();
    });
    this.#sends.add(sending);
    try {
      return await sending;
    } catch (error) {
      this.#hasFailed = true;
      throw this.#noted(error);
    } finally {
      this.#sends.delete(sending);
    }
  }

  async #end(how: "commit" | "abort"): Promise<void> {
    const transaction = this.#transaction;
    if (transaction === undefined) return;
    try {
      await this.#kafka.call(how, this.transactionalId, this.#closed.signal, () => {
        this.#throwIfFenced(how === "commit" ? "committing" : "aborting");
        this.#kafka.end(transaction, how);
      });
      this.#transaction = undefined;
    } catch (error) {
      this.#hasFailed = true;
      throw this.#noted(error);
    }
  }

  /** After some errors there is no way on. */
  #noted(error: unknown): unknown {
    if (error instanceof FencedError || error instanceof UnknownOutcomeError) this.#dead = error;
    return error;
  }

  #throwIfDead(): void {
    if (this.#dead !== undefined) throw this.#dead;
    this.#closed.signal.throwIfAborted();
  }

  #throwIfFenced(doing: string): void {
    if (this.#id.epoch !== this.epoch) throw new FencedError(this.transactionalId, doing);
  }
}
