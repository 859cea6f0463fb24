/**
 * Which runs are still needed, and deleting those that are not.
 *
 * @module
 */
import type { PageStore } from "../pages/mod.ts";
import type { Run } from "./run.ts";
import type { RunList } from "./run_list.ts";
import type { Section } from "./section.ts";

/** A run stays while it is in the list, a held section names it, or somebody reads it. */
export class Retention {
  readonly #pages: PageStore;
  readonly #runs: RunList;
  /** How many held sections name a run. */
  readonly #held = new Map<string, number>();
  /** Runs that are not in the list any more, and may still be read. */
  readonly #replaced = new Map<string, Run>();

  constructor(pages: PageStore, runs: RunList) {
    this.#pages = pages;
    this.#runs = runs;
  }

  /** Keeps the runs of a section. */
  hold(section: Section): void {
    for (const { run } of section.runs) this.#held.set(run, (this.#held.get(run) ?? 0) + 1);
  }

  /** Undoes one `hold`, and deletes what only it has kept. */
  async release(section: Section): Promise<void> {
    const free: string[] = [];
    for (const { run } of section.runs) {
      const left = (this.#held.get(run) ?? 0) - 1;
      if (left > 0) this.#held.set(run, left);
      else {
        this.#held.delete(run);
        free.push(run);
      }
    }
    await this.sweep(free);
  }

  /** Takes runs that have left the list. */
  replaced(runs: readonly Run[]): void {
    for (const run of runs) this.#replaced.set(run.ref.run, run);
  }

  /** Deletes what is not needed any more, of `candidates` and of what has left the list. */
  async sweep(candidates: readonly string[] = []): Promise<void> {
    if (candidates.length + this.#replaced.size === 0) return;
    const current = new Set(this.#runs.all.map(({ ref }) => ref.run));
    const free = [...new Set([...candidates, ...this.#replaced.keys()])].filter((run) => {
      return !current.has(run) && !this.#held.has(run) && (this.#replaced.get(run)?.readers ?? 0) === 0;
    });
    for (const run of free) this.#replaced.delete(run);
    if (free.length > 0) await this.#pages.deleteRuns(free);
  }
}
