/**
 * Streams and flows together: executions started by records, and records made of what happens to executions.
 *
 * ```ts
 * import { createEnv } from "@mailer/core";
 * import { flowEvents, flowSink } from "@mailer/core/connectors/flow";
 * import { stdoutSink } from "@mailer/core/connectors/stdio";
 * import { defineFlow, FlowEngine, openMemoryStore } from "@mailer/core/flow";
 *
 * const order = defineFlow({ name: "order", nodes: { done: { type: "choice", rules: [{ default: true, to: "$end" }] } } });
 * await using store = await openMemoryStore();
 * await using engine = await new FlowEngine({ store, flows: [order] }).start();
 *
 * const orders = createEnv({ name: "orders" });
 * orders
 *   .fromReadable(ReadableStream.from([[{ id: "o-1" }, { id: "o-2" }, { id: "o-1" }]]))
 *   .toSink(flowSink<{ id: string }>({ engine, flow: "order", id: ({ id }) => id }));
 * await orders.execute(); // two executions: what comes again starts nothing
 *
 * const ends = createEnv({ name: "ends" });
 * ends
 *   .fromSource(flowEvents({ store, types: ["ExecutionCompleted"], until: "end" }))
 *   .map(({ execution }) => execution)
 *   .toSink(stdoutSink());
 * await ends.execute();
 * ```
 *
 * @module
 */
export { type FlowEventRecord, flowEvents, type FlowEventsOptions } from "./flow_events.ts";
export { flowSink, type FlowSinkOptions } from "./flow_sink.ts";
export { type FlowStarter, type FlowTarget, starterFor, StartRefused, type StartRequest } from "./starter.ts";
export {
  type EmitSource,
  emitSource,
  type EmitSourceOptions,
  FlowEmitter,
  type FlowEmitterOptions,
} from "./emit.ts";
export { kafkaTrigger, type KafkaTriggerOptions } from "./kafka_trigger.ts";
export {
  FlowTriggers,
  type FlowTriggersOptions,
  type TriggerContext,
  type TriggerMessage,
  type TriggerSource,
} from "./triggers.ts";
