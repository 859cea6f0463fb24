/**
 * Source `kafka`: records of topics.
 *
 * - A split is a partition, called `topic/partition`; its positions are offsets.
 * - Restored positions win over the group's offsets, and these over `start`.
 * - Without a group this process reads all partitions. With one, processes share them; a pipeline that keeps state by key has to get
 *   all of them.
 * - With checkpoints, offsets are committed to the group when a checkpoint is complete. Without, what was handed out is committed
 *   every few seconds and at the end: after a crash, what was under way is not read again (at most once).
 *
 * The parts are in `source/`; each says there what it guards.
 *
 * @module
 */
import type { Source, SourceContext, SourceReader } from "../../lib/connector.ts";
import { checkKafka } from "./source/check.ts";
import { checkedOptions, describeOptions, type KafkaSourceOptions } from "./source/options.ts";
import { openKafka } from "./source/reader.ts";

export type { KafkaSourceOptions, KafkaStart } from "./source/options.ts";

/**
 * Records from Kafka. The record's key and headers are Kafka's, its time is the record's timestamp, and offsets are the partition's.
 *
 * Errors while reading: those of {@link KafkaError}; `kafka_offset_out_of_range` where records were deleted before they were read;
 * `kafka_group_shared` where another process takes partitions of a pipeline that keeps state by key. Records that cannot be decoded
 * are subject to the source's failure policy.
 *
 * @throws {MailerError} `invalid_kafka_options`, `invalid_duration`
 */
export function kafkaSource<T = unknown>(options: KafkaSourceOptions<T>): Source<T> {
  const checked = checkedOptions(options);
  return {
    type: "kafka",
    describe: () => describeOptions(checked),
    check: (context) => checkKafka(checked, context),
    open: (context: SourceContext) => openKafka(checked, context) as Promise<SourceReader<T>>,
  };
}
