/**
 * What operators with rows of their own have in common: a watermark made of their inputs', a channel, and the rule that what is
 * due at a record's watermark fires before the record is processed.
 *
 * V1 Before a record is processed, everything due at the watermark it carries has fired; so results do not depend on how
 *    records were batched or when markers travelled.
 * V2 Rows go in front of the watermark that made them due.
 * V3 The operator's watermark goes out when a marker comes in, never ahead of a row that belongs before it.
 * V4 What is behind is called when a batch or marker has been worked through, never in the middle of a record: its errors are not
 *    the record's.
 * V5 A row carries the operator's watermark, not that of the record it came of: with several channels that one may be ahead.
 * V6 After a restore the watermark goes on from where it was: what was due up to there has fired, what is late for it is late. It is
 *    announced once more, for those behind know nothing yet.
 *
 * @module
 */
import {
  Batch,
  type Marker,
  type Origin,
  type RecordContext,
  RecordView,
  type Watermark,
} from "../record.ts";
import type { TimeDomain } from "../window/assigner.ts";
import { WatermarkGate } from "../runtime/gate.ts";
import type { Operator, OperatorContext, Receiver } from "../runtime/operator.ts";
import { RowWriter } from "./rows.ts";
import { selectRecords } from "./select.ts";

/** What a checkpoint keeps of an instance, besides its keyed state. */
interface OperatorSnapshot {
  readonly partition: number;
  readonly watermark: Watermark;
  readonly before: Watermark;
  readonly sequence: number;
  /** What the kind of operator adds. */
  readonly own: unknown;
}

/** Base of windows, timers and joins. In processing time the clock stands in for timestamps and watermarks. */
export abstract class EventTimeOperator implements Operator {
  protected readonly view: RecordView = new RecordView();
  protected readonly rows: RowWriter;
  /** The operator's watermark. */
  protected watermark: Watermark = -Infinity;
  /** The watermark before the one that is being acted on: what rows due now carry. */
  protected before: Watermark = -Infinity;
  /** Number of the record, counting all that came to this instance: the order of arrival. */
  protected sequence = 0;
  readonly #gate: WatermarkGate;
  #announced: Watermark = -Infinity;
  #opened = false;
  #idle = false;
  /** The watermark is to be announced once more, risen or not. */
  #repeats = false;
  /** The restored watermark is ahead of where some of the keys were. */
  #isBehind = false;
  readonly #out: Receiver;
  readonly #readsLate: boolean;
  /** Late records of the batch, where somebody reads them. */
  #late: number[] = [];

  /** @param time Whose time the operator goes by. */
  constructor(protected readonly context: OperatorContext, protected readonly time: TimeDomain = "event") {
    this.#gate = new WatermarkGate(context.inputGroups);
    this.#out = context.output();
    this.#readsLate = context.isRead("late");
    this.rows = new RowWriter(this.#out, context.channel, context.id, String(context.partition));
  }

  /** One record. `own` is the watermark that held in its own channel before it. Throwing is a record error. */
  protected abstract record(value: unknown, record: RecordContext, timestamp: number, own: Watermark): void;
  /**
   * Looks up what the records of a batch will need, in a loop of its own: the memory of many keys is then waited for at once,
   * not one key after the other. What is found may be out of date when its record's turn comes.
   */
  protected lookUp?(batch: Batch): void;
  /** Everything due at `this.watermark`. */
  protected abstract fire(): void;
  /** The input is complete: everything still open. `this.watermark` is Infinity. Default: what is due then. */
  protected complete(): void {
    this.fire();
  }

  /** Processing time at which something will be due; Infinity when nothing. Asked after every batch where the clock counts. */
  protected nextDue(): number {
    return Infinity;
  }

  snapshot(): unknown {
    this.flush(); // a restore may have made rows, and nothing has come since
    const { watermark, before, sequence, context } = this;
    const own = this.snapshotOwn();
    return { partition: context.partition, watermark, before, sequence, own } satisfies OperatorSnapshot;
  }
  /** What the kind of operator adds to a snapshot, as plain data. Default: nothing. */
  protected snapshotOwn(): unknown {
    return undefined;
  }

  restore(snapshots: readonly unknown[]): void {
    const { partition, partitions } = this.context, all = snapshots as readonly OperatorSnapshot[];
    // With as many partitions as before each has the keys it had. Their clocks are not one: a partition's is that of its last batch.
    const former = all.length === partitions ? all.filter((one) => one.partition === partition) : all;
    const joined = this.time === "event" ? Math.max : Math.min;
    if (former.length > 0) {
      this.watermark = joined(...former.map(({ watermark }) => watermark));
      this.before = joined(...former.map(({ before }) => before));
      this.sequence = Math.max(...former.map(({ sequence }) => sequence));
    }
    if (this.time === "event") {
      this.#gate.restore(this.watermark);
      const least = Math.min(this.watermark, ...former.map(({ watermark }) => watermark));
      this.#isBehind = least < this.watermark;
      if (this.#isBehind) this.before = least;
    }
    this.restoreOwn(former.map(({ own }) => own));
    this.#wake();
  }
  /**
   * Takes over what `snapshotOwn` gave in each former instance whose keys may be here now. Keyed state is in memory, watermark and
   * sequence are restored by then.
   */
  protected restoreOwn(_own: readonly unknown[]): void {}

  /** Some of the keys come from an instance that had not heard of the restored watermark: what is due at it fires now. */
  #catchUp(): void {
    this.#isBehind = false;
    this.fire();
  }

  batch(batch: Batch): void {
    if (this.#isBehind) this.#catchUp();
    this.view.batch = batch;
    this.#gate.wake(batch.origin.channel);
    if (this.time === "event") {
      this.lookUp?.(batch);
      this.#eventTime(batch);
    } else this.#processingTime(batch);
    this.flush();
    this.#wake();
  }

  /** Hands on what has been made so far. An operator with more outputs hands on theirs as well. */
  protected flush(): void {
    this.rows.flush();
    if (this.#late.length === 0) return;
    const { batch } = this.view, late = this.#late;
    this.#late = [];
    this.context.output("late").batch(selectRecords(batch, batch.values, late));
  }

  tick(now: number): void {
    if (this.time === "processing") this.#clockAt(now);
    this.onClock(now);
    this.flush();
    if (this.time === "processing") this.#announce(this.watermark);
    this.#wake();
  }
  /** Work that goes by the clock in either domain (early rows, processing-time timers). */
  protected onClock(_now: number): void {}

  #wake(): void {
    const due = this.nextDue();
    if (due < Infinity) this.context.wakeAt(due);
  }

  #processingTime(batch: Batch): void {
    // A clock that was put back does not make records late.
    const now = Math.max(this.context.clock.now(), this.watermark), { values } = batch, view = this.view;
    this.#clockAt(now);
    for (let i = 0; i < values.length; i++) {
      view.index = i;
      this.sequence++;
      try {
        this.record(values[i], view, now, now);
      } catch (error) {
        this.context.failed(batch, i, error);
      }
    }
  }

  /** The clock has reached `now`: a window that ends then is complete. */
  #clockAt(now: number): void {
    if (now <= this.watermark) return;
    this.before = this.watermark;
    this.watermark = now;
    this.fire();
  }

