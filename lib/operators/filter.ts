/**
 * `filter`: keeps the records a predicate says yes to.
 *
 * @module
 */
import { Batch, type Marker, type RecordContext, RecordView } from "../record.ts";
import type { Operator, OperatorContext } from "../runtime/operator.ts";

/** Keeps records. Copies values and row numbers, nothing else. */
export class FilterOperator implements Operator {
  readonly #view = new RecordView();

  constructor(
    private readonly predicate: (value: unknown, record: RecordContext) => boolean,
    private readonly context: OperatorContext,
  ) {}

  batch(batch: Batch): void {
    const { values, rows, keys } = batch,
      view = this.#view,
      predicate = this.predicate,
      length = values.length;
    const kept = new Int32Array(length);
    let count = 0;
    view.batch = batch;
    for (let i = 0; i < length; i++) {
      try {
        for (; i < length; i++) {
          view.index = i;
          if (predicate(values[i], view)) kept[count++] = i;
        }
      } catch (error) {
        this.context.failed(batch, i, error);
      }
    }
    if (count === length) return this.context.output().batch(batch);
    if (count === 0) return;
    const some = new Array<unknown>(count);
    for (let at = 0; at < count; at++) some[at] = values[kept[at]!];
    const someKeys = keys === undefined ? undefined : new Array<unknown>(count);
    if (someKeys !== undefined) { for (let at = 0; at < count; at++) someKeys[at] = keys![kept[at]!]; }
    const someRows = kept.subarray(0, count);
    if (rows !== undefined) { for (let at = 0; at < count; at++) someRows[at] = rows[someRows[at]!]!; }
    this.context.output().batch(new Batch(some, batch.origin, someRows, someKeys, batch.oneToOne));
  }
  marker(marker: Marker): void {
    this.context.output().marker(marker);
  }
}
