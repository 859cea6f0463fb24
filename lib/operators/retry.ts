/**
 * An operator whose failing records are tried again: a stage of its own, because it waits between tries.
 *
 * Records go through one at a time, so those behind a failing one wait for it and order is kept.
 *
 * @module
 */
import { delay } from "../clock.ts";
import type { AsyncContext } from "../plan/graph.ts";
import type { Batch, Channel } from "../record.ts";
import type { RetryPolicy } from "../runtime/failure.ts";
import type { AsyncOperator, Operator, OperatorContext, OperatorFactory } from "../runtime/operator.ts";
import { selectRecords } from "./select.ts";

const NO_CHANNEL: Channel = { group: -1, name: "none" };

/** Runs a stateless operator without side outputs, record by record, with further tries. */
export class RetryOperator implements AsyncOperator {
  readonly #inner: Operator;
  #made: Batch[] = [];
  #error: { readonly thrown: unknown } | undefined;

  constructor(
    create: OperatorFactory,
    private readonly retry: RetryPolicy,
    private readonly context: AsyncContext,
  ) {
    const inner: OperatorContext = {
      id: context.id,
      partition: 0,
      partitions: 1,
      maxKeyGroups: 1,
      clock: context.clock,
      logger: context.logger,
      state: undefined,
      paged: false,
      inputGroups: [],
      channel: NO_CHANNEL,
      output: () => ({ batch: (batch) => void this.#made.push(batch), marker: () => {} }),
      isRead: () => false,
      failed: (_batch, _index, thrown) => {
        this.#error = { thrown };
      },
      dropped: context.dropped,
      wakeAt: () => {},
      gauges: { stateEntries: 0, timers: 0, late: 0, maxLateness: 0 },
    };
    this.#inner = create(inner);
  }

  async batch(batch: Batch, emit: (batch: Batch) => Promise<void>): Promise<void> {
    for (let i = 0; i < batch.length; i++) {
      await this.#one(selectRecords(batch, batch.values, [i]));
      for (const made of this.#made) if (made.length > 0) await emit(made);
    }
  }

  async #one(record: Batch): Promise<void> {
    for (let attempt = 1;; attempt++) {
      this.#made = [];
      this.#error = undefined;
      this.#inner.batch(record);
      const error = this.#error as { readonly thrown: unknown } | undefined;
      if (error === undefined) return;
      this.#made = [];
      if (attempt >= this.retry.attempts) return this.context.failed(record, 0, error.thrown);
      await delay(this.context.clock, this.retry.delay, this.context.signal);
    }
  }
}
