/**
 * Exactly once with Kafka, on a cluster in memory: a crash at every step and every call, lost answers, a second instance. What a
 * `read_committed` reader sees in the end is the output of the run that did not crash.
 *
 * @module
 */
import assert from "node:assert/strict";
import { UnknownOutcomeError } from "../../connectors/kafka/errors.ts";
import { kafkaSink } from "../../connectors/kafka/kafka_sink.ts";
import type { StateBackend } from "../../lib/checkpoint/backend.ts";
import type { CheckpointStep } from "../../lib/checkpoint/coordinator.ts";
import { codeOf } from "../../lib/errors.ts";
import { kv } from "../../mod.ts";
import { CrashPoint, lastingBackend, newPages, slowSource } from "../durable/kit.ts";
import {
  crashing,
  CrashingKafka,
  expectedRows,
  hasMarker,
  paced,
  restoredFrom,
  samples,
  type Setting,
  sums,
} from "./kit.ts";

const STEPS: readonly CheckpointStep[] = [
  "barrier",
  "collected",
  "persisted",
  "prepared",
  "committed",
  "completed",
  "swept",
];
/** From here on the checkpoint counts. */
const COMMITTED: readonly CheckpointStep[] = ["committed", "completed", "swept"];

/** What outlives processes. */
class World {
  readonly kafka: CrashingKafka;
  readonly splits: ReturnType<typeof samples>;
  readonly partitions: number;
  readonly #backend: StateBackend;

  constructor(partitions: number, backend?: StateBackend, records = 120) {
    this.partitions = partitions;
    this.kafka = new CrashingKafka(partitions);
    this.splits = samples(partitions, records);
    this.#backend = backend ?? lastingBackend(newPages(), new CrashPoint());
  }

