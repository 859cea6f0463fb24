/**
 * `sample`: a repeatable share of the records.
 *
 * @module
 */
import type { Batch, Marker } from "../record.ts";
import type { Operator, OperatorContext } from "../runtime/operator.ts";
import { selectRecords } from "./select.ts";

/**
 * Keeps about `ratio` of the records. Which ones depends on the seed and on the number of the record, so a run that is repeated
 * over the same input keeps the same.
 */
export class SampleOperator implements Operator {
  #count = 0;
  readonly #threshold: number;

  /** @param ratio 0 … 1. @param seed Any whole number. */
  constructor(ratio: number, private readonly seed: number, private readonly context: OperatorContext) {
    this.#threshold = ratio * 2 ** 32;
  }

  batch(batch: Batch): void {
    const kept: number[] = [];
    for (let i = 0; i < batch.length; i++) {
      if (scramble(this.#count++, this.seed) < this.#threshold) kept.push(i);
    }
    this.context.dropped("sampled", batch.length - kept.length);
    if (kept.length > 0) this.context.output().batch(selectRecords(batch, batch.values, kept));
  }
  snapshot(): number {
    return this.#count;
  }
  restore(counts: readonly unknown[]): void {
    const own = counts[this.context.partition] ?? counts[0]; // with other instances than before the choice is another one
    this.#count = own as number;
  }
  marker(marker: Marker): void {
    this.context.output().marker(marker);
  }
}

/** Spreads (n, seed) evenly over 32 bits: the finaliser of MurmurHash3 (Appleby, public domain). */
function scramble(n: number, seed: number): number {
  let h = (n ^ Math.imul(seed, 0x9e3779b1)) | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}
