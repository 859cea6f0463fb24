/**
 * Sink `kafka`: writes records to topics as they come. Whoever reads them without `read_committed` may see records of a run that
 * failed, and after a restart again: at least once. `transactional_sink.ts` writes exactly once.
 *
 * @module
 */
import type { Sink, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { preparedFormat } from "../../lib/format/mod.ts";
import { checkPlain } from "./sink/check.ts";
import { openPlainWriter, type PlainSettings } from "./sink/plain_writer.ts";
import { describeSettings, invalid, type KafkaRecordOptions, recordSettings } from "./sink/settings.ts";

/** Settings of {@link kafkaSink}. */
export interface KafkaSinkOptions<T = unknown> extends KafkaRecordOptions<T> {
  /**
   * Who has to have a batch before it counts as written: all replicas that are in step (default), the leader, or nobody. With `all` a
   * batch that is sent again, because an answer was lost, is not there twice.
   */
  readonly acks?: "all" | "leader" | "none";
}

/**
 * Writes records to Kafka, those of a key in their order. A flush, so every checkpoint, waits until all are acknowledged.
 *
 * The time of a record is its event time, but never later than now. Brokers go by it when they delete what is old (`retention.ms`).
 *
 * A record that cannot be encoded, is too large, or is refused by the broker for what is in it (its time, say) goes to the failure
 * policy of the sink. Other errors have the codes of the Kafka client: `kafka_unknown_topic`, `kafka_unreachable` …; they show at the
 * write or flush after, and where the sink has a retry policy, what had failed is sent again.
 *
 * @throws {MailerError} `invalid_kafka_options`, `invalid_duration`
 */
export function kafkaSink<T = unknown>(options: KafkaSinkOptions<T>): Sink<T> {
  const { acks = "all" } = options;
  if (!["all", "leader", "none"].includes(acks)) {
    throw invalid(`\`acks\` is all, leader or none, not ${acks}`);
  }
  const settings: PlainSettings = { ...recordSettings(options), acks };
  return {
    type: "kafka",
    describe: () => ({ ...describeSettings(settings), acks }),
    check: (context) => checkPlain(settings, context),
    async open(context: SinkContext): Promise<SinkWriter<T>> {
      const format = await preparedFormat(settings.format, context);
      return await openPlainWriter({ ...settings, format }, context);
    },
  };
}
