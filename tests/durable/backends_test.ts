/**
 * Recovery on the backends there are, in folders: what a run leaves behind is what the next one finds there.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  createEnv,
  type Env,
  type KeyedContext,
  kv,
  memory,
  type RunHandle,
  type Sink,
  type Source,
  sqlite,
  type StateBackend,
  type StateOptions,
  type Stream,
  tumbling,
} from "../../mod.ts";
import { fileSink } from "../../connectors/file/mod.ts";
import { blackholeSink } from "../../connectors/memory/mod.ts";
import { abortable } from "../../lib/abortable.ts";
import { openCheckpoints } from "../../lib/checkpoint/inspect.ts";
import { sectionBytes } from "../../lib/checkpoint/manifest.ts";
import { spacesOf, stateOf } from "../../lib/checkpoint/inspect_state.ts";
import { systemClock } from "../../lib/clock.ts";
import { MailerError } from "../../lib/errors.ts";
import { MemoryPages } from "../../lib/state/pages/memory.ts";
import { yieldToEventLoop } from "../../lib/scheduling.ts";
import { committingSink, CrashPoint, lastingBackend, Outside, type Sample } from "./kit.ts";

const BACKENDS = { memory, kv, sqlite } as const;
type BackendName = keyof typeof BACKENDS;

/** A test on each backend, in a folder of its own. */
function onEach(
  name: string,
  test: (backend: StateBackend, folder: string) => Promise<void>,
  backends: readonly BackendName[] = ["memory", "kv", "sqlite"],
): void {
  for (const one of backends) {
    Deno.test(`${name} (${one})`, () => inFolder((folder) => test(BACKENDS[one](folder), folder)));
  }
}

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

interface Reading {
  /** Records that are read; where that is not all of them, the source then waits to be stopped. */
  readonly until?: number;
  /** Records a read. Default 1. */
  readonly batch?: number;
  /** Whether the record of this index may be read already. */
  readonly mayRead?: (index: number) => boolean;
}

/** Reads records by their index. */
function numbered<T>(
  recordOf: (index: number) => T,
  length: number,
  { until = length, batch = 1, mayRead = () => true }: Reading = {},
): Source<T> {
  return {
    type: "numbered",
    describe: () => ({}),
    open({ restored, signal }) {
      let at = (restored?.get("all") as number | undefined) ?? 0, isOver = false;
      return {
        splits: ["all"],
        async read() {
          do await yieldToEventLoop(); while (!mayRead(at) && !signal.aborted);
          if (isOver) return { kind: "end" };
          if (at === length) {
            isOver = true;
            return { kind: "ended", split: "all" };
          }
          if (at >= until) await abortable(new Promise<never>(() => {}), signal);
          const firstOffset = at;
          at = Math.min(at + batch, until);
          const values = Array.from({ length: at - firstOffset }, (_, i) => recordOf(firstOffset + i));
          return { kind: "records", split: "all", values, firstOffset, position: at };
        },
        close: () => {},
      };
    },
  };
}

const soon = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));

/** Runs until so many records have been read, and stops: a checkpoint covers exactly these. */
async function runUntil(env: Env, recordsIn: number): Promise<void> {
  const handle = env.start();
  await Promise.race([handle.running, handle.done]);
  while (handle.status().recordsIn < recordsIn && handle.status().phase === "running") await soon();
  await handle.stop();
  assert.equal(handle.status().phase, "stopped");
}

const LENGTH = 300, MIDDLE = 200;
const sampleOf = (i: number): Sample => ({ key: `k${i % 7}`, at: i * 100, value: i });
const RECORDS: readonly Sample[] = Array.from({ length: LENGTH }, (_, i) => sampleOf(i));
const inOrder = (rows: readonly unknown[]): number[] => (rows as number[]).toSorted((a, b) => a - b);

/** What a stream of samples becomes. */
type Shape = (samples: Stream<Sample>, partitions: number) => Stream<number>;

