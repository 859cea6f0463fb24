/**
 * Bursts of earthquakes: at least five in one cell of a grid of one degree, none more than six hours behind the one before.
 * The same as `earthquake-swarms.yaml`; what comes too late is counted on stderr.
 *
 * deno run -A examples/earthquake_swarms.ts
 */
// deno-lint-ignore-file no-console -- rows go to stdout
import { gunzipSync } from "node:zlib";
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

/** A report; `time` is when it shook, in ms. They come in the order of their last update. */
type Quake =
  & Record<"mag" | "time" | "longitude" | "latitude" | "depth", number>
  & Record<"place" | "net" | "type", string>;

const packed = await Deno.readFile(new URL("data/earthquakes-2018-02.ndjson.gz", import.meta.url));
const reports = gunzipSync(packed).toString().trimEnd().split("\n").map((line) => JSON.parse(line) as Quake);

const env = createEnv({ name: "earthquake-swarms" });
const bursts = env
  .fromReadable<Quake>(ReadableStream.from([reports]), {
    timestamp: (quake) => quake.time,
    watermarks: boundedOutOfOrderness("12h"),
  })
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
  });
const late = bursts.sideOutput<Quake>("late").toReadable();
const swarms = bursts
  .filter((burst) => burst.quakes >= 5)
  .map((swarm, { key, window }) => {
    const [start, end] = [window!.start, window!.end].map((ms) => new Date(ms).toISOString());
    return { cell: key, ...swarm, window: { start, end } };
  })
  .toReadable();

let tooLate = 0;
await Promise.all([
  swarms.pipeTo(new WritableStream({ write: (swarm) => console.log(JSON.stringify(swarm)) })),
  late.pipeTo(new WritableStream({ write: () => void tooLate++ })),
  env.execute(),
]);
console.error(`${tooLate} reports came too late`);
