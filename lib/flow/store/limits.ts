/**
 * Limits on jobs: most at once, or most in a time, over all processes.
 *
 * L1 A job is let in by the commit that leases it, which compares what the limit holds: of two that want the last place one gets
 *    it, and a place is never taken without a job.
 * L2 A place is held by the cell of the job: it is free as soon as that is gone, put back, or its lease over. So nobody has to give
 *    it back, and a worker that dies holds it no longer than its job.
 * L3 A job that is not let in stays as it was: waiting costs no delivery, and no commit.
 * L4 What this process knows to be full is passed over, so a hot key keeps no other from its turn.
 * L5 Within no time of the length `per` more than `max` are let in. A place in it may be free a 64th of that time late.
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

/** What lets a job in, in the commit that leases it. */
export interface Admission {
  readonly checks: readonly Check[];
  readonly writes: readonly Write[];
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
  /** Limits of jobs this process has let in. */
  readonly #entered = new Map<string, readonly string[]>();
  /** Where the last sweep ended. */
  #sweptTo = "";

  /** @param isHeld Whether the job of a cell is leased. */
  constructor(core: Core, isHeld: (cell: Cell) => Promise<boolean>) {
    this.#core = core;
    this.#isHeld = isHeld;
  }

  /** Whether one of them is known to be full. */
  isFull(limits: readonly JobLimit[], now: number): boolean {
    return limits.some(({ name }) => (this.#full.get(name) ?? -Infinity) > now);
  }

  /** What lets a job in; the first limit that has no room otherwise. */
  async admit(limits: readonly JobLimit[], job: string): Promise<Admission | JobLimit> {
    const checks: Check[] = [], writes: Write[] = [];
    for (const limit of limits) {
      const admission = limit.per === undefined
        ? await this.#place(limit, job)
        : await this.#start(limit, limit.per);
      if (admission === undefined) return limit;
      checks.push(admission.check);
      writes.push(admission.write);
    }
    return { checks, writes };
  }

  /** A job was let in. */
  entered(job: string, limits: readonly JobLimit[]): void {
    if (this.#entered.size >= REMEMBERED) this.#entered.clear(); // others are found free at the next look
    this.#entered.set(job, limits.map(({ name }) => name));
  }

  /** A job is gone or was put back. True: a limit may have room by that. */
  left(job: string): boolean {
    const names = this.#entered.get(job);
    if (names === undefined) return false;
    this.#entered.delete(job);
    for (const name of names) this.#full.delete(name);
    return true;
  }

  async #place({ name, max }: JobLimit, job: string): Promise<{ check: Check; write: Write } | undefined> {
    const parts = Math.ceil(max / PLACES), first = parts === 1 ? 0 : spread(job, parts);
    for (let i = 0; i < parts; i++) {
      const part = (first + i) % parts, most = Math.min(PLACES, max - part * PLACES);
      const key = cellOf(name, part), cell = await this.#core.one(key);
      const { jobs = [] } = await this.#read(cell);
      let holders = jobs.filter((one) => one !== job);
      if (holders.length >= most) holders = await this.#held(holders);
      if (holders.length < most) return await this.#admission(key, cell, { jobs: [...holders, job] });
    }
    this.#isFullUntil(name, this.#core.clock.now() + this.#core.settings.pollMs);
    return undefined;
  }

  async #start({ name, max }: JobLimit, per: number): Promise<{ check: Check; write: Write } | undefined> {
    const key = cellOf(name, 0), cell = await this.#core.one(key), now = this.#core.clock.now();
    const starts = ((await this.#read(cell)).starts ?? []).filter(([end]) => end > now - per);
    if (starts.reduce((sum, [, count]) => sum + count, 0) >= max) {
      this.#isFullUntil(name, starts[0]![0] + per);
      return undefined;
    }
    const width = per / PARTS, end = Math.ceil((Math.floor(now / width) + 1) * width), last = starts.at(-1);
    // Another process whose clock is ahead may have counted for later: it stays in order.
    const isLast = last !== undefined && last[0] >= end;
    const counted = isLast
      ? [...starts.slice(0, -1), [last[0], last[1] + 1] as const]
      : [...starts, [end, 1] as const];
    return await this.#admission(key, cell, { starts: counted, per });
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

  async #admission(
    key: string,
    cell: Cell | undefined,
    holding: Holding,
  ): Promise<{ check: Check; write: Write }> {
    return {
      check: { key, version: cell?.version ?? null },
      write: { key, bytes: await this.#core.packJson(holding, "a limit") },
    };
  }

  async #read(cell: Cell | undefined): Promise<Holding> {
    return cell === undefined ? {} : await this.#core.json(cell) as Holding;
  }

  /** Removes cells of limits that hold nothing, a slice of them; how many. */
  async sweep(most: number): Promise<number> {
    const { cells, clock, writer } = this.#core, { from, to } = keys.LIMITS;
    const found = await cells.list({ from: this.#sweptTo > from ? this.#sweptTo : from, to }, most);
    this.#sweptTo = found.length < most ? "" : `${found.at(-1)!.key}\x01`;
    const swept = await Promise.all(found.map(async (cell) => {
      const { jobs = [], starts = [], per = 0 } = await this.#read(cell), now = clock.now();
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