const add = (sum: number | undefined, { value }: Sample): number => (sum ?? 0) + value;
const SHAPES: Readonly<Record<string, { readonly shape: Shape; readonly expected: readonly number[] }>> = {
  "running sums": {
    shape: (samples, partitions) =>
      samples.keyBy(({ key }) => key, { partitions }).reduce(add, { id: "sum" }),
    expected: sumsBy(({ key }) => key).rows,
  },
  "tumbling windows": {
    shape: (samples, partitions) =>
      samples.keyBy(({ key }) => key, { partitions }).window(tumbling("3s")).reduce(add, { id: "sum" }),
    expected: [...sumsBy(({ key, at }) => `${key} ${Math.floor(at / 3000)}`).sums.values()],
  },
};

/** Sums by definition: as they grow, and at the end. */
function sumsBy(name: (sample: Sample) => string): { rows: number[]; sums: Map<string, number> } {
  const sums = new Map<string, number>();
  const rows = RECORDS.map((sample) => {
    const sum = (sums.get(name(sample)) ?? 0) + sample.value;
    sums.set(name(sample), sum);
    return sum;
  });
  return { rows, sums };
}

interface Setting {
  readonly partitions?: number;
  readonly interval?: `${number}${"ms" | "h"}`;
  readonly until?: number;
  readonly fails?: () => boolean;
  readonly mayRead?: (index: number) => boolean;
}

/** Samples to a sink that commits. */
function pipeline(backend: StateBackend, shape: Shape, sink: Sink, setting: Setting = {}): Env {
  const { partitions = 3, interval = "1ms", until = LENGTH, fails = () => false, mayRead = () => true } =
    setting;
  const env = createEnv({ name: "on backends" }).withCheckpointing(interval).withStateBackend(backend);
  const samples = env.fromSource(numbered(sampleOf, LENGTH, { until, mayRead }), {
    id: "in",
    timestamp: ({ at }) => at,
  })
    .map((sample) => {
      if (sample.value === MIDDLE && fails()) throw new Error("no such luck");
      return sample;
    }, { id: "check" });
  shape(samples, partitions).toSink(sink, { id: "out" });
  return env;
}

for (const [name, { shape, expected }] of Object.entries(SHAPES)) {
  onEach(
    `${name}: a failure, a start, and a savepoint with another number of partitions`,
    async (backend) => {
      const outside = new Outside();
      const build = (setting: Setting = {}): Env =>
        pipeline(backend, shape, committingSink(outside, new CrashPoint()), setting);
      await assert.rejects(
        runWithCheckpoint((mayRead) => build({ fails: () => true, mayRead })),
        /no such luck/,
      );

      const handle = build().start();
      await handle.running;
      await handle.savepoint("on-the-way");
      await handle.done;
      assert.ok(handle.status().recordsIn < LENGTH, "it began anew");
      assert.deepEqual(inOrder(outside.visible), inOrder(expected));
      for (const partitions of [5, 1]) {
        await build({ partitions }).execute({ fromSavepoint: "on-the-way" });
        assert.deepEqual(inOrder(outside.visible), inOrder(expected), `${partitions} partitions`);
      }
    },
  );
}

/** Runs a pipeline that fails in the middle, of which there is a checkpoint by then. */
async function runWithCheckpoint(build: (mayRead: (index: number) => boolean) => Env): Promise<void> {
  const handle: RunHandle = build((index) =>
    index < MIDDLE / 2 || (handle.status().checkpoints?.completed ?? 0) > 1
  ).start();
  await handle.done;
}

const isLocked = (folder: string) => (error: unknown): boolean => {
  assert.ok(error instanceof MailerError);
  assert.equal(error.code, "state_locked");
  assert.ok(error.message.includes(folder), error.message);
  return true;
};

