/**
 * Windows that go on from a checkpoint: the rows, late records and failed ones are those of a run without a break, whatever the
 * number of partitions before and after.
 *
 * What was frozen is written only when the run it was taken from has gone on to its end: nothing of that may be in it.
 *
 * @module
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { HandClock } from "../restore_fixture.ts";
import { groupsOf, keyGroup, keyIdentity, partitionOf } from "../../key.ts";
import { silentLogger } from "../../log.ts";
import { Batch, type Channel, type Marker } from "../../record.ts";
import type { Operator, OperatorContext, OperatorGauges } from "../../runtime/operator.ts";
import { ByteReader } from "../../state/log/bytes.ts";
import { decodeValue, valueBytes } from "../../state/log/codec.ts";
import { openStateStore, type Partition, RESIDENT, type Section } from "../../state/log/mod.ts";
import { MemoryPages } from "../../state/pages/mod.ts";
import { session, sliding, type TimeDomain, tumbling, type WindowAssigner } from "../../window/mod.ts";
import { elementsFold, type Fold, reduceFold } from "../fold.ts";
import { oneRow, windowOperator, type WindowSettings, type WindowTrigger } from "./mod.ts";

const GROUPS = 8;
const KEYS: readonly unknown[] = ["a", "b", 4, { part: 5 }, null];
/** Splits of the source: each has a watermark of its own. */
const CHANNELS: readonly Channel[] = ["0", "1"].map((split) => ({ group: 0, name: `source/${split}` }));
const EARLY = 10_000;

/** The values of a window, in the order in which they came. Mergeable. */
const VALUES: Fold = elementsFold((elements) => elements.map(({ value }) => value)) as Fold;
/** The same, not mergeable: sessions keep the records. Some it refuses. */
const REDUCED: Fold = reduceFold((acc, value) => {
  if ((value as number) % 7 === 3) throw new Error("not this one");
  return [...(acc as unknown[] | undefined) ?? [], value];
});

interface Case {
  readonly name: string;
  readonly assigner: WindowAssigner;
  readonly fold?: Fold;
  readonly time?: TimeDomain;
  readonly late?: number;
  readonly trigger?: WindowTrigger;
  /** Length of a unit of the input's times, ms. Default 1. */
  readonly unit?: number;
}

const HOUR = 3_600_000;
const BERLIN = { timezone: "Europe/Berlin" };
const CASES: readonly Case[] = [
  ...([
    ["tumbling", tumbling(10)],
    ["sliding", sliding(12, 4)],
    ["session", session(7)],
  ] as const).flatMap(([name, assigner]): Case[] => [
    { name, assigner },
    { name: `${name}, late`, assigner, late: 25 },
    { name: `${name}, very late`, assigner, late: 200 },
    { name: `${name}, reduced`, assigner, fold: REDUCED },
    { name: `${name}, reduced, late`, assigner, fold: REDUCED, late: 25 },
    { name: `${name}, every`, assigner, trigger: { every: 2 } },
    { name: `${name}, every, late`, assigner, late: 25, trigger: { every: 3 } },
    { name: `${name}, every, purge`, assigner, trigger: { every: 2, purge: true } },
    { name: `${name}, every, reduced, late`, assigner, fold: REDUCED, late: 25, trigger: { every: 2 } },
    { name: `${name}, early`, assigner, trigger: { early: EARLY } },
    { name: `${name}, early, purge, late`, assigner, late: 25, trigger: { early: EARLY, purge: true } },
    { name: `${name}, early and every`, assigner, trigger: { early: EARLY, every: 2, purge: true } },
    { name: `${name}, processing time`, assigner, time: "processing" },
    { name: `${name}, processing time, every`, assigner, time: "processing", trigger: { every: 2 } },
  ]),
  { name: "calendar days", assigner: tumbling("1d", BERLIN), late: 9 * HOUR, unit: HOUR },
  { name: "sliding calendar days", assigner: sliding("3d", "1d", BERLIN), late: 40 * HOUR, unit: HOUR },
  { name: "sliding calendar months", assigner: sliding("2mo", "1mo"), unit: 300 * HOUR },
];

