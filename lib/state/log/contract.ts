/**
 * What keyed state must do on every page store: one suite for all of them.
 *
 * @module
 */
import assert from "node:assert/strict";
import { MailerError } from "../../errors.ts";
import { keyGroup, type KeyIdentity, keyIdentity } from "../../key.ts";
import type { PageStoreUnderTest } from "../pages/contract.ts";
import type { PageStore } from "../pages/mod.ts";
import { yieldToEventLoop } from "../../scheduling.ts";
import { openDocument, sealDocument } from "./document.ts";
import type { Partition } from "./partition.ts";
import type { Section } from "./section.ts";
import type { StateLimits } from "./limits.ts";
import { openStateStore, type StateStore } from "./store.ts";
import type { Table } from "./table.ts";

/** So small that a handful of keys makes many runs and pages, and memory is always short. */
export const TINY: StateLimits = {
  changes: 16,
  liveBytes: 4000,
  cacheBytes: 20_000,
  pageBytes: 256,
  fanIn: 3,
};
const GROUPS = 16;

/** A checkpoint, as a coordinator takes it: freeze, persist, manifest. */
export async function checkpoint(
  store: StateStore,
  partitions: readonly Partition[],
  pages: PageStore,
  name: string,
): Promise<Section> {
  const section = await store.persist(partitions.map((partition) => partition.freeze()));
  assert.equal(await pages.commit([{ name, bytes: sealDocument({ state: section }) }]), true);
  return section;
}

/** The section of a manifest. */
export async function sectionOf(pages: PageStore, name: string): Promise<Section> {
  const found = (await pages.list("documents", name)).find((listed) => listed.name === name);
  return (openDocument(name, found!.bytes) as { state: Section }).state;
}

/** Everything a table holds, by identity. */
export async function everything(table: Table): Promise<Map<unknown, unknown>> {
  const all = new Map<unknown, unknown>();
  for await (const lot of table.scan()) {
    for (const { identity, value } of lot) {
      assert(!all.has(identity), `${String(identity)} comes once`);
      all.set(identity, value);
    }
  }
  return all;
}

/** What keys hold, after a prefetch. */
export async function values(table: Table, identities: readonly KeyIdentity[]): Promise<unknown[]> {
  await table.prefetch(identities);
  return identities.map((identity) => table.get(identity)?.value);
}

/** Settles until nothing is waited for. */
export async function settled(partition: Partition): Promise<void> {
  await partition.settle();
}

/** Lets what goes on in the background have some turns. */
async function turns(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await yieldToEventLoop();
}

/** A name as a record's key; its group decides in which partition it is. */
const keyOf = (i: number): string => `key-${i}`;

