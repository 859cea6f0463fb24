import assert from "node:assert/strict";
import { MailerError } from "../../errors.ts";
import { VirtualClock } from "../../testing/virtual_clock.ts";
import type { Cells } from "./cells.ts";
import { flowStoreContract, type FlowStoreUnderTest } from "./contract.ts";
import { KvCells, openKvStore } from "./kv.ts";
import { MemoryCells, MemoryDisk, openMemoryStore } from "./memory.ts";
import { openStore } from "./store.ts";

flowStoreContract("memory", () => {
  const disk = new MemoryDisk(), clock = new VirtualClock();
  return Promise.resolve(
    under(clock, () => Promise.resolve(new MemoryCells(disk, clock)), new MemoryCells(disk, clock)),
  );
});

for (const [name, isFile] of [["KV file", true], ["KV in memory", false]] as const) {
  flowStoreContract(name, async () => {
    const folder = isFile ? await Deno.makeTempDir() : undefined;
    const path = folder === undefined ? ":memory:" : `${folder}/flows`;
    const kv = await Deno.openKv(path), clock = new VirtualClock();
    const shared = new KvCells(kv, ["flow"], path);
    // Each opening of a file is a connection of its own, as another process would have; memory is shared.
    const open = async (): Promise<Cells> => {
      return isFile ? new KvCells(await Deno.openKv(path), ["flow"], path) : kept(shared);
    };
    return under(clock, open, shared, async () => {
      await shared[Symbol.asyncDispose]();
      if (folder !== undefined) await Deno.remove(folder, { recursive: true });
    });
  });
}

Deno.test("without KV the error is one sentence that names both remedies", async () => {
  const openKv = Deno.openKv;
  Reflect.deleteProperty(Deno, "openKv");
  try {
    await assert.rejects(openKvStore({ path: ":memory:" }), (error) => {
      assert(error instanceof MailerError);
      assert.equal(error.code, "kv_unavailable");
      assert.match(error.message, /"unstable": \["kv"\].*deno\.json at the root.*--unstable-kv$/);
      return true;
    });
  } finally {
    Object.defineProperty(Deno, "openKv", { value: openKv, configurable: true, writable: true });
  }
});

Deno.test("a file that cannot be opened is named, and one of a newer version is left alone", async () => {
  const folder = await Deno.makeTempDir();
  try {
    await assert.rejects(openKvStore({ path: folder }), (error) => {
      return error instanceof MailerError && error.code === "store_unavailable" &&
        error.message.includes(folder) && error.hint !== undefined;
    });
    const path = `${folder}/flows`, kv = await Deno.openKv(path);
    await kv.set(["flow", "m"], new TextEncoder().encode('{"v":2}'));
    kv.close();
    await assert.rejects(openKvStore({ path }), { code: "unknown_store" });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a store on a file outlives being closed; stores with other prefixes are others", async () => {
  const folder = await Deno.makeTempDir(), path = `${folder}/flows`;
  const definition = { name: "order", hash: "h", text: "{}" };
  try {
    {
      await using store = await openKvStore({ path, partitions: 4 });
      await store.definitions.put(definition);
    }
    await using again = await openKvStore({ path });
    assert.deepEqual([again.partitions.count, await again.definitions.get("order")], [4, definition]);
    await using other = await openKvStore({ path, prefix: ["tenant", 2] });
    assert.deepEqual([other.partitions.count, await other.definitions.get("order")], [16, undefined]);
    await again[Symbol.asyncDispose]();
    await again[Symbol.asyncDispose]();
    await assert.rejects(again.definitions.put(definition));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a store in memory may be slow, and keeps its disk", async () => {
  const disk = new MemoryDisk(), clock = new VirtualClock();
  const opening = openMemoryStore({ disk, clock, latencyMs: 50 });
  await clock.advance(1000);
  {
    await using store = await opening;
    let isDone = false;
    const put = store.definitions.put({ name: "order", hash: "h", text: "{}" }).then(() => isDone = true);
    await clock.advance(99);
    assert.equal(isDone, false);
    await clock.advance(1);
    await put;
  }
  await using again = await openMemoryStore({ disk, clock });
  assert.equal((await again.definitions.get("order"))!.hash, "h");
});

function under(
  clock: VirtualClock,
  cells: () => Promise<Cells>,
  shared: Cells,
  dispose: () => Promise<void> = () => Promise.resolve(),
): FlowStoreUnderTest {
  const opened: Cells[] = [];
  return {
    clock,
    open: async ({ wrap = (inner: Cells) => inner, ...options } = {}) => {
      const own = await cells();
      opened.push(own);
      return await openStore(wrap(own), clock, options);
    },
    cells: () => shared,
    dispose: async () => {
      for (const own of opened) await own[Symbol.asyncDispose](); // those of crashed openings
      await dispose();
    },
  };
}

/** Cells that stay open when they are closed. */
function kept(cells: Cells): Cells {
  return {
    where: cells.where,
    get: (keys) => cells.get(keys),
    list: (range, limit, reverse) => cells.list(range, limit, reverse),
    commit: (checks, writes) => cells.commit(checks, writes),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
