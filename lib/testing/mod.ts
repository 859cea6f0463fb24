/**
 * Tools for testing pipelines and connectors.
 *
 * @module
 */
export { type Collected, type CollectingSink, collectingSink } from "./collect.ts";
export { type Harness, harness, type HarnessOptions, type PushOptions } from "./harness.ts";
export { type ScriptedSource, scriptedSource, type ScriptStep } from "./scripted_source.ts";
export { settle, VirtualClock } from "./virtual_clock.ts";
export * from "./source_contract.ts";
export * from "./sink_contract.ts";
export * from "./commit_contract.ts";
