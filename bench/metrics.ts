/**
 * What metrics cost: W-a, eight times over, with its metrics scraped every second (Prometheus asks every 15 s) against the same with
 * nobody asking, by turns in one process.
 *
 * `deno run -A --v8-flags=--max-old-space-size=8000 bench/metrics.ts [RUNS]`. Prints one line of JSON with the medians, in records
 * per CPU second. What counting itself costs is in both figures: it is a few additions a batch of 1,024 records.
 *
 * @module
 */
import { createEnv } from "../mod.ts";
import { blackholeSink, sliceSource } from "../connectors/memory/mod.ts";
import { buildInput } from "./data.ts";
import { measure } from "./measure.ts";

const runs = Number(Deno.args[0] ?? 9);
const once = buildInput("W-a", 5_000_000);
const orders = new Array(8).fill(once).flat() as typeof once;

async function run(scrape: "scraped" | "quiet"): Promise<number> {
  const env = createEnv({ name: "metrics" });
  env
    .fromSource(sliceSource(orders))
    .filter((order) => order.status === "completed")
    .map((order) => ({ ...order, fee: order.amount * 0.125 }))
    .toSink(blackholeSink());
  const timer = scrape === "scraped" ? setInterval(() => void env.metrics(), 1000) : undefined;
  if (scrape === "scraped") await env.metrics(); // the client is loaded before the clock starts
  const { cost } = await measure(() => env.execute());
  clearInterval(timer);
  return orders.length / cost.cpuSeconds;
}

const rates = { scraped: [] as number[], quiet: [] as number[] };
for (let i = 0; i <= runs; i++) {
  for (const how of ["quiet", "scraped"] as const) {
    const rate = await run(how);
    if (i > 0) rates[how].push(rate); // the first round compiles
  }
}
const median = (list: readonly number[]): number =>
  list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]!;
const quiet = median(rates.quiet), scraped = median(rates.scraped);
// deno-lint-ignore no-console -- the result is printed
console.log(JSON.stringify({
  runs,
  quietMps: Number((quiet / 1e6).toFixed(2)),
  scrapedMps: Number((scraped / 1e6).toFixed(2)),
  costPercent: Number(((1 - scraped / quiet) * 100).toFixed(2)),
}));
