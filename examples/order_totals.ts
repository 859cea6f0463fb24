/**
 * What each customer has spent so far on completed orders.
 *
 * deno run -A examples/order_totals.ts
 */
import { createEnv } from "@mailer/core";
import { stdoutSink } from "@mailer/core/connectors/stdio";

interface Order {
  readonly customer: { readonly id: string };
  readonly status: "completed" | "pending";
  readonly amount: number;
}

const orders: Order[] = [
  { customer: { id: "c1" }, status: "completed", amount: 10 },
  { customer: { id: "c1" }, status: "pending", amount: 15 },
  { customer: { id: "c1" }, status: "completed", amount: 5 },
  { customer: { id: "c2" }, status: "completed", amount: 7 },
];

const env = createEnv({ name: "order-totals" });
env
  .fromReadable<Order>(ReadableStream.from([orders])) // a chunk may be a list, which is faster
  .filter((order) => order.status === "completed")
  .keyBy((order) => order.customer.id, { partitions: 4 })
  .reduce((sum: number | undefined, order) => (sum ?? 0) + order.amount)
  .map((sum, { key }) => ({ customer: { id: key }, sum }))
  .toSink(stdoutSink());
await env.execute();
