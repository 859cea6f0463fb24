/**
 * How event time and watermarks come out of records.
 *
 * M1 The watermark carried by a record is the one that held just before it: the record itself does not move it.
 * M2 A strategy makes one generator a split (or channel): splits do not know of each other.
 * M3 A watermark never falls: what a generator says below its last word is ignored.
 *
 * @module
 */
import { type Duration, formatDuration, parseDuration } from "../duration.ts";
import { MailerError } from "../errors.ts";
import type { RecordContext, Watermark } from "../record.ts";

/** Makes the watermark of one split from its records. */
export interface WatermarkGenerator<T = unknown> {
  /** Called for each record in order. The watermark that holds after it. */
  after(timestamp: number, value: T): Watermark;
}

/** Where watermarks come from. */
export interface WatermarkStrategy<T = unknown> {
  /** For `describe` and `explain`, e.g. `bounded(5000ms)`. */
  readonly name: string;
  /** Set where the watermark is the greatest timestamp less this bound, ms: the common case, taken without calls. */
  readonly bound?: number;
  /** Makes the generator of one split (or channel); called once for each. */
  generator(): WatermarkGenerator<T>;
  /** After this long without a record (of empty fetches, never of being busy) a split is idle, ms. */
  readonly idleTimeout?: number;
}

/** Settings every strategy takes. */
export interface WatermarkOptions {
  /** After this long of empty fetches a split is idle and holds no watermark back. Default: never. */
  readonly idleTimeout?: Duration;
}

/** Records come at most `bound` out of order: watermark = greatest timestamp − bound. */
export function boundedOutOfOrderness(
  bound: Duration,
  options: WatermarkOptions = {},
): WatermarkStrategy<never> {
  const ms = parseDuration(bound);
  if (ms < 0) {
    throw new MailerError(
      "invalid_watermark",
      `the out-of-orderness bound must not be negative, not ${bound}`,
    );
  }
  return strategy(
    `bounded(${formatDuration(ms)})`,
    () => {
      let greatest = -Infinity;
      return { after: (timestamp) => (timestamp > greatest ? (greatest = timestamp) : greatest) - ms };
    },
    options,
    ms,
  );
}

/** Timestamps of a split never fall: watermark = last timestamp. One that does fall anyway is late. */
export function monotonic(options: WatermarkOptions = {}): WatermarkStrategy<never> {
  return { ...boundedOutOfOrderness(0, options), name: "monotonic" };
}

/** Some records say how far event time is: `watermarkOf` gives the watermark, or `undefined` where the record says nothing. */
export function punctuated<T>(
  watermarkOf: (value: T, timestamp: number) => Watermark | undefined,
  options: WatermarkOptions = {},
): WatermarkStrategy<T> {
  return strategy<T>("punctuated", () => {
    let current = -Infinity;
    return {
      after: (timestamp, value) => current = Math.max(current, watermarkOf(value, timestamp) ?? -Infinity),
    };
  }, options);
}

/** Watermarks of your own making. `create` is called once a split. */
export function customWatermarks<T>(
  create: () => WatermarkGenerator<T>,
  options: WatermarkOptions = {},
): WatermarkStrategy<T> {
  return strategy<T>("custom", create, options);
}

/** No watermarks out of records: only those the source itself gives, and the end of the input. */
export function noWatermarks(options: WatermarkOptions = {}): WatermarkStrategy<never> {
  return strategy("none", () => ({ after: () => -Infinity }), options);
}

function strategy<T>(
  name: string,
  generator: () => WatermarkGenerator<T>,
  options: WatermarkOptions,
  bound?: number,
): WatermarkStrategy<T> {
  const idleTimeout = options.idleTimeout === undefined ? undefined : parseDuration(options.idleTimeout);
  if (idleTimeout !== undefined && !(idleTimeout > 0)) {
    throw new MailerError(
      "invalid_watermark",
      `the idle timeout must be more than 0, not ${options.idleTimeout}`,
    );
  }
  return {
    name,
    generator,
    ...(bound === undefined ? {} : { bound }),
    ...(idleTimeout === undefined ? {} : { idleTimeout }),
  };
}

/** Event time of a record, ms since the epoch. */
export type TimestampOf<T> = (value: T, record: RecordContext) => number;

/** Whether it is a time: a number of milliseconds within ±8.64e15, as a `Date` can hold. */
export function isTimestamp(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= 8.64e15;
}

/** How far the event time of one channel has come: what a checkpoint keeps of it. */
export interface EventTimeSnapshot {
  /** The watermark. */
  readonly current: Watermark;
  /** The greatest timestamp so far, of strategies with a bound; else −Infinity. */
  readonly greatest: number;
}

/** Gives the records of one channel their timestamps and watermarks. */
export class EventTime<T = unknown> {
  /** The watermark that holds now. */
  current: Watermark = -Infinity;
  #greatest = -Infinity;
  readonly #bound: number | undefined;
  readonly #generator: WatermarkGenerator<T>;

  constructor(strategy: WatermarkStrategy<T>) {
    this.#bound = strategy.bound;
    this.#generator = strategy.generator();
  }

  /** How far it has come. What a generator of the user's knows besides is not in it. */
  snapshot(): EventTimeSnapshot {
    return { current: this.current, greatest: this.#greatest };
  }
  /** Goes on from there, perhaps under another strategy: a generator begins anew, its watermark does not fall (M3). */
  restore({ current, greatest }: EventTimeSnapshot): void {
    this.raise(current);
    this.#greatest = Math.max(this.#greatest, greatest);
  }

  /** Event time has reached `time`, whatever the records say. */
  raise(time: Watermark): void {
    if (time > this.current) this.current = time;
  }

  /** Fills `watermarks[i]` with what held before record `i`, and moves on over all `timestamps`. */
  stamp(values: readonly T[], timestamps: Float64Array, watermarks: Float64Array): void {
    if (this.#bound !== undefined) return this.#stampBounded(timestamps, watermarks, this.#bound);
    for (let i = 0; i < timestamps.length; i++) {
      watermarks[i] = this.current;
      const next = this.#generator.after(timestamps[i]!, values[i]!);
      if (next > this.current) this.current = next;
    }
  }

  /** All records have the time `now`: the time of reading. */
  stampAll(values: readonly T[], now: number, timestamps: Float64Array, watermarks: Float64Array): void {
    timestamps.fill(now);
    this.stamp(values, timestamps, watermarks);
  }

  #stampBounded(timestamps: Float64Array, watermarks: Float64Array, bound: number): void {
    let greatest = this.#greatest, current = this.current;
    for (let i = 0; i < timestamps.length; i++) {
      watermarks[i] = current;
      const timestamp = timestamps[i]!;
      if (timestamp > greatest) {
        greatest = timestamp;
        if (timestamp - bound > current) current = timestamp - bound;
      }
    }
    this.#greatest = greatest;
    if (current > this.current) this.current = current;
  }
}
