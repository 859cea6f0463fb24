/**
 * Jobs by kind: handed out with a lease, best priority first.
 *
 * J1 A job stays in its place while it is leased or put off: its cell says until when nobody gets it. So who finishes,
 *    loses or returns a job never moves it, and its place in the queue is kept.
 * J2 Handing out is a compare-and-set of the cell: of two that want one job, one gets it.
 * J3 What this process knows of a queue is a window of its front. It may be out of date, and then the compare-and-set fails.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { TimeHeap } from "../../heap.ts";
import { type Cell, cellsIn } from "./cells.ts";
import type { Core } from "./core.ts";
import * as keys from "./keys.ts";
import { Limits } from "./limits.ts";
import type { JobLimit, JobPlace, JobRequest, Jobs, LeasedJob, NewJob, ReleaseOptions } from "./port.ts";
import type { Unit } from "./writer.ts";

/** Ready jobs that are kept in memory. */
const WINDOW = 1000;
const PAGE = 500;
const MOST_AT_ONCE = 256;
/** Times a job is tried to be let in while others take places of its limits. */
const TRIES = 16;
const NOTHING: Pick<Unit, "checks" | "writes"> = { checks: [], writes: [] };
const UNLIMITED = (): readonly JobLimit[] => [];

/** Which jobs have to wait for a place. */
interface Gate {
  /** Whether a limit has no room. */
  isFull(name: string): boolean;
  /** The limit that keeps a job waiting, if one does. */
  fullLimit(record: JobRecord): string | undefined;
}

/** What the cell of a job says. */
export interface JobRecord {
  readonly execId: string;
  readonly id: string;
  readonly kind: string;
  readonly text: string;
  readonly deliveries: number;
  /** Nobody gets it before, ms; 0 = ready. */
  readonly hiddenUntil: number;
  /** Whose it is; empty = nobody's. */
  readonly worker: string;
}

interface Entry {
  readonly key: string;
  readonly record: JobRecord;
  readonly version: string;
}

/** A new job as it is stored. */
export function jobRecord(execId: string, job: NewJob, now: number, leased: boolean): JobRecord {
  const { id, kind, text, notBefore = 0, lease } = job;
  return {
    execId,
    id,
    kind,
    text,
    deliveries: leased && lease !== undefined ? 1 : 0,
    hiddenUntil: leased && lease !== undefined ? now + lease.leaseMs : notBefore,
    worker: leased && lease !== undefined ? lease.worker : "",
  };
}

/** Bytes of a job's cell. */
export function encodeJob(core: Core, record: JobRecord): Promise<Uint8Array> {
  const { execId, id, deliveries, hiddenUntil, worker, text } = record;
  const header = JSON.stringify([execId, id, deliveries, hiddenUntil, worker]);
  return core.bodies.packSmall(`${header}\n${text}`, `job ${id} of execution ${execId}`);
}

async function decodeJob(core: Core, kind: string, cell: Cell): Promise<JobRecord> {
  const stored = await core.bodies.unpack(cell.bytes), end = stored.indexOf("\n");
  const [execId, id, deliveries, hiddenUntil, worker] = JSON.parse(stored.slice(0, end)) as [
    string,
    string,
    number,
    number,
    string,
  ];
  return { execId, id, kind, deliveries, hiddenUntil, worker, text: stored.slice(end + 1) };
}

/** What a worker gets. */
export function leasedJob({ key, record, version }: Entry): LeasedJob {
  const { execId, id, kind, text, worker, deliveries, hiddenUntil } = record;
  return { execId, id, kind, text, worker, deliveries, until: hiddenUntil, key, token: version };
}

/** See {@link Jobs}. */
export class Queues implements Jobs {
  readonly #core: Core;
  readonly #windows = new Map<string, Window>();
  readonly #limits: Limits;
  /** Limits of jobs, as they were read out of their texts. */
  readonly #limitsOf = new WeakMap<JobRecord, readonly JobLimit[]>();

