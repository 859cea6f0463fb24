/**
 * Count windows: a row over the last `size` records of a key, every `slide` records.
 *
 * C1 With `slide = size` windows tumble and state is purged with every row.
 * C2 At the end of the input a key with records since its last row gives one more, over its last `size` records.
 * C3 A row has the time of its newest record and no window of time.
 *
 * @module
 */
import { keyIdentity } from "../../key.ts";
import type { RecordContext, Watermark } from "../../record.ts";
import type { OperatorContext } from "../../runtime/operator.ts";
import type { CountWindows } from "../../window/assigner.ts";
import { EventTimeOperator } from "../event_time_operator.ts";
import type { WindowSettings } from "./settings.ts";

/** A key: its last records in pieces of `piece` records. */
interface CountedKey {
  readonly key: unknown;
  /** Accumulators, oldest first; the last one is being filled. */
  readonly pieces: unknown[];
  /** Records in the last piece. */
  filled: number;
  /** Records since the last row. */
  fresh: number;
  newest: number;
}

/** Runs count windows. */
export class CountWindowOperator extends EventTimeOperator {
  readonly #keys = new Map<unknown, CountedKey>();
  /** Records in a piece: every row covers whole pieces, and perhaps an unfinished one at the end of the input. */
  readonly #piece: number;

  constructor(
    private readonly windows: CountWindows,
    private readonly settings: WindowSettings,
    context: OperatorContext,
  ) {
    super(context, "event");
    // At the end a row may begin anywhere, so sliding windows keep record by record; tumbling ones never need to look back.
    this.#piece = windows.slide === windows.size ? windows.size : 1;
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number, own: Watermark): void {
    const { fold } = this.settings;
    const identity = keyIdentity(record.key);
    const known = this.#keys.get(identity);
    const state = known ?? { key: record.key, pieces: [], filled: 0, fresh: 0, newest: -Infinity };
    const { pieces } = state;
    const begin = pieces.length === 0 || state.filled === this.#piece;
    const acc = fold.add(begin ? fold.create() : pieces.at(-1), value, timestamp, this.sequence, record);
    if (begin) {
      pieces.push(acc);
      state.filled = 1;
      this.context.gauges.stateEntries++;
      if (pieces.length * this.#piece > this.windows.size) {
        pieces.shift();
        this.context.gauges.stateEntries--;
      }
    } else {
      pieces[pieces.length - 1] = acc;
      state.filled++;
    }
    if (known === undefined) this.#keys.set(identity, state);
    if (timestamp > state.newest) state.newest = timestamp;
    if (++state.fresh === this.windows.slide) this.#emit(identity, state, own);
  }

  #emit(identity: unknown, state: CountedKey, watermark: Watermark): void {
    const { fold, rows } = this.settings;
    const { pieces } = state;
    let acc = pieces[0];
    if (pieces.length > 1) {
      acc = fold.create();
      for (const piece of pieces) acc = fold.merge!(acc, piece);
    }
    for (const row of rows(fold.result(acc), state.key, undefined)) {
      this.rows.add(row, state.key, state.newest, watermark);
    }
    state.fresh = 0;
    if (this.windows.slide < this.windows.size) return;
    this.context.gauges.stateEntries -= pieces.length;
    this.#keys.delete(identity);
  }

  protected override fire(): void {} // counts, not time, close these windows

  protected override complete(): void {
    for (const [identity, state] of this.#keys) if (state.fresh > 0) this.#emit(identity, state, this.before);
    this.#keys.clear();
    this.context.gauges.stateEntries = 0;
  }
}
