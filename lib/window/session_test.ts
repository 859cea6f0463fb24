import assert from "node:assert/strict";
import fc from "fast-check";
import { placeInSession, type TimeWindow } from "./session.ts";

/** Sessions of records that come in this order, by start. */
function sessionsOf(timestamps: readonly number[], gap: number): TimeWindow[] {
  let open: TimeWindow[] = [];
  for (const timestamp of timestamps) {
    const { merged, absorbed } = placeInSession(open, timestamp, gap);
    open = [...open.filter((session) => !absorbed.includes(session)), merged];
  }
  return open.sort((a, b) => a.start - b.start);
}

/** The definition: sorted records, cut where two are at least a gap apart. */
function cutAtGaps(timestamps: readonly number[], gap: number): TimeWindow[] {
  const sessions: { start: number; end: number }[] = [];
  for (const timestamp of timestamps.toSorted((a, b) => a - b)) {
    const current = sessions.at(-1);
    if (current !== undefined && timestamp < current.end) current.end = timestamp + gap;
    else sessions.push({ start: timestamp, end: timestamp + gap });
  }
  return sessions;
}

Deno.test("S1: any order of arrival gives the sessions of the sorted records", () => {
  const times = fc.array(fc.integer({ min: -500, max: 500 }), { maxLength: 40 });
  fc.assert(fc.property(times, fc.integer({ min: 1, max: 60 }), (timestamps, gap) => {
    assert.deepEqual(sessionsOf(timestamps, gap), cutAtGaps(timestamps, gap));
  }));
});

Deno.test("S2: two records exactly the gap apart are two sessions, a millisecond less is one, in either order", () => {
  for (const order of [[0, 10], [10, 0]]) assert.equal(sessionsOf(order, 10).length, 2);
  for (const order of [[0, 9], [9, 0]]) assert.deepEqual(sessionsOf(order, 10), [{ start: 0, end: 19 }]);
});

Deno.test("S3: a record that bridges sessions merges all of them into one, and says which", () => {
  const open = [{ start: 40, end: 50 }, { start: 0, end: 10 }, { start: 16, end: 26 }, {
    start: 5_000,
    end: 5_010,
  }];
  const merge = placeInSession(open, 8, 10);
  assert.deepEqual(merge, { merged: { start: 0, end: 26 }, absorbed: [open[1], open[2]] });
});

Deno.test("S3: a record inside a session leaves one row's worth of it, whatever batch it came in", () => {
  const open = [{ start: 0, end: 30 }];
  assert.deepEqual(placeInSession(open, 5, 10), { merged: { start: 0, end: 30 }, absorbed: open });
});

Deno.test("S11: a session starts at its earliest record and ends a gap after its latest, in any order", () => {
  const times = fc.shuffledSubarray([3, 14, 25, 36, 40, 51, 60], { minLength: 7 });
  fc.assert(fc.property(times, (timestamps) => {
    assert.deepEqual(sessionsOf(timestamps, 12), [{ start: 3, end: 72 }]);
  }));
});
