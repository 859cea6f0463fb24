/**
 * One file as a split: its bytes, cut into records.
 *
 * @module
 */
import type { Position, RecordsRead } from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import {
  type CheckedTextOptions,
  type TextPosition,
  type TextReader,
  textReader,
} from "../../lib/format/mod.ts";
import { type ByteInput, type Compression, detectCompression, openInput } from "./byte_input.ts";
import type { FoundFile } from "./glob.ts";

/** See the head of this file. */
export class FileSplit {
  readonly name: string;
  readonly path: string;
  /** Bytes of content that have been read from the file. */
  bytes: number;
  readonly #compression: "auto" | Compression;
  readonly #text: TextReader;
  #found: Compression | undefined;
  #input: ByteInput | undefined;

  /** @param start Position to go on from. */
  constructor(
    file: FoundFile,
    compression: "auto" | Compression,
    text: CheckedTextOptions,
    start: TextPosition,
  ) {
    this.name = file.name;
    this.path = file.path;
    this.bytes = start.bytes;
    this.#compression = compression;
    this.#text = this.#named(() => textReader(text, start));
  }

  /** Bytes of the file itself read since it was opened, those in front of the start included. */
  get fileBytes(): number {
    return this.#input?.fileBytes ?? 0;
  }

  /** Records that are in memory. */
  records(most: number): RecordsRead | undefined {
    const read = this.#named(() => this.#text.next(most));
    return read === undefined ? undefined : { kind: "records", split: this.name, ...read };
  }

  /** Reads a piece of the file. False at its end. */
  async more(): Promise<boolean> {
    const piece = await (await this.#open()).read();
    if (piece === undefined) return false;
    this.bytes += piece.length;
    this.#text.push(piece);
    return true;
  }

  /** Says that nothing more will be read: what is there of the last record is the record. */
  end(): void {
    this.#text.end();
  }

  /** Lets go of the file; `more` opens it again, behind what has been read. */
  async close(): Promise<void> {
    const input = this.#input;
    this.#input = undefined;
    await input?.close();
  }

  /** How the file is compressed; looks into it where that is to be found out. */
  async compression(): Promise<Compression> {
    if (this.#compression !== "auto") return this.#compression;
    return this.#found ??= await detectCompression(this.name, this.path);
  }

  async #open(): Promise<ByteInput> {
    return this.#input ??= await openInput(this.name, this.path, await this.compression(), this.bytes);
  }

  #named<R>(run: () => R): R {
    try {
      return run();
    } catch (error) {
      if (!(error instanceof MailerError)) throw error;
      const { hint } = error;
      throw new MailerError(error.code, `file "${this.name}": ${error.message}`, {
        cause: error,
        ...(hint === undefined ? {} : { hint }),
      });
    }
  }
}

/** The position of a restored split. @throws {MailerError} `invalid_position` */
export function textPosition(name: string, position: Position): TextPosition {
  const { bytes, record, header } = (position ?? {}) as Partial<TextPosition>;
  const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;
  if (isCount(bytes) && isCount(record)) {
    return { bytes: bytes!, record: record!, ...(header === undefined ? {} : { header }) };
  }
  throw new MailerError(
    "invalid_position",
    `file "${name}": ${JSON.stringify(position)} is no position of a file`,
  );
}
