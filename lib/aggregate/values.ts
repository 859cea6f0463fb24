/**
 * Aggregates that hand on values as they are: first, last, collect. Their order is event time, then arrival.
 *
 * A missing field is an error of the record. `first` and `last` skip null, `collect` keeps it.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { copyValue } from "../value.ts";
import { type Field, type FieldReader, fieldReader, missingField, wholeRecord } from "./field.ts";
import type { SteppedFunction } from "./function.ts";
import { type Entry, isBefore, mergeFirst } from "./order.ts";

/** An {@link Entry} that its accumulator overwrites. */
export interface EntryCell {
  /** The record's value, or what was read from it. */
  value: unknown;
  /** Event time, ms. */
  timestamp: number;
  /** Order of arrival. */
  sequence: number;
}

/** The value of the earliest record; null over nothing. Without a field the whole record. */
export function first<In = unknown>(field?: Field<In>): SteppedFunction<In, EntryCell | null, unknown> {
  return outermost("first", field);
}

/** The value of the latest record; null over nothing. Without a field the whole record. */
export function last<In = unknown>(field?: Field<In>): SteppedFunction<In, EntryCell | null, unknown> {
  return outermost("last", field);
}

function outermost<In>(
  name: "first" | "last",
  field: Field<In> | undefined,
): SteppedFunction<In, EntryCell | null, unknown> {
  const reader = readerOf(field);
  const wantsEarlier = name === "first";
  const wins = (acc: EntryCell, timestamp: number, sequence: number) =>
    (timestamp < acc.timestamp || (timestamp === acc.timestamp && sequence < acc.sequence)) === wantsEarlier;
  const read = (_: unknown, value: In) => present(name, reader, value);
  const fold = (acc: EntryCell | null, value: unknown, timestamp: number, sequence: number) => {
    if (value === null) return acc;
    if (acc === null) return { value, timestamp, sequence };
    if (wins(acc, timestamp, sequence)) {
      acc.value = value;
      acc.timestamp = timestamp;
      acc.sequence = sequence;
    }
    return acc;
  };
  return {
    name,
    create: () => null,
    read,
    fold,
    add: (acc, value, timestamp, sequence) => fold(acc, read(acc, value), timestamp, sequence),
    merge: (a, b) => b === null || (a !== null && !wins(a, b.timestamp, b.sequence)) ? a : { ...b },
    result: (acc) => acc === null ? null : copyValue(acc.value),
  };
}

/** What {@link collect} takes. */
export interface CollectOptions<In> {
  /** The most values to keep, the earliest ones. Default: all. */
  readonly limit?: number;
  /** Default: the whole record. */
  readonly field?: Field<In>;
}

/**
 * A list of values in the order of event time, then arrival.
 *
 * @throws {MailerError} `invalid_aggregate` for a limit that is no whole number ≥ 1.
 */
export function collect<In = unknown>(
  options: CollectOptions<In> = {},
): SteppedFunction<In, Entry[], unknown[]> {
  const { limit = Infinity, field } = options;
  if (limit !== Infinity && (!Number.isSafeInteger(limit) || limit < 1)) {
    throw new MailerError(
      "invalid_aggregate",
      `collect: limit must be a whole number, at least 1, found ${limit}`,
    );
  }
  const reader = readerOf(field);
  const read = (_: unknown, value: In) => present("collect", reader, value);
  const insert = (acc: Entry[], entry: Entry) => {
    let at = acc.length; // records mostly come in order
    while (at > 0 && isBefore(entry, acc[at - 1]!)) at--;
    if (at === limit) return;
    if (at === acc.length) acc.push(entry);
    else acc.splice(at, 0, entry);
    if (acc.length > limit) acc.pop();
  };
  const fold = (acc: Entry[], value: unknown, timestamp: number, sequence: number) => {
    insert(acc, { value, timestamp, sequence });
    return acc;
  };
  return {
    name: "collect",
    create: () => [],
    read,
    fold,
    add: (acc, value, timestamp, sequence) => fold(acc, read(acc, value), timestamp, sequence),
    merge: (a, b) => mergeFirst(a, b, limit, (x, y) => !isBefore(y, x)),
    result: (acc) => acc.map(({ value }) => copyValue(value)),
  };
}

function readerOf<In>(field: Field<In> | undefined): FieldReader<In> {
  return field === undefined ? wholeRecord() : fieldReader(field);
}

function present<In>(name: string, { get, label }: FieldReader<In>, value: In): unknown {
  const found = get(value);
  if (found === undefined) throw missingField(name, label);
  return found;
}
