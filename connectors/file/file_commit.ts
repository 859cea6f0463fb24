/**
 * What a file sink commits: files of prepared lines, and where in the parts they belong.
 *
 * C1 A commit says for each piece at which byte of which part it stands. It cuts the part there and then appends, so a commit
 *    that was interrupted anywhere is made again, with the same outcome.
 * C2 Pending files are removed, in their order, when everything is in the parts and on disk. So one that is gone has been
 *    committed, and with it all in front of it; that the part is long enough is looked at all the same.
 * C3 The name of a pending file says where its lines begin. Positions only grow in a run, and a run that goes on from a
 *    committable begins behind it: no later file has the name of one that it speaks of.
 * C4 Nothing is appended to, or cut from, a part that is shorter than it was: somebody else has changed it.
 * C5 Whoever commits, cuts back or has pending files holds the lock of the output, `.NAME.lock` beside it: two at a time would
 *    remove the pending files, and cut the parts, of each other. It goes with the process that holds it.
 *
 * @module
 */
import type { Committable } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import { type LockUse, withLock } from "../../lib/state/pages/lock.ts";
import { fileError } from "./byte_input.ts";
import {
  makeFolderOf,
  partPath,
  removeFile,
  removePartsBehind,
  sizeOf,
  splitPath,
  syncFolderOf,
} from "./parts.ts";

/** Lines that belong into one part. */
export interface PendingPiece {
  /** Number of the part. */
  readonly part: number;
  /** Byte of the part at which they begin. */
  readonly at: number;
  /** Bytes. */
  readonly length: number;
}

/** A file of prepared lines. */
export interface PendingFile {
  /** Its name; it lies beside the parts. */
  readonly name: string;
  /** What is in it, without gaps, in the order of the parts; at least one. */
  readonly pieces: readonly PendingPiece[];
}

/** The committable of a file sink. */
export interface FileCommittable {
  /** Name of the first part. */
  readonly file: string;
  /** The last part, once everything is committed. */
  readonly part: number;
  /** Bytes in it. */
  readonly length: number;
  /** When it got its first record, ms since the epoch; missing where it has none. */
  readonly since?: number;
  /** Whether the sink makes more parts: there may be some behind this one when a run comes back to it. Missing: it does not. */
  readonly rolls?: boolean;
  /** What is to be committed, in this order. */
  readonly pending: readonly PendingFile[];
}

const COPIED_AT_ONCE = 1 << 18;

/** What the names of the pending files of a sink begin with; behind it stand digits and dashes. */
function pendingPrefix(file: string): string {
  return `.${file}.pending-`;
}

/** Name of the pending file whose first line stands at byte `at` of a part. */
export function pendingName(file: string, part: number, at: number): string {
  return `${pendingPrefix(file)}${part}-${at}`;
}

/** Path of a pending file of the sink that writes to `path`. */
export function pendingPath(path: string, name: string): string {
  return splitPath(path)[0] + name;
}

/**
 * Does `work` under the lock of the output `path` (C5), whose folder is made where it is missing. Where it fails the lock is
 * released; else that is up to `work`, or to whom it gives the lock.
 *
 * @throws {MailerError} `output_locked` where another writer has it; `file_error`.
 */
export async function withOutputLock<T>(
  path: string,
  work: (lock: AsyncDisposable) => Promise<T>,
): Promise<T> {
  await makeFolderOf(path);
  const [folder, file] = splitPath(path), lock = `${folder}.${file}.lock`;
  return await withLock(lock, outputUse(path, lock), work);
}

function outputUse(path: string, lock: string): LockUse {
  return {
    goes: true,
    taken: () =>
      new MailerError("output_locked", `file "${path}": another sink, or another run, is writing to it`, {
        hint: "give each sink a file of its own, or stop the other run first",
      }),
    failed: (cause) => fileError(lock, "locking it", cause),
  };
}

/**
 * The committable of the sink that writes to `path`.
 *
 * @throws {MailerError} `output_changed` where it is that of another sink.
 */
export function fileCommittable(path: string, committable: Committable): FileCommittable {
  const file = splitPath(path)[1];
  if (isFileCommittable(committable) && committable.file === file) return committable;
  const other = isFileCommittable(committable) ? `a sink for "${committable.file}"` : "another kind of sink";
  throw new MailerError("output_changed", `file "${path}": the checkpoint was taken with ${other}`, {
    hint: "give the sink an id of its own, or its old path; or start without the checkpoint",
  });
}

function isFileCommittable(committable: Committable): committable is FileCommittable {
  const { file, part, length, since = 0, rolls = false, pending } = (committable ?? {}) as Partial<
    FileCommittable
  >;
  return typeof file === "string" && isCount(part) && isCount(length) && typeof since === "number" &&
    typeof rolls === "boolean" && Array.isArray(pending) && pending.every((one) => isPendingFile(file, one));
}

function isPendingFile(file: string, one: unknown): boolean {
  const { name, pieces } = (one ?? {}) as Partial<PendingFile>;
  return typeof name === "string" && isNameOfPending(file, name) && Array.isArray(pieces) &&
    pieces.length > 0 &&
    pieces.every((piece: Partial<PendingPiece> | null) =>
      isCount(piece?.part) && isCount(piece.at) && isCount(piece.length)
    );
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && value as number >= 0;
}

function isNameOfPending(file: string, name: string): boolean {
  const prefix = pendingPrefix(file);
  return name.startsWith(prefix) && /^[\d-]+$/.test(name.slice(prefix.length));
}

/**
 * Appends to the parts what is pending. Doing it again changes nothing.
 *
 * @throws {MailerError} `pending_lost` where pending lines are neither in their file nor in their part; `output_changed` where a
 * part is shorter than it was; `file_error`.
 */
