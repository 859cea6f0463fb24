/**
 * The blocks of a workflow document as they are after validation: names as in the document, defaults filled in,
 * durations in milliseconds, sizes in bytes.
 *
 * @module
 */

/** Login at a Kafka broker. */
export interface SaslBlock {
  readonly mechanism: "plain" | "scram-sha-256" | "scram-sha-512";
  readonly username: string;
  readonly password: string;
}

/** Encryption; files are relative to the document's folder. */
export interface TlsBlock {
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly insecureSkipVerify: boolean;
}

/** How a source's watermark follows its records. */
export interface WatermarkBlock {
  /** ms a record may be behind the newest one of its split. */
  readonly maxOutOfOrderness: number;
  /** ms without a record after which a split holds nothing back. */
  readonly idleTimeout?: number;
  /** ms between watermarks; without effect, since a watermark travels with every record. */
  readonly interval: number;
}

/** Where a record's event time is. */
export interface TimestampBlock {
  readonly field: string;
  /** `auto`, `rfc3339`, `epochMillis`, `epochSeconds` or a pattern such as `yyyy-MM-dd HH:mm:ss`. */
  readonly format: string;
  /** IANA zone for texts without one. */
  readonly timezone: string;
}

/** How often something is tried again before it has failed. */
export interface RetryBlock {
  readonly attempts: number;
  /** ms before the first further attempt. */
  readonly delay: number;
}

/** What a source's bytes are. */
export type Encoding = "json" | "string" | "bytes";

/** What values in Kafka are. */
export type KafkaEncoding = Encoding | "avro";

/** Where the schemas of `avro` are. */
export interface SchemaRegistryBlock {
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  readonly token?: string;
}

/** `source.kafka`. `topics` also holds a single `topic`; the block's `watermark` is found on the source. */
export interface KafkaSourceBlock {
  readonly brokers: readonly string[];
  readonly topics: readonly string[];
  readonly groupID?: string;
  readonly startFrom: "earliest" | "latest";
  readonly onOffsetLost: "fail" | "earliest" | "latest";
  readonly exactlyOnce: boolean;
  readonly parallel: boolean;
  readonly deserialize: KafkaEncoding;
  readonly schemaRegistry?: SchemaRegistryBlock;
  /** An Avro schema to read as, or the path of a file with one. */
  readonly readerSchema?: unknown;
  readonly commitBatch: number;
  readonly commitMaxRetries: number;
  readonly commitPolicy: "skip" | "fail";
  readonly fetchMinBytes: number;
  readonly fetchMaxBytes: number;
  readonly fetchMaxRetries: number;
  /** ms between looks for new partitions. */
  readonly watchPartitions?: number;
  readonly sasl?: SaslBlock;
  readonly tls?: TlsBlock;
}

/** One record of `slice` and `generator`. */
export interface SliceRecord {
  readonly key?: unknown;
  /** A text is what the source reads; any other value stands for its JSON. */
  readonly value: unknown;
  readonly source?: string;
}

/** How cells of a csv file become values. */
export interface CsvBlock {
  readonly types: Readonly<Record<string, "text" | "number" | "boolean" | "json">>;
  readonly delimiter: string;
  readonly nulls: readonly string[];
}

/** `source.file`. */
export interface FileSourceBlock {
  readonly path: string;
  readonly format: "ndjson" | "csv" | "lines";
  readonly compression: "auto" | "none" | "gzip" | "zstd";
  readonly follow: boolean;
  readonly csv: CsvBlock;
  readonly maxLineBytes: number;
  readonly deserialize: Encoding;
  /** Name that records carry as their source, instead of the id. */
  readonly source?: string;
}

/** `source.stdin`. */
export interface StdinBlock {
  readonly format: "ndjson" | "csv" | "lines";
  readonly csv: CsvBlock;
  readonly maxLineBytes: number;
}

/** Code outside the document. */
export interface CodeRef {
  /** Module relative to the document's folder; absent for a name registered with the engine. */
  readonly module?: string;
  readonly name: string;
}

/** The comparators of `filter`. */
export type Comparator =
  | "equals"
  | "not_equals"
  | "greater_than"
  | "greater_than_or_equal"
  | "less_than"
  | "less_than_or_equal"
  | "contains"
  | "exists"
  | "not_exists";

/** `filter`: by a field, by an expression, or by code. */
export interface FilterBlock {
  readonly field?: string;
  readonly operator?: Comparator;
  readonly value?: unknown;
  readonly where?: string;
  readonly ref?: CodeRef;
  readonly label?: string;
  readonly parallelism?: number;
}

/** `map` and `flatMap`: exactly one of `expr` and `ref`. */
export interface MapBlock {
  readonly expr?: string;
  readonly ref?: CodeRef;
  readonly label?: string;
  readonly parallelism?: number;
}

