/**
 * Settings of the transactional sink, and what the broker has to say to them.
 *
 * @module
 */
import { type Duration, formatDuration, parseDuration } from "../../../lib/duration.ts";
import type { SinkRecovery } from "../../../lib/connector.ts";
import type { KafkaClient } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { checkTransactionalId } from "./producers.ts";
import {
  checkTopic,
  invalid,
  type KafkaRecordOptions,
  type RecordSettings,
  recordSettings,
} from "./settings.ts";

/** Settings of {@link transactionalKafkaSink}. */
export interface TransactionalKafkaSinkOptions<T = unknown> extends KafkaRecordOptions<T> {
  /**
   * Name of the producer: its own for each sink, and the same in every run. Whoever starts with it puts an end to whoever had it. It
   * may not end in `#` and a number.
   */
  readonly transactionalId: string;
  /** Topic that says which checkpoints were committed; made where it is missing. Default: `<topic>.checkpoints`. */
  readonly markerTopic?: string;
  /**
   * After how long the broker gives up a transaction that is not committed, at least 1 s. Has to be well above the time from one
   * checkpoint to the end of the next, and not above `transaction.max.timeout.ms` of the broker (15 minutes unless set). Default 10
   * minutes, or twice the checkpoint interval where that is more.
   */
  readonly transactionTimeout?: Duration;
}

/** {@link TransactionalKafkaSinkOptions} with everything said. */
export interface TransactionalSettings extends RecordSettings {
  readonly transactionalId: string;
  readonly markerTopic: string;
  /** Undefined: by the checkpoint interval. */
  readonly transactionTimeoutMs: number | undefined;
}

/** @throws {MailerError} `invalid_kafka_options`, `invalid_duration` */
export function transactionalSettings<T>(options: TransactionalKafkaSinkOptions<T>): TransactionalSettings {
  const { transactionalId, topic } = options;
  checkTransactionalId(transactionalId);
  const settings = recordSettings(options);
  if (typeof topic === "function" && options.markerTopic === undefined) {
    throw invalid("`markerTopic` is needed where the topic is chosen by record");
  }
  const markerTopic = options.markerTopic ?? `${String(topic)}.checkpoints`;
  checkTopic("markerTopic", markerTopic);
  if (markerTopic === topic) throw invalid("`markerTopic` and `topic` are not the same");
  const { transactionTimeout } = options;
  const transactionTimeoutMs = transactionTimeout === undefined
    ? undefined
    : parseDuration(transactionTimeout);
  if (transactionTimeoutMs !== undefined && !(transactionTimeoutMs >= 1000)) {
    throw invalid("`transactionTimeout` is at least 1s");
  }
  return { ...settings, transactionalId, markerTopic, transactionTimeoutMs };
}

const LEAST_DEFAULT_MS = 600_000;
const MOST_MARGIN_MS = 60_000;
const LONGEST = "transaction.max.timeout.ms";

/**
 * How long a transaction may take, ms. Asks the broker, and changes nothing.
 *
 * @param interval From checkpoint to checkpoint, ms.
 * @throws {MailerError} `invalid_kafka_options` where the timeout is so short that transactions would be lost,
 *   `kafka_transaction_timeout` where the broker does not allow so long a one.
 */
export async function transactionTimeout(
  client: KafkaClient,
  settings: TransactionalSettings,
  interval: number,
  context: SinkRecovery,
): Promise<number> {
  const timeout = settings.transactionTimeoutMs ?? Math.max(LEAST_DEFAULT_MS, 2 * interval);
  if (timeout <= interval + Math.min(interval, MOST_MARGIN_MS)) {
    throw invalid(
      `\`transactionTimeout\` is ${formatDuration(timeout)}, and checkpoints are ${
        formatDuration(interval)
      } apart: ` +
        "transactions would be given up before they are committed",
    );
  }
  const longest = await longestAllowed(client, context);
  if (timeout <= longest) return timeout;
  throw new KafkaError(
    "kafka_transaction_timeout",
    `transactionTimeout is ${formatDuration(timeout)}, and the broker allows ${
      formatDuration(longest)
    } (${LONGEST})`,
    {
      lasting: true,
      hint: `make transactionTimeout smaller but more than the interval of checkpoints, ${
        formatDuration(interval)
      }, or raise ${LONGEST} of the brokers`,
    },
  );
}

async function longestAllowed(client: KafkaClient, { logger, signal }: SinkRecovery): Promise<number> {
  try {
    const settings = await client.admin.settings({ broker: undefined }, [LONGEST], { signal });
    return Number(settings.get(LONGEST) ?? Infinity);
  } catch (error) {
    if (!(error instanceof KafkaError) || error.code !== "kafka_not_authorised") throw error;
    logger.log("info", "the longest transaction timeout may not be read", { error: error.message });
    return Infinity; // the broker refuses the producer
  }
}
