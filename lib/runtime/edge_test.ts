import assert from "node:assert/strict";
import { Batch, type Origin } from "../record.ts";
import { Edge } from "./edge.ts";

function batch(length: number, bytes = 0): Batch {
  const origin: Origin = {
    channel: { group: 0, name: "s/0" },
    source: "s",
    split: "0",
    timestamps: new Float64Array(length),
    watermarks: new Float64Array(length),
    firstOffset: 0,
    offsets: undefined,
    headers: undefined,
    keys: undefined,
    texts: undefined,
    windows: undefined,
    bytes,
  };
  return new Batch(Array.from({ length }, (_, i) => i), origin);
}

Deno.test("E1: an edge is full when as many records wait as it may hold", async () => {
  const edge = new Edge("a->b", { maxRecords: 10, maxBytes: 1e9 });
  assert.equal(edge.write(batch(4)), undefined);
  assert.equal(edge.write(batch(5)), undefined);
  const full = edge.write(batch(1));
  assert.ok(full instanceof Promise);
  assert.equal(edge.queued, 10);
  let hasRoom = false;
  full.then(() => hasRoom = true);
  await Promise.resolve();
  assert.equal(hasRoom, false);
  assert.equal(((await edge.read()) as Batch).length, 4);
  await full;
  assert.equal(edge.queued, 6);
});

Deno.test("E1: bytes count as well, where sources know them", () => {
  const edge = new Edge("a->b", { maxRecords: 1000, maxBytes: 100 });
  assert.equal(edge.write(batch(2, 60)), undefined);
  assert.ok(edge.write(batch(2, 60)) instanceof Promise);
});

Deno.test("E1: one chunk may be larger than the edge; then nothing more", () => {
  const edge = new Edge("a->b", { maxRecords: 2, maxBytes: 1e9 });
  assert.ok(edge.write(batch(500)) instanceof Promise);
  assert.equal(edge.queued, 500);
});

Deno.test("E2: nothing overtakes: batches and markers come as they were written", async () => {
  const edge = new Edge("a->b", { maxRecords: 1, maxBytes: 1e9 });
  const items = [batch(1), { kind: "end", complete: false } as const, batch(3)];
  for (const item of items) edge.write(item);
  for (const item of items) assert.equal(await edge.read(), item);
});

Deno.test("E2: markers alone fill an edge too", () => {
  const edge = new Edge("a->b", { maxRecords: 2, maxBytes: 1e9 });
  const marker = { kind: "watermark", channel: { group: 0, name: "c" }, time: 1 } as const;
  assert.equal(edge.write(marker), undefined);
  assert.ok(edge.write(marker) instanceof Promise);
});

Deno.test("E3: abort wakes a writer that waits for room, and every later call rejects", async () => {
  const edge = new Edge("a->b", { maxRecords: 1, maxBytes: 1e9 });
  const full = edge.write(batch(2));
  const reason = new Error("given up");
  edge.abort(reason);
  await assert.rejects(full!, reason);
  assert.throws(() => edge.write(batch(1)), reason);
  await assert.rejects(edge.read(), reason);
  assert.equal(edge.queued, 0, "what waited is gone");
  edge.abort(new Error("again")); // the first reason stays
  await assert.rejects(edge.read(), reason);
});

Deno.test("E3: abort wakes a reader that waits for a chunk", async () => {
  const edge = new Edge("a->b", { maxRecords: 1, maxBytes: 1e9 });
  const pending = edge.read();
  const reason = new Error("given up");
  edge.abort(reason);
  await assert.rejects(pending, reason);
});
