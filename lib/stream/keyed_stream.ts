/**
 * Keyed streams and windows on them.
 *
 * @module
 */
import { type Aggregates, aggregates, type AggregatesRow } from "../aggregate/mod.ts";
import { type Duration, parseDuration } from "../duration.ts";
import { MailerError } from "../errors.ts";
import { DedupeOperator } from "../operators/dedupe.ts";
import {
  aggregateFold,
  type Element,
  elementsFold,
  type Fold,
  reduceFold,
  type RowShape,
} from "../operators/fold.ts";
import type { KeyedContext, KeyedProcess } from "../operators/process/context.ts";
import { KeyedProcessOperator } from "../operators/process/keyed.ts";
import { RunningOperator } from "../operators/running.ts";
import { RunningTtlOperator } from "../operators/running_ttl.ts";
import { oneRow, windowOperator, type WindowRows, type WindowTrigger } from "../operators/window/mod.ts";
import type { RecordContext, WindowOfRow } from "../record.ts";
import type { NodeOutput } from "../plan/graph.ts";
import type { TimeDomain, WindowAssigner } from "../window/assigner.ts";
import type { OperatorOptions, OperatorSpec } from "./graph_builder.ts";
import { declared, type ProcessOptions, Stream } from "./stream.ts";

/** Settings of running results. */
export interface RunningOptions extends OperatorOptions {
  /**
   * A key is forgotten when event time has gone on this far from its latest record: a later record begins anew. Default: never.
   * Windows end by themselves and take none.
   */
  readonly ttl?: Duration;
}

/** Settings of `reduce`. */
export interface ReduceOptions<Acc> extends OperatorOptions {
  /**
   * Joins two results, the earlier one first. Only windows that merge (sessions) or overlap (sliding) have a use for it; without
   * it they keep all records instead.
   */
  readonly merge?: (a: Acc, b: Acc) => Acc;
}

/** When a window gives rows besides the one when it closes. */
export interface TriggerOptions {
  /** A row for each window that has changed, this often in processing time; the row's window says `early`. */
  readonly early?: Duration;
  /** A row for every so many records of a key and window. */
  readonly every?: number;
  /** Start from nothing after such a row, instead of accumulating. Default `accumulate`. */
  readonly mode?: "accumulate" | "purge";
}

/** Records of type `T` grouped by a key of type `K`. Whatever passes records on keeps the key. */
export class KeyedStream<K, T> extends Stream<T> {
  /** @ignore */
  override sibling<U>(origin: NodeOutput): KeyedStream<K, U> {
    return new KeyedStream<K, U>(this.scope, origin);
  }
  /** Another value for each record; the key stays, whatever the value becomes. */
  override map<U>(fn: (value: T, record: RecordContext) => U, options?: OperatorOptions): KeyedStream<K, U> {
    return this.#keyed(super.map(fn, options));
  }
  /** Any number of values for each record, all with its key. */
  override flatMap<U>(
    fn: (value: T, record: RecordContext) => Iterable<U>,
    options?: OperatorOptions,
  ): KeyedStream<K, U> {
    return this.#keyed(super.flatMap(fn, options));
  }
  /** Keeps the records that `predicate` says yes to, with their keys. */
  override filter(
    predicate: (value: T, record: RecordContext) => boolean,
    options?: OperatorOptions,
  ): KeyedStream<K, T> {
    return this.#keyed(super.filter(predicate, options));
  }

  /**
   * The running result of its key for every record.
   *
   * @param fn Takes the result so far (`undefined` at first) and a value. Throwing is a record error and must leave the result
   *   so far as it was.
   */
  reduce<Acc>(
    fn: (acc: Acc | undefined, value: T, record: RecordContext) => Acc,
    options: ReduceOptions<Acc> & RunningOptions = {},
  ): KeyedStream<K, Acc> {
    return this.fold<Acc>("reduce", reduceFold(fn as Reducer), undefined, true, options);
  }

  /** The running results of several aggregate functions for every record, as one object. */
  aggregate<A extends Aggregates<T>>(
    functions: A,
    options: RunningOptions = {},
  ): KeyedStream<K, AggregatesRow<A>> {
    return this.fold<AggregatesRow<A>>("aggregate", foldOf<T, A>(functions), undefined, true, options);
  }