  /** A process. */
  setting(point: CrashPoint, log: string[] = []): Setting {
    this.kafka.point = point;
    return {
      source: paced(slowSource(this.splits, 4, 10)),
      sink: { client: this.kafka.connect },
      backend: crashing(this.#backend, point),
      partitions: this.partitions,
      log,
    };
  }

  /** The process after the crash, up to its end. @returns What it logged. */
  async finish(): Promise<string[]> {
    const log: string[] = [];
    await sums(this.setting(new CrashPoint(), log)).execute();
    return log;
  }

  check(what: string): void {
    assert.deepEqual(this.kafka.rows, expectedRows(this.splits), what);
    assert.ok(this.kafka.isQuiet, `${what}: a transaction was left open`);
    assert.equal(this.kafka.clients.size, 0, `${what}: a client was left open`);
  }
}

const crashed = (): never => {
  throw new Error("crashed");
};

/** How a run crashed. */
interface Crash {
  /** Number of the checkpoint under way. */
  readonly at: number;
  /** The last checkpoint before it that was complete. */
  readonly before: number | undefined;
}

/** Crashes at a step of the checkpoint with this place in the run, from 1. */
async function crashAt(world: World, step: CheckpointStep, place: number): Promise<Crash> {
  const point = new CrashPoint(), numbers = new Set<number>();
  let crash: Crash | undefined, complete: number | undefined;
  const handle = sums(world.setting(point)).start({
    onCheckpointStep(current, number) {
      numbers.add(number);
      if (current === step && numbers.size >= place && !point.crashed) {
        crash = { at: number, before: complete };
        point.crashed = true;
        handle.abort(new Error("crashed"));
        crashed();
      }
      if (current === "completed") complete = number;
    },
  });
  await handle.done.catch(() => {});
  assert.ok(crash !== undefined, `the run came to its end in ${numbers.size} checkpoints`);
  return crash;
}

const BACKENDS = {
  memory: () => ({ backend: undefined, remove: () => {} }),
  kv: async () => {
    const folder = await Deno.makeTempDir({ prefix: "mailer-matrix-" });
    return { backend: kv(folder), remove: () => Deno.remove(folder, { recursive: true }) };
  },
};

for (const [name, open] of Object.entries(BACKENDS)) {
  for (const partitions of [1, 3]) {
    for (const step of STEPS) {
      Deno.test(`crash behind "${step}", ${partitions} partitions, state in ${name}`, async () => {
        for (const place of [1, 2, 4]) {
          const { backend, remove } = await open();
          try {
            const world = new World(partitions, backend);
            const { at, before } = await crashAt(world, step, place);
            const isEmpty = step === "prepared" && !hasMarker(world.kafka, at); // nothing can be lost of it
            const log = await world.finish();
            const counts = COMMITTED.includes(step) || isEmpty;
            assert.equal(restoredFrom(log), counts ? at : before, `checkpoint ${at}`);
            world.check(`${step} of checkpoint ${at}`);
          } finally {
            await remove();
          }
        }
      });
    }
  }
}

for (const when of ["before", "after"] as const) {
  Deno.test(`crash during a commit, ${when === "before" ? "not made" : "made, and its answer lost"}`, async () => {
    for (const partitions of [1, 3]) {
      for (const place of [1, 2, 4]) {
        const world = new World(partitions), point = new CrashPoint();
        let commits = 0, at: number | undefined, complete: number | undefined;
        const handle = sums(world.setting(point)).start({
          onCheckpointStep(step, number) {
            if (step === "completed") complete = number;
            if (step !== "prepared" || !hasMarker(world.kafka, number) || ++commits !== place) return;
            at = number;
            world.kafka.fail("commit", () => {
              point.crashed = true;
              handle.abort(new Error("crashed"));
              return new Error("crashed");
            }, { when });
          },
        });
        await handle.done.catch(() => {});
        assert.ok(point.crashed, "the run came to its end");
        const log = await world.finish();
        assert.equal(restoredFrom(log), when === "after" ? at : complete);
        world.check(`commit ${place}`);
      }
    }
  });

  Deno.test(`a lost answer to a commit that was ${when === "before" ? "not " : ""}made, without a crash`, async () => {
    for (const place of [1, 2, 4]) {
      const world = new World(3), log: string[] = [];
      let commits = 0;
      const env = sums(world.setting(new CrashPoint(), log)).withRestart({ delay: "1ms" });
      await env.start({
        onCheckpointStep(step, number) {
          if (step !== "prepared" || !hasMarker(world.kafka, number) || ++commits !== place) return;
          world.kafka.fail("commit", new UnknownOutcomeError("sums", "commit"), { when });
        },
      }).done;
      const restarts = log.filter((line) => line.includes("run failed")).length;
      assert.equal(restarts > 0, when === "before", log.join("\n"));
      assert.ok(log.some((line) => line.includes("looking for its marker")));
      world.check(`commit ${place}`);
    }
  });
}

/** A backend that cannot write the manifest of one checkpoint. */
function failingOnce(backend: StateBackend, shouldFail: () => boolean): StateBackend {
  return {
    ...backend,
    async open(pipeline, clock) {
      const store = await backend.open(pipeline, clock);
      return {
        write: (run, first, pages) => store.write(run, first, pages),
        read: (refs) => store.read(refs),
        list: (kind, prefix) => store.list(kind, prefix),
        deleteRuns: (runs) => store.deleteRuns(runs),
        commit(changes) {
          if (shouldFail()) throw new Error("the disk is full");
          return store.commit(changes);
        },
        [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
      };
    },
  };
}

/** Has the checkpoint with this place in the run fail when the sink has prepared it. */
function failingCheckpoint(world: World, point: CrashPoint, place: number, log: string[]) {
  let persisted = 0, isFailing = false;
  const source = slowSource(world.splits, 4, 40); // which goes on reading behind it
  const setting = { ...world.setting(point, log), source };
  const backend = failingOnce(setting.backend, () => {
    const fails = isFailing;
    isFailing = false;
    return fails;
  });
  return {
    env: sums({ ...setting, backend }),
    onPersisted(number: number): void {
      if (hasMarker(world.kafka, number) && ++persisted === place) isFailing = true;
    },
  };
}

Deno.test("of a checkpoint that failed the records are committed with the next", async () => {
  for (const place of [1, 2]) {
    const world = new World(3, undefined, 240), log: string[] = [];
    const { env, onPersisted } = failingCheckpoint(world, new CrashPoint(), place, log);
    await env.start({
      onCheckpointStep: (step, number) => step === "persisted" ? onPersisted(number) : undefined,
    })
      .done;
    assert.equal(log.filter((line) => line.includes("checkpoint failed")).length, 1, log.join("\n"));
    world.check(`checkpoint ${place}`);
  }
});

Deno.test("a crash in the middle of committing both is noticed: no run goes on from there", async () => {
  let isCrashed = false;
  for (let attempt = 0; attempt < 20 && !isCrashed; attempt++) { // until records come behind the checkpoint that fails
    const world = new World(3, undefined, 240), log: string[] = [], point = new CrashPoint();
    const { env, onPersisted } = failingCheckpoint(world, point, 2, log);
    let next: number | undefined;
    const handle = env.start({
      onCheckpointStep(step, number) {
        if (step === "persisted") onPersisted(number);
        if (
          step !== "prepared" || next !== undefined || !log.some((line) => line.includes("checkpoint failed"))
        ) return;
        next = number;
        if (!hasMarker(world.kafka, number)) return; // there is one transaction to commit, that of the checkpoint that failed
        world.kafka.fail("commit", () => {
          point.crashed = true;
          handle.abort(new Error("crashed"));
          return new Error("crashed");
        }, { when: "after" });
      },
    });
    await handle.done.catch(() => {});
    if (!point.crashed) continue;
    isCrashed = true;
    for (let again = 0; again < 2; again++) await assert.rejects(world.finish(), { code: "half_committed" });
    assert.ok(world.kafka.isQuiet, "a transaction was left open");
  }
  assert.ok(isCrashed);
});

Deno.test("a second instance takes over from one that hangs in a commit, which then ends as fenced", async () => {
  for (const place of [1, 3]) {
    const world = new World(3);
    let commits = 0;
    let held: ReturnType<CrashingKafka["hold"]> | undefined;
    const first = sums(world.setting(new CrashPoint())).start({
      onCheckpointStep(step, number) {
        if (step === "prepared" && hasMarker(world.kafka, number) && ++commits === place) {
          held = world.kafka.hold("commit");
        }
      },
    });
    while (held === undefined) await new Promise((resolve) => setTimeout(resolve, 1));
    await held.reached;
    await world.finish();
    held.release();
    await assert.rejects(first.done, { code: "kafka_fenced" });
    world.check(`commit ${place}`);
  }
});

Deno.test("crash at every call that changes something, in Kafka or in the state, before it and behind it", async () => {
  let crashes = 0, restored = 0;
  for (const partitions of [1, 3]) {
    for (let at = 1, isThrough = false; !isThrough; at += 1 + Math.floor(at / 25)) {
      for (const before of [true, false]) {
        const world = new World(partitions, undefined, 40), point = new CrashPoint(at, before);
        const handle = sums(world.setting(point)).start();
        handle.done.catch(() => {});
        await Promise.race([handle.done.catch(() => {}), point.happened]);
        handle.abort(new Error("crashed"));
        await handle.done.catch(() => {});
        if (point.crashed) crashes++;
        else isThrough = true;
        const log = await world.finish();
        if (restoredFrom(log) !== undefined) restored++;
        world.check(`${partitions} partitions, crash ${before ? "before" : "behind"} call ${at}`);
      }
    }
  }
  assert.ok(crashes > 100 && restored > 60, `${crashes} crashes, ${restored} runs went on from a checkpoint`);
});

Deno.test("the plain sink, crash at every call that changes something: every row at least once", async () => {
  let crashes = 0, doubled = 0;
  for (let at = 1, isThrough = false; !isThrough; at += 1 + Math.floor(at / 25)) {
    for (const before of [true, false]) {
      const world = new World(3, undefined, 40), point = new CrashPoint(at, before);
      const run = (point: CrashPoint) => {
        const setting = world.setting(point);
        return sums({
          ...setting,
          sink: kafkaSink({ brokers: ["fake"], topic: "out", client: world.kafka.connect }),
        });
      };
      const handle = run(point).start();
      handle.done.catch(() => {});
      await Promise.race([handle.done.catch(() => {}), point.happened]);
      handle.abort(new Error("crashed"));
      await handle.done.catch(() => {});
      if (point.crashed) crashes++;
      else isThrough = true;
      await run(new CrashPoint()).execute();
      const { rows } = world.kafka;
      const what = `crash ${before ? "before" : "behind"} call ${at}`;
      assert.deepEqual([...new Set(rows)], expectedRows(world.splits), what);
      if (rows.length > new Set(rows).size) doubled++;
    }
  }
  assert.ok(crashes > 20 && doubled > 0, `${crashes} crashes, ${doubled} runs with rows that came twice`);
});

Deno.test("runs that crash again and again come to the right end", async () => {
  for (let seed = 1; seed <= 12; seed++) {
    const world = new World(3);
    let state = seed, crashes = 0;
    for (;;) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const point = new CrashPoint(1 + state % 90, state % 2 === 0);
      const handle = sums(world.setting(point)).start();
      const failed = await handle.done.then(() => undefined, (error) => error);
      if (failed === undefined) break;
      assert.ok(point.crashed, `${codeOf(failed)}: ${failed}`);
      crashes++;
    }
    world.check(`seed ${seed}, ${crashes} crashes`);
  }
});
