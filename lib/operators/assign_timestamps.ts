/**
 * `assignTimestamps` (`timestamp` in documents): event time and watermarks from here on, out of the values.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { type Batch, type Channel, type Marker, type Origin, RecordView } from "../record.ts";
import type { Operator, OperatorContext } from "../runtime/operator.ts";
import {
  EventTime,
  type EventTimeSnapshot,
  isTimestamp,
  type TimestampOf,
  type WatermarkStrategy,
} from "../runtime/watermarks.ts";
import { leaveOut } from "./select.ts";

/** What a checkpoint keeps: the event time of each channel in front, by its name. */
interface Snapshot {
  readonly partition: number;
  readonly times: ReadonlyMap<string, EventTimeSnapshot>;
}

interface Own {
  readonly channel: Channel;
  readonly eventTime: EventTime;
  announced: number;
  idle: boolean;
}

/** Replaces timestamps, and makes watermarks anew for each channel that comes in. */
export class AssignTimestampsOperator implements Operator {
  readonly #channels = new Map<Channel, Own>();
  /** Groups in front that have not opened; and the channels of those that have, until all have. */
  readonly #unopened: Set<number>;
  #opened: Channel[] = [];
  /** Event time of channels at the checkpoint the run goes on from, by name. */
  readonly #restored = new Map<string, EventTimeSnapshot>();
  readonly #view = new RecordView();

  constructor(
    private readonly timestampOf: TimestampOf<unknown>,
    private readonly watermarks: WatermarkStrategy,
    private readonly context: OperatorContext,
  ) {
    this.#unopened = new Set(context.inputGroups);
  }

  snapshot(): unknown {
    const heard = new Map<string, EventTimeSnapshot>();
    for (const [{ name }, { eventTime }] of this.#channels) keepLeast(heard, name, eventTime.snapshot());
    const { partition } = this.context;
    return { partition, times: new Map([...this.#restored, ...heard]) } satisfies Snapshot;
  }

  restore(snapshots: readonly unknown[]): void {
    const { partition, partitions } = this.context, all = snapshots as readonly Snapshot[];
    const former = all.length === partitions ? all.filter((one) => one.partition === partition) : all;
    for (const { times } of former) {
      for (const [name, time] of times) keepLeast(this.#restored, name, time);
    }
  }

  batch(batch: Batch): void {
    const own = this.#own(batch.origin.channel);
    this.#wake(own);
    const stamped = this.#timestamps(batch);
    const { origin, values } = stamped;
    const count = values.length;
    const timestamps = Float64Array.from(values, (_, i) => stamped.timestamp(i));
    const watermarks = new Float64Array(count);
    own.eventTime.stamp(values, timestamps, watermarks);
    // The columns go back to the rows they belong to: other rows of the origin are not in the batch.
    const rowTimes = new Float64Array(origin.timestamps.length),
      rowMarks = new Float64Array(origin.timestamps.length);
    for (let i = 0; i < count; i++) {
      rowTimes[stamped.row(i)] = timestamps[i]!;
      rowMarks[stamped.row(i)] = watermarks[i]!;
    }
    const renewed: Origin = { ...origin, channel: own.channel, timestamps: rowTimes, watermarks: rowMarks };
    this.context.output().batch(stamped.withOrigin(renewed));
    this.#announce(own);
  }

  marker(marker: Marker): void {
    const out = this.context.output();
    switch (marker.kind) {
      case "open":
        this.#open(marker.group, marker.channels);
        break;
      case "watermark":
        this.#heard(this.#own(marker.channel)); // event time itself is made anew here
        break;
      case "idle": {
        const own = this.#own(marker.channel);
        own.idle = true;
        out.marker({ kind: "idle", channel: own.channel });
        break;
      }
      case "ended":
        out.marker({ kind: "ended", channel: this.#own(marker.channel).channel });
        break;
      case "end":
        out.marker(marker);
    }
  }

  /** The batch with the new timestamps in an origin of its own, one row a value; failed records are not in it. */
  #timestamps(batch: Batch): Batch {
    const view = this.#view, { values } = batch;
    const count = values.length, timestamps = new Float64Array(count);
    const failed: number[] = [];
    view.batch = batch;
    for (let i = 0; i < count; i++) {
      view.index = i;
      try {
        const timestamp: unknown = this.timestampOf(values[i], view);
        if (!isTimestamp(timestamp)) {
          throw new MailerError(
            "no_timestamp",
            `expected milliseconds since the epoch, got ${String(timestamp)}`,
          );
        }
        timestamps[i] = timestamp;
      } catch (error) {
        failed.push(i);
        this.context.failed(batch, i, error);
      }
    }
    const own = ownRows(batch, timestamps);
    return failed.length === 0 ? own : leaveOut(own, own.values, failed);
  }

  #own(channel: Channel): Own {
    let own = this.#channels.get(channel);
    if (own === undefined) {
      const made: Channel = { group: this.context.channel.group, name: `${this.context.id}/${channel.name}` };
      const eventTime = new EventTime(this.watermarks), restored = this.#restored.get(channel.name);
      if (restored !== undefined) eventTime.restore(restored);
      own = { channel: made, eventTime, announced: -Infinity, idle: false };
      this.#channels.set(channel, own);
    }
    return own;
  }

  /** The groups in front become one behind: it opens when all of them have. */
  #open(group: number, channels: readonly Channel[]): void {
    this.#unopened.delete(group);
    this.#opened.push(...channels.map((channel) => this.#own(channel).channel));
    if (this.#unopened.size > 0) return;
    this.context.output().marker({ kind: "open", group: this.context.channel.group, channels: this.#opened });
    this.#opened = [];
  }

  /** What is in front wakes, or says that all have heard of it. */
  #heard(own: Own): void {
    if (own.idle) this.#wake(own);
    else this.#announce(own);
  }

  #wake(own: Own): void {
    if (!own.idle) return;
    own.idle = false;
    this.context.output().marker({ kind: "watermark", channel: own.channel, time: own.announced });
    own.announced = -Infinity; // to be said again when all have heard that it is awake
  }

  #announce(own: Own): void {
    const time = own.eventTime.current;
    if (time <= own.announced) return;
    own.announced = time;
    this.context.output().marker({ kind: "watermark", channel: own.channel, time });
  }
}

/**
 * Several channels may have one name: one split that comes by several ways, one channel in several partitions. None of them is to
 * be ahead of its own records afterwards: they would be late.
 */
function keepLeast(times: Map<string, EventTimeSnapshot>, name: string, time: EventTimeSnapshot): void {
  const { current = Infinity, greatest = Infinity } = times.get(name) ?? {};
  times.set(name, {
    current: Math.min(current, time.current),
    greatest: Math.min(greatest, time.greatest),
  });
}

/** The batch over an origin with exactly its rows: two values of one row (a flatMap's) may now differ in time. */
function ownRows(batch: Batch, timestamps: Float64Array): Batch {
  const { origin, rows } = batch;
  const pick = <T>(column: readonly T[] | undefined): T[] | undefined =>
    column === undefined ? undefined : Array.from(timestamps, (_, i) => column[batch.row(i)]!);
  const offsets = rows === undefined
    ? origin.offsets
    : origin.offsets === undefined && origin.firstOffset === undefined
    ? undefined
    : Float64Array.from(timestamps, (_, i) => batch.offset(i)!);
  return batch.withRows({
    ...origin,
    timestamps,
    firstOffset: rows === undefined ? origin.firstOffset : undefined,
    offsets,
    headers: pick(origin.headers),
    keys: pick(origin.keys),
    texts: pick(origin.texts),
    windows: pick(origin.windows),
  });
}
