/**
 * What a component of a workflow is: the one description from which validation, JSON Schema, reference page, lint and
 * templates come.
 *
 * @module
 */
import type { AnyFields, FieldType } from "./field_type.ts";

/** Where a component stands in a document. */
export type ComponentKind = "source" | "operator" | "sink";

/** What every component says about itself. */
export interface ComponentBase {
  /** Value of `type`, and name of the block. */
  readonly type: string;
  /** One or two sentences for the reference page and for editors. */
  readonly summary: string;
  /** A node of a document, as YAML. */
  readonly example: string;
  /** Fields beside `type` that only this component has. */
  readonly outer?: AnyFields;
  /** The block named like the type. */
  readonly block?: FieldType;
  /** `false`: the block may be left out. */
  readonly blockRequired?: false;
  /** `false`: described and validated, but this build does not run it. */
  readonly carried: boolean;
}

/** A source. */
export interface SourceComponent extends ComponentBase {
  readonly kind: "source";
  /** Whether it can be read again from a position: as it is, only with `exactlyOnce: true`, or not at all. */
  readonly replay: "always" | "exactlyOnce" | "never";
}

/** An operator. */
export interface OperatorComponent extends ComponentBase {
  readonly kind: "operator";
  /** Works on one key at a time, so it stands behind a `keyBy`. */
  readonly needsKey?: true;
  /** Stands directly behind a `window`. */
  readonly needsWindow?: true;
  /** May stand directly behind a `window`. */
  readonly endsWindow?: true;
  /** Keeps nothing between records, so copies of it can run side by side. */
  readonly parallel?: true;
  /** Has no main output: its outputs are named. */
  readonly namedOutputsOnly?: true;
  /** Names of its side outputs; `undefined` where they cannot be known from the document. */
  sideOutputs?(block: Readonly<Record<string, unknown>>): readonly string[] | undefined;
}

/** A sink. */
export interface SinkComponent extends ComponentBase {
  readonly kind: "sink";
  /**
   * How it makes output visible once: in two phases, with its own store, since writing again changes nothing, or not at all.
   * `none` = it has no output.
   */
  readonly commits: "two-phase" | "atomic" | "idempotent" | "no" | "none";
}

/** Any component. */
export type Component = SourceComponent | OperatorComponent | SinkComponent;
