/**
 * `&&`, `||` and `? :`.
 *
 * L1 `&&` is false when any term is false, `||` true when any is true, even where another term fails or is no bool: the
 *    order of the terms does not matter. Otherwise the first failure is that of the whole.
 * L2 A term behind the one that decides is not evaluated.
 *
 * @module
 */
import type { ChoiceNode, LogicNode } from "./ast.ts";
import type { Code, Context, Run, Slots } from "./code.ts";
import { failure, isFailure, type Part } from "./errors.ts";
import { joinInner } from "./result.ts";
import { kindOf } from "./values.ts";

/** `a && b && …`, `a || b || …` */
export function logic(node: LogicNode, context: Context): Code {
  const { operator } = node, decisive = operator === "||";
  const runs = node.terms.map((term) => context.compile(term).run);
  const parts = node.terms.map((term) => context.part(term));
  const undecided = (term: number, value: unknown): Error => noBool(operator, parts[term]!, value);

  /** One term has failed: only one behind it that decides can still save the whole. */
  const rescue = (slots: Slots, from: number, failed: Error): boolean => {
    for (let i = from; i < runs.length; i++) {
      try {
        if (runs[i]!(slots) === decisive) return decisive;
      } catch (error) {
        if (!isFailure(error)) throw error;
      }
    }
    throw failed;
  };
  const many: Run = (slots) => {
    for (let i = 0; i < runs.length; i++) {
      let value: unknown;
      try {
        value = runs[i]!(slots);
      } catch (error) {
        if (!isFailure(error)) throw error;
        return rescue(slots, i + 1, error);
      }
      if (value === decisive) return decisive;
      if (value !== !decisive) return rescue(slots, i + 1, undecided(i, value));
    }
    return !decisive;
  };
  const [a, b] = runs as [Run, Run];
  const two: Run = (slots) => {
    let value: unknown;
    try {
      value = a(slots);
    } catch (error) {
      if (!isFailure(error)) throw error;
      return rescue(slots, 1, error);
    }
    if (value === decisive) return decisive;
    if (value !== !decisive) return rescue(slots, 1, undecided(0, value));
    const last = b(slots);
    if (typeof last !== "boolean") throw undecided(1, last);
    return last;
  };
  return { run: runs.length === 2 ? two : many, kind: "bool", inner: "none" };
}

function noBool(operator: string, part: Part, value: unknown): Error {
  return failure(`${operator} takes bools, ${part} is ${kindOf(value)}`);
}

/** `test ? then : otherwise` */
export function choice(node: ChoiceNode, context: Context): Code {
  const then = context.compile(node.then), otherwise = context.compile(node.otherwise);
  return {
    run: chosen(node, context, then.run, otherwise.run),
    kind: then.kind === otherwise.kind ? then.kind : "any",
    inner: joinInner(then.inner, otherwise.inner),
  };
}

/** A choice between two ways of going on. */
export function chosen(node: ChoiceNode, context: Context, then: Run, otherwise: Run): Run {
  const test = context.compile(node.test).run, part = context.part(node.test);
  return (slots) => {
    const value = test(slots);
    if (value === true) return then(slots);
    if (value === false) return otherwise(slots);
    throw failure(`? takes a bool, ${part} is ${kindOf(value)}`);
  };
}
