/**
 * Reads the logs of the cluster in memory.
 *
 * @module
 */
import type { FetchedPartition, FetcherOptions, Isolation, KafkaFetcher, TopicPartition } from "../client.ts";
import { KafkaError, OffsetOutOfRangeError } from "../errors.ts";
import { FetchedRecords } from "../protocol/fetched_records.ts";
import type { KafkaRecord } from "../protocol/types.ts";
import { type FakeEntry, type FakeKafka, type FakePartition, isVisible, nameOf } from "./fake_kafka.ts";

interface Assigned extends TopicPartition {
  offset: number;
}

/** Answers one broker after the other, and begins with another partition each time. */
export class FakeFetcher implements KafkaFetcher {
  /** What it was made with. */
  readonly options: FetcherOptions;
  readonly #kafka: FakeKafka;
  readonly #assigned = new Map<string, Assigned>();
  readonly #closed = new AbortController();
  #turn = 0;
  #isPolling = false;
  #wake: () => void = () => {};

  constructor(kafka: FakeKafka, options: FetcherOptions) {
    this.#kafka = kafka;
    this.options = options;
  }

  /** What is assigned, as `topic/partition`. */
  get assigned(): string[] {
    return [...this.#assigned.keys()];
  }

  assign({ topic, partition }: TopicPartition, offset: number): void {
    this.#assigned.set(nameOf({ topic, partition }), { topic, partition, offset });
    this.#wake();
  }

  revoke(partition: TopicPartition): void {
    this.#assigned.delete(nameOf(partition));
  }

  position(partition: TopicPartition): number | undefined {
    return this.#assigned.get(nameOf(partition))?.offset;
  }

  async poll(signal?: AbortSignal): Promise<readonly FetchedPartition[]> {
    if (this.#isPolling) throw new Error("poll was called again before it had settled");
    this.#isPolling = true;
    const either = signal === undefined
      ? this.#closed.signal
      : AbortSignal.any([signal, this.#closed.signal]);
    try {
      return await this.#kafka.call("poll", this.assigned.join(" "), either, () => this.#poll(either));
    } finally {
      this.#isPolling = false;
    }
  }

  close(): Promise<void> {
    this.#closed.abort(new KafkaError("kafka_closed", "the fetcher has been closed"));
    return Promise.resolve();
  }

  async #poll(signal: AbortSignal): Promise<readonly FetchedPartition[]> {
    const { clock } = this.#kafka;
    let isLate = false;
    const alarm = clock.schedule(this.options.maxWaitMs ?? 500, () => {
      isLate = true;
      this.#wake();
    });
    try {
      for (;;) {
        signal.throwIfAborted();
        const answer = this.#answer();
        if (answer.some(({ records, hasMoved }) => records.length > 0 || hasMoved)) return answer;
        if (isLate && answer.length > 0) return answer;
        await this.#change(signal);
      }
    } finally {
      alarm.cancel();
    }
  }

  async #change(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const forget = this.#kafka.onChange(resolve);
    this.#wake = resolve;
    signal.addEventListener("abort", () => resolve(), { once: true });
    await promise;
    forget();
  }

  /** What the next broker that has something says; what all say where nobody has. */
  #answer(): (FetchedPartition & { readonly hasMoved: boolean })[] {
    const { brokers } = this.#kafka, nothing = [];
    for (let i = 0; i < brokers; i++) {
      const broker = (this.#turn + i) % brokers;
      const answer = this.#answerOf(broker);
      if (answer.some(({ hasMoved }) => hasMoved)) {
        this.#turn += i + 1;
        for (const each of answer) this.#assigned.get(nameOf(each))!.offset = each.nextOffset;
        return answer;
      }
      nothing.push(...answer);
    }
    return nothing;
  }

  #answerOf(broker: number): (FetchedPartition & { readonly hasMoved: boolean })[] {
    const own = [...this.#assigned.values()].filter((at) =>
      this.#kafka.hasTopic(at.topic) &&
      this.#kafka.topic(at.topic).partitions[at.partition]?.leader === broker
    );
    const first = own.length === 0 ? 0 : this.#turn % own.length, answer = [];
    let left = this.options.maxBytes ?? 10 * 2 ** 20;
    for (const at of [...own.slice(first), ...own.slice(0, first)]) {
      const fetched = this.#fetch(at, left);
      left -= fetched.bytes;
      answer.push(fetched);
    }
    return answer;
  }

  #fetch(at: Assigned, left: number): FetchedPartition & { readonly hasMoved: boolean } {
    const log = this.#kafka.partition(at), { isolation, maxPartitionBytes = 2 ** 20 } = this.options;
    if (at.offset < log.start || at.offset > log.end) {
      throw new OffsetOutOfRangeError(at, { earliest: log.start, latest: log.end });
    }
    const end = isolation === "read_committed" ? log.stable : log.end;
    const { entries, bytes } = take(log, at.offset, end, Math.min(left, maxPartitionBytes));
    const last = entries.at(-1);
    // What compaction took away at the end of what there is to see is behind us too.
    const nextOffset = last === undefined
      ? left <= 0 || log.entries.some(({ offset }) => offset >= at.offset && offset < end)
        ? at.offset
        : Math.max(end, at.offset)
      : last.offset + 1;
    return {
      topic: at.topic,
      partition: at.partition,
      records: runs(entries, isolation),
      nextOffset,
      logStartOffset: log.start,
      highWatermark: log.end,
      lastStableOffset: log.stable,
      atEnd: nextOffset >= end,
      bytes,
      hasMoved: nextOffset > at.offset,
    };
  }
}