interface Input {
  readonly key: unknown;
  readonly at: number;
  readonly n: number;
}
/** A batch, what time its split has come to, or a move of the clock: the ticks it asks for may come late. */
type Step =
  | {
    readonly kind: "batch";
    readonly split: number;
    readonly records: readonly (Input & { readonly watermark: number })[];
  }
  | { readonly kind: "watermark"; readonly split: number; readonly time: number }
  | { readonly kind: "clock"; readonly by: number; readonly ticks: boolean };

/** Records, more or less in order, in batches; the clock moves between some of them. */
function inputs({ unit = 1, time = "event" }: Case): fc.Arbitrary<Step[]> {
  const record = fc.record({
    key: fc.constantFrom(...KEYS),
    step: fc.oneof(
      { weight: 60, arbitrary: fc.integer({ min: 0, max: 1 }) },
      { weight: 10, arbitrary: fc.integer({ min: 2, max: 9 }) },
      { weight: 1, arbitrary: fc.integer({ min: 40, max: 120 }) },
    ),
    stray: fc.oneof(
      { weight: 4, arbitrary: fc.integer({ min: -8, max: 0 }) },
      { weight: 1, arbitrary: fc.integer({ min: -60, max: 10 }) },
    ),
  });
  const batch = fc.record({
    split: fc.constantFrom(0, 0, 0, 1),
    records: fc.array(record, { minLength: 1, maxLength: 8, size: "max" }),
    clock: fc.oneof(
      { weight: 2, arbitrary: fc.constant(0) },
      { weight: 1, arbitrary: fc.constant(EARLY) },
      { weight: time === "processing" ? 5 : 0, arbitrary: fc.integer({ min: 1, max: 9 }) },
    ),
    ticks: fc.boolean(),
  });
  return fc.array(batch, { minLength: 6, maxLength: 24, size: "max" }).map((batches) => {
    const steps: Step[] = [], watermarks = [-Infinity, -Infinity];
    let now = -20, n = 0;
    for (const { split, records, clock, ticks } of batches) {
      const made = records.map(({ key, step, stray }) => {
        now += step;
        const at = (now + stray) * unit, made = { key, at, n: n++, watermark: watermarks[split]! };
        watermarks[split] = Math.max(watermarks[split]!, at - 6 * unit);
        return made;
      });
      steps.push({ kind: "batch", split, records: made }, {
        kind: "watermark",
        split,
        time: watermarks[split]!,
      });
      if (clock > 0) steps.push({ kind: "clock", by: clock, ticks: ticks || clock === EARLY });
    }
    return steps;
  });
}

/** What came out. */
class Outcome {
  /** By key. */
  readonly rows: Record<string, unknown[]> = {};
  readonly late: unknown[] = [];
  readonly failed: unknown[] = [];

  row(batch: Batch, i: number): void {
    const window = batch.window(i);
    (this.rows[String(keyIdentity(batch.key(i)))] ??= []).push([batch.values[i], batch.timestamp(i), window]);
  }
  /** Without the order among keys. */
  sorted() {
    const sorted = (values: readonly unknown[]) => values.toSorted((a, b) => Number(a) - Number(b));
    return { rows: this.rows, late: sorted(this.late), failed: sorted(this.failed) };
  }
}

interface Checkpoint {
  readonly section: Section;
  readonly snapshots: readonly unknown[];
  readonly stateEntries: number;
  /** Of the splits. */
  readonly watermarks: readonly number[];
}

/** The instances of a window operator. */
class Rig {
  readonly #operators: Operator[] = [];
  readonly #gauges: OperatorGauges[] = [];
  readonly #wakes: number[] = [];
  readonly #watermarks = [-Infinity, -Infinity];
  readonly #clock: HandClock;
  outcome: Outcome;

