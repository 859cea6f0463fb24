/**
 * Runs a model's input through the engine: a source that reads the steps, cut into reads as asked, and a clock that moves only
 * to make a split idle.
 *
 * @module
 */
import type { Alarm, Clock } from "../../lib/clock.ts";
import type { Source, SourceRead } from "../../lib/connector.ts";
import { boundedOutOfOrderness } from "../../lib/runtime/watermarks.ts";
import { createEnv, type Env } from "../../lib/stream/env.ts";
import type { RunHandle } from "../../lib/stream/handle.ts";
import type { Stream } from "../../lib/stream/stream.ts";
import { type Collected, collectingSink } from "../../lib/testing/mod.ts";
import type { ModelRecord, Step } from "./event_time_model.ts";

/** Value of a record: what the model knows of it, and an object that a careless reducer may change. */
export interface Item {
  readonly key: string;
  readonly at: number;
  readonly n: number;
  list: number[];
}

const IDLE_TIMEOUT = 1000;

/** Stands still but for {@link StillClock.time}; its alarms never ring. */
export class StillClock implements Clock {
  time = 0;
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

/** Reads steps. `cuts[i]` = a read ends behind step `i` (it does anyway where the split changes). */
export function stepSource(
  steps: readonly Step[],
  splits: readonly string[],
  cuts: readonly boolean[],
  clock: StillClock,
): Source<Item> {
  function* reads(): Generator<SourceRead<Item>> {
    const offsets = new Map<string, number>();
    for (let at = 0; at < steps.length; at++) {
      const step = steps[at]!;
      if (step.kind === "ended") yield { kind: "ended", split: step.split };
      else if (step.kind === "idle") {
        yield { kind: "empty", split: step.split };
        clock.time += IDLE_TIMEOUT;
        yield { kind: "empty", split: step.split };
      } else {
        const records: ModelRecord[] = [step];
        for (; !(cuts[at % cuts.length] ?? false); at++) {
          const next = steps[at + 1];
          if (next === undefined || next.kind !== "record" || next.split !== step.split) break;
          records.push(next);
        }
        const firstOffset = offsets.get(step.split) ?? 0, position = firstOffset + records.length;
        offsets.set(step.split, position);
        yield {
          kind: "records",
          split: step.split,
          values: records.map(({ key, at, n }) => ({ key, at, n, list: [n] })),
          timestamps: Float64Array.from(records, (r) => r.at),
          firstOffset,
          position,
        };
      }
    }
    for (;;) yield { kind: "end" };
  }
  return {
    type: "steps",
    describe: () => ({}),
    open: () => {
      const all = reads();
      return { splits, read: () => all.next().value, close() {} };
    },
  };
}

/** How an input is run. */
export interface Setting {
  readonly bufferSize: number;
  readonly partitions: number;
  readonly cuts: readonly boolean[];
}

/** What came out. */
export interface EngineResult<Row> {
  readonly rows: readonly Collected<Row>[];
  /** What came out of the streams named, in their order. */
  readonly others: readonly (readonly Collected<unknown>[])[];
  readonly handle: RunHandle;
  readonly env: Env;
}

/** Runs steps through what `build` makes of them. The first stream it returns gives the rows. */
export async function runSteps<Row>(
  steps: readonly Step[],
  splits: readonly string[],
  bound: number,
  setting: Setting,
  build: (stream: Stream<Item>, partitions: number) => readonly [Stream<Row>, ...Stream<unknown>[]],
): Promise<EngineResult<Row>> {
  const clock = new StillClock();
  const env = createEnv().withClock(clock).withBufferSize(setting.bufferSize);
  const source = env.fromSource(stepSource(steps, splits, setting.cuts, clock), {
    watermarks: boundedOutOfOrderness(bound, { idleTimeout: IDLE_TIMEOUT }),
  });
  const [main, ...others] = build(source, setting.partitions);
  const out = collectingSink<Row>();
  main.toSink(out.sink);
  const sides = others.map((stream) => {
    const side = collectingSink<unknown>();
    stream.toSink(side.sink);
    return side;
  });
  const handle = env.start();
  await handle.done;
  return { rows: out.records, others: sides.map((side) => side.records), handle, env };
}

/** Buffer sizes and partition counts that every property is tried with. */
export const BUFFER_SIZES: readonly number[] = [1, 2, 3, 7, 64, 1024];
export const PARTITIONS: readonly number[] = [1, 2, 3, 8];

/** All buffer sizes and all partition counts, each with one of the ways to cut the input. */
export function settings(cuts: readonly boolean[]): Setting[] {
  const ways = [[false], cuts, [true]];
  return Array.from({ length: Math.max(BUFFER_SIZES.length, PARTITIONS.length) }, (_, i) => ({
    bufferSize: BUFFER_SIZES[i % BUFFER_SIZES.length]!,
    partitions: PARTITIONS[i % PARTITIONS.length]!,
    cuts: ways[i % ways.length]!,
  }));
}

/** Entries by key, each key's in their order. */
export function byKey<T>(entries: readonly T[], keyOf: (entry: T) => unknown): Record<string, T[]> {
  const groups: Record<string, T[]> = {};
  for (const entry of entries) (groups[String(keyOf(entry))] ??= []).push(entry);
  return groups;
}
