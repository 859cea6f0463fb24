/**
 * A commit as writes: what one decision makes of the cells.
 *
 * D1 Effects are writes that may come later than the events without being missed: jobs, timers, commands for others, and what is
 *    kept on the side. All else is the decision itself.
 * D2 Writes say what a cell is from now on, never how it changes. So they can be repeated.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { type Packed, removing } from "./bodies.ts";
import type { Write } from "./cells.ts";
import type { Core, PackedLetter } from "./core.ts";
import { blobOwner, encodeHead, type HeadRecord, indexKeys, type LogHead } from "./heads.ts";
import { packCommand, type PackedCommand, removingCommand } from "./inbox.ts";
import { checkJob, encodeJob, type JobRecord, jobRecord } from "./jobs.ts";
import * as keys from "./keys.ts";
import type { Commit, JobPlace, NewCommand, Summary } from "./port.ts";
import { encodeTimer } from "./timers.ts";

/** A timer and where it lies. */
export interface PlacedTimer {
  readonly key: string;
  readonly at: number;
}

/** What a commit writes. */
export interface Plan {
  /** The head behind it; `undefined` where it stays as it is. */
  readonly head: { readonly record: HeadRecord; readonly packed: Packed } | undefined;
  readonly decided: readonly Write[];
  readonly effects: readonly Write[];
  readonly packed: readonly Packed[];
  readonly jobs: readonly { readonly key: string; readonly record: JobRecord }[];
  readonly removedJobs: readonly { readonly key: string; readonly kind: string }[];
  readonly timers: readonly PlacedTimer[];
  readonly clearedTimers: readonly PlacedTimer[];
  readonly sent: readonly PackedCommand[];
}

/** Plans a commit. */
export async function planCommit(
  core: Core,
  commit: Commit,
  head: LogHead | undefined,
  partition: number,
  partitionOf: (execId: string) => number,
  leases: boolean,
): Promise<Plan> {
  checkCommit(commit, head);
  const planner = new Planner(core, commit, head?.record, partition);
  await planner.jobs(leases);
  await planner.timers();
  if (commit.send !== undefined) await planner.send(commit.send, partitionOf);
  if (commit.cache !== undefined || commit.deadLetters !== undefined) await planner.kept();
  await planner.decide();
  return planner.plan(head);
}

class Planner {
  readonly #core: Core;
  readonly #commit: Commit;
  readonly #before: HeadRecord | undefined;
  readonly #partition: number;
  readonly #decided = new Map<string, Uint8Array | null>();
  readonly #effects = new Map<string, Uint8Array | null>();
  readonly #packed: Packed[] = [];
  readonly #jobs = new Map<string, { readonly key: string; readonly record: JobRecord }>();
  readonly #removedJobs: { readonly key: string; readonly kind: string }[] = [];
  readonly #timers = new Map<string, PlacedTimer>();
  readonly #cleared: PlacedTimer[] = [];
  #sent: PackedCommand[] = [];
  #openJobs: Readonly<Record<string, JobPlace>>;
  #openTimers: Readonly<Record<string, number>>;
  #snapshot: Pick<HeadRecord, "snapshotSeq" | "snapshotBlob">;

  constructor(core: Core, commit: Commit, before: HeadRecord | undefined, partition: number) {
    this.#core = core;
    this.#commit = commit;
    this.#before = before;
    this.#partition = partition;
    this.#openJobs = before?.jobs ?? {};
    this.#openTimers = before?.timers ?? {};
    this.#snapshot = pickSnapshot(before);
  }

  get #seq(): number {
    return (this.#before?.seq ?? 0) + (this.#commit.events === undefined ? 0 : 1);
  }

