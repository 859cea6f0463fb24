/**
 * Program: `deno run -A --v8-flags=--max-old-space-size=200 bench/many_keys.ts KEYS [kv|sqlite]`.
 *
 * A running reduce over KEYS keys, each met twice, with a checkpoint every 10 s: state that is larger than the heap may be. Prints the
 * rate, the greatest RSS seen, what checkpoints took, and whether every key came out right.
 *
 * @module
 */
import { createEnv, kv, type Sink, type Source, sqlite } from "../mod.ts";
import { yieldToEventLoop } from "../lib/scheduling.ts";
import { print } from "./print.ts";

const [size = "1000000", store = "kv"] = Deno.args;
const keys = Number(size.replaceAll("_", ""));
const BATCH = 1024;
/** Visits the keys in an order that jumps about: a prime step. */
const STEP = 7_368_787;

const source: Source<number> = {
  type: "keys",
  describe: () => ({}),
  open({ restored }) {
    let at = (restored?.get("all") as number | undefined) ?? 0;
    return {
      splits: ["all"],
      async read() {
        await yieldToEventLoop();
        if (at >= 2 * keys) return { kind: "end" };
        const count = Math.min(BATCH, 2 * keys - at), firstOffset = at;
        const values = Array.from({ length: count }, (_, i) => (firstOffset + i) % keys * STEP % keys);
        at += count;
        return { kind: "records", split: "all", values, firstOffset, position: at };
      },
      close: () => {},
    };
  },
};

let rows = 0, seconds = 0, wrong = 0;
const sink: Sink<string> = {
  type: "tally",
  describe: () => ({}),
  open: () => ({
    write(batch) {
      for (let i = 0; i < batch.length; i++) {
        const [count, key] = batch.values[i]!.split(" ");
        rows++;
        if (count === "2") seconds++;
        if (Number(key) !== batch.key(i)) wrong++;
      }
    },
    flush: () => {},
    close: () => {},
  }),
};

const folder = await Deno.makeTempDir({ prefix: "mailer-keys-" });
const env = createEnv({ name: "keys" }).withCheckpointing("10s")
  .withStateBackend(store === "sqlite" ? sqlite(folder) : kv(folder));
env.fromSource(source, { id: "in" })
  .keyBy((key) => key, { partitions: 4 })
  .reduce((acc: string | undefined, key) => acc === undefined ? `1 ${key}` : `2 ${key}`, { id: "seen" })
  .toSink(sink, { id: "out" });
const started = performance.now(), handle = env.start();
let rss = 0, blocked = 0, durable = 0;
const timer = setInterval(() => {
  rss = Math.max(rss, Deno.memoryUsage().rss);
  blocked = Math.max(blocked, handle.status().checkpoints?.lastBlockedMs ?? 0);
  durable = Math.max(durable, handle.status().checkpoints?.lastDurationMs ?? 0);
}, 100);
try {
  await handle.done;
} finally {
  clearInterval(timer);
  await Deno.remove(folder, { recursive: true });
}
const took = (performance.now() - started) / 1000;
const { completed = 0 } = handle.status().checkpoints ?? {};
print(
  `${keys} keys in ${store}: ${(rows / took / 1e6).toFixed(3)} M records/s, RSS at most ${
    Math.round(rss / 2 ** 20)
  } MiB, ${completed} checkpoints, blocked at most ${blocked.toFixed(1)} ms, durable in at most ${
    durable.toFixed(0)
  } ms; ${rows === 2 * keys && seconds === keys && wrong === 0 ? "right" : "WRONG"}`,
);
