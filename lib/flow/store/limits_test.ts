import assert from "node:assert/strict";
import { VirtualClock } from "../../testing/virtual_clock.ts";
import type { Cells } from "./cells.ts";
import { type FlowStoreUnderTest, Scene } from "./contract.ts";
import { KvCells } from "./kv.ts";
import { MemoryCells, MemoryDisk } from "./memory.ts";
import type { FlowStore, JobLimit, JobRequest, LeasedJob, NewJob } from "./port.ts";
import { openStore } from "./store.ts";

/** A job names its limits: `[name, max]`, or `[name, max, per]`. */
const limitsOf = (text: string): JobLimit[] =>
  (JSON.parse(text) as [string, number, number?][]).map(([name, max, per]) =>
    per === undefined ? { name, max } : { name, max, per }
  );

function jobs(prefix: string, count: number, limits: readonly unknown[], order = 0): NewJob[] {
  return Array.from({ length: count }, (_, i) => ({
    id: `${prefix}${String(i).padStart(4, "0")}`,
    kind: "k",
    text: JSON.stringify(limits),
    order: order + i,
  }));
}

function request(max: number, worker = "w"): JobRequest {
  return { kind: "k", max, worker, leaseMs: 10_000, limitsOf };
}

const ids = (leased: readonly LeasedJob[]): string[] => leased.map(({ id }) => id);

type Body = (scene: Scene, other: FlowStore, clock: VirtualClock) => Promise<void>;

/** Runs a test on every kind of store, each opened twice, as by two processes. */
function test(title: string, body: Body, kinds: readonly ("memory" | "KV")[] = ["memory", "KV"]): void {
  for (const kind of kinds) {
    Deno.test(`limits on jobs, ${kind}: ${title}`, async () => {
      const clock = new VirtualClock(), disk = new MemoryDisk();
      const kv = kind === "KV" ? await Deno.openKv(":memory:") : undefined;
      const cells = (): Cells =>
        kv === undefined ? new MemoryCells(disk, clock) : kept(new KvCells(kv, ["flow"], "memory"));
      const store = await openStore(cells(), clock, { pollMs: -1 });
      const other = await openStore(cells(), clock, { pollMs: -1 });
      const under: FlowStoreUnderTest = {
        clock,
        open: () => Promise.resolve(store),
        cells,
        dispose: () => Promise.resolve(),
      };
      try {
        await body(new Scene(under, store), other, clock);
      } finally {
        await store[Symbol.asyncDispose]();
        await other[Symbol.asyncDispose]();
        kv?.close();
      }
    });
  }
}

