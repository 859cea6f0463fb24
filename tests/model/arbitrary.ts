/**
 * Inputs for the model and the engine.
 *
 * @module
 */
import fc from "fast-check";
import type { Step } from "./event_time_model.ts";

const KEYS = ["a", "b", "c"];

/** How far the time of a line of records moves on, and how far a record is from it. */
interface Move {
  readonly step: number;
  readonly stray: number;
}

function moves(): fc.Arbitrary<Move> {
  return fc.record({
    step: fc.oneof(
      { weight: 20, arbitrary: fc.integer({ min: 0, max: 5 }) },
      { weight: 1, arbitrary: fc.integer({ min: 60, max: 300 }) },
    ),
    stray: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      { weight: 4, arbitrary: fc.integer({ min: -15, max: 0 }) },
      { weight: 1, arbitrary: fc.integer({ min: -80, max: 80 }) },
    ),
  });
}

/** Records of one split. */
export function oneSplit(max = 50): fc.Arbitrary<Step[]> {
  const record = fc.record({ key: fc.constantFrom(...KEYS), move: moves() });
  const records = fc.array(record, { maxLength: max, size: "max" });
  return fc.tuple(fc.integer({ min: -50, max: 50 }), records).map(([start, records]) => {
    let now = start;
    return records.map(({ key, move }, n) => {
      now += move.step;
      return { kind: "record" as const, split: "0", key, at: now + move.stray, n };
    });
  });
}

/** Splits `0` … `count − 1`, interleaved, with idle and ended ones, and ones that are never read. */
export function severalSplits(count: number, max = 50): fc.Arbitrary<Step[]> {
  const names = Array.from({ length: count }, (_, i) => String(i));
  const step = fc.record({
    kind: fc.oneof(
      { weight: 24, arbitrary: fc.constant("record" as const) },
      { weight: 4, arbitrary: fc.constant("idle" as const) },
      { weight: 1, arbitrary: fc.constant("ended" as const) },
    ),
    split: fc.constantFrom(...names),
    key: fc.constantFrom(...KEYS),
    move: moves(),
  });
  return fc.array(step, { maxLength: max, size: "max" }).map((raw) => {
    const now = new Map(names.map((name) => [name, 0]));
    const ended = new Set<string>();
    const steps: Step[] = [];
    for (const { kind, split, key, move } of raw) {
      if (ended.has(split)) continue;
      if (kind === "ended") ended.add(split);
      if (kind !== "record") steps.push({ kind, split });
      else {
        now.set(split, now.get(split)! + move.step);
        steps.push({ kind, split, key, at: now.get(split)! + move.stray, n: steps.length });
      }
    }
    return steps;
  });
}

/** A way to cut an input into reads. */
export function cuts(): fc.Arbitrary<boolean[]> {
  return fc.array(fc.boolean(), { minLength: 1, maxLength: 12 });
}

/** Fixed windows: tumbling and sliding. */
export function fixedExtents(): fc.Arbitrary<{ kind: "fixed"; size: number; slide: number; offset: number }> {
  return fc.record({
    kind: fc.constant("fixed" as const),
    size: fc.integer({ min: 1, max: 24 }),
    slide: fc.integer({ min: 1, max: 24 }),
    offset: fc.integer({ min: -9, max: 9 }),
  }).map((extent) => ({ ...extent, slide: Math.min(extent.slide, extent.size) }));
}

/** How late a window takes records. */
export function lateness(): fc.Arbitrary<number> {
  return fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 60 }));
}

/** How far records may be out of order. */
export function bounds(): fc.Arbitrary<number> {
  return fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 30 }));
}
