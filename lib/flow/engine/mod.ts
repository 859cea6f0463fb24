/**
 * The durable engine of flows.
 *
 * @module
 */
export { type BuiltInOptions, builtInWorkers, type EmittedRecord } from "./builtin.ts";
export type { EngineCounters, Listener } from "./core.ts";
export { type EngineOptions, FlowEngine } from "./engine.ts";
export type { Execution } from "./executions.ts";
export type { Answer, Answered } from "./partition.ts";
export {
  CancelledError,
  Done,
  done,
  type Handler,
  interrupt,
  Interrupted,
  type Job,
  PermanentError,
  type TaskResult,
  withUsage,
} from "./task.ts";
export type { WorkerOptions } from "./workers.ts";
