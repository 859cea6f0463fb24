/**
 * Reads records that are lines. Rules: see `text_reader.ts`.
 *
 * @module
 */
import { Buffer } from "node:buffer";
import { decodeColumns, type Decoder, type Payload } from "./format.ts";
import { keptBytes, LineWindow } from "./line_window.ts";
import { type TextPosition, type TextRead, type TextReader, tooLong } from "./text_reader.ts";
import { asciiText, encodingOf, textOrBytes, validUtf8Text } from "./utf8.ts";

/** JSON's blanks, and no others. */
const NOT_BLANK = /[^ \t\r]/;

/** Settings of a {@link LineReader}. */
export interface LineReaderOptions {
  readonly decoder: Decoder;
  /**
   * What becomes of a line. `parsed`: blank ones are left out, and their text may share the memory of a whole chunk, as
   * nobody keeps it. `kept`: all are records, with texts of their own, as they are the values.
   */
  readonly lines: "parsed" | "kept";
  readonly maxLineBytes: number;
}

/** See the head of this file. */
export class LineReader implements TextReader {
  readonly #options: LineReaderOptions;
  readonly #window: LineWindow;
  #record: number;
  /** The lines at hand as one text, and how far it has been read. */
  #text = "";
  #at = 0;
  /** What the characters of the text are: bytes of ASCII or of other things, or decoded UTF-8. */
  #characters: "ascii" | "utf8" | "bytes" = "ascii";
  /** Whether all lines at hand are UTF-8. */
  #isValid = true;

  constructor(options: LineReaderOptions, start: TextPosition) {
    this.#options = options;
    this.#window = new LineWindow(options.maxLineBytes, start.bytes);
    this.#record = start.record;
  }

  push(bytes: Uint8Array): void {
    this.#window.push(bytes);
  }

  end(): void {
    this.#window.end();
  }

  next(most: number): TextRead | undefined {
    const before = this.#window.position;
    const long = this.#window.takeLongLine();
    if (long !== undefined) return this.#failed(long, before);
    if (this.#at === this.#text.length && !this.#load()) return undefined;
    const lines: Payload[] = [];
    const start = this.#at;
    const stopped = this.#cut(lines, most);
    const bytes = this.#bytesBetween(start, this.#at);
    this.#window.take(bytes);
    if (lines.length > 0) {
      const columns = decodeColumns(this.#options.decoder, lines, this.#record);
      this.#record += lines.length;
      return { ...columns, bytes, position: this.#position() };
    }
    if (stopped === undefined) return this.next(most); // there was nothing but blank lines
    const line = this.#window.lines().slice(0, keptBytes(this.#options.maxLineBytes));
    this.#window.take(stopped + 1);
    this.#at = this.#text.indexOf("\n", this.#at) + 1;
    return this.#failed(line, before);
  }

  /** Takes lines from the text. Where one that is too long comes up it stops before it, and gives its bytes up to the LF. */
  #cut(lines: Payload[], most: number): number | undefined {
    const { maxLineBytes } = this.#options, text = this.#text, isParsed = this.#options.lines === "parsed";
    const bytes = this.#characters === "utf8" ? undefined : this.#window.lines(), first = this.#at;
    let at = first;
    while (lines.length < most && at < text.length) {
      const lf = text.indexOf("\n", at);
      const end = lf > at && text.charCodeAt(lf - 1) === 13 ? lf - 1 : lf;
      // A character is at most three bytes.
      if (end - at > maxLineBytes / 3 && this.#bytesBetween(at, end) > maxLineBytes) {
        this.#at = at;
        return this.#bytesBetween(at, lf);
      }
      if (isParsed && this.#isValid) {
        const line = text.slice(at, end);
        if (line.charCodeAt(0) === 123 || NOT_BLANK.test(line)) lines.push(line);
      } else if (!this.#isValid) {
        const line = textOrBytes(bytes!.subarray(at - first, end - first));
        if (!isParsed || NOT_BLANK.test(text.slice(at, end))) lines.push(line);
      } else {
        lines.push(
          this.#characters === "ascii"
            ? asciiText(bytes!, at - first, end - first)
            : validUtf8Text(bytes!, at - first, end - first),
        );
      }
      at = lf + 1;
    }
    this.#at = at;
    return undefined;
  }

  #load(): boolean {
    const lines = this.#window.lines();
    this.#at = 0;
    if (lines.length === 0) {
      this.#text = "";
      return false;
    }
    const encoding = encodingOf(lines);
    this.#isValid = encoding !== "bytes";
    // Texts of their own are cut from the bytes, so there the characters stay bytes.
    this.#characters = encoding === "utf8" && this.#options.lines === "kept" ? "bytes" : encoding;
    this.#text = this.#characters === "utf8"
      ? validUtf8Text(lines, 0, lines.length)
      : asciiText(lines, 0, lines.length);
    return true;
  }

  #bytesBetween(from: number, to: number): number {
    return this.#characters === "utf8" ? Buffer.byteLength(this.#text.slice(from, to)) : to - from;
  }

  #failed(start: Uint8Array, before: number): TextRead {
    const error = tooLong(this.#options.maxLineBytes), offset = this.#record++;
    return {
      values: [],
      firstOffset: offset,
      texts: [],
      failures: [{ before: 0, offset, text: textOrBytes(start), error }],
      bytes: this.#window.position - before,
      position: this.#position(),
    };
  }

  #position(): TextPosition {
    return { bytes: this.#window.position, record: this.#record };
  }
}
