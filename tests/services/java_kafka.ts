/**
 * Kafka's own Java clients, for tests: they lay out topics, write what other programs would have written, and judge what is in
 * a topic. Nothing of the code under test takes part.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { javaCommand } from "./java.ts";
import type { KafkaInstallation } from "./kafka_installation.ts";
import type { Keeper } from "./process.ts";

/** A record as Kafka's consumer has read it. */
export interface ReadRecord {
  readonly partition: number;
  readonly offset: number;
  /** In ms. */
  readonly timestamp: number;
  /** Bytes; null where there is none, which is not the same as empty. */
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  /** In order, repeated names and all. */
  readonly headers: readonly (readonly [name: string, value: Uint8Array | null])[];
}

/** A record to write. */
export interface RecordToWrite {
  /** Default: as Kafka's partitioner has it. */
  readonly partition?: number;
  /** In ms; default: now. */
  readonly timestamp?: number;
  /** Default: null. */
  readonly key?: string | Uint8Array | null;
  readonly value: string | Uint8Array | null;
  readonly headers?: readonly (readonly [name: string, value: string | Uint8Array | null])[];
}

/** How records are written. */
export interface WriteOptions {
  /** Default: none. */
  readonly codec?: "none" | "gzip" | "snappy" | "lz4" | "zstd";
  /**
   * Writes in a transaction of this id. `open` leaves it open, and a later call with the same id goes on with it; default:
   * no transaction.
   */
  readonly transaction?: { readonly id: string; readonly end: "commit" | "abort" | "open" };
}

/** How a topic is laid out. */
export interface TopicOptions {
  /** Default: 1. */
  readonly partitions?: number;
  /** Configuration of the topic, such as `cleanup.policy`. */
  readonly configs?: Readonly<Record<string, string>>;
}

/** Who has a partition. */
export interface PartitionState {
  readonly partition: number;
  /** -1: nobody. */
  readonly leader: number;
  readonly replicas: readonly number[];
  readonly inSync: readonly number[];
}

/** Ends of a partition. */
export interface PartitionOffsets {
  readonly partition: number;
  /** Of the first record that is kept. */
  readonly earliest: number;
  /** Below it every transaction is decided. */
  readonly stable: number;
  /** Of the next record. */
  readonly end: number;
}

/** What a consumer group has committed. */
export interface GroupOffset {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly metadata: string;
}

/** Kafka's Java clients, behind a port. Every method throws what the Java client has thrown, its class in front. */
export class JavaKafka {
  /**
   * @param port Of the program; starts it where it does not run yet.
   * @param settings As Java's clients have them.
   */
  constructor(
    private readonly port: () => Promise<number>,
    private readonly settings: Readonly<Record<string, string>>,
  ) {}

  /**
   * Creates a topic and waits until all its replicas are in step.
   *
   * @param prefix The name is this and something nobody else has, because brokers are shared.
   * @returns Its name.
   */
  async createTopic(prefix: string, { partitions = 1, configs = {} }: TopicOptions = {}): Promise<string> {
    const topic = `${prefix}-${crypto.randomUUID().slice(0, 8)}`;
    await this.#ask("createTopic", { topic, partitions, configs });
    return topic;
  }

  /** Removes a topic. */
  async deleteTopic(topic: string): Promise<void> {
    await this.#ask("deleteTopic", { topic });
  }

  /** Lets a topic grow to so many partitions, and waits until it has. */
  async addPartitions(topic: string, partitions: number): Promise<void> {
    await this.#ask("addPartitions", { topic, partitions });
  }

  /** Lets go of the records of a partition below an offset, as retention does. */
  async deleteRecords(topic: string, partition: number, before: number): Promise<void> {
    await this.#ask("deleteRecords", { topic, partition, before });
  }

  /** Leaders and replicas. */
  async partitions(topic: string): Promise<PartitionState[]> {
    return await this.#ask("partitions", { topic }) as PartitionState[];
  }

