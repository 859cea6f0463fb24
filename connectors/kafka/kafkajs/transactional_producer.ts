/**
 * A producer with a stable transactional id.
 *
 * T1 A partition counts as added when the coordinator has said so, and records are sent only then.
 * T2 After any failure nothing of the transaction can be committed: `commit` rejects until it was aborted.
 * T3 A commit resolves only when the coordinator has confirmed it. A lost answer is asked for again: the coordinator answers a
 *    repeated commit of the same epoch as the first. If it then says that somebody took over, which of the two came first is not
 *    known, and that is the error. If no request ever left, nothing was committed.
 * T4 Whoever was fenced never asks for a new epoch: after a failure the id is started again under its present epoch, which is
 *    refused where somebody else has a higher one.
 *
 * @module
 */
import { asError } from "../../../lib/errors.ts";
import type {
  CallOptions,
  GroupMembership,
  KafkaTransactionalProducer,
  OutgoingBatch,
  PartitionOffset,
  TopicPartition,
  TransactionalProducerOptions,
  WrittenBatch,
} from "../client.ts";
import { FencedError, GenerationLostError, KafkaError, UnknownOutcomeError } from "../errors.ts";
import { brokerError, errorOf } from "../protocol/error_codes.ts";
import type { Api } from "../protocol/requests/api.ts";
import {
  addOffsetsToTxn,
  addPartitionsToTxn,
  endTxn,
  type ErrorAnswer,
  initProducerId,
  type ProducerIdentity,
  txnOffsetCommit,
} from "../protocol/requests/transactions.ts";
import type { Cluster } from "./cluster.ts";
import { LinkError } from "./link.ts";
import { DEFAULT_DELIVERY_TIMEOUT_MS, DEFAULT_MAX_REQUEST_BYTES } from "./producer.ts";
import { type Identity, Sender } from "./sender.ts";

const DEFAULT_END_TIMEOUT_MS = 60_000;
const INVALID_TXN_STATE = 48;

/** Starts a producer: fences older ones with the same id. */
export async function startTransactionalProducer(
  cluster: Cluster,
  options: TransactionalProducerOptions,
  signal?: AbortSignal,
): Promise<TransactionalProducer> {
  if (options.transactionalId === "") {
    throw new KafkaError("kafka_invalid_setting", "the transactional id is empty", {
      hint: "give every sink its own",
    });
  }
  const identity = await initialise(cluster, options, { producerId: -1, epoch: -1 }, signal);
  return new TransactionalProducer(cluster, options, identity);
}

/** Asks for an epoch: returns when what was open under the id has been ended. */
export async function initialise(
  cluster: Cluster,
  { transactionalId, transactionTimeoutMs }: Pick<
    TransactionalProducerOptions,
    "transactionalId" | "transactionTimeoutMs"
  >,
  former: Identity,
  signal?: AbortSignal,
): Promise<Identity> {
  const question = { transactionalId, timeoutMs: transactionTimeoutMs, ...former };
  const doing = `starting transactional id "${transactionalId}" with a timeout of ${transactionTimeoutMs} ms`;
  return await cluster.retry({ until: cluster.within(DEFAULT_END_TIMEOUT_MS), signal }, async () => {
    const to = { of: "transaction", name: transactionalId } as const;
    const answer = await cluster.coordinated(to, initProducerId, question, cluster.usual(signal));
    if (answer.error !== 0) throw transactionError(answer.error, transactionalId, doing);
    return { producerId: answer.producerId, epoch: answer.epoch };
  });
}

function transactionError(error: number, transactionalId: string, doing: string): KafkaError {
  const { code, name } = brokerError(error);
  return code === "kafka_fenced"
    ? new FencedError(transactionalId, doing, { broker: name })
    : errorOf(error, doing);
}

