import assert from "node:assert/strict";
import { MemoryPages, type PageRef, type PageStore } from "../pages/mod.ts";
import { checkpoint, everything, TINY } from "./contract.ts";
import { PageCache } from "./page_cache.ts";
import { openStateStore } from "./store.ts";

/** Fails when it is told to. */
class FailingPages extends MemoryPages implements PageStore {
  failing: "write" | "read" | "delete" | undefined;

  override write(run: string, first: number, pages: readonly Uint8Array[]): Promise<void> {
    return this.failing === "write" ? Promise.reject(new Error("disk full")) : super.write(run, first, pages);
  }
  override read(refs: readonly PageRef[]): Promise<Uint8Array[]> {
    return this.failing === "read" ? Promise.reject(new Error("disk gone")) : super.read(refs);
  }
  override deleteRuns(runs: readonly string[]): Promise<void> {
    return this.failing === "delete" ? Promise.reject(new Error("disk read-only")) : super.deleteRuns(runs);
  }
}

Deno.test("O4: a write that fails fails the checkpoint, then everything, and what was there before is intact", async () => {
  await using pages = new FailingPages();
  await using store = await openStateStore({ operator: "op", pages, limits: TINY });
  const partition = store.partition(), table = partition.space("s").table();
  table.set("a", 1);
  const section = await checkpoint(store, [partition], pages, "m");
  pages.failing = "write";
  table.set("a", 2);
  const first = store.persist([partition.freeze()]);
  for (let i = 0; i < 100; i++) table.set(i, i);
  const second = store.persist([partition.freeze()]);
  await assert.rejects(first, /disk full/);
  await assert.rejects(second, /disk full/);
  assert.throws(() => partition.settle(), /disk full/);
  assert.throws(() => store.persist([partition.freeze()]), /disk full/);
  await assert.rejects(store.idle(), /disk full/);
  pages.failing = undefined;
  await store[Symbol.asyncDispose]();
  await using again = await openStateStore({ operator: "op", pages, section });
  assert.deepEqual(await everything(again.partition().space("s").table()), new Map([["a", 1]]));
});

Deno.test("O4: a spill in the background that fails is thrown by the next settle, also to whoever waits", async () => {
  await using pages = new FailingPages();
  await using store = await openStateStore({ operator: "op", pages, limits: TINY });
  const partition = store.partition(), table = partition.space("s").table();
  pages.failing = "write";
  await assert.rejects(async () => {
    for (let i = 0; i < 10_000; i++) {
      table.set(i, i);
      await partition.settle();
    }
  }, /disk full/);
});

for (const failing of ["read", "delete"] as const) {
  Deno.test(`O4: a compaction that cannot ${failing} is an error, once`, async () => {
    await using pages = new FailingPages();
    await using store = await openStateStore({ operator: "op", pages, limits: TINY });
    const partition = store.partition(), table = partition.space("s").table();
    pages.failing = failing;
    await assert.rejects(async () => {
      for (let round = 0; round < 50; round++) {
        table.set("a", round);
        await store.release(await store.persist([partition.freeze()]));
        await store.idle();
      }
    }, failing === "read" ? /disk gone/ : /disk read-only/);
  });
}

Deno.test("a store can be closed in the middle of everything", async () => {
  await using pages = new MemoryPages();
  for (let turns = 0; turns < 12; turns++) {
    const store = await openStateStore({ operator: "op", pages, limits: TINY });
    const partition = store.partition(), table = partition.space("s").table();
    for (let i = 0; i < 400; i++) {
      table.set(i, new Uint8Array(100));
      if (i % 20 === 0) await partition.settle();
    }
    for (let i = 0; i < turns; i++) await new Promise<void>((resolve) => setImmediate(resolve));
    await store[Symbol.asyncDispose]();
  }
  await using store = await openStateStore({ operator: "op", pages });
  assert.equal(store.keys, 0);
  assert.deepEqual(await pages.list("runs", ""), [], "nothing of them is left");
});

Deno.test("values that are large by themselves are written before there are many", async () => {
  await using pages = new MemoryPages();
  await using store = await openStateStore({
    operator: "op",
    pages,
    limits: { changeBytes: 1e6, liveBytes: 1e6 },
  });
  const partition = store.partition(), table = partition.space<number[]>("s").table();
  for (let i = 0; i < 400; i++) {
    table.set(i, Array.from({ length: 2000 }, (_, j) => j + i));
    await partition.settle();
  }
  await store.idle();
  assert(store.bytes > 200_000, `${store.bytes} bytes written`);
  for (let i = 0; i < 4; i++) await partition.settle();
  assert(partition.live < 200, `${partition.live} cells in memory`);
});

Deno.test("several stores share one cache, within its budget", async () => {
  await using pages = new MemoryPages();
  const cache = new PageCache(50_000);
  for (const operator of ["a", "b"]) {
    await using store = await openStateStore({ operator, pages, cache, limits: TINY });
    const partition = store.partition(), table = partition.space("s").table();
    for (let i = 0; i < 2000; i++) {
      table.set(i, `${operator} ${i}`);
      if (i % 100 === 0) await partition.settle();
    }
    await partition.settle();
    for (let i = 0; i < 2000; i += 100) {
      await partition.settle();
      const keys = Array.from({ length: 100 }, (_, j) => i + j);
      await table.prefetch(keys);
      for (const key of keys) assert.equal(table.get(key)?.value, `${operator} ${key}`);
      assert(cache.bytes <= 50_000);
    }
  }
});
