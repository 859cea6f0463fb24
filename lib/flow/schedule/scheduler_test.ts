/**
 * Schedules on a clock that stands still: what is started, when, and how often.
 *
 * @module
 */
import assert from "node:assert/strict";
import { codeOf } from "../../errors.ts";
import type { Alarm, Clock } from "../../clock.ts";
import { sameJson } from "../../same_json.ts";
import { VirtualClock } from "../../testing/virtual_clock.ts";
import { compileFlow } from "../definition/mod.ts";
import { Flows } from "../engine/flows.ts";
import { flowOf, nodes, onStores, Scene } from "../engine/kit_test.ts";
import { decodeCommand } from "../fold/mod.ts";
import { type Fault, FaultyCells } from "../store/faults.ts";
import { openKvStore } from "../store/kv.ts";
import { MemoryDisk, openMemoryStore } from "../store/memory.ts";
import type { FlowStore, Ownership } from "../store/port.ts";
import { Scheduler, Schedules, type ScheduleSpec } from "./mod.ts";

const DAY = 86_400_000;
const FLOW = nodes("job", "id: a, type: task, kind: k");
const WAIT = nodes("job", "id: w, type: await, signal: go, timeout: 1000h");

function iso(instant: number): string {
  return new Date(instant).toISOString().replace(".000Z", "Z");
}

/** A store with schedulers and no engine: what they start is found in its inbox. */
class Bench implements AsyncDisposable {
  readonly logged: string[] = [];
  readonly #own: Ownership;
  readonly #schedulers: Scheduler[] = [];

  private constructor(
    readonly clock: VirtualClock,
    readonly time: Clock,
    readonly disk: MemoryDisk,
    readonly store: FlowStore,
    readonly schedules: Schedules,
    own: Ownership,
  ) {
    this.#own = own;
  }

  static async open(clock = new VirtualClock(), time: Clock = clock): Promise<Bench> {
    const disk = new MemoryDisk();
    const store = await openMemoryStore({ clock: time, disk, partitions: 1, pollMs: 1000 * DAY });
    const own = (await store.partitions.acquire(0, "bench", 1000 * 365 * DAY))!;
    await new Flows(store.definitions, time).register(flowOf(FLOW));
    return new Bench(clock, time, disk, store, new Schedules({ store, clock: time }), own);
  }

  scheduler(store = this.store, pollMs = DAY): Scheduler {
    const scheduler = new Scheduler({
      store,
      clock: this.time,
      flows: new Flows(store.definitions, this.time),
      pollMs,
      logger: {
        log: (level, message, fields) =>
          void this.logged.push(`${level} ${message} ${JSON.stringify(fields)}`),
      },
    });
    this.#schedulers.push(scheduler);
    return scheduler;
  }

