/**
 * What a window assigner is: pure arithmetic that says which windows a time belongs to.
 *
 * Fixed-extent windows are made of panes, the pieces between all window starts and ends. A record is added to one pane;
 * a window's result is the merge of its panes. All times are whole milliseconds since the epoch, intervals are half open.
 *
 * P1 Panes tile the axis: `paneStart(t) ≤ t < paneEnd(paneStart(t))`, and `paneEnd` of one is the start of the next.
 * P2 Every window is a whole number of panes, and is named by its start.
 * P3 From `firstWindow(pane)` on, `nextWindow` lists exactly the windows that contain the pane, while their start ≤ pane.
 * P4 No answer depends on what was asked before.
 *
 * @module
 */

/** Which clock closes windows: the records' own timestamps, or the time of day when they are processed. */
export type TimeDomain = "event" | "processing";

/** Windows of fixed extent: tumbling and sliding, of fixed or calendar length. */
export interface PaneWindows {
  /** Tells the kinds of windows apart. */
  readonly kind: "panes";
  /** IANA zone that the times of rows are printed in, and that calendar units are counted in; UTC without. */
  readonly timezone?: string;
  /** For people: `sliding 1m every 20s, offset 5s`. */
  readonly description: string;
  /** Whether windows tumble: a pane is a window. */
  readonly single: boolean;
  /** Start of the pane that holds a time. */
  paneStart(timestamp: number): number;
  /** End of the pane that starts at `start`. */
  paneEnd(start: number): number;
  /** First (oldest) window that contains the pane starting at `pane`; windows are given by their start. */
  firstWindow(pane: number): number;
  /** Start of the window after the one starting at `start`. */
  nextWindow(start: number): number;
  /** End of the window that starts at `start`. */
  windowEnd(start: number): number;
}

/** A window per burst of activity. */
export interface SessionWindows {
  /** Tells the kinds of windows apart. */
  readonly kind: "session";
  /** Inactivity that ends a session, ms, > 0. */
  readonly gap: number;
  /** IANA zone that the times of rows are printed in; UTC without. */
  readonly timezone?: string;
  /** For people. */
  readonly description: string;
}

/** Windows of a number of records, per key. */
export interface CountWindows {
  /** Tells the kinds of windows apart. */
  readonly kind: "count";
  /** Records a row covers, ≥ 1. */
  readonly size: number;
  /** Records between two rows, 1 … size; equal to `size` when windows tumble. */
  readonly slide: number;
  /** For people. */
  readonly description: string;
}

/** One window per key that never ends by itself. */
export interface GlobalWindows {
  /** Tells the kinds of windows apart. */
  readonly kind: "global";
  /** For people. */
  readonly description: string;
}

/** Any way to assign records to windows. */
export type WindowAssigner = PaneWindows | SessionWindows | CountWindows | GlobalWindows;
