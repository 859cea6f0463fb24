/**
 * Side outputs of the operators of a spec.
 *
 * @module
 */
import { OPERATORS } from "./components/mod.ts";
import type { OperatorSpec } from "./spec.ts";

/** Names of an operator's side outputs; `undefined` where code has others than the document says. */
export function sideOutputsOf(operator: OperatorSpec): readonly string[] | undefined {
  const component = OPERATORS.find(({ type }) => type === operator.type)!;
  if (component.sideOutputs === undefined) return [];
  // Each operator has the block named like its type.
  return component.sideOutputs(
    (operator as unknown as Record<string, Readonly<Record<string, unknown>>>)[operator.type]!,
  );
}
