import assert from "node:assert/strict";
import type { RunStatus } from "../../stream/handle.ts";
import { countText, spanText } from "./amounts.ts";
import { closingJson, closingText } from "./closing.ts";

const status: RunStatus = {
  name: "copy",
  phase: "finished",
  startedAt: 0,
  restarts: 0,
  checkpoints: undefined,
  recordsIn: 1234,
  recordsOut: 56,
  deadLetters: 3,
  dropped: [
    { operator: "w", reason: "late", count: 15 },
    { operator: "v", reason: "late", count: 5 },
    { operator: "f", reason: "error", count: 1 },
  ],
  progress: undefined,
  watermark: undefined,
};

Deno.test("the closing line counts everything that was left out, by reason", () => {
  assert.equal(
    closingText({ status, outcome: "finished", elapsedMs: 1234, error: undefined }),
    "copy: finished: 1,234 read, 56 written, 3 dead letters, 20 late dropped, 1 failed dropped in 1.2 s",
  );
  assert.equal(
    closingText({
      status: { ...status, deadLetters: 1, dropped: [] },
      outcome: "failed",
      elapsedMs: 7,
      error: undefined,
    }),
    "copy: failed: 1,234 read, 56 written, 1 dead letter in 7 ms",
  );
});

Deno.test("the closing line as JSON has plain numbers", () => {
  assert.deepEqual(
    closingJson({ status, outcome: "failed", elapsedMs: 1234.6, error: undefined }),
    {
      workflow: "copy",
      outcome: "failed",
      read: 1234,
      written: 56,
      deadLetters: 3,
      dropped: { late: 20, error: 1 },
      restarts: 0,
      elapsedMs: 1235,
    },
  );
});

Deno.test("a run that was started again says how often", () => {
  const said = (restarts: number) =>
    closingText({ status: { ...status, restarts }, outcome: "finished", elapsedMs: 1000, error: undefined });
  assert.match(said(1), /, 1 restart in 1\.0 s$/);
  assert.match(said(2000), /, 2,000 restarts in 1\.0 s$/);
});

Deno.test("counts and times are short", () => {
  assert.deepEqual([0, 999, 1000, 1234567].map(countText), ["0", "999", "1,000", "1,234,567"]);
  assert.deepEqual([0, 999, 1000, 59_999, 60_000, 3_723_400].map(spanText), [
    "0 ms",
    "999 ms",
    "1.0 s",
    "59.9 s",
    "1m",
    "1h2m3s",
  ]);
});
