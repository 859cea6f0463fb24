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
}

/** One value. */
export interface ValueState<T> {
  /** The value; `undefined` when there is none. */
  get(): T | undefined;
  set(value: T): void;
  clear(): void;
}

/** A list that grows at its end. */
export interface ListState<T> {
  get(): readonly T[];
  add(value: T): void;
  /** Replaces the whole list. */
  set(values: readonly T[]): void;
  clear(): void;
}

/** A map. Keys may be any JSON value; equal values are one key. */
export interface MapState<K, V> {
  get(key: K): V | undefined;
  has(key: K): boolean;
  set(key: K, value: V): void;
  delete(key: K): void;
  entries(): readonly (readonly [K, V])[];
  readonly size: number;
  clear(): void;
}

/** One value that everything added is reduced into. */
export interface ReducingState<T> {
  get(): T | undefined;
  add(value: T): void;
  clear(): void;
}

/** Gives the handles of an operator. The same name always gives the same state; another kind under one name is an error. */
export interface KeyedStateAccess {
  value<T>(name: string, options?: StateOptions): ValueState<T>;
  list<T>(name: string, options?: StateOptions): ListState<T>;
  map<K, V>(name: string, options?: StateOptions): MapState<K, V>;
  reducing<T>(name: string, reduce: (a: T, b: T) => T, options?: StateOptions): ReducingState<T>;
}
