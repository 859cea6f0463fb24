/**
 * One process at a time: an advisory lock that the system gives up by itself when its holder dies.
 *
 * The lock is on a file of its own. Another opening in the same process counts as another process.
 *
 * L1 The file stays where it is when the lock is released, unless all who lock it say that it goes (`goes`). Then its holder removes
 *    it, as the last thing under the lock; and whoever gets the lock looks whether the file is still where it was opened: one that
 *    was removed in between locks nobody out, so it is opened anew.
 * L2 A file that cannot be removed stays. It is a lock for the next one all the same.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { diskError } from "./disk.ts";

/** What a lock is for. */
export interface LockUse {
  /** Whether the file goes with the lock (L1). On Windows it stays: there the name of an open file stays taken. */
  readonly goes: boolean;
  /** The error where another has the lock. */
  taken(): MailerError;
  /** The error where the file cannot be opened or locked. */
  failed(cause: unknown): MailerError;
}

/**
 * Locks a file, which is made where it is missing. Releasing twice is releasing once.
 *
 * @param path The lock file.
 * @param use What it stands for: the name of a state; or else its errors. Default: a state, named by the lock file itself.
 * @throws {MailerError} At once, where another has it: `state_locked` for a state. `state_file_error` for a state where the file
 * cannot be locked.
 */
export async function lockFile(path: string, use: string | LockUse = path): Promise<AsyncDisposable> {
  const { goes, taken, failed } = typeof use === "string" ? stateUse(path, use) : use;
  const removes = goes && Deno.build.os !== "windows";
  for (;;) {
    let file: Deno.FsFile | undefined;
    try {
      file = await Deno.open(path, { create: true, write: true });
      if (!await file.tryLock(true)) throw taken();
      if (!removes || await isAt(path, file)) return new Lock(file, removes ? path : undefined);
    } catch (error) {
      file?.close();
      throw error instanceof MailerError ? error : failed(error);
    }
    file.close(); // its holder has removed it meanwhile
  }
}

function stateUse(path: string, state: string): LockUse {
  return {
    goes: false,
    taken: () =>
      new MailerError("state_locked", `state: another process has the state in ${state} open`, {
        hint: "stop the other one first, or give this one a state of its own",
      }),
    failed: (cause) => diskError(path, "locking", cause),
  };
}

/** Whether a path still leads to an open file. */
async function isAt(path: string, file: Deno.FsFile): Promise<boolean> {
  const opened = await file.stat();
  if (opened.nlink === 0) return false;
  try {
    const { dev, ino } = await Deno.stat(path);
    return dev === opened.dev && ino === opened.ino;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Does `open` under a lock on `path`; the lock is released where that fails. See {@link lockFile}. */
export async function withLock<T>(
  path: string,
  use: string | LockUse,
  open: (lock: AsyncDisposable) => Promise<T>,
): Promise<T> {
  const lock = await lockFile(path, use);
  try {
    return await open(lock);
  } catch (error) {
    await lock[Symbol.asyncDispose]();
    throw error;
  }
}

class Lock implements AsyncDisposable {
  readonly #path: string | undefined;
  #file: Deno.FsFile | undefined;

  /** @param path Of the file, where it goes with the lock. */
  constructor(file: Deno.FsFile, path: string | undefined) {
    this.#file = file;
    this.#path = path;
  }

  /** Closing the file releases its lock. */
  async [Symbol.asyncDispose](): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    if (file === undefined) return;
    try {
      if (this.#path !== undefined) await removeOwn(this.#path, file);
    } finally {
      file.close();
    }
  }
}

/** Removes a lock file; not one that somebody has put in its place. */
async function removeOwn(path: string, file: Deno.FsFile): Promise<void> {
  try {
    if (await isAt(path, file)) await Deno.remove(path);
  } catch {
    // L2: what the lock was held for is done, and is not to fail because a file stays that does no harm.
  }
}
