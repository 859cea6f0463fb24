/**
 * Departures from New York by airport and local day: how many, how many cancelled, how late.
 * The same as `flight-delays.yaml`; flights that come too late are told on stderr.
 *
 * deno run -A examples/flight_delays.ts
 */
// deno-lint-ignore-file no-console -- rows go to stdout
import { gunzipSync } from "node:zlib";
import { avg, boundedOutOfOrderness, count, createEnv, max, percentile, sum, tumbling } from "@mailer/core";

const timezone = "America/New_York";
const packed = await Deno.readFile(new URL("data/flights-2013-11.csv.gz", import.meta.url));
const [head, ...lines] = gunzipSync(packed).toString().trimEnd().split("\n").map((line) => line.split(","));
const flights = lines.map((cells) => Object.fromEntries(cells.map((cell, i) => [head![i]!, cell])));

/** A departure. Its event time is when it should have left; one that was cancelled has no delay. */
function departure(row: Readonly<Record<string, string>>) {
  return {
    origin: row.origin!,
    flight: `${row.carrier} ${row.flight}`,
    scheduled: Date.parse(row.time_hour!) + Number(row.minute) * 60_000,
    delay: row.dep_delay === "NA" ? null : Number(row.dep_delay), // null is skipped by aggregates
    cancelled: row.dep_time === "NA" ? 1 : 0,
  };
}

const env = createEnv({ name: "flight-delays" });
const days = env
  .fromReadable(ReadableStream.from([flights]))
  .map(departure)
  .assignTimestamps((flight) => flight.scheduled, boundedOutOfOrderness("2h"))
  .keyBy((flight) => flight.origin, { partitions: 3 })
  .window(tumbling("1d", { timezone })) // 3 November has 25 hours
  .aggregate({
    flights: count(),
    cancelled: sum("cancelled"),
    meanDelay: avg("delay"),
    p95Delay: percentile("delay", { p: 95 }),
    maxDelay: max("delay"),
  });
const late = days.sideOutput<ReturnType<typeof departure>>("late").toReadable();
const rows = days.map((row, { key, window }) => {
  const [start, end] = [local(window!.start), local(window!.end)];
  return { origin: key, ...row, window: { start, end } };
}).toReadable();

await Promise.all([
  rows.pipeTo(new WritableStream({ write: (row) => console.log(JSON.stringify(row)) })),
  late.pipeTo(new WritableStream({ write: (flight) => console.error("late:", flight) })),
  env.execute(),
]);

function local(ms: number): string {
  const moment = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone);
  return moment.toString({ timeZoneName: "never", fractionalSecondDigits: 3 });
}
