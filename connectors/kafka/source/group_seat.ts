/**
 * A place in a group, also while topics that match a pattern come up: then it is taken anew.
 *
 * @module
 */
import type { Alarm } from "../../../lib/clock.ts";
import { asError } from "../../../lib/errors.ts";
import type { GroupOptions, KafkaGroup, PartitionOffset } from "../client.ts";
import { GenerationLostError } from "../errors.ts";
import { listPartitions } from "./listing.ts";
import type { OwnershipContext } from "./ownership.ts";

/** Pause between heartbeats, ms, unless sessions are short. */
const HEARTBEAT_MS = 3_000;

/** What the group calls back. */
export type SeatCalls = Pick<GroupOptions, "assigned" | "revoked" | "failed">;

/** A member of the source's group. */
export class GroupSeat {
  readonly #context: OwnershipContext;
  readonly #calls: SeatCalls;
  readonly #closing = new AbortController();
  #topics: readonly string[];
  #group: KafkaGroup | undefined;
  #alarm: Alarm | undefined;
  #looking: Promise<void> | undefined;

  constructor(context: OwnershipContext, calls: SeatCalls) {
    this.#context = context;
    this.#calls = calls;
    this.#topics = context.listing.topics;
  }

  /** Whether it is being given up. */
  get isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Joins. @returns Whether there is anything to join for. */
  take(): boolean {
    if (this.#topics.length > 0) this.#join();
    if (this.#context.options.pattern !== undefined) this.#schedule();
    return this.#group !== undefined;
  }

  async commit(offsets: readonly PartitionOffset[]): Promise<void> {
    if (this.#group === undefined) throw new GenerationLostError(this.#context.options.group!);
    await this.#group.commit(offsets);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#alarm?.cancel();
    await this.#looking;
    await this.#group?.close();
  }

  #join(): void {
    const { client, options } = this.#context;
    this.#group = client.group({
      group: options.group!,
      topics: this.#topics,
      instanceId: options.instanceId,
      sessionTimeoutMs: options.sessionTimeout,
      rebalanceTimeoutMs: options.rebalanceTimeout,
      heartbeatMs: Math.min(HEARTBEAT_MS, options.sessionTimeout / 3),
      discoverMs: options.discovery ?? Infinity,
      ...this.#calls,
    });
  }

  #schedule(): void {
    const { options: { discovery }, context: { clock } } = this.#context;
    if (discovery === undefined || this.isClosing) return;
    this.#alarm = clock.schedule(discovery, () => {
      this.#looking = this.#look();
    });
  }

  /** Joins anew where there are more topics. */
  async #look(): Promise<void> {
    const { client, options, logger, context } = this.#context, { signal } = this.#closing;
    try {
      const { topics } = await listPartitions(client, options, { signal });
      const added = topics.filter((topic) => !this.#topics.includes(topic));
      if (added.length > 0) {
        logger.log("info", "new topics", { source: context.id, topics: added });
        const group = this.#group;
        this.#group = undefined;
        await group?.close();
        this.#topics = [...this.#topics, ...added];
        if (!signal.aborted) this.#join();
      }
    } catch (error) {
      if (signal.aborted) return;
      logger.log("warn", "looking for new topics failed", {
        source: context.id,
        error: asError(error).message,
      });
    }
    this.#schedule();
  }
}
