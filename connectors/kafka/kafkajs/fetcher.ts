/**
 * Reads assigned partitions by position.
 *
 * F1 One request a leader is under way, and at most one answer of it waits to be taken: memory is bounded, and leaders do not wait
 *    for each other.
 * F2 A position moves only by what was decoded; what belongs to a former assignment is dropped, wherever it is.
 * F3 Every partition that was asked for is answered, or counts as failed. What a retry may help is retried, up to a time.
 * F4 An offset outside of the log is reported with both ends; nothing is read of that partition until it is assigned anew.
 *
 * @module
 */
import { asError } from "../../../lib/errors.ts";
import type { FetchedPartition, FetcherOptions, KafkaFetcher, TopicPartition } from "../client.ts";
import { KafkaError, OffsetOutOfRangeError } from "../errors.ts";
import { brokerError, errorOf } from "../protocol/error_codes.ts";
import { decodeRecordSet } from "../protocol/record_set.ts";
import { fetchRecords, type FetchResult } from "../protocol/requests/records.ts";
import { type Cluster, nextPause, type Purpose, REPORT_AFTER_MS } from "./cluster.ts";
import type { Link } from "./link.ts";
import { lookUpOffsets } from "./offsets.ts";

const OFFSET_OUT_OF_RANGE = 1;
/** Whoever is first in a request gets a whole batch: everybody is, in as many requests as there are partitions. */
const STALLS = 10;

const DEFAULTS = {
  maxBytes: 10 * 1024 * 1024,
  maxPartitionBytes: 1024 * 1024,
  minBytes: 1,
  maxWaitMs: 500,
  giveUpAfterMs: 120_000,
};

/** A partition as it was assigned; a new assignment is a new slot. */
class Slot implements TopicPartition {
  readonly topic: string;
  readonly partition: number;
  /** Offset of the next request. */
  fetchOffset: number;
  /** Offset behind what was given out. */
  position: number;
  /** Monotonic time of the first failure since something came, ms. */
  failingSince: number | undefined;
  /** It was reported that it fails. */
  reported = false;
  pause: number | undefined;
  /** How often in a row there were bytes, and no whole batch among them. */
  stalls = 0;
  /** Not to be asked for at the moment: a pause, or out of range. */
  resting = false;

  constructor({ topic, partition }: TopicPartition, offset: number) {
    this.topic = topic;
    this.partition = partition;
    this.fetchOffset = offset;
    this.position = offset;
  }
}

/** What waits to be taken by `poll`. */
interface Answer {
  readonly leader: number;
  readonly partitions: readonly { readonly slot: Slot; readonly fetched: FetchedPartition }[];
}

/** Reads assigned partitions by position. */
export class Fetcher implements KafkaFetcher {
  readonly #cluster: Cluster;
  readonly #options: Required<FetcherOptions>;
  readonly #slots = new Map<string, Slot>();
  /** Leaders with a request under way, or an answer that waits. */
  readonly #busy = new Set<number>();
  readonly #answers: Answer[] = [];
  readonly #lost: { readonly slot: Slot; readonly error: KafkaError }[] = [];
  readonly #closed = new AbortController();
  readonly #links = new Set<Link>();
  readonly #purpose: Purpose;
  #failure: KafkaError | undefined;
  #wake: (() => void) | undefined;
  #scheduled = false;
  #turn = 0;

  constructor(cluster: Cluster, options: FetcherOptions) {
    this.#cluster = cluster;
    this.#purpose = cluster.ownPurpose("fetch");
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    this.#options = { ...DEFAULTS, ...given, isolation: options.isolation };
    cluster.closed.addEventListener("abort", () => this.#onClusterClosed(), { signal: this.#closed.signal });
  }

  #onClusterClosed(): void {
    this.#closed.abort(this.#cluster.closed.reason);
    this.#wake?.();
  }

  // Positions

  assign(partition: TopicPartition, offset: number): void {
    if (!Number.isSafeInteger(offset) || offset < 0) {
      throw new RangeError(`${keyOf(partition)}: ${offset} is no offset`);
    }
    this.#slots.set(keyOf(partition), new Slot(partition, offset));
    this.#schedule();
  }

  revoke(partition: TopicPartition): void {
    this.#slots.delete(keyOf(partition));
  }

  position(partition: TopicPartition): number | undefined {
    return this.#slots.get(keyOf(partition))?.position;
  }

