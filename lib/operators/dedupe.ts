/**
 * `dedupe`: the first record of a key in a stretch of event time.
 *
 * U1 A record passes when its time is at least that of the last one that passed + ttl. A duplicate prolongs nothing.
 * U2 A key is forgotten when the watermark has reached last + ttl, before the record that carries that watermark: what comes
 *    then passes, late or not, however records were batched.
 *
 * @module
 */
import { type KeyIdentity, keyIdentity } from "../key.ts";
import type { Batch, Marker, Watermark } from "../record.ts";
import { WatermarkGate } from "../runtime/gate.ts";
import { keyedState, type Operator, type OperatorContext } from "../runtime/operator.ts";
import type { Table } from "../state/log/mod.ts";
import { freeExpired } from "./expiry.ts";
import { selectRecords } from "./select.ts";

/** What a checkpoint keeps besides the keys. */
interface Snapshot {
  readonly watermark: Watermark;
}

/** Lets the first record of a key through. */
export class DedupeOperator implements Operator {
  /** Event time of the last record that passed, by key. It expires by the watermark. */
  readonly #last: Table<number>;
  readonly #gate: WatermarkGate;

  /** @param ttl ms, or Infinity: for ever. */
  constructor(private readonly ttl: number, private readonly context: OperatorContext) {
    const gate = this.#gate = new WatermarkGate(context.inputGroups);
    const options = ttl === Infinity ? {} : { time: () => gate.current };
    this.#last = keyedState(context).space<number>("last", { ...options, paged: context.paged }).table();
  }

  prefetch(identities: () => readonly KeyIdentity[]): Promise<void> | undefined {
    return this.#last.resident ? undefined : this.#last.prefetch(identities());
  }

  batch(batch: Batch): void {
    const { ttl } = this, last = this.#last, gate = this.#gate, passed: number[] = [];
    const { channel } = batch.origin, risenFrom = gate.current;
    gate.wake(channel);
    for (let i = 0; i < batch.length; i++) {
      const own = batch.watermark(i);
      if (own > gate.current) gate.advance(channel, own);
      const key = batch.key(i), identity = keyIdentity(key), timestamp = batch.timestamp(i);
      const before = last.get(identity);
      if (before !== undefined && timestamp < before.value + ttl) continue;
      const expires = ttl === Infinity ? undefined : timestamp + ttl;
      if (expires !== undefined && expires <= gate.current) { // forgotten as soon as it is kept: U2
        if (before !== undefined) last.remove(before);
      } else if (before === undefined) last.add(identity, key, timestamp, expires);
      else last.set(identity, timestamp, expires, before.key);
      passed.push(i);
    }
    this.context.dropped("duplicate", batch.length - passed.length);
    if (gate.current > risenFrom) this.#free(batch.length);
    this.#count();
    this.context.output().batch(
      passed.length === batch.length ? batch : selectRecords(batch, batch.values, passed),
    );
  }

  marker(marker: Marker): void {
    if (this.#gate.marker(marker)) {
      if (marker.kind === "end" && this.ttl < Infinity) this.#last.drop(); // the watermark is Infinity, and nothing more comes
      else this.#free(0);
      this.#count();
    }
    this.context.output().marker(marker);
  }

  #free(records: number): void {
    if (this.ttl < Infinity) freeExpired(this.#last, records);
  }

  #count(): void {
    this.context.gauges.stateEntries = this.#last.live;
  }

  snapshot(): unknown {
    return { watermark: this.#gate.current } satisfies Snapshot;
  }

  restore(snapshots: readonly unknown[]): void {
    for (const { watermark } of snapshots as readonly Snapshot[]) this.#gate.restore(watermark);
    this.#count();
  }
}
