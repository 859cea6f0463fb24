/**
 * The hand-written, tuned loops: what one thread of V8 does with the same input and the same answers.
 * They are the denominator of the engine's tax, so they know everything an engine may not: the shape of the records,
 * that one split is read in order, and that nothing has to be checkpointed, stopped or observed.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import {
  DISORDER_MS,
  EVENT_BYTES,
  type Inputs,
  type Order,
  type Sale,
  type Visit,
  type Workload,
} from "./data.ts";
import { FeeTally, RunningTally, SessionTally, type Sums, WindowTally } from "./tally.ts";

/** Runs the loop of a workload over its input, from the first record to the last window. */
export function runLoop<W extends Workload>(name: W, input: Inputs[W]): Sums {
  return LOOPS[name](input);
}

const LOOPS: { readonly [W in Workload]: (input: Inputs[W]) => Sums } = {
  "W-a": addFees,
  "W-b": runningSums,
  "W-c": tumblingSums,
  "W-d": slidingCounts,
  "W-e": sessions,
};

function addFees(input: readonly Order[]): Sums {
  const tally = new FeeTally();
  for (let i = 0; i < input.length; i++) {
    const { id, customer, amount, status, ts } = input[i]!;
    if (status === "completed") tally.add({ id, customer, amount, status, ts, fee: amount * 0.125 });
  }
  return tally.sums();
}

function runningSums(input: readonly Sale[]): Sums {
  const tally = new RunningTally();
  const sums = new Map<string, { sum: number }>(); // cells changed in place: one look-up a record, not two
  for (let i = 0; i < input.length; i++) {
    const { key, value } = input[i]!;
    let cell = sums.get(key);
    if (cell === undefined) sums.set(key, cell = { sum: 0 });
    tally.add(key, cell.sum += value);
  }
  return tally.sums();
}

const TUMBLE_MS = 10_000;

function tumblingSums(input: readonly Uint8Array[]): Sums {
  interface Cell {
    count: number;
    sum: number;
  }
  const tally = new WindowTally(1, TUMBLE_MS, 1);
  const windows = new Map<number, Map<string, Cell>>(); // by start
  let written = 0;
  let highest = 0; // timestamp
  let due = Infinity; // end of the earliest open window
  let start = -1, cells = new Map<string, Cell>(); // the window of the record before

  const fire = (watermark: number): void => {
    due = Infinity;
    for (const [start, cells] of windows) {
      const end = start + TUMBLE_MS;
      if (end > watermark) {
        due = Math.min(due, end);
        continue;
      }
      for (const [customer, { count, sum }] of cells) {
        tally.add(customer, start, count, sum);
        written += Buffer.from(JSON.stringify({ customer, start, end, count, sum }), "latin1").length;
      }
      windows.delete(start);
    }
    start = -1;
  };

  for (let i = 0; i < input.length; i++) {
    const { customer, amount, ts } = JSON.parse(latin1(input[i]!)) as Order;
    if (ts < start || ts >= start + TUMBLE_MS) {
      start = ts - ts % TUMBLE_MS;
      const open = windows.get(start);
      if (open === undefined) {
        windows.set(start, cells = new Map());
        due = Math.min(due, start + TUMBLE_MS);
      } else cells = open;
    }
    const cell = cells.get(customer);
    if (cell === undefined) cells.set(customer, { count: 1, sum: amount });
    else {
      cell.count++;
      cell.sum += amount;
    }
    if (ts > highest) {
      highest = ts;
      if (highest - DISORDER_MS >= due) fire(highest - DISORDER_MS);
    }
  }
  fire(Infinity);
  if (written < input.length / EVENT_BYTES) throw new Error("fewer bytes written than rows can have");
  return tally.sums();
}

/** Text of bytes that are known to be ASCII; the view may or may not be a `Buffer`. */
function latin1(bytes: Uint8Array): string {
  return Buffer.prototype.latin1Slice.call(bytes);
}

const SLIDE_MS = 2000;
const PANES = 5; // size ÷ slide
const RING = 8; // panes kept a key: those of a window and of the disorder behind it, a power of two

