/**
 * What the suites of the client have in common.
 *
 * @module
 */
import assert from "node:assert/strict";
import { delay, systemClock } from "../../../lib/clock.ts";
import { silentLogger } from "../../../lib/log.ts";
import type {
  FetcherOptions,
  KafkaClient,
  KafkaClientFactory,
  KafkaConnection,
  OutgoingBatch,
  TopicPartition,
} from "../client.ts";
import { RecordBatchBuilder } from "../protocol/record_batch_builder.ts";
import type { KafkaRecord } from "../protocol/types.ts";

/** A record with its place. */
export type PlacedRecord = KafkaRecord & TopicPartition & { readonly offset: number };

/** Runs with a client that is closed at the end. */
export async function withClient<T>(
  factory: KafkaClientFactory,
  connection: KafkaConnection,
  run: (client: KafkaClient) => Promise<T>,
): Promise<T> {
  const client = factory(connection, { clock: systemClock, logger: silentLogger });
  try {
    return await run(client);
  } finally {
    await client.close();
  }
}

/** A batch of texts, of now: what is old a broker may delete at once. */
export function batch(topic: string, partition: number, values: readonly string[]): OutgoingBatch {
  const records = new RecordBatchBuilder();
  for (const value of values) records.append(null, value, systemClock.now());
  return { topic, partition, records };
}

/** A batch of records. */
export function batchOf(topic: string, partition: number, all: readonly KafkaRecord[]): OutgoingBatch {
  const records = new RecordBatchBuilder();
  for (const { key, value, timestamp, headers } of all) records.append(key, value, timestamp, headers);
  return { topic, partition, records };
}

/** Everything a reader sees of these partitions at the moment. */
export async function readAll(
  client: KafkaClient,
  partitions: readonly TopicPartition[],
  options: Partial<FetcherOptions> = {},
  from: readonly number[] = partitions.map(() => 0),
): Promise<PlacedRecord[]> {
  const fetcher = client.fetcher({ isolation: "read_committed", maxWaitMs: 50, ...options });
  partitions.forEach((partition, i) => fetcher.assign(partition, from[i]!));
  const waiting = new Set(partitions.map(({ topic, partition }) => `${topic}/${partition}`));
  const all: PlacedRecord[] = [];
  try {
    while (waiting.size > 0) {
      for (const { topic, partition, records, atEnd } of await fetcher.poll()) {
        for (const run of records) {
          for (let i = 0; i < run.length; i++) all.push({ topic, partition, ...run.record(i) });
        }
        if (atEnd) waiting.delete(`${topic}/${partition}`);
      }
    }
  } finally {
    await fetcher.close();
  }
  return all.sort((a, b) => a.partition - b.partition || a.offset - b.offset);
}

/** Bytes as text; null stays null. */
export function text(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : new TextDecoder().decode(bytes);
}

/** Values as texts. */
export function texts(records: readonly { readonly value: Uint8Array | null }[]): (string | null)[] {
  return records.map(({ value }) => text(value));
}

/** Bytes of a text. */
export function utf8(content: string): Uint8Array {
  return new TextEncoder().encode(content);
}

/** A name nobody else has. */
export function unique(prefix: string): string {
  // deno-lint-ignore mailer/injected-time -- brokers are shared
  return `${prefix}-${crypto.randomUUID().slice(0, 8)}`;
}

/** Waits until it holds. */
export async function until(
  what: string,
  holds: () => boolean | Promise<boolean>,
  withinMs = 20_000,
): Promise<void> {
  const end = systemClock.monotonic() + withinMs;
  while (!await holds()) {
    assert.ok(systemClock.monotonic() < end, `${what}: not within ${withinMs} ms`);
    await delay(systemClock, 10);
  }
}

/** Lets real time pass, ms. */
export function pause(ms: number): Promise<void> {
  return delay(systemClock, ms);
}

/** How long it takes, ms. */
export async function timed(run: () => Promise<unknown>): Promise<number> {
  const start = systemClock.monotonic();
  await run();
  return systemClock.monotonic() - start;
}
