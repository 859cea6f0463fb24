/**
 * One partition as it is read: how far it was fetched, how far it was handed out, and what lies between.
 *
 * S1 `position` is where to go on: behind the last record handed out, and behind everything hidden that follows it (markers,
 *    aborted records, what compaction took away) as far as it was fetched.
 * S2 Of a bounded read nothing at `end` or behind it is given out, though it was fetched.
 *
 * @module
 */
import { MailerError } from "../../../lib/errors.ts";
import type { FetchedPartition, TopicPartition } from "../client.ts";
import { FetchedRecords } from "../protocol/fetched_records.ts";

/** Name of a split. */
export const splitName = ({ topic, partition }: TopicPartition): string => `${topic}/${partition}`;

/** The partition a split stands for; undefined where it is no name of one. Names of topics have no `/`. */
export function partitionOf(split: string): TopicPartition | undefined {
  const found = /^([^/]+)\/(\d+)$/.exec(split);
  return found === null ? undefined : { topic: found[1]!, partition: Number(found[2]) };
}

/** A restored position. @throws {MailerError} `invalid_position` */
export function offsetOf(split: string, position: unknown): number {
  if (Number.isSafeInteger(position) && (position as number) >= 0) return position as number;
  throw new MailerError(
    "invalid_position",
    `split "${split}": ${JSON.stringify(position)} is no offset`,
    { hint: "the checkpoint is of another source: start without it, or give the source another id" },
  );
}

/** Rows of a run of records. */
export interface Rows {
  readonly run: FetchedRecords;
  readonly from: number;
  readonly to: number;
}

/** A partition that is read. */
export class Split implements TopicPartition {
  readonly topic: string;
  readonly partition: number;
  readonly name: string;
  /** Where a bounded read ends. */
  readonly end: number | undefined;
  /** Where reading began. */
  readonly begin: number;
  /** See S1. */
  position: number;
  /** Offset of the next record to be fetched. */
  fetched: number;
  /** As the last fetch said: behind the last record that is safe, and where `read_committed` gets to. */
  highWatermark: number | undefined;
  lastStableOffset: number | undefined;
  /** Whether its end has been handed out. */
  hasEnded = false;
  /** When it was last said that a fetch was empty; monotonic ms. */
  saidEmptyAt = -Infinity;
  #runs: Rows[] = [];

  constructor(at: TopicPartition, position: number, end: number | undefined) {
    this.topic = at.topic;
    this.partition = at.partition;
    this.name = splitName(at);
    this.end = end;
    this.begin = this.position = this.fetched = position;
  }

  /** Whether there is something to hand out. */
  get hasRecords(): boolean {
    return this.#runs.length > 0;
  }

  /** Whether all of a bounded read has been handed out. */
  get isComplete(): boolean {
    return this.end !== undefined && this.position >= this.end;
  }

  /** Takes in what was fetched. @returns Whether the position has moved with no record to show for it. */
  add({ records, nextOffset, highWatermark, lastStableOffset }: FetchedPartition): boolean {
    this.highWatermark = highWatermark;
    this.lastStableOffset = lastStableOffset;
    for (const run of records) {
      const to = this.end === undefined ? run.length : firstAt(run, this.end);
      if (to > 0) this.#runs.push({ run: withPlainBytes(run), from: 0, to });
    }
    this.fetched = Math.max(this.fetched, Math.min(nextOffset, this.end ?? Infinity));
    if (this.hasRecords || this.fetched <= this.position) return false;
    this.position = this.fetched;
    return true;
  }

  /** The next rows, `most` at most, as `take` will give them. */
  peek(most: number): Rows[] {
    const next: Rows[] = [];
    for (let left = most, i = 0; left > 0 && i < this.#runs.length; i++) {
      const { run, from, to } = this.#runs[i]!, count = Math.min(left, to - from);
      next.push({ run, from, to: from + count });
      left -= count;
    }
    return next;
  }

  /** The next rows, `most` at most, and moves the position behind them. */
  take(most: number): Rows[] {
    const taken: Rows[] = [];
    for (let left = most; left > 0 && this.#runs.length > 0;) {
      const rows = this.#runs[0]!, count = Math.min(left, rows.to - rows.from);
      taken.push({ run: rows.run, from: rows.from, to: rows.from + count });
      left -= count;
      if (rows.from + count < rows.to) this.#runs[0] = { ...rows, from: rows.from + count };
      else this.#runs.shift();
    }
    const last = taken.at(-1);
    if (last !== undefined) {
      this.position = this.hasRecords ? last.run.offsets[last.to - 1]! + 1 : this.fetched;
    }
    return taken;
  }

  /** Goes on elsewhere: what lies between is lost. */
  jump(offset: number): void {
    this.#runs = [];
    this.position = this.fetched = offset;
  }
}

/** Number of rows in front of `offset`. */
function firstAt(run: FetchedRecords, offset: number): number {
  let to = run.length;
  while (to > 0 && run.offsets[to - 1]! >= offset) to--;
  return to;
}

/** A client may hand `Buffer`s in; what is read from them is to be plain bytes. */
function withPlainBytes(run: FetchedRecords): FetchedRecords {
  if (run.bytes.constructor === Uint8Array) return run;
  const { offsets, timestamps, keyStarts, keyLengths, valueStarts, valueLengths } = run;
  const headers = run.headers?.map((all) => all?.map(([name, value]) => [name, plain(value)] as const));
  return new FetchedRecords(plain(run.bytes), {
    offsets,
    timestamps,
    keyStarts,
    keyLengths,
    valueStarts,
    valueLengths,
    headers,
  });
}

function plain({ buffer, byteOffset, length }: Uint8Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, length);
}
