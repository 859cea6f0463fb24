/**
 * What stands in front of the instances of a stage and decides which of them gets a record.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { keyGroup, type KeyIdentity, keyIdentity, partitionOf } from "../key.ts";
import { Batch, type Marker, type RecordContext, RecordView } from "../record.ts";
import type { FailureHandler } from "./failure.ts";
import type { Operator, Receiver, StageEntry } from "./operator.ts";

/** Brings keys into memory: {@link Operator.prefetch} of one operator. */
export type Prefetch = NonNullable<Operator["prefetch"]>;

/** Whole batches in turn; markers to all. */
export class RoundRobinRouter implements Receiver {
  #next = 0;

  constructor(private readonly instances: readonly Receiver[]) {}

  batch(batch: Batch): void {
    this.instances[this.#next]!.batch(batch);
    this.#next = (this.#next + 1) % this.instances.length;
  }
  marker(marker: Marker): void {
    for (const instance of this.instances) instance.marker(marker);
  }
}

/**
 * The door of a keyed stage: chooses the key of each record, writes it into the record, and hands the record to the partition
 * that owns the key's group. One key always goes to one partition; records of one key stay in order. Markers go to all.
 */
export class KeyRouter implements StageEntry {
  readonly #keyOf: (value: unknown, record: RecordContext) => unknown;
  readonly #partitions: readonly Receiver[];
  readonly #partitionOfGroup: Uint16Array;
  readonly #failed: FailureHandler;
  /** For each partition, what brings keys into memory. */
  readonly #prefetch: readonly (readonly Prefetch[])[];
  readonly #view = new RecordView();
  // Scratch of one batch: the partition of each record, the number of records of each partition.
  #owners = new Uint16Array(1024);
  readonly #counts: Int32Array;
  /** Partitions with records, in the order of their first ones. */
  readonly #met: number[] = [];

  constructor(
    keyOf: (value: unknown, record: RecordContext) => unknown,
    partitions: readonly Receiver[],
    maxKeyGroups: number,
    failed: FailureHandler,
    prefetch: readonly (readonly Prefetch[])[] = [],
  ) {
    this.#keyOf = keyOf;
    this.#partitions = partitions;
    this.#partitionOfGroup = Uint16Array.from(
      { length: maxKeyGroups },
      (_, group) => partitionOf(group, partitions.length, maxKeyGroups),
    );
    this.#counts = new Int32Array(partitions.length);
    this.#failed = failed;
    this.#prefetch = prefetch;
  }

  marker(marker: Marker): void {
    for (const partition of this.#partitions) partition.marker(marker);
  }

  batch(batch: Batch): void | Promise<void> {
    const keys = new Array<unknown>(batch.length);
    const failed = this.#choose(batch, keys);
    const isWhole = this.#partitions.length === 1 && !failed;
    // In the order of their first records: a small input then comes out much as it went in.
    const parts = this.#met.map((partition) => ({
      partition,
      batch: isWhole
        ? new Batch(batch.values, batch.origin, batch.rows, keys, batch.oneToOne)
        : this.#part(batch, keys, partition),
    }));
    const fetching = parts.flatMap((part) => this.#fetch(part.partition, part.batch));
    if (fetching.length > 0) return Promise.all(fetching).then(() => this.#handOn(parts));
    this.#handOn(parts);
  }

  #handOn(parts: readonly { readonly partition: number; readonly batch: Batch }[]): void {
    for (const { partition, batch } of parts) this.#partitions[partition]!.batch(batch);
  }

  /** Has the operators of a partition bring into memory what they hold of a batch's keys. */
  #fetch(partition: number, { keys }: Batch): Promise<void>[] {
    let made: KeyIdentity[] | undefined;
    const identities = (): readonly KeyIdentity[] => made ??= keys!.map(keyIdentity);
    return this.#prefetch[partition]?.flatMap((prefetch) => prefetch(identities) ?? []) ?? [];
  }

  /** Chooses keys and owners. Whether any record failed (it then has no owner). */
  #choose(batch: Batch, keys: unknown[]): boolean {
    const { values } = batch, view = this.#view, counts = this.#counts;
    const groups = this.#partitionOfGroup.length;
    if (this.#owners.length < values.length) this.#owners = new Uint16Array(values.length);
    const owners = this.#owners;
    counts.fill(0);
    this.#met.length = 0;
    view.batch = batch;
    let failed = false;
    for (let i = 0; i < values.length; i++) {
      view.index = i;
      try {
        const key = this.#keyOf(values[i], view);
        if (key === undefined) throw new MailerError("missing_key", "the record has no key");
        keys[i] = key;
        const owner = this.#partitionOfGroup[keyGroup(keyIdentity(key), groups)]!;
        owners[i] = owner;
        if (counts[owner]!++ === 0) this.#met.push(owner);
      } catch (error) {
        failed = true;
        owners[i] = NO_OWNER;
        this.#failed(batch, i, error);
      }
    }
    return failed;
  }

  #part(batch: Batch, keys: readonly unknown[], partition: number): Batch {
    const count = this.#counts[partition]!, owners = this.#owners, length = keys.length;
    const values = new Array<unknown>(count), own = new Array<unknown>(count), rows = new Int32Array(count);
    for (let i = 0, at = 0; i < length; i++) {
      if (owners[i] !== partition) continue;
      values[at] = batch.values[i];
      own[at] = keys[i];
      rows[at++] = batch.rows === undefined ? i : batch.rows[i]!;
    }
    return new Batch(values, batch.origin, rows, own, batch.oneToOne);
  }
}

const NO_OWNER = 0xffff;
