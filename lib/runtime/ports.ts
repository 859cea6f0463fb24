/**
 * The joints between operators inside a stage.
 *
 * @module
 */
import { copyValue } from "../value.ts";
import { Batch, type Channel, type Marker, type Origin } from "../record.ts";
import type { EdgeItem } from "./edge.ts";
import type { OperatorCounters } from "./counters.ts";
import type { Barrier } from "./snapshots.ts";
import type { Receiver, StageEntry } from "./operator.ts";

/** Counts what an operator is given, and calls it. */
export class CountedOperator implements Receiver {
  constructor(readonly operator: Receiver, readonly counters: OperatorCounters) {}

  batch(batch: Batch): void {
    this.counters.recordsIn += batch.length;
    this.operator.batch(batch);
  }
  marker(marker: Marker): void {
    this.operator.marker(marker);
  }
}

/** One reader of an output. `copies`: it gets values of its own, because another reader has the originals. */
export interface OutputReader {
  readonly receiver: Receiver;
  readonly copies: boolean;
}

/** Counts what comes to the door of a stage, and has others hear its markers as well. */
export class CountedEntry implements StageEntry {
  constructor(
    private readonly entry: StageEntry,
    private readonly followers: readonly Receiver[],
    private readonly counters: OperatorCounters,
  ) {}

  batch(batch: Batch): void | Promise<void> {
    this.counters.recordsIn += batch.length;
    return this.entry.batch(batch);
  }
  marker(marker: Marker): void {
    this.entry.marker(marker);
    for (const follower of this.followers) follower.marker(marker);
  }
}

/** An output of an operator: counts, and hands on to every reader in turn. Empty batches go nowhere. */
export class OutputPort implements Receiver {
  readonly #readers: OutputReader[] = [];
  readonly #counters: OperatorCounters;

  constructor(counters: OperatorCounters) {
    this.#counters = counters;
  }
  connect(reader: OutputReader): void {
    this.#readers.push(reader);
  }
  batch(batch: Batch): void {
    if (batch.length === 0) return;
    this.#counters.recordsOut += batch.length;
    for (const { receiver, copies } of this.#readers) {
      receiver.batch(copies ? batch.withValues(batch.values.map(copyValue)) : batch);
    }
  }
  marker(marker: Marker): void {
    for (const { receiver } of this.#readers) receiver.marker(marker);
  }
}

/** What a stage has made for one edge, until it is written. */
export class Outbox implements Receiver {
  readonly items: EdgeItem[] = [];

  batch(batch: Batch): void {
    this.items.push(batch);
  }
  marker(marker: Marker | Barrier): void {
    this.items.push(marker);
  }
}

/**
 * Brings several inputs together: input `i` is entered through `port(i)`.
 *
 * Each input's channels become channels of their own, so that a watermark which came by one way never speaks for records
 * still to come by the other. The end goes on when the last input has ended.
 */
export class UnionInput {
  readonly #next: Receiver;
  readonly #groups: readonly ReadonlyMap<number, number>[];
  #open: number;
  #complete = true;

  /** @param groups For each input, the group its channel groups become. */
  constructor(groups: readonly ReadonlyMap<number, number>[], next: Receiver) {
    this.#next = next;
    this.#groups = groups;
    this.#open = groups.length;
  }

  port(input: number): Receiver {
    const groups = this.#groups[input]!;
    const channels = new Map<Channel, Channel>();
    const relabel = (channel: Channel): Channel => {
      let own = channels.get(channel);
      if (own === undefined) {
        own = { group: groups.get(channel.group)!, name: channel.name };
        channels.set(channel, own);
      }
      return own;
    };
    let lastOrigin: Origin | undefined, lastRelabelled: Origin | undefined;
    return {
      batch: (batch) => {
        if (batch.origin !== lastOrigin) {
          lastOrigin = batch.origin;
          lastRelabelled = { ...batch.origin, channel: relabel(batch.origin.channel) };
        }
        this.#next.batch(batch.withOrigin(lastRelabelled!));
      },
      marker: (marker) => {
        switch (marker.kind) {
          case "open":
            return this.#next.marker({
              kind: "open",
              group: groups.get(marker.group)!,
              channels: marker.channels.map(relabel),
            });
          case "watermark":
            return this.#next.marker({ ...marker, channel: relabel(marker.channel) });
          case "idle":
          case "ended":
            return this.#next.marker({ kind: marker.kind, channel: relabel(marker.channel) });
          case "end":
            this.#complete &&= marker.complete;
            if (--this.#open === 0) this.#next.marker({ kind: "end", complete: this.#complete });
        }
      },
    };
  }
}

/**
 * Where the partitions of a stage come together again: `entry(p)` takes what partition `p` hands on.
 *
 * A marker that was broadcast to all partitions goes on once, after the last one delivered it. The markers of a channel that
 * belongs to one partition go on as they come.
 */
export class AlignedMerge {
  readonly #next: Receiver;
  readonly #partitions: number;
  readonly #opened = new Map<number, { channels: Channel[]; missing: number }>();
  /** Broadcast markers that some partitions have delivered: how many. */
  readonly #delivered = new Map<Marker, number>();

  constructor(partitions: number, next: Receiver) {
    this.#partitions = partitions;
    this.#next = next;
  }

  /** @param own The groups whose channels partition `p` makes itself. */
  entry(own: ReadonlySet<number>): Receiver {
    return {
      batch: (batch) => this.#next.batch(batch),
      marker: (marker) => {
        if (marker.kind === "open" && own.has(marker.group)) return this.#open(marker.group, marker.channels);
        if (marker.kind !== "open" && marker.kind !== "end" && own.has(marker.channel.group)) {
          return this.#next.marker(marker);
        }
        if (this.#isLast(marker)) this.#next.marker(marker);
      },
    };
  }

  #open(group: number, channels: readonly Channel[]): void {
    const opened = this.#opened.get(group) ?? { channels: [], missing: this.#partitions };
    opened.channels.push(...channels);
    if (--opened.missing > 0) {
      this.#opened.set(group, opened);
      return;
    }
    this.#opened.delete(group);
    this.#next.marker({ kind: "open", group, channels: opened.channels });
  }

  #isLast(marker: Marker): boolean {
    const count = (this.#delivered.get(marker) ?? 0) + 1;
    if (count < this.#partitions) {
      this.#delivered.set(marker, count);
      return false;
    }
    this.#delivered.delete(marker);
    return true;
  }
}
