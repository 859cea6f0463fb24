/**
 * Writer of the Kafka sink that commits with checkpoints.
 *
 * X1 All records between two barriers are in one transaction, which begins with the first of them: without records there is none.
 * X2 A transaction is prepared with its marker, see `markers.ts`, and committed when the checkpoint is durable. What is written in
 *    between goes into a transaction of another producer.
 * X3 Transactions are committed in the order in which they were prepared. One whose checkpoint failed goes with the next.
 * X4 What became of a commit without an answer is found out, not guessed: the producer is fenced, then its marker is looked for.
 * X5 After any failure nothing more is written or committed by this writer. Its transactions are aborted when it is closed.
 *
 * @module
 */
import { abortable } from "../../../lib/abortable.ts";
import { delay } from "../../../lib/clock.ts";
import type { Committable, SinkContext, SinkWriter } from "../../../lib/connector.ts";
import { asError, MailerError } from "../../../lib/errors.ts";
import type { Batch } from "../../../lib/record.ts";
import type { KafkaClient } from "../client.ts";
import { FencedError, KafkaError } from "../errors.ts";
import { type KafkaCommittable, kafkaCommittable, type PreparedTransaction } from "./committable.ts";
import type { Lanes } from "./lanes.ts";
import { countCommitted, ensureMarkerTopic, MARKER_PARTITION, warnOfVisible } from "./markers.ts";
import { Producers } from "./producers.ts";
import { RecordWriter } from "./record_writer.ts";
import { connect } from "./settings.ts";
import { Topics } from "./topics.ts";
import { Transaction } from "./transaction.ts";
import { type TransactionalSettings, transactionTimeout } from "./transactional_settings.ts";

/** How long to look for a marker, ms. */
export const PROBE_TIMEOUT_MS = 60_000;
/** How long to try to abort what is open when the writer is closed, ms. */
const ABORT_TIMEOUT_MS = 5000;

/** Opens a writer. Producers of earlier runs are fenced, what they left open is aborted. */
export async function openTransactionalWriter(
  settings: TransactionalSettings,
  context: SinkContext,
): Promise<SinkWriter<unknown>> {
  const { clock, logger, signal } = context, { markerTopic, topic } = settings;
  const client = await connect(settings, context);
  try {
    return await abortable(open(), signal);
  } catch (error) {
    await client.close();
    throw error;
  }

  async function open(): Promise<SinkWriter<unknown>> {
    const timeoutMs = await transactionTimeout(client, settings, context.checkpoints!.interval, context);
    const topics = new Topics(client, { clock, logger, signal });
    if (typeof topic === "string") {
      const known = await topics.find(topic);
      if (known instanceof KafkaError) throw known;
    }
    const producers = await Producers.start(client, { ...settings, transactionTimeoutMs: timeoutMs }, signal);
    await ensureMarkerTopic(client, markerTopic, context);
    const end = { topic: markerTopic, partition: MARKER_PARTITION, at: "end" } as const;
    const markersFrom = (await client.listOffsets([end], { signal }))[0]!;
    const restored = restoredOf(settings, context);
    const markers = { topic: markerTopic, from: restored?.markersTo };
    await warnOfVisible(client, settings.transactionalId, markers, context);
    return new TransactionalWriter(settings, context, {
      client,
      topics,
      producers,
      timeoutMs,
      markersFrom,
    });
  }
}

function restoredOf(
  { transactionalId }: TransactionalSettings,
  { checkpoints }: SinkContext,
): KafkaCommittable | undefined {
  const restored = checkpoints?.restored;
  return restored === undefined ? undefined : kafkaCommittable(transactionalId, restored);
}

/** What a writer works with. */
interface Parts {
  readonly client: KafkaClient;
  readonly topics: Topics;
  readonly producers: Producers;
  /** After how long the broker gives up a transaction, ms. */
  readonly timeoutMs: number;
  /** No marker of this run lies in front of it. */
  readonly markersFrom: number;
}

