/**
 * What a transactional Kafka sink commits, and what is needed to find out later whether it was.
 *
 * C1 It names every transaction that was prepared and not committed when it was made, the oldest first. None: there is nothing to
 *    commit, and so nothing to find out.
 * C2 Each transaction has a marker, a record of its own in the marker topic: visible to a `read_committed` reader if, and only if, the
 *    transaction was committed.
 *
 * @module
 */
import type { Committable } from "../../../lib/connector.ts";
import { MailerError } from "../../../lib/errors.ts";

/** One transaction that is complete, and only has to be committed. */
export interface PreparedTransaction {
  /** Number of the checkpoint it was prepared for. */
  readonly checkpoint: number;
  /** Transactional id of its producer. */
  readonly producer: string;
  /** Where its marker lies. */
  readonly marker: MarkerPlace;
}

/** Where a marker lies. */
export interface MarkerPlace {
  readonly topic: string;
  readonly partition: number;
  /** Null: the broker did not say. */
  readonly offset: number | null;
  /** It does not lie in front of this. */
  readonly from: number;
}

/** What is committed with a checkpoint. */
export interface KafkaCommittable {
  /** The id of the sink. */
  readonly transactionalId: string;
  /** Tells the run from all others. */
  readonly run: string;
  readonly checkpoint: number;
  readonly transactions: readonly PreparedTransaction[];
  /** Behind the markers of all that was prepared up to this checkpoint. */
  readonly markersTo: number;
}

/**
 * The committable of the sink with this id.
 *
 * @throws {MailerError} `output_changed` where it is that of another sink.
 */
export function kafkaCommittable(transactionalId: string, committable: Committable): KafkaCommittable {
  if (isKafkaCommittable(committable) && committable.transactionalId === transactionalId) return committable;
  const other = isKafkaCommittable(committable)
    ? `the transactional id "${committable.transactionalId}"`
    : "another kind of sink";
  throw new MailerError(
    "output_changed",
    `transactional id "${transactionalId}": the checkpoint was taken with ${other}`,
    {
      lasting: true,
      hint: "start once with the former id, which alone can tell what was committed; " +
        "or go on from a savepoint that is complete, with a sink id of its own",
    },
  );
}

function isKafkaCommittable(value: Committable): value is KafkaCommittable {
  const { transactionalId, run, checkpoint, transactions, markersTo } = (value ?? {}) as Partial<
    KafkaCommittable
  >;
  return typeof transactionalId === "string" && typeof run === "string" && isCount(checkpoint) &&
    isCount(markersTo) && Array.isArray(transactions) && transactions.every(isPrepared);
}

function isPrepared(value: unknown): value is PreparedTransaction {
  const { checkpoint, producer, marker } = (value ?? {}) as Partial<PreparedTransaction>;
  const { topic, partition, offset = null, from } = (marker ?? {}) as Partial<MarkerPlace>;
  return isCount(checkpoint) && typeof producer === "string" && typeof topic === "string" &&
    isCount(partition) &&
    (offset === null || isCount(offset)) && isCount(from);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && value as number >= 0;
}
