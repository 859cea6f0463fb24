/**
 * With a group, and state by key: all partitions have to come to this process, for the state of their keys is here. It joins the
 * group all the same, so that a second process is noticed, and lag can be seen.
 *
 * O1 Who is not given all partitions when it joins refuses to run.
 * O2 Who had all of them and is given fewer hands nothing out, and waits for the other to leave. After a while it ends.
 * O3 Positions are the checkpoint's, and while it runs its own: offset and state belong together.
 *
 * @module
 */
import { abortable } from "../../../lib/abortable.ts";
import type { Alarm } from "../../../lib/clock.ts";
import { asError, MailerError } from "../../../lib/errors.ts";
import type { PartitionOffset, TopicPartition } from "../client.ts";
import { KafkaError } from "../errors.ts";
import { GroupSeat } from "./group_seat.ts";
import { listPartitions } from "./listing.ts";
import type { Ownership, OwnershipContext } from "./ownership.ts";
import { splitName } from "./split.ts";

/** How long to wait for another process to leave, ms. */
const WAIT_MS = 30_000;

/** All of a group's partitions, or none. */
export class WholeGroup implements Ownership {
  readonly #context: OwnershipContext;
  readonly #seat: GroupSeat;
  readonly #first = Promise.withResolvers<void>();
  /** What the brokers list. */
  readonly #listed: Set<string>;
  #isOpen = false;
  #waiting: Alarm | undefined;
  readonly commit: (offsets: readonly PartitionOffset[]) => Promise<void>;

  constructor(context: OwnershipContext) {
    this.#context = context;
    this.#listed = new Set(context.listing.names);
    this.#first.promise.catch(() => {}); // reported by `open`, or by `fail`
    this.#seat = new GroupSeat(context, {
      assigned: (partitions, _, signal) => this.#assigned(partitions, signal),
      revoked: () => context.host.hold(),
      failed: (error) => this.#fail(error),
    });
    this.commit = (offsets) => this.#seat.commit(offsets);
  }

  async open(): Promise<void> {
    this.#context.host.hold();
    if (!this.#seat.take()) return this.#context.host.go(); // a pattern that matches nothing yet
    await abortable(this.#first.promise, this.#context.context.signal);
  }

  async close(): Promise<void> {
    this.#waiting?.cancel();
    await this.#seat.close();
  }

  async #assigned(partitions: readonly TopicPartition[], signal: AbortSignal): Promise<void> {
    const { host, start, known } = this.#context;
    const own = new Set(partitions.map(splitName));
    const missing = [...this.#listed].filter((split) => !own.has(split));
    if (missing.length > 0) return this.#wait(missing);
    // Behind the first round also those that only the checkpoint knows of.
    const added = [...partitions, ...known.filter((each) => !own.has(splitName(each)))]
      .filter((each) => !host.tracked.has(splitName(each)));
    try {
      const positions = await start.positions(added, host.handed, { signal });
      if (signal.aborted) return;
      host.track(added, positions);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    for (const split of own) this.#listed.add(split);
    this.#waiting?.cancel();
    this.#waiting = undefined;
    this.#isOpen = true;
    host.go();
    this.#first.resolve();
  }

  /** O1, O2 */
  #wait(missing: readonly string[]): void {
    const { logger, context } = this.#context;
    if (!this.#isOpen) return this.#fail(this.#shared(missing));
    if (this.#waiting !== undefined) return;
    logger.log(
      "warn",
      "another process has joined the group and took partitions: reading waits for it to leave",
      {
        source: context.id,
        group: this.#context.options.group,
        splits: missing,
        waitMs: WAIT_MS,
      },
    );
    this.#waiting = context.clock.schedule(WAIT_MS, () => void this.#giveUp(missing));
  }

  /** Says why it ends: the partitions are another process's, or there are none any more. */
  async #giveUp(missing: readonly string[]): Promise<void> {
    const { client, options } = this.#context;
    try {
      const { names } = await listPartitions(client, options, {});
      const gone = missing.filter((split) => !names.has(split));
      this.#fail(gone.length === 0 ? this.#shared(missing) : this.#gone(gone));
    } catch (error) {
      this.#fail(asError(error));
    }
  }

  #fail(error: Error): void {
    this.#first.reject(error);
    this.#context.host.fail(error);
  }

  #gone(splits: readonly string[]): KafkaError {
    return new KafkaError(
      "kafka_unknown_topic",
      `source "${this.#context.context.id}": partitions that were read do not exist any more (${
        listed(splits)
      })`,
      { hint: "the topic was deleted or made anew: start without the checkpoint, or from another topic" },
    );
  }

  #shared(missing: readonly string[]): MailerError {
    const { options: { group }, context: { id } } = this.#context;
    return new MailerError(
      "kafka_group_shared",
      `source "${id}": another process in the group "${group}" has ${missing.length} of the partitions ` +
        `(${listed(missing)}), but this pipeline keeps state by key, which cannot be split over processes`,
      // Not started again: each start would make the other process rebalance.
      { hint: "give this pipeline a group of its own, or stop the other process first", lasting: true },
    );
  }
}

/** The first few of them. */
function listed(splits: readonly string[]): string {
  return splits.slice(0, 5).join(", ") + (splits.length > 5 ? ", …" : "");
}
