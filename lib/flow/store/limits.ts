/**
 * Limits on jobs: most at once, or most in a time, over all processes.
 *
 * L1 A job is let in by the commit that leases it, which compares what the limit holds: of two that want the last place one gets
 *    it, and a place is never taken without a job.
 * L2 A place is held by the cell of the job: it is free as soon as that is gone, put back, or its lease over. So nobody has to give
 *    it back, and a worker that dies holds it no longer than its job.
 * L3 A job that is not let in stays as it was: waiting costs no delivery, and no commit.
 * L4 What this process knows to be full is passed over, so a hot key keeps no other from its turn.
 * L5 What this process knows of a limit saves reading it: where that is out of date the commit fails, and it is read anew.
 * L6 Within no time of the length `per` more than `max` are let in. A place in it may be free a 64th of that time late.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { type Cell, type Check, type Write } from "./cells.ts";
import type { Core } from "./core.ts";
import * as keys from "./keys.ts";
import type { JobLimit } from "./port.ts";

/** Most places a cell holds; a limit with more lies in several. */
const PLACES = 64;
/** Parts a time is counted in. */
const PARTS = 64;
/** Jobs whose limits are remembered. */
const REMEMBERED = 10_000;

/** What a limit's cell holds. */
interface Holding {
  /** Keys of jobs. */
  readonly jobs?: readonly string[];
  /** How many were let in, by the end of the part of time it was in, ms. */
  readonly starts?: readonly (readonly [end: number, count: number])[];
  /** The time those are counted for, ms. */
  readonly per?: number;
}

/** What a limit's cell is known to hold. */
interface Known {
  /** Of the cell; `null`: there is none. */
  readonly version: string | null;
  readonly holding: Holding;
}

/** A limit's cell behind the commit that lets a job in. */
interface Entry {
  readonly check: Check;
  readonly write: Write;
  readonly holding: Holding;
}

/** What lets a job in, in the commit that leases it. */
export interface Admission {
  readonly checks: readonly Check[];
  readonly writes: readonly Write[];
  /** It was committed. */
  entered(version: string): void;
  /** It was not. */
  failed(): void;
}

/** Key of a limit's cell. Names may hold what users gave, so they are not in it. */
function cellOf(name: string, part: number): string {
  return keys.limit(createHash("sha256").update(name).digest("hex").slice(0, 32), part);
}

/** Lets jobs in. */
export class Limits {
  readonly #core: Core;
  readonly #isHeld: (cell: Cell) => Promise<boolean>;
  /** Names of limits known to be full, with until when that is taken to be so. */
  readonly #full = new Map<string, number>();
  /** Limits of jobs this process has let in, and the cells they have places in. */
  readonly #entered = new Map<
    string,
    { readonly names: readonly string[]; readonly cells: readonly string[] }
  >();
  /** Cells as this process has written them. */
  readonly #cells = new Map<string, Known>();
  /** Where the last sweep ended. */
  #sweptTo = "";

  /** @param isHeld Whether the job of a cell is leased. */
  constructor(core: Core, isHeld: (cell: Cell) => Promise<boolean>) {
    this.#core = core;
    this.#isHeld = isHeld;
  }

