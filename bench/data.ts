/**
 * The five workloads: what record i of each holds, and the input arrays built from that.
 *
 * B1 A record is a pure function of its number, so every engine and every loop sees the same data.
 * B2 Disorder stays under {@link DISORDER_MS}: with that bound on the watermark no record is ever late.
 * B3 Texts are flat strings, one of its own a record, as a decoder would hand them out (not ropes, not shared).
 *
 * @module
 */
import { Buffer } from "node:buffer";

/** Names of the workloads, in the order they are run. */
export const WORKLOADS = ["W-a", "W-b", "W-c", "W-d", "W-e"] as const;
/** Name of a workload. */
export type Workload = typeof WORKLOADS[number];

/** Records at full size. */
export const FULL_SIZE: Readonly<Record<Workload, number>> = {
  "W-a": 5_000_000,
  "W-b": 5_000_000,
  "W-c": 3_000_000,
  "W-d": 2_000_000,
  "W-e": 2_000_000,
};
/** Start of event time, ms since the epoch; a multiple of 10 s. */
export const EPOCH_MS = 1_760_000_000_000;
/** The bound on disorder that watermarks are made with, ms. */
export const DISORDER_MS = 1000;
/** Length of an event of W-c, bytes. */
export const EVENT_BYTES = 150;

/** Record of W-a; a W-c event says the same in JSON, with a note. */
export interface Order {
  readonly id: number;
  readonly customer: string;
  /** A multiple of a quarter, so that sums are exact in any order. */
  readonly amount: number;
  readonly status: string;
  /** Event time, ms. */
  readonly ts: number;
}
/** Record of W-b. */
export interface Sale {
  readonly key: string;
  readonly value: number;
}
/** Record of W-d and W-e. */
export interface Visit {
  readonly key: string;
  /** Event time, ms. */
  readonly ts: number;
}
/** What each workload reads. */
export interface Inputs {
  "W-a": Order[];
  "W-b": Sale[];
  "W-c": Uint8Array[];
  "W-d": Visit[];
  "W-e": Visit[];
}

const SALT_STEP = 0x9e3779b1;
const STATUSES = ["completed", "completed", "pending", "cancelled"] as const;

/** 32 well mixed bits of a record number, unsigned; each salt is a stream of its own. */
export function mix(i: number, salt: number): number {
  let h = (i + Math.imul(salt, SALT_STEP)) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Record `i` of W-a. */
export function orderAt(i: number): Order {
  return {
    id: i,
    customer: `c${keyNumber(i, 100_000)}`,
    amount: quarters(i) / 4,
    status: STATUSES[mix(i, 3) & 3]!,
    ts: timestamp(i, 30),
  };
}

/** Event `i` of W-c as text: the order with a note of `x` that makes it {@link EVENT_BYTES} long. */
export function eventAt(i: number): string {
  const { id, customer, amount, status, ts } = orderAt(i);
  const bare = JSON.stringify({ id, customer, amount, status, ts, note: "" });
  return `${bare.slice(0, -2)}${"x".repeat(EVENT_BYTES - bare.length)}"}`;
}

/** The first `records` records of a workload, in memory. */
export function buildInput<W extends Workload>(name: W, records: number): Inputs[W] {
  return BUILDERS[name](records) as Inputs[W];
}

/** Visits with times as in W-d, spread over `keys` keys. */
export function buildVisits(records: number, keys: number): Visit[] {
  return fill(records, (i) => ({ key: keyText(keyNumber(i, keys)), ts: timestamp(i, 20) }));
}

/** The number in a text of digits behind `from` other characters: `key-000000042` → 42 from 4. */
export function numberIn(text: string, from: number): number {
  let n = 0;
  for (let at = from; at < text.length; at++) n = n * 10 + (text.charCodeAt(at) - 48);
  return n;
}

const BUILDERS: { readonly [W in Workload]: (records: number) => Inputs[W] } = {
  "W-a": (records) => fill(records, orderAt),
  "W-b": (records) => fill(records, (i) => ({ key: keyText(keyNumber(i, 100_000)), value: quarters(i) })),
  "W-c": (records) => {
    const slab = Buffer.allocUnsafeSlow(records * EVENT_BYTES);
    return fill(records, (i) => {
      slab.write(eventAt(i), i * EVENT_BYTES, "latin1");
      return slab.subarray(i * EVENT_BYTES, (i + 1) * EVENT_BYTES);
    });
  },
  "W-d": (records) => buildVisits(records, 10_000),
  "W-e": (records) => fill(records, (i) => ({ key: keyText(keyNumber(i, 10_000)), ts: sessionTimestamp(i) })),
};

function fill<T>(records: number, at: (i: number) => T): T[] {
  const all = new Array<T>(records);
  for (let i = 0; i < records; i++) all[i] = at(i);
  return all;
}

function keyNumber(i: number, keys: number): number {
  return mix(i, 1) % keys;
}

function quarters(i: number): number {
  return 1 + mix(i, 2) % 4000;
}

function timestamp(i: number, recordsPerMs: number): number {
  return EPOCH_MS + 1000 + Math.floor(i / recordsPerMs) - mix(i, 4) % 1000;
}

/** Multiples of 3 ms: no two records of a key are exactly one gap of 5 s apart. */
function sessionTimestamp(i: number): number {
  const offset = 1000 + Math.floor(i / 4) - mix(i, 4) % 900;
  return EPOCH_MS + offset - offset % 3;
}

const keyBytes = Buffer.from("key-000000000", "latin1");

/** `key-` and nine digits, as a flat string: joining the parts would give a rope. */
function keyText(k: number): string {
  for (let at = keyBytes.length - 1, rest = k; at >= 4; at--, rest = Math.floor(rest / 10)) {
    keyBytes[at] = 48 + rest % 10;
  }
  return keyBytes.toString("latin1");
}
