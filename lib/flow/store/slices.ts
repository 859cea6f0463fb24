/**
 * Writes too many for one atomic operation.
 *
 * @module
 */
import {
  type Check,
  keyWeight,
  LARGEST_CELL,
  MOST_BYTES,
  MOST_CHECKS,
  MOST_KEY_BYTES,
  MOST_WRITES,
  weightOf,
  type Write,
} from "./cells.ts";
import type { Writer } from "./writer.ts";

/** Room in every slice for what is checked and written besides. */
const SPARE = 4000;
const ABSENT = 0xffff_ffff;

/** Cuts writes into what fits an atomic operation each, or a cell each as {@link encodeWrites} has them. */
export function sliced(writes: readonly Write[], forCells = false): Write[][] {
  const mostBytes = (forCells ? LARGEST_CELL : MOST_BYTES) - SPARE;
  const mostKeyBytes = MOST_KEY_BYTES - SPARE, most = MOST_WRITES - MOST_CHECKS;
  const slices: Write[][] = [];
  let slice: Write[] = [], bytes = 0, keyBytes = 0;
  for (const write of writes) {
    const more = weightOf(write), moreKeys = keyWeight(write.key);
    const isFull = bytes + more > mostBytes || keyBytes + moreKeys > mostKeyBytes || slice.length >= most;
    if (isFull && slice.length > 0) {
      slices.push(slice);
      slice = [];
      bytes = keyBytes = 0;
    }
    slice.push(write);
    bytes += more;
    keyBytes += moreKeys;
  }
  if (slice.length > 0) slices.push(slice);
  return slices;
}

/** Writes slice by slice; each only while `checks` hold. False: they did not, at some slice. */
export async function inSlices(
  writer: Writer,
  writes: readonly Write[],
  checks: readonly Check[] = [],
): Promise<boolean> {
  for (const slice of sliced(writes)) {
    if (await writer.submit({ checks, writes: slice }) === undefined) return false;
  }
  return true;
}

/** Writes as bytes. */
export function encodeWrites(writes: readonly Write[]): Uint8Array {
  const size = writes.reduce((sum, { key, bytes }) => sum + 6 + key.length + (bytes?.length ?? 0), 0);
  const encoded = new Uint8Array(size), view = new DataView(encoded.buffer);
  let at = 0;
  for (const { key, bytes } of writes) {
    view.setUint16(at, key.length);
    view.setUint32(at + 2, bytes?.length ?? ABSENT);
    at += 6;
    for (let i = 0; i < key.length; i++) encoded[at++] = key.charCodeAt(i);
    if (bytes !== null) encoded.set(bytes, at);
    at += bytes?.length ?? 0;
  }
  return encoded;
}

/** The writes of {@link encodeWrites}. */
export function decodeWrites(encoded: Uint8Array): Write[] {
  const view = new DataView(encoded.buffer, encoded.byteOffset, encoded.byteLength);
  const writes: Write[] = [];
  for (let at = 0; at < encoded.length;) {
    const keyLength = view.getUint16(at), length = view.getUint32(at + 2);
    at += 6;
    const key = String.fromCharCode(...encoded.subarray(at, at + keyLength));
    at += keyLength;
    if (length === ABSENT) writes.push({ key, bytes: null });
    else {
      writes.push({ key, bytes: encoded.slice(at, at + length) });
      at += length;
    }
  }
  return writes;
}
