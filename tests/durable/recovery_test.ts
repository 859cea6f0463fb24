/**
 * Where a run goes on: damage, savepoints, other partition counts, state nobody asks for, failures of checkpoints, restarts.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createEnv, type Env, tumbling } from "../../mod.ts";
import { VirtualClock } from "../../testing.ts";
import { ManifestStore } from "../../lib/checkpoint/manifest.ts";
import type { Logger } from "../../lib/log.ts";
import { MailerError } from "../../lib/errors.ts";
import { MemoryPages } from "../../lib/state/pages/memory.ts";
import { committingSink, CrashPoint, lastingBackend, Outside, type Sample, slowSource } from "./kit.ts";

function many(length: number): readonly Sample[] {
  return Array.from({ length }, (_, i) => ({ key: `k${i % 5}`, at: i * 100, value: i }));
}
const RECORDS = many(200);

interface World {
  readonly pages: MemoryPages;
  readonly outside: Outside;
  readonly log: string[];
}

function newWorld(): World {
  return { pages: new MemoryPages(), outside: new Outside(), log: [] };
}

interface Shape {
  readonly partitions?: number;
  readonly id?: string;
  readonly records?: readonly Sample[];
  readonly failAt?: () => boolean;
  readonly pages?: MemoryPages;
}

/** Running sums by key, as a pipeline with a committing sink. */
function pipeline(world: World, shape: Shape = {}): Env {
  const logger: Logger = {
    log: (level, message, fields) =>
      void world.log.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`),
  };
  const env = createEnv({ name: "recovered" }).withCheckpointing("1ms", { retain: 3 }).withLogger(logger)
    .withStateBackend(lastingBackend(shape.pages ?? world.pages, new CrashPoint()));
  env.fromSource(slowSource({ a: shape.records ?? RECORDS }, 4, 80), { id: "in", timestamp: ({ at }) => at })
    .map((sample) => {
      if (sample.value === 150 && shape.failAt?.()) throw new Error("no such luck");
      return sample;
    }, { id: "check" })
    .keyBy(({ key }) => key, { partitions: shape.partitions ?? 2 })
    .reduce((sum: number | undefined, { value }) => (sum ?? 0) + value, { id: shape.id ?? "sum" })
    .toSink(committingSink(world.outside, new CrashPoint()), { id: "out" });
  return env;
}

/** The sums by definition. */
function expected(records: readonly Sample[]): number[] {
  const sums = new Map<string, number>();
  return records.map(({ key, value }) => {
    const sum = (sums.get(key) ?? 0) + value;
    sums.set(key, sum);
    return sum;
  });
}
const inOrder = (rows: readonly unknown[]) => (rows as number[]).toSorted((a, b) => a - b);

/** Runs until a record fails, and so leaves checkpoints of the middle behind. */
async function runToTheMiddle(world: World): Promise<void> {
  await assert.rejects(pipeline(world, { failAt: () => true }).execute(), /no such luck/);
  assert.ok((await new ManifestStore(world.pages).list()).length >= 2, "too few checkpoints");
}

Deno.test("a run goes on from the newest checkpoint: every record counts once", async () => {
  const world = newWorld();
  await runToTheMiddle(world);
  await pipeline(world).execute();
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
  assert.ok(world.log.some((line) => line.startsWith("info restored")), world.log.join("\n"));
});

Deno.test("a damaged manifest is passed over for the one before, and it is said (C5, C8)", async () => {
  for (const damage of [(bytes: Uint8Array) => bytes.subarray(0, bytes.length - 3), flipped]) {
    const world = newWorld();
    await runToTheMiddle(world);
    const [newest] = await world.pages.list("documents", "checkpoint/").then((all) => all.slice(-1));
    await world.pages.commit([{ name: newest!.name, bytes: damage(newest!.bytes) }]);
    await pipeline(world).execute();
    assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
    assert.ok(
      world.log.some((line) => line.includes("passed over") && line.includes(newest!.name)),
      world.log.join("\n"),
    );
  }
});

function flipped(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  copy[copy.length - 5]! ^= 1;
  return copy;
}

Deno.test("a page that is gone or damaged: the checkpoint before counts, never nothing (C4)", async () => {
  const world = newWorld();
  await runToTheMiddle(world);
  const manifests = await new ManifestStore(world.pages).list();
  const runsOf = (at: number) => {
    const { manifest } = manifests[at]!;
    assert.ok(!(manifest instanceof MailerError));
    return manifest.operators["sum"]!.section!.runs.map(({ run }) => run);
  };
  const own = runsOf(0).filter((run) => !runsOf(manifests.length - 1).includes(run));
  assert.ok(own.length > 0);
  await world.pages.deleteRuns(own);
  await pipeline(world).execute();
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
  assert.ok(
    world.log.some((line) => line.includes("passed over") || line.includes("starting again")),
    world.log.join("\n"),
  );
});

Deno.test("checkpoints that are all damaged are an error, not a first run", async () => {
  const world = newWorld();
  await runToTheMiddle(world);
  for (const { name, bytes } of await world.pages.list("documents", "checkpoint/")) {
    await world.pages.commit([{ name, bytes: flipped(bytes) }]);
  }
  const seen = [...world.outside.visible];
  await assert.rejects(pipeline(world).execute(), { code: "no_good_checkpoint" });
  assert.deepEqual(world.outside.visible, seen, "the output was touched");
});

Deno.test("state that maps to no operator stops the start, unless it is allowed (C11)", async () => {
  const world = newWorld();
  await runToTheMiddle(world);
  await assert.rejects(pipeline(world, { id: "renamed" }).execute(), (error: MailerError) => {
    assert.equal(error.code, "unmatched_state");
    assert.match(error.message, /"sum"/);
    return true;
  });
  await pipeline(world, { id: "renamed" }).execute({ allowUnmatchedState: true });
  assert.ok(world.log.some((line) => line.startsWith("warn state left behind")));
});

Deno.test("a finished run that is started again reads and writes nothing", async () => {
  const world = newWorld();
  await pipeline(world).execute();
  const rows = [...world.outside.visible];
  const handle = pipeline(world).start();
  await handle.done;
  assert.equal(handle.status().recordsIn, 0);
  assert.deepEqual(world.outside.visible, rows);
  assert.ok(world.log.some((line) => line.includes("all input had been read already")));
});

Deno.test("a stopped run goes on where it stopped; windows that are open stay open", async () => {
  const world = newWorld();
  const windows = (): Env => {
    const env = createEnv({ name: "stopped" }).withCheckpointing("1h")
      .withStateBackend(lastingBackend(world.pages, new CrashPoint()));
    env.fromSource(slowSource({ a: RECORDS }), { timestamp: ({ at }) => at })
      .keyBy(({ key }) => key, { partitions: 3 }).window(tumbling("4s"))
      .reduce((sum: number | undefined, { value }) => (sum ?? 0) + value, { id: "sum" })
      .toSink(committingSink(world.outside, new CrashPoint()), { id: "out" });
    return env;
  };
  const handle = windows().start();
  await handle.running;
  while (handle.status().recordsIn < 60) await new Promise((resolve) => setTimeout(resolve, 1));
  await handle.stop();
  assert.equal(handle.status().phase, "stopped");
  const before = world.outside.visible.length;
  await windows().execute();
  const sums = new Map<string, number>();
  for (const { key, at, value } of RECORDS) {
    const name = `${Math.floor(at / 4000)} ${key}`;
    sums.set(name, (sums.get(name) ?? 0) + value);
  }
  assert.ok(before < sums.size, "the stop fired windows");
  assert.deepEqual(inOrder(world.outside.visible), inOrder([...sums.values()]));
});

Deno.test("savepoints: 4 → 7 → 2 partitions give the results of one run (rescaling)", async () => {
  const world = newWorld(), records = many(1000);
  for (const [index, partitions] of [4, 7, 2].entries()) {
    const start = index === 0 ? {} : { fromSavepoint: `s${index - 1}` };
    const handle = pipeline(world, { partitions, records }).start(start);
    if (index === 2) {
      await handle.done;
      break;
    }
    await handle.running;
    while (handle.status().recordsIn < 50) await new Promise((resolve) => setTimeout(resolve, 1));
    if (index === 0) assert.equal((await handle.savepoint("while-running")).name, "while-running");
    await handle.stop({ savepoint: `s${index}` });
  }
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(records)));
});

Deno.test("a run from a savepoint goes back: output behind it comes again, once", async () => {
  const world = newWorld();
  const handle = pipeline(world).start();
  await handle.running;
  while (handle.status().recordsIn < 40) await new Promise((resolve) => setTimeout(resolve, 1));
  await handle.savepoint("early");
  await handle.done;
  await assert.rejects(pipeline(world).execute({ fromSavepoint: "erly" }), (error: MailerError) => {
    assert.equal(error.code, "no_savepoint");
    assert.match(error.hint!, /"early"/);
    return true;
  });
  await pipeline(world).execute({ fromSavepoint: "early" });
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
  // And what is newest now is the new past, not the old one.
  await pipeline(world).execute();
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
});

Deno.test("restart: a run that fails goes on from its checkpoint, with growing waits, until it is well again (D3)", async () => {
  const world = newWorld();
  let left = 2;
  const env = pipeline(world, { failAt: () => left-- > 0 }).withRestart({
    attempts: 5,
    delay: "2ms",
    maxDelay: "1s",
  });
  const handle = env.start();
  await handle.done;
  assert.equal(handle.status().restarts, 2);
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
  const waits = world.log.filter((line) => line.includes("starting again")).map((line) =>
    Number(/"waitMs":(\d+)/.exec(line)![1])
  );
  assert.equal(waits.length, 2);
  assert.ok(waits[1]! >= waits[0]!, `${waits}`);
});

Deno.test("restart: a record that ends three runs in a row is the end, whatever the attempts", async () => {
  const world = newWorld();
  const env = pipeline(world, { failAt: () => true }).withRestart({ delay: "1ms", maxDelay: "2ms" });
  const handle = env.start();
  await assert.rejects(handle.done, /no such luck/);
  assert.equal(handle.status().restarts, 2);
});

Deno.test("checkpoints that fail are counted, and too many in a row end the run", async () => {
  const world = newWorld();
  class Full extends MemoryPages {
    override commit(): Promise<boolean> {
      return Promise.reject(new MailerError("file_error", "no space left on device"));
    }
  }
  await assert.rejects(pipeline(world, { pages: new Full() }).execute(), (error: MailerError) => {
    assert.match(error.message, /no space left/);
    return true;
  });
  assert.deepEqual(world.outside.visible, [], "rows were committed without a checkpoint");
});

Deno.test("no checkpointing: a savepoint is an error that says what to switch on", async () => {
  const env = createEnv().withClock(new VirtualClock());
  env.fromSource(slowSource({ a: RECORDS })).toSink(committingSink(new Outside(), new CrashPoint()));
  assert.throws(() => env.start({ fromSavepoint: "x" }), { code: "no_checkpointing" });
  await Promise.resolve();
});
