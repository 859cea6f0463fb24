/**
 * `flatMap`: any number of values for each record.
 *
 * @module
 */
import { Batch, type Marker, type RecordContext, RecordView } from "../record.ts";
import type { Operator, OperatorContext } from "../runtime/operator.ts";

/** Replaces each record by as many as the function gives; all keep its key, time, headers and position. */
export class FlatMapOperator implements Operator {
  readonly #view = new RecordView();

  constructor(
    private readonly fn: (value: unknown, record: RecordContext) => Iterable<unknown>,
    private readonly context: OperatorContext,
  ) {}

  batch(batch: Batch): void {
    const { values } = batch, view = this.#view, length = values.length;
    const made: unknown[] = [], rows: number[] = [];
    const keys: unknown[] | undefined = batch.keys === undefined ? undefined : [];
    view.batch = batch;
    for (let i = 0; i < length; i++) {
      view.index = i;
      const before = made.length;
      try {
        for (const value of this.fn(values[i], view)) made.push(value);
      } catch (error) {
        made.length = before; // a record gives all of its values or none
        this.context.failed(batch, i, error);
        continue;
      }
      const row = batch.row(i);
      for (let at = before; at < made.length; at++) {
        rows.push(row);
        keys?.push(batch.keys![i]);
      }
    }
    this.context.output().batch(new Batch(made, batch.origin, Int32Array.from(rows), keys, false));
  }
  marker(marker: Marker): void {
    this.context.output().marker(marker);
  }
}
