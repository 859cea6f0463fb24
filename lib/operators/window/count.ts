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
import { keyedState, type OperatorContext } from "../../runtime/operator.ts";
import type { Cell, Table } from "../../state/log/mod.ts";
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
interface Counted {
  readonly pieces: Piece[];
  /** Records since the last row. */
  fresh: number;
}

/** Runs count windows. */
export class CountWindowOperator extends WindowOperator {
  readonly #keys: Table<Counted>;
  /** Records in a piece: every row covers whole pieces, and perhaps an unfinished one at the end of the input. */
  readonly #piece: number;

  constructor(private readonly windows: CountWindows, settings: WindowSettings, context: OperatorContext) {
    super(settings, context);
    // At the end a row may begin anywhere, so sliding windows keep record by record; tumbling ones never need to look back.
    this.#piece = windows.slide === windows.size ? windows.size : 1;
    this.#keys = keyedState(context).space<Counted>("keys").table();
  }

  protected override record(value: unknown, record: RecordContext, timestamp: number): void {
    const identity = keyIdentity(record.key);
    let cell = this.#keys.edit(identity);
    if (cell === undefined) {
      const first = this.#first(value, record, timestamp);
      cell = this.#keys.add(identity, record.key, { pieces: [first], fresh: 0 });
      this.context.gauges.stateEntries++;
    } else this.#add(cell.value.pieces, value, record, timestamp);
    if (++cell.value.fresh === this.windows.slide) this.#emit(cell, this.watermark);
  }

  #first(value: unknown, record: RecordContext, timestamp: number): Piece {
    const { fold } = this.settings;
    return {
      acc: fold.add(fold.create(), value, timestamp, this.sequence, record),
      records: 1,
      newest: timestamp,
    };
  }

  #add(pieces: Piece[], value: unknown, record: RecordContext, timestamp: number): void {
    const filling = pieces.at(-1)!;
    if (filling.records < this.#piece) {
      filling.acc = this.settings.fold.add(filling.acc, value, timestamp, this.sequence, record);
      filling.records++;
      if (timestamp > filling.newest) filling.newest = timestamp;
      return;
    }
    pieces.push(this.#first(value, record, timestamp));
    if (pieces.length * this.#piece > this.windows.size) pieces.shift();
    else this.context.gauges.stateEntries++;
  }

  #emit(cell: Cell<Counted>, watermark: Watermark): void {
    const { pieces } = cell.value;
    this.#row(cell, watermark);
    cell.value.fresh = 0;
    if (this.windows.slide < this.windows.size) return;
    this.context.gauges.stateEntries -= pieces.length;
    this.#keys.remove(cell);
  }

  #row({ key, value: { pieces } }: Cell<Counted>, watermark: Watermark): void {
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
    for (const cell of this.#keys.cells()) {
      if (cell.value.fresh === 0) continue;
      this.#keys.touch(cell);
      this.#emit(cell, this.before);
    }
    this.#keys.drop();
    this.context.gauges.stateEntries = 0;
  }

  protected override restoreOwn(): void {
    let pieces = 0;
    for (const { value } of this.#keys.cells()) pieces += value.pieces.length;
    this.context.gauges.stateEntries = pieces;
  }
}
