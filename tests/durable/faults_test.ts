/**
 * Attacks on checkpoints: what a failed start may destroy, what an error says, what is kept in memory, what is too large.
 *
 * @module
 */
import assert from "node:assert/strict";
import {
  boundedOutOfOrderness,
  createEnv,
  type Env,
  globalWindows,
  type KeyedContext,
  tumbling,
} from "../../mod.ts";
import { scriptedSource, VirtualClock } from "../../testing.ts";
import { Coordinator, noCheckpoints } from "../../lib/checkpoint/coordinator.ts";
import { ManifestStore } from "../../lib/checkpoint/manifest.ts";
import { memory, type StateBackend } from "../../lib/checkpoint/backend.ts";
import type { Sink } from "../../lib/connector.ts";
import { systemClock } from "../../lib/clock.ts";
import type { Logger } from "../../lib/log.ts";
import { MailerError } from "../../lib/errors.ts";
import { SnapshotCollector } from "../../lib/runtime/snapshots.ts";
import { MemoryPages } from "../../lib/state/pages/memory.ts";
import { fileSink } from "../../connectors/file/mod.ts";
import { committingSink, CrashPoint, lastingBackend, Outside, type Sample, slowSource } from "./kit.ts";
import { expected, inOrder, newWorld, RECORDS, sums, type World } from "./sums.ts";

const SILENT: Logger = { log: () => {} };
const soon = (ms = 1) => new Promise((resolve) => setTimeout(resolve, ms));

/** A run with a savepoint "early" that fails in the middle, with newer checkpoints behind the savepoint. */
async function withSavepoint(world: World, records = RECORDS): Promise<void> {
  const handle = sums(world, { failAt: () => true, records }).start();
  await handle.running;
  while (handle.status().recordsIn < 40) await soon();
  await handle.savepoint("early");
  await assert.rejects(handle.done, /no such luck/);
  const found = await new ManifestStore(world.pages).list();
  assert.ok(found.filter(({ savepoint }) => savepoint === undefined).length >= 2);
}

async function numbers(world: World): Promise<(number | undefined)[]> {
  return (await new ManifestStore(world.pages).list()).filter((one) => one.savepoint === undefined)
    .map(({ number }) => number);
}

Deno.test("R9: a start from a savepoint whose pages are damaged leaves the checkpoints as they were", async () => {
  const world = newWorld();
  const records = Array.from({ length: 2000 }, (_, i) => ({ key: `k${i % 5}`, at: i * 100, value: i }));
  await withSavepoint(world, records);
  const found = await new ManifestStore(world.pages).list();
  const runsOf = (index: number): string[] => {
    const { manifest } = found[index]!;
    assert.ok(!(manifest instanceof MailerError));
    return manifest.operators["sum"]!.section!.runs.map(({ run }) => run);
  };
  assert.equal(found[0]!.savepoint, "early");
  const others = new Set(found.slice(1).flatMap((_, i) => runsOf(i + 1)));
  const own = runsOf(0).filter((run) => !others.has(run));
  assert.ok(own.length > 0, "no run of the savepoint's own");
  const before = await numbers(world);
  for (const run of own) {
    const [page] = await world.pages.read([{ run, page: 0 }]);
    await world.pages.write(run, 0, [page!.map((byte, i) => i === 40 ? byte ^ 1 : byte)]);
  }
  await assert.rejects(sums(world, { records }).execute({ fromSavepoint: "early" }));
  assert.deepEqual(await numbers(world), before);
  await sums(world, { records }).execute();
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(records)));
});

Deno.test("a start from a savepoint whose sink cannot be opened leaves the checkpoints as they were", async () => {
  const world = newWorld();
  await withSavepoint(world);
  const before = await numbers(world);
  const broken = (sink: Sink): Sink => ({
    ...sink,
    open: () => {
      throw new Error("no connection");
    },
  });
  await assert.rejects(
    sums(world, { sink: broken }).execute({ fromSavepoint: "early" }),
    /no connection/,
  );
  assert.deepEqual(await numbers(world), before);
});

Deno.test("a last commit that fails is the error of the run, with its code", async () => {
  const world = newWorld();
  const failing = (sink: Sink): Sink => ({
    ...sink,
    open: async (context) => ({
      ...await sink.open(context),
      commit: () => {
        throw new MailerError("no_quota", "the store is full");
      },
    }),
  });
  await assert.rejects(sums(world, { sink: failing, interval: "1h" }).execute(), (error: MailerError) => {
    assert.equal(error.code, "no_quota");
    return true;
  });
});

Deno.test("a commit of a savepoint that fails has the sink's error and ends the run (K3)", async () => {
  const world = newWorld();
  let fails = true;
  const failing = (sink: Sink): Sink => ({
    ...sink,
    open: async (context) => {
      const writer = await sink.open(context);
      return {
        ...writer,
        commit: (committable) => {
          if (fails) throw new MailerError("no_quota", "the store is full");
          return writer.commit!(committable);
        },
      };
    },
  });
  const handle = sums(world, { sink: failing, interval: "1h" }).start();
  await handle.running;
  while (handle.status().recordsIn < 20) await soon();
  await assert.rejects(handle.savepoint("s"), (error: MailerError) => {
    assert.equal(error.code, "no_quota");
    return true;
  });
  fails = false;
  await assert.rejects(handle.done, { code: "no_quota" });
});

