/**
 * Schedules: flows that are started by the clock. One occurrence is one execution, whose id says which.
 *
 * @module
 */
export { type Rule, ruleOf } from "./expression.ts";
export type { Outcome, OutcomeCounts, OutcomeKind } from "./record.ts";
export { Scheduler, type SchedulerCounters, type SchedulerOptions } from "./scheduler.ts";
export {
  type BackfillOptions,
  type NextOccurrence,
  occurrencesOf,
  Schedules,
  type SchedulesOptions,
  type ScheduleView,
} from "./schedules.ts";
export { type CheckedSpec, checkSchedule, type Overlap, type ScheduleSpec } from "./spec.ts";
