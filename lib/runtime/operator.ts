/**
 * What an operator is at run time: batches and markers in, batches and markers out, by plain synchronous calls.
 *
 * O1 An operator is called with batches and markers in the order of their channel and never from two sides at once.
 * O2 What it hands on for a batch it hands on before the call returns.
 * O3 It hands on every marker it does not replace by one of its own.
 * O4 An exception ends the run. What may go wrong with one record goes to `context.failed`, the record's failure policy.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import type { Logger } from "../log.ts";
import type { KeyIdentity } from "../key.ts";
import type { Batch, Channel, Marker } from "../record.ts";
import type { Partition } from "../state/log/mod.ts";

/** Whatever takes batches and markers: the next operator, several of them, or an edge. */
export interface Receiver {
  batch(batch: Batch): void;
  marker(marker: Marker): void;
}

/** The door of a stage: may have something to wait for before it is called again. */
export interface StageEntry {
  batch(batch: Batch): void | Promise<void>;
  marker(marker: Marker): void;
}

/** One running instance of an operator. Every partition has its own, with its own state. */
export interface Operator extends Receiver {
  /** Processing-time work that is due; called after `context.wakeAt`. */
  tick?(now: number): void;
  /** What it holds of a key, by name of the state; for tests and inspection. */
  inspect?(key: unknown): Readonly<Record<string, unknown>>;
  /**
   * Brings what it holds of keys into memory, for the batch that follows; called at the door of its stage, where `context.paged`.
   *
   * @param identities Of all keys the batch may have here; made when it is called.
   * @returns What to wait for; undefined where nothing.
   */
  prefetch?(identities: () => readonly KeyIdentity[]): Promise<void> | undefined;
  /** What a checkpoint must know of it besides its keyed state, as plain data. Called at a barrier, before the barrier goes on. */
  snapshot?(): unknown;
  /**
   * Called once, before the first batch or marker, when the run goes on from a checkpoint. All keyed state is in memory by then.
   *
   * @param snapshots What the instances of the operator gave; there may have been more or fewer of them than now.
   */
  restore?(snapshots: readonly unknown[]): void;
  /** Called once when the run is over, however it ended. */
  close?(): void;
}

/** An operator that has to wait. It is a stage of its own; the next batch comes when the promise has settled. */
export interface AsyncOperator {
  batch(batch: Batch, emit: (batch: Batch) => Promise<void>): Promise<void>;
  close?(): void;
}

/** Why a record was left out on purpose. One counter each; the list is closed so that labels stay few. */
export type DropReason = "error" | "late" | "unrouted" | "duplicate" | "sampled" | "filtered_non_object";

/** What the runtime gives one instance of an operator. */
export interface OperatorContext {
  /** Id of the operator. */
  readonly id: string;
  /** Number of this instance among its clones, from 0. */
  readonly partition: number;
  readonly partitions: number;
  /** Number of key groups of the pipeline. */
  readonly maxKeyGroups: number;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The keyed state of this instance, behind a keyBy. Its tables and queues are asked for when the operator is made. */
  readonly state: Partition | undefined;
  /** Whether keys are prefetched, so that its tables may page. */
  readonly paged: boolean;
  /** Channel groups that will open in front of this operator. */
  readonly inputGroups: readonly number[];
  /** The channel of the rows this instance makes itself, for operators with rows of their own. */
  readonly channel: Channel;
  /** The main output, or a side output by name. */
  output(name?: string): Receiver;
  /** Whether anybody reads the side output. */
  isRead(name: string): boolean;
  /** Hands a record to the failure policy: throws, or returns and the record is left out. */
  failed(batch: Batch, index: number, error: unknown): void;
  /** Counts records left out on purpose. */
  dropped(reason: DropReason, count: number): void;
  /** Asks for a `tick` at a time of the clock. Several requests are one: the earliest counts. */
  wakeAt(time: number): void;
  /** Counters a keyed operator keeps up to date for metrics. */
  readonly gauges: OperatorGauges;
}

/** The keyed state of an operator that is behind a keyBy. */
export function keyedState({ id, state }: OperatorContext): Partition {
  if (state === undefined) throw new Error(`operator "${id}" has no key, so it has no keyed state`);
  return state;
}

/** What an operator reports about itself, read when metrics are collected. */
export interface OperatorGauges {
  /** Keys (and windows of keys) held. */
  stateEntries: number;
  timers: number;
  /** Records that came too late, whether they were dropped or went to a side output. */
  late: number;
  /** The furthest a late record was behind the watermark, ms. */
  maxLateness: number;
}

/** Makes the instances of one operator. */
export type OperatorFactory = (context: OperatorContext) => Operator;
