/**
 * The definition of a flow: what a document or the builder says, read, checked and completed by its defaults.
 *
 * D1 A definition is plain data and is never changed: lists and objects of it are frozen, and it survives JSON
 *    (`stringifyJson`, `parseExact`: `meta`, channel defaults and schemas may hold a `bigint` or a `Decimal`).
 * D2 Defaults are filled in, so nobody else needs to know them. A default is part of the format and never changes;
 *    another behaviour gets another name.
 * D3 Durations are whole milliseconds. Names of nodes, channels, signals, kinds, counters and attributes are tokens:
 *    1 to 128 letters, digits, `_` and `-`. Expressions and templates are kept as they were written.
 * D4 What validation lets through holds the graph rules, so who reads a definition may rely on: every name of a
 *    node exists; a branch is a task or subflow without a way on; a join closes exactly one fan-out, and nothing else
 *    leads into it or into a branch.
 *
 * @module
 */

/** Text of an expression over a {@link FlowContext}, in the dialect of flows. */
export type ExpressionText = string;

/** Text with `{{ expression }}` in it. */
export type TemplateText = string;

/**
 * A value with expressions in it: a text is an expression, a list or an object is one of shapes, anything else stands for
 * itself.
 */
export type Shape = unknown;

/** One version of a flow. */
export interface Flow {
  /** As in the definition. */
  readonly name: string;
  /** First 16 hex digits of the SHA-256 of the canonical form. With the name it names the version for good. */
  readonly hash: string;
  /** What the flow is. */
  readonly definition: FlowDefinition;
  /** The definition as compact JSON, in the one form that all documents of the same meaning have. */
  readonly canonical: string;
}

/** A whole flow. */
export interface FlowDefinition {
  /** Its name; together with the hash of the definition it names a version. */
  readonly name: string;
  /** Version of the format. */
  readonly version: "1";
  /** For people. */
  readonly description?: string;
  /** Node an execution begins with. */
  readonly start: string;
  /** State that tasks share, by name. */
  readonly channels: Readonly<Record<string, Channel>>;
  /**
   * Output of an execution that completes. Without it: all channels where there are any, else the result of the last
   * node. Gives an object or null; anything else fails the execution as `expression_error`.
   */
  readonly output?: ExpressionText;
  /** In the order of the document, which decides where several nodes could be meant. */
  readonly nodes: readonly FlowNode[];
  /** Most of a counter: the execution fails as `budget_exceeded` once a counter is above. `steps` are node entries. */
  readonly budget: Readonly<Record<string, number>>;
  /** Most entries of nodes; the next one fails the execution as `max_steps`. At least 1. */
  readonly maxSteps: number;
  /** How long an execution may take from its start, ms; then it fails as `deadline_exceeded`. Absent = no limit. */
  readonly deadline?: number;
  /** What executions are found by: expressions over `input`, evaluated at the start; null and errors are left out. */
  readonly searchAttributes: Readonly<Record<string, ExpressionText>>;
  /** How long a finished execution stays as it is, ms. Absent = for ever. */
  readonly retention?: number;
  /** What becomes of it then. */
  readonly onExpire: "archive" | "delete";
  /** How long an archived execution is kept, ms. Absent = for ever. */
  readonly archiveRetention?: number;
  /** Subjects whose messages start executions. */
  readonly triggers: readonly Trigger[];
}

/** How a channel takes what is written to it. */
export type Reducer = "replace" | "append" | "merge" | "sum";

/** State that tasks share. */
export interface Channel {
  /** How a write meets what is there. */
  readonly reducer: Reducer;
  /** Value at the start; absent = the channel is not there until it is first written. */
  readonly default?: unknown;
}

/** A subject whose messages start executions. */
export interface Trigger {
  /** Subject of the messages; `*` and `>` as the server takes them. */
  readonly subject: string;
  /** Stream that keeps the messages: at least once. Without it messages are taken as they come, at most once. */
  readonly stream?: string;
}

/** Any node. */
export type FlowNode =
  | TaskNode
  | ChoiceNode
  | FanoutNode
  | JoinNode
  | AwaitNode
  | MapNode
  | SubflowNode
  | SleepNode
  | FailNode;

