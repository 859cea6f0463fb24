/**
 * Stores of flows: the port, and where it lies.
 *
 * @module
 */
export type { Cell, Cells, Check, Range, Write } from "./cells.ts";
export { type Call, type Fault, FaultyCells } from "./faults.ts";
export { type KvStoreOptions, openKvStore } from "./kv.ts";
export { MemoryDisk, type MemoryStoreOptions, openMemoryStore } from "./memory.ts";
export type * from "./port.ts";
