/**
 * `reduce` and `aggregate` without a window: the running result of its key for every record.
 *
 * @module
 */
import { type KeyIdentity, keyIdentity } from "../key.ts";
import { Batch, type Marker, RecordView } from "../record.ts";
import { keyedState, type Operator, type OperatorContext } from "../runtime/operator.ts";
import type { Cell, Table } from "../state/log/mod.ts";
import type { Fold, RowShape } from "./fold.ts";
import { leaveOut } from "./select.ts";

/** What a checkpoint keeps besides the accumulators. */
interface Snapshot {
  readonly sequence: number;
}

/** Folds each record into the state of its key and hands on the result in the record's place. */
export class RunningOperator implements Operator {
  /** The accumulator of each key. */
  readonly #accs: Table;
  readonly #view = new RecordView();
  #sequence = 0;

  constructor(
    private readonly fold: Fold,
    private readonly shape: RowShape | undefined,
    private readonly context: OperatorContext,
  ) {
    this.#accs = keyedState(context).space("acc", { paged: context.paged }).table();
  }

  prefetch(identities: () => readonly KeyIdentity[]): Promise<void> | undefined {
    return this.#accs.resident ? undefined : this.#accs.prefetch(identities());
  }

  batch(batch: Batch): void {
    const { values, keys, origin, rows } = batch, { timestamps } = origin;
    const { fold, shape } = this, view = this.#view, accs = this.#accs, length = values.length;
    const results = new Array<unknown>(length);
    let failed: number[] | undefined;
    view.batch = batch;
    // Looked up in a loop of its own: the memory of many keys is then waited for at once, not one after the other.
    const found = new Array<Cell | undefined>(length);
    for (let i = 0; i < length; i++) found[i] = accs.get(keyIdentity(keys![i]));
    for (let i = 0; i < length; i++) {
      try {
        for (; i < length; i++) {
          view.index = i;
          const timestamp = timestamps[rows === undefined ? i : rows[i]!]!;
          let cell = found[i];
          if (cell === undefined) cell = this.#addNew(keys![i], values[i], timestamp);
          else {
            accs.touch(cell);
            cell.value = fold.add(cell.value, values[i], timestamp, ++this.#sequence, view);
          }
          const result = fold.result(cell.value);
          results[i] = shape === undefined ? result : shape(result, cell.key, undefined);
        }
      } catch (error) {
        this.context.failed(batch, i, error);
        (failed ??= []).push(i);
      }
    }
    this.context.gauges.stateEntries = accs.keys;
    const made = new Batch(results, origin, rows, keys, batch.oneToOne);
    this.context.output().batch(failed === undefined ? made : leaveOut(made, results, failed));
  }

  /** The key was not there before the batch; it may be by now. A record that fails leaves none behind. */
  #addNew(key: unknown, value: unknown, timestamp: number): Cell {
    const { fold } = this, accs = this.#accs, identity = keyIdentity(key);
    const cell = accs.edit(identity);
    const before = cell === undefined ? fold.create() : cell.value;
    const acc = fold.add(before, value, timestamp, ++this.#sequence, this.#view);
    if (cell === undefined) return accs.add(identity, key, acc);
    cell.value = acc;
    return cell;
  }

  marker(marker: Marker): void {
    this.context.output().marker(marker);
  }

  snapshot(): unknown {
    return { sequence: this.#sequence } satisfies Snapshot;
  }

  restore(snapshots: readonly unknown[]): void {
    for (const { sequence } of snapshots as readonly Snapshot[]) {
      this.#sequence = Math.max(this.#sequence, sequence);
    }
    this.context.gauges.stateEntries = this.#accs.keys;
  }
}
