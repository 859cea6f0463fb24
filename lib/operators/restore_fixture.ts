/**
 * For tests of operators that go on from a checkpoint: runs the instances of one operator by hand, breaks off, and goes on with
 * others, perhaps more or fewer.
 *
 * What was frozen is written only when the instances it was taken from have gone on to the end of the input: nothing of that may be
 * in it. Snapshots go through their stored form.
 *
 * @module
 */
import assert from "node:assert/strict";
import type { Alarm, Clock } from "../clock.ts";
import { groupsOf, keyGroup, keyIdentity, partitionOf } from "../key.ts";
import { silentLogger } from "../log.ts";
import { Batch, type Channel, type Marker } from "../record.ts";
import type { Operator, OperatorContext, OperatorGauges } from "../runtime/operator.ts";
import {
  openDocument,
  openStateStore,
  type Partition,
  RESIDENT,
  sealDocument,
  type Section,
} from "../state/log/mod.ts";
import { MemoryPages } from "../state/pages/mod.ts";

/** Key groups of the pipeline. */
const GROUPS = 8;

/** A record of the input. */
export interface InputRecord {
  readonly key: unknown;
  readonly value: unknown;
  /** Event time, ms. */
  readonly at: number;
  /** The watermark that held before it. */
  readonly watermark: number;
}

/** What happens next: a batch, a watermark, or the clock moves. */
export type Step =
  | { readonly kind: "batch"; readonly records: readonly InputRecord[] }
  | { readonly kind: "watermark"; readonly time: number }
  | { readonly kind: "clock"; readonly by: number };

/** What has come out, by key, in order; and the values of records that failed. */
export interface Outcome {
  readonly rows: Record<string, unknown[]>;
  readonly failed: unknown[];
  /** Markers of the first instance. */
  readonly markers: Marker[];
}

/** What the instances held. */
export interface Checkpoint {
  readonly section: Section;
  readonly snapshots: readonly unknown[];
  readonly gauges: OperatorGauges;
  readonly now: number;
}

/** Makes an instance. */
export type Make = (context: OperatorContext) => Operator;

/** A clock that is set by hand, and calls nobody. */
export class HandClock implements Clock {
  constructor(public time: number) {}
  now(): number {
    return this.time;
  }
  monotonic(): number {
    return this.time;
  }
  schedule(): Alarm {
    return { cancel() {} };
  }
}

const CHANNEL: Channel = { group: 0, name: "source/0" };

/** The instances of one operator. */
export class Rig {
  readonly operators: Operator[] = [];
  readonly outcome: Outcome;
  readonly #partitions: Partition[] = [];
  readonly #gauges: OperatorGauges[] = [];
  readonly #wakes: number[] = [];
  readonly #clock: HandClock;
  readonly #store: Awaited<ReturnType<typeof openStateStore>>;
  #isRecording = true;

  private constructor(store: Awaited<ReturnType<typeof openStateStore>>, now: number, outcome: Outcome) {
    this.#store = store;
    this.#clock = new HandClock(now);
    this.outcome = outcome;
  }

