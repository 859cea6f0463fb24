/**
 * One process at a time: an advisory lock that the system gives up by itself when its holder dies.
 *
 * The lock is on a file of its own. It stays where it is when it is released: whoever removed it could take it from under another
 * process that has just opened it. Another opening in the same process counts as another process.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { diskError } from "./disk.ts";

/**
 * Locks a file, which is made where it is missing. Releasing twice is releasing once.
 *
 * @param path The lock file.
 * @param state What it stands for, for the error. Default: the lock file itself.
 * @throws {MailerError} `state_locked`, at once, where another has it; `state_file_error`
 */
export async function lockFile(path: string, state: string = path): Promise<AsyncDisposable> {
  let file: Deno.FsFile | undefined;
  try {
    file = await Deno.open(path, { create: true, write: true });
    if (await file.tryLock(true)) return new Lock(file);
  } catch (error) {
    file?.close();
    throw diskError(path, "locking", error);
  }
  file.close();
  throw new MailerError("state_locked", `state: another process has the state in ${state} open`, {
    hint: "stop the other one first, or give this one a state of its own",
  });
}

/** Does `open` under a lock on `path`; the lock is released where that fails. */
export async function withLock<T>(
  path: string,
  state: string,
  open: (lock: AsyncDisposable) => Promise<T>,
): Promise<T> {
  const lock = await lockFile(path, state);
  try {
    return await open(lock);
  } catch (error) {
    await lock[Symbol.asyncDispose]();
    throw error;
  }
}

class Lock implements AsyncDisposable {
  #file: Deno.FsFile | undefined;

  constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  /** Closing the file releases its lock. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#file?.close();
    this.#file = undefined;
    return Promise.resolve();
  }
}