/** Registers the suite. `make` is called once a test. */
export function stateContract(name: string, make: () => Promise<PageStoreUnderTest>): void {
  const test = (
    title: string,
    body: (pages: PageStore, under: PageStoreUnderTest) => Promise<void>,
  ): void => {
    Deno.test(`state on ${name}: ${title}`, async () => {
      const under = await make();
      try {
        await using pages = await under.open();
        await body(pages, under);
      } finally {
        await under.dispose();
      }
    });
  };
  const open = (pages: PageStore, section?: Section, limits: StateLimits = TINY): Promise<StateStore> =>
    openStateStore({
      operator: "op",
      pages,
      maxKeyGroups: GROUPS,
      limits,
      ...(section === undefined ? {} : { section }),
    });

  test("a key holds what was set last, until it is deleted", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space<unknown>("s").table();
    assert.equal(table.get("a"), undefined);
    table.set("a", 1);
    table.set("b", { deep: [1n] });
    assert.deepEqual(await values(table, ["a", "b", "c"]), [1, { deep: [1n] }, undefined]);
    table.set("a", 2);
    assert.equal(table.delete("b"), true);
    assert.equal(table.delete("b"), false);
    await checkpoint(store, [partition], pages, "m");
    assert.deepEqual(await values(table, ["a", "b"]), [2, undefined]);
    table.set("b", "again");
    table.edit("a")!.value = 3;
    await checkpoint(store, [partition], pages, "m");
    assert.deepEqual(await everything(table), new Map<unknown, unknown>([["a", 3], ["b", "again"]]));
    assert.equal(store.keys, 2);
  });

  test("spaces, tables and kinds of keys do not meet", async (pages) => {
    const keys = [
      "1",
      1,
      true,
      null,
      undefined,
      "",
      "\0x",
      keyIdentity([1]),
      keyIdentity({ a: 1 }),
      1.5,
      -1,
      "ü",
      "日",
    ];
    await using store = await open(pages);
    const partition = store.partition();
    const tables = ["s", "t"].flatMap((space) =>
      [0, 5, -1e12].map((order) => partition.space(space).table(order))
    );
    tables.forEach((table, t) => keys.forEach((key, k) => table.set(key, [t, k])));
    const section = await checkpoint(store, [partition], pages, "m");
    await using again = await open(pages, section);
    const restored = again.partition();
    assert.deepEqual(restored.space("s").tables().map(({ order }) => order), [-1e12, 0, 5]);
    for (const [t, { space, order }] of tables.entries()) {
      const table = restored.space(space.name).existing(order)!;
      assert.deepEqual(await values(table, keys), keys.map((_, k) => [t, k]));
      assert.equal((await everything(table)).size, keys.length);
    }
  });

  test("the key itself is kept where it is not its own identity", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    const keys = [{ b: 1, a: [1n] }, [1, 2], new Uint8Array([1, 2]), 5n];
    for (const key of keys) table.add(keyIdentity(key), key, "v");
    await using again = await open(pages, await checkpoint(store, [partition], pages, "m"));
    const restored = again.partition().space("s").table();
    await restored.prefetch(keys.map(keyIdentity));
    for (const key of keys) assert.deepEqual(restored.get(keyIdentity(key))!.key, key);
    assert.deepEqual(Object.keys(restored.get(keyIdentity(keys[0]))!.key as object), ["b", "a"]);
  });

  test("values of any size come back, also after compaction", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    const sizes = [0, 100, 16_000, 17_000, 61_416, 61_417, 300_000, 2_000_000];
    const valueOf = (size: number) => Uint8Array.from({ length: size }, (_, i) => i * 7 + size);
    for (const size of sizes) table.set(size, valueOf(size));
    let section = await checkpoint(store, [partition], pages, "m");
    for (let round = 0; round < 6; round++) {
      table.set("other", round);
      section = await checkpoint(store, [partition], pages, "m");
    }
    await store.idle();
    section = await checkpoint(store, [partition], pages, "m");
    await using again = await open(pages, section);
    const restored = again.partition().space("s").table();
    assert.deepEqual(await values(restored, sizes), sizes.map(valueOf));
    assert.equal((await everything(restored)).size, sizes.length + 1);
  });

  test("a key that is too large, or a value that cannot be stored, fails the checkpoint with its place", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    table.set("k", { run: () => 1 });
    await assert.rejects(
      store.persist([partition.freeze()]),
      /operator "op", state "s", key "k": a function cannot be stored/,
    );
    await using other = await openStateStore({ operator: "other", pages });
    const large = other.partition();
    large.space("s").table().set("x".repeat(40_000), 1);
    await assert.rejects(other.persist([large.freeze()]), code("key_too_large"));
    await assert.rejects(
      async () => await large.settle(),
      code("key_too_large"),
      "and whatever is called next",
    );
  });

  test("many keys: state larger than memory, read back whole and one by one", async (pages) => {
    await using store = await open(pages, undefined, {
      ...TINY,
      changes: 256,
      pageBytes: 1024,
      liveBytes: 40_000,
    });
    const partition = store.partition(), table = partition.space("s").table();
    const count = 4000;
    for (let i = 0; i < count; i++) {
      table.set(keyOf(i), i);
      if (i % 50 === 49) await settled(partition);
    }
    await settled(partition);
    assert(partition.live < count / 2, `${partition.live} cells in memory`);
    assert(!table.resident);
    assert.equal(store.keys, count);
    const all = [...Array(count).keys()];
    for (let from = 0; from < count; from += 500) {
      await settled(partition);
      const some = all.slice(from, from + 500);
      assert.deepEqual(await values(table, [...some.map(keyOf), `no-${from}`]), [...some, undefined]);
    }
    assert.deepEqual([...(await everything(table)).values()].sort((a, b) => Number(a) - Number(b)), all);
    await store.idle();
    assert(store.runs <= 12, `${store.runs} runs`);
  });

  test("a scan gives everything in the same order, whatever is in memory", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    for (let i = 0; i < 300; i++) table.set(keyOf(i), i);
    const inMemory = [...(await everything(table)).keys()];
    for (let i = 0; i < 300; i += 7) table.set(keyOf(i), -i);
    const section = await checkpoint(store, [partition], pages, "m");
    for (let i = 0; i < 20; i++) await settled(partition);
    assert.deepEqual([...(await everything(table)).keys()], inMemory);
    await using again = await open(pages, section);
    const restored = again.partition().space("s").table();
    assert.deepEqual([...(await everything(restored)).keys()], inMemory);
    await restored.prefetch([keyOf(5), keyOf(200)]);
    restored.set(keyOf(100), "changed");
    restored.delete(keyOf(5));
    assert.deepEqual([...(await everything(restored)).keys()], inMemory.filter((key) => key !== keyOf(5)));
  });

  test("what was not prefetched is an error, not missing", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    for (let i = 0; i < 50; i++) table.set(keyOf(i), i);
    await using again = await open(pages, await checkpoint(store, [partition], pages, "m"));
    const restored = again.partition().space("s").table();
    assert.throws(() => restored.get(keyOf(1)), code("state_not_loaded"));
    await restored.prefetch([keyOf(1), "nobody"]);
    assert.equal(restored.get(keyOf(1))!.value, 1);
    assert.equal(restored.get("nobody"), undefined);
  });

  test("a freeze is not changed by what comes after it", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space<unknown>("s").table();
    table.set("primitive", 1);
    table.set("object", { list: [1] });
    table.set("deleted", 1);
    table.set("gone and back", 1);
    const gone = partition.space("t").table(7);
    gone.set("x", 1);
    const frozen = partition.freeze();
    table.edit("primitive")!.value = 2;
    (table.edit("object")!.value as { list: number[] }).list.push(2);
    table.delete("deleted");
    table.delete("gone and back");
    table.set("gone and back", 2);
    table.set("new", 1);
    gone.drop();
    partition.space("t").table(7).set("y", 1);
    const section = await store.persist([frozen]);
    (table.edit("object")!.value as { list: number[] }).list.push(3);
    const before = new Map<unknown, unknown>([["primitive", 1], ["object", { list: [1] }], ["deleted", 1], [
      "gone and back",
      1,
    ]]);
    const after = new Map<unknown, unknown>([["primitive", 2], ["object", { list: [1, 2, 3] }], [
      "gone and back",
      2,
    ], ["new", 1]]);
    const second = await checkpoint(store, [partition], pages, "m");
    assert.deepEqual(await everything(table), after);
    await store.idle();
    for (const [from, expected, other] of [[section, before, "x"], [second, after, "y"]] as const) {
      await using again = await open(pages, { ...from });
      const restored = again.partition();
      assert.deepEqual(sorted(await everything(restored.space("s").table())), sorted(expected));
      assert.deepEqual([...await everything(restored.space("t").table(7))], [[other, 1]]);
      break; // opening with one section deletes what only the other needs
    }
    await using last = await openStateStore({
      operator: "op",
      pages,
      maxKeyGroups: GROUPS,
      section,
      limits: TINY,
    });
    assert.deepEqual(sorted(await everything(last.partition().space("s").table())), sorted(before));
  });

  test("partitions freeze at different moments, and their section is consistent", async (pages) => {
    await using store = await open(pages);
    const low = store.partition(0, 7), high = store.partition(7, GROUPS);
    const tables = [low, high].map((partition) => partition.space("s").table());
    const set = (i: number, value: number) =>
      tables[keyGroup(keyOf(i), GROUPS) < 7 ? 0 : 1]!.set(keyOf(i), value);
    for (let i = 0; i < 100; i++) set(i, 1);
    const first = low.freeze();
    for (let i = 0; i < 100; i++) if (keyGroup(keyOf(i), GROUPS) < 7) set(i, 2);
    await low.settle(); // many changes: they are written in the background, but not in front of the checkpoint
    const second = high.freeze();
    for (let i = 0; i < 100; i++) set(i, 3);
    await low.settle();
    await high.settle();
    const section = await store.persist([first, second]);
    await store.idle();
    assert.throws(() => store.persist([low.freeze()]), code("incomplete_freeze"));
    await using again = await open(pages, section);
    const all = await everything(again.partition().space("s").table());
    assert.equal(all.size, 100);
    assert([...all.values()].every((value) => value === 1));
  });

  test("a checkpoint that is given up holds nothing up", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    table.set("a", 1);
    const frozen = partition.freeze();
    for (let i = 0; i < 100; i++) table.set(keyOf(i), i);
    await partition.settle();
    store.abandon([frozen]);
    await store.idle();
    table.set("b", 1);
    await using again = await open(pages, await checkpoint(store, [partition], pages, "m"));
    assert.equal((await everything(again.partition().space("s").table())).size, 102);
  });

  test("restored state is what it was, in any number of partitions", async (pages) => {
    await using store = await open(pages);
    let partitions = ranges(3).map(([from, to]) => store.partition(from, to));
    let section!: Section;
    const expected = new Map<string, number>();
    const put = async (i: number, value: number): Promise<void> => {
      const key = keyOf(i), group = keyGroup(key, GROUPS);
      const table = partitions.find(({ from, to }) => group >= from && group < to)!.space("s").table(i % 2);
      await table.prefetch([key]);
      const cell = table.edit(key);
      if (cell === undefined) table.add(key, key, value);
      else cell.value = value;
      expected.set(key, value);
    };
    for (let i = 0; i < 200; i++) await put(i, i);
    section = await checkpoint(store, partitions, pages, "m");
    for (const count of [1, 4, 2, GROUPS, 5]) {
      await using again = await open(pages, section);
      partitions = ranges(count).map(([from, to]) => again.partition(from, to));
      const all = new Map<unknown, unknown>();
      for (const partition of partitions) {
        for (const table of partition.space("s").tables()) {
          for (const [key, value] of await everything(table)) {
            assert(!all.has(key));
            all.set(key, value);
            const group = keyGroup(key as string, GROUPS);
            assert(group >= partition.from && group < partition.to);
          }
        }
      }
      assert.deepEqual(sorted(all), sorted(expected));
      assert(Math.abs(again.keys - 200) <= GROUPS, `${again.keys} keys`);
      for (let i = 0; i < 200; i += 3) await put(i, count * 1000 + i);
      section = await checkpoint(again, partitions, pages, "m");
      await again.idle();
    }
  });

  test("a key of another partition is an error", async (pages) => {
    await using store = await open(pages);
    const partitions = [store.partition(0, 4), store.partition(4, GROUPS)];
    assert.throws(() => store.partition(3, 5), code("invalid_partition"));
    assert.throws(() => store.partition(4, 4), code("invalid_partition"));
    const names = [...Array(100).keys()].map(keyOf), own = names.find((key) => keyGroup(key, GROUPS) < 4)!;
    partitions[0]!.space("s").table().set(own, 1);
    await using again = await open(pages, await checkpoint(store, partitions, pages, "m"));
    const table = again.partition(0, 4).space("s").table();
    const foreign = names.find((key) => keyGroup(key, GROUPS) >= 4)!;
    assert.deepEqual(await values(table, [own]), [1]);
    assert.throws(() => table.get(foreign), code("foreign_key"));
    await assert.rejects(async () => await table.prefetch([foreign]), code("foreign_key"));
  });

  test("compaction keeps every answer and lets go of the rest", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    const model = new Map<string, number>();
    for (let round = 0; round < 30; round++) {
      for (let i = round % 3; i < 60; i += 3) {
        if ((i + round) % 5 === 0) {
          await table.prefetch([keyOf(i)]);
          table.delete(keyOf(i));
          model.delete(keyOf(i));
        } else {
          table.set(keyOf(i), round);
          model.set(keyOf(i), round);
        }
      }
      await partition.settle();
      await checkpoint(store, [partition], pages, "m");
    }
    await store.idle();
    assert.deepEqual(sorted(await everything(table)), sorted(model));
    const window = partition.space("w").table(1);
    for (let i = 0; i < 5000; i++) window.set(i, i);
    await checkpoint(store, [partition], pages, "m");
    const { bytes } = store;
    window.drop();
    for (let i = 0; i < 4; i++) {
      table.set("x", i);
      await checkpoint(store, [partition], pages, "m");
      await store.idle();
    }
    assert(store.bytes < bytes / 4, `${store.bytes} of ${bytes} bytes are left`);
    table.delete("x");
    assert.equal(store.keys, model.size);
    assert.deepEqual(sorted(await everything(table)), sorted(model));
  });

  test("a deleted key stays deleted while an old run that has it is not compacted", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    for (let i = 0; i < 1000; i++) table.set(keyOf(i), i);
    await checkpoint(store, [partition], pages, "m");
    await table.prefetch([keyOf(1)]);
    table.delete(keyOf(1));
    for (let round = 0; round < 8; round++) {
      table.set("other", round);
      await checkpoint(store, [partition], pages, "m");
      await store.idle();
      for (let i = 0; i < 10; i++) await settled(partition);
      assert.deepEqual(await values(table, [keyOf(1), keyOf(2)]), [undefined, 2]);
    }
    assert(
      store.runs > 1 && store.runs < 5,
      `${store.runs} runs: the young ones were compacted without the old one`,
    );
    assert.equal(store.keys, 1000);
  });

  test("runs are deleted when no held section needs them, and not before", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    const sections: Section[] = [];
    for (let round = 0; round < 12; round++) {
      for (let i = 0; i < 30; i++) table.set(keyOf(i), round);
      sections.push(await checkpoint(store, [partition], pages, `m/${round}`));
      await store.idle();
    }
    const listed = async () => new Set((await pages.list("runs", "op/")).map(({ name }) => name));
    let runs = await listed();
    for (const { run } of sections.flatMap((section) => section.runs)) assert(runs.has(run), run);
    const kept = sections[3]!;
    for (const section of sections) if (section !== kept) await store.release(section);
    runs = await listed();
    for (const { run } of kept.runs) assert(runs.has(run), run);
    assert(runs.size <= store.runs + kept.runs.length);
    await store[Symbol.asyncDispose]();
    await using again = await openStateStore({
      operator: "op",
      pages,
      maxKeyGroups: GROUPS,
      section: kept,
      limits: TINY,
    });
    assert.deepEqual(
      new Set((await everything(again.partition().space("s").table())).values()),
      new Set([3]),
    );
    await again.release(kept);
  });

  test("what a crash has left between pages and manifest is swept, and the old state is there", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    for (let i = 0; i < 100; i++) table.set(keyOf(i), "old");
    await checkpoint(store, [partition], pages, "m");
    for (let i = 0; i < 100; i += 2) table.set(keyOf(i), "new");
    await store.persist([partition.freeze()]); // and no manifest
    await pages.write("op/777", 0, [new Uint8Array(10)]);
    await pages.write("op/x/1", 0, [new Uint8Array(10)]);
    await store[Symbol.asyncDispose]();
    const section = await sectionOf(pages, "m");
    await using again = await open(pages, section);
    const restored = again.partition(), old = restored.space("s").table();
    assert.deepEqual(new Set((await everything(old)).values()), new Set(["old"]));
    const names = (await pages.list("runs", "op/")).map(({ name }) => name);
    assert.deepEqual(
      names.sort(),
      [...section.runs.map(({ run }) => run), "op/x/1"].sort(),
      "another operator's run stays",
    );
    old.set("more", "new");
    await using third = await open(pages, await checkpoint(again, [restored], pages, "m"));
    assert.equal((await everything(third.partition().space("s").table())).size, 101);
  });

  test("damage is found, and named by run and page", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    for (let i = 0; i < 200; i++) table.set(keyOf(i), i);
    table.set("large", new Uint8Array(100_000));
    const section = await checkpoint(store, [partition], pages, "m");
    await store[Symbol.asyncDispose]();
    const [{ run, pages: count, footer, filter }] = section.runs as [Section["runs"][0]];
    const whole = await pages.read(Array.from({ length: count }, (_, page) => ({ run, page })));
    for (const page of [0, 1, Math.floor(footer / 2), footer - 1, footer, filter]) {
      for (const at of [0, 5, 30, whole[page]!.length - 1]) {
        const damaged = whole[page]!.slice();
        damaged[at]! ^= 1;
        await pages.write(run, page, [damaged]);
        await assert.rejects(async () => {
          await using again = await open(pages, section);
          const restored = again.partition().space("s").table();
          await restored.prefetch(["a", "b", "c", "d", "e"]);
          await everything(restored);
        }, (error) => error instanceof MailerError && error.message.includes(`page ${page} of run "${run}"`));
      }
      await pages.write(run, page, [whole[(page + 1) % count]!]);
      await assert.rejects(
        async () => {
          await using again = await open(pages, section);
          const restored = again.partition().space("s").table();
          await restored.prefetch(["a", "b", "c", "d", "e"]);
          await everything(restored);
        },
        code("page_corrupt"),
        "a page in the place of another",
      );
      await pages.write(run, page, [whole[page]!]);
    }
    await using fine = await open(pages, section);
    assert.equal((await everything(fine.partition().space("s").table())).size, 201);
  });

  test("a damaged manifest is found", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition();
    partition.space("s").table().set("a", -0);
    partition.queue("q").add(-Infinity, 1, 1, null);
    await checkpoint(store, [partition], pages, "m");
    const { bytes } = (await pages.list("documents", "m"))[0]!;
    assert.deepEqual(openDocument("m", bytes), { state: await sectionOf(pages, "m") });
    for (let at = 0; at < bytes.length; at++) {
      const damaged = Uint8Array.from(bytes);
      damaged[at]! ^= 4;
      assert.throws(() => openDocument("m", damaged), /"m"/, `byte ${at}`);
    }
    assert.throws(() => openDocument("m", bytes.subarray(0, 5)), code("document_corrupt"));
  });

  test("expired keys are gone for readers, from memory and from the store", async (pages) => {
    await using store = await open(pages);
    let now = 0;
    const partition = store.partition(), table = partition.space("s", { time: () => now }).table();
    for (let i = 0; i < 500; i++) table.set(keyOf(i), i, i < 400 ? 100 + i : undefined);
    await checkpoint(store, [partition], pages, "m");
    const { bytes } = store;
    now = 150;
    assert.equal((await values(table, [keyOf(50)]))[0], undefined, "at its time it is gone");
    assert.equal((await values(table, [keyOf(51)]))[0], 51);
    table.set(keyOf(10), "again", 10_000);
    now = 1000;
    for (let i = 0; i < 50; i++) {
      table.set("other", i);
      await settled(partition);
    }
    const section = await checkpoint(store, [partition], pages, "m");
    await store.idle();
    assert.equal((await everything(table)).size, 102);
    for (let i = 0; i < 8; i++) {
      table.set("other", i);
      await checkpoint(store, [partition], pages, "m");
      await store.idle();
    }
    assert(store.bytes < bytes / 2, `${store.bytes} of ${bytes} bytes are left`);
    assert.equal(store.keys, 102);
    await using again = await open(pages, section);
    now = 900;
    const restored = again.partition().space("s", { time: () => now }).table();
    assert.equal((await everything(restored)).size, 102);
    now = 10_000;
    assert.equal((await everything(restored)).size, 101);
  });

  test("expired keys leave memory even if nobody asks for them", async (pages) => {
    await using store = await open(pages, undefined, { ...TINY, changes: 100_000, liveBytes: Infinity });
    let now = 0;
    const partition = store.partition(), table = partition.space("s", { time: () => now }).table();
    const windows = partition.space("w", { time: () => now });
    for (let i = 0; i < 20_000; i++) {
      table.set(i, i, i + 10);
      windows.table(i % 3).set(i, i, i + 10);
      now = i;
      if (i % 512 === 0) await settled(partition);
      assert(partition.live < 12_000, `${partition.live} cells in memory`);
    }
    now = 1e6;
    for (let i = 0; i < 100; i++) await settled(partition);
    assert.deepEqual([partition.live, store.keys], [0, 0]);
  });

  test("while a checkpoint is not over, nothing is compacted", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition(), table = partition.space("s").table();
    const over = Promise.withResolvers<void>();
    for (let round = 0; round < 6; round++) {
      for (let i = 0; i < 20; i++) table.set(keyOf(i), round);
      await store.persist([partition.freeze()], over.promise);
      await turns(5);
    }
    assert.equal(store.runs, 6);
    over.reject(new Error("the commit failed, which is not the store's concern"));
    await over.promise.catch(() => {});
    await store.idle();
    assert(store.runs < 4, `${store.runs} runs`);
    assert.deepEqual(new Set((await everything(table)).values()), new Set([5]));
  });

  test("expiry does not bring back what was there before", async (pages) => {
    await using store = await open(pages);
    let now = 0;
    const partition = store.partition(), table = partition.space("s", { time: () => now }).table();
    table.set("k", "for ever");
    await checkpoint(store, [partition], pages, "m");
    table.set("k", "for a while", 10);
    await checkpoint(store, [partition], pages, "m");
    now = 20;
    for (let i = 0; i < 10; i++) {
      await table.prefetch([...Array(20).keys()].map(keyOf));
      for (let j = 0; j < 20; j++) {
        const cell = table.edit(keyOf(j));
        if (cell === undefined) table.add(keyOf(j), keyOf(j), i);
        else cell.value = i;
      }
      await checkpoint(store, [partition], pages, "m");
      await settled(partition);
      await store.idle();
      assert.deepEqual(await values(table, ["k"]), [undefined]);
    }
    assert.equal(store.keys, 20);
  });

  test("a checkpoint keeps what expires, or is dropped, after it, whatever is compacted meanwhile", async (pages) => {
    await using store = await open(pages);
    let now = 0;
    const low = store.partition(0, 8), high = store.partition(8, GROUPS);
    const time = (): number => now;
    const names = [...Array(2000).keys()].map(keyOf);
    const isLow = (key: string): boolean => keyGroup(key, GROUPS) < 8;
    const table = low.space("s", { time }).table(), window = low.space("w").table(1), queue = low.queue("q");
    for (const key of names.filter(isLow)) {
      table.set(key, key, 10);
      window.set(key, key);
      queue.add(5, key, key, null);
    }
    await checkpoint(store, [low, high], pages, "m");
    const frozen = low.freeze();
    now = 100;
    window.drop();
    while (queue.take(now) !== undefined);
    const { bytes } = store;
    for (let round = 0; round < 10; round++) {
      for (const key of names.filter((key) => !isLow(key)).slice(0, 100)) {
        high.space("s", { time }).table().set(key, round);
      }
      await high.settle();
      await store.idle();
    }
    assert(store.bytes >= bytes, "nothing of it was let go of");
    const section = await store.persist([frozen, high.freeze()]);
    await store.idle();
    now = 0;
    await using again = await open(pages, section);
    const restored = again.partition(), count = names.filter(isLow).length;
    assert.equal((await everything(restored.space("s", { time }).table())).size, count + 100);
    assert.equal((await everything(restored.space("w").table(1))).size, count);
    const timers = restored.queue("q");
    let due = 0;
    while (timers.earliest <= 5) {
      await timers.load(5);
      while (timers.take(5) !== undefined) due++;
    }
    assert.equal(due, count);
  });

  test("values of an older version are migrated, or are an error that names operator and state", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition();
    partition.space("s").table().set("k", 5);
    const section = await checkpoint(store, [partition], pages, "m");
    {
      await using again = await open(pages, section);
      const table = again.partition().space("s", { version: 2 }).table();
      await assert.rejects(values(table, ["k"]), (error) => {
        return error instanceof MailerError && error.code === "state_version" &&
          /operator "op", state "s".*version 0/.test(error.message);
      });
    }
    await using again = await open(pages, section);
    const newer = again.partition();
    const migrate = (value: unknown, version: number) => ({ value, version });
    const table = newer.space("s", { version: 2, migrate }).table();
    assert.deepEqual(await values(table, ["k"]), [{ value: 5, version: 0 }]);
    table.set("new", 1);
    await using last = await open(pages, await checkpoint(again, [newer], pages, "m"));
    const both = last.partition().space("s", { version: 2, migrate }).table();
    assert.deepEqual(await values(both, ["k", "new"]), [{ value: 5, version: 0 }, 1]);
  });

  test("state nobody asks for is kept, and named", async (pages) => {
    await using store = await open(pages);
    const partition = store.partition();
    partition.space("s").table(3).set("k", 5);
    partition.queue("q").add(5, "k", "k", null);
    const section = await checkpoint(store, [partition], pages, "m");
    await using again = await open(pages, section);
    const restored = again.partition();
    assert.deepEqual([...restored.unclaimed].sort(), ["q", "s"]);
    assert.throws(() => restored.queue("s"), code("state_kind"));
    assert.throws(() => restored.space("q"), code("state_kind"));
    for (let i = 0; i < 5; i++) {
      restored.space("t").table().set("k", i);
      await checkpoint(again, [restored], pages, "m");
      await again.idle();
    }
    await using last = await open(pages, await sectionOf(pages, "m"));
    assert.deepEqual(await values(last.partition().space("s").table(3), ["k"]), [5]);
  });

  test("another number of key groups is refused", async (pages) => {
    await using store = await open(pages);
    const section = await checkpoint(store, [store.partition()], pages, "m");
    await assert.rejects(
      openStateStore({ operator: "op", pages, section, maxKeyGroups: 8 }),
      code("key_groups_changed"),
    );
  });

  test("queue entries come out in the order of their times, over restores and other partitions", async (pages) => {
    let section: Section | undefined;
    const taken: [number, unknown][] = [], expected: [number, unknown][] = [];
    const random = lcg(7);
    let now = 0;
    for (const count of [2, 1, 3, 3]) {
      await using store = await open(pages, section, { ...TINY, liveBytes: 60_000 });
      const partitions = ranges(count).map(([from, to]) => store.partition(from, to));
      const queues = partitions.map((partition) => partition.queue<string>("timers"));
      const add = (time: number, i: number): void => {
        const group = keyGroup(keyOf(i), GROUPS);
        const at = partitions.findIndex(({ from, to }) => group >= from && group < to);
        queues[at]!.add(time, keyOf(i), keyOf(i), `t${i}`);
        expected.push([time, keyOf(i)]);
      };
      for (let round = 0; round < 10; round++) {
        for (let i = 0; i < 120; i++) {
          add(Math.max(now, now + Math.floor(random() * 3000) - 100) + 0.5, expected.length);
        }
        for (const partition of partitions) await settled(partition);
        now += 200;
        for (const queue of queues) {
          const before = taken.length;
          while (queue.earliest <= now) {
            await queue.load(now);
            for (let entry = queue.take(now); entry !== undefined; entry = queue.take(now)) {
              assert.equal(entry.tag, `t${(entry.key as string).slice(4)}`);
              taken.push([entry.time, entry.key]);
            }
          }
          const times = taken.slice(before).map(([time]) => time);
          assert.deepEqual(times, times.toSorted((a, b) => a - b));
        }
        section = await checkpoint(store, partitions, pages, "m");
      }
      await store.idle();
      const due = expected.filter(([time]) => time <= now);
      assert.equal(taken.length, due.length);
      const byKey = (a: [number, unknown], b: [number, unknown]) => String(a[1]) < String(b[1]) ? -1 : 1;
      assert.deepEqual(taken.toSorted(byKey), due.toSorted(byKey));
      const size = queues.reduce((sum, queue) => sum + queue.size, 0);
      assert(
        Math.abs(size - (expected.length - taken.length)) <= 2 * count,
        "sizes are spread evenly at a restore",
      );
    }
  });

  test("restoring a large queue loads what is due, not all", async (pages) => {
    await using store = await open(pages, undefined, { changes: 4096, pageBytes: 4096 });
    const partition = store.partition(), queue = partition.queue("timers");
    for (let i = 0; i < 20_000; i++) {
      queue.add(i * 10, i, i, null);
      if (i % 1000 === 0) await settled(partition);
    }
    await using again = await open(pages, await checkpoint(store, [partition], pages, "m"));
    const restored = again.partition().queue("timers");
    assert.equal(restored.live, 0);
    assert(restored.earliest <= 0);
    await restored.load(15);
    assert(restored.live < 10_000, `${restored.live} entries loaded`);
    assert.deepEqual([restored.take(15)?.time, restored.take(15)?.time, restored.take(15)], [
      0,
      10,
      undefined,
    ]);
    assert.equal(restored.earliest, 20);
    restored.add(5, "late", "late", "x");
    assert.equal(restored.take(15)?.key, "late");
    let count = 3;
    while (restored.earliest < Infinity) {
      await restored.load(Infinity);
      while (restored.take(Infinity) !== undefined) count++;
    }
    assert.equal(count, 20_001);
  });

  test("several operators share a store and a cache", async (pages) => {
    const stores = await Promise.all(
      ["a", "b"].map((operator) => openStateStore({ operator, pages, limits: TINY })),
    );
    const partitions = stores.map((store) => store.partition());
    for (let round = 0; round < 8; round++) {
      partitions.forEach((partition, p) => {
        for (let i = 0; i < 50; i++) partition.space("s").table().set(keyOf(i), [p, round]);
      });
      await Promise.all(stores.map((store, p) => checkpoint(store, [partitions[p]!], pages, `m/${p}`)));
    }
    for (const [p, partition] of partitions.entries()) {
      const all = await everything(partition.space("s").table());
      assert([...all.values()].every((value) => assert.deepEqual(value, [p, 7]) === undefined));
    }
    for (const store of stores) await store[Symbol.asyncDispose]();
  });
}

/** Cuts the key groups into ranges. */
function ranges(count: number): [number, number][] {
  const cut = (i: number): number => Math.floor(i * GROUPS / count);
  return Array.from({ length: count }, (_, i) => [cut(i), cut(i + 1)]);
}

function sorted(map: ReadonlyMap<unknown, unknown>): [unknown, unknown][] {
  return [...map].sort((a, b) => String(a[0]) < String(b[0]) ? -1 : 1);
}

function lcg(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
}

function code(expected: string): (error: unknown) => boolean {
  return (error) => error instanceof MailerError && error.code === expected;
}
