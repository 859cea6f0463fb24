/**
 * Decodes what a partition answers a fetch with: record batches (format 2), one behind the other, the last perhaps cut off.
 *
 * D1 A batch counts as a whole or not at all; what is cut off comes again with the next fetch.
 * D2 Control batches (markers of transactions) are never given out. Their keys are not looked at anywhere else: a record of a user
 *    may have any key.
 * D3 `read_committed`: a transactional batch is hidden if its producer has an aborted transaction open at that place. One opens at
 *    its first offset and closes with the next marker of the same producer; so several producers, several transactions of one, and
 *    a fetch that begins inside of one are all told apart.
 * D4 `nextOffset` is behind the last whole batch, hidden or not, and never in front of where the fetch began.
 *
 * @module
 */
import type { Headers } from "../../../lib/record.ts";
import { KafkaError } from "../errors.ts";
import { codecOf, decompress } from "./codecs.ts";
import { crc32c } from "./crc32c.ts";
import { FetchedRecords } from "./fetched_records.ts";

/** A transaction that was aborted, as the broker lists it with what it covers. */
export interface AbortedTransaction {
  /** Whose it was. */
  readonly producerId: number;
  /** Offset of its first record. */
  readonly firstOffset: number;
}

/** How to read a record set. */
export interface RecordSetOptions {
  /** What the fetch asked for: records in front of it are left out. */
  readonly fetchOffset: number;
  /** Aborted transactions to hide, in any order; undefined = hide none (`read_uncommitted`). */
  readonly aborted: readonly AbortedTransaction[] | undefined;
}

/** What was in a record set. */
export interface DecodedRecordSet {
  /** The records to give out. */
  readonly records: readonly FetchedRecords[];
  /** Offset to go on from. */
  readonly nextOffset: number;
}

const HEADER = 61;
const LENGTH_FIELD_END = 12;
const CHECKED_FROM = 21;
const CODEC_MASK = 0x07;
const LOG_APPEND_TIME = 0x08;
const TRANSACTIONAL = 0x10;
const CONTROL = 0x20;
/** The fewest bytes a record can have, its length included. */
const SMALLEST_RECORD = 7;

/** Header of one batch. */
interface BatchHeader {
  readonly baseOffset: number;
  readonly lastOffset: number;
  readonly attributes: number;
  readonly baseTimestamp: number;
  readonly maxTimestamp: number;
  readonly producerId: number;
  readonly count: number;
  /** Where its records begin and end. */
  readonly start: number;
  readonly end: number;
}

/** The records of one batch that are to be given out. */
interface Section {
  readonly header: BatchHeader;
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/**
 * Reads a record set.
 *
 * @throws {KafkaError} `kafka_corrupt` with the offset of the batch, `kafka_unsupported` for formats older than Kafka 0.11.
 */
export function decodeRecordSet(bytes: Uint8Array, options: RecordSetOptions): DecodedRecordSet {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const filter = options.aborted === undefined ? undefined : new AbortFilter(options.aborted);
  const sections: Section[] = [];
  let nextOffset = options.fetchOffset;
  for (let at = 0; at + LENGTH_FIELD_END <= bytes.length;) {
    const end = at + LENGTH_FIELD_END + view.getInt32(at + 8);
    if (end > bytes.length) break; // cut off
    const header = readHeader(bytes, view, at, end);
    at = end;
    const shown = filter === undefined || filter.shows(header);
    const wanted = (header.attributes & CONTROL) === 0 && header.lastOffset >= options.fetchOffset;
    if (shown && wanted && header.count !== 0) sections.push(section(bytes, header)); // compaction leaves empty ones
    if (header.lastOffset >= nextOffset) nextOffset = header.lastOffset + 1;
  }
  return { records: decodeSections(sections, options.fetchOffset), nextOffset };
}

function readHeader(bytes: Uint8Array, view: DataView, at: number, end: number): BatchHeader {
  const baseOffset = safeOffset(view.getBigInt64(at));
  if (end < at + HEADER) {
    throw corrupt(baseOffset, `has ${end - at} bytes, fewer than its header`);
  }
  const magic = view.getInt8(at + 16);
  if (magic !== 2) {
    throw new KafkaError(
      "kafka_unsupported",
      `the batch at offset ${baseOffset} has format ${magic}, not 2`,
      {
        hint: "it was written by a client or broker older than 0.11: copy the topic with a current one",
      },
    );
  }
  const crc = view.getUint32(at + 17);
  const found = crc32c(bytes, at + CHECKED_FROM, end);
  if (crc !== found) throw corrupt(baseOffset, `has checksum ${hex(found)}, and says ${hex(crc)}`);
  const lastOffsetDelta = view.getInt32(at + 23);
  if (lastOffsetDelta < 0) {
    throw corrupt(baseOffset, `says it ends ${-lastOffsetDelta} offsets in front of its start`);
  }
  return {
    baseOffset,
    lastOffset: baseOffset + lastOffsetDelta,
    attributes: view.getInt16(at + 21),
    baseTimestamp: Number(view.getBigInt64(at + 27)),
    maxTimestamp: Number(view.getBigInt64(at + 35)),
    producerId: Number(view.getBigInt64(at + 43)),
    count: view.getInt32(at + 57),
    start: at + HEADER,
    end,
  };
}

/** Knows which producers have an aborted transaction open (D3). */
class AbortFilter {
  readonly #waiting: AbortedTransaction[];
  readonly #open = new Set<number>();

