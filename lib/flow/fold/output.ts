/**
 * Whether what a worker gave is what its node promises.
 *
 * @module
 */
import type { CompiledFlow, CompiledNode } from "../definition/types.ts";
import type { CommandData } from "./commands.ts";
import { isObject, numbers } from "./fields.ts";
import { shown, writesProblem } from "./reducers.ts";
import type { State, Task } from "./state.ts";

/** What is wrong with an answer. */
export interface Misfit {
  /** One sentence. */
  readonly message: string;
  readonly retryable: boolean;
}

/** What is wrong with an answer, checked in order; `undefined` where nothing is. */
export function misfitOf(
  flow: CompiledFlow,
  state: State,
  task: Task,
  { output, writes, next, usage }: CommandData["complete"],
): Misfit | undefined {
  const given = output ?? undefined;
  if (given !== undefined && !isObject(given)) return final(`the output is no object but ${shown(given)}`);
  const misfit = writes === undefined || writes === null
    ? undefined
    : writesProblem(flow.definition, state.channels, writes);
  if (misfit !== undefined) return final(misfit);
  const compiled = flow.nodes.get(task.node)!;
  const way = nextProblem(compiled, task, next);
  if (way !== undefined) return final(way);
  if (usage !== undefined && usage !== null && numbers(usage) === undefined) {
    return final(`the usage is no object of numbers but ${shown(usage)}`);
  }
  return schemaMisfit(compiled, given ?? null);
}

function final(message: string): Misfit {
  return { message, retryable: false };
}

function nextProblem({ node }: CompiledNode, task: Task, next: unknown): string | undefined {
  if (next === undefined || next === null || next === "") return undefined;
  const declared = node.type === "task" && task.owner === undefined ? node.dynamic : [];
  if (typeof next === "string" && declared.includes(next)) return undefined;
  const what = declared.length === 0
    ? "declares none"
    : `declares ${declared.map((id) => `"${id}"`).join(", ")}`;
  return `next is ${shown(next)}, and the node ${what}`;
}

function schemaMisfit({ outputProblem }: CompiledNode, output: unknown): Misfit | undefined {
  const message = outputProblem?.(output);
  return message === undefined ? undefined : { message, retryable: true };
}