  /** Ids of what was started since the last call. */
  async started(): Promise<string[]> {
    const ids: string[] = [];
    for (;;) {
      const deliveries = await this.store.inbox.pull(this.#own, 500);
      if (deliveries.length === 0) return ids;
      for (const delivery of deliveries) {
        const { type, exec_id } = decodeCommand(delivery.text);
        ids.push(type === "start" ? exec_id : `${type} ${exec_id}`);
        await this.store.inbox.remove(this.#own, delivery);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const scheduler of this.#schedulers) await scheduler.stop();
    await this.store[Symbol.asyncDispose]();
  }
}

function daily(more: Partial<ScheduleSpec> = {}): ScheduleSpec {
  return {
    name: "nightly",
    cron: "0 30 2 * * *",
    timezone: "Europe/Berlin",
    flow: "job",
    overlap: "allow",
    ...more,
  };
}

Deno.test("F51 a year of nightly runs in Berlin, with both clock changes", async () => {
  await using bench = await Bench.open(new VirtualClock(Date.UTC(2026, 0, 1)));
  await bench.schedules.put(daily());
  const scheduler = bench.scheduler();
  scheduler.start();
  const expected: string[] = [], startedAt: number[] = [];
  for (let day = Temporal.PlainDate.from("2026-01-01"); day.year === 2026; day = day.add({ days: 1 })) {
    // In spring 02:30 does not exist: it is due when the clock goes on, at 03:00.
    const time = day.toString() === "2026-03-29" ? "03:00" : "02:30";
    const at = day.toZonedDateTime({ timeZone: "Europe/Berlin", plainTime: time });
    expected.push(`nightly-${at.toInstant().toString({ smallestUnit: "second" }).replace(/[-:]/g, "")}`);
  }
  const found: string[] = [];
  for (let i = 0; i < 365; i++) {
    await bench.clock.advance("24h");
    const ids = await bench.started();
    found.push(...ids);
    startedAt.push(...ids.map(() => scheduler.counters.lastLatenessMs));
  }
  assert.equal(found.length, 365);
  assert.deepEqual(found, expected);
  assert.deepEqual(new Set(startedAt), new Set([0]), "to the millisecond");
  assert.ok(found.includes("nightly-20260329T010000Z") && found.includes("nightly-20261025T003000Z"));
  const { counts, next } = await bench.schedules.get("nightly");
  assert.deepEqual({ ...counts }, {
    started: 365,
    skipped: 0,
    missed: 0,
    paused: 0,
    existing: 0,
    refused: 0,
  });
  assert.equal(next!.execution, "nightly-20270101T013000Z");
});

Deno.test("S1: two schedulers start each occurrence once", async () => {
  await using bench = await Bench.open();
  const other = await openMemoryStore({ clock: bench.clock, disk: bench.disk, pollMs: DAY });
  try {
    await bench.schedules.put(daily({ cron: "@every 1m" }));
    const both = [bench.scheduler(bench.store), bench.scheduler(other)];
    for (let minute = 0; minute < 10; minute++) {
      await bench.clock.advance("1m");
      await Promise.all(both.map(async (each) => {
        while (!await each.pass());
      }));
    }
    const ids = await bench.started();
    assert.equal(ids.length, 10);
    assert.equal(new Set(ids).size, 10);
    assert.equal(both[0]!.counters.started + both[1]!.counters.started, 10);
    assert.ok(both[0]!.counters.conflicts + both[1]!.counters.conflicts > 0, "they met");
  } finally {
    await other[Symbol.asyncDispose]();
  }
});

for (const fault of ["fail", "fail-after", "crash", "crash-after"] as const) {
  Deno.test(`S1, S2: a write that goes wrong (${fault}) starts nothing twice and loses nothing`, async () => {
    await using bench = await Bench.open();
    let next: Fault | undefined;
    const wrap = (cells: ConstructorParameters<typeof FaultyCells>[0]) =>
      new FaultyCells(cells, ({ op, keys }) => {
        if (op !== "commit" || !keys.some((key) => key.includes("nightly"))) return undefined;
        const now = next;
        next = undefined;
        return now;
      });
    const store = await openMemoryStore({ clock: bench.clock, disk: bench.disk, pollMs: DAY, wrap });
    await bench.schedules.put(daily({ cron: "@every 1m" }));
    const first = bench.scheduler(store, 1000);
    first.start();
    await bench.clock.advance("2m");
    next = fault;
    await bench.clock.advance("1m");
    assert.equal(next, undefined, "it went wrong");
    if (fault.startsWith("crash")) {
      await first.stop();
      bench.scheduler(bench.store, 1000).start(); // another process
    }
    await bench.clock.advance("2m");
    await first.stop();
    await Promise.resolve(store[Symbol.asyncDispose]()).catch(() => {}); // it may have crashed
    const ids = await bench.started();
    assert.deepEqual(ids, [1, 2, 3, 4, 5].map((m) => `nightly-20260101T000${m}00Z`));
  });
}

Deno.test("F57 S4, D2: a clock that is set back starts nothing again; one set forward is noticed", async () => {
  const clock = new VirtualClock();
  let shift = 0;
  const time: Clock = {
    now: () => clock.now() + shift,
    monotonic: () => clock.monotonic(),
    schedule: (ms: number, callback: () => void): Alarm => clock.schedule(ms, callback),
  };
  await using bench = await Bench.open(clock, time);
  await bench.schedules.put(daily({ cron: "@hourly", timezone: "UTC" }));
  bench.scheduler(bench.store, 60_000).start();
  await clock.advance("3h");
  assert.equal((await bench.started()).length, 3);
  shift = -2 * 3_600_000;
  await clock.advance("2h"); // 01:00 to 03:00 once more
  assert.deepEqual(await bench.started(), []);
  await clock.advance("1h");
  assert.deepEqual(await bench.started(), ["nightly-20260101T040000Z"]);
  shift += 5 * 3_600_000; // from 04:00 to 09:00
  await clock.advance("1m");
  assert.deepEqual(await bench.started(), [5, 6, 7, 8, 9].map((h) => `nightly-20260101T0${h}0000Z`));
});

Deno.test("F60 catch-up: what was missed within the window is started, the rest counted and logged", async () => {
  await using bench = await Bench.open();
  await bench.schedules.put(daily({ cron: "@hourly", timezone: "UTC", catchUp: "3h" }));
  const first = bench.scheduler();
  first.start();
  await bench.clock.advance("1h");
  await first.stop();
  await bench.clock.advance("1000h"); // 2026-02-11T17:00
  bench.scheduler().start();
  await bench.clock.advance("30m");
  assert.deepEqual(await bench.started(), [
    "nightly-20260101T010000Z",
    "nightly-20260211T140000Z",
    "nightly-20260211T150000Z",
    "nightly-20260211T160000Z",
    "nightly-20260211T170000Z",
  ]);
  const { counts } = await bench.schedules.get("nightly");
  assert.deepEqual([counts.started, counts.missed], [5, 996]);
  const told = bench.logged.filter((line) => line.includes("no engine ran"));
  const sum = told.map((line) => /"count":(\d+)/.exec(line)![1]!).reduce((all, n) => all + Number(n), 0);
  assert.equal(sum, 996);
  await bench.clock.advance("30m");
  assert.deepEqual(await bench.started(), ["nightly-20260211T180000Z"]);
});

Deno.test("catch-up: thirty years of seconds take no time", async () => {
  await using bench = await Bench.open();
  await bench.schedules.put(daily({ cron: "@every 1s", catchUp: "10s" }));
  await bench.clock.advance(30 * 365 * DAY);
  bench.scheduler().start();
  await bench.clock.advance("1s");
  assert.equal((await bench.started()).length, 12); // 10 s back, now, and one more
});

Deno.test("jitter: each occurrence has its own, the same wherever it is worked out", async () => {
  const starts: string[][] = [];
  for (let round = 0; round < 2; round++) {
    await using bench = await Bench.open();
    await bench.schedules.put(daily({ cron: "@hourly", timezone: "UTC", jitter: "10m" }));
    bench.scheduler().start();
    const next = await bench.schedules.next("nightly", { limit: 24 });
    const lateness = next.map(({ due, occurrence }) => due - occurrence);
    assert.ok(lateness.every((ms) => ms >= 0 && ms <= 600_000) && new Set(lateness).size > 12);
    const seen: string[] = [];
    for (const { due, execution } of next) {
      await bench.clock.advance(due - bench.clock.now() - 1);
      assert.deepEqual(await bench.started(), [], execution);
      await bench.clock.advance(1);
      assert.deepEqual(await bench.started(), [execution]);
      seen.push(`${execution} ${due}`);
    }
    starts.push(seen);
  }
  assert.deepEqual(starts[0], starts[1]);
});

Deno.test("pause and resume: what falls into the pause is counted, the next slot is not jumped", async () => {
  await using bench = await Bench.open();
  const { schedules, clock } = bench;
  const scheduler = bench.scheduler(bench.store, 60_000);
  scheduler.start();
  await schedules.put(daily({ cron: "@hourly", timezone: "UTC" }));
  await clock.advance("90m");
  assert.equal((await schedules.pause("nightly", "holidays")).paused!.reason, "holidays");
  assert.equal((await schedules.get("nightly")).next, undefined);
  await clock.advance("5h");
  assert.deepEqual(await bench.started(), ["nightly-20260101T010000Z"]);
  const resumed = await schedules.resume("nightly"); // at 06:30
  assert.equal(iso(resumed.next!.occurrence), "2026-01-01T07:00:00Z");
  assert.equal(resumed.counts.paused, 5);
  await clock.advance("30m");
  assert.deepEqual(await bench.started(), ["nightly-20260101T070000Z"]);
  await schedules.pause("nightly");
  await clock.advance("2h");
  await schedules.resume("nightly", { catchUp: true }); // at 09:00
  await clock.advance("1m");
  assert.deepEqual(await bench.started(), ["nightly-20260101T080000Z", "nightly-20260101T090000Z"]);
});

Deno.test("F59 backfill: from is included, to is not; a time zone counts; what is there is left alone", async () => {
  await using bench = await Bench.open(new VirtualClock(Date.UTC(2026, 3, 10)));
  const { schedules, clock } = bench;
  await schedules.put(daily());
  bench.scheduler(bench.store, 1000).start();
  await schedules.pause("nightly");
  await schedules.backfill("nightly", {
    from: new Date("2026-03-28T01:30:00Z"),
    to: new Date("2026-03-31T00:30:00Z"),
  });
  await clock.advance("5s");
  assert.deepEqual(await bench.started(), [
    "nightly-20260328T013000Z",
    "nightly-20260329T010000Z",
    "nightly-20260330T003000Z",
  ]);
  assert.equal((await schedules.get("nightly")).backfills, 0);
  const backfill = (from: number, to: number) => schedules.backfill("nightly", { from, to });
  await assert.rejects(backfill(5, 5), (error) => codeOf(error) === "invalid_backfill");
  await assert.rejects(backfill(5, clock.now() + 1000), (error) => codeOf(error) === "invalid_backfill");
  await assert.rejects(backfill(NaN, 5), (error) => codeOf(error) === "invalid_backfill");
});

Deno.test("backfill: a long one goes in steps, and is finished by another process", async () => {
  await using bench = await Bench.open(new VirtualClock(Date.UTC(2027, 0, 1)));
  await bench.schedules.put(daily({ timezone: "UTC" }));
  const to = bench.clock.now();
  await bench.schedules.backfill("nightly", { from: Date.UTC(2026, 0, 1), to });
  const first = bench.scheduler();
  await first.pass();
  await first.pass();
  const second = bench.scheduler();
  while (!await second.pass());
  const ids = await bench.started();
  assert.equal(ids.length, 365);
  assert.equal(new Set(ids).size, 365);
  assert.ok(first.counters.started > 0 && second.counters.started > 0);
});

Deno.test("storing it again changes nothing; other times begin from now on; deleting ends it", async () => {
  await using bench = await Bench.open();
  const { schedules, clock } = bench;
  const spec = daily({ cron: "@hourly", timezone: "UTC", input: { n: 2n ** 60n } });
  await schedules.put(spec);
  await clock.advance("90m"); // nobody has looked yet
  await schedules.put(spec);
  await schedules.put({ ...spec, jitter: 0, catchUp: "2d" });
  bench.scheduler(bench.store, 1000).start();
  await clock.advance("1s");
  assert.deepEqual(await bench.started(), ["nightly-20260101T010000Z"]);
  const changed = await schedules.put({ ...spec, cron: "0 45 * * * *" });
  assert.equal(iso(changed.next!.occurrence), "2026-01-01T01:45:00Z");
  assert.equal(changed.spec.input!["n"], 2n ** 60n);
  await clock.advance("15m");
  assert.deepEqual(await bench.started(), ["nightly-20260101T014500Z"]);
  assert.equal(await schedules.delete("nightly"), true);
  assert.equal(await schedules.delete("nightly"), false);
  await clock.advance("5h");
  assert.deepEqual(await bench.started(), []);
  await assert.rejects(schedules.get("nightly"), (error) => codeOf(error) === "schedule_not_found");
});

Deno.test("what is wrong with a schedule is said at once, all of it", async () => {
  await using bench = await Bench.open();
  const put = (spec: unknown) => bench.schedules.put(spec as ScheduleSpec);
  await assert.rejects(
    put({ name: "a b", cron: "", flow: "job", overlap: "maybe", catchUp: "-1h", colour: "red", input: [] }),
    (error: Error) => {
      for (const word of ["name", "cron", "overlap", "catchUp", "colour", "input"]) {
        assert.ok(error.message.includes(`"${word}"`), word);
      }
      return codeOf(error) === "invalid_schedule";
    },
  );
  await assert.rejects(put(daily({ cron: "* *" })), /2 fields/);
  await assert.rejects(put(daily({ timezone: "Mars/Olympus" })), /Mars/);
  await assert.rejects(put(daily({ name: "n".repeat(101) })), /longer than 100/);
  assert.deepEqual(await bench.schedules.list(), []);
});

Deno.test("S3: one that is damaged keeps no other waiting", async () => {
  await using bench = await Bench.open();
  await bench.store.schedules.write("broken", "{}");
  await bench.schedules.put(daily({ cron: "@every 1m" }));
  bench.scheduler(bench.store, 1000).start();
  await bench.clock.advance("3m");
  assert.equal((await bench.started()).length, 3);
  assert.equal(bench.logged.filter((line) => line.includes("cannot be followed")).length, 1, "told once");
});

/** Occurrences each minute of an execution that lasts until it is told. */
async function overlapping(place: "memory" | "kv", overlap: ScheduleSpec["overlap"]): Promise<Scene> {
  const scene = await Scene.open({
    place,
    flows: [WAIT],
    schedules: [{ name: "s", cron: "@every 1m", flow: "job", ...(overlap === undefined ? {} : { overlap }) }],
  });
  await scene.until("it owns all", () => scene.engine.owned.length === 4);
  return scene;
}

const at = (minute: number) => `s-20260101T00${String(minute).padStart(2, "0")}00Z`;

/** Lets minutes pass, and each time what is due be dealt with. */
async function minutes(scene: Scene, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    await scene.clock.advance("1m");
    await scene.until("what is due is dealt with", async () => {
      const { next } = await scene.engine.schedules.get("s");
      return next!.occurrence > scene.clock.now();
    });
  }
}

async function statuses(scene: Scene): Promise<Record<string, string>> {
  const { items } = await scene.client.list({ order: "oldest" });
  return Object.fromEntries(items.map(({ id, status }) => [id, status]));
}

/** Waits, without time going on, until there are these executions and no others. */
async function shows(scene: Scene, expected: Record<string, string>): Promise<void> {
  let found = {};
  try {
    await scene.until("these executions", async () => sameJson(found = await statuses(scene), expected));
  } catch {
    assert.deepEqual(found, expected);
  }
}

onStores("overlap: skip is the default; it goes on when the one before has ended", async (place) => {
  await using scene = await overlapping(place, undefined);
  await minutes(scene, 3);
  await shows(scene, { [at(1)]: "waiting" });
  await scene.client.signal(at(1), "go");
  await minutes(scene, 1);
  await shows(scene, { [at(1)]: "completed", [at(4)]: "waiting" });
  const { counts, running } = await scene.engine.schedules.get("s");
  assert.deepEqual([counts.started, counts.skipped, running], [2, 2, [at(4)]]);
  assert.equal(scene.logged.filter((line) => line.includes("the one before still runs")).length, 2);
});

onStores("overlap: buffer lets one wait, and starts it when the one before ends", async (place) => {
  await using scene = await overlapping(place, "buffer");
  await minutes(scene, 4);
  await shows(scene, { [at(1)]: "waiting" });
  assert.equal(iso((await scene.engine.schedules.get("s")).waiting!), "2026-01-01T00:02:00Z");
  await scene.client.signal(at(1), "go");
  // The clock stands still.
  await shows(scene, { [at(1)]: "completed", [at(2)]: "waiting" });
  const { counts, waiting } = await scene.engine.schedules.get("s");
  assert.deepEqual([counts.started, counts.skipped, waiting], [2, 2, undefined]);
});

onStores("overlap: allow starts all", async (place) => {
  await using scene = await overlapping(place, "allow");
  await minutes(scene, 3);
  await shows(scene, { [at(1)]: "waiting", [at(2)]: "waiting", [at(3)]: "waiting" });
});

onStores("overlap: cancel ends the one before, and then starts", async (place) => {
  await using scene = await overlapping(place, "cancel");
  await minutes(scene, 3);
  await shows(scene, { [at(1)]: "cancelled", [at(2)]: "cancelled", [at(3)]: "waiting" });
  assert.match((await scene.client.get(at(1))).cancelReason!, /2026-01-01T00:02:00Z/);
  // One after the other: the second began when the first had ended.
  const first = await scene.client.get(at(1)), second = await scene.client.get(at(2));
  assert.ok(second.createdAt >= first.endedAt!);
});

onStores("a sequential backfill waits for each; what is there is left alone", async (place) => {
  await using scene = await Scene.open({ place, flows: [WAIT] });
  const { schedules } = scene.engine, { clock, client } = scene;
  await schedules.put({ name: "s", cron: "@every 1m", flow: "job" });
  await schedules.pause("s");
  await clock.advance("3m30s");
  await client.start("job", {}, { id: at(2) });
  await client.signal(at(2), "go");
  await client.wait(at(2));
  await schedules.backfill("s", { from: clock.now() - 210_000, to: clock.now(), sequential: true });
  const before = "s-20260101T000000Z";
  await scene.until("the first is there", async () => (await statuses(scene))[before] === "waiting");
  await clock.advance("10s");
  await shows(scene, { [at(2)]: "completed", [before]: "waiting" });
  await client.signal(before, "go");
  await scene.until("the second is there", async () => (await statuses(scene))[at(1)] === "waiting");
  await client.signal(at(1), "go");
  await scene.until("the last is there", async () => (await statuses(scene))[at(3)] === "waiting");
  await scene.until("it is done", async () => (await schedules.get("s")).backfills === 0);
  const { counts } = await schedules.get("s");
  assert.deepEqual([counts.started, counts.existing], [3, 1]);
});

onStores("a flow that is not there: dead letters, and nothing is blocked", async (place) => {
  await using scene = await Scene.open({
    place,
    flows: [FLOW],
    workers: { k: () => ({}) },
    schedules: [{ name: "s", cron: "@every 1m", flow: "nobody" }],
    pollMs: 100,
  });
  await minutes(scene, 2);
  const { counts } = await scene.engine.schedules.get("s");
  assert.deepEqual([counts.refused, counts.started], [2, 0]);
  await scene.until("dead letters", async () => {
    await scene.clock.advance("1s");
    return (await scene.client.deadLetters()).items.length === 2;
  });
  await scene.client.register(flowOf(FLOW.replace("job", "nobody")));
  await minutes(scene, 1);
  await shows(scene, { [at(3)]: "completed" });
});

onStores("the input has the occurrence, the version is pinned", async (place) => {
  const old = flowOf(nodes("job", "id: a, type: task, kind: old")), seen: unknown[] = [];
  await using scene = await Scene.open({
    place,
    flows: [FLOW],
    workers: { k: () => assert.fail("the new version"), old: ({ context }) => void seen.push(context.input) },
  });
  await scene.client.register(old);
  await scene.client.register(flowOf(FLOW));
  const version = compileFlow(old).hash;
  await scene.engine.schedules.put({
    name: "s",
    cron: "@every 1m",
    flow: "job",
    version,
    input: { region: "eu", n: 2n ** 60n },
    occurrenceField: "day",
  });
  await minutes(scene, 1);
  await shows(scene, { [at(1)]: "completed" });
  assert.deepEqual(seen, [{ region: "eu", n: 2n ** 60n, day: "2026-01-01T00:01:00Z" }]);
});

Deno.test("of two engines one starts it, and the other when that has gone", async () => {
  await using scene = await Scene.open({
    flows: [FLOW],
    workers: { k: () => ({}) },
    schedules: [{ name: "s", cron: "@every 1m", flow: "job" }],
    pollMs: 1000,
    ownershipMs: 30_000,
  });
  const second = scene.newEngine(await scene.otherStore());
  await second.start();
  await minutes(scene, 2);
  assert.deepEqual(second.owned, []);
  await scene.engine.drain();
  await minutes(scene, 3);
  await scene.reaches(at(5), "completed");
  const started = Object.keys(await statuses(scene));
  assert.deepEqual(started, [1, 2, 3, 4, 5].map(at));
  assert.deepEqual((await second.schedules.get("s")).counts.started, 5);
});

Deno.test("a year on Deno KV survives closing it", async () => {
  const folder = await Deno.makeTempDir(), path = `${folder}/flows.kv`;
  try {
    const clock = new VirtualClock();
    for (let round = 1; round <= 3; round++) {
      await using store = await openKvStore({ path, clock, partitions: 1 });
      const flows = new Flows(store.definitions, clock);
      await flows.register(flowOf(FLOW));
      const schedules = new Schedules({ store, clock });
      await schedules.put(daily({ catchUp: "400d" }));
      await clock.advance(100 * DAY);
      const scheduler = new Scheduler({ store, clock, flows, logger: { log() {} } });
      while (!await scheduler.pass());
      assert.equal((await schedules.get("nightly")).counts.started, 100 * round);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
