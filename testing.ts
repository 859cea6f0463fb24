/**
 * Tools for testing pipelines and connectors: a virtual clock, a scripted source, a harness for pipelines and operators, and
 * contract suites for connector authors.
 *
 * @module
 */
export * from "./lib/testing/mod.ts";
