/**
 * Operators that go on from a checkpoint give what those do that were never stopped, whatever the number of partitions before and after.
 * Windows of time have a test of their own.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { Batch, type Channel, type Marker } from "../record.ts";
import { boundedOutOfOrderness, punctuated } from "../runtime/watermarks.ts";
import type { OperatorContext } from "../runtime/operator.ts";
import { MemoryPages } from "../state/pages/mod.ts";
import { count, global, type WindowAssigner } from "../window/mod.ts";
import { AssignTimestampsOperator } from "./assign_timestamps.ts";
import { DedupeOperator } from "./dedupe.ts";
import { elementsFold, type Fold, reduceFold } from "./fold.ts";
import type { KeyedContext } from "./process/context.ts";
import { KeyedProcessOperator } from "./process/keyed.ts";
import { byKey, emptyOutcome, type Make, Rig, runWithBreaks, type Step } from "./restore_fixture.ts";
import { RunningOperator } from "./running.ts";
import { RunningTtlOperator } from "./running_ttl.ts";
import { oneRow, windowOperator, type WindowSettings, type WindowTrigger } from "./window/mod.ts";

const KEYS: readonly unknown[] = ["a", "b", "c", 4, { part: 5 }, null, "g", "\u0000"];

/** Records more or less in order, in batches; watermarks follow, the clock moves now and then. */
const inputs: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    records: fc.array(
      fc.record({
        key: fc.constantFrom(...KEYS),
        step: fc.integer({ min: 0, max: 4 }),
        stray: fc.integer({ min: -12, max: 0 }),
      }),
      { minLength: 1, maxLength: 8 },
    ),
    clock: fc.constantFrom(0, 0, 1, 7, 30),
  }),
  { minLength: 3, maxLength: 20, size: "max" },
).map((batches) => {
  const steps: Step[] = [];
  let now = 0, watermark = -Infinity, n = 0;
  for (const { records, clock } of batches) {
    const made = records.map(({ key, step, stray }) => {
      now += step;
      const record = { key, value: n++, at: now + stray, watermark };
      watermark = Math.max(watermark, record.at - 6);
      return record;
    });
    steps.push({ kind: "batch", records: made }, { kind: "watermark", time: watermark });
    if (clock > 0) steps.push({ kind: "clock", by: clock });
  }
  return steps;
});

/** Compares runs with one and two breaks with one that has none. */
async function compare(make: Make, counts: readonly (readonly number[])[] = [[1, 1], [2, 2], [1, 3, 2]]) {
  await fc.assert(
    fc.asyncProperty(inputs, fc.nat(), fc.nat(), async (steps, a, b) => {
      for (const numbers of counts) {
        const unbroken = byKey(await runWithBreaks(make, steps, [numbers[0]!], []));
        const cuts = [a % (steps.length + 1), b % (steps.length + 1)].sort((x, y) => x - y);
        const broken = await runWithBreaks(make, steps, numbers, cuts.slice(0, numbers.length - 1));
        assert.deepEqual(byKey(broken), unbroken, `partitions ${numbers}, breaks ${cuts}`);
      }
    }),
    { numRuns: 60 },
  );
}

/** Keeps the list of what came, refusing some. */
const LIST: Fold = reduceFold((acc, value) => {
  if ((value as number) % 7 === 3) throw new Error("not this one");
  return [...(acc as unknown[] | undefined) ?? [], value];
});
/** Changes its accumulator in place, and says how records were numbered relative to each other. */
const IN_PLACE: Fold = elementsFold((elements) => elements.map(({ value }) => value)) as Fold;

Deno.test("reduce and aggregate go on with the accumulators, also those changed in place", async () => {
  await compare((context) => new RunningOperator(LIST, undefined, context));
  await compare((context) => new RunningOperator(IN_PLACE, (result, key) => ({ key, result }), context));
});

Deno.test("reduce and aggregate: the numbers of records go on, and rise for each key", async () => {
  const numbers: Fold = {
    create: () => [],
    add: (acc, _value, _timestamp, sequence) => [...acc as number[], sequence],
    result: (acc) => acc,
  };
  const make: Make = (context) => new RunningOperator(numbers, undefined, context);
  await compare(make, [[1, 1]]);
  const step = (key: string): Step => ({
    kind: "batch",
    records: [{ key, value: 0, at: 0, watermark: 0 }],
  });
  const { rows } = await runWithBreaks(make, [step("a"), step("b"), step("c"), step("a")], [1, 3], [3]);
  const last = rows["a"]!.at(-1) as [number[], number];
  assert.deepEqual(last[0].length, 2);
  assert.ok(last[0][1]! > 3, `${last[0]}`);
});