/** Cells that stay open when they are closed. */
function kept(cells: Cells): Cells {
  return {
    where: cells.where,
    get: (keys) => cells.get(keys),
    list: (range, limit, reverse) => cells.list(range, limit, reverse),
    commit: (checks, writes) => cells.commit(checks, writes),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

test("most at once, over two processes that race for the places", async (scene, other) => {
  await scene.committed("e1", { jobs: jobs("a", 12, [["k", 3]]) });
  const [mine, others] = await Promise.all([
    scene.store.jobs.lease(request(8, "one")),
    other.jobs.lease(request(8, "two")),
  ]);
  const held = [...mine, ...others];
  assert.equal(held.length, 3);
  assert.equal(new Set(ids(held)).size, 3);
  // Whichever of the two processes asks: there is no place.
  assert.deepEqual(await scene.store.jobs.lease(request(8)), []);
  assert.deepEqual(await other.jobs.lease(request(8)), []);
  // A place is free with the commit that takes the job away.
  await scene.committed("e1", { removeJobs: [held[0]!.id] });
  const next = [...await other.jobs.lease(request(8)), ...await scene.store.jobs.lease(request(8))];
  assert.equal(next.length, 1);
  assert.equal(next[0]!.deliveries, 1, "waiting is no delivery");
});

test(
  "two processes that look at a limit at the same time do not both get the last place",
  async (scene, other) => {
    const limits = [["k", 1]];
    await scene.committed("e1", {
      jobs: [...jobs("a", 1, limits), { ...jobs("b", 1, limits)[0]!, kind: "other" }],
    });
    const [mine, others] = await Promise.all([
      scene.store.jobs.lease(request(1)),
      other.jobs.lease({ ...request(1), kind: "other" }),
    ]);
    assert.equal(mine.length + others.length, 1);
  },
);

test("waiting changes nothing in the store", async (scene, other) => {
  await scene.committed("e1", { jobs: jobs("a", 5, [["k", 1]]) });
  assert.deepEqual(ids(await scene.store.jobs.lease(request(5))), ["a0000"]);
  const before = await scene.dump();
  for (let i = 0; i < 5; i++) {
    assert.deepEqual(await scene.store.jobs.lease(request(5)), []);
    assert.deepEqual(await other.jobs.lease(request(5)), []);
  }
  assert.deepEqual(await scene.dump(), before);
});

test("a place is free when the lease is over, and when the job is put back", async (scene, other, clock) => {
  await scene.committed("e1", { jobs: jobs("a", 3, [["k", 1]]) });
  const [first] = await scene.store.jobs.lease(request(3));
  assert.equal(await scene.store.jobs.release(first!, { delayMs: 60_000, counts: false }), true);
  const [second] = await other.jobs.lease(request(3));
  assert.equal(second!.id, "a0001");
  await clock.advance(9_999);
  assert.deepEqual(await other.jobs.lease(request(3)), []);
  const [longer] = await other.jobs.extend([second!], 10_000);
  await clock.advance(5_000);
  assert.deepEqual(await scene.store.jobs.lease(request(3)), [], "its holder is alive");
  assert.equal(longer!.id, "a0001");
  await clock.advance(5_000);
  const [again] = await scene.store.jobs.lease(request(3));
  assert.equal(again!.id, "a0001", "its worker was silent");
  assert.equal(again!.deliveries, 2);
});

test("jobs that wait keep nobody behind them from the turn, however many", async (scene, other) => {
  await scene.committed("e1", { jobs: jobs("hot", 800, [["hot", 1]]) });
  await scene.committed("e2", { jobs: jobs("hot", 800, [["hot", 1]], 1000) });
  await scene.committed("e3", {
    jobs: [...jobs("idle", 2, [["idle", 1]], 5000), ...jobs("free", 1, [], 6000)],
  });
  assert.deepEqual(ids(await scene.store.jobs.lease(request(10))), ["hot0000", "idle0000", "free0000"]);
  assert.deepEqual(ids(await other.jobs.lease(request(10))), []);
  await scene.committed("e3", { removeJobs: ["idle0000"] });
  assert.deepEqual(ids(await other.jobs.lease(request(10))), ["idle0001"]);
}, ["memory"]);

test("a limit of more places than a cell has", async (scene, other) => {
  await scene.committed("e1", { jobs: jobs("a", 180, [["wide", 150]]) });
  const leased = [...await scene.store.jobs.lease(request(70)), ...await other.jobs.lease(request(200))];
  leased.push(...await scene.store.jobs.lease(request(200)));
  assert.equal(leased.length, 150);
  assert.equal(new Set(ids(leased)).size, 150);
  await scene.committed("e1", { removeJobs: ids(leased).slice(20, 25) });
  assert.equal((await other.jobs.lease(request(200))).length, 5);
});

test("most within a time: in no time of that length more, and no place lost", async (scene, other, clock) => {
  const max = 5, per = 6400, begin = clock.now(), starts: number[] = [];
  await scene.committed("e1", { jobs: jobs("a", 400, [["r", max, per]]) });
  // Steps of uneven length; two processes in turn.
  for (let step = 0, at = 0; at < 10 * per; step++) {
    const by = [70, 410, 130, 990, 5, 260][step % 6]!;
    await clock.advance(by);
    at += by;
    const { jobs } = step % 2 === 0 ? scene.store : other;
    // One or two at a time, so that they are spread over the time.
    const leased = await jobs.lease(request(1 + step % 2));
    starts.push(...leased.map(() => clock.now() - begin));
  }
  for (const at of starts) {
    const within = starts.filter((start) => start > at - per && start <= at).length;
    assert(within <= max, `${within} within ${per} ms before ${at}`);
  }
  // Ten times the time, and each place is free at most a 64th of it, and a step, late.
  assert(starts.length >= 9 * max, `${starts.length}`);
});

test("both limits of a job have to have room", async (scene, other, clock) => {
  await scene.committed("e1", { jobs: jobs("a", 6, [["c", 2], ["r", 3, 1000]]) });
  assert.equal((await scene.store.jobs.lease(request(9))).length, 2);
  await scene.committed("e1", { removeJobs: ["a0000", "a0001"] });
  assert.equal((await other.jobs.lease(request(9))).length, 1, "the third within a second");
  await clock.advance("2s");
  assert.equal((await other.jobs.lease(request(9))).length, 1, "the second at once");
});

test("what a limit held is forgotten", async (scene, other, clock) => {
  await scene.committed("e1", { jobs: jobs("a", 2, [["c", 2], ["r", 3, 1000]]) });
  const before = await scene.dump();
  await scene.store.jobs.lease(request(9));
  const held = [...(await scene.dump()).keys()].filter((key) => !before.has(key));
  assert.equal(held.length, 2);
  assert.equal((await other.sweep()).limits, 0, "it is in use");
  await scene.committed("e1", { removeJobs: "all" });
  assert.equal((await other.sweep()).limits, 1, "the second is not over");
  await clock.advance("2s");
  assert.equal((await other.sweep()).limits, 1);
  const left = await scene.dump();
  assert.deepEqual(held.filter((key) => left.has(key)), []);
});

test("a job is found where it lies", async (scene, other) => {
  const head = await scene.committed("e1", { jobs: jobs("a", 1, []) });
  const place = head.jobs["a0000"]!;
  assert.equal((await other.jobs.peek("e1", "a0000", place))?.worker, "");
  const [leased] = await scene.store.jobs.lease(request(1, "me"));
  assert.deepEqual(await other.jobs.peek("e1", "a0000", place), leased);
  await scene.committed("e1", { removeJobs: ["a0000"] });
  assert.equal(await other.jobs.peek("e1", "a0000", place), undefined);
});