/** One transaction after the other. */
export class TransactionalProducer implements KafkaTransactionalProducer {
  readonly transactionalId: string;
  readonly #cluster: Cluster;
  readonly #options: TransactionalProducerOptions;
  readonly #sender: Sender;
  readonly #closed = new AbortController();
  /** Calls that add to the transaction. */
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #partitions = new Set<string>();
  readonly #groups = new Set<string>();
  #identity: Identity;
  #adding: Promise<unknown> = Promise.resolve();
  #failure: KafkaError | undefined;
  #dead: KafkaError | undefined;
  /** Set from the moment the coordinator may know of the transaction. */
  #begun = false;

  /** To be made by {@link startTransactionalProducer}. */
  constructor(cluster: Cluster, options: TransactionalProducerOptions, identity: Identity) {
    this.transactionalId = options.transactionalId;
    this.#cluster = cluster;
    this.#options = options;
    this.#identity = identity;
    this.#sender = new Sender(cluster, {
      acks: "all",
      codec: options.codec ?? "none",
      deliveryTimeoutMs: options.deliveryTimeoutMs ?? DEFAULT_DELIVERY_TIMEOUT_MS,
      maxRequestBytes: options.maxRequestBytes ?? DEFAULT_MAX_REQUEST_BYTES,
      transactionalId: options.transactionalId,
      identify: () => Promise.resolve(this.#identity),
    });
  }

  get producerId(): number {
    return this.#identity.producerId;
  }

  get epoch(): number {
    return this.#identity.epoch;
  }

  get open(): boolean {
    return this.#begun;
  }

  // Adding

  send(batches: readonly OutgoingBatch[], options?: CallOptions): Promise<readonly WrittenBatch[]> {
    return this.#add("writing", async () => {
      await this.#addPartitions(batches, options?.signal);
      return await this.#sender.send(batches, options?.signal);
    });
  }

  sendOffsets(
    group: string,
    offsets: readonly PartitionOffset[],
    member?: GroupMembership,
    options?: CallOptions,
  ): Promise<void> {
    return this.#add(`committing offsets of group "${group}"`, async () => {
      if (offsets.length === 0) return;
      await this.#addGroup(group, options?.signal);
      await this.#commitOffsets(group, offsets, member, options?.signal);
    });
  }

  /** Whatever fails in `work` fails the transaction (T2). */
  async #add<T>(doing: string, work: () => Promise<T>): Promise<T> {
    this.#checkUsable();
    if (this.#failure !== undefined) throw this.#failedBefore();
    const pending = work();
    this.#underWay.add(pending);
    try {
      return await pending;
    } catch (thrown) {
      throw this.#fail(thrown, doing);
    } finally {
      this.#underWay.delete(pending);
    }
  }

  /** Remembers a failure, in the words of transactions. */
  #fail(thrown: unknown, doing: string): unknown {
    if (!(thrown instanceof KafkaError)) {
      this.#failure ??= new KafkaError("kafka_transaction_failed", asError(thrown).message, {
        cause: thrown,
      });
      return thrown;
    }
    if (thrown.code === "kafka_fenced") {
      const { broker } = thrown;
      this.#dead ??= thrown instanceof FencedError ? thrown : new FencedError(this.transactionalId, doing, {
        cause: thrown,
        ...(broker === undefined ? {} : { broker }),
      });
      return this.#dead;
    }
    this.#failure ??= thrown;
    return thrown;
  }

  /** T1; one after the other, so that two calls do not add the same partition twice. */
  async #addPartitions(
    partitions: readonly TopicPartition[],
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const key = ({ topic, partition }: TopicPartition) => `${topic}/${partition}`;
    if (partitions.every((partition) => this.#partitions.has(key(partition)))) return;
    await this.#inTurn(async () => {
      const added = [...new Map(partitions.map((partition) => [key(partition), partition]))]
        .filter(([name]) => !this.#partitions.has(name)).map(([, partition]) => partition);
      if (added.length === 0) return;
      const doing = `adding ${added.map(key).join(", ")} to the transaction of "${this.transactionalId}"`;
      await this.#retry(signal, async () => {
        const question = { ...this.#who(), partitions: added };
        const answer = await this.#cluster.coordinated(
          this.#coordinator,
          addPartitionsToTxn,
          question,
          this.#usual(signal),
        );
        this.#checkAll(added, answer.results, doing);
      });
      for (const partition of added) this.#partitions.add(key(partition));
    });
  }

  async #addGroup(group: string, signal: AbortSignal | undefined): Promise<void> {
    if (this.#groups.has(group)) return;
    await this.#inTurn(async () => {
      if (this.#groups.has(group)) return;
      const doing = `adding group "${group}" to the transaction of "${this.transactionalId}"`;
      await this.#retry(signal, () => this.#ask(addOffsetsToTxn, { ...this.#who(), group }, doing, signal));
      this.#groups.add(group);
    });
  }

  async #commitOffsets(
    group: string,
    offsets: readonly PartitionOffset[],
    member: GroupMembership | undefined,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const doing = `committing offsets of group "${group}" in the transaction of "${this.transactionalId}"`;
    const question = {
      ...this.#who(),
      group,
      generation: member?.generation ?? -1,
      memberId: member?.memberId ?? "",
      offsets,
    };
    await this.#retry(signal, async () => {
      const to = { of: "group", name: group } as const;
      const answer = await this.#cluster.coordinated(to, txnOffsetCommit, question, this.#usual(signal));
      try {
        this.#checkAll(offsets, answer.results, doing);
      } catch (error) {
        if (error instanceof KafkaError && error.retriable) this.#cluster.forgetCoordinator("group", group);
        if (error instanceof KafkaError && error.code === "kafka_generation_lost") {
          throw new GenerationLostError(group, { cause: error });
        }
        throw error;
      }
    });
  }

  /** One at a time. What an earlier one failed with is not this one's affair. */
  async #inTurn(work: () => Promise<void>): Promise<void> {
    const before = this.#adding;
    const pending = before.then(work, work);
    this.#adding = pending.catch(() => {});
    await pending;
  }

  #checkAll(
    asked: readonly TopicPartition[],
    results: readonly (TopicPartition & { readonly error: number })[],
    doing: string,
  ): void {
    for (const { topic, partition } of asked) {
      const result = results.find((entry) => entry.topic === topic && entry.partition === partition);
      if (result === undefined) {
        throw new KafkaError(
          "kafka_incomplete_answer",
          `the broker did not say what became of ${topic}/${partition} while ${doing}`,
          {
            retriable: true,
          },
        );
      }
      if (brokerError(result.error).moved) {
        this.#cluster.forgetCoordinator("transaction", this.transactionalId);
      }
      if (result.error !== 0 && brokerError(result.error).name !== "OPERATION_NOT_ATTEMPTED") {
        throw transactionError(result.error, this.transactionalId, doing);
      }
    }
    const left = results.find(({ error }) => error !== 0); // the one that kept others from being attempted was not asked for
    if (left !== undefined) throw transactionError(left.error, this.transactionalId, doing);
  }

  // Ending

  async commit(): Promise<void> {
    this.#checkUsable();
    await Promise.allSettled(this.#underWay);
    this.#checkUsable();
    if (this.#failure !== undefined) throw this.#failedBefore();
    if (!this.#begun) return;
    await this.#end("commit");
    this.#forget();
  }

  async abort(): Promise<void> {
    this.#checkUsable();
    await Promise.allSettled(this.#underWay);
    this.#checkUsable();
    if (!this.#begun && this.#failure === undefined) return;
    const failed = this.#failure !== undefined;
    if (this.#begun) await this.#end("abort").catch((thrown) => this.#passIfNotOpen(thrown, failed));
    if (failed) await this.#startAgain();
    this.#forget();
    this.#failure = undefined;
  }

  /** After a failure the coordinator may not have heard of the transaction at all. */
  #passIfNotOpen(thrown: unknown, failed: boolean): void {
    const notOpen = thrown instanceof KafkaError && thrown.code === "kafka_transaction_failed";
    if (!failed || !notOpen) throw thrown;
  }

  /** Under another epoch numbers begin at 0 again, and what is still on its way belongs to the former one (T4). */
  async #startAgain(): Promise<void> {
    try {
      this.#identity = await initialise(this.#cluster, this.#options, this.#identity, this.#closed.signal);
    } catch (thrown) {
      throw this.#fail(thrown, "starting again after a failure");
    }
    this.#sender.restart(this.#identity);
  }

  /** T3. */
  async #end(how: "commit" | "abort"): Promise<void> {
    const doing = `ending a transaction (${how}) of "${this.transactionalId}"`;
    let lost = false;
    const until = this.#cluster.within(this.#options.endTimeoutMs ?? DEFAULT_END_TIMEOUT_MS);
    try {
      await this.#cluster.retry({ until, signal: this.#closed.signal }, async () => {
        try {
          await this.#ask(endTxn, { ...this.#who(), commit: how === "commit" }, doing, this.#closed.signal);
        } catch (thrown) {
          // What was thrown when we were closed, too: the request may be on its way.
          lost ||= !(thrown instanceof KafkaError) || thrown.code === "kafka_closed" ||
            (thrown instanceof LinkError && thrown.sent);
          throw thrown;
        }
      });
    } catch (thrown) {
      throw this.#notEnded(thrown, how, lost, doing);
    }
  }

  #notEnded(thrown: unknown, how: "commit" | "abort", lost: boolean, doing: string): unknown {
    const because = lost ? new UnknownOutcomeError(this.transactionalId, how, { cause: thrown }) : undefined;
    if (because !== undefined) return this.#dead = because;
    const isState = thrown instanceof KafkaError && thrown.broker === brokerError(INVALID_TXN_STATE).name;
    if (isState) {
      return this.#failure = new KafkaError(
        "kafka_transaction_failed",
        `the broker has no open transaction of "${this.transactionalId}" to ${how}`,
        { cause: thrown, hint: "it took longer than its timeout, or somebody ended it" },
      );
    }
    return this.#fail(thrown, doing);
  }

  #forget(): void {
    this.#partitions.clear();
    this.#groups.clear();
    this.#begun = false;
  }

  close(): Promise<void> {
    const error = new KafkaError(
      "kafka_closed",
      `the producer of transactional id "${this.transactionalId}" was closed`,
    );
    this.#dead ??= error;
    this.#closed.abort(error);
    this.#sender.close(error);
    return Promise.resolve();
  }

  // Asking

  get #coordinator(): { readonly of: "transaction"; readonly name: string } {
    return { of: "transaction", name: this.transactionalId };
  }

  #who(): ProducerIdentity {
    return { transactionalId: this.transactionalId, ...this.#identity };
  }

  #usual(signal: AbortSignal | undefined): ReturnType<Cluster["usual"]> {
    return this.#cluster.usual(
      signal === undefined ? this.#closed.signal : AbortSignal.any([signal, this.#closed.signal]),
    );
  }

  async #ask<Question>(
    api: Api<Question, ErrorAnswer>,
    question: Question,
    doing: string,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { error } = await this.#cluster.coordinated(this.#coordinator, api, question, this.#usual(signal));
    if (error !== 0) throw transactionError(error, this.transactionalId, doing);
  }

  async #retry(signal: AbortSignal | undefined, attempt: () => Promise<void>): Promise<void> {
    this.#begun = true;
    const until = this.#cluster.within(this.#options.deliveryTimeoutMs ?? DEFAULT_DELIVERY_TIMEOUT_MS);
    const either = signal === undefined
      ? this.#closed.signal
      : AbortSignal.any([signal, this.#closed.signal]);
    await this.#cluster.retry({ until, signal: either }, attempt);
  }

  #checkUsable(): void {
    if (this.#dead !== undefined) throw this.#dead;
  }

  #failedBefore(): KafkaError {
    return new KafkaError(
      "kafka_transaction_failed",
      `the transaction of "${this.transactionalId}" failed before: ${this.#failure!.message}`,
      { cause: this.#failure, hint: "abort it, and write again what it had" },
    );
  }
}
