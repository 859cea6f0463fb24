/**
 * Windows as the rules say, and in no other way: every window keeps all of its records, everything is looked up by going
 * through everything. Slow, short, and independent of the engine.
 *
 * @module
 */
import { EventTimeModel, type ModelRecord, type Step } from "./event_time_model.ts";

/** What is asked of the windows. */
export type WindowKind =
  | { readonly kind: "fixed"; readonly size: number; readonly slide: number; readonly offset: number }
  | { readonly kind: "session"; readonly gap: number }
  | { readonly kind: "count"; readonly size: number; readonly slide: number };

/** A row: who is in it, in order of arrival. */
export interface ModelRow {
  readonly key: string;
  /** Undefined for count windows. */
  readonly window: { readonly start: number; readonly end: number } | undefined;
  readonly timestamp: number;
  readonly records: readonly ModelRecord[];
}

/** What the windows gave. */
export interface ModelResult {
  readonly rows: ModelRow[];
  readonly late: ModelRecord[];
}

interface OpenWindow {
  readonly key: string;
  readonly start: number;
  readonly end: number;
  readonly records: ModelRecord[];
  closed: boolean;
}

/** What becomes of a record between source and windows. */
export type Derive = (record: ModelRecord) => readonly ModelRecord[];

/** Runs an input through windows to its end. `derive` stands in front: watermarks are those of all records it is given. */
export function modelWindows(
  steps: readonly Step[],
  splits: readonly string[],
  bound: number,
  windows: WindowKind,
  lateness: number,
  derive: Derive = (record) => [record],
): ModelResult {
  return windows.kind === "count"
    ? modelCounts(steps, windows.size, windows.slide)
    : modelTimes(steps, new EventTimeModel(splits, bound), windows, lateness, derive);
}

function modelTimes(
  steps: readonly Step[],
  time: EventTimeModel,
  windows: Exclude<WindowKind, { kind: "count" }>,
  lateness: number,
  derive: Derive,
): ModelResult {
  const rows: ModelRow[] = [], late: ModelRecord[] = [];
  let held: OpenWindow[] = [];
  const give = (window: OpenWindow) => {
    const { key, start, end, records } = window;
    const inOrder = records.toSorted((a, b) => a.n - b.n);
    rows.push({ key, window: { start, end }, timestamp: end - 1, records: inOrder });
  };
  const fire = (watermark: number) => {
    const due = held.filter((w) => !w.closed && w.end <= watermark).sort((a, b) => a.end - b.end);
    for (const window of due) {
      window.closed = true;
      give(window);
    }
    held = held.filter((w) => w.end + lateness > watermark);
  };
  const take = (record: ModelRecord, places: readonly { start: number; end: number }[]) => {
    for (const { start, end } of places) {
      let window = held.find((w) => w.key === record.key && w.start === start && w.end === end);
      if (window === undefined) {
        held.push(window = { key: record.key, start, end, records: [], closed: end <= time.watermark });
      }
      window.records.push(record);
      if (window.closed) give(window);
    }
  };
  const place = (record: ModelRecord) => {
    const passed = Math.max(time.own(record.split), time.watermark);
    const inTime = (window: { end: number }) => window.end + lateness > passed;
    if (windows.kind === "fixed") {
      const places = fixedWindows(windows, record.at).filter(inTime);
      if (places.length === 0) late.push(record);
      return take(record, places);
    }
    // The session it would be in: its own stretch and all it touches.
    const own = { start: record.at, end: record.at + windows.gap };
    const touched = held.filter((w) => w.key === record.key && w.start < own.end && own.start < w.end);
    const start = Math.min(own.start, ...touched.map((w) => w.start));
    const end = Math.max(own.end, ...touched.map((w) => w.end));
    if (!inTime({ end })) return late.push(record);
    held = held.filter((w) => !touched.includes(w));
    const records = [...touched.flatMap((w) => w.records), record];
    const merged: OpenWindow = { key: record.key, start, end, records, closed: end <= time.watermark };
    held.push(merged);
    if (merged.closed) give(merged);
  };
  for (const step of steps) {
    if (step.kind === "idle") time.idle(step.split);
    else if (step.kind === "ended") time.ended(step.split);
    else {
      time.come(step.split);
      fire(time.watermark); // what is due at the watermark the record carries comes before it
      for (const record of derive(step)) place(record);
      time.went(step.split, step.at);
    }
    fire(time.watermark);
  }
  fire(Infinity);
  return { rows, late };
}

/** All windows that hold `at`, found by trying: starts are `offset` and any whole number of slides from it. */
function fixedWindows(
  { size, slide, offset }: { size: number; slide: number; offset: number },
  at: number,
): { start: number; end: number }[] {
  const found = [];
  for (let start = at - size + 1; start <= at; start++) {
    if ((((start - offset) % slide) + slide) % slide === 0) found.push({ start, end: start + size });
  }
  return found;
}

function modelCounts(steps: readonly Step[], size: number, slide: number): ModelResult {
  const rows: ModelRow[] = [];
  const seen = new Map<string, ModelRecord[]>();
  const give = (key: string, all: readonly ModelRecord[]) => {
    const records = all.slice(-size);
    rows.push({ key, window: undefined, timestamp: Math.max(...records.map((r) => r.at)), records });
  };
  for (const step of steps) {
    if (step.kind !== "record") continue;
    const all = seen.get(step.key) ?? [];
    seen.set(step.key, all);
    all.push(step);
    if (all.length % slide === 0) give(step.key, all);
  }
  for (const [key, all] of seen) {
    const fresh = all.length % slide;
    // Tumbling windows purge: the rest is what came since. Sliding ones look back over `size`.
    if (fresh > 0) give(key, slide === size ? all.slice(-fresh) : all);
  }
  return { rows, late: [] };
}