/** Kinds of nodes. */
export type NodeType = FlowNode["type"];

/** What every node has. */
export interface NodeBase {
  /** Name of the node in its flow. */
  readonly id: string;
  /** Free object for workers and tools; the engine only hands it on. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** A node that leads on. */
export interface NodeWithNext extends NodeBase {
  /** The node after it; absent = the execution completes here. */
  readonly next?: string;
}

/** A node whose failure can lead on. */
export interface RoutedNode extends NodeWithNext {
  /** The node entered when this one has failed; absent = the execution fails. */
  readonly onFailure?: string;
}

/** How work by a worker is carried out: of a task, or of each item of a map. */
export interface TaskPolicy {
  /** Kind of worker. `http`, `emit` and `log` are built in. */
  readonly kind: string;
  /** Settings of a built-in kind. An `http` or `emit` without them is done by a worker of one's own. */
  readonly with?: BuiltInSettings;
  /** Longest an attempt may take from being handed out, ms; then it fails as `timeout`. Absent = no limit. */
  readonly timeout?: number;
  /** Longest an attempt may go without a sign of life, ms; then it fails as `heartbeat_timeout`. Absent = no limit. */
  readonly heartbeat?: number;
  /** Absent = one attempt; where it is there, there are at least two. */
  readonly retry?: RetryPolicy;
  /** JSON Schema of the output (an absent one is checked as null); a misfit fails the attempt as `invalid_output`. */
  readonly outputSchema?: unknown;
  /** Most jobs of this node at once, over all executions. */
  readonly concurrency?: ConcurrencyLimit;
  /** Most jobs of this node in a time, over all executions. */
  readonly rate?: RateLimit;
  /** Jobs of a higher priority are handed out first. −100 to 100. */
  readonly priority: number;
}

/** When an attempt that failed is followed by another. */
export interface RetryPolicy {
  /** All attempts together, 2 to 64. */
  readonly maxAttempts: number;
  /** The wait before retry n is `delay`, `delay` × n, or `delay` × 2^(n − 1); never above `maxDelay`. */
  readonly backoff: "fixed" | "linear" | "exponential";
  /** ms, more than 0. */
  readonly delay: number;
  /** ms, at least `delay`. */
  readonly maxDelay: number;
  /** 0 to 1: the wait is shortened by a random part of it, at most this share. 0 = none. */
  readonly jitter: number;
  /** No retry that would begin later than this after the first attempt was handed out, ms. Absent = no limit. */
  readonly maxElapsed?: number;
  /** Reasons (`timeout`) or names of errors (`CardRefused`) that are not retried. */
  readonly except: readonly string[];
}

/** A limit on jobs under way. */
export interface ConcurrencyLimit {
  /** The limit is one for each value of it. */
  readonly key: ExpressionText;
  /** At least 1. */
  readonly max: number;
}

/** A limit on jobs in a time. */
export interface RateLimit {
  /** At least 1. */
  readonly max: number;
  /** ms, more than 0. */
  readonly per: number;
  /** The limit is one for each value of it; absent = one for the node. */
  readonly key?: ExpressionText;
}

/** Settings of the built-in kinds, one form each. */
export type BuiltInSettings = HttpSettings | EmitSettings | LogSettings;

/** Of kind `http`: one request; the output is `{status, headers, body}`. */
export interface HttpSettings {
  /** Method of the request. */
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** What expressions put in is percent-encoded, but for one at the very beginning. */
  readonly url: TemplateText;
  /** Headers by name. */
  readonly headers: Readonly<Record<string, TemplateText>>;
  /** Sent as JSON; absent = no body. */
  readonly body?: Shape;
  /** Statuses that are a success; empty = 200 to 299. */
  readonly expect: readonly number[];
}

/** Of kind `emit`: one record to a stream source or a topic. Exactly one of the two is there. */
export interface EmitSettings {
  /** Source of a stream. */
  readonly source?: string;
  /** Topic. */
  readonly topic?: string;
  /** Absent = the execution's id. */
  readonly key?: ExpressionText;
  /** The value. */
  readonly value: Shape;
}

/** Of kind `log`: one line. */
export interface LogSettings {
  /** Absent = the node's id. */
  readonly message?: TemplateText;
}

/** Work for a worker. */
export interface TaskNode extends RoutedNode, TaskPolicy {
  /** Kind of the node. */
  readonly type: "task";
  /** Results are used again for the same definition, node and inputs, for `ttl` ms. */
  readonly cache?: { readonly ttl: number };
  /** Nodes the worker may name as the next one; otherwise `next`. Empty = none. */
  readonly dynamic: readonly string[];
}

/** A way out of a choice. */
export type ChoiceRule =
  | { readonly when: ExpressionText; readonly default?: undefined; readonly to: string }
  | { readonly default: true; readonly when?: undefined; readonly to: string };

/** Where a rule may lead beside nodes: completing here, with the flow's output. */
export const END = "$end";

/** Goes to the first rule that is true, else to the default, wherever that stands. */
export interface ChoiceNode extends NodeBase {
  /** Kind of the node. */
  readonly type: "choice";
  /** Exactly one is the default. `to` is a node or {@link END}. */
  readonly rules: readonly ChoiceRule[];
  /** `fail`: an expression that fails ends the execution as `expression_error`; absent: it counts as not true. */
  readonly onError?: "fail";
}

/** Begins all its branches at once. */
export interface FanoutNode extends NodeBase {
  /** Kind of the node. */
  readonly type: "fanout";
  /** Tasks and subflows, 1 to 256. */
  readonly branches: readonly string[];
  /** The join that closes it. */
  readonly next: string;
}

/** How many awaited branches have to succeed. */
export type JoinPolicy = "all" | "any" | `quorum:${number}`;

/** Closes a fan-out. */
export interface JoinNode extends RoutedNode {
  /** Kind of the node. */
  readonly type: "join";
  /** Branches that count; absent = all. */
  readonly waitFor?: readonly string[];
  /** How many of them have to succeed. */
  readonly policy: JoinPolicy;
}

/** Waits for signals. */
export interface AwaitNode extends NodeWithNext {
  /** Kind of the node. */
  readonly type: "await";
  /** At least one, each once. With several the result is an object of payloads by signal. */
  readonly signals: readonly string[];
  /** Whether one of several is enough. `all` where there is one. */
  readonly policy: "all" | "any";
  /** ms, more than 0. */
  readonly timeout: number;
  /** The node entered when the time is up; absent = the execution fails as `await_timeout`. */
  readonly onTimeout?: string;
}

/** What becomes of children when their parent ends. */
export type ParentClose = "cancel" | "abandon";

/** The same work for every element of a list. */
export type MapNode = TaskMapNode | FlowMapNode;

/** What both forms of a map have. */
export interface MapBase extends RoutedNode {
  /** Kind of the node. */
  readonly type: "map";
  /** Gives the list; null is an empty one. */
  readonly over: ExpressionText;
  /** Most items under way at once, 1 to 256. */
  readonly maxParallel: number;
}

/** A map whose items are tasks. */
export interface TaskMapNode extends MapBase, TaskPolicy {
  /** Not there: it tells the two forms apart. */
  readonly flow?: undefined;
}

/** A map whose items are executions of another flow. */
export interface FlowMapNode extends MapBase {
  /** Not there: it tells the two forms apart. */
  readonly kind?: undefined;
  /** Name of the flow; its newest version when a child starts. */
  readonly flow: string;
  /** Input of a child, over `item` and `index` too; absent = the item, which then has to be an object. */
  readonly input?: ExpressionText;
  /** What becomes of a child when this execution ends. */
  readonly onParentClose: ParentClose;
}

/** An execution of another flow. */
export interface SubflowNode extends RoutedNode {
  /** Kind of the node. */
  readonly type: "subflow";
  /** Its newest version when the child starts. */
  readonly flow: string;
  /** Gives an object; absent = the parent's input. */
  readonly input?: ExpressionText;
  /** What becomes of a child when this execution ends. */
  readonly onParentClose: ParentClose;
}

/** Lets time pass. Exactly one of `for` and `until` is there. */
export interface SleepNode extends NodeWithNext {
  /** Kind of the node. */
  readonly type: "sleep";
  /** ms, 0 or more. */
  readonly for?: number;
  /** Gives RFC 3339 text. */
  readonly until?: ExpressionText;
}

/** Ends the execution as failed, with reason `failed`. */
export interface FailNode extends NodeBase {
  /** Kind of the node. */
  readonly type: "fail";
  /** What is told. */
  readonly message: TemplateText;
}

/** What expressions, templates and workers see. Names are those of the documents. */
export interface FlowContext {
  /** Input of the execution. */
  readonly input: unknown;
  /** Channels by name. */
  readonly channels: Readonly<Record<string, unknown>>;
  /** Newest output of each node that settled. */
  readonly results: Readonly<Record<string, unknown>>;
  /** The task, join, map, subflow or await that settled last. */
  readonly last_node?: string;
  /** How often each node was entered. */
  readonly visits: Readonly<Record<string, number>>;
  /** Payloads of consumed signals by name. */
  readonly signals: Readonly<Record<string, unknown>>;
  /** Status of each branch of the last fan-out. */
  readonly branches: Readonly<Record<string, string>>;
  /** Usage by counter. */
  readonly counters: Readonly<Record<string, number>>;
  /** What went wrong at nodes that have not succeeded since. */
  readonly errors: Readonly<Record<string, NodeError>>;
  /** Element of the list, of a map's item only. */
  readonly item?: unknown;
  /** Its position from 0. */
  readonly index?: number;
}

/** What went wrong at a node. */
export interface NodeError {
  /** Message of the error. */
  readonly error: string;
  /** Why it failed: `error`, `timeout` and so on. */
  readonly reason: string;
  /** Which attempt failed last, from 1. */
  readonly attempt?: number;
  /** Position of the item, for a map. */
  readonly index?: number;
}

/**
 * Gives the value of an expression.
 *
 * @throws {MailerError} `expression_failed`, naming the part of the expression.
 */
export type Evaluate = (context: FlowContext) => unknown;
/**
 * Gives the value of a condition.
 *
 * @throws {MailerError} `expression_failed`, also where the value is no bool.
 */
export type Test = (context: FlowContext) => boolean;
/**
 * Fills a template in.
 *
 * @throws {MailerError} `expression_failed`
 */
export type Fill = (context: FlowContext) => string;

/** A definition ready to run: hash, graph and expressions. Made once for a version by `compileFlow`. */
export interface CompiledFlow {
  /** What the flow is. */
  readonly definition: FlowDefinition;
  /** First 16 hex digits of the SHA-256 of the canonical form. */
  readonly hash: string;
  /** By id, in the order of the document. */
  readonly nodes: ReadonlyMap<string, CompiledNode>;
  /** As {@link FlowDefinition.output}; whether the value is an object is for the caller to see. */
  readonly output?: Evaluate;
  /** Search attributes by name. */
  readonly searchAttributes: ReadonlyMap<string, Evaluate>;
}

/** A node with what its definition means. Functions are there where the definition has the text. */
export interface CompiledNode {
  /** The node as it is defined. */
  readonly node: FlowNode;
  /** The fan-out this node is a branch of. */
  readonly branchOf?: string;
  /** Of a join. */
  readonly join?: {
    /** The fan-out it closes. */
    readonly fanout: string;
    /** Branches that count, in the order they are listed in the fan-out. */
    readonly awaited: readonly string[];
    /** How many of them have to succeed. */
    readonly needed: number;
  };
  /** Of a choice, one a rule; `undefined` for the default. */
  readonly rules?: readonly (Test | undefined)[];
  /** Of a map. */
  readonly over?: Evaluate;
  /** Of a subflow, or of a map of children. */
  readonly input?: Evaluate;
  /** Of a sleep. */
  readonly until?: Evaluate;
  /** Of a fail. */
  readonly message?: Fill;
  /** Of `output_schema`: what does not fit about an output (null for an absent one), or nothing. */
  readonly outputProblem?: (output: unknown) => string | undefined;
  /** Of `concurrency`. */
  readonly concurrencyKey?: Evaluate;
  /** Of `rate`. */
  readonly rateKey?: Evaluate;
  /**
   * The settings of a built-in kind with all texts filled in and all expressions evaluated, by the names of their fields.
   *
   * @throws {MailerError} `expression_failed`
   */
  readonly with?: (context: FlowContext) => Readonly<Record<string, unknown>>;
}
