/**
 * Sending, and believing nothing but an answer for every batch.
 *
 * @module
 */
import type { CallOptions, OutgoingBatch, WrittenBatch } from "../client.ts";
import { KafkaError } from "../errors.ts";

/** What sends batches. */
export interface Sending {
  send(batches: readonly OutgoingBatch[], options?: CallOptions): Promise<readonly WrittenBatch[]>;
}

/**
 * Sends batches, and checks that each of them is acknowledged whole.
 *
 * @throws {KafkaError} `kafka_incomplete_answer`, and what the producer throws.
 */
export async function sendAcknowledged(
  producer: Sending,
  batches: readonly OutgoingBatch[],
  options?: CallOptions,
): Promise<readonly WrittenBatch[]> {
  const counts = batches.map(({ records }) => records.count);
  const written = await producer.send(batches, options);
  const missing = batches.find(({ topic, partition }, i) => {
    const answer = written[i];
    return answer?.topic !== topic || answer.partition !== partition || answer.count !== counts[i];
  });
  if (missing === undefined && written.length === batches.length) return written;
  const { topic, partition } = missing ?? batches[0]!;
  throw new KafkaError(
    "kafka_incomplete_answer",
    `a batch for ${topic}/${partition} was sent, and nobody acknowledged it`,
  );
}
