/**
 * Mailer: stream processing with event time, windows and keyed state, in one Deno process.
 *
 * ```ts ignore
 * import { count, createEnv, sum, tumbling } from "@mailer/core";
 *
 * const orders = [
 *   { customer: "ann", amount: 10, at: 0 },
 *   { customer: "ann", amount: 5, at: 30_000 },
 *   { customer: "bob", amount: 7, at: 70_000 },
 * ];
 * const env = createEnv({ name: "order-totals" });
 * const totals = env
 *   .fromReadable(ReadableStream.from(orders), { timestamp: (order) => order.at })
 *   .keyBy((order) => order.customer)
 *   .window(tumbling("1m"))
 *   .aggregate({ orders: count(), total: sum("amount") })
 *   .map((row, { key }) => ({ customer: key, ...row }))
 *   .toReadable();
 * const done = env.execute();
 * for await (const row of totals) console.log(row); // { customer: "ann", orders: 2, total: 15 } …
 * await done;
 * ```
 *
 * @module
 */

// Describing and running pipelines.
export {
  type CheckpointOptions,
  createEnv,
  Env,
  type EnvOptions,
  type RestartOptions,
  type SourceOptions,
  type StartOptions,
} from "./lib/stream/env.ts";
export type { CheckedPart } from "./lib/stream/check.ts";
export {
  type KeyByOptions,
  type OutputTag,
  outputTag,
  type ProcessOptions,
  type SinkOptions,
  Stream,
} from "./lib/stream/stream.ts";
export {
  KeyedStream,
  type ReduceOptions,
  type RunningOptions,
  type TriggerOptions,
  type WindowContext,
  WindowedStream,
} from "./lib/stream/keyed_stream.ts";
export type { OperatorOptions, RetryOptions } from "./lib/stream/graph_builder.ts";
export { RunHandle, type RunStatus, type SavepointInfo, type StopOptions } from "./lib/stream/handle.ts";
export type { RunPhase } from "./lib/runtime/run.ts";
export type { Description, Durability, Guarantee, NodeDescription } from "./lib/plan/describe.ts";

// State that survives.
export { kv, memory, sqlite, type StateBackend } from "./lib/checkpoint/backend.ts";
export type { CheckpointStats } from "./lib/checkpoint/coordinator.ts";

// What user functions see.
export type { Batch, Channel, Headers, Origin, RecordContext, Watermark, WindowOfRow } from "./lib/record.ts";
export type { Element } from "./lib/operators/fold.ts";
export type { EmitOptions, KeyedContext, KeyedProcess, Timer } from "./lib/operators/process/context.ts";
export type {
  ProcessContext,
  ProcessFunction,
  StatelessEmitOptions,
} from "./lib/operators/process/stateless.ts";
export type {
  KeyedStateAccess,
  ListState,
  MapState,
  ReducingState,
  StateOptions,
  ValueState,
} from "./lib/state/handles.ts";

// Event time.
export {
  boundedOutOfOrderness,
  customWatermarks,
  monotonic,
  noWatermarks,
  punctuated,
  type WatermarkGenerator,
  type WatermarkOptions,
  type WatermarkStrategy,
} from "./lib/runtime/watermarks.ts";

// Windows.
export {
  type CalendarSize,
  count as countWindows,
  type CountWindows,
  formatInstant,
  global as globalWindows,
  type GlobalWindows,
  type PaneWindows,
  session,
  type SessionWindows,
  sliding,
  type TimeDomain,
  tumbling,
  type WindowAssigner,
  type WindowOptions,
} from "./lib/window/mod.ts";

// Aggregate functions.
export * from "./lib/aggregate/mod.ts";

// Sources, sinks, formats.
export type * from "./lib/connector.ts";
export * from "./lib/format/mod.ts";
export type { DeadLetter, OnError } from "./lib/runtime/failure.ts";

// Small things.
export { type Alarm, type Clock, systemClock } from "./lib/clock.ts";
export { type Duration, formatDuration, parseDuration } from "./lib/duration.ts";
export {
  type ErrorOptionsWithHint,
  MailerError,
  PipelineError,
  RecordError,
  type RecordPosition,
  ShutdownTimeoutError,
} from "./lib/errors.ts";
export { Decimal } from "./lib/json.ts";
export type { Numeric } from "./lib/numeric.ts";
export { type Logger, type LogLevel, silentLogger } from "./lib/log.ts";
