/**
 * Streams: the fluent description of a pipeline. Nothing here runs; every call adds a node to the graph.
 *
 * @module
 */
import type { AsyncNode, KeyByNode, NodeOutput, OperatorNode, SinkNode } from "../plan/graph.ts";
import type { Sink } from "../connector.ts";
import { type Duration, parseDuration } from "../duration.ts";
import { MailerError } from "../errors.ts";
import { AssignTimestampsOperator } from "../operators/assign_timestamps.ts";
import { FilterOperator } from "../operators/filter.ts";
import { FlatMapOperator } from "../operators/flat_map.ts";
import { MapOperator } from "../operators/map.ts";
import { type ProcessFunction, ProcessOperator } from "../operators/process/stateless.ts";
import { type Route, RouteOperator } from "../operators/route.ts";
import { SampleOperator } from "../operators/sample.ts";
import { ThrottleOperator } from "../operators/throttle.ts";
import type { RecordContext } from "../record.ts";
import type { TimestampOf, WatermarkStrategy } from "../runtime/watermarks.ts";
import { monotonic } from "../runtime/watermarks.ts";
import type { GraphBuilder, OperatorOptions, OperatorSpec, RetryOptions } from "./graph_builder.ts";
import { retryPolicy } from "./graph_builder.ts";
import type { KeyedStream } from "./keyed_stream.ts";
import { readableSink } from "./readable_sink.ts";

/** A side output and the type of what leaves by it. */
export interface OutputTag<T> {
  /** Name of the output, unique in its operator. */
  readonly name: string;
  /** Only for the type checker. */
  readonly __type?: T;
}

/** Names a side output. */
export function outputTag<T>(name: string): OutputTag<T> {
  return { name };
}

/** Settings of a sink. */
export interface SinkOptions extends OperatorOptions {
  /** Failing calls of the sink are made again before the run ends. Default: they are not. */
  readonly retry?: RetryOptions;
}

/** Settings of `process`. */
export interface ProcessOptions extends OperatorOptions {
  /** Side outputs it may emit to although nobody reads them here. Those read with `sideOutput` need not be listed. */
  readonly outputs?: readonly (OutputTag<unknown> | string)[];
}

/** Settings of `keyBy`. */
export interface KeyByOptions extends OperatorOptions {
  /** Partitions that share the keys, 1 … number of key groups. Default: the pipeline's parallelism. */
  readonly partitions?: number;
}

/** What all streams of one pipeline share. */
export interface StreamScope {
  readonly graph: GraphBuilder;
  readonly defaultPartitions: () => number;
  /** Makes keyed streams: they are streams themselves, so this file cannot know their class. */
  readonly keyed: <K, T>(scope: StreamScope, origin: NodeOutput) => KeyedStream<K, T>;
}

/** Records of type `T` on their way. */
export class Stream<T> {
  /** @ignore What the streams of a pipeline share. */
  readonly scope: StreamScope;
  /** @ignore The output this stream is. */
  readonly origin: NodeOutput;

  /** @ignore Made by an environment or another stream. */
  constructor(scope: StreamScope, origin: NodeOutput) {
    this.scope = scope;
    this.origin = origin;
  }

  /** Another value for each record; key, time, headers and position stay. */
  map<U>(fn: (value: T, record: RecordContext) => U, options?: OperatorOptions): Stream<U> {
    return this.with<U>(
      { type: "map", create: (context) => new MapOperator(fn as Fn<unknown>, context) },
      options,
    );
  }

  /** Any number of values for each record. */
  flatMap<U>(fn: (value: T, record: RecordContext) => Iterable<U>, options?: OperatorOptions): Stream<U> {
    const create: OperatorSpec["create"] = (context) =>
      new FlatMapOperator(fn as Fn<Iterable<unknown>>, context);
    return this.with<U>({ type: "flatMap", create }, options);
  }

  /** Keeps the records that `predicate` says yes to. */
  filter(predicate: (value: T, record: RecordContext) => boolean, options?: OperatorOptions): Stream<T> {
    const create: OperatorSpec["create"] = (context) => new FilterOperator(predicate as Fn<boolean>, context);
    return this.with<T>({ type: "filter", create }, options);
  }