  /** F2 */
  #isCurrent(slot: Slot): boolean {
    return this.#slots.get(keyOf(slot)) === slot;
  }

  // Giving out

  async poll(signal?: AbortSignal): Promise<readonly FetchedPartition[]> {
    for (;;) {
      signal?.throwIfAborted();
      this.#closed.signal.throwIfAborted();
      const ready = this.#take();
      if (ready !== undefined) return ready;
      await this.#waitForAnswer(signal);
    }
  }

  #take(): FetchedPartition[] | undefined {
    const lost = this.#lost.shift();
    if (lost !== undefined && this.#isCurrent(lost.slot)) throw lost.error;
    if (this.#failure !== undefined) throw this.#failure;
    const answer = this.#answers.shift();
    if (answer === undefined) return lost === undefined ? undefined : this.#take();
    this.#busy.delete(answer.leader);
    this.#schedule();
    const given: FetchedPartition[] = [];
    for (const { slot, fetched } of answer.partitions) {
      if (!this.#isCurrent(slot)) continue;
      slot.position = fetched.nextOffset;
      given.push(fetched);
    }
    return given.length > 0 ? given : this.#take();
  }

  #waitForAnswer(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        signal?.removeEventListener("abort", wake);
        this.#wake = undefined;
        resolve();
      };
      signal?.addEventListener("abort", wake, { once: true });
      this.#wake = wake;
    });
  }

  // Asking

  /** Soon, once for everything that is assigned now. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#ask();
    });
  }

  /** Sends a request to every leader that is free. */
  #ask(): void {
    if (this.#closed.signal.aborted || this.#failure !== undefined) return;
    const byLeader = new Map<number, Slot[]>();
    const homeless: Slot[] = [];
    for (const slot of this.#slots.values()) {
      if (slot.resting) continue;
      const leader = this.#cluster.knownLeader(slot);
      if (leader === undefined) homeless.push(slot);
      else if (!this.#busy.has(leader)) {
        const group = byLeader.get(leader);
        if (group === undefined) byLeader.set(leader, [slot]);
        else group.push(slot);
      }
    }
    for (const [leader, slots] of byLeader) void this.#fetch(leader, this.#rotated(slots));
    if (homeless.length > 0) void this.#findLeaders(homeless);
  }

  /** Brokers fill an answer in the order of the partitions: everybody is first in turn. */
  #rotated(slots: Slot[]): Slot[] {
    const first = this.#turn++ % slots.length;
    return [...slots.slice(first), ...slots.slice(0, first)];
  }

  async #findLeaders(slots: readonly Slot[]): Promise<void> {
    for (const slot of slots) slot.resting = true;
    try {
      await this.#cluster.refresh([...new Set(slots.map(({ topic }) => topic))], this.#closed.signal);
    } catch (thrown) {
      for (const slot of slots) this.#failed(slot, asKafkaError(thrown));
      return;
    }
    for (const slot of slots) {
      if (this.#cluster.knownLeader(slot) !== undefined) slot.resting = false;
      else this.#failed(slot, this.#cluster.noLeader(slot));
    }
    this.#schedule();
  }

  /** One request. Never rejects. */
  async #fetch(leader: number, slots: readonly Slot[]): Promise<void> {
    this.#busy.add(leader);
    const { maxWaitMs, minBytes, maxBytes, maxPartitionBytes, isolation } = this.#options;
    try {
      const link = await this.#cluster.link(leader, this.#purpose, this.#closed.signal);
      this.#links.add(link);
      const partitions = slots.map(({ topic, partition, fetchOffset }) => ({
        topic,
        partition,
        offset: fetchOffset,
        maxBytes: maxPartitionBytes,
      }));
      const answer = await link.request(fetchRecords, {
        maxWaitMs,
        minBytes,
        maxBytes,
        committedOnly: isolation === "read_committed",
        partitions,
      }, { timeoutMs: maxWaitMs + this.#cluster.requestTimeoutMs, signal: this.#closed.signal });
      if (answer.error !== 0) throw errorOf(answer.error, `reading ${slots.map(keyOf).join(", ")}`);
      this.#settle(leader, slots, answer.results);
    } catch (thrown) {
      this.#busy.delete(leader);
      if (this.#closed.signal.aborted) return;
      const error = asKafkaError(thrown);
      for (const slot of slots) this.#failed(slot, error);
      this.#refreshSoon(slots);
    }
  }

  /** F3 */
  #settle(leader: number, slots: readonly Slot[], results: readonly FetchResult[]): void {
    const byPartition = new Map(results.map((result) => [keyOf(result), result]));
    const partitions: { slot: Slot; fetched: FetchedPartition }[] = [];
    const moved: Slot[] = [];
    for (const slot of slots) {
      if (!this.#isCurrent(slot)) continue;
      const result = byPartition.get(keyOf(slot));
      if (result?.error === 0) partitions.push({ slot, fetched: this.#decode(slot, result) });
      else if (result?.error === OFFSET_OUT_OF_RANGE) void this.#outOfRange(slot);
      else {
        this.#failed(
          slot,
          result === undefined ? missing(slot) : errorOf(result.error, `reading ${keyOf(slot)}`),
        );
        if (result !== undefined && brokerError(result.error).moved) moved.push(slot);
      }
    }
    if (moved.length > 0) this.#refreshSoon(moved);
    if (partitions.length === 0) {
      this.#busy.delete(leader);
      return this.#schedule();
    }
    this.#answers.push({ leader, partitions });
    this.#wake?.();
  }

  #decode(slot: Slot, result: FetchResult): FetchedPartition {
    const { topic, partition, bytes, logStartOffset, highWatermark, lastStableOffset } = result;
    const committedOnly = this.#options.isolation === "read_committed";
    const { records, nextOffset } = decode(slot, result, committedOnly);
    slot.stalls = bytes.length > 0 && nextOffset === slot.fetchOffset ? slot.stalls + 1 : 0;
    if (slot.stalls > this.#slots.size + STALLS) throw noWholeBatch(slot, bytes.length);
    slot.fetchOffset = nextOffset;
    this.#recovered(slot);
    const end = committedOnly ? lastStableOffset : highWatermark;
    return {
      topic,
      partition,
      records,
      nextOffset,
      logStartOffset,
      highWatermark,
      lastStableOffset,
      atEnd: nextOffset >= end,
      bytes: bytes.length,
    };
  }

  // Failures

  /** Tries again after a pause, or gives up. */
  #failed(slot: Slot, error: KafkaError): void {
    if (!this.#isCurrent(slot) || this.#closed.signal.aborted) return;
    const now = this.#cluster.context.clock.monotonic();
    slot.failingSince ??= now;
    if (!error.retriable || now - slot.failingSince >= this.#options.giveUpAfterMs) return this.#fail(error);
    slot.resting = true;
    slot.pause = nextPause(slot.pause, error);
    this.#report(slot, now - slot.failingSince, error);
    this.#cluster.pause(slot.pause, this.#closed.signal).then(() => {
      slot.resting = false;
      this.#schedule();
    }, () => {}); // closed
  }

  /** A leader that moves is nothing to speak of; what lasts is. */
  #report(slot: Slot, failingForMs: number, error: KafkaError): void {
    const lasts = failingForMs >= REPORT_AFTER_MS && !slot.reported;
    if (lasts) slot.reported = true;
    this.#cluster.context.logger.log(lasts ? "warn" : "debug", "a partition cannot be read, trying again", {
      topic: slot.topic,
      partition: slot.partition,
      failingForMs: Math.round(failingForMs),
      pauseMs: slot.pause,
      error: error.message,
      hint: error.hint,
    });
  }

  #recovered(slot: Slot): void {
    slot.failingSince = slot.pause = undefined;
    if (!slot.reported) return;
    slot.reported = false;
    const { topic, partition } = slot;
    this.#cluster.context.logger.log("info", "a partition can be read again", { topic, partition });
  }

  #fail(error: KafkaError): void {
    this.#failure ??= error;
    this.#wake?.();
  }

  #refreshSoon(slots: readonly Slot[]): void {
    const topics = [...new Set(slots.map(({ topic }) => topic))];
    this.#cluster.refresh(topics, this.#closed.signal).then(() => this.#schedule(), (error) => {
      this.#cluster.context.logger.log("debug", "asking for metadata failed", {
        topics,
        error: asError(error).message,
      });
    });
  }

  /** F4; a leader that was just elected may not know yet how far its log goes. */
  async #outOfRange(slot: Slot): Promise<void> {
    slot.resting = true;
    const { topic, partition, fetchOffset: offset } = slot;
    let range: { earliest: number; latest: number } | undefined;
    try {
      const [earliest, latest] = await lookUpOffsets(this.#cluster, [
        { topic, partition, at: "earliest" },
        { topic, partition, at: "end" },
      ], this.#closed.signal);
      range = { earliest: earliest!, latest: latest! };
    } catch (thrown) {
      return this.#failed(slot, asKafkaError(thrown));
    }
    if (range.earliest <= offset && offset <= range.latest) {
      return this.#failed(slot, errorOf(78, `reading ${keyOf(slot)}`));
    }
    this.#lost.push({ slot, error: new OffsetOutOfRangeError({ topic, partition, offset }, range) });
    this.#wake?.();
  }

  close(): Promise<void> {
    if (!this.#closed.signal.aborted) {
      this.#closed.abort(new KafkaError("kafka_closed", "the fetcher was closed"));
      for (const link of this.#links) this.#cluster.drop(link);
      this.#links.clear();
      this.#answers.length = 0;
      this.#wake?.();
    }
    return Promise.resolve();
  }
}

function decode(
  slot: Slot,
  { bytes, aborted }: FetchResult,
  committedOnly: boolean,
): ReturnType<typeof decodeRecordSet> {
  return decodeRecordSet(bytes, {
    fetchOffset: slot.fetchOffset,
    aborted: committedOnly ? aborted : undefined,
  });
}

const keyOf = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`;

function noWholeBatch(slot: Slot, bytes: number): KafkaError {
  return new KafkaError(
    "kafka_corrupt",
    `${
      keyOf(slot)
    }: at offset ${slot.fetchOffset} the broker sends ${bytes} bytes again and again, and no whole batch`,
    { hint: "the log of this partition is damaged there" },
  );
}

function missing(slot: Slot): KafkaError {
  return new KafkaError("kafka_incomplete_answer", `the broker did not answer for ${keyOf(slot)}`, {
    retriable: true,
  });
}

function asKafkaError(thrown: unknown): KafkaError {
  if (thrown instanceof KafkaError) return thrown;
  const error = asError(thrown);
  return new KafkaError("kafka_broker", error.message, { cause: error });
}
