/**
 * A run as a file: written at its end, read anywhere.
 *
 * R1 Writes and syncs of one run come one after the other: behind a page that a sync has made last there is no hole in front of it.
 * R2 What was written stays unsynced only while the file is open: who closes it for want of handles syncs it before.
 * R3 After a sync that failed the run is lost, and every further sync says so: the system may have dropped what it could not write,
 *    and would call the next one a success.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import type { Disk, DiskFile } from "./disk.ts";
import type { PageIndex } from "./page_index.ts";
import { pageMissing } from "./port.ts";
import { headOf, LOT_PAGES, lotOf, PAGES_A_RUN, scanRun } from "./run_format.ts";

const MOST_LOT_BYTES = 4 * 2 ** 20;
/** Pages that lie no further from each other than this are read together. */
const NEAR = 4096;
const MOST_READ_BYTES = 2 ** 20;

/** What the files of one store have in common. */
export interface RunFolder {
  readonly disk: Disk;
  /** The files that are open. */
  readonly open: OpenFiles;
  /** Is called when a file has come into the folder. */
  made(): void;
  /** Names the store, for errors. */
  readonly where: string;
}

/** The files that are open, least lately opened or read first. */
export class OpenFiles {
  readonly #files = new Set<RunFile>();
  readonly #most: number;

  /** @param most How many may be open, as long as not more are in use. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Notes a use. */
  used(file: RunFile): void {
    this.#files.delete(file);
    this.#files.add(file);
  }

  /** Notes that a file was closed. */
  closed(file: RunFile): void {
    this.#files.delete(file);
  }

