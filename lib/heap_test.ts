import assert from "node:assert/strict";
import fc from "fast-check";
import { TimeHeap } from "./heap.ts";

Deno.test("entries come by time, those of one time by their order", () => {
  const entries = fc.array(fc.tuple(fc.integer({ min: -5, max: 5 }), fc.nat(20)), {
    size: "max",
    maxLength: 60,
  });
  fc.assert(fc.property(entries, (given) => {
    const heap = new TimeHeap<string>();
    for (const [time, order] of given) heap.push(time, `${time} ${order}`, order);
    const expected = given.toSorted(([a, x], [b, y]) => a - b || x - y).map(([time, order]) =>
      `${time} ${order}`
    );
    assert.equal(heap.size, given.length);
    assert.equal(heap.earliest, given.length === 0 ? Infinity : Math.min(...given.map(([time]) => time)));
    assert.deepEqual(Array.from(given, () => heap.pop()), expected);
    assert.equal(heap.earliest, Infinity);
  }));
});

Deno.test("pushes between pops keep the order, infinite times included", () => {
  const heap = new TimeHeap<number>();
  for (const time of [5, Infinity, -Infinity, 3]) heap.push(time, time);
  assert.equal(heap.isDue(-Infinity), true);
  assert.equal(heap.pop(), -Infinity);
  heap.push(4, 4);
  assert.deepEqual([heap.pop(), heap.pop(), heap.pop()], [3, 4, 5]);
  assert.equal(heap.isDue(1e300), false);
  assert.equal(heap.isDue(Infinity), true);
});
