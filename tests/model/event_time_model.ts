/**
 * The rules of event time, written down as plainly as they can be: what a split's watermark is, what an operator's is.
 *
 * Nothing of the engine is used here: the tests compare the two.
 *
 * @module
 */

/** One thing that happens in an input, in the order in which it is read. */
export type Step =
  | {
    readonly kind: "record";
    readonly split: string;
    readonly key: string;
    readonly at: number;
    readonly n: number;
  }
  /** Fetches of the split have come back empty for the idle timeout. */
  | { readonly kind: "idle"; readonly split: string }
  | { readonly kind: "ended"; readonly split: string };

/** A record of a {@link Step}. */
export type ModelRecord = Extract<Step, { readonly kind: "record" }>;

/** The watermarks of some splits, and of an operator behind them. */
export class EventTimeModel {
  /** The operator's watermark: the least of the splits that are neither idle nor ended; it never falls. */
  watermark = -Infinity;
  readonly #bound: number;
  readonly #splits = new Map<string, { greatest: number; idle: boolean; ended: boolean }>();

  constructor(splits: readonly string[], bound: number) {
    this.#bound = bound;
    for (const split of splits) this.#splits.set(split, { greatest: -Infinity, idle: false, ended: false });
  }

  /** The split's own watermark. */
  own(split: string): number {
    return this.#splits.get(split)!.greatest - this.#bound;
  }
  /** A record of the split is there, and about to be worked on: the split counts again. */
  come(split: string): void {
    this.#splits.get(split)!.idle = false;
    this.#update();
  }
  /** The record has been worked on. */
  went(split: string, at: number): void {
    const state = this.#splits.get(split)!;
    state.greatest = Math.max(state.greatest, at);
    this.#update();
  }
  idle(split: string): void {
    this.#splits.get(split)!.idle = true;
    this.#update();
  }
  ended(split: string): void {
    this.#splits.get(split)!.ended = true;
    this.#update();
  }

  #update(): void {
    const holding = [...this.#splits].filter(([, state]) => !state.idle && !state.ended);
    if (holding.length === 0) return; // nobody says anything: time stays where it is
    this.watermark = Math.max(this.watermark, Math.min(...holding.map(([split]) => this.own(split))));
  }
}
