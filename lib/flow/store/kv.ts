/**
 * A store in Deno KV.
 *
 * Its limits: a value of 65,536 bytes; an atomic operation of 100 checks, 1,000 mutations, 819,200 bytes, 81,920 of them keys; ten
 * keys a read. Every commit is synced when it resolves. Mutations go in in the order of their keys, which is several times faster.
 *
 * Several processes may open one file: commits compare versions, and who owns a partition is in the store itself.
 *
 * @module
 */
import { type Clock, systemClock } from "../../clock.ts";
import { asError, MailerError } from "../../errors.ts";
import type { Cell, Cells, Check, Range, Write } from "./cells.ts";
import type { FlowStore, FlowStoreOptions } from "./port.ts";
import { whileBusy } from "./retry.ts";
import { openStore } from "./store.ts";

const MOST_KEYS_READ = 10;
const LARGEST_BATCH = 500;
const VERSION = /^[0-9a-f]{20}$/;

/** How a store in Deno KV is opened. */
export interface KvStoreOptions extends FlowStoreOptions {
  /**
   * The file; `:memory:` for none, an `https:` address for a remote store. Default: Deno's own for this
   * script.
   */
  readonly path?: string;
  /** What stands in front of every key. Default `["flow"]`. */
  readonly prefix?: Deno.KvKey;
  /** For leases and all that expires. Default: the machine's. */
  readonly clock?: Clock;
  /** Wraps what the store lies in, e.g. to let calls fail. */
  readonly wrap?: (cells: Cells) => Cells;
}

/**
 * Opens a store in Deno KV; closing it closes the connection.
 *
 * @throws {MailerError} `kv_unavailable` where this Deno was started without KV; `store_unavailable` where it cannot be opened.
 */
export async function openKvStore(options: KvStoreOptions = {}): Promise<FlowStore> {
  const { path, prefix = ["flow"], clock = systemClock, wrap = (cells) => cells } = options;
  const where = path ?? "the default Deno KV";
  const cells = wrap(new KvCells(await openKv(path, where), prefix, where));
  try {
    return await openStore(cells, clock, options);
  } catch (error) {
    await cells[Symbol.asyncDispose]();
    throw error;
  }
}

async function openKv(path: string | undefined, where: string): Promise<Deno.Kv> {
  if (typeof Deno.openKv !== "function") {
    throw new MailerError(
      "kv_unavailable",
      'Deno KV is switched off: write "unstable": ["kv"] into the deno.json at the root of your project, or start deno with --unstable-kv',
    );
  }
  try {
    return await whileBusy(() => Deno.openKv(path).catch((cause) => Promise.reject(busyOr(cause, where))));
  } catch (cause) {
    throw new MailerError(
      "store_unavailable",
      `flows: ${where} cannot be opened: ${asError(cause).message}`,
      {
        cause,
        hint: "check the path, that its folder exists, and that this program may read and write there",
      },
    );
  }
}

/** An error as it is, or as `store_busy` where another process had the file locked. */
function busyOr(cause: unknown, where: string): unknown {
  const { message } = asError(cause);
  if (!/database (is|table is) locked|SQLITE_BUSY/i.test(message)) return cause;
  return new MailerError("store_busy", `flows: ${where} is busy: ${message}`, { cause });
}

/** Cells in Deno KV. */
export class KvCells implements Cells {
  readonly where: string;
  readonly #kv: Deno.Kv;
  readonly #prefix: Deno.KvKey;
  #closed = false;

  /** @param where Names it, for errors. */
  constructor(kv: Deno.Kv, prefix: Deno.KvKey, where: string) {
    this.#kv = kv;
    this.#prefix = prefix;
    this.where = where;
  }

  get(keys: readonly string[]): Promise<(Cell | undefined)[]> {
    return this.#whileBusy(() => this.#get(keys));
  }

  list(range: Range, limit: number, reverse?: boolean): Promise<Cell[]> {
    return this.#whileBusy(() => this.#list(range, limit, reverse));
  }

  /** A read waits, as the file is only locked for moments while another process tidies up. */
  #whileBusy<T>(read: () => Promise<T>): Promise<T> {
    return whileBusy(() => read().catch((cause) => Promise.reject(busyOr(cause, this.where))));
  }

  async #get(keys: readonly string[]): Promise<(Cell | undefined)[]> {
    if (keys.length === 1) return [cellOf(await this.#kv.get<Uint8Array>(this.#key(keys[0]!)))];
    const reads: Promise<Deno.KvEntryMaybe<Uint8Array>[]>[] = [];
    for (let i = 0; i < keys.length; i += MOST_KEYS_READ) {
      reads.push(
        this.#kv.getMany<Uint8Array[]>(keys.slice(i, i + MOST_KEYS_READ).map((key) => this.#key(key))),
      );
    }
    return (await Promise.all(reads)).flat().map(cellOf);
  }

  async #list({ from, to }: Range, limit: number, reverse = false): Promise<Cell[]> {
    if (from >= to) return [];
    const found: Cell[] = [];
    const options = { limit, reverse, batchSize: Math.min(limit, LARGEST_BATCH) };
    const entries = this.#kv.list<Uint8Array>({ start: this.#key(from), end: this.#key(to) }, options);
    for await (const entry of entries) found.push(cellOf(entry)!);
    return found;
  }

  async commit(checks: readonly Check[], writes: readonly Write[]): Promise<string | undefined> {
    if (checks.some(({ version }) => version !== null && !VERSION.test(version))) return undefined; // none of ours
    const atomic = this.#kv.atomic();
    for (const { key, version } of checks) atomic.check({ key: this.#key(key), versionstamp: version });
    for (const { key, bytes } of writes.toSorted((a, b) => a.key < b.key ? -1 : 1)) {
      if (bytes === null) atomic.delete(this.#key(key));
      else atomic.set(this.#key(key), bytes);
    }
    try {
      const result = await atomic.commit();
      return result.ok ? result.versionstamp : undefined;
    } catch (cause) {
      throw busyOr(cause, this.where);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    if (!this.#closed) this.#kv.close();
    this.#closed = true;
    return Promise.resolve();
  }

  #key(key: string): Deno.KvKey {
    return [...this.#prefix, key];
  }
}

function cellOf(entry: Deno.KvEntryMaybe<Uint8Array>): Cell | undefined {
  if (entry.versionstamp === null) return undefined;
  return { key: entry.key.at(-1) as string, bytes: entry.value, version: entry.versionstamp };
}
