/**
 * All components of a workflow, by kind and type.
 *
 * @module
 */
import type {
  Component,
  ComponentKind,
  OperatorComponent,
  SinkComponent,
  SourceComponent,
} from "../component.ts";
import { dropFields, renameFields, selectFields, setFields } from "./fields.ts";
import { aggregate, dedupe, keyBy, reduce, topN } from "./keyed.ts";
import { flow, http } from "./outside.ts";
import { batch, join, route, sample, throttle } from "./routing.ts";
import {
  blackholeSink,
  fileSink,
  flowSink,
  kafkaSink,
  postgresSink,
  stdoutSink,
  txnKafkaSink,
} from "./sinks.ts";
import { fileSource, generatorSource, kafkaSource, sliceSource, stdinSource } from "./sources.ts";
import { explode, filter, flatMap, map, process, timestamp, validate } from "./stateless.ts";
import { window } from "./window.ts";

export { ENV } from "./env.ts";
export { DLQ_FIELDS, NAME, OPERATOR_FIELDS, SINK_FIELDS, SOURCE_FIELDS } from "./common.ts";

/** Sources. */
export const SOURCES: readonly SourceComponent[] = [
  kafkaSource,
  fileSource,
  stdinSource,
  sliceSource,
  generatorSource,
];

/** Operators, in the order of the reference page. */
export const OPERATORS: readonly OperatorComponent[] = [
  filter,
  map,
  flatMap,
  process,
  explode,
  selectFields,
  dropFields,
  renameFields,
  setFields,
  timestamp,
  validate,
  keyBy,
  reduce,
  aggregate,
  window,
  topN,
  dedupe,
  route,
  join,
  throttle,
  sample,
  batch,
  http,
  flow,
];

/** Sinks. */
export const SINKS: readonly SinkComponent[] = [
  kafkaSink,
  txnKafkaSink,
  postgresSink,
  fileSink,
  flowSink,
  stdoutSink,
  blackholeSink,
];

/** Sinks that can take dead letters. */
export const DLQ_SINKS: readonly SinkComponent[] = [fileSink, kafkaSink];

/** All components. */
export const COMPONENTS: readonly Component[] = [...SOURCES, ...OPERATORS, ...SINKS];

/** Components of a kind. */
export function componentsOf(kind: ComponentKind): readonly Component[] {
  return kind === "source" ? SOURCES : kind === "operator" ? OPERATORS : SINKS;
}
