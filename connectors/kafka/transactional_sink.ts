/**
 * Sink `txnKafka`: writes records in transactions that are committed with checkpoints, so that readers with `read_committed` see
 * each of them exactly once.
 *
 * R1 Before anything is asked, the producers of earlier runs are fenced: what is not visible then will never be.
 * R2 A checkpoint without records has nothing to commit, so it is committed.
 * R3 Where several transactions belong to a checkpoint and only the first of them were committed, the run may only go on from a
 *    checkpoint that has these.
 *
 * @module
 */
import type {
  Committable,
  Recovered,
  Sink,
  SinkContext,
  SinkRecovery,
  SinkWriter,
} from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import { preparedFormat } from "../../lib/format/mod.ts";
import { checkTransactional } from "./sink/check.ts";
import { kafkaCommittable } from "./sink/committable.ts";
import { countCommitted } from "./sink/markers.ts";
import { Producers } from "./sink/producers.ts";
import { connect, describeSettings } from "./sink/settings.ts";
import {
  type TransactionalKafkaSinkOptions,
  type TransactionalSettings,
  transactionalSettings,
} from "./sink/transactional_settings.ts";
import { openTransactionalWriter, PROBE_TIMEOUT_MS } from "./sink/transactional_writer.ts";

export type { TransactionalKafkaSinkOptions } from "./sink/transactional_settings.ts";

/**
 * Writes records to Kafka exactly once, for readers with `read_committed`. They see them with the next checkpoint.
 *
 * The time of a record is its event time, but never later than now. Brokers go by it when they delete what is old (`retention.ms`).
 *
 * The pipeline has to take checkpoints (`no_checkpointing`). A record that cannot be encoded, or is larger than the topic takes, goes
 * to the failure policy; any other failure ends the run, which goes on from its last checkpoint. `FencedError` (`kafka_fenced`): another
 * instance has started with the same id, or a transaction took longer than its timeout; starting again would put an end to the other one.
 *
 * Where a pipeline writes to several topics, one sink with a `topic` function does it in one transaction. Two sinks have a transaction
 * each: a crash between their commits leaves one of them behind, and the run does not start (`half_committed`).
 *
 * Where after a crash it cannot be told whether a checkpoint was committed, the run does not start: `checkpoint_undecided`,
 * `half_committed`.
 *
 * @throws {MailerError} `invalid_kafka_options`, `invalid_duration`
 */
export function transactionalKafkaSink<T = unknown>(options: TransactionalKafkaSinkOptions<T>): Sink<T> {
  const settings = transactionalSettings(options), { transactionalId, markerTopic } = settings;
  let partly: PartlyCommitted | undefined;
  return {
    type: "txnKafka",
    commits: "atomic",
    describe: () => ({ ...describeSettings(settings), transactionalId, markerTopic }),
    check: (context) => checkTransactional(settings, context),
    async recover(committable: Committable, context: SinkRecovery): Promise<Recovered> {
      const found = await recover(settings, committable, context);
      if (typeof found === "string") return found;
      partly = found;
      return "lost";
    },
    async open(context: SinkContext): Promise<SinkWriter<T>> {
      checkCheckpoints(context);
      checkPartly(settings, partly, context.checkpoints!.restored);
      partly = undefined;
      const format = await preparedFormat(settings.format, context);
      return await openTransactionalWriter({ ...settings, format }, context);
    },
  };
}

/** Of producers that write nothing, ms. */
const FENCING_TIMEOUT_MS = 60_000;

/** Of a checkpoint that was lost, transactions up to that of an earlier one were committed. */
interface PartlyCommitted {
  readonly run: string;
  readonly lost: number;
  /** The last checkpoint whose transaction was committed. */
  readonly through: number;
}

async function recover(
  settings: TransactionalSettings,
  committable: Committable,
  context: SinkRecovery,
): Promise<Recovered | PartlyCommitted> {
  const { transactionalId } = settings, { clock, signal } = context;
  const { run, checkpoint, transactions } = kafkaCommittable(transactionalId, committable);
  if (transactions.length === 0) return "committed"; // R2
  const client = await connect(settings, context);
  try {
    const fencing = { ...settings, transactionTimeoutMs: FENCING_TIMEOUT_MS };
    await (await Producers.start(client, fencing, signal)).close(); // R1
    const probe = { clock, signal, timeoutMs: PROBE_TIMEOUT_MS };
    const count = await countCommitted(client, { transactionalId, run }, transactions, probe);
    if (count === transactions.length) return "committed";
    return count === 0 ? "lost" : { run, lost: checkpoint, through: transactions[count - 1]!.checkpoint };
  } finally {
    await client.close();
  }
}

function checkCheckpoints({ id, checkpoints }: SinkContext): void {
  if (checkpoints !== undefined) return;
  throw new MailerError(
    "no_checkpointing",
    `sink "${id}" commits with checkpoints, and the pipeline takes none: nothing it writes would be seen`,
    {
      lasting: true,
      hint: "switch checkpointing on with an interval, or write with the plain kafka sink, at least once",
    },
  );
}

/** R3. */
function checkPartly(
  { transactionalId }: TransactionalSettings,
  partly: PartlyCommitted | undefined,
  restored: Committable,
): void {
  if (partly === undefined) return;
  const from = restored === undefined ? undefined : kafkaCommittable(transactionalId, restored);
  if (from?.run === partly.run && from.checkpoint >= partly.through) return;
  throw new MailerError(
    "half_committed",
    `transactional id "${transactionalId}": checkpoint ${partly.lost} is lost, and what belongs to it up to checkpoint ` +
      `${partly.through} was committed: going on would write that again`,
    {
      lasting: true,
      hint:
        "take what is behind the last complete checkpoint out of the output, or accept it twice and start without the checkpoint",
    },
  );
}
