/**
 * Aggregate functions: what `aggregate` and `reduce` compute over the records of a key, with or without windows.
 *
 * @module
 */
export type { MixedSum, Sum } from "./exact_sum.ts";
export type { Field } from "./field.ts";
export type { AggregateFunction, SteppedFunction } from "./function.ts";
export { avg, count, type Extreme, type ExtremeSoFar, max, type MeanState, min, sum } from "./numbers.ts";
export type { Entry } from "./order.ts";
export { type Aggregates, aggregates, type AggregatesRow } from "./several.ts";
export { distinct, percentile, type PercentileState } from "./spread.ts";
export { type RankedEntry, topN, type TopOptions } from "./top.ts";
export { collect, type CollectOptions, type EntryCell, first, last } from "./values.ts";