  constructor(core: Core) {
    this.#core = core;
    this.#limits = new Limits(core, async (cell) => {
      const { worker, hiddenUntil } = await decodeJob(core, "", cell);
      return worker !== "" && hiddenUntil > core.clock.now();
    });
  }

  async lease(request: JobRequest): Promise<readonly LeasedJob[]> {
    const { kind, max, limitsOf = UNLIMITED } = request, most = Math.min(max, MOST_AT_ONCE);
    if (most <= 0) return [];
    const window = this.#window(kind), leased: LeasedJob[] = [], full = new Set<string>();
    const limits = (record: JobRecord): readonly JobLimit[] => {
      let found = this.#limitsOf.get(record);
      if (found === undefined) this.#limitsOf.set(record, found = limitsOf(record.text));
      return found;
    };
    const isFull = (name: string): boolean =>
      full.has(name) || this.#limits.isFull(name, this.#core.clock.now());
    const gate: Gate = {
      isFull,
      fullLimit: (record) => limits(record).find(({ name }) => isFull(name))?.name,
    };
    for (let scannedWith = -1;;) {
      const now = this.#core.clock.now(), entries = window.take(most - leased.length, now, gate);
      const limited = entries.filter(({ record }) => limits(record).length > 0);
      const free = limited.length === 0 ? entries : entries.filter((entry) => !limited.includes(entry));
      const shared = Map.groupBy(limited, ({ record }) => limits(record)[0]!.name);
      const got = await Promise.all([
        ...free.map((entry) => this.#claim(window, entry, request)),
        ...shared.values().map(async (entries) => {
          // One after the other: each wants to know what the one before has taken.
          const entered: (LeasedJob | undefined)[] = [];
          for (const entry of entries) {
            entered.push(await this.#enter(window, entry, request, limits(entry.record), full));
          }
          return entered;
        }),
      ]);
      const found = got.flat().filter((job) => job !== undefined);
      leased.push(...found.sort((a, b) => a.key < b.key ? -1 : 1));
      if (leased.length === most) return leased;
      if (limited.length > 0) continue; // behind those that wait others may be free
      // What this process knows is exhausted: perhaps others have queued some, or there are some behind those that wait.
      if (full.size === scannedWith || !window.isOutdated(now)) return leased;
      await window.scan(gate);
      scannedWith = full.size;
    }
  }

  /** Leases a job that has limits, if they have room. */
  async #enter(
    window: Window,
    entry: Entry,
    request: JobRequest,
    limits: readonly JobLimit[],
    full: Set<string>,
  ): Promise<LeasedJob | undefined> {
    for (let tries = 0; tries < TRIES; tries++) {
      if (limits.some(({ name }) => full.has(name))) break;
      const admission = await this.#limits.admit(limits, entry.key);
      if ("name" in admission) {
        full.add(admission.name);
        break;
      }
      const job = await this.#claim(window, entry, request, admission);
      if (job !== undefined) {
        admission.entered(job.token);
        return job;
      }
      admission.failed();
      const cell = await this.#core.one(entry.key);
      if (cell?.version !== entry.version) return undefined; // another has it
    }
    for (const { name } of limits) full.add(name); // also where others take its places all the time
    window.put(entry);
    return undefined;
  }

  async #claim(
    window: Window,
    { record, key, version: expected }: Entry,
    { worker, leaseMs }: JobRequest,
    { checks, writes }: Pick<Unit, "checks" | "writes"> = NOTHING,
  ): Promise<LeasedJob | undefined> {
    const hiddenUntil = this.#core.clock.now() + leaseMs;
    const taken = { ...record, deliveries: record.deliveries + 1, hiddenUntil, worker };
    try {
      const bytes = await encodeJob(this.#core, taken);
      const version = await this.#core.writer.submit({
        checks: [{ key, version: expected }, ...checks],
        writes: [{ key, bytes }, ...writes],
      });
      if (version === undefined) return undefined;
      window.put({ key, record: taken, version });
      return leasedJob({ key, record: taken, version });
    } catch (error) {
      window.stale();
      throw error;
    }
  }

  async peek(execId: string, id: string, [kind, priority, order]: JobPlace): Promise<LeasedJob | undefined> {
    const key = keys.job(execId, id, kind, priority, order), cell = await this.#core.one(key);
    if (cell === undefined) return undefined;
    return leasedJob({ key, record: await decodeJob(this.#core, kind, cell), version: cell.version });
  }

  /** Removes limits that hold nothing, a slice of them; how many. */
  async sweepLimits(most: number): Promise<number> {
    return await this.#limits.sweep(most);
  }

  async extend(jobs: readonly LeasedJob[], leaseMs: number): Promise<readonly (LeasedJob | undefined)[]> {
    return await Promise.all(jobs.map(async (job) => {
      const hiddenUntil = this.#core.clock.now() + leaseMs;
      return await this.#change(job, { ...recordOf(job), hiddenUntil });
    }));
  }

  async release(job: LeasedJob, { delayMs = 0, counts = true }: ReleaseOptions = {}): Promise<boolean> {
    const hiddenUntil = delayMs > 0 ? this.#core.clock.now() + delayMs : 0;
    const deliveries = counts ? job.deliveries : job.deliveries - 1;
    const changed = await this.#change(job, { ...recordOf(job), hiddenUntil, deliveries, worker: "" });
    if (changed === undefined) return false;
    this.#limits.left(job.key);
    this.#core.wakeups.notify(`jobs:${job.kind}`);
    return true;
  }

  async #change(job: LeasedJob, record: JobRecord): Promise<LeasedJob | undefined> {
    const version = await this.#replace(job.key, job.token, record);
    if (version === undefined) return undefined;
    const entry = { key: job.key, record, version };
    this.#windows.get(job.kind)?.put(entry);
    return leasedJob(entry);
  }

  async #replace(key: string, version: string, record: JobRecord): Promise<string | undefined> {
    const bytes = await encodeJob(this.#core, record);
    return await this.#core.writer.submit({ checks: [{ key, version }], writes: [{ key, bytes }] });
  }

  /** A commit has queued a job. */
  queued(key: string, record: JobRecord, version: string): void {
    this.#windows.get(record.kind)?.put({ key, record, version });
    if (record.worker === "") this.#core.wakeups.notify(`jobs:${record.kind}`); // else somebody has it already
  }

  /** A commit has removed a job. */
  removed(kind: string, key: string): void {
    this.#windows.get(kind)?.remove(key);
    if (this.#limits.left(key)) this.#core.wakeups.notify(`jobs:${kind}`);
  }

  /** A commit has changed jobs of these kinds, piece by piece. */
  changed(kinds: Iterable<string>): void {
    for (const kind of kinds) {
      this.#windows.get(kind)?.stale();
      this.#core.wakeups.notify(`jobs:${kind}`);
    }
  }

  #window(kind: string): Window {
    let window = this.#windows.get(kind);
    if (window === undefined) this.#windows.set(kind, window = new Window(this.#core, kind));
    return window;
  }
}

function recordOf({ execId, id, kind, text, deliveries, until, worker }: LeasedJob): JobRecord {
  return { execId, id, kind, text, deliveries, hiddenUntil: until, worker };
}

/** The front of a queue, as far as it is known. */
class Window {
  readonly #core: Core;
  readonly #kind: string;
  /** All that is known, ready or not. */
  #known = new Map<string, Entry>();
  /** Keys of ready ones, sorted, the first from `#from` on. Some may be gone, or hidden again. */
  #ready: string[] = [];
  #from = 0;
  /** Keys of ready ones that wait for a place, by the limit that is full; sorted. Some may be gone, or hidden again. */
  readonly #waiting = new Map<string, string[]>();
  #hidden = new TimeHeap<string>();
  /** Beyond this key nothing is known. */
  #end: string | undefined;
  #scannedAt = -Infinity;
  /** What changed while a scan is under way. */
  #meanwhile: Map<string, Entry | undefined> | undefined;
  #scanning: Promise<void> | undefined;

  constructor(core: Core, kind: string) {
    this.#core = core;
    this.#kind = kind;
    this.#end = ""; // before the first scan: nothing at all
  }

  /** Whether a scan may find more. What is long is looked at less often. */
  isOutdated(now: number): boolean {
    const wait = this.#core.settings.pollMs * (1 + this.#known.size / (5 * WINDOW));
    return this.#end !== undefined || now - this.#scannedAt > wait;
  }

  /**
   * Takes ready ones out, in their order, passing over those that have to wait; who takes them puts them back when they
   * have changed.
   */
  take(most: number, now: number, gate: Gate): Entry[] {
    while (this.#hidden.isDue(now)) {
      const entry = this.#known.get(this.#hidden.pop());
      if (entry !== undefined && entry.record.hiddenUntil <= now) this.#makeReady(entry.key);
    }
    this.#callBack(most, gate);
    const taken: Entry[] = [], passed = new Map<string, string[]>();
    while (taken.length < most && this.#from < this.#ready.length) {
      const key = this.#ready[this.#from++]!, entry = this.#known.get(key);
      if (entry === undefined || entry.record.hiddenUntil > now) continue;
      const limit = gate.fullLimit(entry.record);
      if (limit !== undefined) {
        const keys = passed.get(limit);
        if (keys === undefined) passed.set(limit, [key]);
        else keys.push(key);
        continue;
      }
      this.#known.delete(key);
      taken.push(entry);
    }
    for (const [limit, keys] of passed) {
      this.#waiting.set(limit, merged(keys, this.#waiting.get(limit) ?? []));
    }
    if (this.#from > WINDOW) {
      this.#ready = this.#ready.slice(this.#from);
      this.#from = 0;
    }
    return taken;
  }

  /** Makes some ready of those whose limits have room again, the first first. */
  #callBack(most: number, gate: Gate): void {
    for (const [limit, keys] of this.#waiting) {
      if (gate.isFull(limit)) continue;
      for (const key of keys.splice(0, most)) if (this.#known.has(key)) this.#makeReady(key);
      if (keys.length === 0) this.#waiting.delete(limit);
    }
  }

  put(entry: Entry): void {
    this.#meanwhile?.set(entry.key, entry);
    if (this.#end !== undefined && entry.key >= this.#end) return; // a scan will find it
    this.#add(entry, this.#core.clock.now());
  }

  #add(entry: Entry, now: number): void {
    const isKnown = this.#known.has(entry.key);
    this.#known.set(entry.key, entry);
    const { hiddenUntil } = entry.record;
    if (hiddenUntil > now) this.#hide(entry);
    else if (!isKnown || !this.#isListed(entry.key)) this.#makeReady(entry.key);
  }

  /** Entries of the heap outlive what they stand for; now and then it is made anew. */
  #hide({ key, record }: Entry): void {
    this.#hidden.push(record.hiddenUntil, key);
    if (this.#hidden.size <= 2 * this.#known.size + WINDOW) return;
    this.#hidden = new TimeHeap();
    for (const { key, record } of this.#known.values()) {
      if (record.hiddenUntil > 0) this.#hidden.push(record.hiddenUntil, key);
    }
  }

  remove(key: string): void {
    this.#meanwhile?.set(key, undefined);
    this.#known.delete(key);
  }

  /** Forgets all. */
  stale(): void {
    this.#known.clear();
    this.#ready = [];
    this.#from = 0;
    this.#waiting.clear();
    this.#hidden = new TimeHeap();
    this.#end = "";
  }

  /** Reads the front of the queue anew, until enough are ready that do not have to wait. */
  scan(gate: Gate): Promise<void> {
    return this.#scanning ??= this.#scan(gate).finally(() => {
      this.#scanning = undefined;
      this.#meanwhile = undefined;
    });
  }

  async #scan(gate: Gate): Promise<void> {
    const meanwhile = this.#meanwhile = new Map<string, Entry | undefined>();
    const now = this.#core.clock.now(), found: Entry[] = [];
    let ready = 0, end: string | undefined;
    scan: for await (const page of cellsIn(this.#core.cells, keys.jobsOf(this.#kind), PAGE)) {
      for (const cell of page) {
        const known = this.#known.get(cell.key);
        const record = known?.version === cell.version
          ? known.record
          : await decodeJob(this.#core, this.#kind, cell);
        found.push({ key: cell.key, record, version: cell.version });
        if (record.hiddenUntil <= now && gate.fullLimit(record) === undefined) ready++;
      }
      if (ready >= WINDOW) {
        end = page.at(-1)!.key + "\x01";
        break scan;
      }
    }
    this.stale();
    this.#end = end;
    this.#scannedAt = this.#core.clock.now();
    for (const entry of found) if (!meanwhile.has(entry.key)) this.#add(entry, now);
    for (const entry of meanwhile.values()) {
      if (entry !== undefined && (end === undefined || entry.key < end)) this.#add(entry, now);
    }
  }

  #isListed(key: string): boolean {
    const at = this.#place(key);
    return this.#ready[at] === key;
  }

  #makeReady(key: string): void {
    const at = this.#place(key);
    if (this.#ready[at] !== key) this.#ready.splice(at, 0, key);
  }

  #place(key: string): number {
    let low = this.#from, high = this.#ready.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#ready[middle]! < key) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Two sorted lists as one. */
function merged(a: readonly string[], b: readonly string[]): string[] {
  if (a.length === 0 || b.length === 0 || a.at(-1)! < b[0]!) return a.concat(b);
  return b.at(-1)! < a[0]! ? b.concat(a) : a.concat(b).sort();
}

/** Refuses what has no place in a queue. */
export function checkJob({ id, kind, priority = 0, order = 0 }: NewJob): void {
  const isRight = Number.isInteger(priority) && Math.abs(priority) <= 100 && Number.isSafeInteger(order) &&
    order >= 0;
  if (!isRight || !/^[A-Za-z0-9_-]{1,128}$/.test(kind)) {
    throw new MailerError(
      "invalid_commit",
      `flows: job ${id}: kind ${JSON.stringify(kind)}, priority ${priority}, order ${order}: ` +
        "a kind is a token, a priority a whole number from -100 to 100, an order one from 0 on",
    );
  }
}
