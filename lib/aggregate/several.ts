/**
 * Several aggregates over the same records, as one.
 *
 * A record that one of the functions refuses is added to none of them, and so with merging.
 *
 * @module
 */
import { setOwn } from "../value.ts";
import type { AggregateFunction, SteppedFunction } from "./function.ts";

/** Functions by the name of the column each fills. */
// deno-lint-ignore no-explicit-any -- every column has an accumulator of its own, which nobody else looks into
export type Aggregates<In> = Readonly<Record<string, AggregateFunction<In, any, unknown>>>;

/** The row that {@link aggregates} makes. */
export type AggregatesRow<A> = {
  // deno-lint-ignore no-explicit-any -- as above
  [Name in keyof A]: A[Name] extends AggregateFunction<any, any, infer Out> ? Out : never;
};

/**
 * One function out of several; its result is an object with a field for each, in their order.
 *
 * A function of the user's own is added when the others have taken what they need, so that only one more such function
 * can refuse a record behind its back; it should throw before it changes anything.
 */
export function aggregates<In, A extends Aggregates<In>>(
  functions: A,
): AggregateFunction<In, unknown, AggregatesRow<A>> {
  const names = Object.keys(functions), [name, ...others] = names;
  const only = name !== undefined && others.length === 0 ? functions[name] : undefined;
  if (only !== undefined && isNumber(only)) {
    return alone(name!, only) as AggregateFunction<In, unknown, AggregatesRow<A>>;
  }
  return together(names, functions) as AggregateFunction<In, unknown, AggregatesRow<A>>;
}

/** Whether a function is one of our own that begins with a number. It never has `undefined` for an accumulator, then. */
function isNumber<In>(f: AggregateFunction<In, unknown, unknown>): boolean {
  return isStepped(f) && typeof f.create() === "number";
}

/** One function: its accumulator needs no list around it, and windows of counts take half the memory. */
function alone<In>(
  name: string,
  f: AggregateFunction<In, unknown, unknown>,
): AggregateFunction<In, unknown, object> {
  return {
    name: "aggregates",
    create: () => f.create(),
    add: (acc, value, timestamp, sequence) => f.add(acc, value, timestamp, sequence),
    merge: (a, b) => f.merge(a, b),
    result(acc) {
      const row = {};
      setOwn(row, name, f.result(acc));
      return row;
    },
  };
}

function together<In>(
  names: readonly string[],
  functions: Aggregates<In>,
): AggregateFunction<In, unknown[], object> {
  const all = names.map((name) => steps(functions[name]!));
  const careful = all.flatMap((f, i) => f.fallible ? [i] : []);
  const carefree = all.flatMap((f, i) => f.fallible ? [] : [i]);
  const add = adder(all);
  const merged: unknown[] = new Array(all.length);
  return {
    name: "aggregates",
    create: creator(all),
    add: (acc, value, timestamp, sequence) => {
      add(acc, value, timestamp, sequence);
      return acc;
    },
    merge(a, b) {
      for (const i of careful) merged[i] = all[i]!.merge(a[i], b[i]);
      for (const i of careful) a[i] = merged[i];
      for (const i of carefree) a[i] = all[i]!.merge(a[i], b[i]);
      return a;
    },
    result(acc) {
      const row = {};
      for (let i = 0; i < all.length; i++) setOwn(row, names[i]!, all[i]!.result(acc[i]));
      return row;
    },
  };
}

/**
 * Makes empty accumulators. Where all are plain values they are copied from one list: of numbers alone it is a list of doubles,
 * which are changed in place, while every other number stored is a new object on the heap.
 */
function creator<In>(all: readonly Steps<In>[]): () => unknown[] {
  const empty = all.map((f) => f.create());
  if (empty.every((acc) => typeof acc !== "object" || acc === null)) return () => empty.slice();
  return () => all.map((f) => f.create());
}

