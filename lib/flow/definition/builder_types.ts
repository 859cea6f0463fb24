/**
 * What `defineFlow` takes. Names of nodes are an `Id`, one of the keys of `nodes`.
 *
 * @module
 */
import type { Duration } from "../../duration.ts";
import type { ExpressionText, JoinPolicy, ParentClose, Reducer, Shape, TemplateText } from "./types.ts";

/** A flow in code. Fields are those of a document, in camel case. */
export interface FlowSpec<Id extends string, Input = unknown, Output = unknown> {
  /** Name of the flow. */
  readonly name: string;
  /** Types of input and output, for the compiler only. */
  readonly types?: { readonly input?: Input; readonly output?: Output };
  /** What it is for. */
  readonly description?: string;
  /** Node an execution begins with; without it the one node that nothing leads to. */
  readonly start?: NoInfer<Id>;
  /** State that tasks share, by name. */
  readonly channels?: Readonly<Record<string, ChannelSpec>>;
  /** Expression that gives the output. */
  readonly output?: ExpressionText;
  /** Nodes by id, in their order. */
  readonly nodes: { readonly [K in Id]: NodeSpec<NoInfer<Id>> };
  /** Most of a counter. */
  readonly budget?: Readonly<Record<string, number>>;
  /** Most entries of nodes, 1000 unless given. */
  readonly maxSteps?: number;
  /** Expressions over input that executions can be found by. */
  readonly searchAttributes?: Readonly<Record<string, ExpressionText>>;
  /** How long a finished execution stays as it is; for ever unless given. */
  readonly retention?: Duration;
  /** What becomes of it then, `archive` unless given. */
  readonly onExpire?: "archive" | "delete";
  /** How long an archived execution is kept; for ever unless given. */
  readonly archiveRetention?: Duration;
  /** Subjects whose messages start executions. */
  readonly triggers?: readonly { readonly subject: string; readonly stream?: string }[];
  /** Longest an execution may take; no limit unless given. */
  readonly deadline?: Duration;
}

/** A channel in code. */
export interface ChannelSpec {
  /** `replace` unless given. */
  readonly reducer?: Reducer;
  /** Value at the start. */
  readonly default?: unknown;
}

/** Any node in code. */
export type NodeSpec<Id extends string> =
  | TaskSpec<Id>
  | ChoiceSpec<Id>
  | FanoutSpec<Id>
  | JoinSpec<Id>
  | AwaitSpec<Id>
  | TaskMapSpec<Id>
  | FlowMapSpec<Id>
  | SubflowSpec<Id>
  | SleepSpec<Id>
  | FailSpec;

