/**
 * Which connector makes which source or sink of a workflow.
 *
 * @module
 */
import type { Sink, Source } from "../lib/connector.ts";
import type { FlowEngine } from "../lib/flow/engine/mod.ts";
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

/** Connectors that are loaded where a workflow has them: starting one without pays nothing. */
interface Loaded {
  readonly kafka: typeof import("./kafka/workflow.ts") | undefined;
  readonly postgres: typeof import("./postgres/mod.ts") | undefined;
  readonly flow: typeof import("./flow/workflow.ts") | undefined;
}

/** What a program has besides the connectors themselves. */
export interface Surroundings {
  /** An engine of the process: where executions run whose sink names no server. */
  readonly engine?: FlowEngine;
}

/** Loads the connectors of some types of sources and sinks. */
export async function connectorsFor(
  types: ReadonlySet<string>,
  surroundings: Surroundings = {},
): Promise<Connectors> {
  const [kafka, postgres, flow] = await Promise.all([
    types.has("kafka") || types.has("txnKafka") ? import("./kafka/workflow.ts") : undefined,
    types.has("postgres") ? import("./postgres/mod.ts") : undefined,
    types.has("flow") ? import("./flow/workflow.ts") : undefined,
  ]);
  const loaded: Loaded = { kafka, postgres, flow };
  return {
    source: (spec, context) => source(spec, context, loaded),
    sink: (spec, context) => sink(spec, context, loaded, surroundings),
    transactions: (spec, context) => kafka?.transactionDesks(spec, context.folder, context) ?? [],
  };
}

function source(spec: SourceSpec, { folder }: ConnectorContext, { kafka }: Loaded): Source {
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
    case "kafka":
      return kafka!.kafkaSourceOf(spec.kafka, folder);
    case "stdin":
      return stdinSource(textOf({ deserialize: "json", ...spec.stdin }));
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

function sink(
  spec: SinkSpec | DlqSpec,
  { folder, workflow }: ConnectorContext,
  { kafka, postgres, flow }: Loaded,
  { engine }: Surroundings,
): Sink {
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
    case "kafka":
      return kafka!.kafkaSinkOf(spec.kafka, folder);
    case "txnKafka":
      return kafka!.transactionalKafkaSinkOf(spec.txnKafka, folder);
    case "postgres":
      return postgres!.postgresSink({ ...spec.postgres, name: `${workflow}/${spec.id}` });
    case "flow":
      return flow!.flowSinkOf(spec.flow, spec.id, engine);
    case "stdout":
      return stdoutSink();
    case "blackhole":
      return blackholeSink();
  }
}

function formatOf(encoding: Encoding): Format {
  return { json: jsonFormat, string: stringFormat, bytes: bytesFormat }[encoding]() as Format;
}
