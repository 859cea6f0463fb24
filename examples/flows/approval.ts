/**
 * A request, and the answer of a person.
 *
 * deno run -A examples/flows/approval.ts
 */
// deno-lint-ignore-file no-console -- it is what the example shows
import { done } from "@mailer/core/flow";
import { Embedded, flowFile } from "./embedded.ts";

await using here = await Embedded.start([await flowFile("approval.yaml")], {
  "send-request": ({ context }) => console.log("asked:", JSON.stringify(context.input)),
  grant: ({ context }) => {
    const { by } = context.signals["approval"] as { by: string };
    return done({ output: {}, writes: { approved: true, by } });
  },
  refuse: () => ({}),
});

const { id } = await here.client.start("approval", { requester: "ann", what: "a new desk" }, {
  id: "desk-1",
});
// The id of a signal tells repetitions: sent again, after a lost answer say, it counts once.
await here.client.signal(id, "approval", { ok: true, by: "bob" }, { id: "answer-1" });
await here.client.signal(id, "approval", { ok: true, by: "bob" }, { id: "answer-1" });
const { status, output } = await here.client.wait(id);
console.log(status, JSON.stringify(output));