Deno.test("stop with a savepoint during recovery: it is taken, or it is an error", async () => {
  const world = newWorld();
  const handle = sums(world).start();
  const stopped = handle.stop({ savepoint: "s" }).then(() => "resolved", () => "rejected");
  if (await stopped === "resolved") {
    const found = await new ManifestStore(world.pages).list();
    assert.ok(found.some(({ savepoint }) => savepoint === "s"), "stop resolved, and there is no savepoint");
  }
});

Deno.test("two stops with savepoints: each that resolves has its savepoint", async () => {
  const world = newWorld();
  const handle = sums(world).start();
  await handle.running;
  const results = await Promise.allSettled(["a", "b"].map((savepoint) => handle.stop({ savepoint })));
  const found = await new ManifestStore(world.pages).list();
  for (const [i, name] of ["a", "b"].entries()) {
    if (results[i]!.status === "rejected") continue;
    assert.ok(
      found.some(({ savepoint }) => savepoint === name),
      `stop resolved, and there is no savepoint "${name}"`,
    );
  }
});

Deno.test("a savepoint of a name that is taken does not replace the one there is without a word (M2)", async () => {
  const world = newWorld();
  const handle = sums(world).start();
  await handle.running;
  const first = await handle.savepoint("s");
  const second = await handle.savepoint("s").catch((error: MailerError) => error);
  await handle.done;
  const found = (await new ManifestStore(world.pages).list()).filter(({ savepoint }) => savepoint === "s");
  assert.equal(found.length, 1);
  if (!(second instanceof Error)) assert.equal(found[0]!.number, first.checkpoint);
});

Deno.test("checkpoints leave nothing behind in memory", async () => {
  const pages = new MemoryPages(), tasks = ["t"], snapshots = new SnapshotCollector(tasks, 0);
  const run = {
    snapshots,
    sources: [{
      name: "t",
      barrier: (number: number) =>
        snapshots.passed("t", number, { heavy: new Float64Array(2 ** 17).fill(1) } as object),
      checkpointed: () => Promise.resolve(),
    }],
    sinks: [],
  };
  const coordinator = new Coordinator({
    pipeline: "p",
    settings: { interval: 1e9, minPause: 0, retain: 2, tolerated: 0, timeout: 60_000 },
    run,
    manifests: new ManifestStore(pages),
    stores: new Map(),
    retained: [],
    settle: () => Promise.resolve(),
    clock: systemClock,
    logger: SILENT,
    stats: noCheckpoints(),
    fail: (error) => assert.fail(String(error)),
  });
  const used = () => {
    const { heapUsed, external } = Deno.memoryUsage();
    return (heapUsed + external) / 2 ** 20;
  };
  let least = Infinity;
  const before = used();
  for (let i = 0; i < 400; i++) {
    await coordinator.takeNow(`s${i}`);
    if (i > 350) {
      await soon(0);
      least = Math.min(least, used());
    }
  }
  coordinator.stop();
  assert.ok(least - before < 100, `${Math.round(least - before)} MB more after 400 checkpoints of 1 MB each`);
});

Deno.test("state of thousands of open windows can be checkpointed", async () => {
  const world = newWorld();
  const samples = Array.from({ length: 4000 }, (_, i) => ({ key: `k${i % 50}`, at: i * 1000, value: 1 }));
  const env = createEnv({ name: "windows" }).withCheckpointing("1h").withLogger(SILENT)
    .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
  env.fromSource(slowSource({ a: samples }, 500), {
    timestamp: ({ at }) => at,
    watermarks: boundedOutOfOrderness("2h"),
  }).keyBy(({ key }) => key, { partitions: 8 }).window(tumbling("1s"))
    .reduce((sum: number | undefined, { value }) => (sum ?? 0) + value)
    .toSink(committingSink(world.outside, new CrashPoint()));
  const handle = env.start();
  await handle.running;
  while (handle.status().recordsIn < 3900) await soon();
  await handle.stop({ savepoint: "s" });
});

Deno.test("a source of 10,000 splits can be checkpointed", async () => {
  const world = newWorld();
  const splits = Object.fromEntries(
    Array.from(
      { length: 10_000 },
      (_, i) => [`/var/log/app/2026-01-01/part-${i}.jsonl`, [{ key: "k", at: i, value: 1 }]],
    ),
  );
  const env = createEnv({ name: "splits" }).withCheckpointing("1h").withLogger(SILENT)
    .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
  env.fromSource(slowSource(splits), { timestamp: ({ at }) => at })
    .toSink(committingSink(world.outside, new CrashPoint()));
  const handle = env.start();
  await handle.running;
  while (handle.status().recordsIn < 1000) await soon();
  await handle.stop({ savepoint: "s" });
});

Deno.test("pages that cannot be written end the run; a restart goes on from the checkpoint before (K3)", async () => {
  const world = newWorld();
  let left = 1;
  const pages = new (class extends MemoryPages {
    override write(run: string, first: number, list: readonly Uint8Array[]): Promise<void> {
      if (left-- > 0) return Promise.reject(new MailerError("file_error", "no space left on device"));
      return super.write(run, first, list);
    }
  })();
  const backend = lastingBackend(pages, new CrashPoint());
  const handle = sums(world, { backend }).withRestart({ delay: "1ms" }).start();
  await handle.done;
  assert.equal(handle.status().restarts, 1);
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
});

