/**
 * What the expressions of a flow can name.
 *
 * @module
 */
import { compileExpression, type Expression } from "../../expr/mod.ts";

/** Where an expression stands: in a search attribute, anywhere, or where it is about one item of a map. */
export type Scope = "input" | "context" | "item";

const CONTEXT = [
  "input",
  "channels",
  "results",
  "last_node",
  "visits",
  "signals",
  "branches",
  "counters",
  "errors",
] as const;

/** The variables of each scope. */
export const VARIABLES: Readonly<Record<Scope, readonly string[]>> = {
  input: ["input"],
  context: CONTEXT,
  item: [...CONTEXT, "item", "index"],
};

/** What is counted is 0 before the first. */
const ABSENT = { visits: 0, counters: 0 };

/**
 * An expression of a flow.
 *
 * @throws {ExpressionError} `invalid_expression`
 */
export function compileFor(text: string, scope: Scope): Expression {
  return compileExpression(text, { dialect: "flows", variables: VARIABLES[scope], absent: ABSENT });
}
