/**
 * Departures from New York by airport and local day: how many, how many cancelled, how late.
 * The same as `flight-delays.yaml`; flights that come too late are told on stderr.
 *
 * deno run -A examples/flight_delays.ts
 */
// deno-lint-ignore-file no-console -- late flights go to stderr
import { avg, boundedOutOfOrderness, count, createEnv, max, percentile, sum, tumbling } from "@mailer/core";
import { fileSource } from "@mailer/core/connectors/file";
import { stdoutSink } from "@mailer/core/connectors/stdio";

const timezone = "America/New_York";
const flights = fileSource<Row>({
  path: "data/flights-2013-11.csv.gz",
  baseDirectory: import.meta.dirname!,
  format: "csv",
  csv: { types: { minute: "number", dep_delay: "number" }, nulls: ["NA"] }, // the other cells stay text
});

/** What this takes of a row. */
type Row =
  & Record<"origin" | "carrier" | "flight" | "time_hour" | "dep_time", string>
  & { minute: number; dep_delay: number | null };

/** A departure. Its event time is when it should have left; one that was cancelled has no delay. */
function departure(row: Row) {
  return {
    origin: row.origin,
    flight: `${row.carrier} ${row.flight}`,
    scheduled: Date.parse(row.time_hour) + row.minute * 60_000,
    delay: row.dep_delay, // null is skipped by aggregates
    cancelled: row.dep_time === "NA" ? 1 : 0,
  };
}

const env = createEnv({ name: "flight-delays" });
const days = env
  .fromSource(flights)
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
days.map((row, { key, window }) => {
  const [start, end] = [local(window!.start), local(window!.end)];
  return { origin: key, ...row, window: { start, end } };
}).toSink(stdoutSink());

await Promise.all([
  late.pipeTo(new WritableStream({ write: (flight) => console.error("late:", flight) })),
  env.execute(),
]);

function local(ms: number): string {
  const moment = Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(timezone);
  return moment.toString({ timeZoneName: "never", fractionalSecondDigits: 3 });
}
