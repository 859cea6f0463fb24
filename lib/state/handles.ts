/**
 * State of a key, as user code sees it.
 *
 * H1 A handle always speaks of the key whose record or timer is being worked on.
 * H2 What is put in is copied, what is taken out is a copy: changing either changes nothing in the state.
 * H3 With a `ttl`, what has not been written for that long is gone: it reads as missing from then on, and its memory is freed.
 *
 * @module
 */
import type { Duration } from "../duration.ts";

/** Settings of a state. */
export interface StateOptions {
  /** How long a value lives after it was last written. Default: for ever. */
  readonly ttl?: Duration;
  /** Whose time `ttl` goes by. Default: event time (the operator's watermark). */
  readonly ttlTime?: "event" | "processing";
  /**
   * Version of what its values look like, 0 … 255. Default 0. Raise it when the program begins to keep something else under the name.
   * State of an older version then goes through `migrate`; without one, and with state of a newer version, the run ends with the
   * error `state_version`.
   */
  readonly version?: number;
  /**
   * Brings what was stored under an older version to the current one: the value of a value or reducing state, each element of a list,
   * each value of a map (keys stay). Called when the state is used for the first time after a restore, for all keys; what it
   * throws ends the run. Keep it for good: a value that is only read stays stored as it was.
   */
  readonly migrate?: (value: unknown, version: number) => unknown;
}

/** One value. */
export interface ValueState<T> {
  /** The value; `undefined` when there is none. */
  get(): T | undefined;
  /** Replaces the value; its `ttl` begins anew. */
  set(value: T): void;
  /** Forgets the value. */
  clear(): void;
}

/** A list that grows at its end. */
export interface ListState<T> {
  /** All elements, oldest first; empty when there are none. */
  get(): readonly T[];
  /** Appends an element. */
  add(value: T): void;
  /** Replaces the whole list. */
  set(values: readonly T[]): void;
  /** Forgets all elements. */
  clear(): void;
}

/** A map. Keys may be any JSON value; equal values are one key. */
export interface MapState<K, V> {
  /** The value under the key; `undefined` when there is none. */
  get(key: K): V | undefined;
  /** Whether there is a value under the key. */
  has(key: K): boolean;
  /** Puts a value under the key. */
  set(key: K, value: V): void;
  /** Forgets the key; nothing happens when it is not there. */
  delete(key: K): void;
  /** Keys and values, in the order in which the keys were first set. */
  entries(): readonly (readonly [K, V])[];
  /** Number of keys. */
  readonly size: number;
  /** Forgets all keys. */
  clear(): void;
}

/** One value that everything added is reduced into. */
export interface ReducingState<T> {
  /** What everything added has become; `undefined` before the first. */
  get(): T | undefined;
  /** Reduces a value into it; the first one becomes the result as it is. */
  add(value: T): void;
  /** Starts from nothing again. */
  clear(): void;
}

/** Gives the handles of an operator. The same name always gives the same state; another kind under one name is an error. */
export interface KeyedStateAccess {
  /** The handle of one value. */
  value<T>(name: string, options?: StateOptions): ValueState<T>;
  /** The handle of a list. */
  list<T>(name: string, options?: StateOptions): ListState<T>;
  /** The handle of a map. */
  map<K, V>(name: string, options?: StateOptions): MapState<K, V>;
  /** The handle of one value that everything added is reduced into. */
  reducing<T>(name: string, reduce: (a: T, b: T) => T, options?: StateOptions): ReducingState<T>;
}