/** Free data of a node. */
export interface MetaSpec {
  /** Free data for workers and tools. */
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** A node that leads on, in code. */
export interface NextSpec<Id extends string> extends MetaSpec {
  /** Node entered next; without it the execution completes here. */
  readonly next?: Id;
}

/** A node whose failure can lead on, in code. */
export interface RoutedSpec<Id extends string> extends NextSpec<Id> {
  /** Node entered when this one has failed; without it the execution fails. */
  readonly onFailure?: Id;
}

/** The retry block in code. */
export interface RetrySpec {
  /** All attempts together, up to 64. */
  readonly maxAttempts: number;
  /** `fixed` unless given. */
  readonly backoff?: "fixed" | "linear" | "exponential";
  /** First wait, 1 s unless given. */
  readonly delay?: Duration;
  /** Longest wait, 5 min unless given. */
  readonly maxDelay?: Duration;
  /** 0 to 1, share of the wait that is cut off at random; 0 unless given. */
  readonly jitter?: number;
  /** No retry begins later than this after the first attempt. */
  readonly maxElapsed?: Duration;
  /** Reasons, or names of errors, that are final at once. */
  readonly except?: readonly string[];
}

/** Work by a worker in code. */
export interface PolicySpec {
  /** Kind of worker; `http`, `emit` and `log` are built in. */
  readonly kind: string;
  /** Settings of a built-in kind. */
  readonly with?: SettingsSpec;
  /** Longest an attempt may take. */
  readonly timeout?: Duration;
  /** Longest an attempt may be silent. */
  readonly heartbeat?: Duration;
  /** Further attempts. */
  readonly retry?: RetrySpec;
  /** JSON Schema of the output. */
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  /** Most jobs at once, for each value of the key. */
  readonly concurrency?: { readonly key: ExpressionText; readonly max: number };
  /** Most jobs in a time, 1 s unless given. */
  readonly rate?: { readonly max: number; readonly per?: Duration; readonly key?: ExpressionText };
  /** Jobs of a higher priority are handed out first; −100 to 100, 0 unless given. */
  readonly priority?: number;
}

/** Settings of the built-in kinds in code. */
export type SettingsSpec =
  | {
    readonly url: TemplateText;
    readonly method?: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
    readonly headers?: Readonly<Record<string, TemplateText>>;
    readonly body?: Shape;
    readonly expect?: readonly number[];
  }
  | { readonly topic: string; readonly key?: ExpressionText; readonly value: Shape }
  | { readonly source: string; readonly key?: ExpressionText; readonly value: Shape }
  | { readonly message?: TemplateText };

/** A task in code. */
export interface TaskSpec<Id extends string> extends RoutedSpec<Id>, PolicySpec {
  /** Kind of the node. */
  readonly type: "task";
  /** Takes the result of an earlier job with the same inputs. */
  readonly cache?: { readonly ttl: Duration };
  /** Nodes the worker may name as the next one. */
  readonly dynamic?: readonly Id[];
}

/** A choice in code. */
export interface ChoiceSpec<Id extends string> extends MetaSpec {
  /** Kind of the node. */
  readonly type: "choice";
  /** Ways out; exactly one is the default. */
  readonly rules: readonly (
    | { readonly when: ExpressionText; readonly to: Id | "$end" }
    | { readonly default: true; readonly to: Id | "$end" }
  )[];
  /** An expression that fails ends the execution. */
  readonly onError?: "fail";
}

/** A fan-out in code. */
export interface FanoutSpec<Id extends string> extends MetaSpec {
  /** Kind of the node. */
  readonly type: "fanout";
  /** Tasks and subflows. */
  readonly branches: readonly Id[];
  /** The join that closes it. */
  readonly next: Id;
}

/** A join in code. */
export interface JoinSpec<Id extends string> extends RoutedSpec<Id> {
  /** Kind of the node. */
  readonly type: "join";
  /** Branches that count; all unless given. */
  readonly waitFor?: readonly Id[];
  /** How many of them have to succeed, `all` unless given. */
  readonly policy?: JoinPolicy;
}

/** An await in code: of one signal, or of several. */
export type AwaitSpec<Id extends string> =
  & NextSpec<Id>
  & {
    /** Kind of the node. */
    readonly type: "await";
    /** Longest wait. */
    readonly timeout: Duration;
    /** Node entered when the time is up; without it the execution fails. */
    readonly onTimeout?: Id;
  }
  & (
    | { readonly signal: string }
    | { readonly signals: readonly [string, string, ...string[]]; readonly policy?: "all" | "any" }
  );

/** What both forms of a map have in code. */
export interface MapSpec<Id extends string> extends RoutedSpec<Id> {
  /** Kind of the node. */
  readonly type: "map";
  /** Expression that gives the list. */
  readonly over: ExpressionText;
  /** Most elements under way at once, 100 unless given. */
  readonly maxParallel?: number;
}

/** A map of tasks in code. */
export interface TaskMapSpec<Id extends string> extends MapSpec<Id>, PolicySpec {}

/** A map of children in code. */
export interface FlowMapSpec<Id extends string> extends MapSpec<Id>, ChildSpec {}

/** What starts children. */
export interface ChildSpec {
  /** Name of the flow. */
  readonly flow: string;
  /** Expression that gives a child's input. */
  readonly input?: ExpressionText;
  /** What becomes of a child when this execution ends, `cancel` unless given. */
  readonly onParentClose?: ParentClose;
}

/** A subflow in code. */
export interface SubflowSpec<Id extends string> extends RoutedSpec<Id>, ChildSpec {
  /** Kind of the node. */
  readonly type: "subflow";
}

/** A sleep in code: for a time, or until one. */
export type SleepSpec<Id extends string> =
  & NextSpec<Id>
  & { readonly type: "sleep" }
  & ({ readonly for: Duration } | { readonly until: ExpressionText });

/** A fail in code. */
export interface FailSpec extends MetaSpec {
  /** Kind of the node. */
  readonly type: "fail";
  /** What is told, with `{{ expression }}` in it where wanted. */
  readonly message: TemplateText;
}
