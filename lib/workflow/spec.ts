/**
 * A validated workflow: what the document says, with nothing left to look up or to doubt.
 *
 * Blocks stand under the names they have in the document (`spec.operators[0].filter.where`); see `blocks.ts`.
 *
 * @module
 */
import type * as blocks from "./blocks.ts";
import type { Place } from "./problem.ts";

/** What becomes of a record that cannot be handled. */
export type FailurePolicy = "fail" | "drop" | "dlq";

/** A node that is read, or one of its side outputs. */
export interface InputRef {
  /** Id of a source or an operator. */
  readonly node: string;
  /** Name of the side output; absent = the main output. */
  readonly output?: string;
}

/** What every node of the graph has. */
export interface NodeSpec {
  readonly id: string;
  /** Where the node begins in the document, for messages at run time. */
  readonly place: Place;
  /** Its path in the document, e.g. `pipeline[2]`. */
  readonly path: string;
}

/** Blocks of sources by type. */
export interface SourceBlocks {
  kafka: { readonly kafka: blocks.KafkaSourceBlock };
  slice: { readonly records: readonly blocks.SliceRecord[] };
  generator: { readonly records: readonly blocks.SliceRecord[] };
  file: { readonly file: blocks.FileSourceBlock };
  stdin: { readonly stdin: blocks.StdinBlock };
}

/** What every source has. */
export interface SourceCommon extends NodeSpec {
  /** Where event time is; absent = the source's own, else the time of reading. */
  readonly timestamp?: blocks.TimestampBlock;
  readonly watermark: blocks.WatermarkBlock;
  /** Whether the document asks for watermarks (a `watermark` or `timestamp` is there). */
  readonly hasEventTime: boolean;
  readonly onError: FailurePolicy;
}

/** A source. */
export type SourceSpec = {
  [K in keyof SourceBlocks]: SourceCommon & { readonly type: K } & SourceBlocks[K];
}[keyof SourceBlocks];

/** Blocks of operators by type. */
export interface OperatorBlocks {
  filter: blocks.FilterBlock;
  map: blocks.MapBlock;
  flatMap: blocks.MapBlock;
  process: blocks.ProcessBlock;
  explode: blocks.ExplodeBlock;
  selectFields: blocks.FieldsBlock;
  dropFields: blocks.FieldsBlock;
  renameFields: blocks.RenameFieldsBlock;
  setFields: blocks.SetFieldsBlock;
  timestamp: blocks.TimestampOperatorBlock;
  validate: blocks.ValidateBlock;
  keyBy: blocks.KeyByBlock;
  reduce: blocks.ReduceBlock;
  aggregate: blocks.AggregateBlock;
  window: blocks.WindowBlock;
  topN: blocks.TopNBlock;
  dedupe: blocks.DedupeBlock;
  route: blocks.RouteBlock;
  join: blocks.JoinBlock;
  throttle: blocks.ThrottleBlock;
  sample: blocks.SampleBlock;
  batch: blocks.BatchBlock;
  http: blocks.HttpBlock;
  flow: blocks.FlowBlock;
}

/** What every operator has. */
export interface OperatorCommon extends NodeSpec {
  /** What it reads, at least one; two or more are a union. For a join of nodes: left, then right. */
  readonly from: readonly InputRef[];
  readonly label?: string;
  readonly onError: FailurePolicy;
  readonly retry?: blocks.RetryBlock;
  /** Copies that run side by side; 1 unless given. */
  readonly parallelism: number;
  /** Id of the `keyBy` whose key the records that leave it carry, where they carry one. */
  readonly keyedBy?: string;
  /** Whether the records it reads may be rows of a window over time, so that expressions may name `window`. */
  readonly windowed: boolean;
}

/** An operator. */
export type OperatorSpec = {
  [K in keyof OperatorBlocks]: OperatorCommon & { readonly type: K } & Readonly<Record<K, OperatorBlocks[K]>>;
}[keyof OperatorBlocks];

/** Blocks of sinks by type. */
export interface SinkBlocks {
  kafka: blocks.KafkaSinkBlock;
  txnKafka: blocks.TxnKafkaBlock;
  postgres: blocks.PostgresBlock;
  file: blocks.FileSinkBlock;
  flow: blocks.FlowSinkBlock;
  stdout: blocks.EmptyBlock;
  blackhole: blocks.EmptyBlock;
}

/** What every sink has. */
export interface SinkCommon extends NodeSpec {
  readonly from: readonly InputRef[];
  readonly onError: FailurePolicy;
  readonly retry?: blocks.RetryBlock;
}

/** A sink. */
export type SinkSpec = {
  [K in keyof SinkBlocks]: SinkCommon & { readonly type: K } & Readonly<Record<K, SinkBlocks[K]>>;
}[keyof SinkBlocks];

/** Where dead letters go. */
export type DlqSpec =
  | NodeSpec & { readonly type: "file"; readonly file: blocks.FileSinkBlock }
  | NodeSpec & { readonly type: "kafka"; readonly kafka: blocks.KafkaSinkBlock };

/** Something the document asks for that this build describes but does not run. */
export interface Uncarried extends Place {
  readonly path: string;
  /** Path with ids, for people. */
  readonly label: string;
  /** e.g. `source kafka`. */
  readonly what: string;
}

/** What a crash does to the output. */
export type Guarantee = "exactly-once" | "at-least-once" | "at-most-once";

/** A whole workflow. */
export interface WorkflowSpec {
  readonly name: string;
  /** The file as the caller named it; relative paths in blocks are relative to its folder. */
  readonly file: string;
  readonly env: blocks.EnvBlock;
  readonly sources: readonly SourceSpec[];
  /** In the order of the document, which need not be the order of the graph. */
  readonly operators: readonly OperatorSpec[];
  readonly sinks: readonly SinkSpec[];
  readonly dlq: DlqSpec | undefined;
  readonly guarantee: Guarantee;
  /** Empty where this build runs all of it. */
  readonly uncarried: readonly Uncarried[];
}
