/**
 * Bursts of earthquakes: at least five in one cell of a grid of one degree, none more than six hours behind the one before.
 * The same as `earthquake-swarms.yaml`; what comes too late is dropped, and counted on stderr.
 *
 * deno run -A examples/earthquake_swarms.ts
 */
// deno-lint-ignore-file no-console -- the count goes to stderr
import {
  boundedOutOfOrderness,
  count,
  createEnv,
  distinct,
  first,
  max,
  percentile,
  session,
} from "@mailer/core";
import { fileSource } from "@mailer/core/connectors/file";
import { stdoutSink } from "@mailer/core/connectors/stdio";

/** A report; `time` is when it shook, in ms. They come in the order of their last update. */
type Quake =
  & Record<"mag" | "time" | "longitude" | "latitude" | "depth", number>
  & Record<"place" | "net" | "type", string>;

const env = createEnv({ name: "earthquake-swarms" });
const reports = fileSource<Quake>({
  path: "data/earthquakes-2018-02.ndjson.gz",
  baseDirectory: import.meta.dirname!,
});
env
  .fromSource(reports, { timestamp: (quake) => quake.time, watermarks: boundedOutOfOrderness("12h") })
  .filter((quake) => quake.type === "earthquake")
  .keyBy((quake) => ({ lat: Math.trunc(quake.latitude), lon: Math.trunc(quake.longitude) }))
  .window(session("6h"))
  .allowedLateness("24h") // a report this late still changes its swarm, which is then told again
  .aggregate({
    quakes: count(),
    strongest: max("mag"),
    medianDepth: percentile("depth", { p: 50 }),
    place: first("place"),
    networks: distinct("net"),
  })
  .filter((burst) => burst.quakes >= 5)
  .map((swarm, { key, window }) => {
    const [start, end] = [window!.start, window!.end].map((ms) => new Date(ms).toISOString());
    return { cell: key, ...swarm, window: { start, end } };
  })
  .toSink(stdoutSink());

const run = env.start();
await run.done;
for (const { reason, count } of run.status().dropped) console.error(`dropped: ${count} ${reason}`);
