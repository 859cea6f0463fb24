/**
 * Count windows: a row over the last `size` records of a key, every `slide` records.
 *
 * C1 With `slide = size` windows tumble and state is purged with every row.
 * C2 At the end of the input a key with records since its last row gives one more, over its last `size` records.
 * C3 A row has the time of the newest record in it and no window of time.
 *
 * @module
 */
import { keyIdentity } from "../../key.ts";
import type { RecordContext, Watermark } from "../../record.ts";
import type { OperatorContext } from "../../runtime/operator.ts";
import type { CountWindows } from "../../window/assigner.ts";
import type { WindowSettings } from "./settings.ts";
import { WindowOperator } from "./window_operator.ts";

/** Some records that follow each other. */
interface Piece {
  acc: unknown;
  records: number;
  /** Event time of the newest of them. */
  newest: number;
}

/** A key: its last records in pieces, oldest first; the last one is being filled. */
interface CountedKey {
  readonly key: unknown;
  readonly pieces: Piece[];
  /** Records since the last row. */
  fresh: number;
}

/** Runs count windows. */
export class CountWindowOperator extends WindowOperator {
  readonly #keys = new Map<unknown, CountedKey>();
  /** Records in a piece: every row covers whole pieces, and perhaps an unfinished one at the end of the input. */
  readonly #piece: number;

  constructor(private readonly windows: CountWindows, settings: WindowSettings, context: OperatorContext) {
    super(settings, context);
    // At the end a row may begin anywhere, so sliding windows keep record by record; tumbling ones never need to look back.
    this.#piece = windows.slide === windows.size ? windows.size : 1;
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number): void {
    const { fold } = this.settings;
    const identity = keyIdentity(record.key);
    const known = this.#keys.get(identity);
    const state = known ?? { key: record.key, pieces: [], fresh: 0 };
    const { pieces } = state;
    const filling = pieces.at(-1);
    if (filling !== undefined && filling.records < this.#piece) {
      filling.acc = fold.add(filling.acc, value, timestamp, this.sequence, record);
      filling.records++;
      if (timestamp > filling.newest) filling.newest = timestamp;
    } else {
      const acc = fold.add(fold.create(), value, timestamp, this.sequence, record);
      pieces.push({ acc, records: 1, newest: timestamp });
      if (pieces.length * this.#piece > this.windows.size) pieces.shift();
      else this.context.gauges.stateEntries++;
    }
    if (known === undefined) this.#keys.set(identity, state);
    if (++state.fresh === this.windows.slide) this.#emit(identity, state, this.watermark);
  }

  #emit(identity: unknown, state: CountedKey, watermark: Watermark): void {
    const { pieces } = state;
    this.#row(state, watermark);
    state.fresh = 0;
    if (this.windows.slide < this.windows.size) return;
    this.context.gauges.stateEntries -= pieces.length;
    this.#keys.delete(identity);
  }

  #row({ pieces, key }: CountedKey, watermark: Watermark): void {
    const { fold } = this.settings;
    let newest = -Infinity, acc = pieces[0]!.acc;
    for (const piece of pieces) if (piece.newest > newest) newest = piece.newest;
    if (pieces.length > 1) {
      try {
        acc = fold.create();
        for (const piece of pieces) acc = fold.merge!(acc, piece.acc);
      } catch (error) {
        return this.rowFailed(error, key, newest, undefined);
      }
    }
    this.give(acc, key, newest, watermark, undefined);
  }

  protected override fire(): void {} // counts, not time, close these windows

  protected override complete(): void {
    for (const [identity, state] of this.#keys) if (state.fresh > 0) this.#emit(identity, state, this.before);
    this.#keys.clear();
    this.context.gauges.stateEntries = 0;
  }
}
