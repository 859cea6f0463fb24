/**
 * Mailer: stream processing with event time, windows and durable state in one Deno process.
 *
 * ```ts
 * import { createEnv, sum, tumbling } from "@mailer/core";
 * ```
 *
 * @module
 */
export { createEnv, Env, type EnvOptions, type SourceOptions } from "./lib/stream/env.ts";
export { outputTag, type OutputTag, Stream } from "./lib/stream/stream.ts";
export { KeyedStream, WindowedStream } from "./lib/stream/keyed_stream.ts";
export {
  boundedOutOfOrderness,
  customWatermarks,
  monotonic,
  punctuated,
  type WatermarkStrategy,
} from "./lib/runtime/watermarks.ts";
export { count as countWindows, global as globalWindows, session, sliding, tumbling } from "./lib/window/mod.ts";
export * from "./lib/aggregate/mod.ts";
export * from "./lib/format/mod.ts";
