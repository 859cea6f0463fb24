/**
 * CRC-32C (Castagnoli), the checksum of record batches: eight bytes a step, by eight tables. They are read as two words, from where
 * these are aligned; that takes two thirds of the time of reading eight bytes.
 *
 * @module
 */

const POLYNOMIAL = 0x82f63b78; // reflected

/** Table `k` (256 entries from `k * 256`) moves a byte on by `k` further bytes. */
const TABLES = makeTables();

function makeTables(): Int32Array {
  const tables = new Int32Array(8 * 256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (-(crc & 1) & POLYNOMIAL);
    tables[byte] = crc;
  }
  for (let at = 256; at < tables.length; at++) {
    const before = tables[at - 256]!;
    tables[at] = (before >>> 8) ^ tables[before & 0xff]!;
  }
  return tables;
}

/** Whether the low byte of a word comes first, as everywhere that Deno runs. */
const IS_LITTLE_ENDIAN = new Uint8Array(Int32Array.of(1).buffer)[0] === 1;

/** Checksum of `bytes[start, end)`, unsigned. */
export function crc32c(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
  const aligned = Math.min(start + (-(bytes.byteOffset + start) & 3), end);
  const pairs = IS_LITTLE_ENDIAN ? (end - aligned) >> 3 : 0;
  let crc = byBytes(-1, bytes, start, aligned);
  if (pairs > 0) crc = byPairs(crc, new Int32Array(bytes.buffer, bytes.byteOffset + aligned, 2 * pairs));
  return ~byBytes(crc, bytes, aligned + 8 * pairs, end) >>> 0;
}

function byPairs(crc: number, words: Int32Array): number {
  const tables = TABLES;
  for (let i = 0; i < words.length; i += 2) {
    const low = crc ^ words[i]!, high = words[i + 1]!;
    crc = tables[1792 + (low & 0xff)]! ^ tables[1536 + ((low >>> 8) & 0xff)]! ^
      tables[1280 + ((low >>> 16) & 0xff)]! ^ tables[1024 + (low >>> 24)]! ^
      tables[768 + (high & 0xff)]! ^ tables[512 + ((high >>> 8) & 0xff)]! ^
      tables[256 + ((high >>> 16) & 0xff)]! ^ tables[high >>> 24]!;
  }
  return crc;
}

function byBytes(crc: number, bytes: Uint8Array, from: number, to: number): number {
  const tables = TABLES;
  for (let at = from; at < to; at++) crc = (crc >>> 8) ^ tables[(crc ^ bytes[at]!) & 0xff]!;
  return crc;
}
