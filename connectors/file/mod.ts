/**
 * Connector `file`: reads ndjson, csv and lines from files, plain or compressed, and writes records to files.
 *
 * @module
 */
export { fileSource, type FileSourceOptions } from "./file_source.ts";
export type { Compression } from "./byte_input.ts";
export { fileSink, type FileSinkOptions } from "./file_sink.ts";
