/**
 * Formats: how one record is written outside, in a message, a line, a row.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import type { ReadFailure } from "../connector.ts";

/** One record as it lies outside. */
export type Payload = string | Uint8Array;

/** A way to write records. One object describes; each reader and writer has a decoder or encoder of its own. */
export interface Format<T = unknown> {
  /** E.g. `json`. */
  readonly name: string;
  /** A new decoder. @throws {MailerError} where the format can only be written. */
  decoder(): Decoder<T>;
  /** A new encoder. */
  encoder(): Encoder;
}

/** What whoever prepares a format goes by. */
export interface PrepareContext {
  /** The pipeline's clock. */
  readonly clock: Clock;
  /** Aborted when the run gives up. */
  readonly signal: AbortSignal;
}

/** Turns payloads into values, batch by batch. */
export interface Decoder<T = unknown> {
  /**
   * Formats that have to ask somebody first, e.g. for a schema: makes ready to decode these payloads; undefined where all is there.
   * Whoever decodes has to call it first. It rejects where nothing can be decoded, which ends the run; what is wrong with one
   * payload is left to `decode`.
   */
  prepare?(payloads: readonly Payload[], context: PrepareContext): Promise<void> | undefined;
  /**
   * Decodes the payloads in order, each for itself. Appends to `into` one value or one failure a payload, and throws
   * nothing. Byte payloads are not changed; a value may share their memory.
   */
  decode(payloads: readonly Payload[], into: Decoded<T>): void;
}

/** Where a {@link Decoder} puts what it finds. */
export interface Decoded<T = unknown> {
  /** Values of the payloads that could be decoded, in order. */
  readonly values: T[];
  /** The payloads that could not, in order. */
  readonly failures: DecodeFailure[];
}

/** A payload that could not be decoded. */
export interface DecodeFailure {
  /** Which payload it was. */
  readonly index: number;
  /** Why. */
  readonly error: Error;
}

/** Turns values into payloads. */
export interface Encoder {
  /** Formats that have to ask somebody first: makes ready to encode. Whoever encodes has to wait for it before the first record. */
  prepare?(context: PrepareContext): Promise<void>;
  /**
   * One record's payload.
   *
   * @throws {MailerError} where the value cannot be written in this format.
   */
  encode(value: unknown): Payload;
  /** What stands before the first record of a file, e.g. the header row of csv. Known once a record has been encoded. */
  head?(): string;
}

/** The columns of a read that come from decoding: see {@link RecordsRead}. */
export interface DecodedColumns<T = unknown> {
  /** Values of the payloads that could be decoded. */
  readonly values: T[];
  /** Offset of the first value, where there are no failures. */
  readonly firstOffset?: number;
  /** Offsets of the values, where there are failures. */
  readonly offsets?: Float64Array;
  /** The payloads of the values. */
  readonly texts: readonly Payload[];
  /** The payloads that could not be decoded. */
  readonly failures?: readonly ReadFailure[];
}

/**
 * Decodes payloads whose offsets count up by one.
 *
 * @param payloads Taken over: they become the texts of the read.
 * @param firstOffset Offset of the first payload.
 */
export function decodeColumns<T>(
  decoder: Decoder<T>,
  payloads: Payload[],
  firstOffset: number,
): DecodedColumns<T> {
  const decoded: Decoded<T> = { values: [], failures: [] };
  decoder.decode(payloads, decoded);
  const { values, failures } = decoded;
  if (failures.length === 0) return { values, firstOffset, texts: payloads };
  const texts: Payload[] = [], offsets = new Float64Array(values.length), failed: ReadFailure[] = [];
  let next = 0;
  for (const [index, text] of payloads.entries()) {
    const offset = firstOffset + index;
    if (failures[next]?.index === index) {
      failed.push({ before: texts.length, offset, text, error: failures[next]!.error });
      next++;
    } else {
      offsets[texts.length] = offset;
      texts.push(text);
    }
  }
  return { values, offsets, texts, failures: failed };
}