/** A transaction that waits for its commit. */
interface Prepared {
  readonly transaction: Transaction;
  readonly entry: PreparedTransaction;
}

class TransactionalWriter implements SinkWriter<unknown> {
  readonly #settings: TransactionalSettings;
  readonly #context: SinkContext;
  readonly #parts: Parts;
  readonly #run: string;
  readonly #records: RecordWriter;
  /** What is being written. */
  #current: Transaction | undefined;
  /** The oldest first. */
  readonly #prepared: Prepared[] = [];
  /** Behind the last marker. */
  #markersTo: number;
  /** The last checkpoint that is committed. */
  #committed: number | undefined;
  #failed: { readonly error: unknown } | undefined;

  constructor(settings: TransactionalSettings, context: SinkContext, parts: Parts) {
    this.#settings = settings;
    this.#context = context;
    this.#parts = parts;
    this.#run = parts.producers.run;
    this.#records = new RecordWriter(settings, context, parts.topics);
    this.#markersTo = parts.markersFrom;
    this.#committed = restoredOf(settings, context)?.checkpoint;
  }

  write(batch: Batch): Promise<void> {
    return this.#call("writing", () => this.#records.write(batch, () => this.#lanes()));
  }

  flush(): Promise<void> {
    return this.#call("writing", async () => await this.#current?.lanes.drain());
  }

  prepare(checkpoint: number): Promise<Committable> {
    return this.#call(`preparing checkpoint ${checkpoint}`, () => this.#prepare(checkpoint));
  }

  commit(committable: Committable): Promise<void> {
    const what = kafkaCommittable(this.#settings.transactionalId, committable);
    return this.#call(`committing checkpoint ${what.checkpoint}`, () => this.#commit(what));
  }

  async close(): Promise<void> {
    const { client, producers } = this.#parts;
    const open = this.#prepared.map(({ transaction }) => transaction);
    if (this.#current !== undefined) open.push(this.#current);
    await Promise.all(open.map((transaction) => this.#abort(transaction)));
    await producers.close();
    await client.close();
  }

  /** X5. */
  async #call<R>(doing: string, work: () => Promise<R>): Promise<R> {
    if (this.#failed !== undefined) throw this.#failed.error;
    try {
      return await abortable(work(), this.#context.signal);
    } catch (error) {
      this.#failed ??= { error };
      if (error instanceof FencedError) this.#reportFenced(error, doing);
      throw error;
    }
  }

  /** X1, X2. */
  async #lanes(): Promise<Lanes> {
    this.#current ??= new Transaction(
      await this.#parts.producers.take(),
      this.#settings,
      this.#context.clock,
      (chunk) => this.#records.taken(chunk),
    );
    const { lanes } = this.#current;
    if (lanes.failure !== undefined) throw lanes.failure.error;
    return lanes;
  }

  async #prepare(checkpoint: number): Promise<KafkaCommittable> {
    const { transactionalId, markerTopic } = this.#settings, run = this.#run, transaction = this.#current;
    if (transaction !== undefined && !transaction.isEmpty) {
      this.#warnOfAge(transaction);
      const marker = { transactionalId, run, checkpoint };
      const entry = await transaction.prepare(marker, markerTopic, this.#parts.markersFrom);
      this.#prepared.push({ transaction, entry });
      if (entry.marker.offset !== null) this.#markersTo = entry.marker.offset + 1;
      this.#current = undefined;
    }
    const transactions = this.#prepared.map(({ entry }) => entry);
    return { transactionalId, run, checkpoint, transactions, markersTo: this.#markersTo };
  }

  /** X3. */
  async #commit({ run, checkpoint }: KafkaCommittable): Promise<void> {
    if (run !== this.#run) {
      throw new MailerError(
        "output_changed",
        `checkpoint ${checkpoint} was prepared by another run (${run})`,
      );
    }
    for (let oldest = this.#prepared[0]; oldest !== undefined; oldest = this.#prepared[0]) {
      if (oldest.entry.checkpoint > checkpoint) break;
      await this.#commitOne(oldest);
      this.#prepared.shift();
    }
    this.#committed = checkpoint;
  }

  async #commitOne({ transaction: { producer }, entry }: Prepared): Promise<void> {
    const { producers } = this.#parts;
    try {
      await producer.commit();
    } catch (error) {
      if (error instanceof FencedError || isAborted(error)) throw error;
      return await this.#settle(producer, entry, error);
    }
    producers.release(producer);
  }

  /** X4. */
  async #settle(
    producer: Transaction["producer"],
    entry: PreparedTransaction,
    cause: unknown,
  ): Promise<void> {
    const { clock, logger, signal } = this.#context, { transactionalId } = this.#settings;
    const { checkpoint } = entry, fields = { transactionalId: producer.transactionalId, checkpoint };
    logger.log("warn", "no answer to a commit: looking for its marker", {
      ...fields,
      error: asError(cause).message,
    });
    await this.#parts.producers.replace(producer);
    const probe = { clock, signal, timeoutMs: PROBE_TIMEOUT_MS };
    const of = { transactionalId, run: this.#run };
    if (await countCommitted(this.#parts.client, of, [entry], probe) === 1) {
      return logger.log("info", "its marker is there: committed", fields);
    }
    throw new MailerError(
      "transaction_lost",
      `transactional id "${producer.transactionalId}": the transaction of checkpoint ${checkpoint} was aborted`,
      { cause, hint: "start again: the records since the checkpoint before are read and written again" },
    );
  }

  #warnOfAge(transaction: Transaction): void {
    const { timeoutMs } = this.#parts, { age } = transaction;
    if (age * 2 < timeoutMs) return;
    this.#context.logger.log("warn", "a transaction has used more than half of its timeout", {
      sink: this.#context.id,
      ageMs: Math.round(age),
      timeoutMs,
      hint: "take checkpoints more often, or raise transactionTimeout",
    });
  }

