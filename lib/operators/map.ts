/**
 * `map`: another value for each record.
 *
 * @module
 */
import { type Batch, type Marker, type RecordContext, RecordView } from "../record.ts";
import type { Operator, OperatorContext } from "../runtime/operator.ts";
import { leaveOut } from "./select.ts";

/** Applies a function to every value; key, time, headers and position stay. */
export class MapOperator implements Operator {
  readonly #view = new RecordView();

  constructor(
    private readonly fn: (value: unknown, record: RecordContext) => unknown,
    private readonly context: OperatorContext,
  ) {}

  batch(batch: Batch): void {
    const { values } = batch, view = this.#view, fn = this.fn, length = values.length;
    const mapped = new Array<unknown>(length);
    let failed: number[] | undefined;
    view.batch = batch;
    for (let i = 0; i < length; i++) {
      try {
        for (; i < length; i++) {
          view.index = i;
          mapped[i] = fn(values[i], view);
        }
      } catch (error) {
        this.context.failed(batch, i, error);
        (failed ??= []).push(i);
      }
    }
    this.context.output().batch(
      failed === undefined ? batch.withValues(mapped) : leaveOut(batch, mapped, failed),
    );
  }
  marker(marker: Marker): void {
    this.context.output().marker(marker);
  }
}