  /** Whether a limit is known to be full. */
  isFull(name: string, now: number): boolean {
    return (this.#full.get(name) ?? -Infinity) > now;
  }

  /** What lets a job in; the first limit that has no room otherwise. */
  async admit(limits: readonly JobLimit[], job: string): Promise<Admission | JobLimit> {
    const entries: Entry[] = [];
    for (const limit of limits) {
      const entry = limit.per === undefined
        ? await this.#place(limit, job)
        : await this.#start(limit, limit.per);
      if (entry === undefined) return limit;
      entries.push(entry);
    }
    const cells = entries.map(({ write }) => write.key);
    return {
      checks: entries.map(({ check }) => check),
      writes: entries.map(({ write }) => write),
      entered: (version) => {
        this.#makeRoom();
        for (const { write, holding } of entries) this.#cells.set(write.key, { version, holding });
        this.#entered.set(job, { names: limits.map(({ name }) => name), cells });
      },
      failed: () => {
        for (const key of cells) this.#cells.delete(key);
      },
    };
  }

  /** A job is gone or was put back. True: a limit may have room by that. */
  left(job: string): boolean {
    const entered = this.#entered.get(job);
    if (entered === undefined) return false;
    this.#entered.delete(job);
    for (const name of entered.names) this.#full.delete(name);
    for (const key of entered.cells) {
      const known = this.#cells.get(key), { jobs } = known?.holding ?? {};
      if (jobs === undefined) continue;
      this.#cells.set(key, { version: known!.version, holding: { jobs: jobs.filter((one) => one !== job) } });
    }
    return true;
  }

  /** What is forgotten is found out again. */
  #makeRoom(): void {
    if (this.#entered.size >= REMEMBERED) this.#entered.clear();
    if (this.#cells.size >= REMEMBERED) this.#cells.clear();
  }

  async #place(limit: JobLimit, job: string): Promise<Entry | undefined> {
    const { name, max } = limit,
      parts = Math.ceil(max / PLACES),
      first = parts === 1 ? 0 : spread(job, parts);
    for (let i = 0; i < parts; i++) {
      const part = (first + i) % parts;
      const entry = await this.#placeIn(cellOf(name, part), Math.min(PLACES, max - part * PLACES), job);
      if (entry !== undefined) return entry;
    }
    this.#isFullUntil(name, this.#core.clock.now() + this.#core.settings.pollMs);
    return undefined;
  }

  async #placeIn(key: string, most: number, job: string): Promise<Entry | undefined> {
    const known = this.#cells.get(key), others = known?.holding.jobs?.filter((one) => one !== job);
    if (others !== undefined && others.length < most) {
      return await this.#entry(key, known!, { jobs: [...others, job] });
    }
    const read = await this.#read(key);
    let holders = (read.holding.jobs ?? []).filter((one) => one !== job);
    if (holders.length >= most) holders = await this.#held(holders);
    return holders.length < most ? await this.#entry(key, read, { jobs: [...holders, job] }) : undefined;
  }

  async #start({ name, max }: JobLimit, per: number): Promise<Entry | undefined> {
    const key = cellOf(name, 0),
      read = this.#cells.get(key) ?? await this.#read(key),
      now = this.#core.clock.now();
    const starts = (read.holding.starts ?? []).filter(([end]) => end > now - per);
    if (starts.reduce((sum, [, count]) => sum + count, 0) >= max) {
      this.#isFullUntil(name, starts[0]![0] + per); // places are never given back: what others have taken since adds to it
      return undefined;
    }
    const width = per / PARTS, end = Math.ceil((Math.floor(now / width) + 1) * width), last = starts.at(-1);
    // Another process whose clock is ahead may have counted for later: it stays in order.
    const isLast = last !== undefined && last[0] >= end;
    const counted = isLast
      ? [...starts.slice(0, -1), [last[0], last[1] + 1] as const]
      : [...starts, [end, 1] as const];
    return await this.#entry(key, read, { starts: counted, per });
  }

  #isFullUntil(name: string, until: number): void {
    const now = this.#core.clock.now();
    if (this.#full.size > REMEMBERED) {
      for (const [other, end] of this.#full) if (end <= now) this.#full.delete(other);
    }
    this.#full.set(name, until);
  }

  /** Those whose jobs are leased. */
  async #held(jobs: readonly string[]): Promise<string[]> {
    const cells = await this.#core.cells.get(jobs);
    const held = await Promise.all(cells.map((cell) => cell !== undefined && this.#isHeld(cell)));
    return jobs.filter((_, i) => held[i]);
  }

  async #entry(key: string, { version }: Known, holding: Holding): Promise<Entry> {
    const bytes = await this.#core.packJson(holding, "a limit");
    return { check: { key, version }, write: { key, bytes }, holding };
  }

  async #read(key: string): Promise<Known> {
    const cell = await this.#core.one(key);
    return cell === undefined
      ? { version: null, holding: {} }
      : { version: cell.version, holding: await this.#core.json(cell) as Holding };
  }

  /** Removes cells of limits that hold nothing, a slice of them; how many. */
  async sweep(most: number): Promise<number> {
    const { cells, clock, writer } = this.#core, { from, to } = keys.LIMITS;
    const found = await cells.list({ from: this.#sweptTo > from ? this.#sweptTo : from, to }, most);
    this.#sweptTo = found.length < most ? "" : `${found.at(-1)!.key}\x01`;
    const swept = await Promise.all(found.map(async (cell) => {
      const { jobs = [], starts = [], per = 0 } = await this.#core.json(cell) as Holding, now = clock.now();
      if (starts.some(([end]) => end > now - per) || (await this.#held(jobs)).length > 0) return false;
      const { key, version } = cell;
      return await writer.submit({ checks: [{ key, version }], writes: [{ key, bytes: null }] }) !==
        undefined;
    }));
    return swept.filter((isSwept) => isSwept).length;
  }
}

/** Spreads jobs over the parts of a limit. */
function spread(job: string, parts: number): number {
  return createHash("sha256").update(job).digest().readUInt32BE(0) % parts;
}
