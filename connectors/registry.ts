/**
 * Which connector makes which source or sink of a workflow.
 *
 * @module
 */
import type { Sink, Source } from "../lib/connector.ts";
import {
  bytesFormat,
  type CsvType,
  type Format,
  jsonFormat,
  stringFormat,
  type TextOptions,
} from "../lib/format/mod.ts";
import { stringifyJson } from "../lib/json.ts";
import { setOwn } from "../lib/value.ts";
import type { CsvBlock, Encoding, StdinBlock } from "../lib/workflow/blocks.ts";
import type { ConnectorContext, Connectors } from "../lib/workflow/registry.ts";
import type { DlqSpec, SinkSpec, SourceSpec } from "../lib/workflow/spec.ts";
import { fileSink, fileSource } from "./file/mod.ts";
import { blackholeSink, recordsSource } from "./memory/mod.ts";
import { stdinSource, stdoutSink } from "./stdio/mod.ts";

/** The connectors of this build. */
export const connectors: Connectors = { source, sink };

function source(spec: SourceSpec, { folder }: ConnectorContext): Source {
  switch (spec.type) {
    case "slice":
    case "generator":
      return recordsSource({
        records: spec.records.map(({ key, value }) => ({
          key,
          value: typeof value === "string" ? value : stringifyJson(value),
        })),
        format: jsonFormat(),
      });
    case "file": {
      const { path, compression, follow } = spec.file;
      return fileSource({ path, ...textOf(spec.file), compression, follow, baseDirectory: folder });
    }
    case "stdin":
      return stdinSource(textOf({ deserialize: "json", ...spec.stdin }));
    default:
      throw missing("source", spec.type);
  }
}

/** How the text of a file or of standard input becomes records. */
function textOf(block: StdinBlock & { readonly deserialize: Encoding }): TextOptions {
  const { format, csv, maxLineBytes, deserialize } = block;
  if (format === "csv") return { format, csv: { ...csv, types: typedColumns(csv.types) }, maxLineBytes };
  // The older format says what a line is by `deserialize`.
  return { format: deserialize === "json" ? format : "lines", maxLineBytes };
}

/** Columns without a type are text. */
function typedColumns(types: CsvBlock["types"]): Record<string, CsvType> {
  const typed: Record<string, CsvType> = {};
  for (const [name, type] of Object.entries(types)) if (type !== "text") setOwn(typed, name, type);
  return typed;
}

function sink(spec: SinkSpec | DlqSpec, { folder }: ConnectorContext): Sink {
  switch (spec.type) {
    case "file": {
      const { path, append, rollSize, rollEvery, serialize } = spec.file;
      return fileSink({
        path,
        append,
        format: formatOf(serialize),
        baseDirectory: folder,
        ...(rollSize === undefined ? {} : { rollSize }),
        ...(rollEvery === undefined ? {} : { rollEvery }),
      });
    }
    case "stdout":
      return stdoutSink();
    case "blackhole":
      return blackholeSink();
    default:
      throw missing("sink", spec.type);
  }
}

function formatOf(encoding: Encoding): Format {
  return { json: jsonFormat, string: stringFormat, bytes: bytesFormat }[encoding]() as Format;
}

/** The builder refuses what is not carried before it asks for it. */
function missing(kind: string, type: string): Error {
  return new Error(`no connector makes a ${kind} of type ${type}`);
}
