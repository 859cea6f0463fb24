/**
 * Keyed state as a log of runs: the core under all state backends.
 *
 * @module
 */
export { Cell } from "./cell.ts";
export { openDocument, sealDocument } from "./document.ts";
export { PageCache } from "./page_cache.ts";
export { type Frozen, Partition, type SpaceHandle } from "./partition.ts";
export { Queue, type QueueEntry } from "./queue.ts";
export type { Section } from "./section.ts";
export type { SpaceOptions, StoredEntry } from "./space.ts";
export type { StateLimits } from "./limits.ts";
export { openStateStore, RESIDENT, StateStore, type StateStoreOptions, volatileState } from "./store.ts";
export { Table } from "./table.ts";
