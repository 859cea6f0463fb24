/**
 * The brokers of one cluster: who leads what, who coordinates whom, and a connection to each, made when it is needed.
 *
 * Requests of different kinds go over connections of their own: a broker answers one request of a connection after the other, and
 * some wait for seconds by design.
 *
 * @module
 */
import { abortable } from "../../../lib/abortable.ts";
import { delay } from "../../../lib/clock.ts";
import type { TopicPartition } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { brokerError, errorOf } from "../protocol/error_codes.ts";
import type { Api, Throttled } from "../protocol/requests/api.ts";
import {
  type CoordinatorOf,
  findCoordinator,
  metadata,
  type MetadataAnswer,
} from "../protocol/requests/cluster.ts";
import { type BrokerAddress, Link, type LinkContext, type RequestOptions } from "./link.ts";

/** What a connection is for. */
export type Purpose = "main" | "coordinator" | `fetch ${number}` | `group ${number}`;

/** How long to go on trying. */
export interface RetryOptions {
  /** Until this time of the monotonic clock, ms. */
  readonly until: number;
  readonly signal?: AbortSignal | undefined;
}

const DEFAULT_REQUEST_TIMEOUT_MS = 30_000;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1000;
/** A coordinator that has just ended a transaction is ready for the next in a few ms. */
const FIRST_PAUSE_BETWEEN_TRANSACTIONS_MS = 2;
/** How long a topic or partition may be unknown that was just made, or that a broker which has just started does not know yet, ms. */
export const UNKNOWN_TOPIC_GRACE_MS = 5000;

/** How long something may fail with what is retried until it is reported as a warning, ms. */
export const REPORT_AFTER_MS = 5000;

type Topic = MetadataAnswer["topics"][number];

/** The brokers of one cluster. */
export class Cluster {
  readonly context: LinkContext;
  /** How long the answer to one request may take, ms. */
  readonly requestTimeoutMs: number;
  readonly #seeds: readonly BrokerAddress[];
  readonly #links = new Map<string, Link>();
  readonly #topics = new Map<string, Topic>();
  /** Why a topic cannot be used, where a broker said so. */
  readonly #topicErrors = new Map<string, number>();
  readonly #coordinators = new Map<string, number>();
  readonly #closed = new AbortController();
  #brokers: ReadonlyMap<number, BrokerAddress> = new Map();
  #controller = -1;
  #turn = 0;
  #purposes = 0;

  constructor(context: LinkContext) {
    this.context = context;
    this.requestTimeoutMs = context.connection.requestTimeoutMs ?? DEFAULT_REQUEST_TIMEOUT_MS;
    this.#seeds = context.connection.brokers.map(parseAddress);
    if (this.#seeds.length === 0) {
      throw new KafkaError("kafka_invalid_setting", "no broker is given", {
        hint: "name at least one, as host:port",
      });
    }
  }

  /** Aborted with `kafka_closed` when the cluster is closed. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  /** Monotonic time, `ms` from now. */
  within(ms: number): number {
    return this.context.clock.monotonic() + ms;
  }

  /** For somebody who waits at brokers for long: connections nobody else uses. */
  ownPurpose(kind: "fetch" | "group"): Purpose {
    return `${kind} ${this.#purposes++}`;
  }

  /** How a request of the usual kind is sent. */
  usual(signal?: AbortSignal): RequestOptions {
    return { timeoutMs: this.requestTimeoutMs, signal };
  }

