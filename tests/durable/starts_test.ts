/**
 * Restarts with parts that can be opened once only, and many short runs one after the other.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createEnv, type Env, memory, type RunHandle, type Source } from "../../mod.ts";
import { blackholeSink } from "../../connectors/memory/mod.ts";
import { abortable } from "../../lib/abortable.ts";
import { factsOf, openCheckpoints } from "../../lib/checkpoint/inspect.ts";
import { systemClock } from "../../lib/clock.ts";
import { MailerError } from "../../lib/errors.ts";
import { yieldToEventLoop } from "../../lib/scheduling.ts";

function numbered(length: number, until = length, batch = 1): Source<number> {
  return {
    type: "numbered",
    describe: () => ({}),
    open({ restored, signal }) {
      let at = (restored?.get("all") as number | undefined) ?? 0;
      return {
        splits: ["all"],
        async read() {
          await yieldToEventLoop();
          if (at === length) return { kind: "end" };
          if (at >= until) await abortable(new Promise<never>(() => {}), signal);
          const firstOffset = at;
          at = Math.min(at + batch, until);
          const values = Array.from({ length: at - firstOffset }, (_, i) => firstOffset + i);
          return { kind: "records", split: "all", values, firstOffset, position: at };
        },
        close: () => {},
      };
    },
  };
}

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** How a run ends; "not within 1 s" where it does not. */
async function endOf(handle: RunHandle): Promise<string> {
  const late = Promise.withResolvers<string>(),
    timer = setTimeout(() => late.resolve("not within 1 s"), 1000);
  const end = await Promise.race([
    handle.done.then(() => "regularly", (error) => `${error.code}: ${error.message} (cause: ${error.cause})`),
    late.promise,
  ]);
  clearTimeout(timer);
  handle.abort();
  await handle.done.catch(() => {});
  return end;
}

for (const isDurable of [false, true]) {
  const newEnv = (folder: string): Env => {
    const env = createEnv({ name: "p" }).withRestart({ delay: "1ms", maxDelay: "2ms" });
    return isDurable ? env.withCheckpointing("1ms").withStateBackend(memory(folder)) : env;
  };
  const title = isDurable ? "with checkpoints" : "without checkpoints";

  Deno.test(`a readable source with restart: records are not lost without a word (${title})`, () =>
    inFolder(async (folder) => {
      const env = newEnv(folder), seen: number[] = [];
      let isFirst = true;
      env.fromReadable(ReadableStream.from([1, 2, 3, 4, 5]), { id: "in" }).map((n) => {
        if (n === 3 && isFirst) {
          isFirst = false;
          throw new Error("no such luck");
        }
        seen.push(n);
        return n;
      }, { id: "m" }).toSink(blackholeSink(), { id: "out" });
      const end = await endOf(env.start());
      if (end === "regularly") assert.deepEqual(seen, [1, 2, 3, 4, 5]);
      assert.match(end, /no such luck/);
    }));

  Deno.test(`a readable source that fails, with restart: an end with that error (${title})`, () =>
    inFolder(async (folder) => {
      const env = newEnv(folder);
      const broken = new ReadableStream<number>({
        pull: (controller) => controller.error(new Error("broken")),
      });
      env.fromReadable(broken, { id: "in" }).toSink(blackholeSink(), { id: "out" });
      assert.match(await endOf(env.start()), /broken/);
    }));

  Deno.test(`toReadable with restart: a failure is the end, with its error (${title})`, () =>
    inFolder(async (folder) => {
      const env = newEnv(folder);
      let isFirst = true;
      const rows = env.fromSource(numbered(50), { id: "in" }).map((n) => {
        if (n === 30 && isFirst) {
          isFirst = false;
          throw new Error("no such luck");
        }
        return n;
      }, { id: "m" }).toReadable({ id: "out" });
      const reading = (async () => {
        for await (const _ of rows);
      })().catch(() => {});
      assert.match(await endOf(env.start()), /no such luck/);
      await reading;
    }));

  Deno.test(`toReadable with restart: a reader that cancels ends the run (${title})`, () =>
    inFolder(async (folder) => {
      const env = newEnv(folder);
      const rows = env.fromSource(numbered(5000), { id: "in" }).toReadable({ id: "out" });
      const reading = (async () => {
        for await (const _ of rows) break;
      })();
      assert.match(await endOf(env.start()), /reader_cancelled/);
      await reading;
    }));
}

Deno.test("an environment that is run twice with a readable source: the second run is an error", async () => {
  const env = createEnv();
  env.fromReadable(ReadableStream.from([1, 2, 3]), { id: "in" }).toSink(blackholeSink(), { id: "out" });
  await env.execute();
  await assert.rejects(env.execute(), (error: MailerError) => error.code === "readable_in_use");
});

Deno.test("state does not grow over short runs: 60 starts with one checkpoint each", () =>
  inFolder(async (folder) => {
    const backend = memory(folder), sizes: number[] = [], runs: number[] = [];
    for (let start = 1; start <= 60; start++) {
      const env = createEnv({ name: "p" }).withCheckpointing("1h").withStateBackend(backend);
      env.fromSource(numbered(Infinity, start * 500, 50), { id: "in", timestamp: (n) => n * 10 })
        .keyBy((n) => n, { partitions: 2 })
        .processKeyed<never>({ onRecord: (n, context) => context.value("v", { ttl: "1s" }).set(n) }, {
          id: "keeps",
        })
        .toSink(blackholeSink(), { id: "out" });
      const handle = env.start();
      await handle.running;
      while (handle.status().recordsIn < 500) await new Promise((resolve) => setTimeout(resolve, 1));
      await handle.stop();
      await using checkpoints = await openCheckpoints(backend, "p", systemClock);
      const manifest = await checkpoints!.manifest(undefined);
      sizes.push(factsOf({ document: "", number: 1, savepoint: undefined, manifest }).stateBytes!);
      runs.push(manifest.operators["keeps"]!.section!.runs.length);
    }
    assert.ok(Math.max(...runs) <= 30, `runs: ${runs}`);
    assert.ok(sizes.at(-1)! <= Math.max(...sizes.slice(0, 30)), `bytes: ${sizes}`);
  }));
