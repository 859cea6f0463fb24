/**
 * `dedupe`: the first record of a key in a stretch of event time.
 *
 * U1 A record passes when its time is at least that of the last one that passed + ttl. A duplicate prolongs nothing.
 * U2 A key is forgotten when the watermark has reached last + ttl, before the record that carries that watermark: what comes
 *    then passes, late or not, however records were batched.
 *
 * @module
 */
import { TimeHeap } from "../heap.ts";
import { keyIdentity } from "../key.ts";
import type { Batch, Marker } from "../record.ts";
import { WatermarkGate } from "../runtime/gate.ts";
import type { Operator, OperatorContext } from "../runtime/operator.ts";
import { selectRecords } from "./select.ts";

/** Lets the first record of a key through. */
export class DedupeOperator implements Operator {
  /** Event time of the last record that passed, by key. */
  readonly #last = new Map<unknown, number>();
  readonly #expiries = new TimeHeap<unknown>();
  readonly #gate: WatermarkGate;

  /** @param ttl ms, or Infinity: for ever. */
  constructor(private readonly ttl: number, private readonly context: OperatorContext) {
    this.#gate = new WatermarkGate(context.inputGroups);
  }

  batch(batch: Batch): void {
    const { ttl } = this, last = this.#last, gate = this.#gate, passed: number[] = [];
    const { channel } = batch.origin;
    gate.wake(channel);
    for (let i = 0; i < batch.length; i++) {
      const own = batch.watermark(i);
      if (own > gate.current) gate.advance(channel, own);
      if (this.#expiries.isDue(gate.current)) this.#forget(gate.current);
      const identity = keyIdentity(batch.key(i)), timestamp = batch.timestamp(i);
      const before = last.get(identity);
      if (before !== undefined && timestamp < before + ttl) continue;
      last.set(identity, timestamp);
      if (ttl < Infinity) this.#expiries.push(timestamp + ttl, identity);
      passed.push(i);
    }
    this.context.dropped("duplicate", batch.length - passed.length);
    this.context.gauges.stateEntries = last.size;
    this.context.output().batch(
      passed.length === batch.length ? batch : selectRecords(batch, batch.values, passed),
    );
  }

  marker(marker: Marker): void {
    if (this.#gate.marker(marker)) this.#forget(this.#gate.current);
    this.context.output().marker(marker);
  }

  #forget(watermark: number): void {
    const expiries = this.#expiries, last = this.#last;
    while (expiries.isDue(watermark)) {
      const time = expiries.earliest, identity = expiries.pop();
      if (last.get(identity) === time - this.ttl) last.delete(identity); // else it passed again since
    }
    this.context.gauges.stateEntries = last.size;
  }
}
