/**
 * Where reading of a partition begins.
 *
 * P1 What a checkpoint or the group knows wins over `start`.
 * P2 In a pipeline with state by key the checkpoint wins over the group: offset and state belong together.
 * P3 Else the larger one holds: whatever lies in front of either has been worked through, by this process or by another one that
 *    had the partition in between.
 * P4 `start` is for the first start. A partition that was made later is read from its first record: one that appears while we
 *    read, one of a topic that the checkpoint knows with other partitions only, or of which the group has committed others.
 * P5 In a bounded read a partition ends where it did when the run began; one that was made later is not part of it.
 *
 * @module
 */
import type { CallOptions, KafkaClient, OffsetSpec, TopicPartition } from "../client.ts";
import type { Listing } from "./listing.ts";
import { type CheckedKafkaSource, visibleEnd } from "./options.ts";
import { offsetOf, partitionOf, splitName } from "./split.ts";

/** What a run goes by. */
export interface StartContext {
  readonly client: KafkaClient;
  readonly options: CheckedKafkaSource;
  /** Positions of the checkpoint, if there is one. */
  readonly restored: ReadonlyMap<string, unknown> | undefined;
  /** See P2. */
  readonly keepsState: boolean;
  /** What there was when the run began. */
  readonly listing: Listing;
  /** The partitions of the listing, and those only the checkpoint knows of. */
  readonly known: readonly TopicPartition[];
}

/** Finds positions to begin at. */
export class Start {
  readonly #context: StartContext;
  /** Topics of which the checkpoint knows partitions. */
  readonly #restoredTopics: ReadonlySet<string>;
  #ends: ReadonlyMap<string, number> | undefined;

  constructor(context: StartContext) {
    this.#context = context;
    const names = [...context.restored?.keys() ?? []].map((split) => partitionOf(split)?.topic);
    this.#restoredTopics = new Set(names.filter((topic) => topic !== undefined));
  }

  /** Looks up where a bounded read ends (P5). */
  async findEnds(call: CallOptions): Promise<void> {
    const { client, options, known } = this.#context;
    if (!options.isBounded) return;
    const at = visibleEnd(options);
    const ends = await client.listOffsets(known.map((partition) => ({ ...partition, at })), call);
    this.#ends = new Map(known.map((partition, i) => [splitName(partition), ends[i]!]));
  }

  /** Where the split ends; undefined: never. */
  end(split: string): number | undefined {
    return this.#ends === undefined ? undefined : this.#ends.get(split) ?? 0;
  }

  /**
   * Where to begin in each.
   *
   * @param handed How far they have been handed out in this run.
   */
  async positions(
    partitions: readonly TopicPartition[],
    handed: ReadonlyMap<string, number>,
    call: CallOptions,
  ): Promise<ReadonlyMap<string, number>> {
    const positions = new Map<string, number>(), open: (TopicPartition & { at: OffsetSpec })[] = [];
    const committed = await this.#committed(partitions, call);
    const committedTopics = new Set([...committed.keys()].map((split) => partitionOf(split)!.topic));
    for (const { topic, partition } of partitions) {
      const split = splitName({ topic, partition });
      const known = this.#known(split, handed.get(split), committed.get(split));
      if (known !== undefined) positions.set(split, known);
      else {
        const isNew = this.#restoredTopics.has(topic) || committedTopics.has(topic);
        const at = this.#startOf(split, isNew);
        if (typeof at === "number") positions.set(split, at);
        else open.push({ topic, partition, at });
      }
    }
    const found = open.length === 0 ? [] : await this.#context.client.listOffsets(open, call);
    for (const [i, question] of open.entries()) positions.set(splitName(question), found[i]!);
    return positions;
  }

  /** P1 to P3 */
  #known(split: string, handed: number | undefined, committed: number | undefined): number | undefined {
    const position = this.#context.restored?.get(split);
    const restored = position === undefined ? undefined : offsetOf(split, position);
    const own = handed ?? restored;
    if (own === undefined || this.#context.keepsState) return own ?? committed;
    return Math.max(own, committed ?? 0);
  }

  /** P4 */
  #startOf(split: string, isNew: boolean): OffsetSpec | number {
    const { options, listing } = this.#context, { start } = options;
    if (isNew || !listing.names.has(split) || start === "earliest") return "earliest";
    if (start === "latest") return visibleEnd(options);
    if ("timestamp" in start) return start;
    return Object.hasOwn(start.offsets, split) ? start.offsets[split]! : "earliest";
  }

  /** What the group has committed for the topics of these partitions. */
  async #committed(partitions: readonly TopicPartition[], call: CallOptions): Promise<Map<string, number>> {
    const { client, options: { group }, listing } = this.#context, committed = new Map<string, number>();
    if (group === undefined || partitions.length === 0) return committed;
    const topics = new Set(partitions.map(({ topic }) => topic)), names = new Set(partitions.map(splitName));
    const others = listing.partitions.filter((each) => topics.has(each.topic) && !names.has(splitName(each)));
    const asked = [...partitions, ...others];
    const offsets = await client.committedOffsets(group, asked, call);
    for (const [i, each] of asked.entries()) {
      if (offsets[i] !== undefined) committed.set(splitName(each), offsets[i]);
    }
    return committed;
  }
}