  /** Closes what has not been used for longest until one more may be opened. */
  async makeRoom(): Promise<void> {
    for (const file of [...this.#files]) {
      if (this.#files.size < this.#most) return;
      if (file.isIdle) await file.retire();
    }
  }
}

/** One page that is wanted: its place in the answer, and in the file. */
interface Wanted {
  readonly index: number;
  readonly page: number;
  readonly at: number;
  readonly length: number;
}

/** The file of one run. */
export class RunFile {
  readonly #name: string;
  readonly #path: string;
  readonly #folder: RunFolder;
  #handle: Promise<DiskFile | undefined> | undefined;
  #index: PageIndex | undefined;
  /** Where the next lot comes. */
  #end = 0;
  /** Bytes of the file; more than `#end` where a torn tail has to be cut off first. */
  #size = 0;
  #users = 0;
  #whenIdle: (() => void)[] = [];
  #queue: Promise<unknown> = Promise.resolve();
  #isDirty = false;
  #isRemoved = false;
  #lost: { readonly error: unknown } | undefined;

  /** Does not touch the file. */
  constructor(name: string, path: string, folder: RunFolder) {
    this.#name = name;
    this.#path = path;
    this.#folder = folder;
  }

  /** Whether a commit has to {@link sync} it. */
  get isDirty(): boolean {
    return this.#isDirty || this.#lost !== undefined;
  }

  /** Whether nothing is going on with it. */
  get isIdle(): boolean {
    return this.#users === 0;
  }

  /** Appends pages; the file is made where it is missing. */
  write(first: number, pages: readonly Uint8Array[]): Promise<void> {
    if (first + pages.length > PAGES_A_RUN) {
      throw new MailerError("run_too_large", `state: run "${this.#name}" has more than ${PAGES_A_RUN} pages`);
    }
    return this.#inTurn(async () => {
      if (this.#isRemoved) {
        throw new MailerError("run_removed", `state: run "${this.#name}" was deleted while it was written`);
      }
      const file = (await this.#opened(true))!;
      for (let from = 0; from < pages.length;) {
        const to = lotEnd(pages, from);
        await this.#append(file, first + from, pages.slice(from, to));
        from = to;
      }
    });
  }

  /** Where it fails, the next one begins at the same place. */
  async #append(file: DiskFile, first: number, pages: readonly Uint8Array[]): Promise<void> {
    const head = this.#end === 0 ? headOf(this.#name) : undefined;
    const { bytes, pagesAt } = lotOf(this.#name, first, pages, head);
    if (this.#size > this.#end) await file.truncate(this.#end);
    this.#size = Infinity; // until it is known how far this one came
    await file.write(bytes, this.#end);
    let at = this.#end + pagesAt;
    pages.forEach(({ length }, i) => {
      this.#index!.put(first + i, at, length);
      at += length;
    });
    this.#end = this.#size = at;
    this.#isDirty = true;
  }

  /**
   * Reads pages and hands each to `put`, with its index in `pages`.
   *
   * @throws {MailerError} `page_missing`
   */
  read(pages: readonly number[], put: (index: number, bytes: Uint8Array) => void): Promise<void> {
    return this.#using(async () => {
      const file = this.#isRemoved ? undefined : await this.#opened(false);
      if (file === undefined) throw this.#missing(pages[0]!);
      for (const span of spansOf(this.#places(pages))) {
        const from = span[0]!.at, last = span.at(-1)!;
        const bytes = new Uint8Array(last.at + last.length - from);
        const read = await file.read(bytes, from);
        for (const { index, page, at, length } of span) {
          if (at + length - from > read) throw this.#missing(page);
          // A page of its own keeps no other in memory.
          put(index, span.length === 1 ? bytes : bytes.slice(at - from, at - from + length));
        }
      }
    });
  }

  #places(pages: readonly number[]): Wanted[] {
    const wanted = pages.map((page, index) => {
      const at = this.#index!.at(page);
      if (at === undefined) throw this.#missing(page);
      return { index, page, at, length: this.#index!.lengthOf(page) };
    });
    return wanted.sort((a, b) => a.at - b.at);
  }

  /** Makes what was written survive a crash. */
  sync(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#lost !== undefined) throw this.#lost.error;
      if (!this.#isDirty || this.#isRemoved) return;
      try {
        await (await this.#opened(false))?.sync();
        this.#isDirty = false;
      } catch (error) {
        this.#lost = { error };
        throw error;
      }
    });
  }

  /** Closes it, synced, unless somebody begins to use it meanwhile. */
  async retire(): Promise<void> {
    // R3: a sync that fails here is what the next commit fails with.
    if (this.#isDirty) await this.sync().catch(() => undefined);
    if (this.#users === 0) await this.#close();
  }

  /** Removes the file, once the reads that are under way have come to their end. */
  async remove(): Promise<void> {
    this.#isRemoved = true;
    // Closed before it is removed: the last to close a removed file has to wait until the system has freed its blocks.
    await this.close();
    try {
      await this.#folder.disk.remove(this.#path);
    } catch (error) {
      this.#isRemoved = false;
      throw error;
    }
    this.#isDirty = false;
    this.#lost = undefined;
  }

  /** Closes it when all that is under way has ended. */
  async close(): Promise<void> {
    await this.#inTurn(() => Promise.resolve());
    if (this.#users > 0) await new Promise<void>((resolve) => this.#whenIdle.push(resolve));
    await this.#close();
  }

  async #close(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    this.#folder.open.closed(this);
    await (await handle)?.close();
  }

  #missing(page: number): MailerError {
    return pageMissing({ run: this.#name, page }, this.#folder.where);
  }

  /** One thing after the other; R1. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    return this.#using(() => {
      const turn = this.#queue.then(work);
      this.#queue = turn.catch(() => undefined); // whoever asked for it has the error
      return turn;
    });
  }

  async #using<T>(work: () => Promise<T>): Promise<T> {
    this.#users++;
    try {
      return await work();
    } finally {
      if (--this.#users === 0) this.#whenIdle.splice(0).forEach((resolve) => resolve());
    }
  }

  async #opened(make: boolean): Promise<DiskFile | undefined> {
    for (;;) {
      const file = await (this.#handle ??= this.#open(make));
      this.#folder.open.used(this);
      if (file !== undefined) return file;
      this.#folder.open.closed(this);
      if (!make) return undefined; // otherwise: a read has looked for it, and found nothing
    }
  }

  async #open(make: boolean): Promise<DiskFile | undefined> {
    let file: DiskFile | undefined;
    try {
      await this.#folder.open.makeRoom();
      file = await this.#folder.disk.open(this.#path, false);
      if (file === undefined) this.#index = undefined;
      if (file === undefined && make) {
        file = await this.#folder.disk.open(this.#path, true);
        this.#folder.made();
      }
      if (file === undefined) this.#handle = undefined;
      else if (this.#index === undefined) {
        const { index, end, size } = await scanRun(file, this.#name);
        this.#index = index;
        this.#end = end;
        this.#size = size;
      }
      return file;
    } catch (error) {
      this.#handle = undefined;
      await file?.close();
      throw error;
    }
  }
}

/** Up to which page a lot goes that begins with page `from`. */
function lotEnd(pages: readonly Uint8Array[], from: number): number {
  let to = from, bytes = 0;
  do bytes += pages[to++]!.length; while (
    to < pages.length && to - from < LOT_PAGES && bytes + pages[to]!.length <= MOST_LOT_BYTES
  );
  return to;
}

/** What is read at once; `wanted` in the order of places. */
function spansOf(wanted: readonly Wanted[]): Wanted[][] {
  const spans: Wanted[][] = [];
  let from = 0, end = -Infinity;
  for (const page of wanted) {
    const to = page.at + page.length;
    if (page.at <= end + NEAR && to - from <= MOST_READ_BYTES) spans.at(-1)!.push(page);
    else {
      spans.push([page]);
      from = page.at;
    }
    end = to;
  }
  return spans;
}
