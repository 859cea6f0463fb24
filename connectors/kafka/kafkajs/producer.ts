/**
 * A producer outside of transactions.
 *
 * @module
 */
import type { CallOptions, KafkaProducer, OutgoingBatch, ProducerOptions, WrittenBatch } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { errorOf } from "../protocol/error_codes.ts";
import { initProducerId } from "../protocol/requests/transactions.ts";
import type { Cluster } from "./cluster.ts";
import { type Identity, Sender } from "./sender.ts";

/** How long a batch is retried, ms. */
export const DEFAULT_DELIVERY_TIMEOUT_MS = 120_000;
/** The most one request may have, bytes. */
export const DEFAULT_MAX_REQUEST_BYTES = 1024 * 1024;

/** A producer outside of transactions. */
export class Producer implements KafkaProducer {
  readonly #sender: Sender;

  constructor(cluster: Cluster, options: ProducerOptions) {
    const acks = options.acks ?? "all";
    const idempotent = options.idempotent ?? acks === "all";
    if (idempotent && acks !== "all") {
      throw new KafkaError("kafka_invalid_setting", `an idempotent producer cannot have acks "${acks}"`, {
        hint: "set acks to all, or idempotent to false",
      });
    }
    this.#sender = new Sender(cluster, {
      acks,
      codec: options.codec ?? "none",
      deliveryTimeoutMs: options.deliveryTimeoutMs ?? DEFAULT_DELIVERY_TIMEOUT_MS,
      maxRequestBytes: options.maxRequestBytes ?? DEFAULT_MAX_REQUEST_BYTES,
      identify: idempotent ? () => identify(cluster) : undefined,
    });
  }

  send(batches: readonly OutgoingBatch[], options?: CallOptions): Promise<readonly WrittenBatch[]> {
    return this.#sender.send(batches, options?.signal);
  }

  close(): Promise<void> {
    this.#sender.close(new KafkaError("kafka_closed", "the producer was closed"));
    return Promise.resolve();
  }
}

/** A producer id nobody else has; any broker gives one. */
async function identify(cluster: Cluster): Promise<Identity> {
  const question = { transactionalId: undefined, timeoutMs: 0, producerId: -1, epoch: -1 };
  const { error, producerId, epoch } = await cluster.any(initProducerId, question);
  if (error !== 0) throw errorOf(error, "asking for a producer id");
  return { producerId, epoch };
}
