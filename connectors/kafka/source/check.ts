/**
 * Whether a run with a Kafka source could start; nothing is changed, and no group is joined.
 *
 * @module
 */
import { abortable } from "../../../lib/abortable.ts";
import type { CheckContext, Finding } from "../../../lib/connector.ts";
import type { KafkaClient } from "../client.ts";
import { explained } from "./explain.ts";
import { listPartitions } from "./listing.ts";
import type { CheckedKafkaSource } from "./options.ts";

/** Looks whether the topics are there and may be read, and how much there is to read. */
export async function checkKafka(
  options: CheckedKafkaSource,
  context: CheckContext,
): Promise<readonly Finding[]> {
  const { clock, logger, signal } = context;
  const factory = options.client ?? (await import("../kafkajs/mod.ts")).kafkaClient;
  const client = factory(options.connection, { clock, logger });
  try {
    return await abortable(look(client, options, signal), signal);
  } catch (error) {
    throw explained(error, options);
  } finally {
    await client.close();
  }
}

async function look(
  client: KafkaClient,
  options: CheckedKafkaSource,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { topics, partitions, brokers } = await listPartitions(client, options, { signal });
  const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;
  const at = options.connection.brokers.join(", ");
  const reached: Finding = { ok: true, text: `${counted(brokers, "broker")} at ${at}` };
  if (partitions.length === 0) {
    return [reached, { ok: true, text: `no topic matches ${String(options.pattern)} yet` }];
  }
  const ask = async (from: "earliest" | "stable") =>
    await client.listOffsets(partitions.map((partition) => ({ ...partition, at: from })), { signal });
  const [first, end] = await Promise.all([ask("earliest"), ask("stable")]);
  const all = end.reduce((sum, offset, i) => sum + offset - first[i]!, 0);
  const text =
    `${topics.map((topic) => `topic "${topic}"`).join(", ")}: ${counted(partitions.length, "partition")}, ` +
    `${counted(all, "record")}`;
  return [reached, { ok: true, text }, ...await groupFinding(client, options, partitions, end, signal)];
}

async function groupFinding(
  client: KafkaClient,
  { group }: CheckedKafkaSource,
  partitions: Parameters<KafkaClient["committedOffsets"]>[1],
  end: readonly number[],
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  if (group === undefined) return [];
  const committed = await client.committedOffsets(group, partitions, { signal });
  if (committed.every((offset) => offset === undefined)) {
    return [{ ok: true, text: `group "${group}" has committed nothing yet` }];
  }
  const left = committed.reduce((sum: number, offset, i) => sum + Math.max(0, end[i]! - (offset ?? 0)), 0);
  return [{ ok: true, text: `group "${group}" has ${left} of them to read` }];
}
