/**
 * Kafka in workflows: from the blocks of a document to sources and sinks.
 *
 * @module
 */
import { asError, MailerError } from "../../lib/errors.ts";
import type { Sink, Source } from "../../lib/connector.ts";
import { bytesFormat, type Format, jsonFormat, stringFormat } from "../../lib/format/mod.ts";
import type {
  Encoding,
  KafkaSinkBlock,
  KafkaSourceBlock,
  SaslBlock,
  TlsBlock,
  TxnKafkaBlock,
} from "../../lib/workflow/blocks.ts";
import type { ListedTransaction, TransactionDesk } from "../../lib/workflow/registry.ts";
import type { WorkflowSpec } from "../../lib/workflow/spec.ts";
import type { KafkaClient, KafkaClientContext, KafkaConnection, KafkaTls } from "./client.ts";
import { kafkaClient } from "./kafkajs/mod.ts";
import { kafkaSink } from "./kafka_sink.ts";
import { kafkaSource } from "./kafka_source.ts";
import { transactionalKafkaSink } from "./transactional_sink.ts";

/** The source of a document. @param folder What paths in it are relative to. */
export function kafkaSourceOf(block: KafkaSourceBlock, folder: string): Source {
  const { topics, groupID, startFrom, onOffsetLost, fetchMinBytes, fetchMaxBytes, watchPartitions } = block;
  return kafkaSource({
    ...connectionOf(block, folder),
    topics,
    groupId: groupID,
    start: startFrom,
    onOffsetLost,
    format: formatOf(block.deserialize),
    fetchMinBytes,
    fetchMaxBytes,
    ...(watchPartitions === undefined ? {} : { discovery: watchPartitions }),
  });
}

/** The sink of a document that writes at least once. */
export function kafkaSinkOf(block: KafkaSinkBlock, folder: string): Sink {
  const { topic, acks, batchSize, batchTimeout, serialize } = block;
  return kafkaSink({
    ...connectionOf(block, folder),
    topic,
    acks,
    batchSize,
    batchTimeout,
    format: formatOf(serialize),
  });
}

/** The sink of a document that writes exactly once. */
export function transactionalKafkaSinkOf(block: TxnKafkaBlock, folder: string): Sink {
  const { topic, transactionalID, markerTopic, serialize } = block;
  return transactionalKafkaSink({
    ...connectionOf(block, folder),
    topic,
    transactionalId: transactionalID,
    markerTopic,
    format: formatOf(serialize),
  });
}

/** Where the servers of a block are, and who one is there. */
export function connectionOf(
  { brokers, sasl, tls }: {
    readonly brokers: readonly string[];
    readonly sasl?: SaslBlock;
    readonly tls?: TlsBlock;
  },
  folder: string,
): KafkaConnection {
  return { brokers, sasl, tls: tls === undefined ? undefined : new FileTls(tls, folder) };
}

/** Certificates in files. They are read when a connection is made: building a pipeline opens nothing. */
class FileTls implements KafkaTls {
  readonly insecureSkipVerify: boolean;
  readonly #block: TlsBlock;
  readonly #folder: string;

  constructor(block: TlsBlock, folder: string) {
    this.insecureSkipVerify = block.insecureSkipVerify;
    this.#block = block;
    this.#folder = folder;
  }

  get ca(): string | undefined {
    return this.#read("caFile");
  }
  get cert(): string | undefined {
    return this.#read("certFile");
  }
  get key(): string | undefined {
    return this.#read("keyFile");
  }

  #read(field: "caFile" | "certFile" | "keyFile"): string | undefined {
    const name = this.#block[field];
    if (name === undefined) return undefined;
    const path = name.startsWith("/") ? name : `${this.#folder}/${name}`;
    try {
      return Deno.readTextFileSync(path);
    } catch (cause) {
      throw new MailerError("kafka_tls", `tls.${field} "${name}" cannot be read: ${asError(cause).message}`, {
        cause,
        hint: `looked for ${path}`,
        lasting: true,
      });
    }
  }
}

function formatOf(encoding: Encoding): Format {
  return { json: jsonFormat, string: stringFormat, bytes: bytesFormat }[encoding]() as Format;
}

/** Transactions on the clusters that a workflow talks to. */
export function transactionDesks(
  spec: Pick<WorkflowSpec, "sources" | "sinks">,
  folder: string,
  context: KafkaClientContext,
): readonly TransactionDesk[] {
  const own = new Map<string, string[]>(), connections = new Map<string, KafkaConnection>();
  for (const part of [...spec.sources, ...spec.sinks]) {
    const block = part.type === "kafka" ? part.kafka : part.type === "txnKafka" ? part.txnKafka : undefined;
    if (block === undefined) continue;
    const cluster = block.brokers.toSorted().join();
    if (!connections.has(cluster)) connections.set(cluster, connectionOf(block, folder));
    const ids = own.get(cluster) ?? [];
    own.set(cluster, part.type === "txnKafka" ? [...ids, part.txnKafka.transactionalID] : ids);
  }
  return [...connections].map(([cluster, connection]) =>
    new KafkaTransactions(cluster, kafkaClient(connection, context), own.get(cluster)!)
  );
}

class KafkaTransactions implements TransactionDesk {
  readonly cluster: string;
  readonly #client: KafkaClient;
  readonly #own: readonly string[];

  constructor(cluster: string, client: KafkaClient, own: readonly string[]) {
    this.cluster = cluster;
    this.#client = client;
    this.#own = own;
  }

  async list(): Promise<readonly ListedTransaction[]> {
    const { admin } = this.#client, known = await admin.listTransactions();
    const states = await admin.describeTransactions(known.map(({ transactionalId }) => transactionalId));
    return states.map(({ transactionalId: id, state, startedAt, timeoutMs, partitions }) => ({
      id,
      state,
      isOpen: state === "Ongoing",
      // The sink numbers its producers behind a `#`.
      isOwn: this.#own.some((own) => id === own || id.startsWith(`${own}#`)),
      startedAt: state === "Ongoing" ? startedAt : undefined,
      timeoutMs,
      writesTo: partitions.map(({ topic, partition }) => `${topic}/${partition}`),
    }));
  }

  async abort(id: string): Promise<void> {
    await this.#client.admin.abortTransaction(id);
  }

  async close(): Promise<void> {
    await this.#client.close();
  }
}
