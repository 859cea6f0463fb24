/**
 * The operators of workflows on the builder API.
 *
 * @module
 */
import { formatDuration } from "../../duration.ts";
import { MailerError } from "../../errors.ts";
import { aggregateFold } from "../../operators/fold.ts";
import { FilterOperator } from "../../operators/filter.ts";
import { FlatMapOperator } from "../../operators/flat_map.ts";
import { MapOperator } from "../../operators/map.ts";
import { oneRow, type WindowRows } from "../../operators/window/mod.ts";
import { RetryOperator } from "../../operators/retry.ts";
import { getter, parsePath } from "../../path.ts";
import type { AsyncNode } from "../../plan/graph.ts";
import type { RecordContext } from "../../record.ts";
import type { OperatorFactory } from "../../runtime/operator.ts";
import { boundedOutOfOrderness, type TimestampOf } from "../../runtime/watermarks.ts";
import type { OperatorOptions } from "../../stream/graph_builder.ts";
import { KeyedStream, type WindowedStream } from "../../stream/keyed_stream.ts";
import { Stream } from "../../stream/stream.ts";
import { timestampParser } from "../../time/mod.ts";
import { setOwn } from "../../value.ts";
import { count, global, session, sliding, tumbling } from "../../window/mod.ts";
import { topN } from "../../aggregate/mod.ts";
import type { KeyByBlock, TimestampBlock, WindowBlock, WindowLength } from "../blocks.ts";
import type { OperatorSpec } from "../spec.ts";
import { conditionOf, expressionOf } from "./expression.ts";
import { functionsOf, reduceBlocks } from "./functions.ts";
import { keyOf } from "./keys.ts";
import { type KeyPart, withWindow } from "./rows.ts";
import * as stateless from "./stateless.ts";

/** Any stream of a workflow. */
export type Values = Stream<unknown>;
type Fn<R> = (value: unknown, record: RecordContext) => R;

/** What an operator is built with beside its own block. */
export interface OperatorInput {
  readonly input: Values;
  /** Code named by its `ref`, loaded. */
  readonly code: unknown;
}

/** Builds an operator that maps records to records. */
export function buildStateless(spec: OperatorSpec, { input, code }: OperatorInput): Values {
  const rows = spec.windowed ? "windowed" : "plain";
  switch (spec.type) {
    case "filter": {
      const { filter } = spec;
      if (filter.ref !== undefined) {
        return addFilter(spec, input, () => codeFunction<boolean>(code, spec), "user");
      }
      if (filter.where !== undefined) {
        return addFilter(spec, input, () => conditionOf(filter.where!, rows), "own");
      }
      return addFilter(spec, input, (dropped) => stateless.fieldFilter(filter, dropped), "own");
    }
    case "map":
      return spec.map.expr === undefined
        ? addMap(spec, input, codeFunction(code, spec), "user")
        : addMap(spec, input, expressionOf(spec.map.expr, rows), "own");
    case "flatMap":
      return spec.flatMap.expr === undefined
        ? addFlatMap(spec, input, codeFunction<Iterable<unknown>>(code, spec), "user")
        : addFlatMap(spec, input, stateless.listOf(expressionOf(spec.flatMap.expr, rows)), "own");
    case "explode":
      return addFlatMap(spec, input, stateless.explode(spec.explode), "own");
    case "selectFields":
      return addMap(spec, input, stateless.selectFields(spec.selectFields), "own");
    case "dropFields":
      return addMap(spec, input, stateless.dropFields(spec.dropFields), "own");
    case "renameFields":
      return addMap(spec, input, stateless.renameFields(spec.renameFields), "own");
    case "setFields":
      return addMap(spec, input, stateless.setFields(spec.setFields, rows), "own");
    default:
      throw new Error(`"${spec.id}" (${spec.type}) is not a stateless operator`);
  }
}

function addMap(spec: OperatorSpec, input: Values, fn: Fn<unknown>, whose: "user" | "own"): Values {
  return add(spec, input, (context) => new MapOperator(fn, context), whose);
}
function addFlatMap(
  spec: OperatorSpec,
  input: Values,
  fn: Fn<Iterable<unknown>>,
  whose: "user" | "own",
): Values {
  return add(spec, input, (context) => new FlatMapOperator(fn, context), whose);
}
function addFilter(
  spec: OperatorSpec,
  input: Values,
  make: (onOther: () => void) => Fn<boolean>,
  whose: "user" | "own",
): Values {
  return add(
    spec,
    input,
    (context) => new FilterOperator(make(() => context.dropped("filtered_non_object", 1)), context),
    whose,
  );
}

/** Adds a stateless operator; one that is tried again is a stage of its own. */
function add(spec: OperatorSpec, input: Values, create: OperatorFactory, whose: "user" | "own"): Values {
  const userCode = whose === "user";
  if (spec.retry === undefined) {
    const made = input.sibling<unknown>(
      input.with<unknown>({ type: spec.type, create, userCode }, optionsOf(spec)).origin,
    );
    return spec.parallelism > 1 ? made.withParallelism(spec.parallelism) : made;
  }
  const retry = { attempts: spec.retry.attempts, delay: spec.retry.delay };
  const node = input.scope.graph.add<AsyncNode>({
    kind: "async",
    id: spec.id,
    type: spec.type,
    inputs: [input.origin],
    onError: spec.onError,
    retry,
    config: { retry },
    create: (context) => new RetryOperator(create, retry, context),
    userCode,
  });
  return keepKey(input, new Stream<unknown>(input.scope, { node, output: undefined }), spec.id);
}

