/**
 * The runs of a store, the newest first.
 *
 * @module
 */
import type { Run } from "./run.ts";

/** A list that says when it has changed. */
export class RunList {
  /** The newest first. */
  all: readonly Run[];
  /** Changes with the list. */
  version = 0;

  constructor(runs: readonly Run[]) {
    this.all = runs;
  }

  /** Puts a run in front. */
  add(run: Run): void {
    this.all = [run, ...this.all];
    this.version++;
  }

  /** Puts one run, or none, in the place of neighbours. */
  replace(runs: readonly Run[], by: Run | undefined): void {
    const at = this.all.indexOf(runs[0]!);
    this.all = [
      ...this.all.slice(0, at),
      ...(by === undefined ? [] : [by]),
      ...this.all.slice(at + runs.length),
    ];
    this.version++;
  }
}