  /** @ignore A running fold with rows of a shape. */
  fold<Out>(
    type: string,
    fold: Fold,
    shape: RowShape | undefined,
    userCode: boolean,
    options: RunningOptions,
  ): KeyedStream<K, Out> {
    const ttl = ttlOf(type, options);
    const create: OperatorSpec["create"] = (context) =>
      ttl === Infinity
        ? new RunningOperator(fold, shape, context)
        : new RunningTtlOperator(fold, shape, ttl, context);
    const config = ttl === Infinity ? {} : { ttl };
    return this.#keyed(this.with<Out>({ type, create, keyed: true, userCode, config }, options));
  }

  /** A function of your own with state and timers of the key. */
  processKeyed<Out>(
    process: KeyedProcess<T, K, Out> | ((value: T, context: KeyedContext<K, Out>) => void),
    options: ProcessOptions = {},
  ): KeyedStream<K, Out> {
    const whole = typeof process === "function" ? { onRecord: process } : process;
    const create: OperatorSpec["create"] = (context) =>
      new KeyedProcessOperator(whole as KeyedProcess<unknown, unknown, unknown>, context);
    const sideOutputs = declared(options.outputs, "own");
    return this.#keyed(
      this.with<Out>({ type: "process", create, keyed: true, ownRows: true, sideOutputs }, options),
    );
  }

  /** The first record of the key in each stretch of `ttl` of event time. Without `ttl`: the first one ever. */
  dedupe(options: RunningOptions = {}): KeyedStream<K, T> {
    const ttl = ttlOf("dedupe", options);
    const create: OperatorSpec["create"] = (context) => new DedupeOperator(ttl, context);
    const config = ttl === Infinity ? {} : { ttl };
    return this.#keyed(
      this.with<T>({ type: "dedupe", create, keyed: true, userCode: false, config }, options),
    );
  }

  /** Groups the records of a key into windows. */
  window(assigner: WindowAssigner): WindowedStream<K, T> {
    return new WindowedStream<K, T>(this, {
      assigner,
      time: "event",
      allowedLateness: 0,
      trigger: undefined,
    });
  }

  /** @ignore Adds a window operator; used by {@link WindowedStream}. */
  windowed<Out>(
    type: string,
    setup: WindowSetup,
    fold: Fold,
    rows: WindowRows,
    userCode: boolean,
    options: OperatorOptions,
  ): KeyedStream<K, Out> {
    const { assigner, time, allowedLateness, trigger } = setup;
    checkSetup(setup);
    const timezone = assigner.kind === "panes" || assigner.kind === "session" ? assigner.timezone : undefined;
    const settings = { time, timezone, allowedLateness, trigger, fold, rows };
    return this.#keyed(this.with<Out>({
      type,
      create: (context) => windowOperator(assigner, settings, context),
      keyed: true,
      ownRows: true,
      userCode,
      config: {
        window: assigner.description,
        ...(time === "event" ? {} : { time }),
        allowedLateness,
        ...(trigger === undefined ? {} : { trigger }),
        ...(fold.merge === undefined && assigner.kind === "session" ? { keeps: "records" } : {}),
      },
      sideOutputs: { late: "passed" },
    }, options));
  }

  #keyed<U>(stream: Stream<U>): KeyedStream<K, U> {
    return new KeyedStream<K, U>(this.scope, stream.origin);
  }
}

/** How a window is set up. */
export interface WindowSetup {
  readonly assigner: WindowAssigner;
  readonly time: TimeDomain;
  readonly allowedLateness: number;
  readonly trigger: WindowTrigger | undefined;
}

/** Settings that a kind of window has no use for are a mistake, not something to pass over. */
function checkSetup({ assigner, time, allowedLateness, trigger }: WindowSetup): void {
  if (assigner.kind !== "count" && assigner.kind !== "global") return;
  const what = `a ${assigner.kind} window`;
  if (allowedLateness > 0) {
    throw new MailerError("invalid_window", `${what} is never late: it takes no allowed lateness`);
  }
  if (time === "processing") {
    throw new MailerError("invalid_window", `${what} goes by no time: not by the clock either`);
  }
  if (assigner.kind === "count" && trigger !== undefined) {
    throw new MailerError("invalid_window", `${what} takes no trigger`, {
      hint: "use its slide, or a global window with a trigger",
    });
  }
}

/** One window of one key, for window functions. */
export interface WindowContext<K> {
  /** The key whose window it is. */
  readonly key: K;
  /** Undefined for count and global windows. */
  readonly window: WindowOfRow | undefined;
}