/** `process`. */
export interface ProcessBlock {
  readonly ref: CodeRef;
  /** Names of side outputs; unknown where absent. */
  readonly outputs?: readonly string[];
  readonly label?: string;
  readonly parallelism?: number;
}

/** `explode`; `as` is the field's own name where the document has none. */
export interface ExplodeBlock {
  readonly field: string;
  readonly as: string;
}

/** `selectFields` and `dropFields`. */
export interface FieldsBlock {
  readonly fields: readonly string[];
}

/** `renameFields`. */
export interface RenameFieldsBlock {
  readonly renames: readonly { readonly from: string; readonly to: string }[];
}

/** One field that `setFields` sets: to a constant, or to what an expression gives. */
export interface FieldSetting {
  readonly field: string;
  readonly value?: unknown;
  readonly expr?: string;
}

/** `setFields`. */
export interface SetFieldsBlock {
  readonly sets: readonly FieldSetting[];
}

/** `timestamp`. */
export interface TimestampOperatorBlock extends TimestampBlock {
  readonly maxOutOfOrderness: number;
  readonly idleTimeout?: number;
}

/** `validate`: a JSON Schema, or the file it is in. */
export interface ValidateBlock {
  readonly schema: unknown;
}

/** `keyBy`: exactly one of `field`, `fields`, `expr`. */
export interface KeyByBlock {
  readonly field?: string;
  readonly fields?: readonly string[];
  readonly expr?: string;
  readonly partitions: number;
  readonly label?: string;
}

/** Functions that `reduce` knows. */
export type ReduceFunction = "count" | "sum" | "avg" | "min" | "max" | "first" | "last";

/** `reduce`; `as` is the function's name where the document has none. */
export interface ReduceBlock {
  readonly function: ReduceFunction;
  readonly field?: string;
  readonly as: string;
  /** ms; not behind a window. */
  readonly ttl?: number;
  readonly label?: string;
}

/** One of the functions of `aggregate`. */
export type AggregateFunction =
  & { readonly as: string }
  & (
    | { readonly function: "count" }
    | {
      readonly function: "sum" | "avg" | "min" | "max" | "first" | "last" | "distinct";
      readonly field: string;
    }
    | { readonly function: "percentile"; readonly field: string; readonly p: number }
    | { readonly function: "topN"; readonly n: number; readonly by: string; readonly order: "desc" | "asc" }
    | { readonly function: "collect"; readonly field?: string; readonly limit: number }
  );

/** `aggregate`. */
export interface AggregateBlock {
  readonly functions: readonly AggregateFunction[];
  /** ms; not behind a window. */
  readonly ttl?: number;
}

/** A fixed span of time, or a number of calendar units in the window's zone. */
export type WindowLength =
  | { readonly kind: "fixed"; readonly ms: number }
  | { readonly kind: "calendar"; readonly unit: "day" | "week" | "month"; readonly count: number };

/** When a window gives rows before it closes. */
export interface TriggerBlock {
  /** ms of processing time. */
  readonly early?: number;
  /** Records. */
  readonly every?: number;
}

/** What windows over time share. */
export interface TimeWindowBlock {
  readonly time: "event" | "processing";
  /** ms, 0 unless given. */
  readonly allowedLateness: number;
  /** IANA zone; `UTC` unless given. */
  readonly timezone: string;
  readonly trigger?: TriggerBlock;
  readonly idleTimeout?: number;
  readonly label?: string;
}

/** `window`. */
export type WindowBlock =
  | TimeWindowBlock & { readonly type: "tumbling"; readonly size: WindowLength; readonly offset: number }
  | TimeWindowBlock & {
    readonly type: "sliding";
    readonly size: WindowLength;
    readonly slide: WindowLength;
    readonly offset: number;
  }
  | TimeWindowBlock & { readonly type: "session"; readonly gap: number }
  | { readonly type: "count"; readonly size: number; readonly slide?: number; readonly label?: string }
  | { readonly type: "global"; readonly trigger?: TriggerBlock; readonly label?: string };

/** `topN`. */
export interface TopNBlock {
  readonly n: number;
  readonly by: string;
  readonly order: "desc" | "asc";
}

/** `dedupe`; `ttl` in ms. */
export interface DedupeBlock {
  readonly ttl: number;
}

/** `route`. */
export interface RouteBlock {
  readonly routes: readonly { readonly name: string; readonly when: string }[];
  readonly default?: string;
}

/**
 * `join`. The two inputs are the nodes of `JoinInputs` on the operator; `leftSource` and `rightSource` are kept only
 * where they name sources of records and not nodes.
 */