  /** Ends everything; what is under way rejects. */
  close(): void {
    if (this.#closed.signal.aborted) return;
    const error = new KafkaError("kafka_closed", "the Kafka client was closed");
    this.#closed.abort(error);
    for (const link of this.#links.values()) link.destroy(error);
    this.#links.clear();
  }

  // Connections

  /** The connection to a broker for this purpose. */
  async link(id: number, purpose: Purpose, signal?: AbortSignal): Promise<Link> {
    this.#closed.signal.throwIfAborted();
    if (!this.#brokers.has(id)) await this.refresh([], signal);
    const address = this.#brokers.get(id);
    if (address === undefined) {
      throw new KafkaError("kafka_unreachable", `broker ${id} is not among those that are up`, {
        retriable: true,
      });
    }
    return this.#linkTo(address, purpose);
  }

  #linkTo(address: BrokerAddress, purpose: Purpose): Link {
    const key = `${address.host}:${address.port} ${purpose}`;
    const known = this.#links.get(key);
    if (known?.alive) return known;
    const link = new Link(address, this.context);
    this.#links.set(key, link);
    return link;
  }

  /** Ends a connection whose last answer nobody waits for any more. */
  drop(link: Link): void {
    link.destroy(new KafkaError("kafka_closed", "the connection was given up"));
    for (const [key, known] of this.#links) if (known === link) this.#links.delete(key);
  }

  /** Asks any broker: a known one that answers, else one of those given. */
  async any<Question, Answer extends Throttled>(
    api: Api<Question, Answer>,
    question: Question,
    signal?: AbortSignal,
  ): Promise<Answer> {
    this.#closed.signal.throwIfAborted();
    const addresses = [...this.#brokers.values(), ...this.#seeds];
    const start = this.#turn++;
    let failure: unknown;
    const tried = new Set<string>();
    for (let i = 0; i < addresses.length; i++) {
      const address = addresses[(start + i) % addresses.length]!;
      const name = `${address.host}:${address.port}`;
      if (tried.has(name)) continue;
      tried.add(name);
      try {
        return await this.#linkTo(address, "main").request(api, question, this.usual(signal));
      } catch (error) {
        signal?.throwIfAborted();
        this.#closed.signal.throwIfAborted();
        failure = clearer(failure, error);
      }
    }
    throw failure;
  }

  // Who leads

  /** Asks for metadata of these topics, and remembers it. Topics that do not exist are forgotten. Undefined = all. */
  async refresh(topics: readonly string[] | undefined, signal?: AbortSignal): Promise<MetadataAnswer> {
    const answer = await this.any(metadata, { topics }, signal);
    if (answer.brokers.length > 0) {
      this.#brokers = new Map(answer.brokers.map(({ id, host, port }) => [id, { host, port }]));
    }
    this.#controller = answer.controller;
    for (const topic of answer.topics) {
      if (topic.error === 0 || topic.partitions.length > 0) this.#topics.set(topic.name, topic);
      else this.#topics.delete(topic.name);
      if (topic.error === 0) this.#topicErrors.delete(topic.name);
      else this.#topicErrors.set(topic.name, topic.error);
    }
    return answer;
  }

  /** What was last heard of a topic. */
  topic(name: string): Topic | undefined {
    return this.#topics.get(name);
  }

  /** The leader as it was last heard of; undefined where there is none or the partition is not known. */
  knownLeader({ topic, partition }: TopicPartition): number | undefined {
    const found = this.#topics.get(topic)?.partitions.find((entry) => entry.partition === partition);
    return found === undefined || found.leader < 0 ? undefined : found.leader;
  }

  /** The leader of each partition; asks again where one is not known, and throws where it still is not. */
  async leaders(partitions: readonly TopicPartition[], signal?: AbortSignal): Promise<number[]> {
    const unknown = partitions.filter((partition) => this.knownLeader(partition) === undefined);
    if (unknown.length > 0) await this.refresh([...new Set(unknown.map(({ topic }) => topic))], signal);
    return partitions.map((partition) => {
      const leader = this.knownLeader(partition);
      if (leader === undefined) throw this.noLeader(partition);
      return leader;
    });
  }

  /** Why the leader of a partition is not known, by what was last heard. */
  noLeader({ topic, partition }: TopicPartition): KafkaError {
    const known = this.#topics.get(topic);
    if (known === undefined) return errorOf(this.#topicErrors.get(topic) ?? 3, `looking for topic ${topic}`);
    const exists = known.partitions.some((entry) => entry.partition === partition);
    if (exists) return errorOf(5, `looking for the leader of ${topic}/${partition}`);
    return errorOf(
      3,
      `looking for ${topic}/${partition}`,
      `the topic has ${known.partitions.length} partitions`,
    );
  }

  /** The broker that makes and deletes topics. */
  async controller(signal?: AbortSignal): Promise<number> {
    await this.refresh([], signal);
    return this.#controller;
  }

  /** The ids of the brokers that are up. */
  async brokerIds(signal?: AbortSignal): Promise<number[]> {
    await this.refresh([], signal);
    return [...this.#brokers.keys()];
  }

  // Who coordinates

  /** Asks the coordinator of a group or transactional id. Errors that say it moved make it be looked for again. */
  async coordinated<Question, Answer extends Throttled & { readonly error?: number }>(
    to: { readonly of: CoordinatorOf; readonly name: string; readonly purpose?: Purpose },
    api: Api<Question, Answer>,
    question: Question,
    options: RequestOptions,
  ): Promise<Answer> {
    const id = await this.coordinator(to.of, to.name, options.signal);
    try {
      const link = await this.link(id, to.purpose ?? "coordinator", options.signal);
      const answer = await link.request(api, question, options);
      if (answer.error !== undefined && brokerError(answer.error).moved) {
        this.forgetCoordinator(to.of, to.name);
      }
      return answer;
    } catch (error) {
      if (!options.signal?.aborted) this.forgetCoordinator(to.of, to.name);
      throw error;
    }
  }

  /** Id of the broker that coordinates a group or transactional id. */
  async coordinator(of: CoordinatorOf, name: string, signal?: AbortSignal): Promise<number> {
    const key = `${of} ${name}`;
    const known = this.#coordinators.get(key);
    if (known !== undefined) return known;
    const answer = await this.any(findCoordinator, { of, name }, signal);
    if (answer.error !== 0) {
      throw errorOf(answer.error, `looking for the coordinator of ${of} "${name}"`, answer.detail);
    }
    this.#coordinators.set(key, answer.id);
    if (!this.#brokers.has(answer.id)) await this.refresh([], signal);
    return answer.id;
  }

  /** The next request looks for the coordinator anew. */
  forgetCoordinator(of: CoordinatorOf, name: string): void {
    this.#coordinators.delete(`${of} ${name}`);
  }

  // Trying again

  /** Calls `attempt` until it succeeds, fails with what a retry does not help, or time is up: then its last error is thrown. */
  async retry<T>(options: RetryOptions, attempt: () => Promise<T>): Promise<T> {
    const { clock } = this.context;
    let pause: number | undefined;
    let unknownSince: number | undefined;
    for (;;) {
      this.#closed.signal.throwIfAborted();
      try {
        return await attempt();
      } catch (error) {
        options.signal?.throwIfAborted();
        this.#closed.signal.throwIfAborted();
        if (!(error instanceof KafkaError) || !error.retriable) throw error;
        if (error.code === "kafka_unknown_topic") unknownSince ??= clock.monotonic();
        else unknownSince = undefined;
        const until = Math.min(options.until, (unknownSince ?? Infinity) + UNKNOWN_TOPIC_GRACE_MS);
        const left = until - clock.monotonic();
        if (left <= 0) throw error;
        pause = nextPause(pause, error);
        await this.pause(Math.min(pause, left), options.signal);
      }
    }
  }

  /** Waits; ends early when the signal fires or the cluster is closed. */
  async pause(ms: number, signal?: AbortSignal): Promise<void> {
    const either = signal === undefined
      ? this.#closed.signal
      : AbortSignal.any([signal, this.#closed.signal]);
    await delay(this.context.clock, ms, either);
  }

  /** What `pending` gives, unless the cluster is closed or the signal fires first. */
  async waitFor<T>(pending: Promise<T>, signal?: AbortSignal): Promise<T> {
    const either = signal === undefined
      ? this.#closed.signal
      : AbortSignal.any([signal, this.#closed.signal]);
    return await abortable(pending, either);
  }
}

/** How long to wait after an error, given how long was waited before it, ms. */
export function nextPause(before: number | undefined, error: KafkaError): number {
  const first = error.broker === "CONCURRENT_TRANSACTIONS"
    ? FIRST_PAUSE_BETWEEN_TRANSACTIONS_MS
    : FIRST_PAUSE_MS;
  return before === undefined ? first : Math.min(before * 2, LONGEST_PAUSE_MS);
}

/** Of two failures the one that says more: what a retry does not help explains more than that a broker is down. */
function clearer(before: unknown, now: unknown): unknown {
  if (before === undefined) return now;
  const isClear = (error: unknown) => error instanceof KafkaError && !error.retriable;
  return isClear(before) && !isClear(now) ? before : now;
}

/** `host:port`, also `[::1]:9092`. */
export function parseAddress(text: string): BrokerAddress {
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:/[\]]+)):(\d{1,5})$/.exec(text.trim());
  const port = Number(found?.[3]);
  const host = found?.[1] ?? found?.[2];
  if (host === undefined || port < 1 || port > 65_535) {
    throw new KafkaError("kafka_invalid_setting", `"${text}" is no broker address`, {
      hint: "write host:port, e.g. kafka-1:9092",
    });
  }
  return { host, port };
}
