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
import type { KafkaConnection, KafkaTls } from "./client.ts";
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
