/**
 * Rows that are to be written together: a column is a list of elements of an array literal (`literals.ts`).
 *
 * W1 Rows are in the order of their records, and written from the front: `done` of them need no more attention.
 * W2 Where an upsert has several rows of one key, the last one counts and stands at its place, as if they had been written one by
 *    one: a column that the upsert does not replace keeps the value of the first. Rows with NULL in their key are rows of their own.
 *
 * @module
 */
import type { Batch } from "../../lib/record.ts";
import { NULL } from "./literals.ts";

/** How rows are made fewer; missing for plain inserts. */
export interface Dedupe {
  /** Places of the columns of the key. */
  readonly keys: readonly number[];
  /** Places of the columns that the first row of a key decides. */
  readonly firsts: ReadonlySet<number>;
}

/** See the head of this file. */
export class Rows {
  /** Rows in front that have been written or refused. */
  done = 0;
  /** Size of the elements, in characters. */
  size = 0;
  readonly #columns: string[][];
  readonly #batches: Batch[] = [];
  readonly #indexes: number[] = [];
  #hasRecords = true;

  /** @param columns Columns of rows that come without their records. */
  constructor(columns: string[][]) {
    this.#columns = columns;
  }

  /** No rows yet. @param width Number of columns. */
  static empty(width: number): Rows {
    return new Rows(Array.from({ length: width }, () => []));
  }

  /** Rows from {@link Rows.toText}. */
  static fromText(text: string): Rows {
    const columns: string[][] = JSON.parse(text);
    const rows = new Rows(columns);
    rows.#hasRecords = false;
    for (const column of columns) for (const element of column) rows.size += element.length;
    return rows;
  }

  /** Number of rows, done or not. */
  get length(): number {
    return this.#columns[0]!.length;
  }

  /** Rows that are not done. */
  get left(): number {
    return this.length - this.done;
  }

  /** Adds a row. @param elements One a column. */
  add(elements: readonly string[], batch: Batch, index: number): void {
    for (let i = 0; i < elements.length; i++) {
      this.#columns[i]!.push(elements[i]!);
      this.size += elements[i]!.length;
    }
    this.#batches.push(batch);
    this.#indexes.push(index);
  }

  /** The record a row was made of; undefined where it is no longer known. */
  record(row: number): { readonly batch: Batch; readonly index: number } | undefined {
    const batch = this.#hasRecords ? this.#batches[row] : undefined;
    return batch === undefined ? undefined : { batch, index: this.#indexes[row]! };
  }

  /** Array literals of the rows from one number to another, a column each. */
  literals(from: number, to: number, dedupe: Dedupe | undefined): string[] {
    const chosen = dedupe === undefined ? undefined : chooseRows(this.#columns, from, to, dedupe);
    return this.#columns.map((column, i) => {
      if (chosen === undefined) {
        return `{${(from === 0 && to === column.length ? column : column.slice(from, to)).join(",")}}`;
      }
      const rows = dedupe!.firsts.has(i) ? chosen.firsts : chosen.lasts;
      return `{${rows.map((row) => column[row]!).join(",")}}`;
    });
  }

  /** Forgets the records, and the rows with these numbers. */
  settle(without: ReadonlySet<number>): Rows {
    const columns = without.size === 0
      ? this.#columns
      : this.#columns.map((column) => column.filter((_, row) => !without.has(row)));
    const rows = new Rows(columns);
    rows.#hasRecords = false;
    rows.size = this.size;
    return rows;
  }

  /** All of it but the records, as text. */
  toText(): string {
    return JSON.stringify(this.#columns);
  }
}

/** W2. Undefined where no key comes twice. */
function chooseRows(
  columns: readonly (readonly string[])[],
  from: number,
  to: number,
  { keys }: Dedupe,
): { readonly firsts: number[]; readonly lasts: number[] } | undefined {
  const found = rowKeys(columns, from, to, keys);
  if (new Set(found).size === found.length) return undefined;
  const firsts = new Map<string, number>(), lasts = new Map<string, number>();
  for (const [i, key] of found.entries()) {
    if (firsts.has(key)) lasts.delete(key); // so that it moves to the end
    else firsts.set(key, from + i);
    lasts.set(key, from + i);
  }
  return { firsts: [...lasts.keys()].map((key) => firsts.get(key)!), lasts: [...lasts.values()] };
}

/** The keys of rows, as texts; no two rows with NULL in their key have the same. */
function rowKeys(
  columns: readonly (readonly string[])[],
  from: number,
  to: number,
  keys: readonly number[],
): readonly string[] {
  const only = keys.length === 1 ? columns[keys[0]!]!.slice(from, to) : undefined;
  if (only !== undefined && !only.includes(NULL)) return only;
  const found: string[] = [];
  for (let row = from; row < to; row++) found.push(keyOf(columns, keys, row));
  return found;
}

/** Elements never have a line break outside of quotes, and NULL is never in quotes: no two keys give one text. */
function keyOf(columns: readonly (readonly string[])[], keys: readonly number[], row: number): string {
  let key = "";
  for (const column of keys) {
    const element = columns[column]![row]!;
    if (element === NULL) return `${NULL} ${row}`;
    key += `${element}\n`;
  }
  return key;
}
