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
    for (let i = 0; i < length; i++) {
      try {
        for (; i < length; i++) {
          view.index = i;
          const key = keys![i];
          const identity = keyIdentity(key);
          const cell = cells.get(identity);
          const timestamp = timestamps[rows === undefined ? i : rows[i]!]!;
          let acc: unknown;
          if (cell !== undefined) acc = cell.acc = fold.add(cell.acc, values[i], timestamp, ++this.#sequence, view);
          else {
            acc = fold.add(fold.create(), values[i], timestamp, ++this.#sequence, view);
            cells.set(identity, { key, acc });
          }
          const result = fold.result(acc);
          results[i] = shape === undefined ? result : shape(result, cell === undefined ? key : cell.key, undefined);
        }
      } catch (error) {
        this.context.failed(batch, i, error);
        (failed ??= []).push(i);
      }
    }
    this.context.gauges.stateEntries = cells.size;
    const made = new Batch(results, origin, rows, keys, batch.oneToOne);
    this.context.output().batch(failed === undefined ? made : leaveOut(made, results, failed));
  }
  marker(marker: Marker): void {
    this.context.output().marker(marker);
  }
}