  private constructor(
    private readonly store: Awaited<ReturnType<typeof openStateStore>>,
    clock: HandClock,
    outcome: Outcome,
  ) {
    this.#clock = clock;
    this.outcome = outcome;
  }

  readonly #partitions: Partition[] = [];

  static async open(
    setup: Case,
    count: number,
    pages: MemoryPages,
    now: number,
    outcome: Outcome,
    from?: Checkpoint,
  ): Promise<Rig> {
    const section = from === undefined ? {} : { section: from.section };
    const store = await openStateStore({
      operator: "w",
      pages,
      limits: RESIDENT,
      maxKeyGroups: GROUPS,
      ...section,
    });
    const rig = new Rig(store, new HandClock(now), outcome);
    for (let i = 0; i < count; i++) rig.#partitions.push(store.partition(...groupsOf(i, count, GROUPS)));
    rig.#partitions.forEach((_, i) => rig.#make(setup, i, count));
    for (const partition of rig.#partitions) {
      await partition.load();
      assert.deepEqual(partition.unclaimed, []);
    }
    if (from !== undefined) {
      for (const operator of rig.#operators) operator.restore!(from.snapshots);
      // Where one partition was behind another, what it had not come to give is given, and gone.
      const times = new Set(from.snapshots.map((snapshot) => (snapshot as { watermark: number }).watermark));
      if (times.size === 1) assert.equal(rig.stateEntries, from.stateEntries, "entries after the restore");
    }
    rig.#marker({ kind: "open", group: 0, channels: CHANNELS });
    from?.watermarks.forEach((time, split) => rig.step({ kind: "watermark", split, time }));
    return rig;
  }

  #make(setup: Case, partition: number, partitions: number): void {
    const { assigner, fold = VALUES, time = "event", late = 0, trigger } = setup;
    const settings: WindowSettings = {
      time,
      timezone: undefined,
      allowedLateness: late,
      trigger,
      fold,
      rows: oneRow(undefined),
    };
    const gauges = { stateEntries: 0, timers: 0, late: 0, maxLateness: 0 };
    const all = (batch: Batch, take: (i: number) => void) => batch.values.forEach((_, i) => take(i));
    const context: OperatorContext = {
      id: "w",
      partition,
      partitions,
      state: this.#partitions[partition],
      maxKeyGroups: GROUPS,
      paged: false,
      clock: this.#clock,
      logger: silentLogger,
      inputGroups: [0],
      channel: { group: 1, name: `w/${partition}` },
      output: (name) => ({
        batch: (batch) =>
          all(
            batch,
            (i) => name === undefined ? this.outcome.row(batch, i) : this.outcome.late.push(batch.values[i]),
          ),
        marker: () => {},
      }),
      isRead: (name) => name === "late",
      failed: (batch, i) => void this.outcome.failed.push(batch.values[i]),
      dropped: () => assert.fail(),
      wakeAt: (time) => this.#wakes[partition] = Math.min(this.#wakes[partition] ?? Infinity, time),
      gauges,
    };
    this.#gauges.push(gauges);
    this.#operators.push(windowOperator(assigner, settings, context));
  }

  get stateEntries(): number {
    return this.#gauges.reduce((sum, { stateEntries }) => sum + stateEntries, 0);
  }
  get now(): number {
    return this.#clock.time;
  }

  #marker(marker: Marker): void {
    for (const operator of this.#operators) operator.marker(marker);
  }

