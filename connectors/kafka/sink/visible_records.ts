/**
 * Looks through what a `read_committed` reader sees of a stretch of a partition.
 *
 * @module
 */
import type { Clock } from "../../../lib/clock.ts";
import type { FetchedPartition, KafkaClient, TopicPartition } from "../client.ts";

/** Where to look, and for how long. */
export interface Stretch extends TopicPartition {
  /** Offset to begin with. */
  readonly from: number;
  /** Offset to end in front of; readers get there already. */
  readonly to: number;
}

/** How to look. */
export interface LookContext {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How long it may take, ms. */
  readonly timeoutMs: number;
}

/**
 * Shows the records of a stretch to `isIt`, one after the other, up to the first it is content with.
 *
 * @param late The error where it takes too long.
 * @returns Whether there was one. No means that all of the stretch was seen.
 * @throws {OffsetOutOfRangeError} Where the beginning of the stretch is gone.
 */
export async function findVisible(
  client: KafkaClient,
  { topic, partition, from, to }: Stretch,
  { clock, signal, timeoutMs }: LookContext,
  late: () => Error,
  isIt: (key: Uint8Array | null, value: Uint8Array | null, offset: number) => boolean,
): Promise<boolean> {
  if (from >= to) return false;
  const over = new AbortController();
  const alarm = clock.schedule(timeoutMs, () => over.abort(late()));
  const fetcher = client.fetcher({ isolation: "read_committed", giveUpAfterMs: timeoutMs });
  try {
    fetcher.assign({ topic, partition }, from);
    const either = AbortSignal.any([signal, over.signal]);
    for (;;) {
      for (const part of await fetcher.poll(either)) {
        if (isIn(part, to, isIt)) return true;
        if (part.nextOffset >= to) return false;
      }
    }
  } finally {
    alarm.cancel();
    await fetcher.close();
  }
}

function isIn(
  { records }: FetchedPartition,
  to: number,
  isIt: (key: Uint8Array | null, value: Uint8Array | null, offset: number) => boolean,
): boolean {
  for (const run of records) {
    for (let i = 0; i < run.length && run.offsets[i]! < to; i++) {
      if (isIt(run.key(i), run.value(i), run.offsets[i]!)) return true;
    }
  }
  return false;
}