  constructor(aborted: readonly AbortedTransaction[]) {
    this.#waiting = [...aborted].sort((a, b) => b.firstOffset - a.firstOffset);
  }

  /** Whether records of this batch are given out; batches are to be shown in their order. */
  shows(header: BatchHeader): boolean {
    while (this.#waiting.length > 0 && this.#waiting.at(-1)!.firstOffset <= header.lastOffset) {
      this.#open.add(this.#waiting.pop()!.producerId);
    }
    if ((header.attributes & TRANSACTIONAL) === 0) return true;
    if ((header.attributes & CONTROL) !== 0) this.#open.delete(header.producerId); // a commit ends none that is open here
    return !this.#open.has(header.producerId);
  }
}

function section(bytes: Uint8Array, header: BatchHeader): Section {
  const codec = codecOf(header.attributes & CODEC_MASK);
  if (codec === "none") return { header, bytes, start: header.start, end: header.end };
  const unpacked = decompress(codec, bytes.subarray(header.start, header.end));
  return { header, bytes: unpacked, start: 0, end: unpacked.length };
}

/** Neighbouring sections over the same bytes become one run of records. */
function decodeSections(sections: readonly Section[], fetchOffset: number): FetchedRecords[] {
  const runs: FetchedRecords[] = [];
  for (let from = 0; from < sections.length;) {
    const { bytes } = sections[from]!;
    let to = from + 1;
    while (to < sections.length && sections[to]!.bytes === bytes) to++;
    const run = decodeRun(bytes, sections.slice(from, to), fetchOffset);
    if (run !== undefined) runs.push(run);
    from = to;
  }
  return runs;
}

function decodeRun(
  bytes: Uint8Array,
  sections: readonly Section[],
  fetchOffset: number,
): FetchedRecords | undefined {
  let most = 0;
  for (const { header, start, end } of sections) {
    if (header.count < 0 || header.count * SMALLEST_RECORD > end - start) {
      throw corrupt(header.baseOffset, `says it has ${header.count} records, in ${end - start} bytes`);
    }
    most += header.count;
  }
  const run = new RunDecoder(bytes, most, fetchOffset);
  for (const section of sections) run.add(section);
  return run.finish();
}

/** Fills the columns of one run. */
class RunDecoder {
  readonly #bytes: Uint8Array;
  readonly #fetchOffset: number;
  readonly #offsets: Float64Array<ArrayBuffer>;
  readonly #timestamps: Float64Array<ArrayBuffer>;
  readonly #keyStarts: Int32Array;
  readonly #keyLengths: Int32Array;
  readonly #valueStarts: Int32Array;
  readonly #valueLengths: Int32Array;
  #headers: (Headers | undefined)[] | undefined;
  #length = 0;
  #at = 0;

  constructor(bytes: Uint8Array, most: number, fetchOffset: number) {
    this.#bytes = bytes;
    this.#fetchOffset = fetchOffset;
    this.#offsets = new Float64Array(most);
    this.#timestamps = new Float64Array(most);
    this.#keyStarts = new Int32Array(most);
    this.#keyLengths = new Int32Array(most);
    this.#valueStarts = new Int32Array(most);
    this.#valueLengths = new Int32Array(most);
  }

