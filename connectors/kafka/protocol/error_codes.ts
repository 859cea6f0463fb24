/**
 * The errors brokers answer with, by number: their name, whether the same request may succeed later, and what they are here.
 *
 * @module
 */
import { KafkaError, type KafkaErrorCode } from "../errors.ts";

/** What is known of an error. */
export interface BrokerError {
  /** Its name in Kafka's own list. */
  readonly name: string;
  /** The same request may succeed later. */
  readonly retriable: boolean;
  /** The leader or coordinator is another one by now: ask for metadata before trying again. */
  readonly moved: boolean;
  /** What it is in our list. */
  readonly code: KafkaErrorCode;
}

type Kind = "" | "retry" | "moved";

const row = (name: string, kind: Kind = "", code: KafkaErrorCode = "kafka_broker"): BrokerError => ({
  name,
  retriable: kind !== "",
  moved: kind === "moved",
  code,
});

const ERRORS: ReadonlyMap<number, BrokerError> = new Map([
  [-1, row("UNKNOWN_SERVER_ERROR")],
  [1, row("OFFSET_OUT_OF_RANGE", "", "kafka_offset_out_of_range")],
  [2, row("CORRUPT_MESSAGE", "retry", "kafka_corrupt")],
  [3, row("UNKNOWN_TOPIC_OR_PARTITION", "moved", "kafka_unknown_topic")],
  [4, row("INVALID_FETCH_SIZE", "", "kafka_invalid_setting")],
  [5, row("LEADER_NOT_AVAILABLE", "moved")],
  [6, row("NOT_LEADER_OR_FOLLOWER", "moved")],
  [7, row("REQUEST_TIMED_OUT", "retry", "kafka_timeout")],
  [8, row("BROKER_NOT_AVAILABLE", "moved")],
  [9, row("REPLICA_NOT_AVAILABLE", "moved")],
  [10, row("MESSAGE_TOO_LARGE", "", "kafka_record_too_large")],
  [12, row("OFFSET_METADATA_TOO_LARGE")],
  [13, row("NETWORK_EXCEPTION", "moved", "kafka_unreachable")],
  [14, row("COORDINATOR_LOAD_IN_PROGRESS", "retry")],
  [15, row("COORDINATOR_NOT_AVAILABLE", "moved")],
  [16, row("NOT_COORDINATOR", "moved")],
  [17, row("INVALID_TOPIC_EXCEPTION", "", "kafka_invalid_setting")],
  [18, row("RECORD_LIST_TOO_LARGE", "", "kafka_record_too_large")],
  [19, row("NOT_ENOUGH_REPLICAS", "retry")],
  [20, row("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "retry")],
  [21, row("INVALID_REQUIRED_ACKS", "", "kafka_invalid_setting")],
  [22, row("ILLEGAL_GENERATION", "", "kafka_generation_lost")],
  [23, row("INCONSISTENT_GROUP_PROTOCOL", "", "kafka_invalid_setting")],
  [24, row("INVALID_GROUP_ID", "", "kafka_invalid_setting")],
  [25, row("UNKNOWN_MEMBER_ID", "", "kafka_generation_lost")],
  [26, row("INVALID_SESSION_TIMEOUT", "", "kafka_invalid_setting")],
  [27, row("REBALANCE_IN_PROGRESS", "", "kafka_generation_lost")],
  [28, row("INVALID_COMMIT_OFFSET_SIZE")],
  [29, row("TOPIC_AUTHORIZATION_FAILED", "", "kafka_not_authorised")],
  [30, row("GROUP_AUTHORIZATION_FAILED", "", "kafka_not_authorised")],
  [31, row("CLUSTER_AUTHORIZATION_FAILED", "", "kafka_not_authorised")],
  [32, row("INVALID_TIMESTAMP", "", "kafka_invalid_record")],
  [33, row("UNSUPPORTED_SASL_MECHANISM", "", "kafka_authentication_failed")],
  [34, row("ILLEGAL_SASL_STATE", "", "kafka_authentication_failed")],
  [35, row("UNSUPPORTED_VERSION", "", "kafka_unsupported")],
  [36, row("TOPIC_ALREADY_EXISTS", "", "kafka_invalid_setting")],
  [37, row("INVALID_PARTITIONS", "", "kafka_invalid_setting")],
  [38, row("INVALID_REPLICATION_FACTOR", "", "kafka_invalid_setting")],
  [39, row("INVALID_REPLICA_ASSIGNMENT", "", "kafka_invalid_setting")],
  [40, row("INVALID_CONFIG", "", "kafka_invalid_setting")],
  [41, row("NOT_CONTROLLER", "moved")],
  [42, row("INVALID_REQUEST")],
  [43, row("UNSUPPORTED_FOR_MESSAGE_FORMAT", "", "kafka_unsupported")],
  [44, row("POLICY_VIOLATION", "", "kafka_invalid_setting")],
  [45, row("OUT_OF_ORDER_SEQUENCE_NUMBER")],
  [46, row("DUPLICATE_SEQUENCE_NUMBER")],
  [47, row("INVALID_PRODUCER_EPOCH", "", "kafka_fenced")],
  [48, row("INVALID_TXN_STATE", "", "kafka_transaction_failed")],
  [49, row("INVALID_PRODUCER_ID_MAPPING", "", "kafka_fenced")],
  [50, row("INVALID_TRANSACTION_TIMEOUT", "", "kafka_transaction_timeout")],
  [51, row("CONCURRENT_TRANSACTIONS", "retry")],
  [52, row("TRANSACTION_COORDINATOR_FENCED", "", "kafka_fenced")],
  [53, row("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "", "kafka_not_authorised")],
  [54, row("SECURITY_DISABLED", "", "kafka_invalid_setting")],
  [55, row("OPERATION_NOT_ATTEMPTED")],
  [56, row("KAFKA_STORAGE_ERROR", "moved")],
  [57, row("LOG_DIR_NOT_FOUND")],
  [58, row("SASL_AUTHENTICATION_FAILED", "", "kafka_authentication_failed")],
  [59, row("UNKNOWN_PRODUCER_ID")],
  [60, row("REASSIGNMENT_IN_PROGRESS")],
  [67, row("INVALID_PRINCIPAL_TYPE")],
  [68, row("NON_EMPTY_GROUP", "", "kafka_generation_lost")],
  [69, row("GROUP_ID_NOT_FOUND")],
  [70, row("FETCH_SESSION_ID_NOT_FOUND", "retry")],
  [71, row("INVALID_FETCH_SESSION_EPOCH", "retry")],
  [72, row("LISTENER_NOT_FOUND", "moved")],
  [73, row("TOPIC_DELETION_DISABLED", "", "kafka_invalid_setting")],
  [74, row("FENCED_LEADER_EPOCH", "moved")],
  [75, row("UNKNOWN_LEADER_EPOCH", "retry")],
  [76, row("UNSUPPORTED_COMPRESSION_TYPE", "", "kafka_unsupported")],
  [77, row("STALE_BROKER_EPOCH")],
  [78, row("OFFSET_NOT_AVAILABLE", "retry")],
  [79, row("MEMBER_ID_REQUIRED")],
  [80, row("PREFERRED_LEADER_NOT_AVAILABLE", "moved")],
  [81, row("GROUP_MAX_SIZE_REACHED", "", "kafka_invalid_setting")],
  [82, row("FENCED_INSTANCE_ID", "", "kafka_generation_lost")],
  [83, row("ELIGIBLE_LEADERS_NOT_AVAILABLE", "moved")],
  [87, row("INVALID_RECORD", "", "kafka_invalid_record")],
  [88, row("UNSTABLE_OFFSET_COMMIT", "retry")],
  [89, row("THROTTLING_QUOTA_EXCEEDED", "retry")],
  [90, row("PRODUCER_FENCED", "", "kafka_fenced")],
  [105, row("TRANSACTIONAL_ID_NOT_FOUND")],
  [110, row("FENCED_MEMBER_EPOCH", "", "kafka_generation_lost")],
  [113, row("STALE_MEMBER_EPOCH", "", "kafka_generation_lost")],
  [120, row("TRANSACTION_ABORTABLE", "", "kafka_transaction_failed")],
]);

/** What is known of the error with this number; 0 is none. */
export function brokerError(number: number): BrokerError {
  return ERRORS.get(number) ?? row(`error ${number}`);
}

const HINTS: ReadonlyMap<KafkaErrorCode, string> = new Map<KafkaErrorCode, string>([
  ["kafka_not_authorised", "give the user the right to do this (ACL), or check which user is configured"],
  ["kafka_unknown_topic", "create the topic, or check its name"],
  ["kafka_record_too_large", "raise max.message.bytes of the topic, or make records or batches smaller"],
  [
    "kafka_invalid_record",
    "check timestamps (brokers refuse those more than an hour ahead) and the topic's settings",
  ],
  [
    "kafka_transaction_timeout",
    "make the transaction timeout smaller, or raise transaction.max.timeout.ms of the brokers",
  ],
  ["kafka_authentication_failed", "check user, password and mechanism"],
]);

/**
 * The error for an answer.
 *
 * @param number What the broker answered; not 0.
 * @param doing What was asked for, as in "while …", e.g. `writing to orders/3`.
 * @param detail What the broker says besides.
 */
export function errorOf(number: number, doing: string, detail?: string): KafkaError {
  const { name, retriable, code } = brokerError(number);
  const hint = HINTS.get(code);
  return new KafkaError(code, `the broker answered ${name} while ${doing}${detail ? `: ${detail}` : ""}`, {
    retriable,
    broker: name,
    ...(hint === undefined ? {} : { hint }),
  });
}
