/**
 * Pages in files in a folder: needs no database and no unstable flag, and never blocks the process while it reads or writes.
 *
 * `lock`: see `lock.ts`. `documents`: all documents; a commit writes them anew beside it and renames. `runs/`: a file a run, to
 * which pages are appended; see `run_format.ts`. A run's file is scanned when it is first used after opening.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { type Disk, machineDisk } from "./disk.ts";
import {
  type Documents,
  documentsCorrupt,
  readDocuments,
  temporaryOf,
  writeTemporary,
} from "./documents_file.ts";
import { fileNameOf, runOf } from "./file_names.ts";
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
import { readName } from "./run_format.ts";
import { OpenFiles, RunFile } from "./run_file.ts";

/** Systems often allow 1024 or fewer, and sources and sinks want some too. */
const MOST_OPEN_FILES = 128;
const FILES_IN_FLIGHT = 8;

/** How pages are kept in files. */
export interface FilePagesOptions {
  /** The folder, made where it is missing. */
  readonly path: string;
}

/**
 * Opens pages in the files of a folder.
 *
 * @throws {MailerError} `state_locked` where the folder is open already, `documents_corrupt`, `state_file_error`
 */
export async function openFilePages({ path }: FilePagesOptions): Promise<PageStore> {
  await machineDisk.makeFolder(path);
  return await withLock(`${path}/lock`, path, (lock) => FilePages.open(machineDisk, path, lock));
}

/** Pages in files; see {@link openFilePages}. */
export class FilePages implements PageStore {
  readonly #disk: Disk;
  readonly #path: string;
  readonly #lock: AsyncDisposable | undefined;
  readonly #runs = new Map<string, RunFile>();
  readonly #open: OpenFiles;
  #documents: Documents = { commits: 0, byName: new Map() };
  /** Names that have come into the folder of runs, and how many of them are there for good. */
  #made = 0;
  #madeSynced = 0;
  #commits: Promise<unknown> = Promise.resolve();
  /** After a commit of which nobody knows whether it will have happened. */
  #failed: { readonly error: unknown } | undefined;
  #closing: Promise<void> | undefined;

  private constructor(disk: Disk, path: string, lock: AsyncDisposable | undefined, mostOpen: number) {
    this.#disk = disk;
    this.#path = path;
    this.#lock = lock;
    this.#open = new OpenFiles(mostOpen);
  }

