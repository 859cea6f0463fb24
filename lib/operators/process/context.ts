/**
 * What a keyed process function is, and what it works with.
 *
 * @module
 */
import type { Headers, RecordContext, Watermark } from "../../record.ts";
import type { KeyedStateAccess } from "../../state/handles.ts";
import type { TimeDomain } from "../../window/assigner.ts";

/** A timer that has come due. */
export interface Timer {
  /** The name it was set with, if any. */
  readonly name: string | undefined;
  /** The time it was set to, ms. */
  readonly time: number;
  /** Whose time it goes by. */
  readonly domain: TimeDomain;
}

/** What an emitted record has other than the record or timer it comes from. */
export interface EmitOptions {
  /** Event time, ms. It must not be behind the watermark, or the record is late downstream. */
  readonly timestamp?: number;
  /** Default: those of the record being worked on; none in a timer. */
  readonly headers?: Headers;
}

/** What a keyed process function works with. Valid during the call only. */
export interface KeyedContext<K = unknown, Out = unknown> extends KeyedStateAccess {
  /** The key all state and timers here are of. */
  readonly key: K;
  /** Event time of the record; of a timer, the time it was set to. */
  readonly timestamp: number;
  /** Event time is complete up to here. */
  readonly watermark: Watermark;
  /** The record being worked on; undefined in a timer. */
  readonly record: RecordContext | undefined;
  /** Emits to the main output. Default time: that of the record or timer. */
  emit(value: Out, options?: EmitOptions): void;
  /** Emits to a side output. */
  output(tag: string, value: unknown, options?: EmitOptions): void;
  /** Calls `onTimer` when the watermark reaches `time`. */
  setEventTimer(time: number, name?: string): void;
  /** Calls `onTimer` when the clock reaches `time`. */
  setProcessingTimer(time: number, name?: string): void;
  /** Deletes a timer by its name, or by its time when it has none. Whether there was one. */
  deleteEventTimer(nameOrTime: string | number): boolean;
  /** As {@link KeyedContext.deleteEventTimer}, for processing time. */
  deleteProcessingTimer(nameOrTime: string | number): boolean;
}

/** A keyed process function. */
export interface KeyedProcess<T, K, Out> {
  /**
   * Called for each record of the key, in order. A thrown error is a record error: the call then emits nothing, and leaves state and
   * timers of the key as they were before it.
   */
  onRecord(value: T, context: KeyedContext<K, Out>): void;
  /**
   * Called for each timer that comes due, in the order of their times. A thrown error goes to the failure policy as well, and undoes
   * what the call has done; the timer does not fire again.
   */
  onTimer?(timer: Timer, context: KeyedContext<K, Out>): void;
}