  /**
   * Any number of records for each record, with other keys, times and headers where wanted, to the main output and to side
   * outputs. A thrown error is a record error.
   */
  process<U>(fn: ProcessFunction<T, U>, options: ProcessOptions = {}): Stream<U> {
    const create: OperatorSpec["create"] = (context) =>
      new ProcessOperator(fn as ProcessFunction<unknown, unknown>, context);
    return this.with<U>(
      { type: "process", create, sideOutputs: declared(options.outputs, "passed") },
      options,
    );
  }

  /** A side output of the operator this stream comes from. */
  sideOutput<U>(tag: OutputTag<U> | string): Stream<U> {
    const name = typeof tag === "string" ? tag : tag.name;
    const { node } = this.origin;
    if (node.kind !== "operator") {
      throw new MailerError("no_side_output", `"${node.id}" (${node.type}) has no side outputs`);
    }
    const open = node.type === "process"; // its function decides which ones there are
    if (!Object.hasOwn(node.sideOutputs, name)) {
      if (!open) {
        throw new MailerError("no_side_output", `"${node.id}" (${node.type}) has no side output "${name}"`);
      }
      (node.sideOutputs as Record<string, "passed" | "own">)[name] = node.ownRows ? "own" : "passed";
    }
    return this.sibling<U>({ node, output: name });
  }

  /** @ignore A stream of another output, keyed if this one is. */
  sibling<U>(origin: NodeOutput): Stream<U> {
    return new Stream<U>(this.scope, origin);
  }

  /**
   * Splits the stream: each record goes to the first route that is true, else to `fallback`, else nowhere (counted as
   * `unrouted`).
   *
   * @returns A stream for each name.
   */
  route<Name extends string>(
    routes: readonly { readonly name: Name; readonly when: (value: T, record: RecordContext) => boolean }[],
    options?: OperatorOptions,
  ): Readonly<Record<Name, Stream<T>>>;
  /** As above, with a stream for what no route takes. */
  route<Name extends string, Rest extends string>(
    routes: readonly { readonly name: Name; readonly when: (value: T, record: RecordContext) => boolean }[],
    options: OperatorOptions & { readonly fallback: Rest },
  ): Readonly<Record<Name | Rest, Stream<T>>>;
  route(
    routes: readonly { readonly name: string; readonly when: (value: T, record: RecordContext) => boolean }[],
    options: OperatorOptions & { readonly fallback?: string } = {},
  ): Readonly<Record<string, Stream<T>>> {
    const { fallback } = options;
    const names = routes.map(({ name }) => name);
    if (fallback !== undefined) names.push(fallback);
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    if (twice !== undefined) {
      throw new MailerError("invalid_option", `route: two routes are called "${twice}"`);
    }
    const node = this.scope.graph.operator({
      type: "route",
      inputs: [this.origin],
      create: (context) => new RouteOperator(routes as readonly Route[], fallback, context),
      config: {
        routes: routes.map(({ name }) => name),
        ...(fallback === undefined ? {} : { default: fallback }),
      },
      sideOutputs: Object.fromEntries(names.map((name) => [name, "passed"])),
    }, options);
    return Object.fromEntries(names.map((name) => [name, this.sibling<T>({ node, output: name })]));
  }

  /** One record per element of a list; the rest of the record is kept. See {@link Stream.flatMap} for anything else. */
  explode<Item, U>(
    list: (value: T) => Iterable<Item>,
    combine: (value: T, item: Item) => U,
    options?: OperatorOptions,
  ): Stream<U> {
    const create: OperatorSpec["create"] = (context) =>
      new FlatMapOperator(function* (value) {
        for (const item of list(value as T)) yield combine(value as T, item);
      }, context);
    return this.with<U>({ type: "explode", create }, options);
  }

  /** A repeatable share of the records. @param ratio 0 … 1. @param seed Default 0. */
  sample(ratio: number, options: OperatorOptions & { readonly seed?: number } = {}): Stream<T> {
    if (!(ratio >= 0 && ratio <= 1)) {
      throw new MailerError("invalid_option", `sample: the ratio must be from 0 to 1, not ${ratio}`);
    }
    const seed = options.seed ?? 0;
    const create: OperatorSpec["create"] = (context) => new SampleOperator(ratio, seed, context);
    return this.with<T>({ type: "sample", create, config: { ratio, seed }, userCode: false }, options);
  }

