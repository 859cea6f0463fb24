/**
 * Mailer's other half: flows, durable graphs of tasks that survive crashes and deploys.
 *
 * ```ts
 * import { defineFlow, FlowClient, FlowEngine, openMemoryStore } from "@mailer/core/flow";
 *
 * const order = defineFlow({
 *   name: "order",
 *   start: "reserve",
 *   nodes: {
 *     reserve: { type: "task", kind: "reserve", next: "charge" },
 *     charge: { type: "task", kind: "charge", retry: { maxAttempts: 3, backoff: "exponential" } },
 *   },
 *   output: "results.charge",
 * });
 * await using store = await openMemoryStore(); // openKvStore({ path: "flows.db" }) keeps it
 * await using engine = new FlowEngine({ store, flows: [order] });
 * engine
 *   .worker("reserve", () => ({ reservation: "r-1" }))
 *   .worker("charge", ({ context }) => ({ charged: context.input }));
 * await engine.start();
 * const client = new FlowClient({ store, engine });
 * const { id } = await client.start("order", { order: "o-1" });
 * const { status, output } = await client.wait(id);
 * console.log(status, output); // completed { charged: { order: "o-1" } }
 * ```
 *
 * @module
 */
export * from "./lib/flow/client/mod.ts";
export * from "./lib/flow/definition/mod.ts";
export * from "./lib/flow/engine/mod.ts";
export * from "./lib/flow/http/mod.ts";
export type { JobContext, Refusal, RefusalCode } from "./lib/flow/fold/mod.ts";
export type * from "./lib/flow/fold/commands.ts";
export type * from "./lib/flow/fold/events.ts";
export type { Fields } from "./lib/flow/fold/fields.ts";
export type { IdMemory, Queue } from "./lib/flow/fold/queue.ts";
export type * from "./lib/flow/fold/state.ts";
export type { VersionedMap } from "./lib/flow/fold/versioned_map.ts";
export {
  type BackfillOptions,
  type CheckedSpec,
  type NextOccurrence,
  occurrencesOf,
  type Outcome,
  type OutcomeCounts,
  type OutcomeKind,
  type Overlap,
  Schedules,
  type SchedulesOptions,
  type ScheduleSpec,
  type ScheduleView,
} from "./lib/flow/schedule/mod.ts";
export {
  type Cell,
  type Cells,
  type Check,
  type KvStoreOptions,
  MemoryDisk,
  type MemoryStoreOptions,
  openKvStore,
  openMemoryStore,
  type Range,
  type Write,
} from "./lib/flow/store/mod.ts";
export type * from "./lib/flow/store/port.ts";