  #eventTime(batch: Batch): void {
    const { values, origin, rows } = batch, { timestamps, watermarks, channel } = origin, view = this.view;
    const length = values.length;
    for (let i = 0; i < length; i++) {
      const row = rows === undefined ? i : rows[i]!;
      const own = watermarks[row]!;
      // Most records carry a watermark that has been acted on already.
      if (own > this.watermark && this.#gate.advance(channel, own)) this.#rise();
      view.index = i;
      this.sequence++;
      try {
        this.record(values[i], view, timestamps[row]!, own);
      } catch (error) {
        this.context.failed(batch, i, error);
      }
    }
  }

  marker(marker: Marker): void {
    if (this.#isBehind) this.#catchUp();
    const rose = this.#gate.marker(marker);
    if (marker.kind === "end") {
      if (marker.complete) {
        this.before = this.watermark;
        this.watermark = this.#gate.current;
        this.complete();
      }
      this.flush();
      if (marker.complete && this.#opened) this.#out.marker({ kind: "ended", channel: this.context.channel });
      this.#out.marker(marker);
      return;
    }
    if (!this.#opened) {
      this.#opened = true;
      this.#out.marker({ kind: "open", group: this.context.channel.group, channels: [this.context.channel] });
    }
    if (this.time === "processing") return;
    if (rose) this.#rise();
    this.flush();
    this.#announce(this.#gate.current);
    this.#wake();
  }

  #rise(): void {
    this.before = this.watermark;
    this.watermark = this.#gate.current;
    this.fire();
  }

  #announce(time: Watermark): void {
    const { channel } = this.context;
    if (time > this.#announced || this.#repeats) {
      this.#announced = Math.max(time, this.#announced);
      this.#repeats = false;
      this.#out.marker({ kind: "watermark", channel, time: this.#announced });
      this.#idle = false;
    }
    if (this.#gate.idle === this.#idle) return;
    this.#idle = this.#gate.idle;
    if (this.#idle) return this.#out.marker({ kind: "idle", channel });
    this.#out.marker({ kind: "watermark", channel, time: this.#announced });
    this.#repeats = true; // said again when all have heard that it is awake
  }

  /** Stands in errors and dead letters for what is no record: a timer, a window. */
  protected standIn(value: unknown, key: unknown, timestamp: number): Batch {
    const { id, partition, channel } = this.context;
    const origin: Origin = {
      channel,
      source: id,
      split: String(partition),
      timestamps: Float64Array.of(timestamp),
      watermarks: Float64Array.of(this.before),
      firstOffset: undefined,
      offsets: undefined,
      headers: undefined,
      keys: [key],
      texts: undefined,
      windows: undefined,
      bytes: 0,
    };
    return new Batch([value], origin, undefined, undefined, false);
  }

  /** Sends a record that came too late to the `late` output, or counts it where nobody reads that. */
  protected late(behind: number): void {
    const { gauges } = this.context;
    gauges.late++;
    if (behind > gauges.maxLateness) gauges.maxLateness = behind;
    if (this.#readsLate) this.#late.push(this.view.index);
    else this.context.dropped("late", 1);
  }
}