onEach(
  "two environments on one folder: the second is refused, until the first has ended",
  async (backend, folder) => {
    const build = (until: number): Env =>
      pipeline(backend, SHAPES["running sums"]!.shape, committingSink(outside, new CrashPoint()), {
        until,
        interval: "1h",
      });
    const outside = new Outside();
    const first = build(20).start();
    await first.running;
    while (first.status().recordsIn < 20) await soon();
    await assert.rejects(build(LENGTH).withRestart({ delay: "1ms" }).execute(), isLocked(folder));
    assert.equal(first.status().phase, "running");
    await first.stop();
    await build(LENGTH).execute();
    assert.deepEqual(inOrder(outside.visible), inOrder(SHAPES["running sums"]!.expected));
  },
);

/** Tries the folders of its first argument, says how that went, and then keeps those of its second. */
const OTHER_PROCESS = `
const { createEnv, kv, memory, sqlite } = await import("${new URL("../../mod.ts", import.meta.url)}");
const { blackholeSink, generatorSource } = await import("${new URL(
  "../../connectors/memory/mod.ts",
  import.meta.url,
)}");
const start = (backend) => {
  const env = createEnv({ name: "on backends" }).withCheckpointing("1h").withStateBackend(backend);
  env.fromReadable(new ReadableStream(), { id: "in" }).toSink(blackholeSink(), { id: "out" });
  return env.start();
};
const [taken, free] = Deno.args, said = [];
for (const backend of [memory, kv, sqlite]) {
  const handle = start(backend(taken + "/" + backend.name));
  said.push(await handle.running.then(() => "open", (error) => error.code + " " + error.message.includes(taken)));
}
for (const backend of [memory, kv, sqlite]) await start(backend(free + "/" + backend.name)).running;
console.log(said.join());
setInterval(() => {}, 1000);
`;

