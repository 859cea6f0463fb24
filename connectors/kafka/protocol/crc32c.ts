/**
 * CRC-32C (Castagnoli), the checksum of record batches: eight bytes a step, by eight tables.
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

/** Checksum of `bytes[start, end)`, unsigned. */
export function crc32c(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
  const tables = TABLES;
  let crc = -1;
  let at = start;
  for (const last = end - 8; at <= last; at += 8) {
    const low = crc ^
      (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
    crc = tables[1792 + (low & 0xff)]! ^ tables[1536 + ((low >>> 8) & 0xff)]! ^
      tables[1280 + ((low >>> 16) & 0xff)]! ^ tables[1024 + (low >>> 24)]! ^
      tables[768 + bytes[at + 4]!]! ^ tables[512 + bytes[at + 5]!]! ^
      tables[256 + bytes[at + 6]!]! ^ tables[bytes[at + 7]!]!;
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ tables[(crc ^ bytes[at]!) & 0xff]!;
  return ~crc >>> 0;
}
