/**
 * Reads files as they grow, and files that are added.
 *
 * W1 A round looks at every file in order and reads what is new in it; a split without news is reported as empty. After a
 *    round without any news the next comes when the poll interval is over.
 * W2 The last line of a file waits until its line break is there.
 * W3 A file that is shorter than what has been read of it, or another file under its name, is an error: which of its records
 *    had been read before cannot be told. Logs that are rotated are followed by a pattern, each file under a name of its own.
 * W4 A file that is removed has ended, and so has a compressed one that is read to its end; what is there of the last line
 *    is the line then.
 * W5 No file is held open between rounds.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import { delay } from "../../lib/clock.ts";
import type { SourceContext, SourceRead, SourceReader } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import { fileError } from "./byte_input.ts";
import { allFiles, noFile, shrunk } from "./file_reader.ts";
import type { CheckedFileOptions } from "./file_source.ts";
import { FileSplit, textPosition } from "./file_split.ts";
import { findFiles, type FoundFile } from "./glob.ts";

/** Finds the files there are; none yet is a warning. */
export async function openFollowed(
  options: CheckedFileOptions,
  context: SourceContext,
): Promise<SourceReader> {
  const files = await allFiles(options, context.restored);
  if (files.length === 0) {
    context.logger.log("warn", `${noFile(options).message} yet`, { source: context.id });
  }
  return new FollowReader(files, options, context);
}

/** A file that is followed. */
interface Followed {
  readonly split: FileSplit;
  /** Which file it was when it was looked at first. */
  inode: number | null | undefined;
  /** Whether nothing more is read of it; then its last records are given out, then its end. */
  isComplete: boolean;
  hasEnded: boolean;
}

class FollowReader implements SourceReader {
  readonly splits: readonly string[];
  readonly #options: CheckedFileOptions;
  readonly #context: SourceContext;
  readonly #files: Followed[] = [];
  readonly #names = new Set<string>();
  readonly #removed = new Set<string>();
  /** The file that is looked at. */
  #at = 0;
  #hasNews = false;
  #pending: Promise<SourceRead> | undefined;

  constructor(files: readonly FoundFile[], options: CheckedFileOptions, context: SourceContext) {
    this.#options = options;
    this.#context = context;
    this.splits = files.map(({ name }) => name);
    for (const file of files) this.#add(file);
  }

  read(): SourceRead | Promise<SourceRead> {
    const read = this.#files[this.#at]?.split.records(this.#context.batchSize);
    if (read !== undefined) {
      this.#hasNews = true;
      return read;
    }
    const more = this.#pending = this.#more();
    return abortable(more, this.#context.signal);
  }

  async close(): Promise<void> {
    await this.#files[this.#at]?.split.close(); // ends a read that waits for a pipe
    await this.#pending?.catch(() => {}); // it was reported to the caller of `read`
    await this.#files[this.#at]?.split.close();
  }

  #add(file: FoundFile): void {
    const restored = this.#context.restored?.get(file.name);
    const start = restored === undefined ? { bytes: 0, record: 0 } : textPosition(file.name, restored);
    const split = new FileSplit(file, this.#options.compression, this.#options.text, start);
    this.#names.add(file.name);
    this.#files.push({ split, inode: undefined, isComplete: false, hasEnded: false });
  }

  async #more(): Promise<SourceRead> {
    for (;;) {
      const file = this.#files[this.#at];
      if (file === undefined) {
        const added = await this.#endRound();
        if (added.length > 0) return { kind: "added", splits: added };
        continue;
      }
      const read = file.hasEnded ? undefined : await this.#look(file);
      if (read?.kind === "records") {
        this.#hasNews = true;
        return read;
      }
      this.#at++;
      if (read !== undefined) return read;
    }
  }

  /** Waits where the round found nothing, then looks for more files. */
  async #endRound(): Promise<string[]> {
    const { clock, signal } = this.#context;
    if (!this.#hasNews) await delay(clock, this.#options.pollInterval, signal);
    this.#at = 0;
    this.#hasNews = false;
    const added: string[] = [];
    for (const file of await findFiles(this.#options.path, this.#options.baseDirectory)) {
      if (this.#removed.has(file.name)) throw replaced(file.name);
      if (this.#names.has(file.name)) continue;
      this.#add(file);
      added.push(file.name);
    }
    return added;
  }

  /** What is new in a file. */
  async #look(file: Followed): Promise<SourceRead> {
    const { split } = file, { batchSize } = this.#context;
    if (!file.isComplete) {
      const state = await this.#check(file);
      while (state !== "removed" && await split.more()) {
        const read = split.records(batchSize);
        if (read !== undefined) return read;
      }
      await split.close();
      if (state === "growing") return { kind: "empty", split: split.name };
      file.isComplete = true;
      split.end();
    }
    const read = split.records(batchSize);
    if (read !== undefined) return read;
    file.hasEnded = true;
    return { kind: "ended", split: split.name };
  }

  async #check(file: Followed): Promise<"growing" | "compressed" | "removed"> {
    const { split } = file, { id, logger } = this.#context;
    try {
      const { size, ino, isDirectory } = await Deno.stat(split.path);
      if (isDirectory) throw new MailerError("not_a_file", `"${split.name}" is a folder`);
      file.inode ??= ino;
      if (file.inode !== ino) throw replaced(split.name);
      if (await split.compression() !== "none") return "compressed";
      if (size < split.bytes) throw shrunk(split, size);
      return "growing";
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw fileError(split.name, "looking at it", error);
      this.#removed.add(split.name);
      logger.log("warn", `file "${split.name}" was removed while it was followed: it has ended`, {
        source: id,
      });
      return "removed";
    }
  }
}

function replaced(name: string): MailerError {
  return new MailerError("file_replaced", `file "${name}" was replaced by another while it was followed`, {
    hint: "follow a pattern, and give each new file a name of its own",
  });
}
