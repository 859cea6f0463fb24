/**
 * Pages in Deno KV.
 *
 * Its limits decide the layout: a value has at most 65,536 bytes; an atomic operation at most 1,000 mutations and 819,200 bytes,
 * 81,920 of them keys. Every atomic is synced when it resolves. Pages that lie close together are read as one range, others ten at
 * a time.
 *
 * Keys, below the store's prefix: `"run", run` → how many pages it may have; `"page", run, n` → a page; `"doc", name` → a document,
 * or of a large one the number of its parts; `"part", name, i` → a part.
 *
 * @module
 */
import { type Clock, systemClock } from "../../clock.ts";
import { MailerError } from "../../errors.ts";
import { withLock } from "./lock.ts";
import { inParallel } from "./parallel.ts";
import {
  checkDocuments,
  checkPages,
  type DocumentChange,
  type Listed,
  pageMissing,
  type PageRef,
  type PageStore,
} from "./port.ts";
import { BUSY, whileBusy } from "./retry.ts";

const MOST_BYTES = 760_000;
const MOST_KEY_BYTES = 76_000;
const MOST_MUTATIONS = 950;
const MOST_KEYS_READ = 10;
const READS_IN_FLIGHT = 12;
const COMMITS_IN_FLIGHT = 4;
/** A range is listed where at least one in so many of its pages is wanted. */
const DENSE = 3;
const SHORTEST_RANGE = 4;
/** Pages of a range that come in one answer. */
const RANGE_BATCH = 256;
const PART_BYTES = 60_000;

/** How pages are kept in Deno KV. */
export interface KvPagesOptions {
  /** The file; `:memory:` for none, an `https:` address for a remote store. Default: Deno's own for this script. */
  readonly path?: string;
  /** What stands in front of every key. Default `["state"]`. */
  readonly prefix?: Deno.KvKey;
  /** For the waits before another try. Default: the machine's. */
  readonly clock?: Clock;
}

/**
 * Opens pages in Deno KV; closing them closes the connection. A file is for one process at a time: `PATH.lock` beside it is locked.
 *
 * @throws {MailerError} `kv_unavailable` where this Deno was started without KV; `state_locked` where the file is open already.
 */
export async function openKvPages(options: KvPagesOptions = {}): Promise<PageStore> {
  const { path, prefix = ["state"], clock = systemClock } = options;
  if (typeof Deno.openKv !== "function") {
    throw new MailerError(
      "kv_unavailable",
      'Deno KV is switched off: write "unstable": ["kv"] into the deno.json at the root of your project, or start deno with --unstable-kv',
    );
  }
  const open = async (lock?: AsyncDisposable): Promise<PageStore> => {
    return new KvPages(await Deno.openKv(path), prefix, clock, path ?? "the default Deno KV", lock);
  };
  const isFile = path !== undefined && path !== ":memory:" && !/^https?:/.test(path);
  return await (isFile ? withLock(`${path}.lock`, path, open) : open());
}

/** Pages in Deno KV; see {@link openKvPages}. */
export class KvPages implements PageStore {
  readonly #kv: Deno.Kv;
  readonly #prefix: Deno.KvKey;
  readonly #clock: Clock;
  readonly #where: string;
  readonly #lock: AsyncDisposable | undefined;
  #closed = false;

  /**
   * @param where Names the store, for errors.
   * @param lock Is released when the store is closed.
   */
  constructor(kv: Deno.Kv, prefix: Deno.KvKey, clock: Clock, where: string, lock?: AsyncDisposable) {
    this.#kv = kv;
    this.#prefix = prefix;
    this.#clock = clock;
    this.#where = where;
    this.#lock = lock;
  }

  async write(run: string, first: number, pages: readonly Uint8Array[]): Promise<void> {
    checkPages(run, first, pages);
    const keyBytes = this.#keyBytes(run);
    await inParallel(COMMITS_IN_FLIGHT, slices(pages, keyBytes), ({ from, to }) => {
      return whileBusy(`a write of run "${run}" to ${this.#where}`, this.#clock, async () => {
        // The number of pages only grows, whichever of several writes comes first.
        const atomic = this.#kv.atomic().max(this.#key("run", run), BigInt(first + to));
        for (let i = from; i < to; i++) atomic.set(this.#key("page", run, first + i), pages[i]);
        return (await atomic.commit()).ok ? undefined : BUSY;
      });
    });
  }

