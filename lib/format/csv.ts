/**
 * The format `csv`: one row a record, its columns known beforehand or taken from the first record written.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { encodeJson } from "./json.ts";
import { csvCells, writeCsvRecord } from "./csv_cells.ts";
import { checkedCsvOptions, type CsvOptions, type CsvRow, CsvRows } from "./csv_rows.ts";
import type { Decoded, Decoder, Encoder, Format, Payload } from "./format.ts";
import { utf8Text } from "./utf8.ts";

/** Settings of {@link csvFormat}. */
export interface CsvFormatOptions extends CsvOptions {
  /**
   * Names of the columns in order. Needed for decoding rows that come without a header; for encoding the keys of the first
   * record are taken without it.
   */
  readonly columns?: readonly string[];
}

/**
 * Rows after RFC 4180. Decoding gives objects, and fails for a wrong number of cells or a cell that does not fit its type.
 * Encoding writes texts as they are, null and missing as the first of `nulls` (else empty), anything else as its JSON; a
 * field that has no column is an error (`no_column`), as it would be lost.
 */
export function csvFormat(options: CsvFormatOptions = {}): Format<CsvRow> {
  const checked = checkedCsvOptions(options), { columns } = options;
  return {
    name: "csv",
    decoder() {
      if (columns !== undefined) return new CsvDecoder(columns, checked);
      throw new MailerError(
        "invalid_csv_options",
        "csv: `columns` is needed to read rows that have no header",
      );
    },
    encoder: () => new CsvEncoder(columns, checked),
  };
}

class CsvDecoder implements Decoder<CsvRow> {
  readonly #rows: CsvRows;
  readonly #delimiter: string;

  constructor(columns: readonly string[], options: Required<CsvOptions>) {
    this.#rows = new CsvRows(columns, options);
    this.#delimiter = options.delimiter;
  }

  decode(payloads: readonly Payload[], into: Decoded<CsvRow>): void {
    for (const [index, payload] of payloads.entries()) {
      try {
        into.values.push(this.#row(typeof payload === "string" ? payload : utf8Text(payload)));
      } catch (error) {
        into.failures.push({ index, error: error as Error });
      }
    }
  }

  #row(text: string): CsvRow {
    return this.#rows.row(csvCells(text.replace(/\r?\n$/, ""), this.#delimiter));
  }
}

class CsvEncoder implements Encoder {
  #columns: readonly string[] | undefined;
  readonly #delimiter: string;
  readonly #null: string;

  constructor(columns: readonly string[] | undefined, { delimiter, nulls }: Required<CsvOptions>) {
    this.#columns = columns;
    this.#delimiter = delimiter;
    this.#null = nulls[0] ?? "";
  }

  encode(value: unknown): string {
    if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Uint8Array) {
      throw new MailerError("not_a_row", "csv: a record that is no object has no columns");
    }
    const row = value as CsvRow, columns = this.#columns ??= Object.keys(row);
    for (const key of Object.keys(row)) {
      if (columns.includes(key) || row[key] === undefined) continue;
      throw new MailerError("no_column", `csv: no column for the field ${JSON.stringify(key)}`, {
        hint: "name all `columns`, or select the fields to write",
      });
    }
    return writeCsvRecord(
      columns.map((name) => this.#cell(Object.hasOwn(row, name) ? row[name] : null)),
      this.#delimiter,
    );
  }

  head(): string {
    return this.#columns === undefined ? "" : writeCsvRecord(this.#columns, this.#delimiter);
  }

  #cell(value: unknown): string {
    if (value === null || value === undefined) return this.#null;
    return typeof value === "string" ? value : encodeJson(value);
  }
}