  /**
   * Opens a folder that is there.
   *
   * @param lock Is released when the store is closed.
   * @param mostOpen How many files are kept open. Default 128.
   */
  static async open(
    disk: Disk,
    path: string,
    lock?: AsyncDisposable,
    mostOpen: number = MOST_OPEN_FILES,
  ): Promise<FilePages> {
    const pages = new FilePages(disk, path, lock, mostOpen);
    await disk.makeFolder(pages.#runFolder);
    await disk.remove(temporaryOf(pages.#documentsPath));
    await pages.#findRuns();
    const found = await readDocuments(disk, pages.#documentsPath);
    if (found !== undefined) pages.#documents = found;
    else if (pages.#runs.size === 0) await pages.#replace(pages.#documents);
    else throw documentsCorrupt(pages.#documentsPath, "the file is missing, though there are runs");
    // A process that was killed may have renamed what its commit did not come to sync. Whoever sees those documents deletes runs that
    // only the ones before have named.
    for (const folder of [path, pages.#runFolder]) await disk.syncFolder(folder);
    return pages;
  }

  async write(run: string, first: number, pages: readonly Uint8Array[]): Promise<void> {
    this.#checkOpen();
    checkPages(run, first, pages);
    let file = this.#runs.get(run);
    if (file === undefined) this.#runs.set(run, file = this.#fileOf(run));
    await file.write(first, pages);
  }

  async read(refs: readonly PageRef[]): Promise<Uint8Array[]> {
    this.#checkOpen();
    const pages = new Array<Uint8Array>(refs.length), byRun = new Map<string, number[]>();
    refs.forEach(({ run }, i) => {
      const indexes = byRun.get(run);
      if (indexes === undefined) byRun.set(run, [i]);
      else indexes.push(i);
    });
    await inParallel(FILES_IN_FLIGHT, [...byRun], async ([run, indexes]) => {
      const file = this.#runs.get(run);
      if (file === undefined) throw pageMissing(refs[indexes[0]!]!, this.#path);
      await file.read(indexes.map((i) => refs[i]!.page), (i, bytes) => pages[indexes[i]!] = bytes);
    });
    return pages;
  }

  list(kind: "documents" | "runs", prefix: string): Promise<readonly Listed[]> {
    this.#checkOpen();
    const found: Listed[] = [];
    if (kind === "runs") {
      for (const name of this.#runs.keys()) {
        if (name.startsWith(prefix)) found.push({ name, bytes: new Uint8Array(), version: "" });
      }
    } else {
      for (const [name, { bytes, version }] of this.#documents.byName) {
        if (name.startsWith(prefix)) found.push({ name, bytes: bytes.slice(), version });
      }
    }
    return Promise.resolve(found.sort((a, b) => a.name < b.name ? -1 : 1));
  }

  /** A run that comes back because of a crash is one that no document names. */
  async deleteRuns(runs: readonly string[]): Promise<void> {
    this.#checkOpen();
    if (this.#failed !== undefined) throw this.#failed.error; // a document may name them
    await inParallel(FILES_IN_FLIGHT, runs, async (run) => {
      const file = this.#runs.get(run);
      if (file === undefined) return;
      await file.remove();
      if (this.#runs.get(run) === file) this.#runs.delete(run);
    });
  }

  async commit(changes: readonly DocumentChange[]): Promise<boolean> {
    this.#checkOpen();
    checkDocuments(changes);
    const turn = this.#commits.then(() => this.#commit(changes));
    this.#commits = turn.catch(() => undefined); // whoever asked for it has the error
    return await turn;
  }

  async #commit(changes: readonly DocumentChange[]): Promise<boolean> {
    if (this.#failed !== undefined) throw this.#failed.error;
    const { commits, byName } = this.#documents;
    const isExpected = changes.every(({ name, expected }) => {
      return expected === undefined || expected === (byName.get(name)?.version ?? null);
    });
    if (!isExpected) return false;
    await this.#syncRuns();
    const next = new Map(byName), version = String(commits + 1);
    for (const { name, bytes } of changes) {
      if (bytes === undefined) next.delete(name);
      else next.set(name, { bytes: bytes.slice(), version });
    }
    await this.#replace({ commits: commits + 1, byName: next });
    return true;
  }

  async #syncRuns(): Promise<void> {
    const dirty = [...this.#runs.values()].filter((file) => file.isDirty);
    await inParallel(FILES_IN_FLIGHT, dirty, (file) => file.sync());
    const made = this.#made;
    if (made === this.#madeSynced) return;
    await this.#disk.syncFolder(this.#runFolder);
    this.#madeSynced = made;
  }

  /** Up to the rename the old documents are there, and from then on the new ones. */
  async #replace(documents: Documents): Promise<void> {
    await writeTemporary(this.#disk, this.#documentsPath, documents);
    try {
      await this.#disk.rename(temporaryOf(this.#documentsPath), this.#documentsPath);
      await this.#disk.syncFolder(this.#path);
    } catch (error) {
      this.#failed = { error };
      throw error;
    }
    this.#documents = documents;
  }

  async #findRuns(): Promise<void> {
    const longNames: string[] = [];
    for (const name of await this.#disk.names(this.#runFolder)) {
      const found = runOf(name);
      if (found === "inside") longNames.push(`${this.#runFolder}/${name}`);
      else if (found !== undefined) this.#runs.set(found.run, this.#fileOf(found.run));
    }
    await inParallel(FILES_IN_FLIGHT, longNames, async (path) => {
      const file = await this.#disk.open(path, false);
      try {
        const found = file === undefined ? undefined : await readName(file);
        if (found === "torn") await this.#disk.remove(path); // a crash came while it was made
        else if (found !== undefined) this.#runs.set(found.run, this.#fileOf(found.run));
      } finally {
        await file?.close();
      }
    });
  }

  /** Waits for what is under way. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #close(): Promise<void> {
    try {
      await this.#commits;
      const closed = await Promise.allSettled([...this.#runs.values()].map((file) => file.close()));
      for (const outcome of closed) if (outcome.status === "rejected") throw outcome.reason;
    } finally {
      await this.#lock?.[Symbol.asyncDispose]();
    }
  }

  #fileOf(run: string): RunFile {
    return new RunFile(run, `${this.#runFolder}/${fileNameOf(run)}`, {
      disk: this.#disk,
      open: this.#open,
      made: () => void this.#made++,
      where: this.#path,
    });
  }

  #checkOpen(): void {
    if (this.#closing === undefined) return;
    throw new MailerError("store_closed", `state: the pages in ${this.#path} are closed`);
  }

  get #runFolder(): string {
    return `${this.#path}/runs`;
  }

  get #documentsPath(): string {
    return `${this.#path}/documents`;
  }
}
