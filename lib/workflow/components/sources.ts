/**
 * Sources.
 *
 * @module
 */
import type * as blocks from "../blocks.ts";
import type { SourceComponent } from "../component.ts";
import { type AnyFields, type Fields, types } from "../field_type.ts";
import {
  AVRO_SCHEMA,
  BROKERS,
  CSV,
  ENCODING,
  KAFKA_ENCODING,
  LINE_FORMAT,
  MAX_LINE_BYTES,
  SASL,
  SCHEMA_REGISTRY,
  TLS,
  WATERMARK,
} from "./common.ts";

type KafkaAsWritten =
  & Omit<blocks.KafkaSourceBlock, "topics">
  & { topic?: string; topics?: readonly string[]; watermark?: blocks.WatermarkBlock };

const KAFKA_FIELDS: Fields<KafkaAsWritten> = {
  brokers: BROKERS,
  topic: { type: types.text(), summary: "Topic to read", example: "orders" },
  topics: {
    type: types.list(types.text(), 1),
    summary: "Topics to read, instead of topic",
    example: ["web", "app"],
  },
  groupID: { type: types.text(), summary: "Consumer group", example: "order-totals" },
  startFrom: {
    type: types.oneOf("earliest", "latest"),
    summary: "Where to start without a stored position",
    default: "earliest",
  },
  onOffsetLost: {
    type: types.oneOf("fail", "earliest", "latest"),
    summary: "What to do where the stored position is no longer in the topic",
    default: "fail",
  },
  exactlyOnce: {
    type: types.boolean(),
    summary: "Read committed records only, and keep positions in checkpoints alone",
    default: false,
  },
  parallel: {
    type: types.boolean(),
    summary: "One reader a partition, without a consumer group",
    default: false,
  },
  deserialize: { type: KAFKA_ENCODING, summary: "What record values are", default: "json" },
  schemaRegistry: { ...SCHEMA_REGISTRY, summary: "Where the schemas are, with deserialize: avro" },
  readerSchema: {
    type: AVRO_SCHEMA,
    summary: "Schema to read as, with deserialize: avro; else records are what they were written as",
    example: "schemas/order.avsc",
  },
  commitBatch: {
    type: types.int({ min: 0 }),
    summary: "Without effect: positions are committed with checkpoints, or every few seconds without them",
    default: 0,
  },
  commitMaxRetries: {
    type: types.int({ min: 0 }),
    summary: "Without effect: a commit that fails is made again with the next position",
    default: 3,
  },
  commitPolicy: {
    type: types.oneOf("skip", "fail"),
    summary: "Without effect: positions are in checkpoints, those in the group are for others to see",
    default: "skip",
  },
  fetchMinBytes: { type: types.size(), summary: "Least a broker gathers before it answers", default: "1B" },
  fetchMaxBytes: { type: types.size(), summary: "Most of one answer", default: "10MiB" },
  fetchMaxRetries: {
    type: types.int({ min: -1 }),
    summary: "Without effect: a fetch is tried again for two minutes",
    default: 5,
  },
  watchPartitions: {
    type: types.duration(1),
    summary: "How often to look for new partitions",
    example: "1m",
  },
  watermark: { ...WATERMARK, summary: "The same as the source's own watermark; not both" },
  sasl: SASL,
  tls: TLS,
};

