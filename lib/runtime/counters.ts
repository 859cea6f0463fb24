/**
 * The numbers a run keeps while it goes: plain fields, added to once a batch, read when somebody asks.
 *
 * @module
 */
import type { DropReason, OperatorGauges } from "./operator.ts";

/** Of one operator, source or sink, all its instances together. */
export class OperatorCounters {
  recordsIn = 0;
  recordsOut = 0;
  errors = 0;
  deadLetters = 0;
  readonly dropped: Map<DropReason, number> = new Map();
  /** One entry an instance. */
  readonly gauges: OperatorGauges[] = [];

  constructor(readonly id: string, readonly type: string, readonly stage: string) {}

  drop(reason: DropReason, count: number): void {
    if (count > 0) this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + count);
  }
  /** Records left out on purpose, for any reason. */
  get droppedTotal(): number {
    let sum = 0;
    for (const count of this.dropped.values()) sum += count;
    return sum;
  }
}

/** Where the time of a stage goes, in ms: working, waiting for room downstream, waiting for input. */
export class StageTimes {
  busy = 0;
  blocked = 0;
  idle = 0;

  constructor(readonly stage: string) {}
}

/** Of one edge. */
export class EdgeCounters {
  sendBlockedMs = 0;

  constructor(readonly name: string, readonly capacity: number, readonly queued: () => number) {}
}

/** Of one split of a source. */
export interface SplitStatus {
  readonly source: string;
  readonly split: string;
  /** Offset of the last record read; undefined before the first. */
  offset: number | undefined;
  watermark: number;
  idle: boolean;
  ended: boolean;
}
