/**
 * The bytes of a file, piece by piece, decompressed where needed.
 *
 * I1 A compressed file that is cut short or damaged is an error that names it; several gzip members or zstd frames one after
 *    the other are one content.
 * I2 What is read ahead is bounded: two pieces of the file, and what the decompressor holds.
 *
 * @module
 */
import type { Transform } from "node:stream";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { asError, MailerError } from "../../lib/errors.ts";
import { ZstdFrames } from "./zstd_frames.ts";

/** How a file is compressed. */
export type Compression = "none" | "gzip" | "zstd";

/** See the head of this file. */
export interface ByteInput {
  /** The next piece, valid until the next call; undefined at the end of the file. */
  read(): Promise<Uint8Array | undefined>;
  /** Bytes of the file itself read so far. */
  readonly fileBytes: number;
  /** Gives everything back; a pending `read` settles. */
  close(): Promise<void>;
}

/** Bytes a read asks the system for. */
const PIECE = 1 << 18;

/** An error of the file system, with the file's name. */
export function fileError(name: string, doing: string, cause: unknown): MailerError {
  if (cause instanceof MailerError) return cause;
  const code = cause instanceof Deno.errors.NotFound ? "file_not_found" : "file_error";
  return new MailerError(code, `file "${name}": ${doing} failed: ${asError(cause).message}`, { cause });
}

/**
 * Opens a file.
 *
 * @param name What the file is called in errors.
 * @param skip Bytes of content to begin behind.
 */
export async function openInput(
  name: string,
  path: string,
  compression: Compression,
  skip: number,
): Promise<ByteInput> {
  let file: Deno.FsFile | undefined;
  try {
    file = await Deno.open(path);
    if (compression === "none") {
      if (skip > 0) await file.seek(skip, Deno.SeekMode.Start);
      return new PlainInput(name, file, skip);
    }
    return new DecompressedInput(name, new PlainInput(name, file, 0), compression, skip);
  } catch (error) {
    file?.close();
    throw fileError(name, "opening", error);
  }
}

/**
 * How a file is compressed: what its name says (`.gz`, `.zst`, `.zstd`), else what it begins with.
 * A file that is no regular one (a pipe) is taken by its name alone: looking would eat its beginning.
 */
export async function detectCompression(name: string, path: string): Promise<Compression> {
  if (/\.gz$/i.test(name)) return "gzip";
  if (/\.zstd?$/i.test(name)) return "zstd";
  try {
    if (!(await Deno.stat(path)).isFile) return "none";
    using file = await Deno.open(path);
    const start = new Uint8Array(4);
    let length = 0;
    for (let read; length < 4 && (read = await file.read(start.subarray(length))) !== null;) length += read;
    if (length >= 2 && start[0] === 0x1f && start[1] === 0x8b) return "gzip";
    return length === 4 && new DataView(start.buffer).getUint32(0, true) === 0xfd2fb528 ? "zstd" : "none";
  } catch (error) {
    throw fileError(name, "opening", error);
  }
}

/** Reads one piece ahead, so that the disk works while records are decoded. */
class PlainInput implements ByteInput {
  readonly #name: string;
  readonly #file: Deno.FsFile;
  readonly #buffers = [new Uint8Array(PIECE), new Uint8Array(PIECE)];
  #ahead: Promise<number | null> | undefined;
  #fileBytes: number;
  #isClosed = false;

  constructor(name: string, file: Deno.FsFile, start: number) {
    this.#name = name;
    this.#file = file;
    this.#fileBytes = start;
  }

  get fileBytes(): number {
    return this.#fileBytes;
  }

