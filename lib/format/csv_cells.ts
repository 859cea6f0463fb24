/**
 * Cells of csv records: cut from text, and written as text, after RFC 4180.
 *
 * C1 A cell that starts with a quote goes to the next lone quote; a doubled quote in it is one quote; delimiters and line
 *    breaks in it are text. Behind its closing quote comes a delimiter or the end of the record.
 * C2 In any other cell a quote is a character like any other.
 * C3 A record ends with LF or CRLF outside quotes, or where the text ends.
 *
 * @module
 */
import { MailerError } from "../errors.ts";

/** What a scan found at a place. */
export type CsvScan =
  /** A record up to `end`; `next` is where the one behind it begins. */
  | { readonly kind: "record"; readonly end: number; readonly next: number }
  /** A quote that is not closed within the text. */
  | { readonly kind: "open" }
  /** Something behind a closing quote, at `at`. */
  | { readonly kind: "bad"; readonly at: number };

/** Finds where records end, one after the other. */
export class CsvScanner {
  readonly #text: string;
  readonly #delimiter: string;
  /** The first quote at or behind the place scanned last. */
  #quote = -1;

  /** @param delimiter One character. */
  constructor(text: string, delimiter: string) {
    this.#text = text;
    this.#delimiter = delimiter;
  }

  /** The record that begins at `from`; `from` never falls from call to call. */
  scan(from: number): CsvScan {
    const text = this.#text, line = endOfLine(text, from);
    if (this.#quote < from) {
      const found = text.indexOf('"', from);
      this.#quote = found === -1 ? Infinity : found;
    }
    if (this.#quote < line) return scanQuoted(text, from, this.#delimiter, undefined);
    return { kind: "record", end: withoutCr(text, from, line), next: line + 1 };
  }
}

/** The cells of a text that is one record, without the line break behind it. @throws {MailerError} `bad_csv` */
export function csvCells(record: string, delimiter: string): string[] {
  if (!record.includes('"')) return record.split(delimiter);
  const cells: string[] = [];
  const scan = scanQuoted(record, 0, delimiter, cells);
  if (scan.kind !== "record") throw badCsv(scan, 0);
  if (scan.end < record.length) throw new MailerError("bad_csv", "csv: more than one record");
  return cells;
}

function scanQuoted(text: string, from: number, delimiter: string, cells: string[] | undefined): CsvScan {
  let at = from, line = endOfLine(text, from);
  for (;;) {
    if (text.charCodeAt(at) !== 34) {
      const found = text.indexOf(delimiter, at);
      if (found === -1 || found > line) {
        const end = withoutCr(text, at, line);
        cells?.push(text.slice(at, end));
        return { kind: "record", end, next: line + 1 };
      }
      cells?.push(text.slice(at, found));
      at = found + 1;
      continue;
    }
    let cell = "", part = at + 1;
    for (;;) {
      const close = text.indexOf('"', part);
      if (close === -1) return { kind: "open" };
      if (cells !== undefined) cell += text.slice(part, close);
      at = close + 1;
      if (text.charCodeAt(at) !== 34) break;
      cell += '"';
      part = at + 1;
    }
    cells?.push(cell);
    if (at > line) line = endOfLine(text, at);
    if (at === withoutCr(text, at, line)) return { kind: "record", end: at, next: line + 1 };
    if (text[at] !== delimiter) return { kind: "bad", at };
    at++;
  }
}

/** Index of the next LF, or the end of the text. */
export function endOfLine(text: string, from: number): number {
  const found = text.indexOf("\n", from);
  return found === -1 ? text.length : found;
}

function withoutCr(text: string, from: number, line: number): number {
  return line > from && text.charCodeAt(line - 1) === 13 ? line - 1 : line;
}

/** The error of a record that cannot be cut into cells. */
export function badCsv(scan: Exclude<CsvScan, { kind: "record" }>, from: number): MailerError {
  return scan.kind === "open"
    ? new MailerError("bad_csv", "csv: a quote is opened and never closed")
    : new MailerError(
      "bad_csv",
      `csv: a delimiter was expected behind the quote before character ${scan.at - from}`,
    );
}

/** A cell as text, quoted where it must be. */
function writeCsvCell(text: string, delimiter: string): string {
  return text.includes('"') || text.includes(delimiter) || text.includes("\n") || text.includes("\r")
    ? `"${text.replaceAll('"', '""')}"`
    : text;
}

/** A record as text. A lone empty cell is quoted: an empty line would be no record. */
export function writeCsvRecord(cells: readonly string[], delimiter: string): string {
  if (cells.length === 1 && cells[0] === "") return '""';
  return cells.map((cell) => writeCsvCell(cell, delimiter)).join(delimiter);
}