  add({ header, start, end }: Section): void {
    const appendTime = (header.attributes & LOG_APPEND_TIME) !== 0 ? header.maxTimestamp : undefined;
    this.#at = start;
    for (let left = header.count; left > 0; left--) {
      const length = this.#varint();
      const recordEnd = this.#at + length;
      if (length < SMALLEST_RECORD - 1 || recordEnd > end) {
        throw corrupt(header.baseOffset, `has a record of ${length} bytes where ${end - this.#at} are left`);
      }
      this.#record(header, appendTime);
      if (this.#at !== recordEnd) throw corrupt(header.baseOffset, "has a record whose parts do not add up");
    }
    if (this.#at !== end) {
      throw corrupt(header.baseOffset, `has ${end - this.#at} bytes behind its last record`);
    }
  }

  #record(header: BatchHeader, appendTime: number | undefined): void {
    const i = this.#length;
    this.#at++; // attributes, unused
    const timestamp = header.baseTimestamp + this.#varlong();
    const offset = header.baseOffset + this.#varint();
    this.#offsets[i] = offset;
    this.#timestamps[i] = appendTime ?? timestamp;
    this.#keyLengths[i] = this.#varint();
    this.#keyStarts[i] = this.#at;
    if (this.#keyLengths[i]! > 0) this.#at += this.#keyLengths[i]!;
    this.#valueLengths[i] = this.#varint();
    this.#valueStarts[i] = this.#at;
    if (this.#valueLengths[i]! > 0) this.#at += this.#valueLengths[i]!;
    const headers = this.#varint();
    const kept = offset >= this.#fetchOffset;
    if (headers > 0) this.#readHeaders(headers, kept ? i : -1);
    if (kept) this.#length++;
  }

  #readHeaders(count: number, index: number): void {
    const headers: [string, Uint8Array][] = [];
    for (; count > 0 && this.#at < this.#bytes.length; count--) {
      const name = decoder.decode(this.#field());
      headers.push([name, this.#field()]);
    }
    if (index < 0) return;
    this.#headers ??= [];
    while (this.#headers.length < index) this.#headers.push(undefined);
    this.#headers.push(headers);
  }

  #field(): Uint8Array {
    const length = Math.max(this.#varint(), 0);
    const start = this.#at;
    this.#at += length;
    return this.#bytes.subarray(start, this.#at);
  }

  /** Behind the end of the bytes this reads zeros; whoever calls checks where it ended. */
  #varint(): number {
    const bytes = this.#bytes;
    let byte = bytes[this.#at++]!;
    if (byte < 0x80) return (byte >>> 1) ^ -(byte & 1);
    let value = byte & 0x7f;
    let shift = 7;
    do {
      byte = bytes[this.#at++]!;
      value |= (byte & 0x7f) << shift;
      shift += 7;
    } while (byte >= 0x80 && shift < 35);
    return (value >>> 1) ^ -(value & 1);
  }

  #varlong(): number {
    const bytes = this.#bytes;
    let value = 0;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = bytes[this.#at++]!;
      value |= (byte & 0x7f) << shift;
      if (!(byte >= 0x80)) return (value >>> 1) ^ -(value & 1);
    }
    let large = BigInt(value);
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = bytes[this.#at++]!;
      large |= BigInt(byte & 0x7f) << shift;
      if (!(byte >= 0x80)) break;
    }
    return Number(BigInt.asIntN(64, (large >> 1n) ^ -(large & 1n)));
  }

  finish(): FetchedRecords | undefined {
    const length = this.#length;
    if (length === 0) return undefined;
    const headers = this.#headers;
    while (headers !== undefined && headers.length < length) headers.push(undefined);
    const whole = length === this.#offsets.length;
    return new FetchedRecords(this.#bytes, {
      offsets: whole ? this.#offsets : this.#offsets.slice(0, length),
      timestamps: whole ? this.#timestamps : this.#timestamps.slice(0, length),
      keyStarts: whole ? this.#keyStarts : this.#keyStarts.slice(0, length),
      keyLengths: whole ? this.#keyLengths : this.#keyLengths.slice(0, length),
      valueStarts: whole ? this.#valueStarts : this.#valueStarts.slice(0, length),
      valueLengths: whole ? this.#valueLengths : this.#valueLengths.slice(0, length),
      headers,
    });
  }
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

const hex = (value: number): string => value.toString(16).padStart(8, "0");

function safeOffset(value: bigint): number {
  const offset = Number(value);
  if (!Number.isSafeInteger(offset) || offset < 0) {
    throw new KafkaError("kafka_corrupt", `a batch says its offset is ${value}`);
  }
  return offset;
}

function corrupt(baseOffset: number, what: string): KafkaError {
  return new KafkaError("kafka_corrupt", `the batch at offset ${baseOffset} ${what}`, {
    hint: "fetching it again from another copy may help; if not, the log of this partition is damaged",
  });
}
