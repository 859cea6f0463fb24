/**
 * `list.all(x, test)`, `exists`, `exists_one`, `filter`, `map(x, result)`, `map(x, test, result)`. Maps are gone through
 * by their keys.
 *
 * M1 `all` and `exists` are `&&` and `||` over the elements: one that decides outweighs one that fails.
 *
 * @module
 */
import type { CallNode } from "./ast.ts";
import { Cell, type Code, type Context, type Run, type Slots } from "./code.ts";
import { failure, isFailure, type Part } from "./errors.ts";
import { mapKeys } from "./members.ts";
import { kindOf } from "./values.ts";

const MACROS: Readonly<Record<string, readonly number[]>> = {
  all: [2],
  exists: [2],
  exists_one: [2],
  existsOne: [2],
  filter: [2],
  map: [2, 3],
};

/** Names of the macros, for suggestions. */
export const MACRO_NAMES: readonly string[] = Object.keys(MACROS);

/** Whether a call is one of these. */
export function isMacro(node: CallNode): boolean {
  return node.target !== undefined && Object.hasOwn(MACROS, node.name) &&
    MACROS[node.name]!.includes(node.args.length);
}

export function macro(node: CallNode, context: Context): Code {
  const [variable, ...rest] = node.args;
  if (variable?.kind !== "name") {
    return context.problem(
      variable?.start ?? node.nameAt,
      `${node.name}() takes the name of a variable first`,
      {
        hint: `write ${node.name}(item, …)`,
      },
    );
  }
  const { name } = node;
  const target = context.compile(node.target!), part = context.part(node.target!);
  const cell = new Cell(target.inner === "deep" ? "deep" : "none");
  const bodies = rest.map((body) => context.compileWith(variable.name, cell, body));
  const parts = rest.map((body) => context.part(body));
  const items = (slots: Slots): readonly unknown[] => itemsOf(target.run(slots), part, name);
  const test: Test = (slots, item) => {
    cell.value = item;
    const value = bodies[0]!.run(slots);
    if (typeof value !== "boolean") throw failure(`${name}() takes a bool, ${parts[0]} is ${kindOf(value)}`);
    return value;
  };
  switch (name) {
    case "all":
    case "exists":
      return bool(someOrEvery(items, test, name === "exists"));
    case "exists_one":
    case "existsOne":
      return bool((slots) => {
        let count = 0;
        for (const item of items(slots)) if (test(slots, item)) count++;
        return count === 1;
      });
    case "filter":
      return {
        run: (slots) => items(slots).filter((item) => test(slots, item)),
        kind: "list",
        inner: cell.inner,
      };
    default: {
      const result = bodies.at(-1)!, { run } = result;
      const tested = bodies.length === 2;
      const mapped: Run = (slots) => {
        const out: unknown[] = [];
        for (const item of items(slots)) {
          cell.value = item;
          if (!tested || test(slots, item)) out.push(run(slots));
        }
        return out;
      };
      return { run: mapped, kind: "list", inner: result.inner === "none" ? "none" : "deep" };
    }
  }
}

type Test = (slots: Slots, item: unknown) => boolean;

function bool(run: Run): Code {
  return { run, kind: "bool", inner: "none" };
}

function someOrEvery(items: (slots: Slots) => readonly unknown[], test: Test, decisive: boolean): Run {
  return (slots) => {
    let failed: Error | undefined;
    for (const item of items(slots)) {
      try {
        if (test(slots, item) === decisive) return decisive;
      } catch (error) {
        if (!isFailure(error)) throw error;
        failed ??= error;
      }
    }
    if (failed !== undefined) throw failed;
    return !decisive;
  };
}

function itemsOf(value: unknown, part: Part, name: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (kindOf(value) === "map") return mapKeys(value as object);
  throw failure(`${name}() goes through lists and maps, ${part} is ${kindOf(value)}`);
}
