/**
 * Connectors within the process: arrays, generators, Web Streams, a black hole.
 *
 * @module
 */
export {
  type PayloadSourceOptions,
  recordsSource,
  type RecordsSourceOptions,
  sliceSource,
  type SliceSourceOptions,
  type TextRecord,
} from "./slice_source.ts";
export { generatorSource, type GeneratorSourceOptions } from "./generator_source.ts";
export type { Random } from "./random.ts";
export { readableSource, type ReadableSourceOptions } from "../../lib/stream/readable_source.ts";
export { type BlackholeSink, blackholeSink, type BlackholeSinkOptions } from "./blackhole_sink.ts";
export { type ReadableSink, readableSink, type ReadableSinkOptions } from "../../lib/stream/readable_sink.ts";
