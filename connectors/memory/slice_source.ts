/**
 * Source `slice`: records from an array.
 *
 * @module
 */
import type {
  ReadFailure,
  RecordsRead,
  Source,
  SourceContext,
  SourceRead,
  SourceReader,
} from "../../lib/connector.ts";
import { MailerError } from "../../lib/errors.ts";
import {
  decodeColumns,
  type Decoder,
  type Format,
  type Payload,
  readyDecoder,
} from "../../lib/format/mod.ts";

/** Settings of {@link sliceSource}. */
export interface SliceSourceOptions {
  /** Keys of the records, one a value. */
  readonly keys?: readonly unknown[];
  /** Timestamps of the records, ms since the epoch, one a value. */
  readonly timestamps?: ArrayLike<number>;
  /** Name of its one split; default `slice`. */
  readonly name?: string;
}

/** Settings of {@link sliceSource} for payloads. */
export interface PayloadSourceOptions<T> extends SliceSourceOptions {
  /** How the payloads are to be decoded; offsets count all of them, also those that cannot be. */
  readonly format: Format<T>;
}

/**
 * Records from an array, in batches cut from it. The values themselves are handed out, not copies: code that changes its
 * values changes them in the array too.
 *
 * @throws {MailerError} `invalid_slice_options`
 */
export function sliceSource<T>(values: readonly T[], options?: SliceSourceOptions): Source<T>;
/** Records from an array of payloads, which are decoded batch by batch. */
export function sliceSource<T>(payloads: readonly Payload[], options: PayloadSourceOptions<T>): Source<T>;
export function sliceSource(
  values: readonly unknown[],
  options: SliceSourceOptions & { readonly format?: Format } = {},
): Source {
  const { keys, timestamps, format, name = "slice" } = options;
  for (const [what, column] of Object.entries({ keys, timestamps })) {
    if (column === undefined || column.length === values.length) continue;
    throw new MailerError(
      "invalid_slice_options",
      `slice source: ${values.length} values, but ${column.length} ${what}`,
    );
  }
  return {
    type: "slice",
    describe: () => ({ records: values.length, ...(format === undefined ? {} : { format: format.name }) }),
    open: (context) =>
      new SliceReader({
        values,
        keys,
        timestamps,
        name,
        decoder: format && readyDecoder(format, "slice source"),
      }, context),
  };
}

/** A record of a workflow document. */
export interface TextRecord {
  /** Key the record is read with. */
  readonly key?: unknown;
  /** Text to be decoded. */
  readonly value: string;
}

/** Settings of {@link recordsSource}. */
export interface RecordsSourceOptions<T> {
  /** In the order they are read. */
  readonly records: readonly TextRecord[];
  /** How the values are to be decoded. */
  readonly format: Format<T>;
  /** Name of its one split; default `slice`. */
  readonly name?: string;
}

/** Records given as texts with keys. Texts that cannot be decoded are subject to the source's failure policy. */
export function recordsSource<T>({ records, format, name }: RecordsSourceOptions<T>): Source<T> {
  return sliceSource(records.map(({ value }) => value), {
    keys: records.map(({ key }) => key),
    format,
    ...(name === undefined ? {} : { name }),
  });
}

interface Columns {
  readonly values: readonly unknown[];
  readonly keys: readonly unknown[] | undefined;
  readonly timestamps: ArrayLike<number> | undefined;
  readonly name: string;
  readonly decoder: Decoder | undefined;
}

class SliceReader implements SourceReader {
  readonly splits: readonly string[];
  readonly #columns: Columns;
  readonly #batchSize: number;
  #at = 0;
  #hasEnded = false;

  constructor(columns: Columns, { batchSize, restored }: SourceContext) {
    this.splits = [columns.name];
    this.#columns = columns;
    this.#batchSize = batchSize;
    const position = restored?.get(columns.name);
    if (position !== undefined) this.#at = restoredIndex(columns.name, position, columns.values.length);
  }

  read(): SourceRead {
    const { values, name } = this.#columns;
    if (this.#at < values.length) {
      return this.#records(this.#at, Math.min(this.#at + this.#batchSize, values.length));
    }
    if (this.#hasEnded) return { kind: "end" };
    this.#hasEnded = true;
    return { kind: "ended", split: name };
  }

  progress(): { done: number; total: number } {
    return { done: this.#at, total: this.#columns.values.length };
  }

  close(): void {}

  #records(from: number, to: number): RecordsRead {
    const { values, keys, timestamps, decoder, name } = this.#columns;
    this.#at = to;
    const part = values.slice(from, to);
    const { failures, ...decoded } = decoder === undefined
      ? { values: part, firstOffset: from, failures: undefined }
      : decodeColumns(decoder, part as Payload[], from);
    const failed = failures === undefined ? undefined : new Set(failures.map(({ offset }) => offset! - from));
    const kept = (_: unknown, i: number) => failed?.has(i) !== true;
    return {
      kind: "records",
      split: name,
      ...decoded,
      ...(keys === undefined ? {} : { keys: keys.slice(from, to).filter(kept) }),
      ...(timestamps === undefined ? {} : {
        timestamps: Float64Array.from({ length: to - from }, (_, i) => timestamps[from + i]!).filter(kept),
      }),
      ...(failures === undefined ? {} : { failures: failures.map((failure) => withKey(failure, keys)) }),
      position: to,
    };
  }
}

function withKey(failure: ReadFailure, keys: readonly unknown[] | undefined): ReadFailure {
  return keys === undefined ? failure : { ...failure, key: keys[failure.offset!] };
}

/** Index to go on from. @throws {MailerError} `invalid_position` */
export function restoredIndex(split: string, position: unknown, count: number): number {
  if (Number.isSafeInteger(position) && (position as number) >= 0 && (position as number) <= count) {
    return position as number;
  }
  throw new MailerError(
    "invalid_position",
    `split "${split}": ${JSON.stringify(position)} is no position in ${count} records`,
    { hint: "the source has changed since the checkpoint was taken" },
  );
}
