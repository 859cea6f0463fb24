/**
 * `route`: splits a stream into named outputs.
 *
 * @module
 */
import { type Batch, type Marker, type RecordContext, RecordView } from "../record.ts";
import type { Operator, OperatorContext } from "../runtime/operator.ts";
import { selectRecords } from "./select.ts";

/** One way out. */
export interface Route {
  readonly name: string;
  readonly when: (value: unknown, record: RecordContext) => boolean;
}

/** Sends each record to the first route that is true, else to the default, else nowhere (counted). */
export class RouteOperator implements Operator {
  readonly #view = new RecordView();

  constructor(
    private readonly routes: readonly Route[],
    private readonly fallback: string | undefined,
    private readonly context: OperatorContext,
  ) {}

  batch(batch: Batch): void {
    const { routes, context } = this, view = this.#view;
    const taken = new Map<string, number[]>();
    const names = this.fallback === undefined
      ? routes.map((r) => r.name)
      : [...routes.map((r) => r.name), this.fallback];
    for (const name of names) taken.set(name, []);
    let unrouted = 0;
    view.batch = batch;
    for (let i = 0; i < batch.length; i++) {
      view.index = i;
      try {
        const name = routes.find((route) => route.when(batch.values[i], view))?.name ?? this.fallback;
        if (name === undefined) unrouted++;
        else taken.get(name)!.push(i);
      } catch (error) {
        context.failed(batch, i, error);
      }
    }
    context.dropped("unrouted", unrouted);
    for (const [name, indexes] of taken) {
      if (indexes.length > 0) context.output(name).batch(selectRecords(batch, batch.values, indexes));
    }
  }
  marker(marker: Marker): void {
    this.context.output().marker(marker);
  }
}
