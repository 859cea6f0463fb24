/**
 * A stream starts a flow for each completed order, and another stream adds up what came of them. Run twice over the same orders, as
 * after a crash, it starts each of them once.
 *
 * deno run -A examples/flows/orders_to_flows.ts
 */
// deno-lint-ignore-file no-console -- it is what the example shows
import { createEnv } from "@mailer/core";
import { stdoutSink } from "@mailer/core/connectors/stdio";
import { flowEvents, flowSink } from "@mailer/core/connectors/flow";
import { done, PermanentError } from "@mailer/core/flow";
import { Embedded, flowFile } from "./embedded.ts";

interface Order {
  readonly order: string;
  readonly customer: string;
  readonly status: "completed" | "pending";
  readonly amount: number;
}

const orders: Order[] = [
  { order: "o-1", customer: "c1", status: "completed", amount: 10 },
  { order: "o-2", customer: "c1", status: "pending", amount: 15 },
  { order: "o-3", customer: "c1", status: "completed", amount: 5000 },
  { order: "o-4", customer: "c2", status: "completed", amount: 7 },
];

const charged = new Set<string>();
await using here = await Embedded.start([await flowFile("order-saga.yaml")], {
  "reserve-stock": ({ execId }) => done({ output: {}, writes: { reservation: `r-${execId}` } }),
  "charge-card": ({ context, idempotencyKey }) => {
    if ((context.input as Order).amount > 1000) throw new PermanentError("card refused");
    charged.add(idempotencyKey); // who charges looks at the key: an attempt may come again
    return done({ output: {}, writes: { payment: "p" } });
  },
  ship: () => ({}),
  "release-stock": () => done({ output: {}, writes: { undone: "release" } }),
  "tell-customer": () => ({}),
});

for (let run = 0; run < 2; run++) {
  const env = createEnv({ name: "orders-to-flows" });
  env
    .fromReadable<Order>(ReadableStream.from([orders]))
    .filter((order) => order.status === "completed")
    .toSink(flowSink<Order>({ engine: here.engine, flow: "order-saga", id: ({ order }) => order }));
  await env.execute();
}
const { items } = await here.client.list({ flow: "order-saga" });
for (const { id } of items) await here.client.wait(id);

const totals = createEnv({ name: "saga-totals" });
totals
  .fromSource(flowEvents({ store: here.store, types: ["ExecutionCompleted"], until: "end" }))
  .map(({ data }) => (data as { output: { shipped: boolean } }).output.shipped ? "shipped" : "undone")
  .keyBy((outcome) => outcome)
  .reduce((count: number | undefined) => (count ?? 0) + 1)
  .map((count, { key }) => ({ outcome: key, count }))
  .toSink(stdoutSink());
await totals.execute();
console.log("charged:", charged.size);
