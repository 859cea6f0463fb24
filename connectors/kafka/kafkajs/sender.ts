/**
 * Sends batches to the leaders of their partitions, and checks what comes back.
 *
 * S1 A batch is done when an answer names its partition with error 0. An answer that leaves a partition out says nothing of it: the
 *    batch is sent again.
 * S2 One batch of a partition is under way at a time; so order is kept whatever happens to a request.
 * S3 A retry sends the same bytes: same partition, producer, epoch and sequence number. The broker recognises what it has already.
 * S4 A numbered batch that failed for good leaves a gap: everything behind it in its partition fails with it, and numbering starts
 *    anew under another identity.
 *
 * @module
 */
import { asError } from "../../../lib/errors.ts";
import type { OutgoingBatch, WrittenBatch } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { brokerError, errorOf } from "../protocol/error_codes.ts";
import type { RecordBatchBuilder } from "../protocol/record_batch_builder.ts";
import { produce, type ProduceResult } from "../protocol/requests/records.ts";
import type { Codec } from "../protocol/types.ts";
import { type Cluster, nextPause, REPORT_AFTER_MS, UNKNOWN_TOPIC_GRACE_MS } from "./cluster.ts";

/** Who numbers batches. */
export interface Identity {
  readonly producerId: number;
  readonly epoch: number;
}

/** How a sender works. */
export interface SenderOptions {
  readonly acks: "all" | "leader" | "none";
  readonly codec: Codec;
  readonly deliveryTimeoutMs: number;
  readonly maxRequestBytes: number;
  /** Set in transactions. */
  readonly transactionalId?: string;
  /** Asks for an identity to number batches with; undefined = they are not numbered. Asked again after a gap. */
  readonly identify: (() => Promise<Identity>) | undefined;
}

/** One batch on its way. */
interface Shipment {
  readonly topic: string;
  readonly partition: number;
  readonly records: RecordBatchBuilder;
  readonly count: number;
  /** Monotonic time when it is given up, ms. */
  readonly until: number;
  readonly done: (baseOffset: number) => void;
  readonly failed: (error: unknown) => void;
  bytes: Uint8Array | undefined;
  pause: number | undefined;
  /** Since when it fails, monotonic, ms. */
  failingSince: number | undefined;
  /** It was reported that it fails. */
  reported: boolean;
  /** Since when its partition does not seem to exist, monotonic, ms. */
  unknownSince: number | undefined;
}

/** The batches of one partition, in order. */
class Lane {
  readonly topic: string;
  readonly partition: number;
  readonly waiting: Shipment[] = [];
  /** The first one is with a broker, or about to be tried again. */
  busy = false;
  identity: Identity | undefined;
  /** Number of the next record. */
  sequence = 0;

  constructor(topic: string, partition: number) {
    this.topic = topic;
    this.partition = partition;
  }
}

const ACKS = { all: -1, leader: 1, none: 0 } as const;
const LAST_SEQUENCE = 2 ** 31;
const DUPLICATE_SEQUENCE_NUMBER = 46;
/** How much longer than the leader may take its answer may take, ms. */
const ANSWER_GRACE_MS = 5000;

/** Sends batches of one producer. */
export class Sender {
  readonly #cluster: Cluster;
  readonly #options: SenderOptions;
  readonly #lanes = new Map<string, Lane>();
  readonly #closed = new AbortController();
  #identity: Identity | undefined;
  #asking: Promise<Identity> | undefined;

  constructor(cluster: Cluster, options: SenderOptions) {
    this.#cluster = cluster;
    this.#options = options;
  }

  /** Numbers anew, from 0, under this identity; nothing may be under way. */
  restart(identity: Identity): void {
    this.#identity = identity;
    this.#lanes.clear();
  }