  /** Fenced by another, or given up by the broker: both look the same, so what is known is said. */
  #reportFenced({ transactionalId }: FencedError, doing: string): void {
    const { timeoutMs } = this.#parts;
    const open = [...this.#prepared.map(({ transaction }) => transaction), this.#current];
    const oldest = open.find((transaction) => transaction?.producer.transactionalId === transactionalId);
    const ageMs = Math.round(oldest?.age ?? 0);
    this.#context.logger.log("error", "the broker takes nothing more of this transaction", {
      sink: this.#context.id,
      transactionalId,
      while: doing,
      ageMs,
      timeoutMs,
      likely: ageMs >= timeoutMs
        ? "it took longer than its timeout: raise transactionTimeout, or take checkpoints more often"
        : "another instance has started with this id",
      lost: `what was written since ${
        this.#committed === undefined ? "the start" : `checkpoint ${this.#committed}`
      }: it has to be read again`,
    });
  }

  /** Takes back what is not committed, so that readers need not wait for its timeout. */
  async #abort(transaction: Transaction): Promise<void> {
    const { clock, logger, id } = this.#context;
    const over = new AbortController();
    try {
      const late = delay(clock, ABORT_TIMEOUT_MS, over.signal).then(() => {
        throw new MailerError("not_aborted", `no answer within ${ABORT_TIMEOUT_MS} ms`);
      });
      late.catch(() => {}); // it is not late
      await Promise.race([transaction.abort(), late]);
    } catch (error) {
      if (error instanceof FencedError) return; // whoever did it has aborted it
      logger.log("warn", "a transaction is left to its timeout", {
        sink: id,
        transactionalId: transaction.producer.transactionalId,
        error: asError(error).message,
      });
    } finally {
      over.abort();
    }
  }
}

/** Whether a commit failed before anything could be committed. */
function isAborted(error: unknown): boolean {
  return error instanceof KafkaError && error.code === "kafka_transaction_failed";
}
