/**
 * Tells a group how far its partitions have been worked through.
 *
 * C1 Where the pipeline takes checkpoints, only what a complete one stands for is committed.
 * C2 Where it takes none, what was handed out before the latest read is, every few seconds: after a crash what was under way is
 *    not read again (at most once).
 * C3 Only partitions this process has are committed, and only what has changed.
 * C4 Where the group has moved on, the partitions are somebody else's by now, and so are their offsets: that is no failure.
 *
 * @module
 */
import type { PartitionOffset } from "../client.ts";
import { GenerationLostError } from "../errors.ts";
import { partitionOf } from "./split.ts";

/** Commits offsets of splits. */
export class Committer {
  readonly #commit: (offsets: readonly PartitionOffset[]) => Promise<void>;
  readonly #moved: (error: GenerationLostError) => void;
  readonly #committed = new Map<string, number>();

  /**
   * @param commit Commits as a member of the group.
   * @param moved Called for C4.
   */
  constructor(
    commit: (offsets: readonly PartitionOffset[]) => Promise<void>,
    moved: (error: GenerationLostError) => void,
  ) {
    this.#commit = commit;
    this.#moved = moved;
  }

  /** What was committed last for a split. */
  committed(split: string): number | undefined {
    return this.#committed.get(split);
  }

  /** Others may commit for it from now on. */
  forget(split: string): void {
    this.#committed.delete(split);
  }

  /** Commits positions by split. */
  async commit(positions: ReadonlyMap<string, number>): Promise<void> {
    const changed = [...positions].filter(([split, position]) => this.#committed.get(split) !== position);
    if (changed.length === 0) return;
    try {
      await this.#commit(changed.map(([split, offset]) => ({ ...partitionOf(split)!, offset })));
    } catch (error) {
      if (!(error instanceof GenerationLostError)) throw error;
      return this.#moved(error);
    }
    for (const [split, position] of changed) this.#committed.set(split, position);
  }
}
