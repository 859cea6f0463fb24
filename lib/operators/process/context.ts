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
  readonly name: string | undefined;
  /** The time it was set to, ms. */
  readonly time: number;
  readonly domain: TimeDomain;
}

/** What an emitted record has other than the record or timer it comes from. */
export interface EmitOptions {
  readonly timestamp?: number;
  readonly headers?: Headers;
}

/** What a keyed process function works with. Valid during the call only. */
export interface KeyedContext<K = unknown, Out = unknown> extends KeyedStateAccess {
  readonly key: K;
  /** Event time of the record; of a timer, the time it was set to. */
  readonly timestamp: number;
  /** Event time is complete up to here. */
  readonly watermark: Watermark;
  /** The record being worked on; undefined in a timer. */
  readonly record: RecordContext | undefined;
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
  onRecord(value: T, context: KeyedContext<K, Out>): void;
  onTimer?(timer: Timer, context: KeyedContext<K, Out>): void;
}