  /** Resolves when all are acknowledged; see {@link OutgoingBatch}. */
  async send(batches: readonly OutgoingBatch[], signal?: AbortSignal): Promise<WrittenBatch[]> {
    this.#closed.signal.throwIfAborted();
    signal?.throwIfAborted();
    for (const { topic, partition, records } of batches) {
      if (records.count === 0) throw new RangeError(`a batch for ${topic}/${partition} has no record`);
    }
    const sent = Promise.all(batches.map((batch) => this.#enqueue(batch)));
    this.#pump();
    return await this.#cluster.waitFor(sent, signal);
  }

  /** What is under way rejects. */
  close(error: KafkaError): void {
    if (this.#closed.signal.aborted) return;
    this.#closed.abort(error);
    for (const lane of this.#lanes.values()) failAll(lane, error);
  }

  #enqueue({ topic, partition, records }: OutgoingBatch): Promise<WrittenBatch> {
    const key = `${topic}/${partition}`;
    let lane = this.#lanes.get(key);
    if (lane === undefined) this.#lanes.set(key, lane = new Lane(topic, partition));
    const { count } = records;
    return new Promise((resolve, reject) => {
      lane.waiting.push({
        topic,
        partition,
        records,
        count,
        until: this.#cluster.within(this.#options.deliveryTimeoutMs),
        done: (baseOffset) => resolve({ topic, partition, baseOffset, count }),
        failed: reject,
        bytes: undefined,
        pause: undefined,
        failingSince: undefined,
        reported: false,
        unknownSince: undefined,
      });
    });
  }

  /** Sends what can be sent. */
  #pump(): void {
    if (this.#closed.signal.aborted) return;
    const lanes = [...this.#lanes.values()].filter((lane) => !lane.busy && lane.waiting.length > 0);
    if (lanes.length === 0) return;
    for (const lane of lanes) lane.busy = true;
    this.#dispatch(lanes).catch((error) => this.#retryAll(lanes, asKafkaError(error)));
  }

  /** Finds the leaders of these lanes and sends each what is its own. */
  async #dispatch(lanes: readonly Lane[]): Promise<void> {
    await this.#number(lanes);
    const ready = lanes.filter((lane) => lane.waiting.length > 0);
    const homeless = ready.filter((lane) => this.#cluster.knownLeader(lane) === undefined);
    if (homeless.length > 0) await this.#cluster.refresh(topicsOf(homeless), this.#closed.signal);
    const byLeader = new Map<number, Lane[]>();
    for (const lane of ready) {
      const leader = this.#cluster.knownLeader(lane);
      if (leader === undefined) {
        this.#retry(lane, this.#cluster.noLeader(lane));
        continue;
      }
      const group = byLeader.get(leader);
      if (group === undefined) byLeader.set(leader, [lane]);
      else group.push(lane);
    }
    for (const [leader, ofLeader] of byLeader) {
      for (const request of this.#requests(ofLeader)) void this.#ship(leader, request);
    }
  }

  /** Gives lanes without one an identity, and the first batch of each its bytes. */
  async #number(lanes: readonly Lane[]): Promise<void> {
    const { transactionalId, codec } = this.#options;
    for (const lane of lanes) {
      const first = lane.waiting[0];
      if (first === undefined || first.bytes !== undefined) continue;
      lane.identity ??= this.#identity ?? await this.#identify();
      const { producerId, epoch } = lane.identity ?? { producerId: -1, epoch: -1 };
      const sequence = lane.identity === undefined ? -1 : lane.sequence;
      first.bytes = first.records.encode({
        producerId,
        epoch,
        sequence,
        transactional: transactionalId !== undefined,
        codec,
      });
      lane.sequence = (lane.sequence + first.count) % LAST_SEQUENCE;
    }
  }

  /** A new identity; undefined where batches are not numbered. */
  async #identify(): Promise<Identity | undefined> {
    if (this.#options.identify === undefined) return undefined;
    this.#asking ??= this.#options.identify().finally(() => this.#asking = undefined);
    return this.#identity = await this.#asking;
  }

  /** Cuts lanes of one leader into requests that are not too large. */
  #requests(lanes: readonly Lane[]): Lane[][] {
    const requests: Lane[][] = [];
    let bytes = Infinity;
    for (const lane of lanes) {
      const more = lane.waiting[0]!.bytes!.length;
      if (bytes + more > this.#options.maxRequestBytes) {
        requests.push([]);
        bytes = 0;
      }
      requests.at(-1)!.push(lane);
      bytes += more;
    }
    return requests;
  }

  /** Sends one request; every lane in it is told what became of its batch. Never rejects. */
  async #ship(leader: number, lanes: readonly Lane[]): Promise<void> {
    const { acks, transactionalId } = this.#options;
    const timeoutMs = this.#cluster.requestTimeoutMs;
    try {
      const link = await this.#cluster.link(leader, "main", this.#closed.signal);
      const batches = lanes.map(({ topic, partition, waiting }) => ({
        topic,
        partition,
        bytes: waiting[0]!.bytes!,
      }));
      const answer = await link.request(produce, { transactionalId, acks: ACKS[acks], timeoutMs, batches }, {
        timeoutMs: timeoutMs + ANSWER_GRACE_MS,
        signal: this.#closed.signal,
        noAnswer: acks === "none",
      });
      if (acks === "none") { for (const lane of lanes) this.#succeed(lane, -1); }
      else this.#settle(lanes, answer.results);
    } catch (thrown) {
      await this.#moved(lanes);
      this.#retryAll(lanes, asKafkaError(thrown));
    }
    this.#pump();
  }

  #settle(lanes: readonly Lane[], results: readonly ProduceResult[]): void {
    const byPartition = new Map(results.map((result) => [`${result.topic}/${result.partition}`, result]));
    let moved = false;
    for (const lane of lanes) {
      const result = byPartition.get(`${lane.topic}/${lane.partition}`);
      if (result === undefined) {
        this.#retry(lane, missing(lane));
      } else if (result.error === 0 || result.error === DUPLICATE_SEQUENCE_NUMBER) {
        this.#succeed(lane, result.error === 0 ? result.baseOffset : -1);
      } else {
        moved ||= brokerError(result.error).moved;
        this.#retry(lane, errorOf(result.error, `writing to ${lane.topic}/${lane.partition}`, result.detail));
      }
    }
    if (moved) void this.#moved(lanes);
  }

  /** The leaders may be others by now; a failure of this shows when they are asked for. */
  async #moved(lanes: readonly Lane[]): Promise<void> {
    if (this.#closed.signal.aborted) return;
    const topics = topicsOf(lanes);
    await this.#cluster.refresh(topics, this.#closed.signal).catch((error) => {
      this.#cluster.context.logger.log("debug", "asking for metadata failed", {
        topics,
        error: asError(error).message,
      });
    });
  }

  #succeed(lane: Lane, baseOffset: number): void {
    lane.waiting.shift()?.done(baseOffset);
    lane.busy = false;
  }

  #retryAll(lanes: readonly Lane[], error: KafkaError): void {
    for (const lane of lanes) this.#retry(lane, error);
  }

  /** Tries the first batch of a lane again after a pause, or gives up. */
  #retry(lane: Lane, error: KafkaError): void {
    const shipment = lane.waiting[0];
    if (shipment === undefined || this.#closed.signal.aborted) {
      lane.busy = false;
      return;
    }
    const now = this.#cluster.context.clock.monotonic();
    if (error.code !== "kafka_unknown_topic") shipment.unknownSince = undefined;
    else shipment.unknownSince ??= now;
    const left = Math.min(shipment.until, (shipment.unknownSince ?? Infinity) + UNKNOWN_TOPIC_GRACE_MS) - now;
    if (!error.retriable || left <= 0) return this.#giveUp(lane, error);
    shipment.pause = nextPause(shipment.pause, error);
    this.#report(shipment, now - (shipment.failingSince ??= now), error);
    this.#cluster.pause(Math.min(shipment.pause, left), this.#closed.signal).then(
      () => {
        lane.busy = false;
        this.#pump();
      },
      () => {}, // closed: whoever closed has rejected everything
    );
  }

  /** A leader that moves is nothing to speak of; what lasts is. */
  #report(shipment: Shipment, failingForMs: number, error: KafkaError): void {
    const lasts = failingForMs >= REPORT_AFTER_MS && !shipment.reported;
    if (lasts) shipment.reported = true;
    this.#cluster.context.logger.log(
      lasts ? "warn" : "debug",
      "a partition cannot be written to, trying again",
      {
        topic: shipment.topic,
        partition: shipment.partition,
        failingForMs: Math.round(failingForMs),
        pauseMs: shipment.pause,
        error: error.message,
        hint: error.hint,
      },
    );
  }

  #giveUp(lane: Lane, error: KafkaError): void {
    if (this.#options.identify === undefined) {
      lane.waiting.shift()?.failed(error);
      lane.busy = false;
      return this.#pump();
    }
    failAll(lane, error);
    this.#lanes.delete(`${lane.topic}/${lane.partition}`);
    // In a transaction nothing more is sent until `restart`; else the partition goes on under another identity.
    if (this.#options.transactionalId === undefined && this.#identity === lane.identity) {
      this.#identity = undefined;
    }
  }
}

const topicsOf = (lanes: readonly Lane[]): string[] => [...new Set(lanes.map(({ topic }) => topic))];

function failAll(lane: Lane, error: unknown): void {
  for (const shipment of lane.waiting.splice(0)) shipment.failed(error);
}

function missing({ topic, partition }: Lane): KafkaError {
  return new KafkaError(
    "kafka_incomplete_answer",
    `the broker did not say what became of a batch for ${topic}/${partition}`,
    {
      retriable: true,
    },
  );
}

function asKafkaError(thrown: unknown): KafkaError {
  if (thrown instanceof KafkaError) return thrown;
  const error = asError(thrown);
  return new KafkaError("kafka_broker", error.message, { cause: error });
}
