/**
 * Connectors on the standard streams of the process.
 *
 * @module
 */
export { stdinSource, type StdinSourceOptions } from "./stdin_source.ts";
export { type Output, stdoutSink, type StdoutSinkOptions } from "./stdout_sink.ts";
