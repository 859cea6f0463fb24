import assert from "node:assert/strict";
import { noCheckpoints } from "../../checkpoint/coordinator.ts";
import type { RunStatus } from "../../stream/handle.ts";
import { Progress } from "./progress.ts";

const NOW = Date.UTC(2026, 2, 1, 12);

function status(changed: Partial<RunStatus>): RunStatus {
  return {
    name: "copy",
    phase: "running",
    startedAt: 0,
    restarts: 0,
    checkpoints: undefined,
    recordsIn: 0,
    recordsOut: 0,
    deadLetters: 0,
    dropped: [],
    progress: undefined,
    watermark: undefined,
    ...changed,
  };
}

Deno.test("the rate is that of the last second or so", () => {
  const progress = new Progress(0);
  assert.match(progress.line(status({ recordsIn: 1000 }), 250, NOW)!, /1,000 read, 0 written, 4,000\/s$/);
  for (let at = 500; at <= 5000; at += 250) progress.line(status({ recordsIn: 1000 }), at, NOW);
  assert.match(progress.line(status({ recordsIn: 1500 }), 5250, NOW)!, /500\/s$/);
});

Deno.test("a bounded input has a bar, and a time left once that means something", () => {
  const progress = new Progress(0);
  const at = (done: number, now: number) =>
    progress.line(status({ progress: { done, total: 200 } }), now, NOW)!.split(", ").slice(3);
  assert.deepEqual(at(50, 500), ["█████░░░░░░░░░░░░░░░ 25%"]);
  assert.deepEqual(at(100, 4000), ["██████████░░░░░░░░░░ 50%", "4 s left"]);
  assert.deepEqual(at(101, 400_000), ["██████████░░░░░░░░░░ 50%", "6m33s left"]);
  assert.deepEqual(at(200, 500_000), ["████████████████████ 100%"]);
  assert.deepEqual(at(300, 500_000), ["████████████████████ 100%"]);
});

Deno.test("the watermark is shown by its distance, or by its date where that is history", () => {
  const line = (watermark: number) => new Progress(0).line(status({ watermark }), 1, NOW)!;
  assert.match(line(NOW - 2100), /watermark 2\.1 s behind$/);
  assert.match(line(NOW + 500), /watermark 500 ms ahead$/);
  assert.match(line(Date.UTC(2013, 10, 3, 4, 5, 6)), /watermark 2013-11-03T04:05Z$/);
  assert.match(line(-9e15), /watermark before all dates$/);
});

Deno.test("the age of the last checkpoint is shown once there is one", () => {
  const line = (lastTakenAt: number | undefined) =>
    new Progress(0).line(status({ checkpoints: { ...noCheckpoints(), lastTakenAt } }), 1, NOW)!;
  assert.match(line(NOW - 3200), /checkpoint 3\.2 s ago$/);
  assert.doesNotMatch(line(undefined), /checkpoint/);
});

Deno.test("a run that starts, drains or is over says so", () => {
  const line = (phase: RunStatus["phase"]) =>
    new Progress(0).line(status({ phase, progress: { done: 1, total: 2 } }), 1, NOW);
  assert.equal(line("starting"), "copy: starting");
  assert.equal(line("stopping"), "copy: 0 read, 0 written, 0/s, draining");
  assert.deepEqual([line("finished"), line("stopped"), line("failed")], [undefined, undefined, undefined]);
});