Deno.test("two processes on one folder: the second is refused, until the first is gone", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/other.ts`, OTHER_PROCESS);
    const backends = Object.entries(BACKENDS);
    const build = (backend: StateBackend): Env => {
      const env = createEnv({ name: "on backends" }).withCheckpointing("1h").withStateBackend(backend);
      env.fromSource(numbered((i) => i, 2, { until: 1 }), { id: "in" })
        .toSink(committingSink(new Outside(), new CrashPoint()), { id: "out" });
      return env;
    };
    const own = backends.map(([name, backend]) => build(backend(`${folder}/taken/${name}`)).start());
    await Promise.all(own.map((handle) => handle.running));
    const config = new URL("../../deno.json", import.meta.url).pathname;
    const args = ["run", "-A", "--no-check", "--no-lock", "--config", config, `${folder}/other.ts`];
    const other = new Deno.Command(Deno.execPath(), {
      args: [...args, `${folder}/taken`, `${folder}/free`],
      stdin: "null",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    const said = other.stdout.getReader();
    try {
      const answer = new TextDecoder().decode((await said.read()).value);
      assert.equal(answer, "state_locked true,state_locked true,state_locked true\n");
      for (const [name, backend] of backends) {
        const path = `${folder}/free/${name}`;
        await assert.rejects(build(backend(path)).execute(), isLocked(path), name);
      }
    } finally {
      other.kill("SIGKILL");
      await other.status;
      await said.cancel();
    }
    for (const [name, backend] of backends) await runUntil(build(backend(`${folder}/free/${name}`)), 1);
    for (const handle of own) await handle.stop();
  }));

/** A keyed process with a state "v", as a pipeline to `rows`. */
function withState<T extends { readonly at: number; readonly key: string }>(
  backend: StateBackend,
  source: Source<T>,
  onRecord: (value: T, context: KeyedContext<string, unknown>) => void,
  outside: Outside,
): Env {
  const env = createEnv({ name: "on backends" }).withCheckpointing("1h").withStateBackend(backend);
  env.fromSource(source, { id: "in", timestamp: ({ at }) => at })
    .keyBy(({ key }) => key, { partitions: 2 })
    .processKeyed<unknown>({ onRecord }, { id: "keeps" })
    .toSink(committingSink(outside, new CrashPoint()), { id: "out" });
  return env;
}

onEach("a value with a ttl lives on over a restart, and expires when it would have", async (backend) => {
  const records = [
    { key: "a", at: 0, does: "set" },
    { key: "b", at: 5_000, does: "get" },
    { key: "a", at: 5_000, does: "set" }, // the watermark is at 5 s: lives until 15 s
    // A restart.
    { key: "b", at: 14_000, does: "get" },
    { key: "a", at: 14_500, does: "get" },
    // A restart.
    { key: "b", at: 15_500, does: "get" },
    { key: "a", at: 16_000, does: "get" },
    { key: "a", at: 16_000, does: "set" },
    { key: "a", at: 17_000, does: "get" },
  ];
  const outside = new Outside();
  const build = (until: number): Env =>
    withState(backend, numbered((i) => records[i]!, records.length, { until }), ({ at, does }, context) => {
      const state = context.value<number>("v", { ttl: "10s" });
      if (does === "set") state.set(at);
      else context.emit([context.key, at, state.get() ?? "none"]);
    }, outside);
  await runUntil(build(3), 3);
  await runUntil(build(5), 2);
  await build(records.length).execute();
  assert.deepEqual(
    (outside.visible as [string, number, unknown][]).toSorted((one, other) => one[1] - other[1]),
    [
      ["b", 5_000, "none"],
      ["b", 14_000, "none"],
      ["a", 14_500, 5_000],
      ["b", 15_500, "none"],
      ["a", 16_000, "none"],
      ["a", 17_000, 16_000],
    ],
  );
});

onEach(
  "state with a ttl is stored no longer than it lives: 20,000 keys pass through (T2)",
  async (backend, folder) => {
    const outside = new Outside();
    const run = async (until: number, options: StateOptions, on: StateBackend): Promise<{
      bytes: number;
      keys: number;
    }> => {
      const source = numbered((i) => ({ key: `key ${i}`, at: i * 10 }), Infinity, { until, batch: 50 });
      const env = withState(on, source, ({ key }, context) => context.value("v", options).set(key), outside);
      await runUntil(env, 5_000);
      await using checkpoints = await openCheckpoints(on, "on backends", systemClock);
      const manifest = await checkpoints!.manifest(undefined);
      const { section } = stateOf(manifest, "keeps");
      const [space] = spacesOf(section).filter(({ space }) => space === "state:v");
      return { bytes: sectionBytes(section), keys: space?.keys ?? 0 };
    };
    const passing = [], staying = [];
    const other = BACKENDS[backend.type](`${folder}/others`);
    for (const end of [5_000, 10_000, 15_000, 20_000]) {
      passing.push(await run(end, { ttl: "1s" }, backend)); // 100 keys are alive
      staying.push(await run(end, {}, other));
    }
    const text = JSON.stringify({ passing, staying });
    assert.ok(staying[3]!.keys > 19_000, text);
    assert.ok(passing.every(({ keys }) => keys < 500), text);
    assert.ok(passing[3]!.bytes < staying[3]!.bytes / 10, text);
  },
);

onEach("state does not grow over many short runs with one checkpoint each", async (backend) => {
  const bytes: number[] = [], runs: number[] = [];
  for (let start = 1; start <= 40; start++) {
    const source = numbered((i) => ({ key: `key ${i}`, at: i * 10 }), Infinity, {
      until: start * 300,
      batch: 50,
    });
    const env = withState(
      backend,
      source,
      ({ key }, context) => context.value("v", { ttl: "1s" }).set(key),
      new Outside(),
    );
    await runUntil(env, 300);
    await using checkpoints = await openCheckpoints(backend, "on backends", systemClock);
    const manifest = await checkpoints!.manifest(undefined), { section } = stateOf(manifest, "keeps");
    runs.push(section.runs.length);
    bytes.push(sectionBytes(section));
  }
  assert.ok(Math.max(...runs) < 30, `runs: ${runs}`);
  assert.ok(bytes.at(-1)! < Math.max(...bytes.slice(0, 30)), `bytes: ${bytes}`);
}, ["memory"]);

const VERSIONS: readonly { readonly kind: string; readonly stored: unknown; readonly migrated: unknown }[] = [
  { kind: "value", stored: 3, migrated: { n: 3 } },
  { kind: "list", stored: [3, 3], migrated: [{ n: 3 }, { n: 3 }] },
  { kind: "map", stored: [["x", 3]], migrated: [["x", { n: 3 }]] },
];

/** What a key holds in a state of that kind, once `write` is in there, where there is one. */
function ofKind(kind: string, context: KeyedContext, options: StateOptions, write: unknown): unknown {
  if (kind === "value") {
    const state = context.value<unknown>("v", options);
    if (write !== undefined) state.set(write);
    return state.get();
  }
  if (kind === "list") {
    const state = context.list<unknown>("v", options);
    if (write !== undefined) state.set(write as unknown[]);
    return state.get();
  }
  const state = context.map<unknown, unknown>("v", options);
  for (const [key, value] of write as [unknown, unknown][] ?? []) state.set(key, value);
  return state.entries();
}

onEach(
  "state of an older version is migrated; without a way from there the run ends and says so (T4)",
  async (of, folder) => {
    const to = { version: 1, migrate: (n: unknown) => ({ n }) };
    const saying = (message: RegExp, hint: RegExp) => (error: MailerError): boolean => {
      assert.equal(error.code, "state_version");
      assert.match(error.message, message);
      assert.match(error.hint!, hint);
      return true;
    };
    for (const { kind, stored, migrated } of VERSIONS) {
      const backend = BACKENDS[of.type](`${folder}/${kind}`), outside = new Outside();
      const build = (until: number, options: StateOptions): Env =>
        withState(
          backend,
          numbered((i) => ({ key: i % 2 === 0 ? "a" : "b", at: i }), 8, { until }),
          ({ at }, context) => {
            const write = at < 2 ? stored : at === 4 || at === 5 ? migrated : undefined;
            context.emit(ofKind(kind, context, options, write));
          },
          outside,
        ).withRestart({ delay: "1ms", maxDelay: "1ms" });
      await runUntil(build(2, {}), 2);
      const old = saying(
        /operator "keeps", state "(state:)?v" was stored in version 0, .* version 1/,
        /migrate/,
      );
      await assert.rejects(build(4, { version: 1 }).execute(), old);
      await runUntil(build(4, to), 2); // only reads
      await assert.rejects(build(6, { version: 1 }).execute(), old);
      await runUntil(build(6, to), 2); // writes
      const newer = /operator "keeps", state "(state:)?v" was stored in version 1, .* version 0/;
      await assert.rejects(build(8, {}).execute(), saying(newer, /newer program/));
      await build(8, { version: 1 }).execute();
      assert.deepEqual(outside.visible, [stored, stored, ...Array.from({ length: 6 }, () => migrated)], kind);
    }
  },
);

onEach("metrics tell of checkpoints, stored state and restarts", async (backend) => {
  let failures = 2;
  const env = pipeline(
    backend,
    SHAPES["running sums"]!.shape,
    committingSink(new Outside(), new CrashPoint()),
    {
      fails: () => failures-- > 0,
    },
  ).withRestart({ attempts: 3, delay: "1ms", maxDelay: "1s" });
  const handle = env.start();
  await handle.running;
  while (handle.status().checkpoints!.completed === 0) await soon();
  const during = await env.metrics();
  await handle.done;
  const after = await env.metrics();
  for (const text of [during, after]) {
    assert.ok(metric(text, "mailer_checkpoints_total")! > 0, text);
    assert.ok(metric(text, "mailer_checkpoint_bytes")! > 0, text);
    const age = metric(text, "mailer_checkpoint_age_seconds")!;
    assert.ok(age >= 0 && age < 60, text);
    assert.ok(metric(text, "mailer_checkpoint_duration_seconds")! > 0, text);
    assert.ok(metric(text, "mailer_checkpoint_blocked_seconds")! >= 0, text);
    assert.ok(metric(text, "mailer_state_bytes", "sum")! > 0, text);
    assert.equal(metric(text, "mailer_checkpoint_failures_total"), 0);
  }
  assert.equal(metric(after, "mailer_restarts_total"), 2);
  assert.equal(metric(after, "mailer_checkpoints_total"), handle.status().checkpoints!.completed);
});

/** The value of a metric, of an operator where one is named. */
function metric(text: string, name: string, operator?: string): number | undefined {
  const line = text.split("\n").find((line) =>
    line.startsWith(`${name}{`) && (operator === undefined || line.includes(`operator="${operator}"`))
  );
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(" ")));
}

onEach(
  "what a stream hands out comes again behind the last checkpoint, and nothing is left out",
  async (backend) => {
    const build = (fails: boolean, mayRead: (index: number) => boolean = () => true) => {
      const env = createEnv({ name: "on backends" }).withCheckpointing("1ms").withStateBackend(backend);
      const rows = env.fromSource(numbered(sampleOf, LENGTH, { mayRead }), { id: "in" })
        .map((sample) => {
          if (fails && sample.value === MIDDLE) throw new Error("no such luck");
          return sample;
        }, { id: "check" }).keyBy(({ key }) => key, { partitions: 1 }).reduce(add, { id: "sum" })
        .toReadable({ id: "out" });
      return { env, rows };
    };
    const read = async (rows: ReadableStream<number>, seen: number[]): Promise<void> => {
      for await (const row of rows) seen.push(row);
    };
    const before: number[] = [], behind: number[] = [];
    let reading = Promise.resolve();
    const failed = runWithCheckpoint((mayRead) => {
      const { env, rows } = build(true, mayRead);
      reading = assert.rejects(read(rows, before), { code: "run_ended" });
      return env;
    });
    await assert.rejects(failed, /no such luck/);
    await reading;
    const other = build(false);
    await Promise.all([other.env.execute(), read(other.rows, behind)]);
    const { expected } = SHAPES["running sums"]!;
    assert.deepEqual(before, expected.slice(0, before.length));
    assert.deepEqual(behind, expected.slice(LENGTH - behind.length));
    assert.ok(behind.length < LENGTH, "it began anew");
    assert.ok(before.length + behind.length >= LENGTH, "rows were left out");
  },
);

/** How a run ends; it is ended where it does not by itself. */
async function endOf(handle: RunHandle): Promise<string> {
  const late = Promise.withResolvers<string>(), timer = setTimeout(() => late.resolve("not at all"), 5000);
  const end = await Promise.race([
    handle.done.then(() => "regularly", (error: MailerError) => `${error.code}: ${error.message}`),
    late.promise,
  ]);
  clearTimeout(timer);
  handle.abort();
  await handle.done.catch(() => {});
  return end;
}

for (const isDurable of [false, true]) {
  const testOnce = (name: string, test: (env: Env) => Promise<void>): void => {
    Deno.test(`${name} (${isDurable ? "with" : "without"} checkpoints)`, () =>
      inFolder(async (folder) => {
        const env = createEnv({ name: "on backends" }).withRestart({ delay: "1ms", maxDelay: "2ms" });
        await test(isDurable ? env.withCheckpointing("1ms").withStateBackend(memory(folder)) : env);
      }));
  };
  const failingOnce = (at: number): (n: number) => number => {
    let isFirst = true;
    return (n) => {
      if (n !== at || !isFirst) return n;
      isFirst = false;
      throw new Error("no such luck");
    };
  };

  testOnce(
    "a stream that cannot be read again, and restart: a failure is the end, and says why",
    async (env) => {
      env.fromReadable(ReadableStream.from([1, 2, 3, 4]), { id: "in" }).map(failingOnce(3), { id: "check" })
        .toSink(blackholeSink(), { id: "out" });
      assert.match(await endOf(env.start()), /no such luck/);
    },
  );

  testOnce("a stream that fails, and restart: the end, and says why", async (env) => {
    const broken = new ReadableStream<number>({
      pull: (controller) => controller.error(new Error("broken")),
    });
    env.fromReadable(broken, { id: "in" })
      .toSink(blackholeSink(), { id: "out" });
    assert.match(await endOf(env.start()), /^readable_failed: .*broken/);
  });

  testOnce("toReadable and restart: a failure is the end, for the run and for the reader", async (env) => {
    const rows = env.fromSource(numbered((i) => i, 50), { id: "in" }).map(failingOnce(30), { id: "check" })
      .toReadable({ id: "out" });
    const reading = assert.rejects(Array.fromAsync(rows), { code: "run_ended" });
    assert.match(await endOf(env.start()), /no such luck/);
    await reading;
  });

  testOnce("toReadable and restart: a reader that wants no more ends the run", async (env) => {
    const rows = env.fromSource(numbered((i) => i, 5000), { id: "in" }).toReadable({ id: "out" });
    const reader = rows.getReader();
    const reading = reader.read().then(() => reader.cancel());
    assert.match(await endOf(env.start()), /^reader_cancelled/);
    await reading;
  });
}

Deno.test("a stream that was read is an error in the next run of the same environment", async () => {
  const env = createEnv();
  env.fromReadable(ReadableStream.from([1, 2, 3]), { id: "in" })
    .toSink(blackholeSink(), { id: "out" });
  await env.execute();
  await assert.rejects(env.execute(), { code: "readable_in_use" });
});

onEach(
  "a file that is appended to keeps what was there; a start cuts to what had been committed",
  async (backend, folder) => {
    const path = `${folder}/out.ndjson`, before = '"before"\n"torn';
    await Deno.writeTextFile(path, before);
    const build = (until: number): Env =>
      pipeline(backend, SHAPES["running sums"]!.shape, fileSink({ path, append: true }), {
        until,
        partitions: 1,
      });
    await runUntil(build(100), 100);
    const lines = SHAPES["running sums"]!.expected.map((sum) => `${sum}\n`);
    const first = `${before}\n${lines.slice(0, 100).join("")}`;
    assert.equal(await Deno.readTextFile(path), first);
    await Deno.writeTextFile(path, "12\n34", { append: true }); // of a commit that did not come to be
    await runUntil(build(101), 1);
    assert.equal(await Deno.readTextFile(path), first + lines[100]);
    await build(LENGTH).execute();
    assert.equal(await Deno.readTextFile(path), `${before}\n${lines.join("")}`);
  },
);

onEach("200,000 keys of running sums: a stop and a start", async (backend) => {
  const keys = 200_000, length = 2 * keys;
  const sums = new Float64Array(keys), times = new Uint8Array(keys);
  const sink: Sink<readonly [number, number]> = {
    type: "sums",
    describe: () => ({}),
    open: () => ({
      write: ({ values }) => {
        for (const [key, sum] of values) {
          sums[key] = sum;
          times[key]!++;
        }
      },
      flush: () => {},
      close: () => {},
    }),
  };
  const build = (until: number): Env => {
    const env = createEnv({ name: "on backends" }).withCheckpointing("500ms").withStateBackend(backend);
    env.fromSource(numbered((i) => i, length, { until, batch: 10_000 }), { id: "in" })
      .keyBy((i) => i % keys, { partitions: 2 })
      .reduce(
        (last: readonly [number, number] | undefined, i) => [i % keys, (last?.[1] ?? 0) + i] as const,
        { id: "sum" },
      )
      .toSink(sink, { id: "out" });
    return env;
  };
  const middle = keys + keys / 2;
  await runUntil(build(middle), middle);
  await build(length).execute();
  assert.ok(times.every((count) => count === 2));
  assert.ok(sums.every((sum, key) => sum === 2 * key + keys));
}, ["kv", "sqlite"]);

type Change = "write" | "commit" | "deleteRuns";

/** Pages on a disk that is full when a call says so. */
class FullPages extends MemoryPages {
  /** Calls that have changed something, or were to. */
  calls = 0;

  constructor(readonly of: Change, public isFull: (call: number) => boolean) {
    super();
  }

  override async write(...of: Parameters<MemoryPages["write"]>): Promise<void> {
    this.#check("write");
    await super.write(...of);
  }
  override async commit(...of: Parameters<MemoryPages["commit"]>): Promise<boolean> {
    this.#check("commit");
    return await super.commit(...of);
  }
  override async deleteRuns(...of: Parameters<MemoryPages["deleteRuns"]>): Promise<void> {
    this.#check("deleteRuns");
    await super.deleteRuns(...of);
  }

  #check(change: Change): void {
    if (change !== this.of || !this.isFull(++this.calls)) return;
    throw new MailerError("state_file_error", `state: ${change}: no space left on device`);
  }
}

/** Tries what it is given with 1, 2, 3 … until so many calls do not come. */
async function forEachCall(test: (at: number) => Promise<{ readonly calls: number }>): Promise<void> {
  for (let at = 1; at <= 8; at++) {
    const { calls } = await test(at);
    if (calls >= at) continue;
    assert.ok(at > 3, `there are no more than ${calls} calls`);
    return;
  }
}

for (const tolerableFailures of [0, 3]) {
  Deno.test(`a disk that is full from some write on ends the run; with room again all is right (${tolerableFailures} tolerated)`, async () => {
    const { shape, expected } = SHAPES["running sums"]!;
    await forEachCall(async (at) => {
      const pages = new FullPages("write", (call) => call >= at), outside = new Outside();
      const build = (): Env =>
        pipeline(lastingBackend(pages, new CrashPoint()), shape, committingSink(outside, new CrashPoint()))
          .withCheckpointing("1ms", { tolerableFailures });
      const error = await build().execute().then(() => undefined, (error: MailerError) => error);
      const { calls } = pages;
      if (calls >= at) assert.match(String(error?.message), /write: no space left on device/);
      pages.isFull = () => false;
      await build().execute();
      assert.deepEqual(inOrder(outside.visible), inOrder(expected), `write ${at}`);
      return { calls };
    });
  });
}

for (const change of ["write", "commit"] as const) {
  Deno.test(`a disk that is full for some calls of ${change}: the run survives, or starts again, and all is right`, async () => {
    const { shape, expected } = SHAPES["tumbling windows"]!;
    for (const times of [1, 3, 6]) {
      await forEachCall(async (at) => {
        const pages = new FullPages(change, (call) => call >= at && call < at + times),
          outside = new Outside();
        await pipeline(
          lastingBackend(pages, new CrashPoint()),
          shape,
          committingSink(outside, new CrashPoint()),
        )
          .withRestart({ attempts: 7, delay: "1ms", maxDelay: "5ms" }).execute();
        assert.deepEqual(inOrder(outside.visible), inOrder(expected), `calls ${at} … ${at + times - 1}`);
        return pages;
      });
    }
  });
}

Deno.test("runs of pages that cannot be deleted: the run goes on, or starts again, and all is right", async () => {
  const { shape, expected } = SHAPES["running sums"]!;
  for (const at of [1, 2]) {
    const pages = new FullPages("deleteRuns", (call) => call === at), outside = new Outside();
    // A record a checkpoint: so there are runs enough to be made one.
    const env = pipeline(
      lastingBackend(pages, new CrashPoint()),
      shape,
      committingSink(outside, new CrashPoint()),
      { mayRead: (index) => index > 100 || handle.status().checkpoints!.completed >= index },
    ).withRestart({ attempts: 7, delay: "1ms", maxDelay: "5ms" });
    const handle: RunHandle = env.start();
    await handle.done;
    assert.ok(pages.calls >= at, "nothing was deleted");
    assert.deepEqual(inOrder(outside.visible), inOrder(expected), `call ${at}`);
  }
});
