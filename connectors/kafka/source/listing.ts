/**
 * Which partitions there are.
 *
 * @module
 */
import type { CallOptions, KafkaClient, TopicPartition } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { unknownTopics } from "./explain.ts";
import type { CheckedKafkaSource } from "./options.ts";
import { splitName } from "./split.ts";

/** The topics and their partitions at one moment. */
export interface Listing {
  readonly topics: readonly string[];
  readonly partitions: readonly TopicPartition[];
  /** Names of the partitions. */
  readonly names: ReadonlySet<string>;
  /** Number of brokers that are up. */
  readonly brokers: number;
}

/**
 * All partitions that are asked for.
 *
 * @throws {KafkaError} `kafka_unknown_topic` where one does not exist; a pattern may match nothing.
 */
export async function listPartitions(
  client: KafkaClient,
  options: CheckedKafkaSource,
  call: CallOptions,
): Promise<Listing> {
  const counts = options.pattern === undefined
    ? await namedTopics(client, options.topics, call)
    : await matchingTopics(client, options.pattern, call);
  const partitions = [...counts].flatMap(([topic, count]) => partitionsOf(topic, count, options.partitions));
  const { brokers } = await client.metadata([...counts.keys()], call);
  return {
    topics: [...counts.keys()],
    partitions,
    names: new Set(partitions.map(splitName)),
    brokers: Math.max(1, brokers.length),
  };
}

async function namedTopics(
  client: KafkaClient,
  topics: readonly string[],
  call: CallOptions,
): Promise<ReadonlyMap<string, number>> {
  try {
    return await client.requireTopics(topics, call);
  } catch (error) {
    if (!(error instanceof KafkaError) || error.code !== "kafka_unknown_topic") throw error;
    throw await unknownTopics(client, topics, call) ?? error;
  }
}

async function matchingTopics(
  client: KafkaClient,
  pattern: RegExp,
  call: CallOptions,
): Promise<ReadonlyMap<string, number>> {
  const { topics } = await client.metadata(undefined, call);
  return new Map(
    topics.filter(({ name, internal }) => !internal && pattern.test(name))
      // Behind the highest number, should the broker have left some out.
      .map(({ name, partitions }) => [name, (partitions.at(-1)?.partition ?? -1) + 1]),
  );
}

function partitionsOf(topic: string, count: number, wanted: readonly number[] | undefined): TopicPartition[] {
  const numbers = wanted ?? Array.from({ length: count }, (_, partition) => partition);
  const missing = numbers.find((partition) => partition >= count);
  if (missing !== undefined) {
    throw new KafkaError(
      "kafka_unknown_topic",
      `kafka source: topic "${topic}" has ${count} partition${
        count === 1 ? "" : "s"
      }, and none with the number ${missing}`,
    );
  }
  return numbers.map((partition) => ({ topic, partition }));
}
