/**
 * Where everything lies. Changing a line here changes what is stored.
 *
 * | key | holds |
 * | --- | --- |
 * | `m` | number of partitions |
 * | `p/PARTITION`, `pe/PARTITION` | owner; epoch, which only changes with the owner |
 * | `h/EXEC` | head: sequence, summary, open jobs and timers |
 * | `e/EXEC/SEQ` | a decision |
 * | `n/EXEC` | snapshot |
 * | `o/EXEC/NAME` | object |
 * | `u/EXEC/ID`, `ut/TIME/EXEC/ID` | a remembered id; the same by when it is forgotten |
 * | `q/EXEC` | quarantine |
 * | `i/t/TIME/EXEC`, `i/s/STATUS/…`, `i/f/FLOW/…`, `i/a/NAME/VALUE/…` | lists, newest first |
 * | `c/PARTITION/ORDER`, `ca/PARTITION/ORDER` | command in an inbox; how often it was handed out |
 * | `j/KIND/PRIORITY/ORDER/EXEC/ID` | job |
 * | `t/PARTITION/TIME/EXEC/ID` | timer |
 * | `f/PARTITION/POSITION` | decisions of one commit, for readers of the feed |
 * | `d/NAME/HASH`, `dl/NAME` | definition; hash of the newest |
 * | `s/NAME` | schedule |
 * | `r/KEY`, `rt/TIME/KEY` | cached result; the same by when it expires |
 * | `l/ORDER` | dead letter |
 * | `k/DIGEST/PART` | what a limit on jobs holds |
 * | `b/OWNER/BLOB/PART` | part of a large text |
 * | `w/EXEC/INTENT/SLICE`, `wp/PARTITION/EXEC` | effects too many for one commit; that there are some |
 * | `x/PARTITION/EXEC` | a deletion under way |
 * | `y/TIME/…` | parts and effects written ahead of the commit that names them |
 *
 * @module
 */
import { createHash } from "node:crypto";
import type { Range } from "./cells.ts";

const LAST_TIME = 8_640_000_000_000_000;
const TIME_DIGITS = 11;
const NUMBER_DIGITS = 8;
const LONGEST_PART = 200;
/** What is the same escaped. */
const PLAIN = /^[A-Za-z0-9_.-]{0,200}$/;

/** A whole number from 0 on, so that texts are ordered as the numbers are; below 2.8e12. */
export function numberPart(value: number): string {
  return value.toString(36).padStart(NUMBER_DIGITS, "0");
}

/** The number of {@link numberPart}. */
export function numberOf(part: string): number {
  return parseInt(part, 36);
}

/** A time, so that texts are ordered as the times are. Times before 1970 count as 1970. */
export function timePart(time: number): string {
  return Math.min(Math.max(Math.ceil(time), 0), LAST_TIME).toString(36).padStart(
    TIME_DIGITS,
    "0",
  );
}

/** A time, later ones first. */
export function reverseTimePart(time: number): string {
  return timePart(LAST_TIME - Math.min(Math.max(Math.floor(time), 0), LAST_TIME));
}

/** Any text as a part of a key. Long ones are cut, and told apart by a digest. */
export function textPart(text: string): string {
  if (PLAIN.test(text)) return text;
  const escaped = encodeURIComponent(text.toWellFormed());
  if (escaped.length <= LONGEST_PART) return escaped;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 32);
  return `${escaped.slice(0, LONGEST_PART - 33)}~${digest}`;
}

/** Everything that begins with a prefix, which ends in `/`. */
export function under(prefix: string): Range {
  return { from: prefix, to: prefix.slice(0, -1) + "0" }; // the character behind the slash
}

const partitionPart = (partition: number): string => partition.toString(36).padStart(2, "0");
const PRIORITY_ZERO = 100;

export const META = "m";
export const OWNERS: Range = under("p/");
export const owner = (partition: number): string => `p/${partitionPart(partition)}`;
export const epoch = (partition: number): string => `pe/${partitionPart(partition)}`;

