/**
 * With a group, and no state by key: the processes of the group share the partitions out.
 *
 * G1 When partitions are taken away, nothing more is handed out. What was handed out is worked through and committed before they
 *    go, for as long as the group waits for that; else others read it again. What was fetched of those that go is dropped.
 * G2 Partitions that come back to this process at once are read on where it was.
 * G3 Where the process had lost touch with the group, others may have them already: they are gone at once.
 * G4 What is being looked up for one round is given up when the next one begins.
 *
 * @module
 */
import { abortable } from "../../../lib/abortable.ts";
import type { PartitionOffset, TopicPartition } from "../client.ts";
import { GroupSeat } from "./group_seat.ts";
import type { Ownership, OwnershipContext } from "./ownership.ts";
import { splitName } from "./split.ts";

/** A share of the partitions. */
export class SharedPartitions implements Ownership {
  readonly #context: OwnershipContext;
  readonly #seat: GroupSeat;
  readonly #first = Promise.withResolvers<void>();
  /** Splits of the checkpoint that nobody is known to read yet. */
  readonly #restored: Set<string>;
  readonly commit: (offsets: readonly PartitionOffset[]) => Promise<void>;

  constructor(context: OwnershipContext) {
    this.#context = context;
    this.#restored = new Set(context.context.restored?.keys());
    this.#first.promise.catch(() => {}); // reported by `open`, or by `fail`
    this.#seat = new GroupSeat(context, {
      assigned: (partitions, _, signal) => this.#assigned(partitions, signal),
      revoked: (partitions, lost) => this.#revoked(partitions, lost),
      failed: (error) => {
        this.#first.reject(error);
        context.host.fail(error);
      },
    });
    this.commit = (offsets) => this.#seat.commit(offsets);
  }

  async open(): Promise<void> {
    this.#context.host.hold();
    if (!this.#seat.take()) return this.#context.host.go(); // a pattern that matches nothing yet
    await abortable(this.#first.promise, this.#context.context.signal);
  }

  async close(): Promise<void> {
    await this.#seat.close();
  }

  async #assigned(partitions: readonly TopicPartition[], signal: AbortSignal): Promise<void> {
    const { host, start, logger, context } = this.#context;
    let positions;
    try {
      positions = await start.positions(partitions, host.handed, { signal });
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    if (signal.aborted) return;
    const own = new Set(partitions.map(splitName));
    host.untrack(this.#notOurs(own));
    host.track(partitions, positions);
    logger.log("info", "partitions assigned", { source: context.id, splits: [...own] });
    host.go();
    this.#first.resolve();
  }

  /** Splits that others read: those we read no more, and those of the checkpoint. What no broker lists is not known to be theirs. */
  #notOurs(own: ReadonlySet<string>): string[] {
    const { host, listing } = this.#context,
      others = [...host.tracked.keys()].filter((split) => !own.has(split));
    for (const split of this.#restored) {
      if (!own.has(split) && !listing.names.has(split)) continue;
      this.#restored.delete(split);
      if (!own.has(split)) others.push(split);
    }
    return others;
  }

  async #revoked(partitions: readonly TopicPartition[], lost: boolean): Promise<void> {
    const { host, logger, context } = this.#context;
    host.hold();
    if (this.#seat.isClosing) return;
    logger.log(lost ? "warn" : "info", lost ? "partitions lost" : "partitions revoked", {
      source: context.id,
      splits: partitions.map(splitName),
    });
    if (lost) host.untrack([...host.tracked.keys()]);
    else await host.settle();
  }
}
