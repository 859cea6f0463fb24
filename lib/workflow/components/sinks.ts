/**
 * Sinks.
 *
 * @module
 */
import type * as blocks from "../blocks.ts";
import type { SinkComponent } from "../component.ts";
import { type Field, type Fields, type Report, type Rule, types } from "../field_type.ts";
import { AVRO_SCHEMA, BROKERS, ENCODING, KAFKA_ENCODING, SASL, SCHEMA_REGISTRY, TLS } from "./common.ts";

const TOPIC: Field<string> = {
  type: types.matching(/^[A-Za-z0-9._-]{1,249}$/, "letters, digits, . _ and -"),
  summary: "Topic to write to",
  required: true,
  example: "order-totals",
};
const SERIALIZE: Field<blocks.Encoding> = {
  type: ENCODING,
  summary: "How values are written",
  default: "json",
};
const KAFKA_SERIALIZE: Field<blocks.KafkaEncoding> = { ...SERIALIZE, type: KAFKA_ENCODING };
const AVRO_FIELDS: Fields<blocks.AvroSinkBlock> = {
  schemaRegistry: { ...SCHEMA_REGISTRY, summary: "Where the schemas are, with serialize: avro" },
  schema: {
    type: AVRO_SCHEMA,
    summary: "Schema to write with, with serialize: avro; the newest of the subject unless given",
    example: "schemas/total.avsc",
  },
  subject: {
    type: types.matching(/./, "a text"),
    summary: "Subject of the schema, with serialize: avro; <topic>-value unless given",
    example: "order-totals-value",
  },
  autoRegister: {
    type: types.boolean(),
    summary: "Register the schema where it is not there yet, with serialize: avro; true unless given",
    example: false,
  },
};
const AVRO_RULES: readonly Rule[] = [
  {
    kind: "requires",
    when: { field: "serialize", in: ["avro"] },
    fields: ["schemaRegistry"],
    because: "avro needs the registry that its schemas are in",
  },
  {
    kind: "forbids",
    when: { field: "serialize", notIn: ["avro"] },
    fields: ["schemaRegistry", "schema", "subject", "autoRegister"],
    because: "only serialize: avro asks for schemas",
  },
];
const MAX_RETRIES: Field<number> = {
  type: types.int({ min: 0 }),
  summary: "Further attempts of a write",
  default: 3,
};
const BLOCK_ON_ERROR: Field<"drop" | "fail"> = {
  type: types.oneOf("drop", "fail"),
  summary: "The same as the sink's own onError, in the older format; not both",
};

/** Kafka, at least once. */
export const kafkaSink: SinkComponent = {
  kind: "sink",
  type: "kafka",
  summary: "Writes to a topic of Kafka, at least once.",
  carried: true,
  commits: "no",
  example: `type: kafka
kafka: { brokers: [localhost:9092], topic: order-totals, acks: all }
`,
  block: types.block<blocks.KafkaSinkBlock>({
    brokers: BROKERS,
    topic: TOPIC,
    batchSize: { type: types.int({ min: 1 }), summary: "Records sent together", default: 100 },
    batchTimeout: { type: types.duration(), summary: "Longest wait for more records", default: "1s" },
    acks: { type: types.oneOf("leader", "none", "all"), summary: "Who confirms a write", default: "leader" },
    async: {
      type: types.boolean(),
      summary: "Without effect: batches go on before the last is confirmed, and a checkpoint waits for all",
      default: false,
    },
    serialize: KAFKA_SERIALIZE,
    ...AVRO_FIELDS,
    maxRetries: {
      ...MAX_RETRIES,
      summary: "Without effect: a batch is tried again for two minutes; retry repeats that",
    },
    onError: BLOCK_ON_ERROR,
    sasl: SASL,
    tls: TLS,
  }, { rules: AVRO_RULES }),
};

/** Kafka, exactly once. */
export const txnKafkaSink: SinkComponent = {
  kind: "sink",
  type: "txnKafka",
  summary: "Writes to a topic of Kafka in transactions that are committed with checkpoints: exactly once.",
  carried: true,
  commits: "atomic",
  example: `type: txnKafka
txnKafka: { brokers: [localhost:9092], topic: order-totals, transactionalID: order-totals-v1 }
`,
  block: types.looseBlock<blocks.TxnKafkaBlock>({
    brokers: BROKERS,
    topic: TOPIC,
    transactionalID: {
      type: types.matching(/./, "a text"),
      summary: "Id of the producer, its own for each workflow and the same in every run",
      required: true,
      example: "order-totals-v1",
    },
    markerTopic: {
      type: TOPIC.type,
      summary: "Topic that says which checkpoints are committed; <topic>.checkpoints unless given",
    },
    serialize: KAFKA_SERIALIZE,
    ...AVRO_FIELDS,
    sasl: SASL,
    tls: TLS,
  }, {
    rules: AVRO_RULES,
    finish: (block) => ({ ...block, markerTopic: block.markerTopic ?? `${block.topic}.checkpoints` }),
  }),
};

const COLUMNS = types.list(types.matching(/./, "a column"), 1);

