/**
 * Session windows: a window per burst of activity, closed by a gap.
 *
 * S1 Merging does not depend on arrival order.
 * S2 Two records exactly `gap` apart are two sessions.
 * S3 A record that bridges sessions merges all of them into one.
 *
 * @module
 */

/** A half-open interval of time, in milliseconds since the epoch. */
export interface TimeWindow {
  /** First millisecond in it. */
  readonly start: number;
  /** First millisecond behind it. */
  readonly end: number;
}

/** What a new record did to the sessions of its key. */
export interface Merge {
  /** The session the record is now in. */
  readonly merged: TimeWindow;
  /** The sessions it replaces, in the order given. */
  readonly absorbed: readonly TimeWindow[];
}

/**
 * Places a record among the open sessions of its key.
 *
 * Open sessions are disjoint, so whatever overlaps the merged session also overlaps the record's own interval or a
 * session already absorbed: one pass finds them all.
 *
 * @param open Sessions of this key, disjoint, in any order.
 * @param timestamp Event time of the record, ms.
 * @param gap Inactivity that ends a session, ms, > 0.
 */
export function placeInSession(open: readonly TimeWindow[], timestamp: number, gap: number): Merge {
  let start = timestamp, end = timestamp + gap;
  const own = end;
  const absorbed: TimeWindow[] = [];
  for (const session of open) {
    if (session.start >= own || session.end <= timestamp) continue;
    absorbed.push(session);
    if (session.start < start) start = session.start;
    if (session.end > end) end = session.end;
  }
  return { merged: { start, end }, absorbed };
}
