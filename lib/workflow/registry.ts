/**
 * What a workflow is handed to make its ends and its code with: `lib` itself knows no connector.
 *
 * @module
 */
import type { Sink, Source } from "../connector.ts";
import type { CodeRef } from "./blocks.ts";
import type { DlqSpec, SinkSpec, SourceSpec, WorkflowSpec } from "./spec.ts";

/** What a connector may need beside its block. */
export interface ConnectorContext {
  /** Folder that relative paths of the document are relative to. */
  readonly folder: string;
}

/** Makes sources and sinks out of their blocks. Nothing is opened. */
export interface Connectors {
  source(spec: SourceSpec, context: ConnectorContext): Source;
  sink(spec: SinkSpec | DlqSpec, context: ConnectorContext): Sink;
}

/** Types of the sources and sinks of workflows. */
export function connectorTypes(specs: readonly WorkflowSpec[]): ReadonlySet<string> {
  return new Set(
    specs.flatMap(({ sources, sinks, dlq }) => [...sources, ...sinks, ...(dlq === undefined ? [] : [dlq])])
      .map(({ type }) => type),
  );
}

/** Finds the code a `ref` names. */
export type LoadCode = (ref: CodeRef, context: ConnectorContext) => Promise<unknown>;
