/**
 * What a workflow is handed to make its ends and its code with: `lib` itself knows no connector.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import type { Sink, Source } from "../connector.ts";
import type { Logger } from "../log.ts";
import type { CodeRef } from "./blocks.ts";
import type { DlqSpec, SinkSpec, SourceSpec, WorkflowSpec } from "./spec.ts";

/** What a connector may need beside its block. */
export interface ConnectorContext {
  /** Folder that relative paths of the document are relative to. */
  readonly folder: string;
  /** Name of the workflow. */
  readonly workflow: string;
}

/** Makes sources and sinks out of their blocks. Nothing is opened. */
export interface Connectors {
  source(spec: SourceSpec, context: ConnectorContext): Source;
  sink(spec: SinkSpec | DlqSpec, context: ConnectorContext): Sink;
  /** The clusters of a workflow that have transactions, one desk each. */
  transactions?(
    spec: WorkflowSpec,
    context: ConnectorContext & { readonly clock: Clock; readonly logger: Logger },
  ): readonly TransactionDesk[];
}

/** A transaction as its cluster sees it. */
export interface ListedTransaction {
  /** Name of its producer. */
  readonly id: string;
  /** In the words of the cluster. */
  readonly state: string;
  /** Whether it holds readers of committed records back. */
  readonly isOpen: boolean;
  /** Whether it belongs to a sink of the workflow. */
  readonly isOwn: boolean;
  /** When it was begun, ms since the epoch, where it is open. */
  readonly startedAt: number | undefined;
  /** After how long the cluster gives it up, ms. */
  readonly timeoutMs: number;
  /** What it writes to. */
  readonly writesTo: readonly string[];
}

/** Looking after the transactions of a cluster. */
export interface TransactionDesk {
  /** Names the cluster. */
  readonly cluster: string;
  /** All transactions the cluster knows. */
  list(): Promise<readonly ListedTransaction[]>;
  /** Aborts what is open under a name; whoever writes with it is refused from then on. */
  abort(id: string): Promise<void>;
  /** Gives the connections back. */
  close(): Promise<void>;
}

/** Types of the sources and sinks of workflows. */
export function connectorTypes(specs: readonly WorkflowSpec[]): ReadonlySet<string> {
  return new Set(
    specs.flatMap(({ sources, sinks, dlq }) => [...sources, ...sinks, ...(dlq === undefined ? [] : [dlq])])
      .map(({ type }) => type),
  );
}

/** Finds the code a `ref` names. */
export type LoadCode = (ref: CodeRef, context: Pick<ConnectorContext, "folder">) => Promise<unknown>;
