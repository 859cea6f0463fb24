/**
 * `reduce` and `aggregate` without a window whose results are forgotten: those of keys that no record has come for in a while.
 *
 * V1 A record begins anew when its time is at least that of the latest record of its key + ttl.
 * V2 A key is forgotten when the watermark has reached its latest record + ttl, before the record that carries that watermark: what
 *    comes then begins anew, late or not. A result that would be forgotten at once is not kept.
 *
 * @module
 */
import { type KeyIdentity, keyIdentity } from "../key.ts";
import { Batch, type Marker, RecordView, type Watermark } from "../record.ts";
import { WatermarkGate } from "../runtime/gate.ts";
import { keyedState, type Operator, type OperatorContext } from "../runtime/operator.ts";
import type { Table } from "../state/log/mod.ts";
import { freeExpired } from "./expiry.ts";
import type { Fold, RowShape } from "./fold.ts";
import { leaveOut } from "./select.ts";

/** What a checkpoint keeps besides the accumulators. */
interface Snapshot {
  readonly sequence: number;
  readonly watermark: Watermark;
}

/** Folds each record into the state of its key, as long as that is kept, and hands on the result in the record's place. */
export class RunningTtlOperator implements Operator {
  /** The accumulator of each key. It expires by the watermark. */
  readonly #accs: Table;
  readonly #gate: WatermarkGate;
  readonly #view = new RecordView();
  #sequence = 0;

  /** @param ttl ms, finite. */
  constructor(
    private readonly fold: Fold,
    private readonly shape: RowShape | undefined,
    private readonly ttl: number,
    private readonly context: OperatorContext,
  ) {
    const gate = this.#gate = new WatermarkGate(context.inputGroups);
    const options = { time: () => gate.current, paged: context.paged };
    this.#accs = keyedState(context).space("acc", options).table();
  }

  prefetch(identities: () => readonly KeyIdentity[]): Promise<void> | undefined {
    return this.#accs.resident ? undefined : this.#accs.prefetch(identities());
  }

  batch(batch: Batch): void {
    const { fold, shape } = this, view = this.#view, gate = this.#gate, { length } = batch;
    const { channel } = batch.origin, risenFrom = gate.current;
    const results = new Array<unknown>(length);
    let failed: number[] | undefined;
    view.batch = batch;
    gate.wake(channel);
    for (let i = 0; i < length; i++) {
      const own = batch.watermark(i);
      if (own > gate.current) gate.advance(channel, own);
      view.index = i;
      try {
        const key = batch.key(i);
        const result = fold.result(this.#add(key, batch.values[i], batch.timestamp(i)));
        results[i] = shape === undefined ? result : shape(result, key, undefined);
      } catch (error) {
        this.context.failed(batch, i, error);
        (failed ??= []).push(i);
      }
    }
    if (gate.current > risenFrom) freeExpired(this.#accs, length);
    this.#count();
    const made = new Batch(results, batch.origin, batch.rows, batch.keys, batch.oneToOne);
    this.context.output().batch(failed === undefined ? made : leaveOut(made, results, failed));
  }

  /** Folds a record. One that fails leaves everything as it was. @returns The accumulator. */
  #add(key: unknown, value: unknown, timestamp: number): unknown {
    const accs = this.#accs, identity = keyIdentity(key), cell = accs.edit(identity);
    const isOver = cell === undefined || timestamp >= cell.expires!;
    const before = isOver ? this.fold.create() : cell.value;
    const acc = this.fold.add(before, value, timestamp, ++this.#sequence, this.#view);
    const expires = timestamp + this.ttl;
    if (cell !== undefined) accs.set(identity, acc, Math.max(cell.expires!, expires), cell.key);
    else if (expires > this.#gate.current) accs.add(identity, key, acc, expires); // else V2
    return acc;
  }

  marker(marker: Marker): void {
    if (this.#gate.marker(marker)) {
      if (marker.kind === "end") this.#accs.drop(); // the watermark is Infinity, and nothing more comes
      else freeExpired(this.#accs, 0);
      this.#count();
    }
    this.context.output().marker(marker);
  }

  #count(): void {
    this.context.gauges.stateEntries = this.#accs.keys;
  }

  snapshot(): unknown {
    return { sequence: this.#sequence, watermark: this.#gate.current } satisfies Snapshot;
  }

  restore(snapshots: readonly unknown[]): void {
    for (const { sequence, watermark } of snapshots as readonly Snapshot[]) {
      this.#sequence = Math.max(this.#sequence, sequence);
      this.#gate.restore(watermark);
    }
    this.#count();
  }
}
