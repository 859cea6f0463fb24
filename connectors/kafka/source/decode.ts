/**
 * Fetched records to the columns of a read.
 *
 * D1 A record whose key or value cannot be decoded is a failure in its place; the columns of the others have one entry each.
 * D2 A null value is null in any format, a null key is null.
 *
 * @module
 */
import type { ReadFailure, RecordsRead } from "../../../lib/connector.ts";
import type { Decoded, Decoder, Format, Payload, PrepareContext } from "../../../lib/format/mod.ts";
import type { Headers } from "../../../lib/record.ts";
import type { FetchedRecords } from "../protocol/fetched_records.ts";
import type { Rows } from "./split.ts";

const NO_BYTES = new Uint8Array(0);

/** One column of payloads, decoded. */
interface Column {
  /** One entry a row; where it failed, undefined. */
  readonly values: unknown[];
  /** Rows that failed, by number. */
  readonly failures: ReadonlyMap<number, Error> | undefined;
}

/** Decodes keys and values. Each reader has one of its own. */
export class RecordDecoder {
  readonly #values: Decoder;
  readonly #keys: Decoder;

  constructor(format: Format, keyFormat: Format) {
    this.#values = format.decoder();
    this.#keys = keyFormat.decoder();
  }

  /** Makes ready to decode `rows`; undefined where all is there. */
  prepare(rows: () => readonly Rows[], context: PrepareContext): Promise<void> | undefined {
    const { prepare: ofValues } = this.#values, { prepare: ofKeys } = this.#keys;
    if (ofValues === undefined && ofKeys === undefined) return undefined;
    const next = rows(), isThere = (payload: Uint8Array | null): payload is Uint8Array => payload !== null;
    const values = ofValues?.call(this.#values, next.flatMap(valuesOf).filter(isThere), context);
    const keys = ofKeys?.call(this.#keys, next.flatMap(keysOf).filter(isThere), context);
    if (values === undefined || keys === undefined) return values ?? keys;
    return Promise.all([values, keys]).then(() => {});
  }

  /** What `rows`, at least one, of a split are as a read. */
  decode(split: string, rows: readonly Rows[], position: number): RecordsRead {
    const payloads = rows.length === 1 ? valuesOf(rows[0]!) : rows.flatMap(valuesOf);
    const keyPayloads = rows.length === 1 ? keysOf(rows[0]!) : rows.flatMap(keysOf);
    const values = decodeColumn(this.#values, payloads);
    const keys = decodeColumn(this.#keys, keyPayloads);
    const columns = columnsOf(rows);
    const texts = payloads.includes(null)
      ? payloads.map((payload) => payload ?? NO_BYTES)
      : payloads as Uint8Array[];
    const whole = {
      kind: "records" as const,
      split,
      position,
      bytes: rows.reduce((sum, part) => sum + bytesOf(part), 0),
    };
    if (values.failures === undefined && keys.failures === undefined) {
      return { ...whole, ...columns, values: values.values, keys: keys.values, texts };
    }
    const failed = new Map([...keys.failures ?? [], ...values.failures ?? []]);
    return { ...whole, ...without(failed, columns, values.values, keys.values, texts, keyPayloads) };
  }
}

function decodeColumn(decoder: Decoder, payloads: readonly (Uint8Array | null)[]): Column {
  const given = payloads.includes(null) ? payloads.filter((payload) => payload !== null) : payloads;
  if (given.length === 0) return { values: new Array(payloads.length).fill(null), failures: undefined };
  const decoded: Decoded = { values: [], failures: [] };
  decoder.decode(given as readonly Payload[], decoded);
  if (given.length === payloads.length && decoded.failures.length === 0) {
    return { values: decoded.values, failures: undefined };
  }
  const values: unknown[] = [], failures = new Map<number, Error>();
  let index = 0, value = 0, failure = 0;
  for (const [row, payload] of payloads.entries()) {
    if (payload === null) values.push(null);
    else if (decoded.failures[failure]?.index === index++) {
      failures.set(row, decoded.failures[failure++]!.error);
      values.push(undefined);
    } else values.push(decoded.values[value++]);
  }
  return { values, failures: failures.size === 0 ? undefined : failures };
}

/** The columns that are there already. */
interface PlainColumns {
  readonly firstOffset?: number;
  readonly offsets?: Float64Array;
  readonly timestamps: Float64Array;
  readonly headers?: readonly (Headers | undefined)[];
}

function columnsOf(rows: readonly Rows[]): PlainColumns {
  const offsets = joined(rows, ({ offsets }) => offsets);
  const timestamps = joined(rows, ({ timestamps }) => timestamps);
  const first = offsets[0]!, isDense = offsets[offsets.length - 1]! - first === offsets.length - 1;
  const headers = rows.some(({ run }) => run.headers !== undefined)
    ? rows.flatMap(({ run, from, to }) =>
      run.headers?.slice(from, to) ?? new Array(to - from).fill(undefined)
    )
    : undefined;
  return {
    ...(isDense ? { firstOffset: first } : { offsets }),
    timestamps,
    ...(headers === undefined ? {} : { headers }),
  };
}

/** Leaves the failed rows out of the columns and describes them. */
function without(
  failed: ReadonlyMap<number, Error>,
  { firstOffset, offsets, timestamps, headers }: PlainColumns,
  values: readonly unknown[],
  keys: readonly unknown[],
  texts: readonly Uint8Array[],
  keyPayloads: readonly (Uint8Array | null)[],
): Omit<RecordsRead, "kind" | "split" | "position"> {
  const kept = (_: unknown, row: number) => !failed.has(row);
  const offsetAt = (row: number) => offsets?.[row] ?? firstOffset! + row;
  const failures = [...failed].sort(([a], [b]) => a - b).map(([row, error], earlier): ReadFailure => ({
    before: row - earlier,
    offset: offsetAt(row),
    text: texts[row]!,
    key: keys[row] === undefined ? keyPayloads[row] : keys[row],
    ...(headers?.[row] === undefined ? {} : { headers: headers[row] }),
    error,
  }));
  return {
    values: values.filter(kept),
    keys: keys.filter(kept),
    texts: texts.filter(kept),
    offsets: Float64Array.from({ length: values.length }, (_, row) => offsetAt(row)).filter(kept),
    timestamps: timestamps.filter(kept),
    ...(headers === undefined ? {} : { headers: headers.filter(kept) }),
    failures,
  };
}

function joined(rows: readonly Rows[], of: (run: FetchedRecords) => Float64Array): Float64Array {
  if (rows.length === 1) return of(rows[0]!.run).subarray(rows[0]!.from, rows[0]!.to);
  const all = new Float64Array(rows.reduce((sum, { from, to }) => sum + to - from, 0));
  let at = 0;
  for (const { run, from, to } of rows) {
    all.set(of(run).subarray(from, to), at);
    at += to - from;
  }
  return all;
}

function valuesOf({ run, from, to }: Rows): (Uint8Array | null)[] {
  const values: (Uint8Array | null)[] = [];
  for (let row = from; row < to; row++) values.push(run.value(row));
  return values;
}

function keysOf({ run, from, to }: Rows): (Uint8Array | null)[] {
  const keys: (Uint8Array | null)[] = [];
  for (let row = from; row < to; row++) keys.push(run.key(row));
  return keys;
}

/** Bytes from the first key to the last value. */
function bytesOf({ run, from, to }: Rows): number {
  const end = run.valueStarts[to - 1]! + Math.max(0, run.valueLengths[to - 1]!);
  return Math.max(0, end - run.keyStarts[from]!);
}
