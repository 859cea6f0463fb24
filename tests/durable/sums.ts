/**
 * The pipeline that most tests of recovery run: running sums by key into a sink that commits.
 *
 * @module
 */
import { createEnv, type Env } from "../../mod.ts";
import type { StateBackend } from "../../lib/checkpoint/backend.ts";
import type { Sink } from "../../lib/connector.ts";
import type { Duration } from "../../lib/duration.ts";
import type { Logger } from "../../lib/log.ts";
import { MemoryPages } from "../../lib/state/pages/memory.ts";
import { committingSink, CrashPoint, lastingBackend, Outside, type Sample, slowSource } from "./kit.ts";

/** Records of one split, with values from 0. */
export function many(length: number): readonly Sample[] {
  return Array.from({ length }, (_, i) => ({ key: `k${i % 5}`, at: i * 100, value: i }));
}
/** The input where a test does not say. */
export const RECORDS: readonly Sample[] = many(200);

/** What outlives a run. */
export interface World {
  readonly pages: MemoryPages;
  readonly outside: Outside;
  /** What was logged, a line each. */
  readonly log: string[];
}

/** Nothing has run yet. */
export function newWorld(): World {
  return { pages: new MemoryPages(), outside: new Outside(), log: [] };
}

/** How the pipeline differs from the usual one. */
export interface Shape {
  readonly partitions?: number;
  /** Id of the summing operator. */
  readonly id?: string;
  readonly records?: readonly Sample[];
  /** Whether the 50th record from the end fails. */
  readonly failAt?: () => boolean;
  readonly sink?: (sink: Sink) => Sink;
  readonly backend?: StateBackend;
  readonly interval?: Duration;
}

/** Running sums by key. */
export function sums(world: World, shape: Shape = {}): Env {
  const { records = RECORDS, partitions = 2, id = "sum", interval = "1ms", failAt } = shape;
  const logger: Logger = {
    log: (level, message, fields) => {
      world.log.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`);
    },
  };
  const sink = committingSink(world.outside, new CrashPoint());
  const env = createEnv({ name: "sums" }).withCheckpointing(interval, { retain: 3 }).withLogger(logger)
    .withStateBackend(shape.backend ?? lastingBackend(world.pages, new CrashPoint()));
  env.fromSource(slowSource({ a: records }, 4, 80), { id: "in", timestamp: ({ at }) => at })
    .map((sample) => {
      if (sample.value === records.length - 50 && failAt?.()) throw new Error("no such luck");
      return sample;
    }, { id: "check" })
    .keyBy(({ key }) => key, { partitions })
    .reduce((sum: number | undefined, { value }) => (sum ?? 0) + value, { id })
    .toSink(shape.sink?.(sink) ?? sink, { id: "out" });
  return env;
}

/** The sums by definition. */
export function expected(records: readonly Sample[]): number[] {
  const sums = new Map<string, number>();
  return records.map(({ key, value }) => {
    const sum = (sums.get(key) ?? 0) + value;
    sums.set(key, sum);
    return sum;
  });
}

/** Rows without their order, which partitions do not keep among keys. */
export function inOrder(rows: readonly unknown[]): number[] {
  return (rows as number[]).toSorted((a, b) => a - b);
}