for (const ttl of [5, 40, Infinity]) {
  Deno.test(`dedupe with ttl ${ttl} forgets after a restore what it would have forgotten`, async () => {
    await compare((context) => new DedupeOperator(ttl, context));
  });
}

for (const ttl of [5, 40]) {
  Deno.test(`running results with ttl ${ttl} forget after a restore what they would have forgotten`, async () => {
    await compare((context) => new RunningTtlOperator(LIST, undefined, ttl, context));
    await compare((context) =>
      new RunningTtlOperator(IN_PLACE, (result, key) => ({ key, result }), ttl, context)
    );
  });
}

Deno.test("U2: dedupe goes on from its watermark while its input has not opened", async () => {
  await using pages = new MemoryPages();
  const make: Make = (context) => new DedupeOperator(10, context);
  const record = (at: number, watermark: number): Step => ({
    kind: "batch",
    records: [{ key: "k", value: at, at, watermark }],
  });
  const first = await Rig.open(make, 1, pages, emptyOutcome());
  first.opens();
  first.step(record(100, -Infinity));
  first.step({ kind: "watermark", time: 109 });
  const again = await Rig.open(make, 1, pages, emptyOutcome(), await first.checkpoint([]));
  again.step(record(105, -Infinity));
  assert.deepEqual(again.outcome.rows, {}, "the key is known up to watermark 110");
  again.opens();
  again.step(record(101, 110));
  assert.deepEqual(again.outcome.rows, { k: [[101, 101]] });
  await again.close();
});

function windows(assigner: WindowAssigner, fold: Fold, trigger?: WindowTrigger): Make {
  const settings: WindowSettings = {
    time: "event",
    timezone: undefined,
    allowedLateness: 0,
    trigger,
    fold,
    rows: oneRow(undefined),
  };
  return (context) => windowOperator(assigner, settings, context);
}

const WINDOWS: readonly (readonly [string, Make])[] = [
  ["count 3", windows(count(3), IN_PLACE)],
  ["count 3, reduced", windows(count(3), LIST)],
  ["count 5 every 2", windows(count(5, 2), IN_PLACE)],
  ["count 5 every 2, reduced", windows(count(5, 2), LIST)],
  ["global", windows(global(), LIST)],
  ["global, every 2", windows(global(), IN_PLACE, { every: 2 })],
  ["global, every 3, purge", windows(global(), IN_PLACE, { every: 3, purge: true })],
  ["global, early", windows(global(), IN_PLACE, { early: 5 })],
];
for (const [name, make] of WINDOWS) {
  // One clock wakes one instance for all its keys: which early rows there are depends on the partitions.
  const counts = name.includes("early") ? [[1, 1], [3, 3]] : undefined;
  Deno.test(`windows go on: ${name}`, () => compare(make, counts));
}

type Context = KeyedContext<unknown, unknown>;

/** Works with everything there is. `rest` is run last in each call that is to fail. */
function everything(context: Context, n: number): void {
  const value = context.value<number>("value"), list = context.list<number>("list");
  const map = context.map<number, number>("map"), sum = context.reducing<number>("sum", (a, b) => a + b);
  const short = context.value<number>("short", { ttl: 9 });
  const clock = context.list<number>("clock", { ttl: 8, ttlTime: "processing" });
  context.emit([
    n,
    value.get(),
    list.get(),
    map.entries(),
    map.size,
    sum.get(),
    short.get(),
    clock.get(),
  ]);
  value.set(n);
  if (n % 4 === 0) list.set([n]);
  else if (n % 11 === 0) list.clear();
  else list.add(n);
  map.delete((n + 3) % 6);
  map.set(n % 6, n);
  if (n % 13 === 0) map.clear();
  sum.add(n);
  if (n % 9 === 0) sum.clear();
  if (n % 2 === 0) short.set(n);
  clock.add(n);
  context.setEventTimer(context.timestamp + n % 20);
  context.setEventTimer(context.timestamp + (n * 7) % 31, "named");
  context.setEventTimer(100, `late ${n % 5}`);
  context.setProcessingTimer(1000 + n * 3, "alarm");
  if (n % 3 === 0) context.deleteEventTimer("named");
  if (n % 10 === 0) context.deleteProcessingTimer("alarm");
}