function slidingCounts(input: readonly Visit[]): Sums {
  const tally = new WindowTally(4, SLIDE_MS, PANES);
  const rings = new Map<string, Int32Array>(); // records in a pane, at pane number modulo RING
  let highest = 0;
  let newest = 0; // pane
  let next = 0; // the first pane of the window that fires next; 0 = no record yet
  let due = 0; // highest timestamp that fires it

  const fire = (watermark: number): void => {
    for (; (next + PANES) * SLIDE_MS <= watermark && next <= newest; next++) {
      const p = next & 7, q = (next + 1) & 7, r = (next + 2) & 7, s = (next + 3) & 7, t = (next + 4) & 7;
      const start = next * SLIDE_MS;
      for (const [key, ring] of rings) {
        const count = ring[p]! + ring[q]! + ring[r]! + ring[s]! + ring[t]!;
        ring[p] = 0; // no later window starts so early
        if (count > 0) tally.add(key, start, count, 0);
      }
    }
    due = (next + PANES) * SLIDE_MS + DISORDER_MS;
  };

  for (let i = 0; i < input.length; i++) {
    const { key, ts } = input[i]!;
    const pane = Math.floor(ts / SLIDE_MS);
    if (pane > newest) {
      newest = pane;
      if (next === 0) {
        next = pane - PANES; // room for records that came after the first and are earlier, within the bound
        due = (next + PANES) * SLIDE_MS + DISORDER_MS;
      }
    }
    let ring = rings.get(key);
    if (ring === undefined) rings.set(key, ring = new Int32Array(RING));
    ring[pane & (RING - 1)]!++;
    if (ts > highest) {
      highest = ts;
      if (highest >= due) fire(highest - DISORDER_MS);
    }
  }
  fire(Infinity);
  return tally.sums();
}

const GAP_MS = 5000;

/** An open session of a key; those behind it are earlier. */
interface Session {
  first: number;
  last: number;
  count: number;
  earlier: Session | undefined;
}

function sessions(input: readonly Visit[]): Sums {
  const tally = new SessionTally();
  const newest = new Map<string, Session>();
  let highest = 0;
  let due = 0; // when to look for closed sessions again: looking at every key for every record would cost more

  const fire = (watermark: number): void => {
    for (const [key, head] of newest) {
      // Sessions of a key do not overlap: behind the first closed one all are closed.
      let open: Session | undefined, closed: Session | undefined = head;
      while (closed !== undefined && closed.last + GAP_MS > watermark) open = closed, closed = closed.earlier;
      if (closed === undefined) continue;
      if (open === undefined) newest.delete(key);
      else open.earlier = undefined;
      for (; closed !== undefined; closed = closed.earlier) {
        tally.add(key, closed.count, closed.first, closed.last);
      }
    }
  };

  for (let i = 0; i < input.length; i++) {
    const { key, ts } = input[i]!;
    const head = newest.get(key);
    if (head === undefined) newest.set(key, { first: ts, last: ts, count: 1, earlier: undefined });
    else if (ts >= head.first && ts - head.last < GAP_MS) { // nearly every record
      head.count++;
      if (ts > head.last) head.last = ts;
    } else if (ts > head.last) newest.set(key, { first: ts, last: ts, count: 1, earlier: head });
    else addToSession(head, ts);
    if (ts > highest) {
      highest = ts;
      if (highest >= due) {
        fire(highest - DISORDER_MS);
        due = highest + 2000;
      }
    }
  }
  fire(Infinity);
  return tally.sums();
}

/** Adds a record from before the first of `head`, the newest session of its key. */
function addToSession(head: Session, ts: number): void {
  let at = head;
  while (at.first - ts >= GAP_MS) {
    const earlier = at.earlier;
    if (earlier === undefined || ts - earlier.last >= GAP_MS) {
      at.earlier = { first: ts, last: ts, count: 1, earlier };
      return;
    }
    at = earlier;
  }
  at.count++;
  if (ts > at.last) at.last = ts;
  else if (ts < at.first) {
    at.first = ts;
    const earlier = at.earlier;
    if (earlier !== undefined && ts - earlier.last < GAP_MS) { // the record is the bridge between two sessions
      at.first = earlier.first;
      at.count += earlier.count;
      at.earlier = earlier.earlier;
    }
  }
}
