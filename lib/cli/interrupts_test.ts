import assert from "node:assert/strict";
import { VirtualClock } from "../testing/mod.ts";
import { oncePerBurst } from "./interrupts.ts";

Deno.test("signals that come together are one interrupt, but whoever holds the key is heard again", async () => {
  const clock = new VirtualClock();
  let interrupts = 0;
  const signal = oncePerBurst(() => interrupts++, clock);
  const heard: number[] = [];
  for (let i = 0; i < 8; i++) {
    signal();
    signal();
    heard.push(interrupts);
    await clock.advance("100ms");
  }
  assert.deepEqual(heard, [1, 1, 1, 2, 2, 2, 3, 3]);
});
