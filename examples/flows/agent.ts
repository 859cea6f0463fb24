/**
 * An agent loop: what to do next is decided by a worker, here by a script in place of a model; what it may spend is bounded, and
 * paying needs a person.
 *
 * deno run -A examples/flows/agent.ts
 */
// deno-lint-ignore-file no-console -- it is what the example shows
import { done, interrupt } from "@mailer/core/flow";
import { Embedded, flowFile } from "./embedded.ts";

const script = [
  { next: "search", writes: { messages: "which trains are there?" }, usage: { tokens: 900 } },
  { next: "pay", writes: { messages: "the one at nine" }, usage: { tokens: 700 } },
  { next: "answer", usage: { tokens: 400 } },
];

await using here = await Embedded.start([await flowFile("agent.yaml")], {
  model: ({ context }) => done({ output: {}, ...script[context.visits["think"]! - 1]! }),
  search: () => done({ output: {}, writes: { messages: ["8:00, 30 euros", "9:00, 12 euros"] } }),
  pay: ({ context, idempotencyKey }) => {
    if (context.resume === undefined) interrupt({ question: "may I pay 12 euros?" });
    // The key is the same for all attempts: the bank pays once.
    return done({ output: { key: idempotencyKey }, writes: { messages: "paid" } });
  },
  "write-answer": ({ context }) => ({ text: (context.channels["messages"] as string[]).join(" / ") }),
});

const { client } = here,
  { id } = await client.start("agent", { question: "a cheap ticket" }, { id: "ticket" });
const asking = await client.waitUntil(id, ({ waiting }) => waiting.interrupts.length > 0);
console.log("it asks:", JSON.stringify(asking.waiting.interrupts[0]!.payload));
await client.resume(id, "pay", { ok: true });
const { output } = await client.wait(id);
console.log(JSON.stringify(output));
