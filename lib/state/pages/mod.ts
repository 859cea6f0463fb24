/**
 * Page stores: the port, and the four there are.
 *
 * @module
 */
export { type FilePagesOptions, openFilePages } from "./files.ts";
export { type KvPagesOptions, openKvPages } from "./kv.ts";
export { MemoryPages } from "./memory.ts";
export {
  type DocumentChange,
  LARGEST_DOCUMENT,
  LARGEST_PAGE,
  type Listed,
  type PageRef,
  type PageStore,
} from "./port.ts";
export { openSqlitePages, type SqlitePagesOptions } from "./sqlite.ts";
