/**
 * What a source hears of checkpoints, and what it may ask for.
 *
 * @module
 */
import assert from "node:assert/strict";
import { boundedOutOfOrderness, createEnv, tumbling } from "../../mod.ts";
import { collectingSink, settle, VirtualClock } from "../../testing.ts";
import { exitCodeOf } from "../../lib/cli/exit_code.ts";
import { type Manifest, ManifestStore } from "../../lib/checkpoint/manifest.ts";
import { MailerError } from "../../lib/errors.ts";
import type { Sink, Source, SourceContext, SourceRead } from "../../lib/connector.ts";
import { count } from "../../lib/aggregate/mod.ts";
import { MemoryPages } from "../../lib/state/pages/memory.ts";
import { committingSink, CrashPoint, lastingBackend, Outside } from "./kit.ts";

/** A source that reads what it is told to, when it is told. */
class Scripted {
  readonly heard: ReadonlyMap<string, unknown>[] = [];
  context!: SourceContext;
  onCheckpoint: () => void = () => {};
  readonly #reads: (SourceRead | "hang")[] = [];
  #wake: () => void = () => {};

  readonly source: Source = {
    type: "scripted",
    describe: () => ({}),
    open: (context) => {
      this.context = context;
      context.signal.addEventListener("abort", () => this.#wake());
      return {
        splits: ["a", "b"],
        read: async () => {
          while (this.#reads.length === 0 && !context.signal.aborted) {
            await new Promise<void>((resolve) => this.#wake = resolve);
          }
          const read = this.#reads.shift();
          if (read === undefined) throw context.signal.reason;
          return read as SourceRead;
        },
        checkpointed: (positions) => {
          this.heard.push(positions);
          this.onCheckpoint();
        },
        lag: () => [{ split: "a", end: 5, stable: 3 }, { split: "b", end: 1, stable: 1 }],
        close: () => {},
      };
    },
  };

  async read(...reads: SourceRead[]): Promise<void> {
    this.#reads.push(...reads);
    this.#wake();
    await settle();
  }
}

const record = (split: string, at: number): SourceRead => ({
  kind: "records",
  split,
  values: [{ at }],
  firstOffset: at,
  position: at + 1,
});

function world(pages = new MemoryPages()) {
  const clock = new VirtualClock(), scripted = new Scripted(), outside = new Outside();
  const warnings: string[] = [];
  const env = createEnv({ name: "p" }).withClock(clock).withCheckpointing("10s")
    .withStateBackend(lastingBackend(pages, new CrashPoint()))
    .withLogger({ log: (level, message) => level === "warn" && warnings.push(message) });
  env.fromSource(scripted.source, { id: "source" }).toSink(committingSink(outside, new CrashPoint()));
  return { clock, scripted, outside, env, pages, warnings };
}

Deno.test("a source is told of a checkpoint when its sinks have committed, with the positions it stands for", async () => {
  const { clock, scripted, outside, env } = world();
  const handle = env.start();
  await handle.running;
  const visible: number[] = [];
  scripted.onCheckpoint = () => visible.push(outside.visible.length);
  await scripted.read(record("a", 0), record("b", 7), record("a", 1));
  assert.equal(scripted.heard.length, 0);
  await clock.advance("10s");
  await settle();
  assert.deepEqual(scripted.heard.map((positions) => [...positions]), [[["a", 2], ["b", 8]]]);
  await scripted.read(record("a", 2));
  await handle.stop();
  assert.deepEqual(scripted.heard.map((positions) => positions.get("a")), [2, 3], "the last one as well");
  assert.deepEqual(visible, [3, 4]);
});

Deno.test("a source may ask for a checkpoint while its read waits; after the run it is refused", async () => {
  const { scripted, outside, env } = world();
  const handle = env.start();
  await handle.running;
  await scripted.read(record("a", 0));
  await scripted.context.checkpoints!.request();
  assert.equal(outside.visible.length, 1);
  assert.deepEqual(scripted.heard.length, 1);
  await handle.stop();
  await assert.rejects(scripted.context.checkpoints!.request(), { code: "checkpoint_aborted" });
});

Deno.test("a source that cannot take note of a checkpoint ends nothing, and it is said", async () => {
  const { scripted, env, warnings } = world();
  const handle = env.start();
  await handle.running;
  scripted.onCheckpoint = () => {
    throw new Error("the broker is away");
  };
  await scripted.context.checkpoints!.request();
  await handle.stop();
  assert.deepEqual(warnings, Array(2).fill("a source could not take note of a checkpoint"));
});

Deno.test("a split that others read is in no checkpoint any more, holds no window, and may come back", async () => {
  const { scripted, env, pages } = world();
  const handle = env.start();
  await handle.running;
  const positions = async () => {
    await scripted.context.checkpoints!.request();
    const { manifest } = (await new ManifestStore(pages).list()).find(({ savepoint }) =>
      savepoint === undefined
    )!;
    const { splits } = (manifest as Manifest).sources["source"]!;
    return Object.entries(splits).map(([split, { position }]) => [split, position]);
  };
  await scripted.read(record("a", 0), record("b", 7));
  assert.deepEqual(await positions(), [["a", 1], ["b", 8]]);
  await scripted.read({ kind: "removed", splits: ["b"] });
  assert.deepEqual(await positions(), [["a", 1]]);
  await scripted.read({ kind: "added", splits: ["b"] }, record("b", 40));
  assert.deepEqual(await positions(), [["a", 1], ["b", 41]]);
  const metrics = await env.metrics();
  assert.match(metrics, /^mailer_split_offset\{source="source",split="b",pipeline="p"\} 40$/m);
  assert.match(metrics, /^mailer_source_splits\{source="source",state="open",pipeline="p"\} 2$/m);
  assert.match(metrics, /^mailer_source_lag_records\{source="source",to="end",pipeline="p"\} 6$/m);
  assert.match(metrics, /^mailer_source_lag_records\{source="source",to="stable",pipeline="p"\} 4$/m);
  await handle.stop();

  const again = world(pages);
  const second = again.env.start();
  await second.running;
  assert.deepEqual([...again.scripted.context.restored!], [["a", 1], ["b", 41]]);
  await again.scripted.read({ kind: "removed", splits: ["b"] });
  await again.scripted.context.checkpoints!.request();
  assert.deepEqual([...again.scripted.heard[0]!], [["a", 1]]);
  await second.stop();
});

Deno.test("a removed split does not hold the watermark back; whether there is state by key is known", async () => {
  const scripted = new Scripted(), rows = collectingSink<{ n: number }>();
  const env = createEnv().withClock(new VirtualClock());
  env.fromSource<{ at: number }>(scripted.source as Source<{ at: number }>, {
    timestamp: ({ at }) => at,
    watermarks: boundedOutOfOrderness(0),
  }).keyBy(() => "k").window(tumbling(10)).aggregate({ n: count() }).toSink(rows.sink);
  const handle = env.start();
  await handle.running;
  assert.deepEqual([scripted.context.keepsState, scripted.context.checkpoints], [true, undefined]);
  await scripted.read(record("a", 1), record("a", 30));
  assert.equal(rows.values.length, 0, "b has said nothing yet");
  await scripted.read({ kind: "removed", splits: ["b"] });
  assert.deepEqual(rows.values, [{ n: 1 }]);
  await handle.abort();
  await assert.rejects(handle.done);
});

Deno.test("an error that says it lasts, or that another instance took over, ends a run that would be started again", async () => {
  for (
    const [error, starts] of [
      [new MailerError("no_such_topic", "there is no topic", { lasting: true }), 1],
      [new MailerError("topic_fenced", "taken over"), 1],
      [new MailerError("unreachable", "not there"), 3],
    ] as const
  ) {
    let opened = 0;
    const source: Source = {
      type: "failing",
      describe: () => ({}),
      open: () => {
        opened++;
        throw error;
      },
    };
    const clock = new VirtualClock();
    const env = createEnv().withClock(clock).withRestart({ attempts: 2, delay: 10 });
    env.fromSource(source).toSink(collectingSink<unknown>().sink);
    const handle = env.start();
    await settle();
    for (let i = 0; i < 5; i++) await clock.advance(100);
    await assert.rejects(handle.done, { code: error.code });
    assert.equal(opened, starts, error.code);
    assert.equal(exitCodeOf(error), error.code === "topic_fenced" ? 4 : 1);
  }
});

Deno.test("a stop while a source is being opened is a regular stop", async () => {
  const source: Source = {
    type: "slow",
    describe: () => ({}),
    open: ({ signal }) =>
      new Promise((_, reject) =>
        signal.addEventListener("abort", () => reject(signal.reason), { once: true })
      ),
  };
  const env = createEnv().withClock(new VirtualClock());
  env.fromSource(source).toSink(collectingSink<unknown>().sink);
  const handle = env.start();
  await settle();
  await handle.stop();
  assert.equal(handle.status().phase, "stopped");
});

Deno.test("a sink's retry policy does not repeat what lasts", async () => {
  for (
    const [code, lasting, tries] of [["fenced", false, 1], ["refused", true, 1], ["busy", false, 3]] as const
  ) {
    let writes = 0;
    const sink: Sink = {
      type: "failing",
      describe: () => ({}),
      open: () => ({
        write: () => {
          writes++;
          throw new MailerError(code, "no", { lasting });
        },
        flush: () => {},
        close: () => {},
      }),
    };
    const clock = new VirtualClock(), env = createEnv().withClock(clock);
    env.fromReadable(ReadableStream.from([1])).toSink(sink, { retry: { attempts: 3, delay: 10 } });
    const handle = env.start();
    for (let i = 0; i < 5; i++) {
      await settle();
      await clock.advance(10);
    }
    await assert.rejects(handle.done, { code });
    assert.equal(writes, tries, code);
  }
});