  /** Waits until every replica of a topic is in step. */
  async whole(topic: string): Promise<void> {
    await this.#ask("awaitWhole", { topic });
  }

  /** Where partitions begin and end. */
  async offsets(topic: string): Promise<PartitionOffsets[]> {
    return await this.#ask("offsets", { topic }) as PartitionOffsets[];
  }

  /** What a consumer group has committed. */
  async groupOffsets(group: string): Promise<GroupOffset[]> {
    return await this.#ask("groupOffsets", { group }) as GroupOffset[];
  }

  /**
   * All records of a topic at this moment, by partition and offset.
   *
   * @param isolation Default `read_committed`: without records of transactions that are open or aborted, and without what
   * is behind the first open one.
   */
  async records(
    topic: string,
    isolation: "read_committed" | "read_uncommitted" = "read_committed",
  ): Promise<ReadRecord[]> {
    const records = await this.#ask("records", { topic, isolation }) as JsonRecord[];
    return records.map(({ key, value, headers, ...place }) => ({
      ...place,
      key: fromBase64(key),
      value: fromBase64(value),
      headers: headers.map(([name, value]) => [name, fromBase64(value)] as const),
    })).toSorted((a, b) => a.partition - b.partition || a.offset - b.offset);
  }

  /** Writes records, in order. @returns Where each has come to lie. */
  async produce(
    topic: string,
    records: readonly RecordToWrite[],
    { codec = "none", transaction }: WriteOptions = {},
  ): Promise<{ readonly partition: number; readonly offset: number }[]> {
    const encoded = records.map(({ key = null, value, headers = [], ...place }) => ({
      ...place,
      key: toBase64(key),
      value: toBase64(value),
      headers: headers.map(([name, value]) => [name, toBase64(value)]),
    }));
    const request = { topic, records: encoded, codec, transaction: transaction ?? null };
    return await this.#ask("produce", request) as { partition: number; offset: number }[];
  }

  async #ask(operation: string, request: Readonly<Record<string, unknown>>): Promise<unknown> {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: await this.port() });
    const asking = write(
      connection,
      `${JSON.stringify({ operation, settings: this.settings, ...request })}\n`,
    );
    const [text] = await Promise.all([readAll(connection), asking]);
    if (text === "") throw new Error(`${operation}: Kafka's Java clients have ended without an answer`);
    const { error, result } = JSON.parse(text) as { error?: string; result?: unknown };
    if (error !== undefined) throw new Error(`${operation}: ${error}`);
    return result;
  }
}

/** Starts the program of the Java clients. @returns Its port. */
export async function startJavaClients(
  keeper: Keeper,
  installation: KafkaInstallation,
  archive?: string,
): Promise<number> {
  const command = javaCommand({
    classPath: installation.tool,
    main: "KafkaTool",
    heap: 512,
    sharedClasses: archive,
  });
  const program = keeper.start(command, { name: "java-clients" });
  let port = 0;
  await program.ready(async () => {
    port = Number(/^port (\d+)$/m.exec(await program.log())?.[1] ?? 0);
    return port > 0;
  });
  return port;
}

interface JsonRecord {
  readonly partition: number;
  readonly offset: number;
  readonly timestamp: number;
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: readonly (readonly [string, string | null])[];
}

function toBase64(bytes: string | Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes as string).toString("base64");
}

function fromBase64(text: string | null): Uint8Array | null {
  return text === null ? null : new Uint8Array(Buffer.from(text, "base64"));
}

async function write(connection: Deno.TcpConn, text: string): Promise<void> {
  let rest = new TextEncoder().encode(text);
  while (rest.length > 0) rest = rest.subarray(await connection.write(rest));
  await connection.closeWrite();
}

async function readAll(connection: Deno.TcpConn): Promise<string> {
  const decoder = new TextDecoder(), buffer = new Uint8Array(65_536);
  let text = "";
  for (;;) {
    const count = await connection.read(buffer);
    if (count === null) return text + decoder.decode();
    text += decoder.decode(buffer.subarray(0, count), { stream: true });
  }
}
