/**
 * Heads of logs as cells: where a log ends, what lists show of its execution, and where its jobs and timers lie.
 *
 * H1 The head names every job and timer of its execution, so they can be found by their ids, and all of them be removed.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { parseJson, stringifyJson } from "../../json.ts";
import type { Blob, Bodies } from "./bodies.ts";
import type { Cell } from "./cells.ts";
import * as keys from "./keys.ts";
import type { Head, JobPlace, Summary } from "./port.ts";

/** What a head says, without where it lies. */
export interface HeadRecord {
  readonly seq: number;
  readonly firstSeq: number;
  readonly events: number;
  readonly summary: Summary;
  readonly timers: Readonly<Record<string, number>>;
  readonly jobs: Readonly<Record<string, JobPlace>>;
  readonly snapshotSeq?: number;
  /** Parts of the snapshot. */
  readonly snapshotBlob?: Blob;
  /** It is being deleted: nobody sees it any more. */
  readonly deleting?: true;
}

/** A {@link Head} that the store itself knows. */
export class LogHead implements Head {
  readonly execId: string;
  readonly record: HeadRecord;
  readonly version: string;
  /** Its own parts, where it is large. */
  readonly blob: Blob | undefined;

  constructor(execId: string, record: HeadRecord, version: string, blob: Blob | undefined) {
    this.execId = execId;
    this.record = record;
    this.version = version;
    this.blob = blob;
  }
  get seq(): number {
    return this.record.seq;
  }
  get firstSeq(): number {
    return this.record.firstSeq;
  }
  get events(): number {
    return this.record.events;
  }
  get summary(): Summary {
    return this.record.summary;
  }
  get timers(): Readonly<Record<string, number>> {
    return this.record.timers;
  }
  get jobs(): Readonly<Record<string, JobPlace>> {
    return this.record.jobs;
  }
  get snapshotSeq(): number | undefined {
    return this.record.snapshotSeq;
  }
}

/** What the store gave as head. */
export function headOf(head: Head | undefined): LogHead | undefined {
  if (head !== undefined && !(head instanceof LogHead)) {
    throw new TypeError("a head comes from head() or from a commit");
  }
  return head;
}

/** Version of the form. */
const VERSION = 1;

/** JSON text of a head. */
export function encodeHead(record: HeadRecord): string {
  const { seq, firstSeq, events, summary, timers, jobs, snapshotSeq, snapshotBlob, deleting } = record;
  return stringifyJson({
    v: VERSION,
    q: seq,
    ...(firstSeq === 1 ? {} : { f: firstSeq }),
    e: events,
    s: summary,
    ...(isEmpty(timers) ? {} : { t: timers }),
    ...(isEmpty(jobs) ? {} : { j: jobs }),
    ...(snapshotSeq === undefined ? {} : { n: snapshotSeq, b: snapshotBlob }),
    ...(deleting === undefined ? {} : { x: 1 }),
  });
}

/** The head of a cell; also one that is being deleted. */
export async function decodeHead(bodies: Bodies, execId: string, cell: Cell): Promise<LogHead> {
  const stored = parseJson(await bodies.unpack(cell.bytes)) as StoredHead;
  if (stored.v !== VERSION) {
    throw new MailerError(
      "unknown_store",
      `flows: the head of execution ${execId} has the unknown version ${stored.v}`,
      {
        hint: "it was written by a newer version of this program",
      },
    );
  }
  const record: HeadRecord = {
    seq: stored.q,
    firstSeq: stored.f ?? 1,
    events: stored.e,
    summary: stored.s,
    timers: stored.t ?? {},
    jobs: stored.j ?? {},
    ...(stored.n === undefined ? {} : { snapshotSeq: stored.n }),
    ...(stored.b === undefined ? {} : { snapshotBlob: stored.b }),
    ...(stored.x === undefined ? {} : { deleting: true }),
  };
  return new LogHead(execId, record, cell.version, bodies.blobOf(cell.bytes));
}

interface StoredHead {
  readonly v: number;
  readonly q: number;
  readonly f?: number;
  readonly e: number;
  readonly s: Summary;
  readonly t?: Readonly<Record<string, number>>;
  readonly j?: Readonly<Record<string, JobPlace>>;
  readonly n?: number;
  readonly b?: Blob;
  readonly x?: 1;
}

/** Where the parts of an execution's texts are. */
export function blobOwner(execId: string): string {
  return `x/${execId}`;
}

/**
 * Keys of the lists an execution is in.
 *
 * @param sealed Whether values of attributes are nobody's business: they are in no key then.
 */
export function indexKeys(execId: string, summary: Summary, sealed: boolean): string[] {
  const { createdAt, status, flow, attrs } = summary;
  const place = `${keys.reverseTimePart(createdAt)}/${execId}`;
  const found = [`i/t/${place}`, `i/s/${keys.textPart(status)}/${place}`, `i/f/${flow}/${place}`];
  for (const name in attrs) found.push(`${attributePrefix(name, attrs[name]!, sealed)}${place}`);
  return found;
}

/** In front of the executions with a value of an attribute; where values are sealed, with any. */
export function attributePrefix(name: string, value: string, sealed: boolean): string {
  return `i/a/${keys.textPart(name)}/${sealed ? "" : keys.textPart(value)}/`;
}

function isEmpty(record: Readonly<Record<string, unknown>>): boolean {
  for (const _ in record) return false;
  return true;
}
