/**
 * `reduce` and `aggregate` without a window: the running result of its key for every record.
 *
 * @module
 */
import { keyIdentity } from "../key.ts";
import { Batch, type Marker, RecordView } from "../record.ts";
import type { Operator, OperatorContext } from "../runtime/operator.ts";
import type { Fold, RowShape } from "./fold.ts";
import { leaveOut } from "./select.ts";

interface Cell {
  readonly key: unknown;
  acc: unknown;
  /** Whether no record has been added yet. */
  empty: boolean;
}

/** Folds each record into the state of its key and hands on the result in the record's place. */
export class RunningOperator implements Operator {
  readonly #cells = new Map<unknown, Cell>();
  readonly #view = new RecordView();
  #sequence = 0;

  constructor(
    private readonly fold: Fold,
    private readonly shape: RowShape | undefined,
    private readonly context: OperatorContext,
  ) {}

  batch(batch: Batch): void {
    const { values, keys, origin, rows } = batch, { timestamps } = origin;
    const { fold, shape } = this, view = this.#view, cells = this.#cells, length = values.length;
    const results = new Array<unknown>(length);
    let failed: number[] | undefined;
    view.batch = batch;
    // Looked up in a loop of its own: the memory of many keys is then waited for at once, not one after the other.
    const found = new Array<Cell | undefined>(length);
    for (let i = 0; i < length; i++) found[i] = cells.get(keyIdentity(keys![i]));
    for (let i = 0; i < length; i++) {
      try {
        for (; i < length; i++) {
          view.index = i;
          const cell = found[i] ?? this.#cell(keys![i]);
          const timestamp = timestamps[rows === undefined ? i : rows[i]!]!;
          const acc = fold.add(cell.acc, values[i], timestamp, ++this.#sequence, view);
          cell.acc = acc;
          cell.empty = false;
          const result = fold.result(acc);
          results[i] = shape === undefined ? result : shape(result, cell.key, undefined);
        }
      } catch (error) {
        this.#forgetIfEmpty(keys![i]);
        this.context.failed(batch, i, error);
        (failed ??= []).push(i);
      }
    }
    this.context.gauges.stateEntries = cells.size;
    const made = new Batch(results, origin, rows, keys, batch.oneToOne);
    this.context.output().batch(failed === undefined ? made : leaveOut(made, results, failed));
  }

  #cell(key: unknown): Cell {
    const identity = keyIdentity(key);
    let cell = this.#cells.get(identity);
    if (cell === undefined) this.#cells.set(identity, cell = { key, acc: this.fold.create(), empty: true });
    return cell;
  }

  /** A record that failed leaves no key behind. */
  #forgetIfEmpty(key: unknown): void {
    const identity = keyIdentity(key);
    if (this.#cells.get(identity)?.empty) this.#cells.delete(identity);
  }

  marker(marker: Marker): void {
    this.context.output().marker(marker);
  }
}
