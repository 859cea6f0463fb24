/**
 * Sink `file`: one line a record, in one file or rolled parts.
 *
 * O1 Without checkpoints a write goes through to the file before it returns; `flush` makes it safe from a crash of the machine
 *    as well. With checkpoints records become visible when they are committed: `committing_writer.ts`.
 * O2 Lines are never split: not between parts, not by a failed write.
 * O3 The first part is `NAME.EXT`, those after it `NAME.1.EXT`, `NAME.2.EXT` and so on. When a part ends says `part_lines.ts`.
 * O4 Without `append` the file is emptied when the run starts, and parts that an earlier run left are removed; with it the run
 *    goes on in the last part there is. A run that goes on from a checkpoint goes on behind what that had committed.
 * O5 With checkpoints one writer at a time has the file, which a lock holds to. Without them several may: with `append` they add to
 *    what there is.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import type { Committable, Recovered, Sink, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { type Duration, parseDuration } from "../../lib/duration.ts";
import { MailerError } from "../../lib/errors.ts";
import { type Format, jsonFormat, readyEncoder } from "../../lib/format/mod.ts";
import type { Batch } from "../../lib/record.ts";
import { openCommittingWriter } from "./committing_writer.ts";
import { fileCommittable, recoverOutput } from "./file_commit.ts";
import { pathIn } from "./glob.ts";
import { PartFile } from "./part_file.ts";
import { PartLines, type PartOptions, type Portion } from "./part_lines.ts";
import { lastPart, partPath, removePartsBehind } from "./parts.ts";

/** Settings of {@link fileSink}. */
export interface FileSinkOptions {
  /** Its folders are made where they are missing. */
  readonly path: string;
  /** Whether to keep what is in the file. Default false: it is emptied when the run starts. */
  readonly append?: boolean;
  /** Bytes after which a new part begins; default never. */
  readonly rollSize?: number;
  /** Age after which a new part begins; default never. */
  readonly rollEvery?: Duration;
  /** How a record is written; default json. */
  readonly format?: Format;
  /** Folder of a relative path; default the working directory. */
  readonly baseDirectory?: string;
}

/**
 * Writes records to a file. Errors: `file_error` (no space, no permission …) with the file's name; with checkpoints
 * `output_locked` where another sink, here or in another process, has the file; a record that cannot be
 * written in the format goes to the sink's failure policy.
 *
 * @throws {MailerError} `invalid_file_options`, `invalid_duration`
 */
export function fileSink<T = unknown>(options: FileSinkOptions): Sink<T> {
  const { path, append = false, rollSize = Infinity, format = jsonFormat(), baseDirectory = "" } = options;
  const rollEvery = options.rollEvery === undefined ? Infinity : parseDuration(options.rollEvery);
  if (typeof path !== "string" || path === "" || path.endsWith("/")) {
    throw new MailerError(
      "invalid_file_options",
      `file sink: \`path\` is the path of a file, got ${JSON.stringify(path)}`,
    );
  }
  if (!(rollSize > 0) || !(rollEvery > 0)) {
    throw new MailerError("invalid_file_options", "file sink: rollSize and rollEvery are > 0");
  }
  readyEncoder(format, "file sink"); // said at once, not when a file is open
  // Not before a run: the working directory of relative paths is that of the run.
  const partOptions = (): PartOptions => ({ path: pathIn(baseDirectory, path), rollSize, rollEvery, format });
  return {
    type: "file",
    describe: () => ({
      path,
      append,
      format: format.name,
      ...(rollSize === Infinity ? {} : { rollSize }),
      ...(rollEvery === Infinity ? {} : { rollEvery }),
    }),
    commits: "two-phase",
    async recover(committable: Committable): Promise<Recovered> {
      const { path: full } = partOptions();
      await recoverOutput(full, fileCommittable(full, committable));
      return "committed";
    },
    open(context: SinkContext): Promise<SinkWriter<T>> {
      const { checkpoints } = context, parts = partOptions();
      return checkpoints === undefined
        ? openWriter(parts, context, append)
        : openCommittingWriter(parts, context, checkpoints, append);
    },
  };
}

/** Opens a writer whose lines are in the file at once. */
async function openWriter(
  options: PartOptions,
  context: SinkContext,
  append: boolean,
): Promise<SinkWriter<unknown>> {
  const { path, rollSize, rollEvery } = options, rolls = rollSize < Infinity || rollEvery < Infinity;
  const number = append ? await lastPart(path) : 0;
  const part = await PartFile.open(partPath(path, number), append ? "keep" : "empty");
  try {
    if (!append && rolls) await removePartsBehind(path, 0);
  } catch (error) {
    part.close();
    throw error;
  }
  return new FileSinkWriter(options, context, part, number);
}

class FileSinkWriter implements SinkWriter<unknown> {
  readonly #path: string;
  readonly #signal: AbortSignal;
  readonly #lines: PartLines;
  #part: PartFile;
  #number: number;
  #pending: Promise<void> | undefined;
  /** What is left of a batch: where a write has failed and is made again, no record is written, or rejected, twice. */
  #left: { readonly batch: Batch; readonly portions: Portion[] } | undefined;

  constructor(options: PartOptions, context: SinkContext, part: PartFile, number: number) {
    this.#path = options.path;
    this.#signal = context.signal;
    this.#lines = new PartLines(options, context);
    this.#part = part;
    this.#number = number;
  }

  write(batch: Batch): Promise<void> {
    return this.#run(this.#write(batch));
  }

  flush(): Promise<void> {
    return this.#run(this.#part.sync());
  }

  async close(): Promise<void> {
    await this.#pending?.catch(() => {}); // it was reported to the caller of `write` or `flush`
    this.#part.close();
  }

  #run(pending: Promise<void>): Promise<void> {
    this.#pending = pending;
    return abortable(pending, this.#signal);
  }

  async #write(batch: Batch): Promise<void> {
    if (this.#left?.batch !== batch) {
      this.#left = { batch, portions: this.#lines.portions(batch, this.#part.length) };
    }
    const { portions } = this.#left;
    for (let portion = portions[0]; portion !== undefined; portion = portions[0]) {
      if (portion.in === "the next part") {
        await this.#roll();
        portions[0] = { bytes: portion.bytes, in: "this part" };
      }
      await this.#part.write(portion.bytes);
      portions.shift();
    }
    this.#left = undefined;
  }

  async #roll(): Promise<void> {
    const next = await PartFile.open(partPath(this.#path, this.#number + 1), "empty");
    try {
      await this.#part.sync();
    } catch (error) {
      next.close();
      throw error;
    }
    this.#part.close();
    this.#part = next;
    this.#number++;
  }
}