/** Behind an operator that waits the partitions have ended: records find theirs again by the key they carry. */
export function keepKey(input: Values, made: Values, id: string): Values {
  if (!(input instanceof KeyedStream)) return made;
  const partitions = partitionsOf(input);
  return made.keyBy((_, record) => record.key, { id: `${id}.key`, partitions });
}

function partitionsOf(stream: Values): number {
  let { node } = stream.origin;
  while (node.kind !== "keyBy") node = node.inputs[0]!.node;
  return node.partitions;
}

function codeFunction<R>(code: unknown, { id, type }: OperatorSpec): Fn<R> {
  if (typeof code === "function") return code as Fn<R>;
  throw new MailerError("invalid_ref", `"${id}": the ref of a ${type} must name a function`);
}

/** What the builder needs to know of any operator. */
export function optionsOf({ id, onError }: OperatorSpec): OperatorOptions {
  return { id, onError };
}

/** Builds a `keyBy`. */
export function buildKeyBy(spec: OperatorSpec & { readonly keyBy: KeyByBlock }, input: Values): Values {
  const { partitions } = spec.keyBy;
  return input.keyBy(keyOf(spec.keyBy, spec.windowed ? "windowed" : "plain"), {
    ...optionsOf(spec),
    partitions,
  });
}

/** Builds a `timestamp`. */
export function buildTimestamp(
  spec: OperatorSpec & { readonly type: "timestamp" },
  input: Values,
): Values {
  const { maxOutOfOrderness, idleTimeout } = spec.timestamp;
  const watermarks = boundedOutOfOrderness(
    maxOutOfOrderness,
    idleTimeout === undefined ? {} : { idleTimeout },
  );
  return input.sibling<unknown>(
    input.assignTimestamps(timestampOf(spec.timestamp), watermarks, optionsOf(spec)).origin,
  );
}

/** Event time out of a field. */
export function timestampOf({ field, format, timezone }: TimestampBlock): TimestampOf<unknown> {
  const get = getter(parsePath(field)), parse = timestampParser({ format, timezone });
  return (value) => {
    const found = get(value);
    if (found === undefined) {
      throw new MailerError("no_timestamp", `the record has no ${field}, which is its event time`);
    }
    return parse(found);
  };
}

/** Groups a keyed stream into the windows of a block. */
export function buildWindow(input: Values, block: WindowBlock): WindowedStream<unknown, unknown> {
  const stream = keyed(input);
  switch (block.type) {
    case "count":
      return stream.window(count(block.size, block.slide));
    case "global":
      return triggered(stream.window(global()), block);
  }
  const zone = block.timezone === "UTC" ? {} : { timezone: block.timezone };
  const windowed = stream.window(
    block.type === "session"
      ? session(block.gap, zone)
      : block.type === "tumbling"
      ? tumbling(lengthOf(block.size), { ...zone, offset: block.offset })
      : sliding(lengthOf(block.size), lengthOf(block.slide), { ...zone, offset: block.offset }),
  ).allowedLateness(block.allowedLateness);
  return triggered(block.time === "processing" ? windowed.inProcessingTime() : windowed, block);
}

function triggered(
  windowed: WindowedStream<unknown, unknown>,
  { trigger }: Exclude<WindowBlock, { readonly type: "count" }>,
): WindowedStream<unknown, unknown> {
  return trigger === undefined ? windowed : windowed.trigger(trigger);
}

const HOUR = 3_600_000;

/** A length as text that windows read and people do. Never with a `d` for a fixed one: that is a day of the calendar. */
function lengthOf(length: WindowLength): string {
  if (length.kind === "fixed") {
    const { ms } = length;
    if (ms % HOUR === 0) return `${ms / HOUR}h`;
    return ms < 24 * HOUR ? formatDuration(ms) : `${ms}ms`;
  }
  return `${length.count}${{ day: "d", week: "w", month: "mo" }[length.unit]}`;
}

/** A stream that is keyed, as validation has seen to. */
export function keyed(stream: Values): KeyedStream<unknown, unknown> {
  return stream instanceof KeyedStream
    ? stream
    : new KeyedStream<unknown, unknown>(stream.scope, stream.origin);
}

/** Builds a `reduce` or `aggregate` on a keyed stream or its windows. */
export function buildAggregate(
  spec: OperatorSpec & { readonly type: "reduce" | "aggregate" },
  input: Values | WindowedStream<unknown, unknown>,
  key: KeyPart,
): Values {
  const functions = functionsOf(
    spec.type === "reduce" ? reduceBlocks(spec.reduce) : spec.aggregate.functions,
  );
  const fold = aggregateFold(functions as Parameters<typeof aggregateFold>[0]);
  const shape: Parameters<typeof oneRow>[0] = (result, k, window) =>
    withWindow(Object.assign(key(k), result), window);
  if (input instanceof Stream) {
    const { ttl } = spec.type === "reduce" ? spec.reduce : spec.aggregate;
    const options = { ...optionsOf(spec), ...(ttl === undefined ? {} : { ttl }) };
    return keyed(input).fold(spec.type, fold, shape, false, options);
  }
  return input.fold(spec.type, fold, oneRow(shape), false, optionsOf(spec));
}

/** Builds a `topN` behind a window: the whole records, best first. */
export function buildTopN(
  spec: OperatorSpec & { readonly type: "topN" },
  input: WindowedStream<unknown, unknown>,
): Values {
  const fold = aggregateFold(topN(spec.topN) as Parameters<typeof aggregateFold>[0]);
  const rows: WindowRows = (result, _key, window) =>
    (result as readonly object[]).map((record, i) => {
      const row: object = { ...record };
      setOwn(row, "rank", i + 1);
      return withWindow(row, window);
    });
  return input.fold(spec.type, fold, rows, false, optionsOf(spec));
}