  step(step: Step): void {
    if (step.kind === "watermark") {
      this.#watermarks[step.split] = step.time;
      this.#marker({ kind: "watermark", channel: CHANNELS[step.split]!, time: step.time });
    } else if (step.kind === "clock") {
      this.#clock.time += step.by;
      if (!step.ticks) return;
      this.#operators.forEach((operator, i) => {
        if ((this.#wakes[i] ?? Infinity) > this.#clock.time) return;
        this.#wakes[i] = Infinity;
        operator.tick!(this.#clock.time);
      });
    } else {
      const count = this.#operators.length;
      this.#operators.forEach((operator, i) => {
        const own = step.records.filter(({ key }) =>
          partitionOf(keyGroup(keyIdentity(key), GROUPS), count, GROUPS) === i
        );
        if (own.length > 0) operator.batch(batchOf(step.split, own));
      });
    }
  }

  end(): void {
    this.#marker({ kind: "end", complete: true });
    assert.equal(this.stateEntries, 0, "entries after the end");
    assert.deepEqual(this.#partitions.map(({ live }) => live), this.#partitions.map(() => 0));
  }

  /** Freezes, runs `rest` on, and writes what was frozen only then. */
  async checkpoint(rest: readonly Step[]): Promise<Checkpoint> {
    const frozen = this.#partitions.map((partition) => partition.freeze());
    const snapshots = this.#operators.map((operator) => plain(operator.snapshot!()));
    const { stateEntries } = this, watermarks = [...this.#watermarks];
    this.outcome = new Outcome();
    for (const step of rest) this.step(step);
    this.end();
    const section = await this.store.persist(frozen);
    await this.store[Symbol.asyncDispose]();
    return { section, snapshots, stateEntries, watermarks };
  }
}

/** A batch of one split. */
function batchOf(split: number, records: readonly (Input & { readonly watermark: number })[]): Batch {
  return new Batch<unknown>(
    records.map(({ n }) => n),
    {
      channel: CHANNELS[split]!,
      source: "source",
      split: String(split),
      timestamps: Float64Array.from(records, ({ at }) => at),
      watermarks: Float64Array.from(records, ({ watermark }) => watermark),
      firstOffset: undefined,
      offsets: Float64Array.from(records, ({ n }) => n),
      headers: undefined,
      keys: undefined,
      texts: undefined,
      windows: undefined,
      bytes: 0,
    },
    undefined,
    records.map(({ key }) => key),
  );
}

/** A snapshot as it comes back from where it was stored. */
function plain(value: unknown): unknown {
  return decodeValue(new ByteReader(valueBytes(value)));
}

/** Runs an input; at each cut the rest of it goes on from a checkpoint, with another number of partitions. */
async function run(setup: Case, steps: readonly Step[], cuts: readonly number[], counts: readonly number[]) {
  const pages = new MemoryPages(), outcome = new Outcome();
  let rig = await Rig.open(setup, counts[0]!, pages, 0, outcome), at = 0;
  for (const [i, cut] of cuts.entries()) {
    for (; at < cut; at++) rig.step(steps[at]!);
    const { now } = rig, checkpoint = await rig.checkpoint(steps.slice(at));
    rig = await Rig.open(setup, counts[i + 1]!, pages, now, outcome, checkpoint);
  }
  for (; at < steps.length; at++) rig.step(steps[at]!);
  rig.end();
  return outcome.sorted();
}

for (const setup of CASES) {
  Deno.test(`${setup.name}: rows after a restore are those of a run without a break, also when rescaled`, async () => {
    const given = fc.tuple(
      inputs(setup),
      fc.tuple(fc.integer({ min: 5, max: 95 }), fc.integer({ min: 5, max: 95 })),
      fc.constantFrom([1, 3, 2], [1, 1, 1], [3, 3, 1], [2, 1, 4]),
    );
    await fc.assert(
      fc.asyncProperty(given, async ([steps, places, counts]) => {
        const cuts = places.map((percent) => Math.round(percent / 100 * steps.length)).sort((a, b) => a - b);
        const expected = await run(setup, steps, [], [1]);
        assert.deepEqual(await run(setup, steps, cuts, counts), expected);
      }),
      { numRuns: 40, unbiased: true },
    );
  });
}
