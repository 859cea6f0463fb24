/**
 * Writer of a file sink that commits with checkpoints.
 *
 * W1 Lines go into a pending file beside the parts, one file from barrier to barrier, made when the first line comes. The parts
 *    grow in a commit alone.
 * W2 Which part a line belongs to, and where in it, is decided when it is written: all behind it is counted on from there,
 *    whenever it is committed.
 * W3 A committable has every pending file that is not committed yet, also those of checkpoints that failed.
 * W4 The lock of the output is held from before anything is touched until the close has touched the last.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import type { Committable, SinkCheckpoints, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import type { Batch } from "../../lib/record.ts";
import { fileError } from "./byte_input.ts";
import {
  commitPending,
  cutBack,
  type FileCommittable,
  fileCommittable,
  type PendingFile,
  pendingName,
  pendingPath,
  type PendingPiece,
  removePending,
  withOutputLock,
} from "./file_commit.ts";
import { PartFile } from "./part_file.ts";
import { PartLines, type PartOptions, type Portion } from "./part_lines.ts";
import { lastPart, partPath, removeFile, removePartsBehind, splitPath, syncFolderOf } from "./parts.ts";

/**
 * Opens a writer that commits.
 *
 * @param append Whether a first run keeps what is in the file.
 * @throws {MailerError} `not_a_file`, `output_locked`, `output_changed`, `file_error`
 */
export async function openCommittingWriter(
  options: PartOptions,
  context: SinkContext,
  { restored }: SinkCheckpoints,
  append: boolean,
): Promise<SinkWriter<unknown>> {
  const { path } = options, rolls = options.rollSize < Infinity || options.rollEvery < Infinity;
  await checkRegular(path);
  const committed = restored === undefined ? undefined : fileCommittable(path, restored);
  return await withOutputLock(path, async (lock) => {
    if (committed !== undefined) await cutBack(path, committed, rolls);
    const start = committed ?? await firstStart(path, append, rolls);
    await removePending(path);
    await syncFolderOf(path);
    return new CommittingWriter(options, context, { start, rolls, lock });
  });
}

/** A pipe or a device cannot be cut, so nothing can be committed to it. */
async function checkRegular(path: string): Promise<void> {
  let info: Deno.FileInfo;
  try {
    info = await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    throw fileError(path, "looking at it", error);
  }
  if (info.isFile || info.isDirectory) return; // opening a folder fails by itself
  throw new MailerError(
    "not_a_file",
    `file "${path}": it is a pipe or a device, which cannot be written exactly once with checkpoints`,
    { hint: "write to a regular file, or run the pipeline without checkpoints" },
  );
}

async function firstStart(path: string, append: boolean, rolls: boolean): Promise<FileCommittable> {
  const part = append ? await lastPart(path) : 0;
  const file = await PartFile.open(partPath(path, part), append ? "keep" : "empty");
  const { length } = file;
  try {
    await file.sync();
  } finally {
    file.close();
  }
  if (!append && rolls) await removePartsBehind(path, 0);
  return { file: splitPath(path)[1], part, length, pending: [] };
}

/** The pending file that is being written. */
interface OpenPending {
  readonly name: string;
  readonly file: PartFile;
  readonly pieces: PendingPiece[];
}

/** What a writer begins with. */
interface Beginning {
  readonly start: FileCommittable;
  readonly rolls: boolean;
  /** W4. */
  readonly lock: AsyncDisposable;
}

class CommittingWriter implements SinkWriter<unknown> {
  readonly #path: string;
  readonly #file: string;
  readonly #signal: AbortSignal;
  readonly #lines: PartLines;
  readonly #rolls: boolean;
  readonly #lock: AsyncDisposable;
  /** Where the next line goes, were everything committed. */
  #end: { readonly part: number; readonly length: number };
  #open: OpenPending | undefined;
  #prepared: PendingFile[] = [];
  #running: Promise<unknown> | undefined;
  /** What is left of a batch: where a write has failed and is made again, no record is written, or rejected, twice. */
  #left: { readonly batch: Batch; readonly portions: Portion[] } | undefined;

  constructor(options: PartOptions, context: SinkContext, { start, rolls, lock }: Beginning) {
    this.#path = options.path;
    this.#file = start.file;
    this.#signal = context.signal;
    this.#lines = new PartLines(options, context, start.since);
    this.#rolls = rolls;
    this.#lock = lock;
    this.#end = start;
  }

  write(batch: Batch): Promise<void> {
    return this.#run(this.#write(batch));
  }

  flush(): Promise<void> {
    return this.#run(this.#open?.file.sync() ?? Promise.resolve());
  }

  prepare(_checkpoint: number): Promise<Committable> {
    return this.#run(this.#prepare());
  }

  commit(committable: Committable): Promise<void> {
    return this.#run(this.#commit(fileCommittable(this.#path, committable)));
  }

  async close(): Promise<void> {
    await this.#running?.catch(() => {}); // it was reported to whoever called
    await using _lock = this.#lock;
    if (this.#open === undefined) return;
    const { file } = this.#open;
    this.#open = undefined;
    file.close();
    await removeFile(file.path); // what was not prepared comes again
  }

  #run<T>(running: Promise<T>): Promise<T> {
    this.#running = running;
    return abortable(running, this.#signal);
  }

  async #write(batch: Batch): Promise<void> {
    if (this.#left?.batch !== batch) {
      this.#left = { batch, portions: this.#lines.portions(batch, this.#end.length) };
    }
    const { portions } = this.#left;
    for (let portion = portions[0]; portion !== undefined; portion = portions[0]) {
      await this.#append(portion);
      portions.shift();
    }
    this.#left = undefined;
  }

  async #append({ bytes, in: where }: Portion): Promise<void> {
    const { part, length: at } = where === "the next part"
      ? { part: this.#end.part + 1, length: 0 }
      : this.#end;
    this.#open ??= await this.#begin(part, at);
    const { file, pieces } = this.#open, last = pieces.at(-1);
    await file.write(bytes);
    if (last?.part === part) pieces[pieces.length - 1] = { ...last, length: last.length + bytes.length };
    else pieces.push({ part, at, length: bytes.length });
    this.#end = { part, length: at + bytes.length };
  }

  async #begin(part: number, at: number): Promise<OpenPending> {
    const name = pendingName(this.#file, part, at);
    return { name, file: await PartFile.open(pendingPath(this.#path, name), "empty"), pieces: [] };
  }

  async #prepare(): Promise<FileCommittable> {
    if (this.#open !== undefined) await this.#endPending(this.#open);
    const { part, length } = this.#end, { since } = this.#lines;
    const pending = [...this.#prepared];
    return {
      file: this.#file,
      part,
      length,
      ...(since === undefined ? {} : { since }),
      ...(this.#rolls ? { rolls: true } : {}),
      pending,
    };
  }

  async #endPending({ name, file, pieces }: OpenPending): Promise<void> {
    await file.sync();
    await syncFolderOf(file.path);
    file.close();
    this.#open = undefined;
    if (pieces.length === 0) await removeFile(file.path); // its only write has failed
    else this.#prepared.push({ name, pieces });
  }

  async #commit(committable: FileCommittable): Promise<void> {
    await commitPending(this.#path, committable);
    const names = new Set(committable.pending.map(({ name }) => name));
    this.#prepared = this.#prepared.filter(({ name }) => !names.has(name));
  }
}
