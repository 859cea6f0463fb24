import assert from "node:assert/strict";
import fc from "fast-check";
import { IdMemory, MAX_IDS, Queue } from "./queue.ts";
import { compareKeys, VersionedMap } from "./versioned_map.ts";

Deno.test("every version of a map stays what it was, whoever goes on from it", () => {
  const key = fc.constantFrom("a", "b", "#1", "n#2", "n#10", "__proto__", "constructor", "0", "7");
  const step = fc.record({ from: fc.nat(), key, value: fc.option(fc.nat(3), { nil: undefined }) });
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const versions: [VersionedMap<number>, Map<string, number>][] = [[VersionedMap.empty(), new Map()]];
    for (const { from, key, value } of steps) {
      const [map, model] = versions[from % versions.length]!, changed = new Map(model);
      if (value === undefined) changed.delete(key);
      else changed.set(key, value);
      versions.push([value === undefined ? map.delete(key) : map.set(key, value), changed]);
    }
    for (const [map, model] of versions) {
      const keys = [...model.keys()].sort(compareKeys);
      assert.equal(map.size, model.size);
      assert.deepEqual(map.keys(), keys);
      assert.deepEqual(map.values(), keys.map((each) => model.get(each)));
      assert.deepEqual(Object.entries(map.toObject()).sort(), [...model].sort());
      for (const each of ["a", "__proto__", "constructor", "toString", "n#2"]) {
        assert.equal(map.get(each), model.get(each));
        assert.equal(map.has(each), model.has(each));
      }
    }
  }));
});

Deno.test("keys come as texts, numbers as numbers", () => {
  assert.deepEqual(["n#10", "n#9", "n", "m#11", "10", "9"].sort(compareKeys), [
    "9",
    "10",
    "m#11",
    "n",
    "n#9",
    "n#10",
  ]);
});

Deno.test("a long chain of old versions is no deep recursion", () => {
  const first = VersionedMap.of({ x: 0 });
  let map = first;
  for (let i = 1; i <= 200_000; i++) map = map.set("x", i);
  assert.equal(first.get("x"), 0);
  assert.equal(map.get("x"), 200_000);
});

Deno.test("queues are first in, first out, in every version", () => {
  const three = Queue.of(["a", "b"]).push("c"), two = three.shift();
  assert.deepEqual([three.items(), two.items(), two.push("d").items()], [["a", "b", "c"], ["b", "c"], [
    "b",
    "c",
    "d",
  ]]);
  assert.equal(Queue.of([]).shift().size, 0);
  assert.equal(Queue.of([]).first, undefined);
});

Deno.test("memories of ids are bounded in number and in time", () => {
  let memory = IdMemory.of([]);
  for (let i = 0; i < MAX_IDS + 5; i++) memory = memory.add(`s${i}`, 1000);
  assert.equal(memory.entries().length, MAX_IDS);
  assert.equal(memory.has("s4"), false);
  assert.equal(memory.has("s5"), true);
  const later = memory.add("new", 1000 + 24 * 3_600_000 + 1);
  assert.deepEqual(later.entries(), [["new", 1000 + 24 * 3_600_000 + 1]]);
  assert.equal(memory.has("s5"), true);
});
