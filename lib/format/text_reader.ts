/**
 * Reads records from a stream of bytes: a file, standard input.
 *
 * | format | a record is | its value |
 * |---|---|---|
 * | `ndjson` | a line that is not blank | what its JSON says |
 * | `lines` | a line | its text |
 * | `csv` | a row after RFC 4180 that is not an empty line; the first names the columns | an object |
 *
 * X1 Records, failures and offsets do not depend on how the bytes come in.
 * X2 Lines end with LF or CRLF; the last one may end with the bytes. A byte order mark at the start is dropped.
 * X3 Every record has the next offset, from 0, whether it can be decoded or not; blank lines and the header have none.
 * X4 A record that is too long, or not UTF-8, is a failure, and reading goes on behind its line. Of one that is too long
 *    only the beginning is kept.
 * X5 Reading on from a position gives what reading from the start gives behind it.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { CsvReader } from "./csv_reader.ts";
import { checkedCsvOptions, type CsvOptions } from "./csv_rows.ts";
import type { DecodedColumns } from "./format.ts";
import { jsonFormat } from "./json.ts";
import { LineReader } from "./line_reader.ts";
import { stringFormat } from "./string.ts";

/** What a stream of bytes is made of. */
export type TextFormat = "ndjson" | "csv" | "lines";

/** Settings of a {@link TextReader}. */
export interface TextOptions {
  /** Default `ndjson`. */
  readonly format?: TextFormat;
  /** Only for `csv`. */
  readonly csv?: CsvOptions;
  /** Longest line, or csv record, in bytes; default 16 MiB. */
  readonly maxLineBytes?: number;
}

/** Where to go on. */
export interface TextPosition {
  /** Bytes of the stream before the next record. */
  readonly bytes: number;
  /** Offset of the next record. */
  readonly record: number;
  /** Of csv: the names of the columns, once they have been read. */
  readonly header?: readonly string[];
}

/** Some records in order. */
export interface TextRead<T = unknown> extends DecodedColumns<T> {
  /** Bytes these records took. */
  readonly bytes: number;
  /** Where to go on behind them. */
  readonly position: TextPosition;
}

/** Cuts bytes into records and decodes them. */
export interface TextReader {
  /** Adds bytes; they are copied. To be called once `next` has nothing left. */
  push(bytes: Uint8Array): void;
  /** Says that no bytes follow. */
  end(): void;
  /** At most `most` records; undefined where bytes are missing, or none are left after `end`. */
  next(most: number): TextRead | undefined;
}

/** What a {@link TextReader} was told, with all defaults. */
export interface CheckedTextOptions {
  /** What the bytes are made of. */
  readonly format: TextFormat;
  /** Of no matter unless the format is csv. */
  readonly csv: Required<CsvOptions>;
  /** Longest line, or csv record. */
  readonly maxLineBytes: number;
}

const FORMATS: readonly TextFormat[] = ["ndjson", "csv", "lines"];

/** The options with their defaults. @throws {MailerError} `invalid_text_options`, `invalid_csv_options` */
export function checkedTextOptions(options: TextOptions = {}): CheckedTextOptions {
  const { format = "ndjson", maxLineBytes = 1 << 24 } = options;
  if (!FORMATS.includes(format)) {
    throw new MailerError(
      "invalid_text_options",
      `the format is one of ${FORMATS.join(", ")}, got ${JSON.stringify(format)}`,
    );
  }
  if (options.csv !== undefined && format !== "csv") {
    throw new MailerError("invalid_text_options", `csv settings do not fit the format ${format}`);
  }
  if (!Number.isSafeInteger(maxLineBytes) || maxLineBytes < 1) {
    throw new MailerError(
      "invalid_text_options",
      `maxLineBytes is a number of bytes ≥ 1, got ${maxLineBytes}`,
    );
  }
  return { format, csv: checkedCsvOptions(options.csv), maxLineBytes };
}

/**
 * A reader for bytes of this format.
 *
 * @param start Where the bytes that will be pushed begin; default at the start of the stream.
 */
export function textReader(
  { format, csv, maxLineBytes }: CheckedTextOptions,
  start: TextPosition = { bytes: 0, record: 0 },
): TextReader {
  switch (format) {
    case "ndjson":
      return new LineReader({ decoder: jsonFormat().decoder(), lines: "parsed", maxLineBytes }, start);
    case "lines":
      return new LineReader({ decoder: stringFormat().decoder(), lines: "kept", maxLineBytes }, start);
    case "csv":
      return new CsvReader({ csv, maxLineBytes }, start);
  }
}

/** The error of a line, or csv record, that is too long. */
export function tooLong(maxLineBytes: number): MailerError {
  return new MailerError("line_too_long", `the record is longer than the ${maxLineBytes} bytes allowed`, {
    hint: "raise maxLineBytes, or look for a missing line break or quote",
  });
}