export async function commitPending(path: string, { pending }: FileCommittable): Promise<void> {
  const lengths: (number | undefined)[] = [];
  for (const { name } of pending) lengths.push(await sizeOf(pendingPath(path, name)));
  const gone = lengths.lastIndexOf(undefined), left = pending.slice(gone + 1);
  if (gone >= 0) await checkCommitted(path, pending[gone]!);
  for (const [i, file] of left.entries()) checkWhole(path, file, lengths[gone + 1 + i]!);
  for (const file of left) await appendPieces(path, file);
  if (left.length > 0) await syncFolderOf(path); // parts may be new
  for (const { name } of pending) await removeFile(pendingPath(path, name));
}

/**
 * {@link commitPending} where no writer is open.
 *
 * @throws {MailerError} Also `output_locked`.
 */
export async function recoverOutput(path: string, committable: FileCommittable): Promise<void> {
  await withOutputLock(path, async (lock) => {
    await commitPending(path, committable);
    await lock[Symbol.asyncDispose]();
  });
}

/** C2: a file that is gone is in its part. */
async function checkCommitted(path: string, { name, pieces }: PendingFile): Promise<void> {
  const { part, at, length } = pieces.at(-1)!, visible = partPath(path, part);
  const there = await sizeOf(visible);
  if (there !== undefined && there >= at + length) return;
  const found = there === undefined ? "does not exist" : `has ${there} bytes`;
  throw pendingLost(
    path,
    name,
    `it is gone, and "${visible}", which would have ${at + length} bytes with its lines, ${found}`,
  );
}

function checkWhole(path: string, { name, pieces }: PendingFile, length: number): void {
  const whole = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (length < whole) throw pendingLost(path, name, `it has ${length} of its ${whole} bytes`);
}

function pendingLost(path: string, name: string, what: string): MailerError {
  return new MailerError(
    "pending_lost",
    `file "${pendingPath(path, name)}": lines that a checkpoint had prepared are lost: ${what}`,
    { hint: "put the file back; or go on from an older savepoint, or start without the checkpoint" },
  );
}

async function appendPieces(path: string, { name, pieces }: PendingFile): Promise<void> {
  const from = pendingPath(path, name);
  let source: Deno.FsFile | undefined;
  try {
    source = await Deno.open(from);
    for (const piece of pieces) await appendPiece(path, piece, source, from);
  } catch (error) {
    throw fileError(from, "reading", error);
  } finally {
    source?.close();
  }
}

async function appendPiece(
  path: string,
  piece: PendingPiece,
  source: Deno.FsFile,
  from: string,
): Promise<void> {
  const target = partPath(path, piece.part);
  const there = await sizeOf(target);
  if (piece.at > (there ?? 0)) throw outputChanged(target, piece.at, there);
  let file: Deno.FsFile | undefined;
  try {
    file = await Deno.open(target, { write: true, create: true });
    await file.truncate(piece.at);
    await file.seek(piece.at, Deno.SeekMode.Start);
    await copy(piece.length, source, file, from);
    await file.syncData();
  } catch (error) {
    throw fileError(target, "writing", error);
  } finally {
    file?.close();
  }
}

async function copy(length: number, source: Deno.FsFile, target: Deno.FsFile, from: string): Promise<void> {
  const buffer = new Uint8Array(Math.min(length, COPIED_AT_ONCE));
  for (let left = length; left > 0;) {
    const read = await readSome(source, buffer.subarray(0, Math.min(left, buffer.length)), from);
    for (let at = 0; at < read;) at += await target.write(buffer.subarray(at, read));
    left -= read;
  }
}

async function readSome(source: Deno.FsFile, into: Uint8Array, from: string): Promise<number> {
  try {
    const read = await source.read(into);
    if (read === null) throw new Error("it has become shorter");
    return read;
  } catch (error) {
    throw fileError(from, "reading", error);
  }
}

/**
 * Makes the parts what they were when a committable had been committed: cuts off what is behind it, for that comes again.
 *
 * Parts that only runs with other settings have made since are not known of, where the committable has none and neither it nor this
 * run rolls: files with their names may be somebody else's.
 *
 * @param rolls Whether the sink rolls now.
 * @throws {MailerError} `output_changed` where the last part is shorter than it was; `file_error`.
 */
export async function cutBack(path: string, committed: FileCommittable, rolls: boolean): Promise<void> {
  const last = partPath(path, committed.part);
  const there = await sizeOf(last);
  if (there === undefined || there < committed.length) throw outputChanged(last, committed.length, there);
  let file: Deno.FsFile | undefined;
  try {
    file = await Deno.open(last, { write: true });
    await file.truncate(committed.length);
    await file.syncData();
  } catch (error) {
    throw fileError(last, "cutting it", error);
  } finally {
    file?.close();
  }
  if (rolls || committed.rolls || committed.part > 0) await removePartsBehind(path, committed.part);
}

function outputChanged(path: string, expected: number, found: number | undefined): MailerError {
  const now = found === undefined ? "it does not exist" : `it has ${found} bytes`;
  return new MailerError(
    "output_changed",
    `file "${path}": it had ${expected} bytes at the checkpoint, now ${now}`,
    { hint: "put the file back as it was; or start without the checkpoint, which writes everything anew" },
  );
}

/** Removes the pending files of earlier runs. */
export async function removePending(path: string): Promise<void> {
  const [folder, file] = splitPath(path), names: string[] = [];
  try {
    for await (const { name } of Deno.readDir(folder || ".")) {
      if (isNameOfPending(file, name)) names.push(name);
    }
  } catch (error) {
    throw fileError(path, "looking into its folder", error);
  }
  for (const name of names) await removeFile(folder + name);
}
