import assert from "node:assert/strict";
import { NEVER, SteppingClock } from "./stepping_clock.ts";

Deno.test("the clock stands still, and jumps from alarm to alarm in their order", () => {
  const clock = new SteppingClock(1000), rung: string[] = [];
  const ring = (name: string) => () => rung.push(`${name}@${clock.now()}`);
  clock.schedule(20, ring("b"));
  clock.schedule(10, ring("a"));
  clock.schedule(20, ring("c"));
  clock.schedule(-5, ring("now"));
  clock.schedule(15, ring("cancelled")).cancel();
  assert.deepEqual([clock.now(), rung], [1000, []]);
  while (clock.step());
  assert.deepEqual(rung, ["now@1000", "a@1010", "b@1020", "c@1020"]);
});

Deno.test("an alarm too far away never rings", () => {
  const clock = new SteppingClock(0);
  clock.schedule(NEVER, () => assert.fail("rang"));
  assert.equal(clock.step(), false);
});
