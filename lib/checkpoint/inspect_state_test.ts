import assert from "node:assert/strict";
import { MemoryPages } from "../state/pages/mod.ts";
import { openStateStore, type Section } from "../state/log/mod.ts";
import { keyIdentity } from "../key.ts";
import { spacesOf, stateOfKey } from "./inspect_state.ts";

/** Whole numbers below a bound, the same ones every time. */
function numbers(seed: number): (below: number) => number {
  return (below) => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return Math.floor(seed / 2 ** 32 * below);
  };
}

const HOUR = 3_600_000;
const KEYS: readonly unknown[] = [...Array.from({ length: 40 }, (_, i) => `k${i}`), 7, "7", true, null, {
  a: [1],
}];

Deno.test("every key of every checkpoint holds what it held when that was taken, in all tables", async () => {
  const next = numbers(5), pages = new MemoryPages();
  const truth = new Map<string, unknown>(), taken: { section: Section; truth: Map<string, unknown> }[] = [];
  const slot = (space: string, order: number, key: unknown) =>
    `${space} ${order} ${String(keyIdentity(key))} ${typeof key}`;
  await using store = await openStateStore({ operator: "op", pages, maxKeyGroups: 16 });
  const partitions = [store.partition(0, 5), store.partition(5, 16)];
  const { keyGroup } = await import("../key.ts");
  for (let round = 0; round < 12; round++) {
    for (let change = 0; change < 60; change++) {
      const key = KEYS[next(KEYS.length)], identity = keyIdentity(key);
      const partition = partitions[keyGroup(identity, 16) < 5 ? 0 : 1]!;
      const space = next(2) === 0 ? "a" : "b", order = space === "a" ? 0 : next(3) * HOUR;
      const table = partition.space(space).table(order);
      if (next(4) === 0) {
        table.delete(identity);
        truth.delete(slot(space, order, key));
        continue;
      }
      const value = { n: next(1000), long: next(20) === 0 ? "x".repeat(70_000) : "" };
      const expires = next(3) === 0 ? 5 * HOUR : undefined;
      const cell = table.edit(identity);
      if (cell === undefined) table.add(identity, key, value, expires);
      else [cell.value, cell.expires] = [value, expires];
      truth.set(slot(space, order, key), { space, order, value, expires });
    }
    taken.push({
      section: await store.persist(partitions.map((partition) => partition.freeze())),
      truth: new Map(truth),
    });
    for (const partition of partitions) await partition.settle();
  }
  let found = 0;
  for (const { section, truth } of taken) {
    for (const key of KEYS) {
      const held = await stateOfKey("op", { snapshots: [], section }, key, pages);
      const expected = [["a", 0], ["b", 0], ["b", HOUR], ["b", 2 * HOUR]] as const;
      assert.deepEqual(held, expected.flatMap(([space, order]) => truth.get(slot(space, order, key)) ?? []));
      found += held.length;
    }
    assert.equal(spacesOf(section).reduce((sum, { keys }) => sum + keys, 0), truth.size);
  }
  assert.ok(found > 500);
  assert.deepEqual(spacesOf(taken[11]!.section).map(({ space, tables }) => [space, tables]), [["a", 1], [
    "b",
    3,
  ]]);
});

Deno.test("a queue: the entries of the key that have not been taken out", async () => {
  const pages = new MemoryPages();
  await using store = await openStateStore({ operator: "op", pages });
  const partition = store.partition(), queue = partition.queue<string>("timers");
  for (let i = 0; i < 300; i++) queue.add(i * 10, `k${i % 3}`, `k${i % 3}`, `t${i}`);
  await store.persist([partition.freeze()]);
  for (let i = 0; i < 290; i++) queue.take(Infinity);
  queue.add(9000, "k1", "k1", "last");
  const section = await store.persist([partition.freeze()]);
  const held = await stateOfKey("op", { snapshots: [], section }, "k1", pages);
  assert.deepEqual(held.map(({ order, value }) => [order, value]), [
    [2920, "t292"],
    [2950, "t295"],
    [2980, "t298"],
    [9000, "last"],
  ]);
  assert.deepEqual(spacesOf(section), [{ space: "timers", kind: "queue", tables: 1, keys: 11 }]);
});
