/**
 * What workers answer in a test: a list for a node or a kind, one entry an attempt, the last one again and again.
 *
 * @module
 */
import type { CommandData } from "../fold/mod.ts";

type About = "key" | "generation" | "attempt";

/** One answer of a worker. `takes` is how long it works, ms. */
export type Answer =
  | { readonly kind: "complete"; readonly takes: number; readonly data: Omit<CommandData["complete"], About> }
  | { readonly kind: "fail"; readonly takes: number; readonly data: Omit<CommandData["fail"], About> }
  | {
    readonly kind: "interrupt";
    readonly takes: number;
    readonly data: Omit<CommandData["interrupt"], About>;
  }
  /** None ever comes. */
  | { readonly kind: "hangs" };

/** The answers of a case. Each list has one cursor for the whole case. */
export class Answers {
  readonly #lists: ReadonlyMap<string, readonly Answer[]>;
  readonly #given = new Map<string, number>();

  /** @param lists At least one answer each, by id of a node or by kind. */
  constructor(lists: ReadonlyMap<string, readonly Answer[]>) {
    this.#lists = lists;
  }

  /** The answer to the next attempt: that of the node, else of its kind, else of the kind itself where it is built in. */
  next(node: string, kind: string): Answer | undefined {
    const name = this.#lists.has(node) ? node : kind, list = this.#lists.get(name);
    if (list === undefined) return kind === "log" ? LOGGED : undefined;
    const given = this.#given.get(name) ?? 0;
    this.#given.set(name, given + 1);
    return list[Math.min(given, list.length - 1)];
  }
}

const LOGGED: Answer = { kind: "complete", takes: 0, data: { output: {} } };
