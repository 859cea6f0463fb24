/**
 * The bytes of a run file: a head that names the run, and lots of pages behind it, in the order in which they were written.
 *
 * Head: `MLRN`, crc32 of the name (4), its length (4), the name as {@link encodeName} writes it. Lot: `MLOT`, crc32 of what follows
 * up to the pages, begun with that of the name (4), number of the first page (4), number of pages (4), their lengths (2 each), the
 * pages. Numbers are little-endian. Pages have no checksum here, as in the other stores: whoever writes them puts one in.
 *
 * F1 A lot that does not fit into the file, or whose head is not as it was written, ends the run; the crash that cut it off came
 *    before any commit that would have made it last. A lot of another run is none, even where the disk hands out old blocks.
 *
 * @module
 */
import { crc32 } from "node:zlib";
import type { DiskFile } from "./disk.ts";
import { decodeName, encodeName } from "./file_names.ts";
import { PageIndex } from "./page_index.ts";

/** The largest number of pages in a lot. */
export const LOT_PAGES = 4096;
/** Numbers of pages are below this. */
export const PAGES_A_RUN: number = 2 ** 24;

const HEAD_MAGIC = 0x4e524c4d;
const LOT_MAGIC = 0x544f4c4d;
const HEAD_BYTES = 12;
const LOT_BYTES = 16;
/** Enough for the head of most lots in one read. */
const FIRST_READ = 512;
const LONGEST_NAME = 8192;

/** The head of a run's file. */
export function headOf(run: string): Uint8Array {
  const name = new TextEncoder().encode(encodeName(run)), head = new Uint8Array(HEAD_BYTES + name.length);
  const view = viewOf(head);
  view.setUint32(0, HEAD_MAGIC, true);
  view.setUint32(4, crc32(name), true);
  view.setUint32(8, name.length, true);
  head.set(name, HEAD_BYTES);
  return head;
}

/** The run that the head of a file names; `"torn"` where the file ends before its head does, `undefined` where it is damaged. */
export async function readName(file: DiskFile): Promise<{ readonly run: string } | "torn" | undefined> {
  const head = new Uint8Array(HEAD_BYTES + LONGEST_NAME), view = viewOf(head);
  const length = await file.read(head, 0);
  if (length < HEAD_BYTES) return "torn";
  const nameLength = view.getUint32(8, true);
  if (view.getUint32(0, true) !== HEAD_MAGIC || nameLength > LONGEST_NAME) return undefined;
  if (length < HEAD_BYTES + nameLength) return "torn";
  const name = head.subarray(HEAD_BYTES, HEAD_BYTES + nameLength);
  if (view.getUint32(4, true) !== crc32(name)) return undefined;
  const run = decodeName(new TextDecoder().decode(name));
  return run === undefined ? undefined : { run };
}

/**
 * A lot with its pages, in one piece.
 *
 * @param head What lies in front of the lot: the file's head, or nothing.
 */
export function lotOf(
  run: string,
  first: number,
  pages: readonly Uint8Array[],
  head: Uint8Array = new Uint8Array(),
): { readonly bytes: Uint8Array; readonly pagesAt: number } {
  const pagesAt = head.length + LOT_BYTES + 2 * pages.length;
  const bytes = new Uint8Array(pages.reduce((sum, { length }) => sum + length, pagesAt));
  bytes.set(head);
  const lot = bytes.subarray(head.length), view = viewOf(lot);
  view.setUint32(0, LOT_MAGIC, true);
  view.setUint32(8, first, true);
  view.setUint32(12, pages.length, true);
  let at = pagesAt;
  pages.forEach((page, i) => {
    view.setUint16(LOT_BYTES + 2 * i, page.length, true);
    bytes.set(page, at);
    at += page.length;
  });
  view.setUint32(4, crc32(lot.subarray(8, LOT_BYTES + 2 * pages.length), saltOf(run)), true);
  return { bytes, pagesAt };
}

/** What a scan of a run's file has found. */
export interface Scanned {
  readonly index: PageIndex;
  /** Where the last good lot ends, bytes; 0 where not even the head is good. */
  readonly end: number;
  /** Bytes of the file. */
  readonly size: number;
}

/** Finds the pages of a run's file by the heads of its lots: one read for each. F1. */
export async function scanRun(file: DiskFile, run: string): Promise<Scanned> {
  const size = await file.size(), index = new PageIndex();
  const head = headOf(run), found = new Uint8Array(head.length);
  const isGood = await file.read(found, 0) === head.length && head.every((byte, i) => byte === found[i]);
  if (!isGood) return { index, end: 0, size };
  const salt = saltOf(run);
  for (let end = head.length;;) {
    const lot = await readLot(file, end, salt);
    if (lot === undefined) return { index, end, size };
    let at = end + LOT_BYTES + 2 * lot.lengths.length;
    if (lot.lengths.reduce((sum, length) => sum + length, at) > size) return { index, end, size };
    lot.lengths.forEach((length, i) => {
      index.put(lot.first + i, at, length);
      at += length;
    });
    end = at;
  }
}

async function readLot(
  file: DiskFile,
  at: number,
  salt: number,
): Promise<{ readonly first: number; readonly lengths: readonly number[] } | undefined> {
  let bytes = new Uint8Array(FIRST_READ), read = await file.read(bytes, at);
  if (read < LOT_BYTES || viewOf(bytes).getUint32(0, true) !== LOT_MAGIC) return undefined;
  const first = viewOf(bytes).getUint32(8, true), count = viewOf(bytes).getUint32(12, true);
  if (count > LOT_PAGES || first + count > PAGES_A_RUN) return undefined;
  const length = LOT_BYTES + 2 * count;
  if (length > FIRST_READ) read = await file.read(bytes = new Uint8Array(length), at);
  const view = viewOf(bytes);
  if (read < length || view.getUint32(4, true) !== crc32(bytes.subarray(8, length), salt)) return undefined;
  return { first, lengths: Array.from({ length: count }, (_, i) => view.getUint16(LOT_BYTES + 2 * i, true)) };
}

function saltOf(run: string): number {
  return crc32(encodeName(run));
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