  /** At most `rate` records per `per` (default 1 s) of processing time; the others wait. */
  throttle(rate: number, options: OperatorOptions & { readonly per?: Duration } = {}): Stream<T> {
    const per = parseDuration(options.per ?? 1000);
    if (!(rate > 0) || !(per > 0)) {
      throw new MailerError("invalid_option", "throttle: rate and per must be more than 0");
    }
    const node = this.scope.graph.add<AsyncNode>({
      kind: "async",
      id: options.id ?? this.scope.graph.newId("throttle"),
      type: "throttle",
      inputs: [this.origin],
      onError: options.onError ?? "fail",
      config: { rate, per },
      create: (context) => new ThrottleOperator(rate, per, context),
      userCode: false,
    });
    return new Stream<T>(this.scope, { node, output: undefined });
  }

  /** Event time and watermarks from here on, out of the values. Default watermarks: monotonic. */
  assignTimestamps(
    timestamp: (value: T, record: RecordContext) => number,
    watermarks?: WatermarkStrategy<T>,
    options?: OperatorOptions,
  ): Stream<T> {
    const strategy = (watermarks ?? monotonic()) as WatermarkStrategy;
    const create: OperatorSpec["create"] = (context) =>
      new AssignTimestampsOperator(timestamp as TimestampOf<unknown>, strategy, context);
    const config = { watermarks: strategy.name };
    return this.with<T>({ type: "assignTimestamps", create, config, ownRows: true }, options);
  }

  /** This stream and others as one. Order is kept within each, not between them. */
  union(...others: readonly Stream<T>[]): Stream<T> {
    return new Stream<T>(this.scope, this.scope.graph.union([this.origin, ...others.map((o) => o.origin)]));
  }

  /** Groups records by a key. What follows works key by key, each key on one of the partitions. */
  keyBy<K>(key: (value: T, record: RecordContext) => K, options: KeyByOptions = {}): KeyedStream<K, T> {
    const node = this.scope.graph.add<KeyByNode>({
      kind: "keyBy",
      id: options.id ?? this.scope.graph.newId("keyBy"),
      type: "keyBy",
      inputs: [this.origin],
      onError: options.onError ?? "fail",
      config: {},
      keyOf: key as Fn<unknown>,
      partitions: options.partitions ?? this.scope.defaultPartitions(),
    });
    return this.scope.keyed<K, T>(this.scope, { node, output: undefined });
  }

  /** Instances of the (stateless) operator in front. More than one: order is not kept. */
  withParallelism(parallelism: number): this {
    this.#operator("withParallelism").parallelism = parallelism;
    return this;
  }

  /** Id of the operator (or source) in front: state, metrics and errors go by it. */
  uid(id: string): this {
    this.origin.node.id = id;
    return this;
  }

  /** A name for people, shown beside the id. */
  name(label: string): this {
    this.origin.node.label = label;
    return this;
  }

  /** Ends the stream in a sink. A stream may have several. */
  toSink(sink: Sink<T>, options: SinkOptions = {}): void {
    this.scope.graph.add<SinkNode>({
      kind: "sink",
      id: options.id ?? this.scope.graph.newId("sink"),
      type: sink.type,
      inputs: [this.origin],
      onError: options.onError ?? "fail",
      ...(options.retry === undefined ? {} : { retry: retryPolicy(options.retry) }),
      config: sink.describe(),
      sink: sink as Sink,
    });
  }

  /** The values as a Web Stream. Reading slowly slows the pipeline down; cancelling it ends the run with `reader_cancelled`. */
  toReadable(options?: SinkOptions): ReadableStream<T> {
    const { sink, readable } = readableSink<T>();
    this.toSink(sink, options);
    return readable;
  }

  /** @ignore Adds an operator behind this stream. */
  with<U>(spec: Omit<OperatorSpec, "inputs">, options: OperatorOptions | undefined): Stream<U> {
    const node = this.scope.graph.operator({ ...spec, inputs: [this.origin] }, options);
    return new Stream<U>(this.scope, { node, output: undefined });
  }

  #operator(call: string): OperatorNode {
    const { node } = this.origin;
    if (node.kind === "operator" && !node.keyed) return node;
    throw new MailerError(
      "invalid_option",
      `${call}: "${node.id}" (${node.type}) is not a stateless operator`,
    );
  }
}

type Fn<R> = (value: unknown, record: RecordContext) => R;

/** @ignore Side outputs by name. */
export function declared(
  outputs: ProcessOptions["outputs"],
  kind: "passed" | "own",
): Record<string, "passed" | "own"> {
  return Object.fromEntries((outputs ?? []).map((tag) => [typeof tag === "string" ? tag : tag.name, kind]));
}