function take(
  log: FakePartition,
  from: number,
  end: number,
  most: number,
): { entries: FakeEntry[]; bytes: number } {
  const entries: FakeEntry[] = [];
  let bytes = 0;
  for (const entry of most <= 0 ? [] : log.entries) {
    if (entry.offset < from || entry.offset >= end) continue;
    if (entries.length > 0 && bytes + entry.bytes > most) break;
    entries.push(entry);
    bytes += entry.bytes;
  }
  return { entries, bytes };
}

/** What of it is to be seen, a run for each batch. */
function runs(entries: readonly FakeEntry[], isolation: Isolation): FetchedRecords[] {
  const batches = new Map<number, FakeEntry[]>();
  for (const entry of entries) {
    if (!isVisible(entry, isolation)) continue;
    const batch = batches.get(entry.batch);
    if (batch === undefined) batches.set(entry.batch, [entry]);
    else batch.push(entry);
  }
  return [...batches.values()].map((batch) =>
    fetchedRecords(batch.map(({ record, offset }) => ({ ...record!, offset })))
  );
}

/** Records as a fetch gives them. */
export function fetchedRecords(
  records: readonly (KafkaRecord & { readonly offset: number })[],
): FetchedRecords {
  const parts = records.flatMap(({ key, value }) => [key, value]);
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + (part?.length ?? 0), 0));
  const starts: number[] = [];
  let at = 0;
  for (const part of parts) {
    starts.push(at);
    if (part === null) continue;
    bytes.set(part, at);
    at += part.length;
  }
  return new FetchedRecords(bytes, {
    offsets: Float64Array.from(records, ({ offset }) => offset),
    timestamps: Float64Array.from(records, ({ timestamp }) => timestamp),
    keyStarts: Int32Array.from(records, (_, i) => starts[2 * i]!),
    keyLengths: Int32Array.from(records, ({ key }) => key?.length ?? -1),
    valueStarts: Int32Array.from(records, (_, i) => starts[2 * i + 1]!),
    valueLengths: Int32Array.from(records, ({ value }) => value?.length ?? -1),
    headers: records.some(({ headers }) => headers !== undefined)
      ? records.map(({ headers }) => headers)
      : undefined,
  });
}
