/**
 * What can go wrong with Kafka, as a closed set of codes.
 *
 * A subclass exists where a caller reacts differently: a fenced producer stops for good, an unknown outcome is probed, an offset
 * that is gone is a matter of policy, a lost generation drops work. Everything else is told by its code.
 *
 * @module
 */
import { type ErrorOptionsWithHint, MailerError } from "../../lib/errors.ts";

/** All codes of errors the Kafka client raises. */
export type KafkaErrorCode =
  /** No broker could be reached, or the connection went away. */
  | "kafka_unreachable"
  /** TLS could not be set up: a certificate that is not trusted or missing, or one side speaks TLS and the other does not. */
  | "kafka_tls"
  /** User, password or mechanism was refused. */
  | "kafka_authentication_failed"
  /** The user may not do this with this topic, group or transactional id. */
  | "kafka_not_authorised"
  /** No answer in time. Whether the broker did it is not known; where that matters the code is `kafka_unknown_outcome`. */
  | "kafka_timeout"
  /** The topic or partition does not exist. */
  | "kafka_unknown_topic"
  /** {@link OffsetOutOfRangeError}. */
  | "kafka_offset_out_of_range"
  /** {@link FencedError}. */
  | "kafka_fenced"
  /** {@link UnknownOutcomeError}. */
  | "kafka_unknown_outcome"
  /** The open transaction failed and can only be aborted. */
  | "kafka_transaction_failed"
  /** The broker does not allow so long a transaction timeout. */
  | "kafka_transaction_timeout"
  /** {@link GenerationLostError}. */
  | "kafka_generation_lost"
  /** A record or batch is larger than topic or broker allow. */
  | "kafka_record_too_large"
  /** The broker refused a record for what is in it, e.g. its timestamp. */
  | "kafka_invalid_record"
  /** An answer did not say for every partition that was asked or sent what became of it. */
  | "kafka_incomplete_answer"
  /** What was read is damaged: a checksum, a length, a compressed block. */
  | "kafka_corrupt"
  /** The broker is too old or too new for a request, or a codec is unknown. */
  | "kafka_unsupported"
  /** A setting makes no sense, or the broker refused it. */
  | "kafka_invalid_setting"
  /** The client, producer, fetcher or group has been closed. */
  | "kafka_closed"
  /** The broker answered with another error; its name is in `broker`. */
  | "kafka_broker";

/** Errors that another start would meet again. */
const LASTING: ReadonlySet<KafkaErrorCode> = new Set<KafkaErrorCode>([
  "kafka_authentication_failed",
  "kafka_not_authorised",
  "kafka_invalid_setting",
  "kafka_tls",
  "kafka_transaction_timeout",
  "kafka_unsupported",
]);

/** What a {@link KafkaError} may carry besides its message. */
export interface KafkaErrorOptions extends ErrorOptionsWithHint {
  /** Whether the same request may succeed later. Default: false. */
  readonly retriable?: boolean;
  /** The broker's own name for the error, e.g. `NOT_LEADER_OR_FOLLOWER`. */
  readonly broker?: string;
}

/** Base of all errors the Kafka client raises. */
export class KafkaError extends MailerError {
  /** One of a closed set. */
  declare readonly code: KafkaErrorCode;
  /** Whether the same request may succeed later. The client has already retried for as long as it was told to. */
  readonly retriable: boolean;
  /** The broker's own name for the error, where a broker answered. */
  readonly broker: string | undefined;

  /** An error a caller can tell by its code. */
  constructor(code: KafkaErrorCode, message: string, options: KafkaErrorOptions = {}) {
    super(code, message, { lasting: LASTING.has(code), ...options });
    this.retriable = options.retriable ?? false;
    this.broker = options.broker;
  }
}

/**
 * A newer producer has the same transactional id, or the broker gave the transaction up because it took too long; the two cannot
 * be told apart. What was not committed is aborted. Whoever gets this stops: a retry would fence the other one.
 */
export class FencedError extends KafkaError {
  /** The transactional id both use. */
  readonly transactionalId: string;

  /** Its code is `kafka_fenced`. */
  constructor(transactionalId: string, doing: string, options: KafkaErrorOptions = {}) {
    super("kafka_fenced", `transactional id "${transactionalId}" was taken over while ${doing}`, {
      hint: "another instance runs with this id, or a transaction took longer than its timeout: " +
        "run one instance only, and keep the transaction timeout well above the checkpoint interval",
      ...options,
    });
    this.transactionalId = transactionalId;
  }
}

/**
 * A commit or abort was sent, and the answer never came: it may have happened or not. A new producer with the same id settles it
 * (nothing is in flight after its start); then markers tell which it was.
 */
export class UnknownOutcomeError extends KafkaError {
  /** The transactional id. */
  readonly transactionalId: string;

  /** Its code is `kafka_unknown_outcome`. */
  constructor(transactionalId: string, doing: "commit" | "abort", options: KafkaErrorOptions = {}) {
    super(
      "kafka_unknown_outcome",
      `transactional id "${transactionalId}": no answer to the ${doing}, it may have happened or not`,
      {
        hint: "start again with the same transactional id, and look whether the marker is there",
        ...options,
      },
    );
    this.transactionalId = transactionalId;
  }
}

/** A position behind or in front of what the partition still has. */
export class OffsetOutOfRangeError extends KafkaError {
  /** Topic of the partition. */
  readonly topic: string;
  /** Number of the partition. */
  readonly partition: number;
  /** The offset that was asked for. */
  readonly offset: number;
  /** The first offset the partition still has; undefined where that could not be found out. */
  readonly earliest: number | undefined;
  /** The offset the next record will get; undefined where that could not be found out. */
  readonly latest: number | undefined;

  /** Its code is `kafka_offset_out_of_range`. */
  constructor(
    at: { readonly topic: string; readonly partition: number; readonly offset: number },
    range: { readonly earliest: number; readonly latest: number } | undefined,
    options: KafkaErrorOptions = {},
  ) {
    const has = range === undefined ? "" : `: it has ${range.earliest} to ${range.latest}`;
    super(
      "kafka_offset_out_of_range",
      `${at.topic}/${at.partition} has no offset ${at.offset}${has}`,
      {
        hint: "the records were deleted before they were read (retention), or the topic was made anew: " +
          "say what to do with what is lost, or start from a position that exists",
        broker: "OFFSET_OUT_OF_RANGE",
        ...options,
      },
    );
    this.topic = at.topic;
    this.partition = at.partition;
    this.offset = at.offset;
    this.earliest = range?.earliest;
    this.latest = range?.latest;
  }
}

/** The member no longer owns what it wants to commit: the group went on without it, or is rebalancing. */
export class GenerationLostError extends KafkaError {
  /** Name of the group. */
  readonly group: string;

  /** Its code is `kafka_generation_lost`. */
  constructor(group: string, options: KafkaErrorOptions = {}) {
    super(
      "kafka_generation_lost",
      `group "${group}" has moved on: offsets of this member are not taken any more`,
      {
        hint: "drop what was read of the revoked partitions; whoever owns them now reads it again",
        ...options,
      },
    );
    this.group = group;
  }
}
