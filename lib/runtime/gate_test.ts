import assert from "node:assert/strict";
import type { Channel } from "../record.ts";
import { WatermarkGate } from "./gate.ts";

function channel(group: number, name: string): Channel {
  return { group, name };
}

/** A gate in front of which one group with these channels has opened. */
function opened(...channels: readonly Channel[]): WatermarkGate {
  const gate = new WatermarkGate([0]);
  gate.marker({ kind: "open", group: 0, channels });
  return gate;
}

Deno.test("G1: the watermark is the least of the channels, and never falls", () => {
  const a = channel(0, "a"), b = channel(0, "b"), gate = opened(a, b);
  assert.equal(gate.advance(a, 10), false, "b has said nothing");
  assert.equal(gate.current, -Infinity);
  assert.equal(gate.advance(b, 4), true);
  assert.equal(gate.current, 4);
  assert.equal(gate.advance(a, 12), false, "b holds it");
  assert.equal(gate.advance(b, 3), false, "below its own last word");
  assert.equal(gate.current, 4);
  assert.equal(gate.advance(b, 20), true);
  assert.equal(gate.current, 12);
  const late = channel(0, "late");
  gate.marker({ kind: "open", group: 0, channels: [late] });
  gate.advance(late, 1);
  assert.equal(gate.current, 12, "a channel that comes later does not pull it down");
  gate.advance(a, 50);
  gate.advance(b, 50);
  assert.equal(gate.current, 12, "but it holds it");
  assert.equal(gate.advance(late, 30), true);
  assert.equal(gate.current, 30);
});

Deno.test("G2: a group that has not opened holds the watermark, one that opened without channels does not", () => {
  const a = channel(0, "a"), gate = new WatermarkGate([0, 1]);
  gate.marker({ kind: "open", group: 0, channels: [a] });
  assert.equal(gate.advance(a, 10), false);
  assert.equal(gate.current, -Infinity);
  assert.equal(gate.marker({ kind: "open", group: 1, channels: [] }), true);
  assert.equal(gate.current, 10);
});

Deno.test("W2: a group without channels is idle, not complete", () => {
  const gate = opened();
  assert.equal(gate.current, -Infinity);
  assert.equal(gate.idle, true);
});

Deno.test("G3: when all channels are idle or have ended the watermark stays where it is", () => {
  const a = channel(0, "a"), b = channel(0, "b"), gate = opened(a, b);
  gate.advance(a, 10);
  gate.advance(b, 30);
  assert.equal(gate.marker({ kind: "idle", channel: a }), true);
  assert.equal(gate.current, 30, "the idle one does not hold it");
  assert.equal(gate.idle, false);
  assert.equal(gate.marker({ kind: "ended", channel: b }), false);
  assert.equal(gate.current, 30);
  assert.equal(gate.idle, true, "a may come back");
  gate.marker({ kind: "ended", channel: a });
  assert.equal(gate.current, 30, "others may still open");
  assert.equal(gate.idle, false, "and what is open closes at the end: nobody may run ahead of that");
  const c = channel(0, "c");
  gate.marker({ kind: "open", group: 0, channels: [c] });
  assert.equal(gate.idle, false);
  assert.equal(gate.advance(c, 40), true);
  assert.equal(gate.current, 40);
});

Deno.test("G3: only the end of a complete input makes it Infinity", () => {
  const a = channel(0, "a"), gate = opened(a);
  assert.equal(gate.marker({ kind: "end", complete: false }), false);
  assert.equal(gate.current, -Infinity);
  assert.equal(gate.marker({ kind: "end", complete: true }), true);
  assert.equal(gate.current, Infinity);
  assert.equal(gate.marker({ kind: "end", complete: true }), false);
});

Deno.test("G4: a record wakes an idle channel, which then holds the watermark again", () => {
  const a = channel(0, "a"), b = channel(0, "b"), gate = opened(a, b);
  gate.advance(a, 10);
  gate.advance(b, 20);
  gate.marker({ kind: "idle", channel: a });
  gate.wake(a);
  assert.equal(gate.advance(b, 90), false, "a holds it");
  assert.equal(gate.current, 20);
  assert.equal(gate.advance(a, 60), true);
  assert.equal(gate.current, 60);
});

Deno.test("G4: waking alone does not raise the watermark; what comes next does", () => {
  const a = channel(0, "a"), b = channel(0, "b"), gate = opened(a, b);
  gate.advance(a, 50);
  gate.advance(b, 5);
  gate.marker({ kind: "idle", channel: a });
  gate.marker({ kind: "idle", channel: b });
  assert.equal(gate.current, 5);
  assert.equal(gate.marker({ kind: "watermark", channel: a, time: 50 }), false);
  assert.equal(gate.idle, false);
  assert.equal(gate.current, 5, "b might be about to wake as well");
  assert.equal(gate.marker({ kind: "watermark", channel: a, time: 50 }), true, "said once more");
  assert.equal(gate.current, 50);
});

Deno.test("a channel that nobody announced takes part when it speaks", () => {
  const a = channel(0, "a"), b = channel(0, "b"), gate = opened(a);
  gate.advance(a, 10);
  gate.advance(b, 3);
  assert.equal(gate.advance(a, 40), false);
  assert.equal(gate.current, 10);
  assert.equal(gate.advance(b, 25), true);
  assert.equal(gate.current, 25);
});

Deno.test("an ended channel holds nothing back, even if its records or idleness are heard of afterwards", () => {
  const a = channel(0, "a"), b = channel(0, "b"), gate = opened(a, b);
  gate.advance(a, 1);
  gate.marker({ kind: "ended", channel: a });
  gate.marker({ kind: "idle", channel: a });
  gate.wake(a);
  gate.advance(b, 9);
  assert.equal(gate.current, 9);
  gate.marker({ kind: "idle", channel: b });
  gate.wake(a);
  assert.equal(gate.idle, true, "an ended channel does not wake");
});

Deno.test("G5: a restored watermark is a floor, before groups have opened and behind channels that begin anew", () => {
  const a = channel(0, "a"), b = channel(1, "b"), gate = new WatermarkGate([0, 1]);
  gate.restore(100);
  gate.restore(90);
  assert.equal(gate.current, 100);
  assert.equal(gate.marker({ kind: "open", group: 0, channels: [a] }), false);
  assert.equal(gate.advance(a, 150), false);
  assert.equal(gate.current, 100, "the other group has not opened");
  assert.equal(gate.marker({ kind: "open", group: 1, channels: [b] }), false);
  assert.equal(gate.advance(b, 60), false);
  assert.equal(gate.advance(b, 100), false);
  assert.equal(gate.current, 100);
  assert.equal(gate.advance(b, 120), true);
  assert.equal(gate.current, 120);
});
