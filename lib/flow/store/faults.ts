/**
 * What a store lies in, failing on purpose: for tests of whoever uses a store.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { Cell, Cells, Check, Range, Write } from "./cells.ts";

/**
 * What goes wrong with a call:
 *
 * - `fail`: it rejects, and nothing was written; `fail-after`: it rejects, though all was written;
 * - `busy`: it rejects as a store does that another process writes to;
 * - `crash`, `crash-after`: the same as the first two, and from then on every call rejects, as if the process had died there;
 * - `hang`: it is never answered, and nothing was written;
 * - `repeat`: a commit is sent twice, and the second answer is heard.
 */
export type Fault = "fail" | "fail-after" | "busy" | "crash" | "crash-after" | "hang" | "repeat";

/** A call. */
export interface Call {
  /** What is called. */
  readonly op: "get" | "list" | "commit";
  /** Number of the call among those of its kind, from 1 on. */
  readonly n: number;
  /** Keys a commit writes. */
  readonly keys: readonly string[];
}

/** Cells whose calls go wrong as a plan says. */
export class FaultyCells implements Cells {
  readonly #cells: Cells;
  readonly #plan: (call: Call) => Fault | undefined;
  readonly #calls: { get: number; list: number; commit: number } = { get: 0, list: 0, commit: 0 };
  #crashed = false;

  /**
   * Passes calls on to `cells`.
   *
   * @param plan Asked before every call; `undefined` lets it pass.
   */
  constructor(cells: Cells, plan: (call: Call) => Fault | undefined) {
    this.#cells = cells;
    this.#plan = plan;
  }

  get where(): string {
    return this.#cells.where;
  }
  /** Commits so far. */
  get commits(): number {
    return this.#calls.commit;
  }
  /** Whether it has crashed. */
  get crashed(): boolean {
    return this.#crashed;
  }

  /** See {@link Cells}. */
  get(keys: readonly string[]): Promise<(Cell | undefined)[]> {
    return this.#call("get", [], () => this.#cells.get(keys));
  }
  /** See {@link Cells}. */
  list(range: Range, limit: number, reverse?: boolean): Promise<Cell[]> {
    return this.#call("list", [], () => this.#cells.list(range, limit, reverse));
  }
  /** See {@link Cells}. */
  commit(checks: readonly Check[], writes: readonly Write[]): Promise<string | undefined> {
    return this.#call("commit", writes.map(({ key }) => key), () => this.#cells.commit(checks, writes));
  }
  /** Closes the cells, crashed or not. */
  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#cells[Symbol.asyncDispose]();
  }

  async #call<T>(op: Call["op"], keys: readonly string[], call: () => Promise<T>): Promise<T> {
    if (this.#crashed) throw crashed();
    const fault = this.#plan({ op, n: ++this.#calls[op], keys });
    switch (fault) {
      case undefined:
        return await call();
      case "fail":
        throw new Error(`the ${op} failed on purpose`);
      case "busy":
        throw new MailerError("store_busy", `flows: ${this.where} is busy on purpose`);
      case "crash":
        this.#crashed = true;
        throw crashed();
      case "hang":
        return await new Promise<never>(() => {});
      case "repeat":
        await call();
        return await call();
      case "fail-after":
        await call();
        throw new Error(`the ${op} failed on purpose, after it was done`);
      case "crash-after":
        await call();
        this.#crashed = true;
        throw crashed();
    }
  }
}

function crashed(): MailerError {
  return new MailerError("crashed", "the store has crashed on purpose");
}
