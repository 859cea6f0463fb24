/**
 * A flow each night at half past two in Berlin. In the night the clock goes forward there is no such time: it is started at three.
 * Nights that have passed are filled in, each once, however often that is asked for.
 *
 * deno run -A examples/flows/nightly_report.ts
 */
// deno-lint-ignore-file no-console -- it is what the example shows
import { Embedded, flowFile } from "./embedded.ts";

await using here = await Embedded.start([await flowFile("nightly-report.yaml")], {
  "collect-sales": ({ context }) => ({ night: (context.input as { night: string }).night, total: 120 }),
  "send-report": ({ context }) => ({ sent: context.results["collect"] }),
});

const { engine: { schedules }, client } = here;
await schedules.put({
  name: "nightly",
  cron: "0 30 2 * * *",
  timezone: "Europe/Berlin",
  flow: "nightly-report",
  input: { country: "de" },
  occurrenceField: "night",
  overlap: "buffer",
  catchUp: "12h",
  jitter: "5m",
});

const after = Date.parse("2026-03-27T12:00:00Z");
for (const { occurrence } of await schedules.next("nightly", { after, limit: 3 })) {
  console.log("next:", new Date(occurrence).toISOString());
}
const span = { from: new Date("2025-03-29T00:00:00Z"), to: new Date("2025-04-01T00:00:00Z") };
for (let asked = 0; asked < 2; asked++) await schedules.backfill("nightly", span);
while ((await schedules.get("nightly")).backfills > 0) {
  await new Promise((resolve) => setTimeout(resolve, 10));
}
const { items } = await client.list({ flow: "nightly-report" });
for (const id of items.map(({ id }) => id).sort()) {
  const { status, input } = await client.wait(id);
  console.log(id, status, JSON.stringify(input));
}