  async read(refs: readonly PageRef[]): Promise<Uint8Array[]> {
    const pages = new Array<Uint8Array>(refs.length);
    const order = refs.map((_, i) => i).sort((a, b) => compareRefs(refs[a]!, refs[b]!));
    const { ranges, single } = rangesOf(refs, order);
    const take = (index: number, value: unknown): void => {
      if (!(value instanceof Uint8Array)) throw pageMissing(refs[index]!, this.#where);
      pages[index] = value;
    };
    const reads: (() => Promise<void>)[] = ranges.map((range) => () => this.#readRange(refs, range, take));
    for (let i = 0; i < single.length; i += MOST_KEYS_READ) {
      const some = single.slice(i, i + MOST_KEYS_READ);
      reads.push(async () => {
        const keys = some.map((index) => this.#key("page", refs[index]!.run, refs[index]!.page));
        const entries = await this.#kv.getMany(keys);
        some.forEach((index, j) => take(index, entries[j]!.value));
      });
    }
    await inParallel(READS_IN_FLIGHT, reads, (read) => read());
    return pages;
  }

  /** Reads the pages of one run from the first to the last of `wanted`, which are indexes of refs in the order of their pages. */
  async #readRange(
    refs: readonly PageRef[],
    wanted: readonly number[],
    take: (index: number, value: unknown) => void,
  ): Promise<void> {
    const { run, page: first } = refs[wanted[0]!]!;
    const last = refs[wanted.at(-1)!]!.page;
    const range = { start: this.#key("page", run, first), end: this.#key("page", run, last + 1) };
    const batchSize = Math.min(last - first + 1, RANGE_BATCH);
    let at = 0;
    for await (const { key, value } of this.#kv.list(range, { batchSize })) {
      const page = key.at(-1);
      while (at < wanted.length && refs[wanted[at]!]!.page === page) take(wanted[at++]!, value);
    }
    if (at < wanted.length) throw pageMissing(refs[wanted[at]!]!, this.#where);
  }

  async list(kind: "documents" | "runs", prefix: string): Promise<readonly Listed[]> {
    const found: Listed[] = [];
    for await (const entry of this.#kv.list(this.#names(kind === "runs" ? "run" : "doc", prefix))) {
      const name = entry.key.at(-1) as string;
      if (!name.startsWith(prefix)) break;
      if (kind === "runs") found.push({ name, bytes: new Uint8Array(), version: "" });
      else {
        const document = await this.#document(name, entry);
        if (document !== undefined) found.push(document);
      }
    }
    return found.sort((a, b) => a.name < b.name ? -1 : 1);
  }

  /** Everything named from `prefix` on; what starts with it comes first, and together. */
  #names(kind: "run" | "doc", prefix: string): Deno.KvListSelector {
    const all = this.#key(kind);
    return prefix === "" ? { prefix: all } : { prefix: all, start: [...all, prefix] };
  }

  /** The parts of a large document are read until they belong to the version they were read for. */
  async #document(name: string, entry: Deno.KvEntryMaybe<unknown>): Promise<Listed | undefined> {
    for (let head = entry;;) {
      if (head.versionstamp === null) return undefined;
      const { value, versionstamp: version } = head;
      if (value instanceof Uint8Array) return { name, bytes: value, version };
      const parts: Uint8Array[] = [];
      for await (const part of this.#kv.list({ prefix: this.#key("part", name) })) {
        parts.push(part.value as Uint8Array);
      }
      head = await this.#kv.get(this.#key("doc", name));
      if (head.versionstamp === version) return { name, bytes: joined(parts), version };
    }
  }

  async deleteRuns(runs: readonly string[]): Promise<void> {
    for (const run of runs) {
      const count = Number((await this.#kv.get<Deno.KvU64>(this.#key("run", run))).value?.value ?? 0n);
      const step = Math.min(MOST_MUTATIONS - 1, Math.floor(MOST_KEY_BYTES / this.#keyBytes(run)));
      for (let from = 0; from < count; from += step) {
        const to = Math.min(from + step, count);
        await whileBusy(`deleting run "${run}" in ${this.#where}`, this.#clock, async () => {
          const atomic = this.#kv.atomic();
          for (let page = from; page < to; page++) atomic.delete(this.#key("page", run, page));
          if (to === count) atomic.delete(this.#key("run", run)); // the last, so that a crash leaves no page unknown
          return (await atomic.commit()).ok ? undefined : BUSY;
        });
      }
    }
  }

  commit(changes: readonly DocumentChange[]): Promise<boolean> {
    checkDocuments(changes);
    return whileBusy(`a commit to ${this.#where}`, this.#clock, async () => {
      const heads = await inParallel(
        READS_IN_FLIGHT,
        changes,
        ({ name }) => this.#kv.get(this.#key("doc", name)),
      );
      if (changes.some(({ expected }, i) => expected !== undefined && heads[i]!.versionstamp !== expected)) {
        return false;
      }
      const atomic = this.#kv.atomic();
      changes.forEach(({ name, bytes }, i) => {
        const head = heads[i]!, key = this.#key("doc", name);
        atomic.check(head); // as it was when its parts were counted
        const parts = bytes === undefined || bytes.length <= PART_BYTES ? [] : partsOf(bytes);
        if (bytes === undefined) atomic.delete(key);
        else atomic.set(key, parts.length === 0 ? bytes : parts.length);
        parts.forEach((part, j) => atomic.set(this.#key("part", name, j), part));
        const before = typeof head.value === "number" ? head.value : 0;
        for (let j = parts.length; j < before; j++) atomic.delete(this.#key("part", name, j));
      });
      return (await atomic.commit()).ok ? true : BUSY; // the next try sees what has come in between
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#closed) this.#kv.close();
    this.#closed = true;
    await this.#lock?.[Symbol.asyncDispose]();
  }

  #key(...parts: readonly Deno.KvKeyPart[]): Deno.KvKeyPart[] {
    return [...this.#prefix, ...parts];
  }

  /** At least the size of a page's key. */
  #keyBytes(run: string): number {
    return this.#prefix.reduce<number>((sum, part) => sum + 4 + 3 * String(part).length, 32) + 3 * run.length;
  }
}

function compareRefs(a: PageRef, b: PageRef): number {
  return a.run === b.run ? a.page - b.page : a.run < b.run ? -1 : 1;
}

/** What is worth a range, and what is left. `order`: indexes of refs in the order of runs and pages. */
function rangesOf(
  refs: readonly PageRef[],
  order: readonly number[],
): { readonly ranges: readonly (readonly number[])[]; readonly single: readonly number[] } {
  const ranges: number[][] = [], single: number[] = [];
  for (let from = 0; from < order.length;) {
    const first = refs[order[from]!]!;
    let to = from + 1, last = first.page;
    for (; to < order.length; to++) {
      const next = refs[order[to]!]!;
      if (next.run !== first.run || next.page - last > DENSE) break;
      last = next.page;
    }
    const part = order.slice(from, to);
    const isDense = part.length >= SHORTEST_RANGE && part.length * DENSE > last - first.page;
    if (isDense) ranges.push(part);
    else single.push(...part);
    from = to;
  }
  return { ranges, single };
}

interface Slice {
  readonly from: number;
  readonly to: number;
}

/** Cuts pages into what fits an atomic operation. */
function slices(pages: readonly Uint8Array[], keyBytes: number): Slice[] {
  const cut: Slice[] = [];
  let from = 0, bytes = 0;
  for (let i = 0; i < pages.length; i++) {
    const more = pages[i]!.length + keyBytes + 64;
    const isFull = bytes + more > MOST_BYTES || i - from + 1 >= MOST_MUTATIONS ||
      (i - from + 2) * keyBytes > MOST_KEY_BYTES;
    if (isFull && i > from) {
      cut.push({ from, to: i });
      from = i;
      bytes = 0;
    }
    bytes += more;
  }
  if (pages.length > from) cut.push({ from, to: pages.length });
  return cut;
}

function partsOf(bytes: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += PART_BYTES) parts.push(bytes.subarray(at, at + PART_BYTES));
  return parts;
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
