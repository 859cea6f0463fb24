/**
 * Pages in a SQLite file, through `node:sqlite`: needs no unstable flag.
 *
 * Its calls are synchronous, so a write blocks for as long as it takes to copy the pages into the log (about 4 ms a megabyte).
 * Pages are not synced when they are written: they go into the same log file as the documents, and the commit of a document
 * syncs that file, with everything in front of it.
 *
 * @module
 */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { type Clock, systemClock } from "../../clock.ts";
import { asError, MailerError } from "../../errors.ts";
import { withLock } from "./lock.ts";
import {
  checkDocuments,
  checkPages,
  type DocumentChange,
  type Listed,
  pageMissing,
  type PageRef,
  type PageStore,
} from "./port.ts";
import { whileBusy } from "./retry.ts";

/** A page's row is its run's number times this plus its own number; the largest such number is exact in a double. */
const PAGES_A_RUN = 2 ** 24;
const MOST_RUNS = 2 ** 28;
const PAGE_SIZE = 16_384;
const LOG_PAGES = 2048;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
  CREATE TABLE IF NOT EXISTS pages (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS documents (name TEXT PRIMARY KEY, bytes BLOB NOT NULL, version INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
`;

/** How pages are kept in SQLite. */
export interface SqlitePagesOptions {
  /** The file, made with its folder where it is missing; `:memory:` for none. */
  readonly path: string;
  /** For the waits before another try. Default: the machine's. */
  readonly clock?: Clock;
}

/**
 * Opens pages in a SQLite file. It is for one process at a time: `PATH.lock` beside it is locked.
 *
 * @throws {MailerError} `store_unavailable` where the file cannot be opened; `state_locked` where it is open already.
 */
export async function openSqlitePages(options: SqlitePagesOptions): Promise<PageStore> {
  const { path, clock = systemClock } = options;
  const open = (lock?: AsyncDisposable): Promise<PageStore> => {
    return whileBusy<PageStore>(`opening ${path}`, clock, () => {
      return new Promise((resolve) => resolve(new SqlitePages(path, clock, lock)));
    });
  };
  if (path === ":memory:") return await open();
  try {
    mkdirSync(dirname(path), { recursive: true });
  } catch (cause) {
    throw unavailable(path, cause);
  }
  return await withLock(`${path}.lock`, path, open);
}

/** Pages in SQLite; see {@link openSqlitePages}. */
export class SqlitePages implements PageStore {
  readonly #db: DatabaseSync;
  readonly #clock: Clock;
  readonly #path: string;
  readonly #lock: AsyncDisposable | undefined;
  readonly #numbers = new Map<string, number>();
  readonly #insert: StatementSync;
  readonly #select: StatementSync;

  /**
   * @param path The file, in a folder that is there; `:memory:` for none.
   * @param lock Is released when the store is closed.
   */
  constructor(path: string, clock: Clock, lock?: AsyncDisposable) {
    this.#path = path;
    this.#clock = clock;
    this.#lock = lock;
    try {
      this.#db = new DatabaseSync(path);
    } catch (cause) {
      throw unavailable(path, cause);
    }
    try {
      this.#db.exec(`PRAGMA busy_timeout = 50; PRAGMA page_size = ${PAGE_SIZE}; PRAGMA journal_mode = WAL;`);
      this.#db.exec(`PRAGMA wal_autocheckpoint = ${LOG_PAGES}; PRAGMA synchronous = NORMAL;`);
      this.#transaction(() => this.#db.exec(SCHEMA));
      this.#insert = this.#db.prepare("INSERT OR REPLACE INTO pages (id, bytes) VALUES (?, ?)");
      this.#select = this.#db.prepare("SELECT bytes FROM pages WHERE id = ?");
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  write(run: string, first: number, pages: readonly Uint8Array[]): Promise<void> {
    return this.#busy(`a write of run "${run}"`, () => {
      checkPages(run, first, pages);
      if (first + pages.length > PAGES_A_RUN) {
        throw new MailerError("run_too_large", `state: run "${run}" has more than ${PAGES_A_RUN} pages`);
      }
      let number = 0;
      this.#transaction(() => {
        number = this.#numberOf(run) ?? this.#newNumber(run);
        for (let i = 0; i < pages.length; i++) {
          this.#insert.run(number * PAGES_A_RUN + first + i, pages[i]!);
        }
      });
      this.#numbers.set(run, number);
    });
  }

  read(refs: readonly PageRef[]): Promise<Uint8Array[]> {
    return this.#busy("a read", () =>
      refs.map((ref) => {
        const number = this.#numberOf(ref.run);
        const row = number === undefined ? undefined : this.#select.get(number * PAGES_A_RUN + ref.page);
        if (row === undefined) throw pageMissing(ref, this.#path);
        return row["bytes"] as Uint8Array;
      }));
  }

  list(kind: "documents" | "runs", prefix: string): Promise<readonly Listed[]> {
    return this.#busy("a listing", () => {
      const rows = kind === "runs"
        ? this.#db.prepare("SELECT name FROM runs").all()
        : this.#db.prepare("SELECT name, bytes, version FROM documents WHERE substr(name, 1, ?) = ?")
          .all([...prefix].length, prefix);
      const found: Listed[] = [];
      for (
        const { name, bytes, version } of rows as { name: string; bytes?: Uint8Array; version?: number }[]
      ) {
        if (!name.startsWith(prefix)) continue;
        found.push({
          name,
          bytes: bytes ?? new Uint8Array(),
          version: version === undefined ? "" : String(version),
        });
      }
      return found.sort((a, b) => a.name < b.name ? -1 : 1);
    });
  }

  deleteRuns(runs: readonly string[]): Promise<void> {
    return this.#busy("deleting runs", () => {
      this.#transaction(() => {
        for (const run of runs) {
          const number = this.#numberOf(run);
          if (number === undefined) continue;
          this.#db.prepare("DELETE FROM pages WHERE id >= ? AND id < ?")
            .run(number * PAGES_A_RUN, (number + 1) * PAGES_A_RUN);
          this.#db.prepare("DELETE FROM runs WHERE id = ?").run(number);
        }
      });
      for (const run of runs) this.#numbers.delete(run);
    });
  }

  commit(changes: readonly DocumentChange[]): Promise<boolean> {
    return this.#busy("a commit", () => {
      checkDocuments(changes);
      this.#db.exec("PRAGMA synchronous = FULL");
      try {
        return this.#transaction(() => this.#change(changes));
      } finally {
        this.#db.exec("PRAGMA synchronous = NORMAL");
      }
    });
  }

  #change(changes: readonly DocumentChange[]): boolean {
    const version = this.#db.prepare("SELECT version FROM documents WHERE name = ?");
    for (const { name, expected } of changes) {
      if (expected === undefined) continue;
      const found = version.get(name)?.["version"];
      if ((found === undefined ? null : String(found)) !== expected) return false;
    }
    const next = this.#next("commits");
    const put = this.#db.prepare("INSERT OR REPLACE INTO documents (name, bytes, version) VALUES (?, ?, ?)");
    const remove = this.#db.prepare("DELETE FROM documents WHERE name = ?");
    for (const { name, bytes } of changes) {
      if (bytes === undefined) remove.run(name);
      else put.run(name, bytes, next);
    }
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#db.isOpen) this.#db.close();
    await this.#lock?.[Symbol.asyncDispose]();
  }

  #numberOf(run: string): number | undefined {
    const known = this.#numbers.get(run);
    if (known !== undefined) return known;
    const found = this.#db.prepare("SELECT id FROM runs WHERE name = ?").get(run)?.["id"] as
      | number
      | undefined;
    if (found !== undefined) this.#numbers.set(run, found);
    return found;
  }

  /** Numbers are never used twice, or another process could read a new run's pages for an old one's. */
  #newNumber(run: string): number {
    const number = this.#next("runs");
    if (number >= MOST_RUNS) {
      throw new MailerError("store_used_up", `state: ${this.#path} has seen ${number} runs`);
    }
    this.#db.prepare("INSERT INTO runs (id, name) VALUES (?, ?)").run(number, run);
    return number;
  }

  #next(counter: string): number {
    const sql = "INSERT INTO counters (name, value) VALUES (?, 1) " +
      "ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value";
    return this.#db.prepare(sql).get(counter)!["value"] as number;
  }

  #transaction<T>(work: () => T): T {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#db.exec("COMMIT");
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
  }

  #busy<T>(what: string, work: () => T): Promise<T> {
    return whileBusy(
      `${what} in ${this.#path}`,
      this.#clock,
      () => new Promise<T>((resolve) => resolve(work())),
    );
  }
}

function unavailable(path: string, cause: unknown): MailerError {
  return new MailerError("store_unavailable", `state: cannot open ${path}: ${asError(cause).message}`, {
    cause,
  });
}