/** @param failing What happens to every fifth record: it is worked on and fails, or is not worked on. */
function process(failing: "fails" | "is left out"): Make {
  const fails = (n: number) => n % 5 === 3;
  return (context) =>
    new KeyedProcessOperator({
      onRecord: (value, keyed) => {
        const n = value as number;
        if (!fails(n) || failing === "fails") everything(keyed, n);
        if (fails(n)) throw new Error("refused");
      },
      onTimer: ({ name, time, domain }, keyed) => {
        const fired = keyed.list<unknown>("fired"), isRefused = time % 6 === 1;
        if (!isRefused || failing === "fails") {
          keyed.emit([name ?? "", time, domain, keyed.value("value").get(), fired.get().length], {
            timestamp: 0,
          });
          fired.add([name ?? "", time]);
          if (time % 4 === 0 && time < 90) keyed.setEventTimer(time + 1, "next");
        }
        if (isRefused) throw new Error("refused");
      },
    }, context);
}

Deno.test("process: state, ttls and timers go on, each timer fires once and in its order", async () => {
  await compare(process("fails"), [[1, 1], [3, 3], [1, 3, 2]]);
});

Deno.test("Q5: a call that throws leaves no trace in what comes after it", async () => {
  await fc.assert(
    fc.asyncProperty(inputs, async (steps) => {
      const [failing, leftOut] = await Promise.all([
        runWithBreaks(process("fails"), steps, [2], []),
        runWithBreaks(process("is left out"), steps, [2], []),
      ]);
      assert.deepEqual(byKey(failing), byKey(leftOut));
    }),
    { numRuns: 60 },
  );
});

Deno.test("process: timers that came due while nothing ran fire at once, in order", async () => {
  await using pages = new MemoryPages();
  const make: Make = (context) =>
    new KeyedProcessOperator({
      onRecord: (_, keyed) => {
        for (const name of ["c", "a", "b"]) keyed.setProcessingTimer(1050, name);
        keyed.setProcessingTimer(1040, "first");
        keyed.setProcessingTimer(9999, "never");
      },
      onTimer: ({ name }, keyed) => keyed.emit(name),
    }, context);
  const first = await Rig.open(make, 1, pages, emptyOutcome());
  first.opens();
  first.step({ kind: "batch", records: [{ key: "k", value: 0, at: 0, watermark: 0 }] });
  const checkpoint = await first.checkpoint([]);
  const again = await Rig.open(make, 1, pages, emptyOutcome(), { ...checkpoint, now: 2000 });
  again.step({ kind: "clock", by: 0 });
  assert.deepEqual(again.outcome.rows["k"]!.map((row) => (row as unknown[])[0]), ["first", "c", "a", "b"]);
  assert.equal(again.gauges.timers, 1);
  await again.close();
});

Deno.test("V6: after a restore the watermark goes on, and is announced once more", async () => {
  await using pages = new MemoryPages();
  const seen: number[] = [];
  const make: Make = (context) =>
    new KeyedProcessOperator({ onRecord: (_, { watermark }) => void seen.push(watermark) }, context);
  const record = (watermark: number): Step => ({
    kind: "batch",
    records: [{ key: "k", value: 0, at: 0, watermark }],
  });
  const first = await Rig.open(make, 2, pages, emptyOutcome());
  first.opens();
  first.step({ kind: "watermark", time: 70 });
  const again = await Rig.open(make, 3, pages, emptyOutcome(), await first.checkpoint([]));
  again.step(record(-Infinity)); // comes before the group opens
  again.opens();
  again.step(record(20));
  again.step({ kind: "watermark", time: 30 });
  again.step(record(71));
  assert.deepEqual(seen, [70, 70, 71]);
  const [open, watermark, ...others] = again.outcome.markers;
  assert.equal(open!.kind, "open");
  assert.deepEqual(watermark, { kind: "watermark", channel: { group: 1, name: "op/0" }, time: 70 });
  assert.deepEqual(others, [], "and no watermark that says less");
  await again.close();
});