/** The records of a key, window by window. */
export class WindowedStream<K, T> {
  readonly #stream: KeyedStream<K, T>;
  readonly #setup: WindowSetup;

  /** @ignore Made by `window`. */
  constructor(stream: KeyedStream<K, T>, setup: WindowSetup) {
    this.#stream = stream;
    this.#setup = setup;
  }

  /** How long after its end a window still takes records; each gives its whole row again. Default 0. */
  allowedLateness(lateness: Duration): WindowedStream<K, T> {
    const ms = parseDuration(lateness);
    if (!(ms >= 0)) {
      throw new MailerError("invalid_window", `the allowed lateness must not be negative, not ${lateness}`);
    }
    return this.#with({ allowedLateness: ms });
  }

  /** Rows besides the one when a window closes. */
  trigger(options: TriggerOptions): WindowedStream<K, T> {
    const early = options.early === undefined ? undefined : parseDuration(options.early);
    if (early !== undefined && !(early > 0)) {
      throw new MailerError("invalid_window", `trigger: early must be more than 0, not ${options.early}`);
    }
    if (options.every !== undefined && !(Number.isInteger(options.every) && options.every >= 1)) {
      throw new MailerError(
        "invalid_window",
        `trigger: every must be a whole number from 1, not ${options.every}`,
      );
    }
    return this.#with({
      trigger: {
        ...(early === undefined ? {} : { early }),
        ...(options.every === undefined ? {} : { every: options.every }),
        purge: options.mode === "purge",
      },
    });
  }

  /** Windows by the clock instead of by the records' time: never late, not repeatable. */
  inProcessingTime(): WindowedStream<K, T> {
    return this.#with({ time: "processing" });
  }

  /**
   * One result per key and window. The row's record has the key, the window, and the event time of the window's last instant.
   * Records that come too late leave by `sideOutput("late")`.
   */
  reduce<Acc>(
    fn: (acc: Acc | undefined, value: T, record: RecordContext) => Acc,
    options: ReduceOptions<Acc> = {},
  ): KeyedStream<K, Acc> {
    const merge = options.merge as ((a: unknown, b: unknown) => unknown) | undefined;
    return this.fold<Acc>("reduce", reduceFold(fn as Reducer, merge), oneRow(undefined), true, options);
  }

  /** The results of several aggregate functions per key and window, as one object. */
  aggregate<A extends Aggregates<T>>(
    functions: A,
    options: OperatorOptions = {},
  ): KeyedStream<K, AggregatesRow<A>> {
    return this.fold<AggregatesRow<A>>(
      "aggregate",
      foldOf<T, A>(functions),
      oneRow(undefined),
      true,
      options,
    );
  }

  /** A function of your own over all records of a window, in order of arrival; as many rows as it returns. */
  process<Out>(
    fn: (elements: readonly Element<T>[], context: WindowContext<K>) => Iterable<Out>,
    options: OperatorOptions = {},
  ): KeyedStream<K, Out> {
    const rows: WindowRows = (elements, key, window) => [
      ...fn(elements as readonly Element<T>[], { key: key as K, window }),
    ];
    return this.fold<Out>("process", elementsFold((elements) => elements) as Fold, rows, true, options);
  }

  /** @ignore A fold with rows of a shape. */
  fold<Out>(
    type: string,
    fold: Fold,
    rows: WindowRows,
    userCode: boolean,
    options: OperatorOptions,
  ): KeyedStream<K, Out> {
    return this.#stream.windowed<Out>(type, this.#setup, fold, rows, userCode, options);
  }

  #with(change: Partial<WindowSetup>): WindowedStream<K, T> {
    return new WindowedStream<K, T>(this.#stream, { ...this.#setup, ...change });
  }
}

/** ms; Infinity without one. */
function ttlOf(operator: string, { ttl }: RunningOptions): number {
  const ms = ttl === undefined ? Infinity : parseDuration(ttl);
  if (!(ms > 0)) {
    throw new MailerError("invalid_option", `${operator}: the ttl must be more than 0, not ${ttl}`);
  }
  return ms;
}

type Reducer = (acc: unknown, value: unknown, record: RecordContext) => unknown;

function foldOf<T, A extends Aggregates<T>>(functions: A): Fold {
  if (Object.keys(functions).length === 0) {
    throw new MailerError("invalid_option", "aggregate: name at least one function");
  }
  return aggregateFold(aggregates<T, A>(functions) as Parameters<typeof aggregateFold>[0]);
}
