/**
 * The sums that say whether a run was right. Sums over all rows, so their order does not matter; all below 2^53.
 *
 * Engine and loop add up through the same classes, so both pay the same for being checked. (No `#fields`: V8 is slower
 * at those.)
 *
 * @module
 */
import { EPOCH_MS, numberIn, type Order } from "./data.ts";

/** Named sums of one run. */
export type Sums = Readonly<Record<string, number>>;

/** Row of W-a. */
export interface OrderWithFee extends Order {
  readonly fee: number;
}

/** Sums of W-a. */
export class FeeTally {
  private rows = 0;
  private id = 0;
  private fee = 0;
  /** The last row: without a reader of the object, the compiler would never make it. */
  last: OrderWithFee | undefined;

  add(row: OrderWithFee): void {
    this.rows++;
    this.id += row.id;
    this.fee += row.fee;
    this.last = row;
  }
  sums(): Sums {
    return { rows: this.rows, sum_id: this.id, sum_fee: this.fee };
  }
}

/** Sums of W-b. */
export class RunningTally {
  private rows = 0;
  private running = 0;
  /** Newest sum by key number: an array, because a map here would cost as much as the state under test. */
  private readonly newest = new Float64Array(100_000);

  add(key: string, sum: number): void {
    this.rows++;
    this.running += sum;
    this.newest[numberIn(key, 8)] = sum;
  }
  sums(): Sums {
    let keys = 0, final = 0, weighted = 0;
    this.newest.forEach((sum, k) => {
      if (sum > 0) keys++;
      final += sum;
      weighted += (k + 1) * sum;
    });
    return {
      rows: this.rows,
      keys,
      sum_running: this.running,
      sum_final: final,
      sum_final_weighted: weighted,
    };
  }
}

/** Sums of W-c and W-d; the windows of a workload start at multiples of its slide. */
export class WindowTally {
  private rows = 0;
  private count = 0;
  private sum = 0;
  private byKey = 0;
  private byWindow = 0;
  private squared = 0;
  private readonly prefix: number;
  private readonly slideMs: number;
  private readonly beforeFirst: number;

  /**
   * @param prefix Characters of a key in front of its number.
   * @param slideMs Distance between window starts, ms.
   * @param windowsARecord size ÷ slide.
   */
  constructor(prefix: number, slideMs: number, windowsARecord: number) {
    this.prefix = prefix;
    this.slideMs = slideMs;
    this.beforeFirst = EPOCH_MS / slideMs - windowsARecord;
  }
  add(key: string, start: number, count: number, sum: number): void {
    this.rows++;
    this.count += count;
    this.sum += sum;
    this.byKey += (numberIn(key, this.prefix) + 1) * count;
    this.byWindow += (start / this.slideMs - this.beforeFirst) * count;
    this.squared += count * count;
  }
  sums(): Sums {
    return {
      rows: this.rows,
      sum_count: this.count,
      sum_sum: this.sum,
      sum_count_by_key: this.byKey,
      sum_count_by_window: this.byWindow,
      sum_count_squared: this.squared,
    };
  }
}

/** Sums of W-e. */
export class SessionTally {
  private rows = 0;
  private count = 0;
  private byKey = 0;
  private squared = 0;
  private span = 0;
  private start = 0;

  /** @param first Timestamp of the session's first record, ms; `last` likewise. */
  add(key: string, count: number, first: number, last: number): void {
    this.rows++;
    this.count += count;
    this.byKey += (numberIn(key, 4) + 1) * count;
    this.squared += count * count;
    this.span += last - first;
    this.start += first - EPOCH_MS;
  }
  sums(): Sums {
    return {
      rows: this.rows,
      sum_count: this.count,
      sum_count_by_key: this.byKey,
      sum_count_squared: this.squared,
      sum_span_ms: this.span,
      sum_start_ms_minus_T0: this.start,
    };
  }
}

/** What is wrong with `got`: one sentence a sum that differs from `want`; empty = right. */
export function differences(got: Sums, want: Sums): string[] {
  return Object.keys(want)
    .filter((name) => got[name] !== want[name])
    .map((name) => `${name} is ${got[name] ?? "missing"}, expected ${want[name]}`);
}
