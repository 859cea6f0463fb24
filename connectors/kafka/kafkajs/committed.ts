/**
 * Offsets that groups have committed.
 *
 * @module
 */
import type { PartitionOffset, TopicPartition } from "../client.ts";
import { GenerationLostError, KafkaError } from "../errors.ts";
import { brokerError, errorOf } from "../protocol/error_codes.ts";
import { type MemberIdentity, offsetCommit, offsetFetch } from "../protocol/requests/groups.ts";
import type { Cluster } from "./cluster.ts";

/** Offsets of these partitions, in their order; undefined where the group has committed none. */
export async function committedOffsets(
  cluster: Cluster,
  group: string,
  partitions: readonly TopicPartition[],
  signal?: AbortSignal,
): Promise<(number | undefined)[]> {
  if (partitions.length === 0) return [];
  const doing = `reading the offsets of group "${group}"`;
  return await cluster.retry({ until: cluster.within(cluster.requestTimeoutMs), signal }, async () => {
    const to = { of: "group", name: group } as const;
    const answer = await cluster.coordinated(to, offsetFetch, { group, partitions }, cluster.usual(signal));
    if (answer.error !== 0) throw errorOf(answer.error, doing);
    return partitions.map(({ topic, partition }) => {
      const result = answer.results.find((entry) => entry.topic === topic && entry.partition === partition);
      if (result === undefined) throw missing(topic, partition, doing);
      if (result.error !== 0) throw errorOf(result.error, doing);
      return result.offset < 0 ? undefined : result.offset;
    });
  });
}

/** Commits offsets as a member, or from outside (generation -1, no member id). */
export async function commitOffsets(
  cluster: Cluster,
  member: MemberIdentity,
  offsets: readonly PartitionOffset[],
  signal?: AbortSignal,
): Promise<void> {
  if (offsets.length === 0) return;
  const { group } = member;
  const doing = `committing offsets of group "${group}"`;
  await cluster.retry({ until: cluster.within(cluster.requestTimeoutMs), signal }, async () => {
    const to = { of: "group", name: group } as const;
    const answer = await cluster.coordinated(to, offsetCommit, { ...member, offsets }, cluster.usual(signal));
    for (const { topic, partition } of offsets) {
      const result = answer.results.find((entry) => entry.topic === topic && entry.partition === partition);
      if (result === undefined) throw missing(topic, partition, doing);
      if (result.error === 0) continue;
      const error = errorOf(result.error, doing);
      if (brokerError(result.error).moved) cluster.forgetCoordinator("group", group);
      throw error.code === "kafka_generation_lost" ? new GenerationLostError(group, { cause: error }) : error;
    }
  });
}

function missing(topic: string, partition: number, doing: string): KafkaError {
  return new KafkaError(
    "kafka_incomplete_answer",
    `the broker did not answer for ${topic}/${partition} while ${doing}`,
    {
      retriable: true,
    },
  );
}
