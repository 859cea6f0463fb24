/**
 * The logical graph: what the builder API (or a workflow document) describes. Pure data and functions, nothing is open.
 *
 * G1 A node reads outputs of nodes made before it, so the graph has no cycles.
 * G2 Only a union has several inputs.
 *
 * @module
 */
import type { Sink, Source } from "../connector.ts";
import type { OnError, RetryPolicy } from "../runtime/failure.ts";
import type { AsyncOperator, OperatorContext, OperatorFactory } from "../runtime/operator.ts";
import type { TimestampOf, WatermarkStrategy } from "../runtime/watermarks.ts";
import type { RecordContext } from "../record.ts";

/** An output of a node: its main one, or a side output by name. */
export interface NodeOutput {
  readonly node: GraphNode;
  readonly output: string | undefined;
}

/** What all nodes have. */
interface NodeBase {
  /** Unique; names metrics, errors and, later, state. */
  id: string;
  /** What kind of operator, source or sink, e.g. `filter`. */
  readonly type: string;
  /** For people; the id where none was given. */
  label?: string;
  readonly inputs: readonly NodeOutput[];
  onError: OnError;
  retry?: RetryPolicy;
  /** Settings shown by `describe` and `explain`; never a secret. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** A place where records enter. */
export interface SourceNode extends NodeBase {
  readonly kind: "source";
  readonly source: Source;
  /** Name its records carry as their source; the id where there is none. */
  readonly sourceName?: string;
  readonly timestamp: TimestampOf<unknown> | undefined;
  readonly watermarks: WatermarkStrategy;
}

/** A synchronous operator. */
export interface OperatorNode extends NodeBase {
  readonly kind: "operator";
  readonly create: OperatorFactory;
  /** Whether it makes rows of its own, with event time of their own (windows, timers), instead of passing on what came. */
  readonly ownRows: boolean;
  /** Whether it hands values to code of the user's, which may change them. */
  readonly userCode: boolean;
  /** Whether it keeps state by key: only behind a keyBy. */
  readonly keyed: boolean;
  /** Side outputs, and whether their rows are passed on or the operator's own. */
  readonly sideOutputs: Readonly<Record<string, "passed" | "own">>;
  /** Instances of a stateless operator outside keyed stages. */
  parallelism: number;
}

/** An operator that waits: a stage of its own. */
export interface AsyncNode extends NodeBase {
  readonly kind: "async";
  readonly create: (context: AsyncContext) => AsyncOperator;
  readonly userCode: boolean;
}

/** What the runtime gives an asynchronous operator. */
export type AsyncContext = Pick<OperatorContext, "id" | "clock" | "logger" | "failed" | "dropped"> & {
  /** Aborted when the run gives up on draining. */
  readonly signal: AbortSignal;
};

/** The door of a keyed stage. */
export interface KeyByNode extends NodeBase {
  readonly kind: "keyBy";
  readonly keyOf: (value: unknown, record: RecordContext) => unknown;
  partitions: number;
}

/** Several outputs taken together. */
export interface UnionNode extends NodeBase {
  readonly kind: "union";
}

/** A place where records leave. */
export interface SinkNode extends NodeBase {
  readonly kind: "sink";
  readonly sink: Sink;
}

/** A node of the logical graph. */
export type GraphNode = SourceNode | OperatorNode | AsyncNode | KeyByNode | UnionNode | SinkNode;

/** Side output that failed records leave by, where the policy is `dlq`. */
export const DEAD_LETTERS = "$dlq";