  async read(): Promise<Uint8Array | undefined> {
    let length: number | null;
    try {
      length = await (this.#ahead ??= this.#file.read(this.#buffers[0]!));
    } catch (error) {
      throw fileError(this.#name, "reading", error);
    } finally {
      this.#ahead = undefined;
    }
    if (length === null || this.#isClosed) return undefined;
    const piece = this.#buffers[0]!.subarray(0, length);
    this.#buffers.reverse();
    this.#ahead = this.#file.read(this.#buffers[0]!);
    this.#ahead.catch(() => {}); // it is reported by the read that takes it
    this.#fileBytes += length;
    return piece;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const ahead = this.#ahead;
    this.#ahead = undefined;
    const { isFile } = await this.#file.stat();
    if (isFile) await ahead?.catch(() => {}); // a pipe may never answer: closing it ends the read
    this.#file.close();
  }
}

class DecompressedInput implements ByteInput {
  readonly #name: string;
  readonly #compression: Exclude<Compression, "none">;
  readonly #file: PlainInput;
  readonly #decoder: Transform;
  readonly #frames: ZstdFrames | undefined;
  readonly #pieces: AsyncIterator<Uint8Array>;
  readonly #feeding: Promise<void>;
  #goOn: (() => void) | undefined;
  #skip: number;
  #content = 0;

  constructor(name: string, file: PlainInput, compression: Exclude<Compression, "none">, skip: number) {
    this.#name = name;
    this.#compression = compression;
    this.#file = file;
    this.#skip = skip;
    this.#frames = compression === "zstd" ? new ZstdFrames() : undefined;
    this.#decoder = compression === "gzip"
      ? createGunzip({ chunkSize: PIECE })
      : createZstdDecompress({ chunkSize: PIECE });
    this.#decoder.on("error", () => {}); // it is reported by the read that meets it
    this.#decoder.once("close", () => this.#goOn?.());
    this.#pieces = this.#decoder[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
    this.#feeding = this.#feed().catch((error) => {
      this.#decoder.destroy(asError(error));
    });
  }

  get fileBytes(): number {
    return this.#file.fileBytes;
  }

  async read(): Promise<Uint8Array | undefined> {
    for (;;) {
      let next: IteratorResult<Uint8Array>;
      try {
        next = await this.#pieces.next();
      } catch (error) {
        throw this.#damaged(error);
      }
      if (next.done === true) {
        if (this.#skip > 0) {
          throw this.#damaged(new Error("it has become shorter than what had been read of it"));
        }
        this.#checkLength();
        return undefined;
      }
      const piece = next.value;
      this.#content += piece.length;
      if (piece.length <= this.#skip) {
        this.#skip -= piece.length;
        continue;
      }
      const rest = piece.subarray(this.#skip);
      this.#skip = 0;
      return rest;
    }
  }

  async close(): Promise<void> {
    this.#decoder.destroy();
    await this.#file.close();
    await this.#feeding;
  }

  async #feed(): Promise<void> {
    const decoder = this.#decoder;
    for (let piece = await this.#file.read(); piece !== undefined; piece = await this.#file.read()) {
      for (const part of this.#frames?.pieces(piece) ?? [piece]) {
        if (decoder.destroyed) return;
        await this.#decode(part.slice()); // the decoder keeps what it has, and the piece will be overwritten
      }
      if (decoder.destroyed) return;
    }
    this.#frames?.end();
    decoder.end();
  }

  /** Resolves when the decoder has taken the bytes, or was closed. */
  #decode(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.#goOn = resolve;
      this.#decoder.write(bytes, () => resolve());
    });
  }

  #checkLength(): void {
    const expected = this.#frames?.content;
    if (expected !== undefined && expected !== this.#content) {
      throw this.#damaged(new Error(`${expected} bytes were expected in it, ${this.#content} came out`));
    }
  }

  #damaged(cause: unknown): MailerError {
    if (cause instanceof MailerError) return cause;
    const { message, code } = cause as Error & { code?: string };
    const what = code === "Z_BUF_ERROR" ? "it ends too early" : message;
    return new MailerError(
      "damaged_file",
      `file "${this.#name}": cannot be read as ${this.#compression}: ${what}`,
      {
        cause,
        hint: "it may be cut short, still being written, or not compressed this way: see `compression`",
      },
    );
  }
}
