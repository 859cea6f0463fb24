/**
 * The client of flows.
 *
 * ```ts ignore
 * const client = new FlowClient({ store, engine });
 * const { id } = await client.start("order", { order: "o-1" });
 * const { status, output } = await client.wait(id);
 * ```
 *
 * @module
 */
export type { BulkAction, BulkOptions, BulkResult } from "./bulk.ts";
export * from "./client.ts";
export type { Instant } from "./commands.ts";
export type { DeadLetterView } from "./dead_letters.ts";
export { FlowClientError, type FlowErrorCode } from "./errors.ts";
export type { HistoryOptions, RecordedEvent, RecordedOutput, WaitOptions } from "./reading.ts";
export type * from "./view.ts";