/** Rows of a table. */
export const postgresSink: SinkComponent = {
  kind: "sink",
  type: "postgres",
  summary: "Writes rows to a table of Postgres.",
  carried: true,
  commits: "atomic",
  example: `type: postgres
postgres:
  dsn: "\${DATABASE_URL:-postgres://localhost/db}"
  table: totals
  mapping: { customer.id: customer, sum: total }
  mode: upsert
  conflictColumns: [customer]
`,
  block: types.block<blocks.PostgresBlock>({
    dsn: {
      type: types.matching(/./, "a connection URL"),
      summary: "Connection URL; take it from the environment",
      required: true,
      secret: true,
      example: "${DATABASE_URL}",
    },
    table: {
      type: types.matching(/^[A-Za-z_][\w$]*(\.[A-Za-z_][\w$]*)?$/, "table or schema.table"),
      summary: "Table to write to",
      required: true,
      example: "totals",
    },
    mapping: {
      type: types.map(types.matching(/./, "a column"), "path", 1),
      summary: "Column for each field",
      required: true,
      example: { "customer.id": "customer" },
    },
    mode: {
      type: types.oneOf("insert", "upsert"),
      summary: "insert adds rows, upsert replaces them",
      default: "insert",
    },
    conflictColumns: { type: COLUMNS, summary: "Columns that make a row the same, with upsert" },
    updateColumns: { type: COLUMNS, summary: "Columns an upsert replaces; all others unless given" },
    batchSize: { type: types.int({ min: 1 }), summary: "Rows written together", default: 100 },
    flushInterval: { type: types.duration(1), summary: "Longest wait for more rows", default: "5s" },
    maxRetries: MAX_RETRIES,
    onError: BLOCK_ON_ERROR,
  }, {
    rules: [
      {
        kind: "requires",
        when: { field: "mode", in: ["upsert"] },
        fields: ["conflictColumns"],
        because: "upsert needs the columns that make a row the same",
      },
      {
        kind: "forbids",
        when: { field: "mode", notIn: ["upsert"] },
        fields: ["conflictColumns", "updateColumns"],
        because: "only mode: upsert looks at it",
      },
    ],
    check: checkColumns,
  }),
};

function checkColumns(block: Readonly<Record<string, unknown>>, report: Report): void {
  const { mapping, conflictColumns, updateColumns } = block as unknown as blocks.PostgresBlock;
  const columns = new Set<string>();
  for (const [field, column] of Object.entries(mapping)) {
    if (columns.has(column)) report(["mapping", field], "duplicate", `column "${column}" is filled twice`);
    columns.add(column);
  }
  for (const [name, list] of Object.entries({ conflictColumns, updateColumns })) {
    (list ?? []).forEach((column, i) => {
      if (columns.has(column)) return;
      report(
        [name, i],
        "unknown_column",
        `"${column}" is no column of the mapping`,
        `one of: ${[...columns].join(", ")}`,
      );
    });
  }
}

/** Lines of a file. */
export const fileSink: SinkComponent = {
  kind: "sink",
  type: "file",
  summary: "Writes one compact JSON value a line to a file; with checkpointing, exactly once.",
  carried: true,
  commits: "two-phase",
  example: `type: file
file: { path: out/totals.ndjson }
`,
  block: types.block<blocks.FileSinkBlock>({
    path: {
      type: types.matching(/[^/\\]$/, "a path that ends in a file name"),
      summary: "File, relative to the document; its folder is made",
      required: true,
      example: "out/totals.ndjson",
    },
    append: {
      type: types.boolean(),
      summary: "Keep what the file holds; false empties it on a first run",
      default: false,
    },
    serialize: SERIALIZE,
    rollSize: { type: types.size(), summary: "Go on in a new file beyond this size", example: "64MiB" },
    rollEvery: { type: types.duration(1), summary: "Go on in a new file after this time", example: "1h" },
  }),
};

/** One execution of a flow for each record. */
export const flowSink: SinkComponent = {
  kind: "sink",
  type: "flow",
  summary: "Starts an execution of a flow for each record; a record that comes again starts nothing twice.",
  carried: true,
  commits: "idempotent",
  example: `type: flow
flow: { url: "http://localhost:8080", token: "\${FLOW_TOKEN:-}", name: order-saga, id: value.order }
`,
  block: types.block<blocks.FlowSinkBlock>({
    name: {
      type: types.matching(/^[A-Za-z0-9_-]{1,128}$/, "a name of letters, digits, - and _"),
      summary: "Name of the flow",
      required: true,
      example: "order-saga",
    },
    version: {
      type: types.matching(/^[A-Za-z0-9_-]{1,128}$/, "a hash"),
      summary: "Hash of the version; the newest unless given",
    },
    id: {
      type: types.expression(),
      summary: "Expression that gives the execution's id; source, split and offset unless given",
      example: "value.order",
    },
    input: {
      type: types.expression(),
      summary: "Expression that gives the input, an object; the value unless given",
      example: "value",
    },
    url: {
      type: types.matching(/^https?:\/\/.+/, "an http or https URL"),
      summary: "Server that runs flows; the engine of the program that runs the workflow unless given",
      example: "http://localhost:8080",
    },
    token: {
      type: types.text(),
      summary: "Token of that server; take it from the environment",
      secret: true,
      example: "${FLOW_TOKEN}",
    },
    concurrency: {
      type: types.int({ min: 1, max: 10_000 }),
      summary: "Executions that are being started at a time",
      default: 64,
    },
  }),
};

/** Standard output. */
export const stdoutSink: SinkComponent = {
  kind: "sink",
  type: "stdout",
  summary: "Writes one compact JSON value a line to standard output.",
  carried: true,
  commits: "no",
  blockRequired: false,
  block: types.block<blocks.EmptyBlock>({}),
  example: "type: stdout\n",
};

/** Nowhere. */
export const blackholeSink: SinkComponent = {
  kind: "sink",
  type: "blackhole",
  summary: "Takes every record and keeps none.",
  carried: true,
  commits: "none",
  blockRequired: false,
  block: types.block<blocks.EmptyBlock>({}),
  example: "type: blackhole\n",
};
