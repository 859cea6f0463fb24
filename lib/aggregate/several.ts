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
): AggregateFunction<In, unknown[], AggregatesRow<A>> {
  const names = Object.keys(functions);
  const all = names.map((name) => steps(functions[name]!));
  const careful = all.flatMap((f, i) => f.fallible ? [i] : []);
  const carefree = all.flatMap((f, i) => f.fallible ? [] : [i]);
  const order = [...all.keys()].sort((a, b) => Number(all[a]!.ownAdd) - Number(all[b]!.ownAdd));
  const taken: unknown[] = new Array(all.length);
  const merged: unknown[] = new Array(all.length);
  return {
    name: "aggregates",
    create: () => all.map((f) => f.create()),
    add(acc, value, timestamp, sequence) {
      for (const i of order) taken[i] = all[i]!.read(acc[i], value, timestamp, sequence);
      for (let i = 0; i < all.length; i++) acc[i] = all[i]!.fold(acc[i], taken[i], timestamp, sequence);
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
      return row as AggregatesRow<A>;
    },
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
  const { create, merge, result } = f;
  const common = { create: create.bind(f), merge: merge.bind(f), result: result.bind(f) };
  if (!isStepped(f)) {
    return {
      ...common,
      fallible: false,
      ownAdd: true,
      read: f.add.bind(f),
      fold: (_, added) => added,
    };
  }
  return {
    ...common,
    fallible: f.fallible === true,
    ownAdd: false,
    read: f.read.bind(f),
    fold: f.fold.bind(f),
  };
}

function isStepped<In>(
  f: AggregateFunction<In, unknown, unknown>,
): f is SteppedFunction<In, unknown, unknown> {
  return "read" in f && "fold" in f;
}
