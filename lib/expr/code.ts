/**
 * What a node compiles to, and what the compiling of a node may ask for.
 *
 * @module
 */
import type { Node } from "./ast.ts";
import type { Part } from "./errors.ts";
import type { Missing } from "./members.ts";
import type { Inner } from "./result.ts";
import type { Dialect } from "./parse.ts";
import type { Kind } from "./values.ts";

/** The variables of one evaluation, a member each. */
export type Slots = Readonly<Record<string, unknown>>;

/** Evaluates a node. Throws `expression_failed`. Never gives `undefined`. */
export type Run = (slots: Slots) => unknown;

/** A compiled node. */
export interface Code {
  readonly run: Run;
  /** Kind of the values `run` gives, as far as it is known. */
  readonly kind: Kind;
  /** Where its values may hold what has to be turned into JSON before it leaves. */
  readonly inner: Inner;
  /** The value, where it is the same each time. A list in here must not be given away. */
  readonly constant?: { readonly value: unknown };
  /** Does what `run` does, but its values have left the expression; where that is cheaper than to let them leave after. */
  readonly leaving?: Run;
  /** The variable, where the node is nothing but the reading of one. */
  readonly variable?: string;
}

/** What compiling one node needs of the rest. */
export interface Context {
  readonly dialect: Dialect;
  compile(node: Node): Code;
  /** The piece of text a failure at this node names. */
  part(node: Node): Part;
  /** What a member that `target` does not have reads as. */
  missing(target: Node): Missing;
  /** Reports a mistake, and gives code that stands in for the node. */
  problem(
    offset: number,
    message: string,
    help?: { readonly suggestion?: string | undefined; readonly hint?: string | undefined },
  ): Code;
  /** Compiles `node` with `name` standing for what `cell` holds. */
  compileWith(name: string, cell: Cell, node: Node): Code;
}

/** Holds the element a macro is at. Evaluations never overlap, so one for each macro is enough. */
export class Cell {
  value: unknown = null;
  readonly kind: Kind = "any";
  readonly inner: Inner;
  constructor(inner: Inner) {
    this.inner = inner;
  }
}

/** Code for a value that never changes. */
export function constantCode(value: unknown, kind: Kind, inner: Inner): Code {
  return { run: () => value, kind, inner, constant: { value } };
}
