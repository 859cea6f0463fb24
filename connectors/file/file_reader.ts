/**
 * Reads files to their end, one after the other.
 *
 * @module
 */
import type { SourceContext, SourceRead, SourceReader } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import { abortable } from "../../lib/abortable.ts";
import { fileError } from "./byte_input.ts";
import type { CheckedFileOptions } from "./file_source.ts";
import { FileSplit, textPosition } from "./file_split.ts";
import { byCodeUnits, findFiles, type FoundFile, isPattern, pathIn } from "./glob.ts";

/** Finds the files; opens none. @throws {MailerError} `file_not_found` where there is none. */
export async function openFiles(options: CheckedFileOptions, context: SourceContext): Promise<SourceReader> {
  const files = await allFiles(options, context.restored);
  if (files.length === 0) throw noFile(options);
  const sizes: number[] = [];
  for (const { name, path } of files) sizes.push(await sizeOf(name, path));
  return new FileReader(files, sizes, options, context);
}

/** The files that match, and those that had been read from before. */
export async function allFiles(
  { path, baseDirectory }: CheckedFileOptions,
  restored: SourceContext["restored"],
): Promise<FoundFile[]> {
  const files = await findFiles(path, baseDirectory);
  const names = new Set(files.map(({ name }) => name));
  for (const name of restored?.keys() ?? []) {
    if (!names.has(name)) files.push({ name, path: pathIn(baseDirectory, name) });
  }
  return files.sort((a, b) => byCodeUnits(a.name, b.name));
}

/** The error of a path or pattern that nothing matches. */
export function noFile({ path, baseDirectory }: CheckedFileOptions): MailerError {
  const folder = baseDirectory === "" ? Deno.cwd() : baseDirectory;
  return isPattern(path)
    ? new MailerError("file_not_found", `no file matches "${path}" in folder "${folder}"`)
    : new MailerError("file_not_found", `there is no file "${path}" in folder "${folder}"`);
}

async function sizeOf(name: string, path: string): Promise<number> {
  try {
    const { isDirectory, size } = await Deno.stat(path);
    if (!isDirectory) return size;
  } catch (error) {
    throw fileError(name, "looking at it", error);
  }
  throw new MailerError("not_a_file", `"${name}" is a folder`);
}

class FileReader implements SourceReader {
  readonly splits: readonly string[];
  readonly #files: readonly FoundFile[];
  readonly #sizes: readonly number[];
  readonly #options: CheckedFileOptions;
  readonly #context: SourceContext;
  /** The file at hand, and how many are behind it. */
  #split: FileSplit | undefined;
  #done = 0;
  #isEnded = false;
  #pending: Promise<SourceRead> | undefined;

  constructor(
    files: readonly FoundFile[],
    sizes: readonly number[],
    options: CheckedFileOptions,
    context: SourceContext,
  ) {
    this.splits = files.map(({ name }) => name);
    this.#files = files;
    this.#sizes = sizes;
    this.#options = options;
    this.#context = context;
  }

  read(): SourceRead | Promise<SourceRead> {
    const read = this.#split?.records(this.#context.batchSize);
    if (read !== undefined) return read;
    const more = this.#pending = this.#more();
    return abortable(more, this.#context.signal);
  }

  progress(): { done: number; total: number } {
    const sum = (sizes: readonly number[]) => sizes.reduce((total, size) => total + size, 0);
    const before = sum(this.#sizes.slice(0, this.#done)), size = this.#sizes[this.#done] ?? 0;
    return { done: before + Math.min(this.#split?.fileBytes ?? 0, size), total: sum(this.#sizes) };
  }

  async close(): Promise<void> {
    await this.#split?.close(); // ends a read that waits for a pipe
    await this.#pending?.catch(() => {}); // it was reported to the caller of `read`
    await this.#split?.close();
  }

  async #more(): Promise<SourceRead> {
    const { batchSize } = this.#context;
    const split = this.#split ??= await this.#next();
    if (split === undefined) return { kind: "end" };
    while (!this.#isEnded) {
      if (!await split.more()) {
        split.end();
        this.#isEnded = true;
      }
      const read = split.records(batchSize);
      if (read !== undefined) return read;
    }
    await split.close();
    this.#split = undefined;
    this.#isEnded = false;
    this.#done++;
    return { kind: "ended", split: split.name };
  }

  async #next(): Promise<FileSplit | undefined> {
    const file = this.#files[this.#done];
    if (file === undefined) return undefined;
    const { compression, text } = this.#options, { name, path } = file;
    const restored = this.#context.restored?.get(name);
    const start = restored === undefined ? { bytes: 0, record: 0 } : textPosition(name, restored);
    const split = new FileSplit(file, compression, text, start);
    if (start.bytes > 0) await checkLength(split, path);
    return split;
  }
}

/** A file to go on in must still be there as far as it has been read. */
async function checkLength(split: FileSplit, path: string): Promise<void> {
  const size = await sizeOf(split.name, path);
  if (size < split.bytes && await split.compression() === "none") throw shrunk(split, size);
}

/** The error of a file that has become shorter than what has been read of it. */
export function shrunk({ name, bytes }: FileSplit, size: number): MailerError {
  return new MailerError(
    "file_shrunk",
    `file "${name}" has ${size} bytes, but ${bytes} had been read of it`,
    {
      hint: "it was cut or replaced: give new data a new name, or start without the checkpoint",
    },
  );
}
