/**
 * Sink `file`: one line a record, in one file or rolled parts.
 *
 * O1 A write goes through to the file before it returns; `flush` makes it safe from a crash of the machine as well.
 * O2 Lines are never split: not between parts, not by a failed write.
 * O3 The first part is `NAME.EXT`, those after it `NAME.1.EXT`, `NAME.2.EXT` and so on. A part ends before the record that
 *    would make it longer than `rollSize`, and at the first record later than `rollEvery` after its own first one.
 * O4 Without `append` the file is emptied when the run starts, and parts that an earlier run left are removed; with it the run
 *    goes on in the last part there is.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import type { Sink, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { type Duration, parseDuration } from "../../lib/duration.ts";
import { MailerError } from "../../lib/errors.ts";
import {
  encodeBatch,
  type Encoder,
  type Format,
  jsonFormat,
  lineLength,
  linesOf,
  type Payload,
} from "../../lib/format/mod.ts";
import type { Batch } from "../../lib/record.ts";
import { fileError } from "./byte_input.ts";
import { pathIn } from "./glob.ts";
import { PartFile } from "./part_file.ts";

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
 * Writes records to a file. Errors: `file_error` (no space, no permission …) with the file's name; a record that cannot be
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
  return {
    type: "file",
    describe: () => ({
      path,
      append,
      format: format.name,
      ...(rollSize === Infinity ? {} : { rollSize }),
      ...(rollEvery === Infinity ? {} : { rollEvery }),
    }),
    async open(context: SinkContext): Promise<SinkWriter<T>> {
      const full = pathIn(baseDirectory, path), rolls = rollSize < Infinity || rollEvery < Infinity;
      const number = append ? await lastPart(full) : 0;
      const part = await PartFile.open(partPath(full, number), append ? "keep" : "empty");
      try {
        if (!append && rolls) await removeParts(full);
      } catch (error) {
        part.close();
        throw error;
      }
      return new FileSinkWriter({ path: full, rollSize, rollEvery, format }, context, part, number);
    },
  };
}

interface WriterOptions {
  readonly path: string;
  readonly rollSize: number;
  readonly rollEvery: number;
  readonly format: Format;
}

/** Path of a part; 0 is the first. */
function partPath(path: string, number: number): string {
  if (number === 0) return path;
  const name = path.lastIndexOf("/") + 1, dot = path.lastIndexOf(".");
  return dot > name ? `${path.slice(0, dot)}.${number}${path.slice(dot)}` : `${path}.${number}`;
}

async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw fileError(path, "looking at it", error);
  }
}

async function lastPart(path: string): Promise<number> {
  let number = 0;
  while (await exists(partPath(path, number + 1))) number++;
  return number;
}

async function removeParts(path: string): Promise<void> {
  for (let number = await lastPart(path); number > 0; number--) {
    const part = partPath(path, number);
    try {
      await Deno.remove(part);
    } catch (error) {
      throw fileError(part, "removing it", error);
    }
  }
}

/** Lines to be written to one part. */
interface Portion {
  readonly bytes: Uint8Array;
  readonly in: "this part" | "the next part";
}

class FileSinkWriter implements SinkWriter<unknown> {
  readonly #options: WriterOptions;
  readonly #context: SinkContext;
  readonly #encoder: Encoder;
  #part: PartFile;
  #number: number;
  /** When the part got its first record. */
  #since: number | undefined;
  #pending: Promise<void> | undefined;
  /** What is left of a batch: where a write has failed and is made again, no record is written, or rejected, twice. */
  #left: { readonly batch: Batch; readonly portions: Portion[] } | undefined;

  constructor(options: WriterOptions, context: SinkContext, part: PartFile, number: number) {
    this.#options = options;
    this.#context = context;
    this.#encoder = options.format.encoder();
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
    return abortable(pending, this.#context.signal);
  }

  async #write(batch: Batch): Promise<void> {
    if (this.#left?.batch !== batch) this.#left = { batch, portions: this.#portions(batch) };
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
    const next = await PartFile.open(partPath(this.#options.path, this.#number + 1), "empty");
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

  /** The lines of a batch, cut where parts end. */
  #portions(batch: Batch): Portion[] {
    const { rollSize, rollEvery } = this.#options, now = this.#context.clock.now();
    const payloads = encodeBatch(this.#encoder, batch, this.#context.reject);
    if (payloads.length === 0) return [];
    const head = this.#encoder.head?.(), groups: { in: Portion["in"]; lines: Payload[] }[] = [];
    let length = this.#part.length;
    const begin = (where: Portion["in"]): Payload[] => {
      const lines: Payload[] = [];
      groups.push({ in: where, lines });
      if (where === "the next part") [length, this.#since] = [0, now];
      if (length === 0 && head !== undefined) {
        lines.push(head);
        length = lineLength(head);
      }
      return lines;
    };
    const isAged = this.#since !== undefined && now - this.#since >= rollEvery;
    let lines = begin(isAged ? "the next part" : "this part"), isFresh = isAged || this.#part.length === 0;
    this.#since ??= now;
    for (const payload of payloads) {
      if (rollSize < Infinity) {
        const added = lineLength(payload);
        if (!isFresh && length + added > rollSize) lines = begin("the next part");
        length += added;
        isFresh = false;
      }
      lines.push(payload);
    }
    return groups.filter((group) => group.lines.length > 0).map((group) => ({
      bytes: linesOf(group.lines),
      in: group.in,
    }));
  }
}
