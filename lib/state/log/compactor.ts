/**
 * Compaction in the background: one at a time, making way for checkpoints.
 *
 * @module
 */
import { compact } from "./compact.ts";
import type { LiveRules } from "./live_rules.ts";
import type { Run } from "./run.ts";
import type { RunList } from "./run_list.ts";
import type { RunWriterOptions, WrittenRun } from "./run_writer.ts";
import { Signal } from "./signal.ts";
import { chooseRuns, type Tiers } from "./tiers.ts";

/** With so many times more runs than become one, compaction is behind. */
const MOST_LEVELS_OF_RUNS = 6;

/** What a compactor needs of its store. */
export interface CompactorHost {
  readonly runs: RunList;
  readonly tiers: Tiers;
  /** What of the runs is still needed. */
  rules(): LiveRules;
  /** Where the next run is written. */
  writerOptions(): Omit<RunWriterOptions, "expected">;
  /** Whether a checkpoint is on its way. */
  isUrgent(): boolean;
  /** Resolves when that may have changed. */
  change(): Promise<void>;
  /** Puts a run, or nothing, in the place of runs. */
  replace(runs: readonly Run[], by: WrittenRun | undefined): Promise<void>;
  failed(error: unknown): void;
}

/** Ends a compaction that nobody waits for any more. */
class Closing extends Error {}

/** Compacts the runs of a store. */
export class Compactor {
  readonly #host: CompactorHost;
  readonly #steps = new Signal();
  #closing = false;
  /** What is under way; undefined where nothing is. */
  working: Promise<void> | undefined;

  constructor(host: CompactorHost) {
    this.#host = host;
  }

  /** Begins, if there is something to be compacted. */
  start(): void {
    if (this.working !== undefined || this.#closing) return;
    const rules = this.#host.rules();
    const runs = chooseRuns(this.#host.runs.all, rules, this.#host.tiers);
    if (runs.length === 0) return;
    this.working = this.#compact(runs, rules);
  }

  /** Whether runs come faster than they are compacted. */
  get isBehind(): boolean {
    return this.working !== undefined &&
      this.#host.runs.all.length > this.#host.tiers.fanIn * MOST_LEVELS_OF_RUNS;
  }

  /** Resolves when it has got on a little. */
  step(): Promise<void> {
    return this.#steps.next();
  }

  /** Gives up what is under way. */
  close(): void {
    this.#closing = true;
  }

  async #compact(runs: readonly Run[], rules: LiveRules): Promise<void> {
    const host = this.#host;
    try {
      await this.#gate();
      const isBottom = runs.at(-1) === host.runs.all.at(-1);
      const written = await compact({
        ...host.writerOptions(),
        runs,
        isBottom,
        rules,
        gate: () => this.#gate(),
      });
      await host.replace(runs, written);
    } catch (error) {
      this.#closing = true; // nothing gets better by trying again
      if (!(error instanceof Closing)) host.failed(error);
    }
    this.working = undefined;
    this.#steps.notify();
    this.start();
  }

  /** What to wait for before going on. Throws to end it. */
  #gate(): Promise<void> | undefined {
    this.#steps.notify();
    if (this.#closing) throw new Closing();
    return this.#host.isUrgent() ? this.#rest() : undefined;
  }

  async #rest(): Promise<void> {
    while (this.#host.isUrgent() && !this.#closing) await this.#host.change();
    if (this.#closing) throw new Closing();
  }
}
