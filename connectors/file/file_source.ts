/**
 * Source `file`: records from one file or from all that match a pattern.
 *
 * F1 Files are read one after the other, in the order of their names (UTF-16 code units); each is a split, called what the
 *    pattern makes of it (`data/a.csv` of `data/*.csv`).
 * F2 Compressed files are read through; what is cut short or damaged ends the run with an error that names the file.
 * F3 A position says how far a file's content has been read; from it, reading goes on with the next record.
 * F4 With `follow`, files are read as they grow: see `follow_reader.ts`.
 *
 * @module
 */
import type { Finding, Source, SourceContext, SourceReader } from "../../lib/connector.ts";
import { type Duration, parseDuration } from "../../lib/duration.ts";
import { MailerError } from "../../lib/errors.ts";
import { type CheckedTextOptions, checkedTextOptions, type TextOptions } from "../../lib/format/mod.ts";
import { type Compression, fileError } from "./byte_input.ts";
import { allFiles, noFile, openFiles } from "./file_reader.ts";
import { openFollowed } from "./follow_reader.ts";

/** Settings of {@link fileSource}. */
export interface FileSourceOptions extends TextOptions {
  /**
   * A path, or a pattern with `*`, `?`, `[a-z]`, `{a,b}` within a name and `**` for any number of folders.
   * Separators are `/`.
   */
  readonly path: string;
  /** Default `auto`: by the ending `.gz`, `.zst`, `.zstd`, else by the first bytes. */
  readonly compression?: "auto" | Compression;
  /** Whether to wait for more at the end of the files, and for more files of the pattern. Default false. */
  readonly follow?: boolean;
  /** With `follow`: how often to look; default 200 ms. */
  readonly pollInterval?: Duration;
  /** Folder of a relative path; default the working directory. */
  readonly baseDirectory?: string;
}

/** What a reader of files was told, with all defaults. */
export interface CheckedFileOptions {
  readonly path: string;
  readonly baseDirectory: string;
  readonly compression: "auto" | Compression;
  readonly text: CheckedTextOptions;
  /** Ms. */
  readonly pollInterval: number;
}

const COMPRESSIONS = ["auto", "none", "gzip", "zstd"];

/**
 * Records from files. Errors while reading: `file_not_found`, `not_a_file`, `file_error`, `damaged_file`, `bad_csv_header`;
 * records that cannot be decoded are subject to the source's failure policy.
 *
 * @throws {MailerError} `invalid_file_options`, `invalid_text_options`, `invalid_csv_options`, `invalid_duration`
 */
export function fileSource<T = unknown>(options: FileSourceOptions): Source<T> {
  const { path, compression = "auto", follow = false, pollInterval = 200, baseDirectory = "" } = options;
  if (typeof path !== "string" || path === "") {
    throw new MailerError("invalid_file_options", "file source: `path` is missing");
  }
  if (!COMPRESSIONS.includes(compression)) {
    const expected = COMPRESSIONS.join(", ");
    throw new MailerError(
      "invalid_file_options",
      `file source: compression is one of ${expected}, got "${compression}"`,
    );
  }
  if (follow && compression !== "auto" && compression !== "none") {
    throw new MailerError(
      "invalid_file_options",
      `file source: a file compressed with ${compression} cannot be followed`,
    );
  }
  const text = checkedTextOptions(options);
  const checked = { path, baseDirectory, compression, text, pollInterval: parseDuration(pollInterval) };
  if (!(checked.pollInterval > 0)) {
    throw new MailerError("invalid_file_options", `file source: pollInterval is > 0, got ${pollInterval}`);
  }
  return {
    type: "file",
    describe: () => ({ path, format: text.format, compression, follow }),
    check: async () => [await checkFiles(checked, follow)],
    open: (context: SourceContext) =>
      (follow ? openFollowed(checked, context) : openFiles(checked, context)) as Promise<SourceReader<T>>,
  };
}

/** Whether there is something to read, and may be read. */
async function checkFiles(options: CheckedFileOptions, follow: boolean): Promise<Finding> {
  const files = await allFiles(options, undefined);
  if (files.length === 0) {
    const text = noFile(options).message;
    return follow ? { ok: true, text: `${text} yet` } : { ok: false, text };
  }
  let bytes = 0;
  for (const { name, path } of files) {
    try {
      using file = await Deno.open(path);
      bytes += (await file.stat()).size;
    } catch (cause) {
      throw fileError(name, "opening", cause);
    }
  }
  return { ok: true, text: `${files.length === 1 ? "1 file" : `${files.length} files`}, ${bytes} bytes` };
}
