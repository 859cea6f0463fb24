/**
 * Where a run goes on: damage, savepoints, other partition counts, state nobody asks for, failures of checkpoints, restarts.
 *
 * @module
 */
import assert from "node:assert/strict";
import { createEnv, type Env, tumbling } from "../../mod.ts";
import { VirtualClock } from "../../testing.ts";
import { ManifestStore } from "../../lib/checkpoint/manifest.ts";
import { MailerError } from "../../lib/errors.ts";
import { MemoryPages } from "../../lib/state/pages/memory.ts";
import { committingSink, CrashPoint, lastingBackend, Outside, slowSource } from "./kit.ts";
import { expected, inOrder, many, newWorld, RECORDS, sums, type World } from "./sums.ts";

/** Runs until a record fails, and so leaves checkpoints of the middle behind. */
async function runToTheMiddle(world: World): Promise<void> {
  await assert.rejects(sums(world, { failAt: () => true }).execute(), /no such luck/);
  assert.ok((await new ManifestStore(world.pages).list()).length >= 2, "too few checkpoints");
}

Deno.test("a run goes on from the newest checkpoint: every record counts once", async () => {
  const world = newWorld();
  await runToTheMiddle(world);
  await sums(world).execute();
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
  assert.ok(world.log.some((line) => line.startsWith("info restored")), world.log.join("\n"));
});

Deno.test("C5, C8: a damaged manifest is passed over for the one before, and it is said", async () => {
  for (const damage of [(bytes: Uint8Array) => bytes.subarray(0, bytes.length - 3), flipped]) {
    const world = newWorld();
    await runToTheMiddle(world);
    const [newest] = await world.pages.list("documents", "checkpoint/").then((all) => all.slice(-1));
    await world.pages.commit([{ name: newest!.name, bytes: damage(newest!.bytes) }]);
    await sums(world).execute();
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

Deno.test("C4: a page that is gone: the checkpoint before counts, never nothing", async () => {
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
  await sums(world).execute();
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
  assert.ok(
    world.log.some((line) => line.includes("passed over") || line.includes("starting again")),
    world.log.join("\n"),
  );
});

Deno.test("R10: checkpoints that are all damaged are an error, not a first run", async () => {
  const world = newWorld();
  await runToTheMiddle(world);
  for (const { name, bytes } of await world.pages.list("documents", "checkpoint/")) {
    await world.pages.commit([{ name, bytes: flipped(bytes) }]);
  }
  const seen = [...world.outside.visible];
  await assert.rejects(sums(world).execute(), { code: "no_good_checkpoint" });
  assert.deepEqual(world.outside.visible, seen, "the output was touched");
});

Deno.test("C11: state that maps to no operator stops the start, unless it is allowed", async () => {
  const world = newWorld();
  await runToTheMiddle(world);
  await assert.rejects(sums(world, { id: "renamed" }).execute(), (error: MailerError) => {
    assert.equal(error.code, "unmatched_state");
    assert.match(error.message, /"sum"/);
    return true;
  });
  await sums(world, { id: "renamed" }).execute({ allowUnmatchedState: true });
  assert.ok(world.log.some((line) => line.startsWith("warn state left behind")));
});

Deno.test("a finished run that is started again reads and writes nothing", async () => {
  const world = newWorld();
  await sums(world).execute();
  const rows = [...world.outside.visible];
  const handle = sums(world).start();
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
    const handle = sums(world, { partitions, records }).start(start);
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
  const handle = sums(world).start();
  await handle.running;
  while (handle.status().recordsIn < 40) await new Promise((resolve) => setTimeout(resolve, 1));
  await handle.savepoint("early");
  await handle.done;
  await assert.rejects(sums(world).execute({ fromSavepoint: "erly" }), (error: MailerError) => {
    assert.equal(error.code, "no_savepoint");
    assert.match(error.hint!, /"early"/);
    return true;
  });
  await sums(world).execute({ fromSavepoint: "early" });
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
  // And what is newest now is the new past, not the old one.
  await sums(world).execute();
  assert.deepEqual(inOrder(world.outside.visible), inOrder(expected(RECORDS)));
});

Deno.test("D3: a run that fails goes on from its checkpoint, with growing waits, until it is well again", async () => {
  const world = newWorld();
  let left = 2;
  const env = sums(world, { failAt: () => left-- > 0 }).withRestart({
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
  const env = sums(world, { failAt: () => true }).withRestart({ delay: "1ms", maxDelay: "2ms" });
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
  await assert.rejects(
    sums(world, { backend: lastingBackend(new Full(), new CrashPoint()) }).execute(),
    (error: MailerError) => {
      assert.match(error.message, /no space left/);
      return true;
    },
  );
  assert.deepEqual(world.outside.visible, [], "rows were committed without a checkpoint");
});

Deno.test("no checkpointing: a savepoint is an error that says what to switch on", async () => {
  const env = createEnv().withClock(new VirtualClock());
  env.fromSource(slowSource({ a: RECORDS })).toSink(committingSink(new Outside(), new CrashPoint()));
  assert.throws(() => env.start({ fromSavepoint: "x" }), { code: "no_checkpointing" });
  await Promise.resolve();
});
