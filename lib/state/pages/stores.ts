/**
 * The page stores there are, in temporary files: for contract suites.
 *
 * @module
 */
import { openFilePages } from "./files.ts";
import { openKvPages } from "./kv.ts";
import { MemoryPages } from "./memory.ts";
import type { PageStore } from "./port.ts";
import { openSqlitePages } from "./sqlite.ts";
import type { PageStoreUnderTest } from "./contract.ts";

/** Every implementation of the port, by name. */
export const PAGE_STORES: readonly (readonly [name: string, make: () => Promise<PageStoreUnderTest>])[] = [
  ["memory", () => {
    const pages = new MemoryPages();
    return Promise.resolve({
      open: () => Promise.resolve(pages),
      survives: false,
      dispose: () => Promise.resolve(),
    });
  }],
  ["kv", () => inFolder((folder) => openKvPages({ path: `${folder}/state.kv` }))],
  ["sqlite", () => inFolder((folder) => openSqlitePages({ path: `${folder}/in/state.sqlite` }))],
  ["files", () => inFolder((folder) => openFilePages({ path: `${folder}/in/state` }))],
];

async function inFolder(open: (folder: string) => Promise<PageStore>): Promise<PageStoreUnderTest> {
  const folder = await Deno.makeTempDir({ prefix: "mailer-state-" });
  return {
    open: () => open(folder),
    survives: true,
    dispose: () => Deno.remove(folder, { recursive: true }),
  };
}
