/**
 * `throttle`: at most so many records per stretch of processing time; the rest waits, and holds back what is behind it.
 *
 * @module
 */
import { delay } from "../clock.ts";
import type { AsyncContext } from "../plan/graph.ts";
import type { Batch } from "../record.ts";
import type { AsyncOperator } from "../runtime/operator.ts";
import { selectRecords } from "./select.ts";

/** Delays records to an even rate: a token bucket that holds what one `per` gives. */
export class ThrottleOperator implements AsyncOperator {
  /** The most it holds. A bucket for less than one would never let anything through. */
  readonly #most: number;
  #tokens: number;
  #filledAt: number;

  /** @param rate Records, > 0. @param per ms, > 0. */
  constructor(
    private readonly rate: number,
    private readonly per: number,
    private readonly context: AsyncContext,
  ) {
    this.#tokens = this.#most = Math.max(1, rate);
    this.#filledAt = context.clock.now();
  }

  async batch(batch: Batch, emit: (batch: Batch) => Promise<void>): Promise<void> {
    for (let from = 0; from < batch.length;) {
      this.#fill();
      const count = Math.min(Math.floor(this.#tokens), batch.length - from);
      if (count < 1) {
        await delay(
          this.context.clock,
          Math.ceil((1 - this.#tokens) * this.per / this.rate),
          this.context.signal,
        );
        continue;
      }
      this.#tokens -= count;
      const indexes = Array.from({ length: count }, (_, i) => from + i);
      await emit(count === batch.length ? batch : selectRecords(batch, batch.values, indexes));
      from += count;
    }
  }

  #fill(): void {
    const now = this.context.clock.now();
    this.#tokens = Math.min(
      this.#most,
      this.#tokens + Math.max(0, now - this.#filledAt) * this.rate / this.per,
    );
    this.#filledAt = now;
  }
}
