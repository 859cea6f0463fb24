/**
 * Kafka in workflows: from the blocks of a document to sources and sinks.
 *
 * @module
 */
import { asError, MailerError } from "../../lib/errors.ts";
import type { Sink, Source } from "../../lib/connector.ts";
import { bytesFormat, type Format, jsonFormat, stringFormat } from "../../lib/format/mod.ts";
import { stringifyJson } from "../../lib/json.ts";
import type {
  AvroSinkBlock,
  Encoding,
  KafkaEncoding,
  KafkaSinkBlock,
  KafkaSourceBlock,
  SaslBlock,
  TlsBlock,
  TxnKafkaBlock,
} from "../../lib/workflow/blocks.ts";
import type { ListedTransaction, TransactionDesk } from "../../lib/workflow/registry.ts";
import type { WorkflowSpec } from "../../lib/workflow/spec.ts";
import { avroFormat } from "./avro/format.ts";
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
    format: sourceFormat(block, folder),
    fetchMinBytes,
    fetchMaxBytes,
    ...(watchPartitions === undefined ? {} : { discovery: watchPartitions }),
  });
}

/** The sink of a document that writes at least once. */
export function kafkaSinkOf(block: KafkaSinkBlock, folder: string): Sink {
  const { topic, acks, batchSize, batchTimeout } = block;
  return kafkaSink({
    ...connectionOf(block, folder),
    topic,
    acks,
    batchSize,
    batchTimeout,
    format: sinkFormat(block, folder),
  });
}

/** The sink of a document that writes exactly once. */
export function transactionalKafkaSinkOf(block: TxnKafkaBlock, folder: string): Sink {
  const { topic, transactionalID, markerTopic } = block;
  return transactionalKafkaSink({
    ...connectionOf(block, folder),
    topic,
    transactionalId: transactionalID,
    markerTopic,
    format: sinkFormat(block, folder),
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
    return name === undefined ? undefined : readFile(name, this.#folder, "kafka_tls", `tls.${field}`);
  }
}

/** Text of a file of a document. @param code Of the error. @param field Which field names it. */
function readFile(name: string, folder: string, code: string, field: string): string {
  const path = name.startsWith("/") ? name : `${folder}/${name}`;
  try {
    return Deno.readTextFileSync(path);
  } catch (cause) {
    throw new MailerError(code, `${field} "${name}" cannot be read: ${asError(cause).message}`, {
      cause,
      hint: `looked for ${path}`,
      lasting: true,
    });
  }
}

function plainFormat(encoding: Encoding): Format {
  return { json: jsonFormat, string: stringFormat, bytes: bytesFormat }[encoding]() as Format;
}

function sourceFormat(
  { deserialize, schemaRegistry, readerSchema }: KafkaSourceBlock,
  folder: string,
): Format {
  if (deserialize !== "avro") return plainFormat(deserialize);
  return lateFormat(() =>
    avroFormat({
      registry: schemaRegistry!,
      ...(readerSchema === undefined ? {} : { readerSchema: schemaOf(readerSchema, folder, "readerSchema") }),
    })
  );
}

function sinkFormat(
  block: AvroSinkBlock & { readonly topic: string; readonly serialize: KafkaEncoding },
  folder: string,
): Format {
  const { topic, serialize, schemaRegistry, schema, subject = `${topic}-value`, autoRegister } = block;
  if (serialize !== "avro") return plainFormat(serialize);
  return lateFormat(() =>
    avroFormat({
      registry: schemaRegistry!,
      subject,
      ...(schema === undefined ? {} : { schema: schemaOf(schema, folder, "schema") }),
      ...(autoRegister === undefined ? {} : { autoRegister }),
    })
  );
}

/** A schema as it stands in the document, or in a file. */
function schemaOf(schema: unknown, folder: string, field: string): string {
  return typeof schema === "string" ? readFile(schema, folder, "avro_schema", field) : stringifyJson(schema);
}

/** Avro, made when it is wanted: building a pipeline opens no file. */
function lateFormat(make: () => Format): Format {
  let format: Format | undefined;
  return {
    name: "avro",
    decoder: () => (format ??= make()).decoder(),
    encoder: () => (format ??= make()).encoder(),
  };
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
