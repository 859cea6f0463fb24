/**
 * Windows: which ones there are, where they lie, how their times are written. All pure; what runs them is an operator.
 *
 * @module
 */
export type {
  CountWindows,
  GlobalWindows,
  PaneWindows,
  SessionWindows,
  TimeDomain,
  WindowAssigner,
} from "./assigner.ts";
export type { CalendarSize } from "./extent.ts";
export { formatInstant, InstantFormat } from "./format.ts";
export { type Merge, placeInSession, type TimeWindow } from "./session.ts";
export { count, global, session, sliding, tumbling, type WindowOptions } from "./windows.ts";
