/**
 * Which partitions are this process's, and since when: the three ways there are.
 *
 * @module
 */
import type { SourceContext } from "../../../lib/connector.ts";
import type { Logger } from "../../../lib/log.ts";
import type { KafkaClient, PartitionOffset, TopicPartition } from "../client.ts";
import type { Listing } from "./listing.ts";
import type { CheckedKafkaSource } from "./options.ts";
import type { Split } from "./split.ts";
import type { Start } from "./start.ts";

/** What an ownership tells the reader. */
export interface Host {
  /** Splits that are read, by name. */
  readonly tracked: ReadonlyMap<string, Split>;
  /** How far each split has been handed out in this run, also those that are not read any more. */
  readonly handed: ReadonlyMap<string, number>;
  /** Reads these from `positions` on; of those that are read already, what others have done meanwhile is left out. */
  track(partitions: readonly TopicPartition[], positions: ReadonlyMap<string, number>): void;
  /** Others read these from now on, or did when the checkpoint had them. */
  untrack(splits: readonly string[]): void;
  /** Hands nothing out until `go`. */
  hold(): void;
  /** Reads on. */
  go(): void;
  /** Has what was handed out worked through and committed, for as long as the group waits. Never rejects. */
  settle(): Promise<void>;
  /** Ends the run. */
  fail(error: Error): void;
}

/** What an ownership works with. */
export interface OwnershipContext {
  readonly client: KafkaClient;
  readonly options: CheckedKafkaSource;
  readonly context: SourceContext;
  readonly logger: Logger;
  readonly listing: Listing;
  /** The partitions of the listing, and those only the checkpoint knows of. */
  readonly known: readonly TopicPartition[];
  readonly start: Start;
  readonly host: Host;
}

/** A way to come by partitions. */
export interface Ownership {
  /** Resolves when it is known what to read first, and has been tracked. */
  open(): Promise<void>;
  /** Commits offsets; missing without a group. */
  readonly commit?: (offsets: readonly PartitionOffset[]) => Promise<void>;
  /** Gives everything up. */
  close(): Promise<void>;
}