/** Adds a record to all accumulators or, where one of the functions refuses it, to none. */
type Adder<In> = (acc: unknown[], value: In, timestamp: number, sequence: number) => void;

/**
 * The adder of some functions. Few functions of our own are called by name, not in a loop: each call then has one target, which
 * the compiler can put in its place. With three functions that is four times as fast.
 */
function adder<In>(all: readonly Steps<In>[]): Adder<In> {
  const [a, b, c, d] = all;
  if (all.length > 4 || all.some((f) => f.ownAdd)) return anyAdder(all);
  if (b === undefined) {
    return (acc, value, t, s) => {
      acc[0] = a!.fold(acc[0], a!.read(acc[0], value, t, s), t, s);
    };
  }
  if (c === undefined) {
    return (acc, value, t, s) => {
      const forA = a!.read(acc[0], value, t, s), forB = b.read(acc[1], value, t, s);
      acc[0] = a!.fold(acc[0], forA, t, s);
      acc[1] = b.fold(acc[1], forB, t, s);
    };
  }
  if (d === undefined) {
    return (acc, value, t, s) => {
      const forA = a!.read(acc[0], value, t, s), forB = b.read(acc[1], value, t, s);
      const forC = c.read(acc[2], value, t, s);
      acc[0] = a!.fold(acc[0], forA, t, s);
      acc[1] = b.fold(acc[1], forB, t, s);
      acc[2] = c.fold(acc[2], forC, t, s);
    };
  }
  return (acc, value, t, s) => {
    const forA = a!.read(acc[0], value, t, s), forB = b.read(acc[1], value, t, s);
    const forC = c.read(acc[2], value, t, s), forD = d.read(acc[3], value, t, s);
    acc[0] = a!.fold(acc[0], forA, t, s);
    acc[1] = b.fold(acc[1], forB, t, s);
    acc[2] = c.fold(acc[2], forC, t, s);
    acc[3] = d.fold(acc[3], forD, t, s);
  };
}

function anyAdder<In>(all: readonly Steps<In>[]): Adder<In> {
  const order = [...all.keys()].sort((a, b) => Number(all[a]!.ownAdd) - Number(all[b]!.ownAdd));
  const taken: unknown[] = new Array(all.length);
  return (acc, value, timestamp, sequence) => {
    for (const i of order) taken[i] = all[i]!.read(acc[i], value, timestamp, sequence);
    for (let i = 0; i < all.length; i++) acc[i] = all[i]!.fold(acc[i], taken[i], timestamp, sequence);
  };
}

/** A function in two steps, whose first is told all that `add` is. */
interface Steps<In> {
  readonly fallible: boolean;
  /** Its only step is `add`, which may change the accumulator. */
  readonly ownAdd: boolean;
  create(): unknown;
  read(acc: unknown, value: In, timestamp: number, sequence: number): unknown;
  fold(acc: unknown, read: unknown, timestamp: number, sequence: number): unknown;
  merge(a: unknown, b: unknown): unknown;
  result(acc: unknown): unknown;
}

function steps<In>(f: AggregateFunction<In, unknown, unknown>): Steps<In> {
  const common = {
    create: () => f.create(),
    merge: (a: unknown, b: unknown) => f.merge(a, b),
    result: (acc: unknown) => f.result(acc),
  };
  if (!isStepped(f)) {
    return {
      ...common,
      fallible: false,
      ownAdd: true,
      read: (acc, value, timestamp, sequence) => f.add(acc, value, timestamp, sequence),
      fold: (_, added) => added,
    };
  }
  return {
    ...common,
    fallible: f.fallible === true,
    ownAdd: false,
    read: (acc, value) => f.read(acc, value),
    fold: (acc, read, timestamp, sequence) => f.fold(acc, read, timestamp, sequence),
  };
}

function isStepped<In>(
  f: AggregateFunction<In, unknown, unknown>,
): f is SteppedFunction<In, unknown, unknown> {
  return "read" in f && "fold" in f;
}