export interface JoinBlock {
  readonly type: "interval" | "window" | "lookup";
  readonly kind: "inner" | "left" | "right" | "full";
  readonly left?: string;
  readonly right?: string;
  readonly leftSource?: string;
  readonly rightSource?: string;
  /** ms; `within` stands for both. */
  readonly before?: number;
  readonly after?: number;
  readonly within?: number;
  readonly window?: WindowBlock;
  readonly ttl?: number;
  readonly as: { readonly left: string; readonly right: string };
  readonly label?: string;
}

/** `throttle`: at most `rate` records in `per` ms. */
export interface ThrottleBlock {
  readonly rate: number;
  readonly per: number;
}

/** `sample`. */
export interface SampleBlock {
  readonly ratio: number;
  readonly seed: number;
}

/** `batch`: after `size` records or `every` ms. */
export interface BatchBlock {
  readonly size?: number;
  readonly every?: number;
}

/** `http`: one request a record. */
export interface HttpBlock {
  readonly url?: string;
  readonly urlExpr?: string;
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly as: string;
  readonly timeout: number;
  readonly capacity: number;
  readonly ordered: boolean;
}

/** `flow`: one execution a record. */
export interface FlowBlock {
  readonly name: string;
  readonly id?: string;
  readonly input?: string;
}

/** What `serialize: avro` needs. */
export interface AvroSinkBlock {
  readonly schemaRegistry?: SchemaRegistryBlock;
  /** The schema, or the path of a file with one; the newest of the subject unless given. */
  readonly schema?: unknown;
  /** `<topic>-value` unless given. */
  readonly subject?: string;
  /** `true` unless given. */
  readonly autoRegister?: boolean;
}

/** `sink.flow`: one execution a record. Without `url` the program that runs the workflow has to have an engine. */
export interface FlowSinkBlock {
  readonly name: string;
  readonly version?: string;
  readonly id?: string;
  readonly input?: string;
  readonly url?: string;
  readonly token?: string;
  readonly concurrency: number;
}

/** `sink.kafka`. */
export interface KafkaSinkBlock extends AvroSinkBlock {
  readonly brokers: readonly string[];
  readonly topic: string;
  readonly batchSize: number;
  readonly batchTimeout: number;
  readonly acks: "leader" | "none" | "all";
  readonly async: boolean;
  readonly serialize: KafkaEncoding;
  readonly maxRetries: number;
  readonly onError?: "drop" | "fail";
  readonly sasl?: SaslBlock;
  readonly tls?: TlsBlock;
}

/** `sink.txnKafka`; `markerTopic` is `<topic>.checkpoints` unless given. */
export interface TxnKafkaBlock extends AvroSinkBlock {
  readonly brokers: readonly string[];
  readonly topic: string;
  readonly transactionalID: string;
  readonly markerTopic: string;
  readonly serialize: KafkaEncoding;
  readonly sasl?: SaslBlock;
  readonly tls?: TlsBlock;
}

/** `sink.postgres`. */
export interface PostgresBlock {
  readonly dsn: string;
  readonly table: string;
  /** Columns by the path of the field they are filled from. */
  readonly mapping: Readonly<Record<string, string>>;
  readonly mode: "insert" | "upsert";
  readonly conflictColumns?: readonly string[];
  readonly updateColumns?: readonly string[];
  readonly batchSize: number;
  readonly flushInterval: number;
  readonly maxRetries: number;
  readonly onError?: "drop" | "fail";
}

/** `sink.file` and `dlq.file`. */
export interface FileSinkBlock {
  readonly path: string;
  readonly append: boolean;
  readonly serialize: Encoding;
  /** Bytes. */
  readonly rollSize?: number;
  /** ms. */
  readonly rollEvery?: number;
}

/** A block without settings. */
export type EmptyBlock = Readonly<Record<string, never>>;

/** `env.checkpointing`. */
export interface CheckpointingBlock {
  readonly interval: number;
  readonly dir?: string;
  readonly retainCompleted: number;
}

/** `env.state`; `pebble` in a document means `kv`. */
export interface StateBlock {
  readonly backend: "memory" | "kv" | "sqlite";
  readonly dir?: string;
}

/** `env.restart`. */
export interface RestartBlock {
  /** Restarts in a row before the run has failed; absent = no end. */
  readonly attempts?: number;
  readonly delay: number;
  readonly maxDelay: number;
}

/** `env`. */
export interface EnvBlock {
  /** Records an edge holds. */
  readonly bufferSize: number;
  /** Bytes an edge holds. */
  readonly bufferBytes?: number;
  readonly shutdownTimeout: number;
  readonly checkpointing?: CheckpointingBlock;
  readonly state?: StateBlock;
  readonly restart?: RestartBlock;
}
