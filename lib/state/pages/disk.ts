/**
 * The few things that page files need of a file system, and its errors in words.
 *
 * D1 Once `sync` of a file has resolved, every write to it that had resolved before survives a crash.
 * D2 Once `syncFolder` has resolved, so does every file made, renamed or removed in that folder before.
 * D3 Calls for one file may overlap; each reads and writes at its own place.
 *
 * @module
 */
import { type FileHandle, open } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { asError, MailerError } from "../../errors.ts";

/** An open file. */
export interface DiskFile {
  /** Its length, bytes. */
  size(): Promise<number>;
  /** Reads from `at` until `into` is full or the file ends; how many bytes that were. */
  read(into: Uint8Array, at: number): Promise<number>;
  /** Writes all of `bytes` at `at`. */
  write(bytes: Uint8Array, at: number): Promise<void>;
  /** Cuts it to `size` bytes. */
  truncate(size: number): Promise<void>;
  /** D1. */
  sync(): Promise<void>;
  /** Closes it, without syncing it. */
  close(): Promise<void>;
}

/** A file system. Its errors are `state_file_error` and name the file. */
export interface Disk {
  /** Opens a file for reading and writing; one that is not there is made, or else answered with `undefined`. */
  open(path: string, make: boolean): Promise<DiskFile | undefined>;
  /** Makes a folder and those above it, where they are missing, so that they survive a crash. */
  makeFolder(path: string): Promise<void>;
  /** The names of what lies in a folder. */
  names(folder: string): Promise<readonly string[]>;
  /** Gives a file another name, in place of the one that had it. */
  rename(from: string, to: string): Promise<void>;
  /** Removes a file; one that is not there is nothing to complain about. */
  remove(path: string): Promise<void>;
  /** D2. */
  syncFolder(path: string): Promise<void>;
}

/** The machine's file system. */
export const machineDisk: Disk = {
  async open(path, make) {
    try {
      return new MachineFile(path, await open(path, "r+"));
    } catch (error) {
      if (codeIn(error) !== "ENOENT") throw diskError(path, "opening", error);
    }
    return make ? new MachineFile(path, await named(path, "making", () => open(path, "w+"))) : undefined;
  },

  async makeFolder(path) {
    try {
      await Deno.mkdir(path);
    } catch (error) {
      const above = dirname(resolve(path));
      if (error instanceof Deno.errors.NotFound && above !== resolve(path)) {
        await this.makeFolder(above);
        return await this.makeFolder(path);
      }
      if (error instanceof Deno.errors.AlreadyExists && (await Deno.stat(path)).isDirectory) return;
      throw diskError(path, "making the folder", error);
    }
    await this.syncFolder(dirname(resolve(path)));
  },

  names(folder) {
    return named(folder, "listing", async () => {
      const names: string[] = [];
      for await (const { name } of Deno.readDir(folder)) names.push(name);
      return names;
    });
  },

  rename: (from, to) => named(from, `renaming to "${to}"`, () => Deno.rename(from, to)),

  async remove(path) {
    try {
      await Deno.remove(path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw diskError(path, "removing", error);
    }
  },

  async syncFolder(path) {
    // Windows opens no folder as a file, and needs not: its file systems keep names in a journal of their own.
    if (Deno.build.os === "windows") return;
    await named(path, "syncing the folder", async () => {
      using folder = await Deno.open(path);
      await folder.sync();
    });
  },
};

class MachineFile implements DiskFile {
  readonly #path: string;
  readonly #file: FileHandle;

  constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  size(): Promise<number> {
    return named(this.#path, "looking at it", async () => (await this.#file.stat()).size);
  }

  read(into: Uint8Array, at: number): Promise<number> {
    return named(this.#path, "reading", async () => {
      let done = 0;
      while (done < into.length) {
        const { bytesRead } = await this.#file.read(into, done, into.length - done, at + done);
        if (bytesRead === 0) break;
        done += bytesRead;
      }
      return done;
    });
  }

  write(bytes: Uint8Array, at: number): Promise<void> {
    return named(this.#path, "writing", async () => {
      for (let done = 0; done < bytes.length;) {
        done += (await this.#file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
      }
    });
  }

  truncate(size: number): Promise<void> {
    return named(this.#path, "cutting", () => this.#file.truncate(size));
  }

  sync(): Promise<void> {
    return named(this.#path, "syncing", () => this.#file.sync());
  }

  close(): Promise<void> {
    return named(this.#path, "closing", () => this.#file.close());
  }
}

/** What went wrong with a file, and what to do. */
export function diskError(path: string, doing: string, cause: unknown): MailerError {
  if (cause instanceof MailerError) return cause;
  const hint = cause instanceof Deno.errors.NotCapable
    ? "start deno with --allow-read and --allow-write for the folder of the state"
    : HINTS[codeIn(cause) ?? ""];
  return new MailerError(
    "state_file_error",
    `state: file "${path}": ${doing} failed: ${asError(cause).message}`,
    { cause, ...(hint === undefined ? {} : { hint }) },
  );
}

const NO_ROOM = "make room on the disk, or give the state a folder on another one";
const NO_RIGHT = "the user who runs this needs the right to read and write the folder of the state";
const HINTS: Readonly<Record<string, string>> = {
  ENOSPC: NO_ROOM,
  EDQUOT: NO_ROOM,
  EACCES: NO_RIGHT,
  EPERM: NO_RIGHT,
  EROFS: NO_RIGHT,
  EMFILE: "raise the number of files a process may have open (ulimit -n)",
};

async function named<T>(path: string, doing: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw diskError(path, doing, error);
  }
}

function codeIn(error: unknown): string | undefined {
  const code = typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : undefined;
}
