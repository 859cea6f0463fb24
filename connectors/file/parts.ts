/**
 * Where the parts of a file sink lie, and what is done to them as files.
 *
 * @module
 */
import { fileError } from "./byte_input.ts";

/** Path of a part; 0 is the first. */
export function partPath(path: string, number: number): string {
  if (number === 0) return path;
  const name = path.lastIndexOf("/") + 1, dot = path.lastIndexOf(".");
  return dot > name ? `${path.slice(0, dot)}.${number}${path.slice(dot)}` : `${path}.${number}`;
}

/** A path as what is in front of the name (`folder/`, or nothing) and the name. */
export function splitPath(path: string): readonly [folder: string, name: string] {
  const name = path.lastIndexOf("/") + 1;
  return [path.slice(0, name), path.slice(name)];
}

/** Bytes in a file; undefined where there is none. */
export async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await Deno.stat(path)).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw fileError(path, "looking at it", error);
  }
}

/** Number of the last part there is, looking from `first` on. */
export async function lastPart(path: string, first = 0): Promise<number> {
  let number = first;
  while (await sizeOf(partPath(path, number + 1)) !== undefined) number++;
  return number;
}

/** Removes the parts behind one, the last first: what an interruption leaves has no gap. */
export async function removePartsBehind(path: string, number: number): Promise<void> {
  for (let last = await lastPart(path, number); last > number; last--) await removeFile(partPath(path, last));
}

/** Removes a file; it may be gone already. */
export async function removeFile(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw fileError(path, "removing it", error);
  }
}

/** Makes the folder of a file where it is missing, so that it is still there after a crash of the machine. */
export async function makeFolderOf(path: string): Promise<void> {
  const folder = splitPath(path)[0].replace(/\/+$/, "");
  if (folder === "" || await sizeOf(folder) !== undefined) return;
  await makeFolderOf(folder);
  try {
    await Deno.mkdir(folder, { recursive: true }); // `recursive`: another may have made it just now
  } catch (error) {
    throw fileError(path, "making its folder", error);
  }
  await syncFolderOf(folder);
}

/** Makes safe from a crash of the machine which files there are in the folder of a file. */
export async function syncFolderOf(path: string): Promise<void> {
  if (Deno.build.os === "windows") return; // it keeps names safe by itself, and opens no folders
  const folder = splitPath(path)[0] || ".";
  let file: Deno.FsFile | undefined;
  try {
    file = await Deno.open(folder);
    await file.sync();
  } catch (error) {
    throw fileError(folder, "writing the folder to disk", error);
  } finally {
    file?.close();
  }
}
