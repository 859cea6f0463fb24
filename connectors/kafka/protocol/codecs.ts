/**
 * Compression of record batches, in the forms Kafka's other clients write and read.
 *
 * Snappy comes in two forms: bare, and cut into blocks behind a header (Java's). Both are read, the second is written. LZ4 is the
 * frame format with independent blocks, which is what Java demands.
 *
 * @module
 */
import {
  lz4Compress,
  lz4Decompress,
  snappyCompress,
  snappyDecompress,
} from "@platformatic/wasm-utils/bundled";
import { Buffer } from "node:buffer";
import { gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { asError } from "../../../lib/errors.ts";
import { KafkaError } from "../errors.ts";
import type { Codec } from "./types.ts";

/** By their number in the attributes of a batch. */
const CODECS: readonly Codec[] = ["none", "gzip", "snappy", "lz4", "zstd"];

/** The most a batch may become when it is decompressed, bytes: what is larger was not written by a sane producer. */
const MAX_DECOMPRESSED = 1 << 30;

const SNAPPY_BLOCK = 64 * 1024;
const SNAPPY_HEADER = Uint8Array.of(0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1);
const SNAPPY_MAGIC_BYTES = 8;

/** Number of a codec in the attributes of a batch. */
export function codecNumber(codec: Codec): number {
  return CODECS.indexOf(codec);
}

/** The codec with this number. */
export function codecOf(number: number): Codec {
  const codec = CODECS[number];
  if (codec === undefined) {
    throw new KafkaError(
      "kafka_unsupported",
      `a batch is compressed with codec ${number}, which is not known`,
      {
        hint: "let the producers of this topic use gzip, snappy, lz4 or zstd",
      },
    );
  }
  return codec;
}

/** Compresses; `none` gives the bytes back as they are. */
export function compress(codec: Codec, bytes: Uint8Array): Uint8Array {
  switch (codec) {
    case "none":
      return bytes;
    case "gzip":
      return gzipSync(bytes);
    case "zstd":
      return zstdCompressSync(bytes);
    case "lz4":
      return lz4Compress(asBuffer(bytes));
    case "snappy":
      return snappyBlocks(bytes);
  }
}

/** Decompresses; what is damaged is an error with code `kafka_corrupt`. */
export function decompress(codec: Codec, bytes: Uint8Array): Uint8Array {
  if (codec === "none") return bytes;
  try {
    return inflate(codec, bytes);
  } catch (cause) {
    if (cause instanceof KafkaError) throw cause;
    throw new KafkaError(
      "kafka_corrupt",
      `a ${codec} batch cannot be decompressed: ${asError(cause).message}`,
      { cause },
    );
  }
}

function inflate(codec: Exclude<Codec, "none">, bytes: Uint8Array): Uint8Array {
  if (bytes.length === 0) throw new Error("it is empty");
  switch (codec) {
    case "gzip":
      return gunzipSync(bytes, { maxOutputLength: MAX_DECOMPRESSED });
    case "zstd":
      return zstdDecompressSync(bytes, { maxOutputLength: MAX_DECOMPRESSED });
    case "lz4":
      return lz4Decompress(asBuffer(bytes));
    case "snappy":
      return isBlocked(bytes) ? snappyOfBlocks(bytes) : snappyBare(bytes);
  }
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function snappyBlocks(bytes: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [SNAPPY_HEADER];
  for (let at = 0; at < bytes.length; at += SNAPPY_BLOCK) {
    const block = snappyCompress(asBuffer(bytes.subarray(at, at + SNAPPY_BLOCK)));
    const length = Buffer.alloc(4);
    length.writeInt32BE(block.length);
    parts.push(length, block);
  }
  return Buffer.concat(parts);
}

function isBlocked(bytes: Uint8Array): boolean {
  if (bytes.length < SNAPPY_HEADER.length) return false;
  for (let at = 0; at < SNAPPY_MAGIC_BYTES; at++) if (bytes[at] !== SNAPPY_HEADER[at]) return false;
  return true;
}

function snappyOfBlocks(bytes: Uint8Array): Uint8Array {
  const view = asBuffer(bytes);
  const parts: Uint8Array[] = [];
  let total = 0;
  for (let at = SNAPPY_HEADER.length; at < bytes.length;) {
    const length = at + 4 <= bytes.length ? view.readInt32BE(at) : -1;
    if (length < 1 || at + 4 + length > bytes.length) {
      throw new Error(`a block at byte ${at} has length ${length}`);
    }
    const part = snappyBare(bytes.subarray(at + 4, at + 4 + length));
    total += part.length;
    if (total > MAX_DECOMPRESSED) throw new Error(`it is larger than ${MAX_DECOMPRESSED} bytes`);
    parts.push(part);
    at += 4 + length;
  }
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts, total);
}

/** The length in front is checked here: the library answers damaged input with nothing, not with an error. */
function snappyBare(bytes: Uint8Array): Uint8Array {
  let length = 0;
  let shift = 1;
  for (let at = 0;; at++) {
    const byte = bytes[at];
    if (byte === undefined || at > 4) throw new Error("it does not begin with a length");
    length += (byte & 0x7f) * shift;
    if (byte < 0x80) break;
    shift *= 128;
  }
  if (length > MAX_DECOMPRESSED) throw new Error(`it is larger than ${MAX_DECOMPRESSED} bytes`);
  const out = snappyDecompress(asBuffer(bytes));
  if (out.length !== length) throw new Error(`it has ${out.length} bytes, and says ${length}`);
  return out;
}