/** Records of Kafka topics. */
export const kafkaSource: SourceComponent = {
  kind: "source",
  type: "kafka",
  summary: "Reads topics of Kafka.",
  carried: true,
  replay: "exactlyOnce",
  example: `type: kafka
kafka:
  brokers: [localhost:9092]
  topic: orders
  groupID: order-totals
  deserialize: json
watermark: { maxOutOfOrderness: 5s, idleTimeout: 30s }
`,
  block: types.looseBlock<blocks.KafkaSourceBlock>(KAFKA_FIELDS, {
    rules: [
      { kind: "oneOf", groups: [{ required: ["topic"] }, { required: ["topics"] }] },
      {
        kind: "requires",
        when: { field: "parallel", notIn: [true] },
        fields: ["groupID"],
        because: "a consumer group is needed to keep positions",
      },
      {
        kind: "forbids",
        when: { field: "parallel", in: [true] },
        fields: ["groupID"],
        because: "parallel reads without a consumer group",
      },
      {
        kind: "requires",
        when: { field: "deserialize", in: ["avro"] },
        fields: ["schemaRegistry"],
        because: "avro needs the registry that its schemas are in",
      },
      {
        kind: "forbids",
        when: { field: "deserialize", notIn: ["avro"] },
        fields: ["schemaRegistry", "readerSchema"],
        because: "only deserialize: avro asks for schemas",
      },
    ],
    finish({ topic, ...rest }) {
      return topic === undefined ? rest : { ...rest, topics: [topic] };
    },
  }),
};

const RECORDS: AnyFields = {
  records: {
    type: types.list(types.block<blocks.SliceRecord>({
      key: { type: types.any(), summary: "Key of the record", example: "hello" },
      value: {
        type: types.any(),
        summary: "A text is what the source reads; anything else stands for its JSON",
        required: true,
        example: '{"word":"hello"}',
      },
      source: { type: types.text(), summary: "Name the record carries as its source, instead of the id" },
    })),
    summary: "The records, in order",
    required: true,
  },
};

/** Records of the document itself. */
export const sliceSource: SourceComponent = {
  kind: "source",
  type: "slice",
  summary: "Gives the records written in the document, then ends.",
  carried: true,
  replay: "always",
  outer: RECORDS,
  example: `type: slice
records:
  - { key: a, value: '{"word":"hello","at":"2026-03-01T10:00:00Z"}' }
  - { key: b, value: '{"word":"mailer","at":"2026-03-01T10:00:01Z"}' }
`,
};

/** The same through the generator. */
export const generatorSource: SourceComponent = {
  ...sliceSource,
  type: "generator",
  summary: "Gives the records written in the document one by one, then ends.",
  example: sliceSource.example.replace("type: slice", "type: generator"),
};

const FILE_FIELDS: Fields<blocks.FileSourceBlock> = {
  path: {
    type: types.matching(/./, "a path"),
    summary: "File or glob, relative to the document; files of a glob are read in the order of their paths",
    required: true,
    example: "data/*.ndjson",
  },
  format: LINE_FORMAT,
  compression: {
    type: types.oneOf("auto", "none", "gzip", "zstd"),
    summary: "auto tells by the first bytes of each file",
    default: "auto",
  },
  follow: { type: types.boolean(), summary: "Wait for more at the end of the file", default: false },
  csv: CSV,
  maxLineBytes: MAX_LINE_BYTES,
  deserialize: { type: ENCODING, summary: "What a line is, with format ndjson", default: "json" },
  source: { type: types.text(), summary: "Name records carry as their source, instead of the id" },
};

const CSV_NEEDS_FORMAT = {
  kind: "forbids",
  when: { field: "format", notIn: ["csv"] },
  fields: ["csv"],
  because: "csv belongs to format: csv",
} as const;

/** Lines of files. */
export const fileSource: SourceComponent = {
  kind: "source",
  type: "file",
  summary: "Reads files line by line; each file is a split.",
  carried: true,
  replay: "always",
  example: `type: file
file: { path: clicks.ndjson }
timestamp: { field: at }
watermark: { maxOutOfOrderness: 5s }
`,
  block: types.block<blocks.FileSourceBlock>(FILE_FIELDS, { rules: [CSV_NEEDS_FORMAT] }),
};

/** Lines of standard input. */
export const stdinSource: SourceComponent = {
  kind: "source",
  type: "stdin",
  summary: "Reads standard input line by line. What was read cannot be read again.",
  carried: true,
  replay: "never",
  example: `type: stdin
stdin: { format: ndjson }
`,
  blockRequired: false,
  block: types.block<blocks.StdinBlock>(
    { format: LINE_FORMAT, csv: CSV, maxLineBytes: MAX_LINE_BYTES },
    { rules: [CSV_NEEDS_FORMAT] },
  ),
};
