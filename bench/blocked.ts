/**
 * What a sink that stops taking records does to a pipeline at full speed.
 *
 * `deno run -A bench/blocked.ts [SECONDS]`: runs freely for two seconds, blocks the sink for SECONDS (60 unless given), lets go,
 * and stops. Prints one line of JSON: records read while blocked (the edges fill, then nothing), resident memory over the time,
 * and whether all that was read came out. Exit code 1 where anything was lost or memory grew by more than 16 MiB.
 *
 * @module
 */
import { createEnv, type Sink, systemClock } from "../mod.ts";
import { generatorSource } from "../connectors/memory/mod.ts";
import { delay } from "../lib/clock.ts";

interface Numbered {
  readonly id: number;
  readonly text: string;
}

const seconds = Number(Deno.args[0] ?? 60);
const seen = { records: 0, sum: 0 };
let gate: PromiseWithResolvers<void> | undefined;
const sink: Sink<Numbered> = {
  type: "gated",
  describe: () => ({}),
  open: () => ({
    async write(batch) {
      await gate?.promise;
      seen.records += batch.length;
      for (const { id } of batch.values) seen.sum += id;
    },
    flush() {},
    close() {},
  }),
};

const env = createEnv({ name: "blocked" });
env
  .fromSource(generatorSource({ generate: (id): Numbered => ({ id, text: `record number ${id}` }) }))
  .filter(({ id }) => id >= 0)
  .keyBy(({ id }) => id % 100, { partitions: 4 })
  .map((value) => value)
  .toSink(sink);

const rssMiB = (): number => Math.round(Deno.memoryUsage().rss / 2 ** 20);
const handle = env.start();
await delay(systemClock, 2000);
gate = Promise.withResolvers();
await delay(systemClock, 500); // the edges fill
const readBefore = handle.status().recordsIn, rssBefore = rssMiB();
const samples: number[] = [];
for (let second = 0; second < seconds; second++) {
  await delay(systemClock, 1000);
  samples.push(rssMiB());
}
const readWhileBlocked = handle.status().recordsIn - readBefore;
gate.resolve();
gate = undefined;
await delay(systemClock, 1000);
await handle.stop();

const read = handle.status().recordsIn, most = Math.max(...samples);
const complete = seen.records === read && seen.sum === read * (read - 1) / 2;
const rss = { before: rssBefore, least: Math.min(...samples), most };
// deno-lint-ignore no-console -- the result is printed
console.log(
  JSON.stringify({
    seconds,
    readBefore,
    readWhileBlocked,
    rssMiB: rss,
    read,
    written: seen.records,
    complete,
  }),
);
if (!complete || readWhileBlocked > 0 || most - rssBefore > 16) Deno.exit(1);
