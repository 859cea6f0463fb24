/**
 * Rows of csv: cells under names, typed or text.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { exactNumber, parseJson } from "../json.ts";

/** What a cell is read as; text without a type. */
export type CsvType = "number" | "boolean" | "json";

/** How csv is written. */
export interface CsvOptions {
  /** Types of columns by name. A cell that does not fit is a failure of its record. */
  readonly types?: Readonly<Record<string, CsvType>>;
  /** One ASCII character; default `,`. */
  readonly delimiter?: string;
  /** Texts that mean null in a typed cell; default none. */
  readonly nulls?: readonly string[];
}

/** A row of csv as a value. */
export type CsvRow = Record<string, unknown>;

/** The options with their defaults. @throws {MailerError} `invalid_csv_options` */
export function checkedCsvOptions(options: CsvOptions = {}): Required<CsvOptions> {
  const { types = {}, delimiter = ",", nulls = [] } = options;
  if (!/^[^"\r\n\u0080-\uffff]$/.test(delimiter)) {
    throw new MailerError(
      "invalid_csv_options",
      `csv: the delimiter is one ASCII character, no quote and no line break, got ${
        JSON.stringify(delimiter)
      }`,
    );
  }
  for (const [column, type] of Object.entries(types)) {
    if (!["number", "boolean", "json"].includes(type)) {
      throw new MailerError(
        "invalid_csv_options",
        `csv: the type of column "${column}" is number, boolean or json, got ${JSON.stringify(type)}`,
        { hint: "leave a column out to read it as text" },
      );
    }
  }
  return { types, delimiter, nulls };
}

/** Makes rows of the cells of one header. */
export class CsvRows {
  readonly header: readonly string[];
  readonly #typed: readonly (readonly [index: number, read: (text: string) => unknown])[];
  readonly #nulls: readonly string[];
  readonly #hasOddName: boolean;

  /** @throws {MailerError} `bad_csv_header`: a name twice, or a typed column that is not there. */
  constructor(header: readonly string[], { types, nulls }: Required<CsvOptions>) {
    const twice = header.find((name, i) => header.indexOf(name) !== i);
    if (twice !== undefined) {
      throw new MailerError("bad_csv_header", `csv: column ${JSON.stringify(twice)} is in the header twice`);
    }
    this.header = header;
    this.#nulls = nulls;
    this.#hasOddName = header.includes("__proto__");
    this.#typed = Object.entries(types).map(([name, type]) => {
      const index = header.indexOf(name);
      if (index === -1) {
        throw new MailerError("bad_csv_header", `csv: no column ${JSON.stringify(name)}, which has a type`, {
          hint: `the header has ${header.map((column) => JSON.stringify(column)).join(", ")}`,
        });
      }
      return [index, readers[type]];
    });
  }

  /** @throws {MailerError} `wrong_cell_count`, `bad_csv_cell` */
  row(cells: readonly unknown[]): CsvRow {
    const { header } = this;
    if (cells.length !== header.length) {
      const count = cells.length === 1 ? "1 cell" : `${cells.length} cells`;
      throw new MailerError("wrong_cell_count", `csv: ${count}, but the header has ${header.length}`);
    }
    const values = this.#typed.length === 0 ? cells : this.#read(cells as readonly string[]);
    const row: CsvRow = {};
    if (this.#hasOddName) header.forEach((name, i) => setOwn(row, name, values[i]));
    else for (let i = 0; i < header.length; i++) row[header[i]!] = values[i];
    return row;
  }

  #read(cells: readonly string[]): unknown[] {
    const values: unknown[] = cells.slice();
    for (const [index, read] of this.#typed) {
      const text = cells[index]!;
      if (this.#nulls.includes(text)) {
        values[index] = null;
        continue;
      }
      try {
        values[index] = read(text);
      } catch (cause) {
        throw new MailerError(
          "bad_csv_cell",
          `csv: column "${this.header[index]}": ${(cause as Error).message}`,
          {
            cause,
          },
        );
      }
    }
    return values;
  }
}

function setOwn(row: CsvRow, name: string, value: unknown): void {
  Object.defineProperty(row, name, { value, writable: true, enumerable: true, configurable: true });
}

const USUAL_NUMBER = /^-?(?:0|[1-9]\d{0,14})(?:\.\d+)?$/;
const NUMBER = /^\s*([+-]?)0*(\d*)(\.\d*)?([eE][+-]?\d+)?\s*$/;

const readers: Readonly<Record<CsvType, (text: string) => unknown>> = {
  /** As people and programs write them: a plus, zeros in front, a bare point, blanks around. */
  number(text) {
    if (text.length < 16 && USUAL_NUMBER.test(text)) return Number(text);
    const match = NUMBER.exec(text);
    if (match === null || !/\d/.test(text.split(/[eE]/)[0]!)) {
      throw new Error(`expected a number, got ${quoted(text)}`);
    }
    const [, sign, whole, fraction = "", exponent = ""] = match;
    return exactNumber(
      `${sign === "-" ? "-" : ""}${whole || "0"}${fraction === "." ? "" : fraction}${exponent}`,
    );
  },
  boolean(text) {
    const word = text.trim().toLowerCase();
    if (word !== "true" && word !== "false") throw new Error(`expected true or false, got ${quoted(text)}`);
    return word === "true";
  },
  json: parseJson,
};

function quoted(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}
