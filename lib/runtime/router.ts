/**
 * What stands in front of the instances of a stage and decides which of them gets a record.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { keyGroup, keyIdentity, partitionOf } from "../key.ts";
import { Batch, type Marker, type RecordContext, RecordView } from "../record.ts";
import type { FailureHandler } from "./failure.ts";
import type { Receiver } from "./operator.ts";

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
export class KeyRouter implements Receiver {
  readonly #keyOf: (value: unknown, record: RecordContext) => unknown;
  readonly #partitions: readonly Receiver[];
  readonly #partitionOfGroup: Uint16Array;
  readonly #failed: FailureHandler;
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
  ) {
    this.#keyOf = keyOf;
    this.#partitions = partitions;
    this.#partitionOfGroup = Uint16Array.from(
      { length: maxKeyGroups },
      (_, group) => partitionOf(group, partitions.length, maxKeyGroups),
    );
    this.#counts = new Int32Array(partitions.length);
    this.#failed = failed;
  }

  marker(marker: Marker): void {
    for (const partition of this.#partitions) partition.marker(marker);
  }

  batch(batch: Batch): void {
    const keys = new Array<unknown>(batch.length);
    const failed = this.#choose(batch, keys);
    if (this.#partitions.length === 1 && !failed) {
      this.#partitions[0]!.batch(new Batch(batch.values, batch.origin, batch.rows, keys, batch.oneToOne));
      return;
    }
    // In the order of their first records: a small input then comes out much as it went in.
    for (const partition of this.#met) this.#partitions[partition]!.batch(this.#part(batch, keys, partition));
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