  async jobs(leases: boolean): Promise<void> {
    const { execId, jobs = [], removeJobs = [] } = this.#commit;
    if (jobs.length === 0 && removeJobs.length === 0) return;
    const open = new Map(Object.entries(this.#openJobs)), now = this.#core.clock.now();
    const remove = (id: string): void => {
      const place = open.get(id);
      if (place === undefined) return;
      const key = keys.job(execId, id, ...place);
      this.#effects.set(key, null);
      this.#removedJobs.push({ key, kind: place[0] });
      open.delete(id);
    };
    for (const id of removeJobs === "all" ? [...open.keys()] : removeJobs) remove(id);
    for (const job of jobs) {
      checkJob(job);
      remove(job.id);
      const place: JobPlace = [job.kind, job.priority ?? 0, job.order ?? Math.max(0, Math.floor(now))];
      const key = keys.job(execId, job.id, ...place), record = jobRecord(execId, job, now, leases);
      this.#effects.set(key, await encodeJob(this.#core, record));
      this.#jobs.set(job.id, { key, record });
      open.set(job.id, place);
    }
    this.#openJobs = Object.fromEntries(open);
  }

  async timers(): Promise<void> {
    const { execId, timers = [], clearTimers = [] } = this.#commit;
    if (timers.length === 0 && clearTimers.length === 0) return;
    const open = new Map(Object.entries(this.#openTimers));
    const clear = (id: string): void => {
      const at = open.get(id);
      if (at === undefined) return;
      const key = keys.timer(this.#partition, at, execId, id);
      this.#effects.set(key, null);
      this.#cleared.push({ key, at });
      open.delete(id);
    };
    for (const id of clearTimers === "all" ? [...open.keys()] : clearTimers) clear(id);
    for (const { id, at, text } of timers) {
      clear(id);
      const key = keys.timer(this.#partition, at, execId, id);
      this.#effects.set(key, await encodeTimer(this.#core, execId, id, at, text));
      this.#timers.set(id, { key, at });
      open.set(id, at);
    }
    this.#openTimers = Object.fromEntries(open);
  }

  async send(send: readonly NewCommand[], partitionOf: (execId: string) => number): Promise<void> {
    this.#sent = await Promise.all(
      send.map((command) => packCommand(this.#core, partitionOf(command.execId), command)),
    );
    for (const { write, packed } of this.#sent) this.#effect(write, packed);
  }

  /** What is kept on the side: results, dead letters. */
  async kept(): Promise<void> {
    const { cache = [], deadLetters = [] } = this.#commit;
    for (const { key, text, expiresAt } of cache) {
      const cell = keys.cached(key);
      const packed = await this.#core.bodies.pack(`${expiresAt}\n${text}`, cell);
      this.#effect({ key: cell, bytes: packed.bytes }, packed);
      this.#effects.set(keys.cachedUntil(expiresAt, cell), new Uint8Array());
    }
    const letters: PackedLetter[] = [];
    for (const letter of deadLetters) letters.push(await this.#core.letter(letter));
    for (const { write, packed } of letters) this.#effect(write, packed);
  }

  #effect({ key, bytes }: Write, packed: Packed): void {
    this.#effects.set(key, bytes);
    if (packed.blob !== undefined) this.#packed.push(packed);
  }

  /** Events, snapshot, lists, the command that is answered. */
  async decide(): Promise<void> {
    const { execId, events, snapshot, summary, command, quarantine } = this.#commit;
    if (events !== undefined) {
      const packed = await this.#core.bodies.pack(events, blobOwner(execId));
      this.#decided.set(keys.events(execId, this.#seq), packed.bytes);
      if (packed.blob !== undefined) this.#packed.push(packed);
    }
    if (snapshot !== undefined) await this.#setSnapshot(snapshot);
    if (summary !== undefined) this.#list(summary);
    if (quarantine === null) this.#decided.set(keys.quarantine(execId), null);
    else if (quarantine !== undefined) {
      const bytes = await this.#core.packJson(quarantine, `the quarantine of execution ${execId}`);
      this.#decided.set(keys.quarantine(execId), bytes);
    }
    if (command !== undefined) this.#write(await removingCommand(this.#core, command));
  }

  async #setSnapshot(text: string | null): Promise<void> {
    const { execId } = this.#commit, cell = keys.snapshot(execId);
    this.#write(removing(this.#before?.snapshotBlob));
    this.#snapshot = {};
    if (text === null) {
      this.#decided.set(cell, null);
      return;
    }
    const packed = await this.#core.bodies.pack(`${this.#seq}\n${text}`, blobOwner(execId));
    this.#decided.set(cell, packed.bytes);
    this.#snapshot = { snapshotSeq: this.#seq };
    if (packed.blob === undefined) return;
    this.#packed.push(packed);
    this.#snapshot = { snapshotSeq: this.#seq, snapshotBlob: packed.blob };
  }

  #list(summary: Summary): void {
    const { execId } = this.#commit, { sealed } = this.#core;
    const wanted = new Set(indexKeys(execId, summary, sealed));
    const present = this.#before === undefined ? [] : indexKeys(execId, this.#before.summary, sealed);
    for (const key of present) if (!wanted.delete(key)) this.#decided.set(key, null);
    for (const key of wanted) this.#decided.set(key, new Uint8Array());
  }

  #write(writes: readonly Write[]): void {
    for (const { key, bytes } of writes) this.#decided.set(key, bytes);
  }

  async plan(head: LogHead | undefined): Promise<Plan> {
    const { execId, events, lastIndex, summary, firstSeq } = this.#commit, before = this.#before;
    const isChanged = events !== undefined || summary !== undefined || firstSeq !== undefined ||
      this.#openJobs !== before?.jobs || this.#openTimers !== before?.timers ||
      this.#snapshot.snapshotSeq !== before?.snapshotSeq ||
      this.#snapshot.snapshotBlob !== before?.snapshotBlob;
    let next: Plan["head"];
    if (isChanged) {
      const record: HeadRecord = {
        seq: this.#seq,
        firstSeq: firstSeq ?? before?.firstSeq ?? 1,
        events: lastIndex ?? before?.events ?? 0,
        summary: summary ?? before!.summary,
        timers: this.#openTimers,
        jobs: this.#openJobs,
        ...this.#snapshot,
      };
      const packed = await this.#core.bodies.pack(encodeHead(record), blobOwner(execId));
      this.#write(removing(head?.blob));
      this.#decided.set(keys.head(execId), packed.bytes);
      if (packed.blob !== undefined) this.#packed.push(packed);
      next = { record, packed };
    }
    return {
      head: next,
      decided: writesOf(this.#decided),
      effects: writesOf(this.#effects),
      packed: this.#packed,
      jobs: [...this.#jobs.values()],
      removedJobs: this.#removedJobs,
      timers: [...this.#timers.values()],
      clearedTimers: this.#cleared,
      sent: this.#sent,
    };
  }
}

function writesOf(cells: ReadonlyMap<string, Uint8Array | null>): Write[] {
  const writes: Write[] = [];
  for (const [key, bytes] of cells) writes.push({ key, bytes });
  return writes;
}

function pickSnapshot(head: HeadRecord | undefined): Pick<HeadRecord, "snapshotSeq" | "snapshotBlob"> {
  return {
    ...(head?.snapshotSeq === undefined ? {} : { snapshotSeq: head.snapshotSeq }),
    ...(head?.snapshotBlob === undefined ? {} : { snapshotBlob: head.snapshotBlob }),
  };
}

const EXEC_ID = /^[A-Za-z0-9_-]{1,128}$/;

function checkCommit(commit: Commit, head: LogHead | undefined): void {
  const { execId, events, lastIndex, summary, send = [] } = commit;
  const problem = head === undefined && !EXEC_ID.test(execId)
    ? "the id of an execution is a token"
    : send.some((command) => !EXEC_ID.test(command.execId))
    ? "a command is for an execution whose id is a token"
    : head !== undefined && head.execId !== execId
    ? `the head is one of execution ${head.execId}`
    : head === undefined && (events === undefined || summary === undefined)
    ? "a new execution needs events and a summary"
    : (events === undefined) !== (lastIndex === undefined)
    ? "events and lastIndex go together"
    : head !== undefined && summary !== undefined && summary.createdAt !== head.summary.createdAt
    ? "createdAt never changes"
    : undefined;
  if (problem !== undefined) {
    throw new MailerError("invalid_commit", `flows: execution ${JSON.stringify(execId)}: ${problem}`);
  }
}
