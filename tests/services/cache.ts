/**
 * What was downloaded or built for the tests, kept between runs.
 *
 * 1. A folder of the cache is there whole or not at all: it is made beside its place and renamed.
 * 2. It never changes: versions, and whatever else it depends on, are part of its name.
 * 3. However many processes ask for it at once, one makes it and the others wait.
 *
 * @module
 */
import { createHash } from "node:crypto";

/** `MAILER_SERVICES_CACHE`, or `mailer-services` in the user's cache folder. It may not be there yet. */
export function cacheFolder(): string {
  const chosen = Deno.env.get("MAILER_SERVICES_CACHE");
  if (chosen !== undefined && chosen !== "") return chosen;
  const cache = Deno.env.get("XDG_CACHE_HOME");
  return `${
    cache !== undefined && cache !== "" ? cache : `${Deno.env.get("HOME") ?? "/tmp"}/.cache`
  }/mailer-services`;
}

/** Whether something is there, whatever it is, that this user may see. */
export function isThere(path: string): boolean {
  return statOf(path) !== undefined;
}

/** What is there, for this user. */
export function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch (error) {
    const { NotFound, NotADirectory, PermissionDenied } = Deno.errors;
    if ([NotFound, NotADirectory, PermissionDenied].some((kind) => error instanceof kind)) return undefined;
    throw error;
  }
}

/** Whether the cache has a folder of that name. */
export function isCached(name: string): boolean {
  return isThere(`${cacheFolder()}/${name}`);
}

/**
 * The path of a folder of the cache; `make` fills it where it is not there yet.
 *
 * @param name With all that its content depends on.
 * @param make Gets an empty folder. Throws where it cannot be had; nothing is kept then.
 */
export async function cached(name: string, make: (folder: string) => Promise<void>): Promise<string> {
  const path = `${cacheFolder()}/${name}`;
  if (isThere(path)) return path;
  await Deno.mkdir(cacheFolder(), { recursive: true });
  await using _lock = await exclusive(`${path}.lock`);
  if (isThere(path)) return path;
  const unfinished = `${path}.${crypto.randomUUID()}`;
  await Deno.mkdir(unfinished);
  try {
    await make(unfinished);
    await Deno.rename(unfinished, path);
  } catch (error) {
    await Deno.remove(unfinished, { recursive: true });
    throw error;
  }
  return path;
}

/** Holds a lock file for itself alone, among all processes, until it is disposed of. Waits for it. */
export async function exclusive(path: string): Promise<AsyncDisposable> {
  const file = await Deno.open(path, { create: true, write: true });
  await file.lock(true);
  return {
    [Symbol.asyncDispose]() {
      file.close();
      return Promise.resolve();
    },
  };
}

/** A short name for what a folder of the cache depends on. */
export function digestOf(...parts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 12);
}