Deno.test("two operators whose pages cannot be written: an error of the run, nothing that nobody handles", async () => {
  const unhandled: unknown[] = [];
  const onUnhandled = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    unhandled.push(event.reason);
  };
  addEventListener("unhandledrejection", onUnhandled);
  try {
    const script = scriptedSource<Sample>();
    const pages = new (class extends MemoryPages {
      override write(): Promise<void> {
        return Promise.reject(new MailerError("file_error", "no space left on device"));
      }
    })();
    const env = createEnv({ name: "two" }).withCheckpointing("1h", { tolerableFailures: 10 }).withLogger(
      SILENT,
    )
      .withStateBackend(lastingBackend(pages, new CrashPoint()));
    const stream = env.fromSource(script.source, { id: "in", timestamp: ({ at }) => at });
    // One operator has something to write at the first savepoint, the other at the second only.
    for (const id of ["x", "y"]) {
      stream.filter(({ key }) => key === id || key === "both").keyBy(({ key }) => key, { partitions: 1 })
        .reduce((sum: number | undefined, { value }) => (sum ?? 0) + value, { id })
        .toSink(committingSink(new Outside(), new CrashPoint()), { id: `out-${id}` });
    }
    for (const id of ["x", "y"]) {
      const handle = env.start();
      await handle.running;
      script.add({ do: "records", values: [{ key: id, at: 1, value: 1 }] });
      await soon(20);
      await handle.savepoint("one").catch(() => {});
      script.add({ do: "records", values: [{ key: id === "x" ? "y" : "x", at: 1, value: 1 }] });
      await soon(20);
      await handle.savepoint("two").catch(() => {});
      await soon(20);
      handle.abort();
      await handle.done.catch(() => {});
    }
    await soon(20);
    assert.deepEqual(unhandled.map(String), []);
  } finally {
    removeEventListener("unhandledrejection", onUnhandled);
  }
});

Deno.test("a checkpoint that was under way when a run failed does not come up behind the back of the next run", async () => {
  const world = newWorld();
  let commits = 0, under = 0, most = 0;
  const inner = lastingBackend(world.pages, new CrashPoint());
  const backend: StateBackend = {
    ...inner,
    open: async (name, clock) => {
      const store = await inner.open(name, clock);
      return {
        write: (run, first, list) => store.write(run, first, list),
        read: (refs) => store.read(refs),
        list: (kind, prefix) => store.list(kind, prefix),
        deleteRuns: (runs) => store.deleteRuns(runs),
        commit: async (changes) => {
          commits++;
          most = Math.max(most, ++under);
          await soon(20); // slower than a restart
          under--;
          return await store.commit(changes);
        },
        [Symbol.asyncDispose]: () => Promise.resolve(),
      };
    },
  };
  let failures = 3;
  const env = sums(world, { backend, failAt: () => failures-- > 0 })
    .withRestart({ attempts: 9, delay: "1ms", maxDelay: "2ms" });
  await assert.rejects(env.start().done, /no such luck/); // three times the same record
  assert.equal(failures, 0);
  await sums(world, { backend }).execute();
  assert.ok(commits > 4);
  assert.equal(most, 1, "two runs were at the store at once");
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
});

