/**
 * Reads records that are rows of csv. Rules: see `text_reader.ts` and `csv_cells.ts`.
 *
 * V1 A record that cannot be cut into cells is a failure up to the end of the line where that shows. One whose end does
 *    not come, or not soon enough, is a failure of its first line alone: the missing quote may be there.
 *
 * @module
 */
import { isUtf8 } from "node:buffer";
import type { ReadFailure } from "../connector.ts";
import { MailerError } from "../errors.ts";
import { badCsv, csvCells, type CsvScan, CsvScanner, endOfLine } from "./csv_cells.ts";
import { type CsvOptions, CsvRows } from "./csv_rows.ts";
import type { Payload } from "./format.ts";
import { keptBytes, LineWindow } from "./line_window.ts";
import { type TextPosition, type TextRead, type TextReader, tooLong } from "./text_reader.ts";
import { asciiText, encodingOf, notUtf8, textOrBytes, validUtf8Text } from "./utf8.ts";

/** Settings of a {@link CsvReader}. */
export interface CsvReaderOptions {
  readonly csv: Required<CsvOptions>;
  readonly maxLineBytes: number;
}

/** See the head of this file. */
export class CsvReader implements TextReader {
  readonly #options: CsvReaderOptions;
  readonly #window: LineWindow;
  #rows: CsvRows | undefined;
  #record: number;
  #chunk: Chunk | undefined;

  constructor(options: CsvReaderOptions, start: TextPosition) {
    this.#options = options;
    this.#window = new LineWindow(options.maxLineBytes, start.bytes);
    this.#record = start.record;
    if (start.header !== undefined) this.#rows = new CsvRows(start.header, options.csv);
  }

  push(bytes: Uint8Array): void {
    this.#window.push(bytes);
    this.#chunk = undefined; // a record that was open is looked at again
  }

  end(): void {
    this.#window.end();
    this.#chunk = undefined;
  }

  next(most: number): TextRead | undefined {
    const before = this.#window.position, batch = new RowBatch(this.#record);
    const long = this.#window.takeLongLine();
    if (long !== undefined) this.#fail(batch, textOrBytes(long), tooLong(this.#options.maxLineBytes));
    const lines = this.#window.lines();
    const chunk = this.#chunk ??= new Chunk(lines, this.#options.csv.delimiter);
    const start = chunk.at;
    while (batch.length < most && chunk.at < chunk.length) {
      const from = chunk.at, scan = chunk.scan();
      if (scan === undefined) continue;
      if (!this.#take(batch, chunk, from, scan)) break;
    }
    this.#window.take(chunk.at - start);
    if (batch.length === 0) return undefined;
    this.#record += batch.length;
    return batch.read(this.#window.position - before, this.#position());
  }

  /** Takes one record off the chunk. False where more bytes are needed to see where it ends. */
  #take(batch: RowBatch, chunk: Chunk, from: number, scan: CsvScan): boolean {
    const { maxLineBytes, csv } = this.#options;
    if (scan.kind === "open" && !this.#window.ended && chunk.length - 1 - from <= maxLineBytes) return false;
    let end = scan.kind === "record"
      ? scan.end
      : scan.kind === "bad"
      ? chunk.endOfLine(scan.at)
      : chunk.length - 1;
    const isLong = end - from > maxLineBytes;
    if (isLong || scan.kind === "open") end = chunk.endOfLine(from);
    chunk.at = scan.kind === "record" && !isLong ? scan.next : end + 1;
    if (isLong) {
      this.#fail(
        batch,
        chunk.payload(from, Math.min(end, from + keptBytes(maxLineBytes))),
        tooLong(maxLineBytes),
      );
      return true;
    }
    try {
      if (scan.kind !== "record") throw badCsv(scan, from);
      const text = chunk.text(from, end), cells = csvCells(text, csv.delimiter);
      if (this.#rows === undefined) this.#rows = new CsvRows(cells, csv);
      else batch.add(this.#rows.row(cells), text);
    } catch (error) {
      this.#fail(batch, chunk.payload(from, end), error as Error);
    }
    return true;
  }

  #fail(batch: RowBatch, text: Payload, error: Error): void {
    if (this.#rows === undefined) {
      if (error instanceof MailerError && error.code === "bad_csv_header") throw error;
      throw new MailerError("bad_csv_header", `csv: the header cannot be read: ${error.message}`, {
        cause: error,
      });
    }
    batch.fail(text, error);
  }

  #position(): TextPosition {
    const header = this.#rows?.header;
    return {
      bytes: this.#window.position,
      record: this.#record,
      ...(header === undefined ? {} : { header }),
    };
  }
}

/** Whole lines, one character a byte: quotes, delimiters and line breaks are ASCII, and no part of another character. */
class Chunk {
  readonly length: number;
  at = 0;
  readonly #bytes: Uint8Array;
  readonly #text: string;
  readonly #encoding: "ascii" | "utf8" | "bytes";
  readonly #scanner: CsvScanner;

  constructor(bytes: Uint8Array, delimiter: string) {
    this.#bytes = bytes;
    this.length = bytes.length;
    this.#text = asciiText(bytes, 0, bytes.length);
    this.#encoding = encodingOf(bytes);
    this.#scanner = new CsvScanner(this.#text, delimiter);
  }

  /** Looks for the end of the record at hand; undefined where an empty line was stepped over instead. */
  scan(): CsvScan | undefined {
    const first = this.#text.charCodeAt(this.at);
    if (first === 10 || (first === 13 && this.#text.charCodeAt(this.at + 1) === 10)) {
      this.at += first === 10 ? 1 : 2;
      return undefined;
    }
    return this.#scanner.scan(this.at);
  }

  endOfLine(from: number): number {
    return endOfLine(this.#text, from);
  }

  /** A text of its own: cells, which share its memory, hold no more than their record. */
  text(from: number, end: number): string {
    if (this.#encoding === "ascii") return asciiText(this.#bytes, from, end);
    const bytes = this.#bytes.subarray(from, end);
    if (this.#encoding === "bytes" && !isUtf8(bytes)) throw notUtf8(bytes);
    return validUtf8Text(this.#bytes, from, end);
  }

  /** What lies there, for a failure. */
  payload(from: number, end: number): Payload {
    return textOrBytes(this.#bytes.subarray(from, end));
  }
}

/** The rows and failures of one read. */
class RowBatch {
  readonly #firstOffset: number;
  readonly #values: unknown[] = [];
  readonly #texts: string[] = [];
  readonly #offsets: number[] = [];
  readonly #failures: ReadFailure[] = [];

  constructor(firstOffset: number) {
    this.#firstOffset = firstOffset;
  }

  get length(): number {
    return this.#values.length + this.#failures.length;
  }

  add(value: unknown, text: string): void {
    this.#offsets.push(this.#firstOffset + this.length);
    this.#values.push(value);
    this.#texts.push(text);
  }

  fail(text: Payload, error: Error): void {
    this.#failures.push({
      before: this.#values.length,
      offset: this.#firstOffset + this.length,
      text,
      error,
    });
  }

  read(bytes: number, position: TextPosition): TextRead {
    const columns = { values: this.#values, texts: this.#texts, bytes, position };
    return this.#failures.length === 0
      ? { ...columns, firstOffset: this.#firstOffset }
      : { ...columns, offsets: Float64Array.from(this.#offsets), failures: this.#failures };
  }
}
