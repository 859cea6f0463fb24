/**
 * Fields that several components share, and those every node has.
 *
 * @module
 */
import type * as blocks from "../blocks.ts";
import { type AnyFields, type Field, type Fields, types } from "../field_type.ts";

/** Names of nodes and of their outputs. */
export const NAME = types.matching(/^[A-Za-z0-9_-]+$/, "letters, digits, _ and -");

/** How bytes and values become each other. */
export const ENCODING = types.oneOfWith(["json", "string", "bytes"], { same: { "": "json" } });

/** The same of records of Kafka. */
export const KAFKA_ENCODING = types.oneOfWith(["json", "string", "bytes", "avro"], { same: { "": "json" } });

/** Where the schemas of Avro are. */
export const SCHEMA_REGISTRY: Field<blocks.SchemaRegistryBlock> = {
  type: types.block<blocks.SchemaRegistryBlock>({
    url: {
      type: types.matching(/^https?:\/\/[^@]+$/, "an http or https URL without a login"),
      summary: "Base of a registry that speaks Confluent's API",
      required: true,
      example: "http://localhost:8081",
    },
    username: { type: types.text(), summary: "User name", example: "${REGISTRY_USER}" },
    password: {
      type: types.text(),
      summary: "Password; take it from the environment",
      secret: true,
      example: "${REGISTRY_PASSWORD}",
    },
    token: {
      type: types.text(),
      summary: "Token in place of username and password; take it from the environment",
      secret: true,
      example: "${REGISTRY_TOKEN}",
    },
  }, {
    check({ username, password, token }, report) {
      if ((username === undefined) !== (password === undefined)) {
        const [there, absent] = username === undefined ? ["password", "username"] : ["username", "password"];
        report([absent!], "missing", `${there} needs ${absent} beside it`);
      } else if (username !== undefined && token !== undefined) {
        report(["token"], "excluded", '"token" cannot stand beside "username"');
      }
    },
  }),
  summary: "Where the schemas of avro are",
};

/** A schema of Avro. */
export const AVRO_SCHEMA = types.schema("an Avro schema");

/** `brokers`, wherever Kafka is spoken. */
export const BROKERS: Field<readonly string[]> = {
  type: types.list(types.matching(/^[^\s,]+$/, "host:port"), 1),
  summary: "Brokers to ask first, as host:port",
  required: true,
  example: ["localhost:9092"],
};

/** Login at a Kafka broker. */
export const SASL: Field<blocks.SaslBlock> = {
  type: types.block<blocks.SaslBlock>({
    mechanism: {
      type: types.oneOf("plain", "scram-sha-256", "scram-sha-512"),
      summary: "How to log in",
      required: true,
      example: "scram-sha-256",
    },
    username: { type: types.text(), summary: "User name", required: true, example: "${KAFKA_USER}" },
    password: {
      type: types.text(),
      summary: "Password; take it from the environment",
      required: true,
      secret: true,
      example: "${KAFKA_PASSWORD}",
    },
  }),
  summary: "Login; none without the block",
};

/** Encryption towards a Kafka broker. */
export const TLS: Field<blocks.TlsBlock> = {
  type: types.block<blocks.TlsBlock>({
    caFile: { type: types.text(), summary: "Certificates to trust, a PEM file", example: "certs/ca.pem" },
    certFile: { type: types.text(), summary: "Own certificate, a PEM file", example: "certs/client.pem" },
    keyFile: {
      type: types.text(),
      summary: "Key of the own certificate, a PEM file",
      example: "certs/client.key",
    },
    insecureSkipVerify: {
      type: types.boolean(),
      summary: "Accept any certificate: for tests only",
      default: false,
    },
  }, {
    check({ certFile, keyFile }, report) {
      if ((certFile === undefined) === (keyFile === undefined)) return;
      const [there, absent] = certFile === undefined ? ["keyFile", "certFile"] : ["certFile", "keyFile"];
      report([absent!], "missing", `${there} needs ${absent} beside it`);
    },
  }),
  summary: "Encryption; none without the block",
};

/** Fields of a `watermark` block. */
export const WATERMARK: Field<blocks.WatermarkBlock> = {
  type: types.block<blocks.WatermarkBlock>({
    maxOutOfOrderness: {
      type: types.duration(),
      summary: "How far a record may be behind the newest one of its split without being late",
      default: "0s",
      example: "5s",
    },
    idleTimeout: {
      type: types.duration(1),
      summary: "A split that gave nothing for so long holds no window open; never idle without it",
      example: "30s",
    },
    interval: {
      type: types.duration(1),
      summary: "Without effect: a watermark travels with every record",
      default: "200ms",
    },
  }),
  summary: "How event time goes on",
};