Deno.test("what came to its end before a checkpoint gives nothing a second time after a restore", async () => {
  const world = newWorld(), first = new Outside(), second = new Outside();
  const short: Sample[] = RECORDS.slice(0, 21), long = RECORDS;
  let fails = true;
  const build = (): Env => {
    const env = createEnv({ name: "ended" }).withCheckpointing("1ms").withLogger(SILENT)
      .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
    const count = (n: number | undefined) => (n ?? 0) + 1;
    const a = env.fromSource(slowSource({ a: short }, 4, 80), { id: "short", timestamp: ({ at }) => at });
    const keyed = a.keyBy(({ key }) => key, { partitions: 2 });
    keyed.window(globalWindows()).reduce(count, { id: "global" })
      .toSink(committingSink(first, new CrashPoint()), { id: "first" });
    const b = env.fromSource(slowSource({ b: long }), { id: "long", timestamp: ({ at }) => at })
      .map((sample) => {
        if (sample.value === 150 && fails) throw new Error("no such luck");
        return sample;
      });
    a.union(b).keyBy(({ key }) => key, { partitions: 3 }).window(tumbling("1s")).reduce(count, {
      id: "windows",
    })
      .toSink(committingSink(second, new CrashPoint()), { id: "second" });
    return env;
  };
  await assert.rejects(build().execute(), /no such luck/);
  fails = false;
  await build().execute();
  assert.deepEqual(inOrder(first.visible), [4, 4, 4, 4, 5]);
  const counts = new Map<string, number>();
  for (const { key, at } of [...short, ...long]) {
    const name = `${Math.floor(at / 1000)} ${key}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  assert.equal((second.visible as number[]).reduce((a, b) => a + b, 0), short.length + long.length);
  assert.deepEqual(inOrder(second.visible), inOrder([...counts.values()]));
});

Deno.test("timers of processing time fire once over a restart, also where no record comes any more", async () => {
  const world = newWorld(), clock = new VirtualClock();
  const build = (source: ReturnType<typeof scriptedSource<Sample>>): Env => {
    const env = createEnv({ name: "timers" }).withClock(clock).withCheckpointing("1h").withLogger(SILENT)
      .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
    env.fromSource(source.source, { id: "in" }).keyBy(({ key }) => key, { partitions: 2 }).processKeyed({
      onRecord(_, context: KeyedContext<string>) {
        context.setProcessingTimer(clock.now() + 60_000, "t");
      },
      onTimer(_, context) {
        context.emit(context.key);
      },
    }, { id: "p" }).toSink(committingSink(world.outside, new CrashPoint()), { id: "out" });
    return env;
  };
  const one = scriptedSource<Sample>([{ do: "records", values: RECORDS.slice(0, 5) }]);
  const first = build(one).start();
  await first.running;
  await clock.advance("10s");
  await first.stop();
  assert.deepEqual(world.outside.visible, []);
  const second = build(scriptedSource<Sample>()).start();
  await second.running;
  await clock.advance("2m");
  await second.stop();
  assert.deepEqual([...world.outside.visible].sort(), ["k0", "k1", "k2", "k3", "k4"]);
  const third = build(scriptedSource<Sample>()).start();
  await third.running;
  await clock.advance("2m");
  await third.stop();
  assert.equal(world.outside.visible.length, 5);
});

Deno.test("a state value that cannot be stored is an error that names operator and key", async () => {
  const world = newWorld();
  const env = createEnv({ name: "bad" }).withCheckpointing("1h").withLogger(SILENT)
    .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
  env.fromSource(slowSource({ a: RECORDS }, 4, 80), { id: "in", timestamp: ({ at }) => at })
    .keyBy(({ key }) => key, { partitions: 2 })
    .reduce((_: (() => number) | undefined, { value }) => () => value, { id: "sums" })
    .map(() => 1)
    .toSink(committingSink(world.outside, new CrashPoint()), { id: "out" });
  await assert.rejects(env.execute(), (error: MailerError) => {
    assert.match(error.message, /"sums"/);
    assert.match(error.message, /k[0-4]/);
    return true;
  });
});

Deno.test("what is changed in place behind a barrier is not in its checkpoint", async () => {
  for (let round = 0; round < 12; round++) {
    const world = newWorld();
    let fails = true;
    const build = (): Env => {
      const env = createEnv({ name: "in place" }).withBufferSize(32).withCheckpointing("1ms").withLogger(
        SILENT,
      )
        .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
      const keyed = env.fromSource(slowSource({ a: RECORDS }, 3), { id: "in", timestamp: ({ at }) => at })
        .map((sample) => {
          if (sample.value === 100 + round * 7 && fails) throw new Error("no such luck");
          return sample;
        }).keyBy(({ key }) => key, { partitions: 2 });
      const add = (acc: { all: number[] } | undefined, { value }: Sample) => {
        acc ??= { all: [] };
        acc.all.push(value);
        return acc;
      };
      keyed.reduce(add, { id: "running" }).map(({ all }) => all.join())
        .toSink(committingSink(world.outside, new CrashPoint()), { id: "out" });
      return env;
    };
    await assert.rejects(build().execute(), /no such luck/);
    fails = false;
    await build().execute();
    const sums = new Map<string, number[]>();
    const rows = RECORDS.map(({ key, value }) => {
      const all = [...sums.get(key) ?? [], value];
      sums.set(key, all);
      return all.join();
    });
    assert.deepEqual([...world.outside.visible].sort(), rows.sort());
  }
});

Deno.test("a checkpoint that takes too long is given up; the next one has all it had", async () => {
  const world = newWorld(), clock = new VirtualClock();
  let gate: PromiseWithResolvers<void> | undefined;
  const steps: string[] = [];
  const script = scriptedSource<Sample>();
  const build = (source = script.source): Env => {
    const env = createEnv({ name: "late" }).withClock(clock).withLogger(SILENT)
      .withCheckpointing("10s", { timeout: "5s", tolerableFailures: 100 })
      .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
    const inner = committingSink(world.outside, new CrashPoint());
    env.fromSource(source, { id: "in", timestamp: ({ at }) => at })
      .keyBy(({ key }) => key, { partitions: 2 })
      .reduce((sum: number | undefined, { value }) => (sum ?? 0) + value, { id: "sum" })
      .toSink({
        ...inner,
        open: async (context) => {
          const writer = await inner.open(context);
          return {
            ...writer,
            write: async (batch) => {
              await gate?.promise;
              await writer.write(batch);
            },
          };
        },
      }, { id: "out" });
    return env;
  };
  const handle = build().start({ onCheckpointStep: (step, number) => void steps.push(`${step} ${number}`) });
  await handle.running;
  script.add({ do: "records", values: RECORDS.slice(0, 20) });
  await clock.advance("1s");
  gate = Promise.withResolvers();
  script.add({ do: "records", values: RECORDS.slice(20, 60) });
  await clock.advance("39s"); // three barriers come behind the blocked write
  assert.ok(!steps.some((step) => step.startsWith("prepared")), steps.join());
  gate.resolve();
  gate = undefined;
  await clock.advance("1s");
  script.add({ do: "records", values: RECORDS.slice(60, 70) });
  await clock.advance("20s");
  assert.ok(steps.some((step) => step.startsWith("completed")), steps.join());
  script.add({ do: "records", values: RECORDS.slice(70, 80) });
  await clock.advance("1s");
  handle.abort();
  await Promise.all([handle.done.catch(() => {}), clock.advance("5s")]);
  const rest = scriptedSource<Sample>([{ do: "records", values: RECORDS.slice(70) }, { do: "end" }]);
  const second = build(rest.source).start();
  await second.running;
  await clock.advance("1m");
  await second.done;
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
});

Deno.test("two committing sinks of which one fails in a commit: a restart gives each record once to both", async () => {
  for (const at of [1, 2, 5, 9]) {
    for (const failing of [0, 1]) {
      const pages = new MemoryPages(), outsides = [new Outside(), new Outside()];
      let commits = 0;
      const env = createEnv({ name: "both" }).withCheckpointing("1ms").withLogger(SILENT)
        .withRestart({ attempts: 3, delay: "1ms", maxDelay: "2ms" })
        .withStateBackend(lastingBackend(pages, new CrashPoint()));
      const stream = env.fromSource(slowSource({ a: RECORDS }, 4, 80), {
        id: "in",
        timestamp: ({ at }) => at,
      });
      outsides.forEach((outside, index) => {
        const inner = committingSink(outside, new CrashPoint());
        stream.map(({ value }) => value).toSink({
          ...inner,
          open: async (context) => {
            const writer = await inner.open(context);
            return {
              ...writer,
              commit: async (committable) => {
                if (index === failing && ++commits === at) throw new Error("lost connection");
                await writer.commit!(committable);
              },
            };
          },
        }, { id: `out${index}` });
      });
      await env.execute();
      for (const { visible } of outsides) {
        assert.deepEqual(visible, RECORDS.map(({ value }) => value), `commit ${at} of ${failing}`);
      }
    }
  }
});

Deno.test("a sink whose prepare fails ends the run; the next run gives each record once", async () => {
  const world = newWorld();
  let prepares = 0;
  const failing = (sink: Sink): Sink => ({
    ...sink,
    open: async (context) => {
      const writer = await sink.open(context);
      return {
        ...writer,
        prepare: async (number) => {
          const committable = await writer.prepare!(number);
          if (++prepares === 2) throw new MailerError("no_quota", "the store is full");
          return committable;
        },
      };
    },
  });
  await assert.rejects(sums(world, { sink: failing }).execute(), { code: "no_quota" });
  await sums(world).execute();
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
});

Deno.test("dead letters of a run with checkpoints are there once, in spite of a failure", async () => {
  const pages = new MemoryPages(), out = new Outside(), dead = new Outside();
  let fails = true;
  const env = createEnv({ name: "dead" }).withCheckpointing("1ms").withLogger(SILENT)
    .withRestart({ attempts: 3, delay: "1ms", maxDelay: "2ms" })
    .withStateBackend(lastingBackend(pages, new CrashPoint()))
    .withDeadLetters(committingSink(dead, new CrashPoint()));
  env.fromSource(slowSource({ a: RECORDS }, 4, 80), { id: "in", timestamp: ({ at }) => at })
    .map(({ value }) => {
      if (value % 10 === 3) throw new Error("bad");
      return value;
    }, { id: "check", onError: "dlq" })
    .map((value) => {
      if (value === 150 && fails) {
        fails = false;
        throw new Error("no such luck");
      }
      return value;
    })
    .toSink(committingSink(out, new CrashPoint()), { id: "out" });
  await env.execute();
  assert.deepEqual(out.visible, RECORDS.map(({ value }) => value).filter((value) => value % 10 !== 3));
  assert.equal(dead.visible.length, 20);
});

Deno.test("savepoints at once, during a checkpoint, and while stopping: each settles, and says the truth", async () => {
  const world = newWorld();
  const handle = sums(world).start();
  await handle.running;
  const names = ["a", "b", "c", "d"];
  const taken = names.slice(0, 2).map((name) => handle.savepoint(name));
  while (handle.status().recordsIn < 30) await soon();
  taken.push(handle.savepoint("c"));
  const stopped = handle.stop({ savepoint: "e" });
  taken.push(handle.savepoint("d"));
  const results = await Promise.allSettled(taken);
  await stopped;
  const there = (await new ManifestStore(world.pages).list()).map(({ savepoint }) => savepoint);
  results.forEach(({ status }, i) =>
    assert.equal(status === "fulfilled", there.includes(names[i]), names[i])
  );
  assert.ok(there.includes("e"));
  for (const name of ["e", "a", "c"]) {
    await sums(world).execute({ fromSavepoint: name });
    assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)), name);
  }
});

Deno.test("a savepoint taken while the last checkpoint is under way settles, and says the truth", async () => {
  const world = newWorld();
  const handle = sums(world, { interval: "1h" }).start({
    onCheckpointStep: async (step) => {
      if (step === "persisted" && late === undefined) {
        late = handle.savepoint("late").then(() => true, () => false);
        await soon();
      }
    },
  });
  let late: Promise<boolean> | undefined;
  await handle.done;
  const isTaken = await late!;
  const there = (await new ManifestStore(world.pages).list()).map(({ savepoint }) => savepoint);
  assert.equal(there.includes("late"), isTaken);
});

Deno.test("a final section is still readable when the manifest that named it first could not be written", async () => {
  const pages = new MemoryPages(), outside = new Outside();
  const short: Sample[] = Array.from({ length: 400 }, (_, i) => ({ key: `k${i % 50}`, at: i, value: 1 }));
  let fails = false, written = 0;
  const inner = lastingBackend(pages, new CrashPoint());
  const script = scriptedSource<Sample>();
  const build = (backend: StateBackend, source = script.source): Env => {
    const env = createEnv({ name: "final" }).withCheckpointing("1h", { retain: 1 }).withLogger(SILENT)
      .withStateBackend(backend);
    env.fromSource(source, { id: "in", timestamp: ({ at }) => at })
      .map(({ value }) => value).toSink(committingSink(new Outside(), new CrashPoint()), { id: "rest" });
    env.fromSource(slowSource({ a: short }, 4, 80), { id: "short", timestamp: ({ at }) => at })
      .keyBy(({ key }) => key, { partitions: 1 })
      .reduce((sum: number | undefined, { value }) => (sum ?? 0) + value, { id: "sum" })
      .toSink(committingSink(outside, new CrashPoint()), { id: "out" });
    return env;
  };
  const handle = build({
    ...inner,
    open: async (name, clock) => {
      const store = await inner.open(name, clock);
      return {
        write: (run, first, list) => store.write(run, first, list),
        read: (refs) => store.read(refs),
        list: (kind, prefix) => store.list(kind, prefix),
        deleteRuns: (runs) => store.deleteRuns(runs),
        commit: (changes) => {
          if (fails) return Promise.reject(new MailerError("file_error", "no space left on device"));
          written++;
          return store.commit(changes);
        },
        [Symbol.asyncDispose]: () => Promise.resolve(),
      };
    },
  }).start();
  await handle.running;
  for (let i = 0; i < 6; i++) {
    await handle.savepoint(`s${i}`); // many runs, so that there is something to compact
  }
  while (handle.status().recordsIn < 400) await soon();
  await soon(50);
  fails = true;
  await assert.rejects(handle.savepoint("no"));
  fails = false;
  await soon(50);
  await handle.savepoint("yes");
  handle.abort();
  await handle.done.catch(() => {});
  assert.ok(written > 0);
  const there = new Set((await pages.list("runs", "")).map(({ name }) => name));
  for (const { manifest, document } of await new ManifestStore(pages).list()) {
    assert.ok(!(manifest instanceof MailerError));
    for (const { run } of manifest.operators["sum"]!.section!.runs) {
      assert.ok(there.has(run), `${document}: ${run}`);
    }
  }
});

Deno.test("a checkpoint whose pages are gone is passed over before its sinks commit for it (R2, R3)", async () => {
  const world = newWorld();
  await withSavepoint(world);
  const manifests = new ManifestStore(world.pages);
  const [newest] = (await manifests.list()).filter(({ savepoint }) => savepoint === undefined);
  const { manifest } = newest!;
  assert.ok(!(manifest instanceof MailerError));
  // As after a crash between the manifest and the commits, on a disk that has lost a run.
  await manifests.write({
    ...manifest,
    number: manifest.number + 1,
    status: "prepared",
    operators: {
      ...manifest.operators,
      sum: {
        ...manifest.operators["sum"]!,
        section: {
          ...manifest.operators["sum"]!.section!,
          runs: manifest.operators["sum"]!.section!.runs.map((run) => ({ ...run, run: "sum/999" })),
        },
      },
    },
  });
  const recovered: unknown[] = [];
  const watched = (sink: Sink): Sink => ({
    ...sink,
    recover: (committable) => {
      recovered.push(committable);
      return "committed";
    },
  });
  await sums(world, { sink: watched }).execute();
  assert.deepEqual(recovered, [], "a sink was made to commit for a checkpoint that cannot be used");
});

Deno.test("a source that waits long keeps nothing of the checkpoints that come by", async () => {
  const world = newWorld();
  const pending = Promise.withResolvers<never>();
  let handlers = 0;
  const waiting = pending.promise;
  const then = waiting.then.bind(waiting);
  waiting.then = ((...handed: Parameters<typeof then>) => {
    handlers++;
    return then(...handed);
  }) as typeof waiting.then;
  const env = createEnv({ name: "waits" }).withCheckpointing("1h").withLogger(SILENT)
    .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
  env.fromSource({
    type: "waits",
    describe: () => ({}),
    open: ({ signal }) => {
      signal.addEventListener("abort", () => pending.reject(signal.reason));
      return { splits: ["0"], read: () => waiting, close: () => {} };
    },
  }, { id: "in" }).toSink(committingSink(world.outside, new CrashPoint()), { id: "out" });
  const handle = env.start();
  await handle.running;
  await soon();
  for (let i = 0; i < 50; i++) await handle.savepoint(`s${i}`);
  const count = handlers;
  await handle.stop();
  assert.ok(count < 10, `${count} handlers wait for one read after 50 checkpoints`);
});

Deno.test("idle splits: windows over restarts are those of one run", async () => {
  for (let stopAfter = 1; stopAfter <= 6; stopAfter++) {
    const world = newWorld(), clock = new VirtualClock();
    const steps: [string, number[]][] = [
      ["a", [100, 900]],
      ["a", [1100, 2500]],
      ["b", [1500]],
      ["a", [3500, 4500]],
      ["b", [4600]],
      ["a", [6000]],
      ["b", [9000]],
    ];
    const build = (
      from: number,
      to: number,
    ): { env: Env; script: ReturnType<typeof scriptedSource<Sample>> } => {
      const script = scriptedSource<Sample>([], { splits: ["a", "b"] });
      const env = createEnv({ name: "idle" }).withClock(clock).withCheckpointing("1h").withLogger(SILENT)
        .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
      env.fromSource(script.source, {
        id: "in",
        timestamp: ({ at }) => at,
        watermarks: boundedOutOfOrderness(0, { idleTimeout: "5s" }),
      }).keyBy(() => "k", { partitions: 2 }).window(tumbling("1s"))
        .reduce((n: number | undefined) => (n ?? 0) + 1, { id: "w" })
        .map((count, { window }) => `${(window as { start: number }).start}:${count}`)
        .toSink(committingSink(world.outside, new CrashPoint()), { id: "out" });
      for (const [split, times] of steps.slice(from, to)) {
        script.add({ do: "records", split, values: times.map((at) => ({ key: "k", at, value: 1 })) });
      }
      return { env, script };
    };
    const first = build(0, stopAfter).env.start();
    await first.running;
    await clock.advance("1s");
    await first.stop();
    const second = build(stopAfter, steps.length);
    second.script.add({ do: "end" });
    await second.env.execute();
    assert.deepEqual([...world.outside.visible].sort(), [
      "0:2",
      "1000:2",
      "2000:1",
      "3000:1",
      "4000:2",
      "6000:1",
      "9000:1",
    ], `${stopAfter}`);
  }
});

/** Rows of two splits into a file. Which of the two is read first may differ from run to run. */
function toFile(pages: MemoryPages, path: string, order: readonly string[], interval = "1h"): Env {
  const rows = (name: string) =>
    RECORDS.map((sample) => ({ ...sample, key: name === "b" ? "b".repeat(37) : "a" }));
  const env = createEnv({ name: "to-file" }).withCheckpointing(interval as "1h").withLogger(SILENT)
    .withStateBackend(lastingBackend(pages, new CrashPoint()));
  env.fromSource(slowSource(Object.fromEntries(order.map((name) => [name, rows(name)]))), { id: "in" })
    .map(({ key, value }) => ({ key, value })).toSink(fileSink({ path }), { id: "out" });
  return env;
}

function rowsOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "").sort();
}
const ALL_ROWS = rowsOf(
  RECORDS.flatMap(({ value }) => ["a", "b".repeat(37)].map((key) => JSON.stringify({ key, value }))).join(
    "\n",
  ),
);

for (const crash of ["completed", "prepared"] as const) {
  Deno.test(`a savepoint with a crash behind it (${crash}) is no place from which output is torn`, async () => {
    for (const at of [70, 90, 110, 130, 150]) { // what is torn depends on where the two runs part
      const folder = await Deno.makeTempDir();
      await using _ = { [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }) };
      const pages = new MemoryPages(), path = `${folder}/out.jsonl`;
      const first = toFile(pages, path, ["a", "b"]).start({
        onCheckpointStep: (step) => {
          if (step === crash) first.abort(new Error("crashed"));
          if (step === crash) throw new Error("crashed");
        },
      });
      await first.running;
      while (first.status().recordsIn < at) await soon();
      await first.savepoint("s").catch(() => {});
      await first.done.catch(() => {});
      await toFile(pages, path, ["b", "a"]).execute();
      assert.deepEqual(rowsOf(await Deno.readTextFile(path)), ALL_ROWS, "the first recovery");
      const refused = await toFile(pages, path, ["a", "b"]).execute({ fromSavepoint: "s" })
        .then(() => undefined, (error: MailerError) => error);
      if (refused === undefined) assert.deepEqual(rowsOf(await Deno.readTextFile(path)), ALL_ROWS);
    }
  });
}

Deno.test("two pipelines with one output file: an error, or all rows of both", async () => {
  const folder = await Deno.makeTempDir();
  try {
    for (let round = 0; round < 30; round++) {
      const path = `${folder}/${round}.jsonl`;
      const results = await Promise.allSettled(
        [new MemoryPages(), new MemoryPages()].map((pages) => toFile(pages, path, ["a", "b"]).execute()),
      );
      const done = results.filter(({ status }) => status === "fulfilled").length;
      const rows = rowsOf(await Deno.readTextFile(path));
      assert.equal(
        rows.length,
        done * ALL_ROWS.length,
        `${done} runs say they are done, ${rows.length} rows are there`,
      );
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("an output file that was deleted or cut between two runs is an error that says so", async () => {
  const folder = await Deno.makeTempDir();
  try {
    for (const damage of [(path: string) => Deno.remove(path), (path: string) => Deno.truncate(path, 10)]) {
      const pages = new MemoryPages(), path = `${folder}/out.jsonl`;
      const first = toFile(pages, path, ["a", "b"]).start();
      await first.running;
      while (first.status().recordsIn < 90) await soon();
      await first.stop();
      await damage(path);
      await assert.rejects(toFile(pages, path, ["a", "b"]).execute(), { code: "output_changed" });
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("C7: restore from the oldest checkpoint that is kept, with all newer ones damaged", async () => {
  const world = newWorld();
  const records = Array.from({ length: 2000 }, (_, i) => ({ key: `k${i % 5}`, at: i * 100, value: i }));
  await assert.rejects(sums(world, { records, failAt: () => true }).execute(), /no such luck/);
  const documents = await world.pages.list("documents", "checkpoint/");
  assert.equal(documents.length, 3);
  for (const { name, bytes } of documents.slice(1)) {
    await world.pages.commit([{ name, bytes: bytes.map((byte, i) => i === 40 ? byte ^ 1 : byte) }]);
  }
  await sums(world, { records }).execute();
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(records)));
  const numbered = await numbers(world);
  assert.ok(
    numbered[0]! > Number(documents.at(-1)!.name.slice(11)),
    "a new checkpoint is older than a damaged one",
  );
});

Deno.test("a value of 10 MB in state is restored", async () => {
  const world = newWorld();
  const build = (source: ReturnType<typeof scriptedSource<number>>): Env => {
    const env = createEnv({ name: "large" }).withCheckpointing("1h").withLogger(SILENT)
      .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
    env.fromSource(source.source, { id: "in" }).keyBy(() => "k", { partitions: 2 }).processKeyed({
      onRecord(value: number, context: KeyedContext<string>) {
        const text = context.value<string>("text");
        if (value > 0) text.set("x".repeat(value));
        else context.emit(text.get()?.length);
      },
    }, { id: "p" }).toSink(committingSink(world.outside, new CrashPoint()), { id: "out" });
    return env;
  };
  const first = build(scriptedSource<number>([{ do: "records", values: [10 * 2 ** 20] }])).start();
  await first.running;
  while (first.status().recordsIn < 1) await soon();
  await first.stop();
  await build(scriptedSource<number>([{ do: "records", values: [0] }, { do: "end" }])).execute();
  assert.deepEqual(world.outside.visible, [10 * 2 ** 20]);
});

Deno.test("state that is removed and put in again over checkpoints is what it was last", async () => {
  const world = newWorld();
  for (let round = 0; round < 12; round++) {
    const env = createEnv({ name: "again" }).withCheckpointing("1h").withLogger(SILENT)
      .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
    const splitOfRound = `s${round}`;
    const source = scriptedSource<string>([{
      do: "records",
      values: round % 3 === 2 ? ["drop", "read"] : ["add", "read"],
      split: splitOfRound,
    }], { splits: [splitOfRound] });
    env.fromSource(source.source, { id: "in" }).keyBy(() => "k", { partitions: round % 4 + 1 }).processKeyed({
      onRecord(what: string, context: KeyedContext<string>) {
        const list = context.list<number>("list"), map = context.map<string, number>("map");
        if (what === "add") {
          list.add(round);
          map.set(`m${round}`, round);
        } else if (what === "drop") {
          list.clear();
          map.clear();
        } else context.emit(`${list.get().join()}|${map.entries().map(([key]) => key).join()}`);
      },
    }, { id: "p" }).toSink(committingSink(world.outside, new CrashPoint()), { id: "out" });
    const handle = env.start();
    await handle.running;
    while (handle.status().recordsIn < 2) await soon();
    await handle.stop();
  }
  const rows: string[] = [];
  let held: number[] = [];
  for (let round = 0; round < 12; round++) {
    held = round % 3 === 2 ? [] : [...held, round];
    rows.push(`${held.join()}|${held.map((one) => `m${one}`).join()}`);
  }
  assert.deepEqual(world.outside.visible, rows);
});

Deno.test("a throttled pipeline takes its checkpoints, and does not end because of them", async () => {
  const world = newWorld(), clock = new VirtualClock();
  const env = createEnv({ name: "throttled" }).withClock(clock).withCheckpointing("1m").withLogger(SILENT)
    .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
  const source = scriptedSource<number>(
    Array.from({ length: 20 }, () => ({ do: "records", values: Array.from({ length: 500 }, (_, i) => i) })),
  );
  env.fromSource(source.source, { id: "in" }).throttle(1, { id: "slow" })
    .toSink(committingSink(world.outside, new CrashPoint()), { id: "out" });
  const handle = env.start();
  await handle.running;
  for (let minute = 0; minute < 90; minute++) {
    await clock.advance("1m");
    if (handle.status().phase === "failed") break;
  }
  const { phase } = handle.status();
  handle.abort();
  const error = await Promise.race([handle.done, clock.advance("1m")]).then(
    () => undefined,
    (error) => error,
  );
  await Promise.all([handle.done.catch(() => {}), clock.advance("5s")]);
  assert.equal(phase, "running", String(error));
  assert.ok(world.outside.visible.length > 0, "no record became visible in 90 minutes");
});

Deno.test("two environments of one name on one folder at once: the second is refused", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const build = (): Env => {
      const env = createEnv({ name: "same" }).withCheckpointing("1h").withLogger(SILENT).withStateBackend(
        memory(folder),
      );
      env.fromSource(scriptedSource<number>().source, { id: "in" })
        .toSink(committingSink(new Outside(), new CrashPoint()), { id: "out" });
      return env;
    };
    const first = build().start();
    await first.running;
    await assert.rejects(build().execute(), { code: "state_locked" });
    await first.stop();
    const again = build().start();
    await again.running;
    await again.stop();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a stop called twice, a stop while a checkpoint is under way, and an abort during a commit all settle", async () => {
  for (const how of ["stop stop", "stop", "abort"]) {
    const world = newWorld();
    let done = false;
    const handle = sums(world).start({
      onCheckpointStep: (step) => {
        if (done || step !== (how === "abort" ? "prepared" : "barrier")) return;
        done = true;
        for (const call of how.split(" ")) {
          if (call === "abort") handle.abort();
          else void handle.stop();
        }
      },
    });
    await handle.done.catch(() => {});
    await sums(world).execute();
    assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)), how);
  }
});