export const head = (exec: string): string => `h/${exec}`;
export const events = (exec: string, seq: number): string => `e/${exec}/${numberPart(seq)}`;
export const eventsOf = (exec: string): Range => under(`e/${exec}/`);
export const snapshot = (exec: string): string => `n/${exec}`;
export const object = (exec: string, name: string): string => `o/${exec}/${textPart(name)}`;
export const objectsOf = (exec: string): Range => under(`o/${exec}/`);
export const remembered = (exec: string, id: string): string => `u/${exec}/${textPart(id)}`;
export const rememberedOf = (exec: string): Range => under(`u/${exec}/`);
/** By time, of the key of a remembered id. */
export const rememberedUntil = (until: number, key: string): string => `ut/${timePart(until)}/${key}`;
export const REMEMBERED_BY_TIME = "ut/";
export const quarantine = (exec: string): string => `q/${exec}`;
export const QUARANTINES: Range = under("q/");

export const command = (partition: number, order: string): string => `c/${partitionPart(partition)}/${order}`;
export const commandsOf = (partition: number): Range => under(`c/${partitionPart(partition)}/`);
/** How often a command was handed out, by the command's key. */
export const deliveries = (key: string): string => `ca${key.slice(1)}`;
export const deliveriesOf = (partition: number): Range => under(`ca/${partitionPart(partition)}/`);

export const job = (exec: string, id: string, kind: string, priority: number, order: number): string => {
  return `j/${kind}/${numberPart(PRIORITY_ZERO - priority)}/${timePart(order)}/${exec}/${textPart(id)}`;
};
export const jobsOf = (kind: string): Range => under(`j/${kind}/`);

export const timer = (partition: number, at: number, exec: string, id: string): string => {
  return `t/${partitionPart(partition)}/${timePart(at)}/${exec}/${textPart(id)}`;
};
export const timersOf = (partition: number): Range => under(`t/${partitionPart(partition)}/`);
/** Timers due at `now`. */
export const timersDue = (partition: number, now: number): Range => {
  const prefix = `t/${partitionPart(partition)}/`;
  return { from: prefix, to: `${prefix}${timePart(Math.floor(now) + 1)}` };
};

export const feed = (partition: number, position: number): string => {
  return `f/${partitionPart(partition)}/${numberPart(position)}`;
};
export const feedOf = (partition: number): Range => under(`f/${partitionPart(partition)}/`);

export const definition = (name: string, hash: string): string => `d/${name}/${hash}`;
export const DEFINITIONS: Range = under("d/");
export const latest = (name: string): string => `dl/${name}`;
export const LATEST: Range = under("dl/");
export const schedule = (name: string): string => `s/${textPart(name)}`;
export const SCHEDULES: Range = under("s/");
export const cached = (key: string): string => `r/${textPart(key)}`;
export const cachedUntil = (until: number, key: string): string => `rt/${timePart(until)}/${key}`;
export const CACHED_BY_TIME = "rt/";
export const letter = (order: string): string => `l/${order}`;
export const LETTERS: Range = under("l/");
export const limit = (digest: string, part: number): string => `k/${digest}/${numberPart(part)}`;
export const LIMITS: Range = under("k/");

/** Parts of a large text, by the key of the cell that names it and the text's id. */
export const parts = (owner: string, blob: string): Range => under(`b/${owner}/${blob}/`);
export const part = (owner: string, blob: string, n: number): string => `b/${owner}/${blob}/${numberPart(n)}`;
export const partsOfExecution = (exec: string): Range => under(`b/x/${exec}/`);

export const slice = (exec: string, intent: string, n: number): string =>
  `w/${exec}/${intent}/${numberPart(n)}`;
export const slicesOf = (exec: string, intent: string): Range => under(`w/${exec}/${intent}/`);
export const slicesOfExecution = (exec: string): Range => under(`w/${exec}/`);
export const unfinished = (partition: number, exec: string): string =>
  `wp/${partitionPart(partition)}/${exec}`;
export const unfinishedOf = (partition: number): Range => under(`wp/${partitionPart(partition)}/`);
export const deletion = (partition: number, exec: string): string => `x/${partitionPart(partition)}/${exec}`;
export const deletionsOf = (partition: number): Range => under(`x/${partitionPart(partition)}/`);
/** That something was written ahead: what is under `prefix` goes unless a commit removes this. */
export const ahead = (time: number, prefix: string): string => `y/${timePart(time)}/${prefix}`;
export const AHEAD = "y/";
/** Everything by time, up to `now`. */
export const until = (prefix: string, now: number): Range => ({
  from: prefix,
  to: `${prefix}${timePart(Math.floor(now) + 1)}`,
});

/** The last part of a key. */
export function lastPart(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}