/** Fields of a `timestamp`. */
export const TIMESTAMP_FIELDS: Fields<blocks.TimestampBlock> = {
  field: { type: types.path(), summary: "Field with the event time", required: true, example: "at" },
  format: {
    type: types.timeFormat(),
    summary:
      "auto (RFC 3339 text or epoch milliseconds), rfc3339, epochMillis, epochSeconds, or a pattern of Unicode LDML letters",
    default: "auto",
    example: "yyyy-MM-dd HH:mm:ss",
  },
  timezone: {
    type: types.timezone(),
    summary: "IANA zone of texts that name none",
    default: "UTC",
    example: "Europe/Berlin",
  },
};

/** `retry`. */
export const RETRY: Field<blocks.RetryBlock> = {
  type: types.block<blocks.RetryBlock>({
    attempts: { type: types.int({ min: 1 }), summary: "How often it is tried in all", default: 3 },
    delay: { type: types.duration(), summary: "Wait before the second attempt", default: "1s" },
  }),
  summary: "Try again before the failure counts",
};

/** `csv` of a source. */
export const CSV: Field<blocks.CsvBlock> = {
  type: types.block<blocks.CsvBlock>({
    types: {
      type: types.map(types.oneOf("text", "number", "boolean", "json")),
      summary: "Types of columns; the others stay text",
      default: {},
      example: { delay: "number" },
    },
    delimiter: {
      type: types.matching(/^[^"\r\n]$/, "one character, no quote and no line end"),
      summary: "Character between cells",
      default: ",",
    },
    nulls: {
      type: types.list(types.text()),
      summary: "Texts that mean null in a typed column",
      default: [""],
    },
  }),
  summary: "How cells are read, with format csv",
  default: {},
};

/** `maxLineBytes` of line-wise sources. */
export const MAX_LINE_BYTES: Field<number> = {
  type: types.size(),
  summary: "Longest line that is accepted",
  default: "1MiB",
};

/** `format` of line-wise sources. */
export const LINE_FORMAT: Field<"ndjson" | "csv" | "lines"> = {
  type: types.oneOf("ndjson", "csv", "lines"),
  summary: "ndjson: a JSON value a line; csv: rows under a header row; lines: each line a text",
  default: "ndjson",
};

/** `label`, kept from the older format. */
export const LABEL: Field<string> = {
  type: types.text(),
  summary: "Name for people, shown beside the id",
};

/** `parallelism`, of an operator or of its block. */
export const PARALLELISM: Field<number> = {
  type: types.int({ min: 1, max: 1024 }),
  summary: "Copies that run side by side; beyond 1 the order of records is lost",
  default: 1,
};

/** Fields of every source, beside `type` and its block. */
export const SOURCE_FIELDS: AnyFields = {
  id: { type: NAME, summary: "Id of the source", default: "source" },
  timestamp: {
    type: types.block<blocks.TimestampBlock>(TIMESTAMP_FIELDS),
    summary: "Where event time is; without it the source's own time, else the time of reading",
  },
  watermark: WATERMARK,
  onError: {
    type: types.oneOf("fail", "drop", "dlq"),
    summary: "What becomes of a record that cannot be decoded or has no timestamp",
    default: "fail",
  },
};

const FROM: Field<readonly string[]> = {
  type: types.from(),
  summary:
    "What it reads: an id, an output such as split.eu, or several (their union); without it the operator before",
  example: ["a", "b"],
};

const ON_ERROR: Field<"fail" | "drop" | "dlq" | "retry"> = {
  type: types.oneOf("fail", "drop", "dlq", "retry"),
  summary: "What becomes of a record that fails; retry tries again and then fails",
  default: "fail",
};

/** Fields of every operator, beside `type` and its block. */
export const OPERATOR_FIELDS: AnyFields = {
  id: { type: NAME, summary: "Id of the operator; its state hangs on it", required: true, example: "totals" },
  from: FROM,
  onError: ON_ERROR,
  retry: RETRY,
  parallelism: PARALLELISM,
};

/** Fields of every sink, beside `type` and its block. */
export const SINK_FIELDS: AnyFields = {
  id: { type: NAME, summary: "Id of the sink", default: "sink" },
  from: { ...FROM, summary: `${FROM.summary}, or the last one` },
  onError: ON_ERROR,
  retry: RETRY,
};

/** Fields of a `dlq`, beside `type` and its block. */
export const DLQ_FIELDS: AnyFields = {
  id: { type: NAME, summary: "Id of the dead-letter sink", default: "dlq" },
};