for (const failing of ["state_version", "migrate"] as const) {
  Deno.test(`state that cannot be brought to the version of the program ends the run, whatever is done with bad records (${failing})`, async () => {
    await using pages = new MemoryPages();
    const make = (version: number): Make => (context) =>
      new KeyedProcessOperator({
        onRecord: (value, keyed) =>
          keyed.value("total", {
            version,
            ...(failing === "migrate" && version === 2
              ? {
                migrate: () => {
                  throw new Error("cannot be migrated");
                },
              }
              : {}),
          }).set(value),
      }, context);
    const step: Step = { kind: "batch", records: [{ key: "k", value: 1, at: 0, watermark: 0 }] };
    const first = await Rig.open(make(1), 1, pages, emptyOutcome());
    first.step(step);
    const again = await Rig.open(make(2), 1, pages, emptyOutcome(), await first.checkpoint([]));
    assert.throws(() => again.step(step), (error: Error & { code?: string }) => {
      if (failing === "migrate") return error.message === "cannot be migrated";
      assert.equal(error.code, "state_version");
      assert.match(error.message, /operator "op", state "state:total" was stored in version 1, .* version 2/);
      return true;
    });
    await again.close();
  });
}

/** `assignTimestamps` of values that are times, and what it says. */
function assigning(partition: number, partitions: number, strategy: "bounded" | "punctuated") {
  const said: string[] = [];
  const context = {
    id: "op",
    partition,
    partitions,
    inputGroups: [0],
    channel: { group: 9, name: "op/0" },
    output: () => ({
      batch: (batch: Batch) =>
        said.push(`${batch.values} after ${Array.from(batch.values, (_, i) => batch.watermark(i))}`),
      marker: (marker: Marker) =>
        said.push(marker.kind === "watermark" ? `watermark ${marker.time}` : marker.kind),
    }),
    failed: () => assert.fail(),
  } as unknown as OperatorContext;
  const watermarks = strategy === "bounded"
    ? boundedOutOfOrderness(2)
    : punctuated<unknown>((value) => (value as number) - 2);
  return { operator: new AssignTimestampsOperator((value) => value as number, watermarks, context), said };
}

function timesOf(channel: Channel, values: readonly number[]): Batch {
  return new Batch<unknown>([...values], {
    channel,
    source: "s",
    split: "0",
    timestamps: new Float64Array(values.length),
    watermarks: new Float64Array(values.length),
    firstOffset: 0,
    offsets: undefined,
    headers: undefined,
    keys: undefined,
    texts: undefined,
    windows: undefined,
    bytes: 0,
  });
}

for (const strategy of ["bounded", "punctuated"] as const) {
  Deno.test(`assignTimestamps: the watermark of each channel goes on, and is announced once more (${strategy})`, () => {
    const left: Channel = { group: 0, name: "s/l" }, right: Channel = { group: 0, name: "s/r" };
    const { operator } = assigning(0, 1, strategy);
    operator.batch(timesOf(left, [10, 50]));
    operator.batch(timesOf(right, [20]));
    const again = assigning(0, 1, strategy);
    again.operator.restore([operator.snapshot()]);
    const third = assigning(0, 1, strategy);
    third.operator.restore([again.operator.snapshot()]); // it had not heard of any channel yet
    const renamed = { ...left }; // another object in another run
    third.operator.batch(timesOf(renamed, [12, 51]));
    third.operator.batch(timesOf({ ...right }, [3]));
    third.operator.batch(timesOf({ group: 0, name: "s/new" }, [3]));
    assert.deepEqual(third.said, [
      "12,51 after 48,48",
      "watermark 49",
      "3 after 18",
      "watermark 18",
      "3 after -Infinity",
      "watermark 1",
    ]);
  });
}

Deno.test("assignTimestamps: among other partitions a channel goes on from the one that was least far, so that nothing is late", () => {
  const channel: Channel = { group: 0, name: "s/0" };
  const snapshots = [10, 90].map((time, partition) => {
    const { operator } = assigning(partition, 2, "bounded");
    operator.batch(timesOf(channel, [time]));
    return operator.snapshot();
  });
  const same = assigning(1, 2, "bounded"), other = assigning(0, 1, "bounded");
  for (const { operator } of [same, other]) {
    operator.restore(snapshots);
    operator.batch(timesOf(channel, [1]));
  }
  assert.deepEqual([same.said[0], other.said[0]], ["1 after 88", "1 after 8"]);
});