  /**
   * Makes the instances, restored where there is a checkpoint to go on from.
   *
   * @param pages Where state is kept: the same for the checkpoint and what goes on from it.
   */
  static async open(
    make: Make,
    count: number,
    pages: MemoryPages,
    outcome: Outcome,
    from?: Checkpoint,
  ): Promise<Rig> {
    const store = await openStateStore({
      operator: "op",
      pages,
      limits: RESIDENT,
      maxKeyGroups: GROUPS,
      ...(from === undefined ? {} : { section: from.section }),
    });
    const rig = new Rig(store, from?.now ?? 1000, outcome);
    for (let i = 0; i < count; i++) rig.#partitions.push(store.partition(...groupsOf(i, count, GROUPS)));
    for (let i = 0; i < count; i++) rig.operators.push(make(rig.#context(i, count)));
    for (const partition of rig.#partitions) {
      await partition.load();
      assert.deepEqual(partition.unclaimed, [], "states that nobody asked for");
    }
    if (from !== undefined) {
      for (const operator of rig.operators) operator.restore!(from.snapshots);
      assert.deepEqual(rig.gauges, from.gauges, "gauges after the restore");
    }
    return rig;
  }

  #context(partition: number, partitions: number): OperatorContext {
    const gauges = { stateEntries: 0, timers: 0, late: 0, maxLateness: 0 }, { outcome } = this;
    this.#gauges.push(gauges);
    return {
      id: "op",
      partition,
      partitions,
      state: this.#partitions[partition],
      maxKeyGroups: GROUPS,
      paged: false,
      clock: this.#clock,
      logger: silentLogger,
      inputGroups: [0],
      channel: { group: 1, name: `op/${partition}` },
      output: () => ({
        batch: (batch) => {
          for (let i = 0; i < batch.length && this.#isRecording; i++) {
            const key = String(keyIdentity(batch.key(i)));
            (outcome.rows[key] ??= []).push([batch.values[i], batch.timestamp(i)]);
          }
        },
        marker: (marker) => {
          if (partition === 0 && this.#isRecording) outcome.markers.push(marker);
        },
      }),
      isRead: () => false,
      failed: (batch, i, error) => {
        if (this.#isRecording) outcome.failed.push([batch.values[i], (error as Error).message]);
      },
      dropped: () => {},
      wakeAt: (time) => this.#wakes[partition] = Math.min(this.#wakes[partition] ?? Infinity, time),
      gauges,
    };
  }

  /** Of all instances together. */
  get gauges(): OperatorGauges {
    const sum = (name: keyof OperatorGauges) =>
      this.#gauges.reduce((total, gauges) => total + gauges[name], 0);
    return { stateEntries: sum("stateEntries"), timers: sum("timers"), late: 0, maxLateness: 0 };
  }

  /** Gives a marker to all instances. */
  marker(marker: Marker): void {
    this.#settle();
    for (const operator of this.operators) operator.marker(marker);
  }

  /** The input's group opens. */
  opens(): void {
    this.marker({ kind: "open", group: 0, channels: [CHANNEL] });
  }

  /** The input is complete. */
  end(): void {
    this.marker({ kind: "end", complete: true });
  }

  /** Does what comes next. */
  step(step: Step): void {
    if (step.kind === "watermark") {
      return this.marker({ kind: "watermark", channel: CHANNEL, time: step.time });
    }
    this.#settle();
    if (step.kind === "clock") {
      this.#clock.time += step.by;
      this.operators.forEach((operator, i) => {
        if ((this.#wakes[i] ?? Infinity) > this.#clock.time) return;
        this.#wakes[i] = Infinity;
        operator.tick!(this.#clock.time);
      });
      return;
    }
    const count = this.operators.length;
    this.operators.forEach((operator, i) => {
      const own = step.records.filter(({ key }) => {
        return partitionOf(keyGroup(keyIdentity(key), GROUPS), count, GROUPS) === i;
      });
      if (own.length > 0) operator.batch(batchOf(own));
    });
  }

  #settle(): void {
    for (const partition of this.#partitions) assert.equal(partition.settle(), undefined);
  }

  /** Takes a checkpoint, goes on over `rest` to the end of the input, and only then writes what was frozen. */
  async checkpoint(rest: readonly Step[]): Promise<Checkpoint> {
    const snapshots = this.operators.map((operator) =>
      openDocument("snapshot", sealDocument(operator.snapshot!()))
    );
    const frozen = this.#partitions.map((partition) => partition.freeze());
    const { gauges } = this, now = this.#clock.time;
    this.#isRecording = false;
    for (const step of rest) this.step(step);
    this.end();
    const section = await this.#store.persist(frozen);
    await this.close();
    return { section, snapshots, gauges, now };
  }

  /** Ends what goes on behind it. */
  async close(): Promise<void> {
    await this.#store[Symbol.asyncDispose]();
  }
}

function batchOf(records: readonly InputRecord[]): Batch {
  return new Batch<unknown>(
    records.map(({ value }) => value),
    {
      channel: CHANNEL,
      source: "source",
      split: "0",
      timestamps: Float64Array.from(records, ({ at }) => at),
      watermarks: Float64Array.from(records, ({ watermark }) => watermark),
      firstOffset: undefined,
      offsets: undefined,
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

/** An outcome with nothing in it. */
export function emptyOutcome(): Outcome {
  return { rows: {}, failed: [], markers: [] };
}

/**
 * Runs over an input, breaking off at some steps.
 *
 * @param counts Numbers of instances: from the beginning, and after each break.
 * @param cuts In front of which steps it breaks off, one for each number of instances but the first, rising.
 */
export async function runWithBreaks(
  make: Make,
  steps: readonly Step[],
  counts: readonly number[],
  cuts: readonly number[],
): Promise<Outcome> {
  await using pages = new MemoryPages();
  const outcome = emptyOutcome();
  let from: Checkpoint | undefined;
  for (const [i, count] of counts.entries()) {
    const rig = await Rig.open(make, count, pages, outcome, from);
    rig.opens();
    const begin = i === 0 ? 0 : cuts[i - 1]!, until = cuts[i] ?? steps.length;
    for (const step of steps.slice(begin, until)) rig.step(step);
    if (i < counts.length - 1) from = await rig.checkpoint(steps.slice(until));
    else {
      rig.end();
      await rig.close();
    }
  }
  return outcome;
}

/** The same, without the order among keys. */
export function byKey({ rows, failed }: Outcome): { rows: Record<string, unknown[]>; failed: string[] } {
  return { rows, failed: failed.map((each) => JSON.stringify(each)).sort() };
}
