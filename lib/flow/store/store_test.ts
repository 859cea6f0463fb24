import { VirtualClock } from "../../testing/virtual_clock.ts";
import type { Cells } from "./cells.ts";
import { flowStoreContract, type FlowStoreUnderTest } from "./contract.ts";
import { KvCells } from "./kv.ts";
import { MemoryCells, MemoryDisk } from "./memory.ts";
import { openStore } from "./store.ts";

flowStoreContract("memory", () => {
  const disk = new MemoryDisk(), clock = new VirtualClock();
  return Promise.resolve(under(clock, () => Promise.resolve(new MemoryCells(disk, clock)), new MemoryCells(disk, clock)));
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
