/**
 * All documents in one file, which is replaced as a whole.
 *
 * `MLRD`, crc32 of all behind it (4), length of the table (4), the table as JSON, the documents one behind the other.
 *
 * @module
 */
import { crc32 } from "node:zlib";
import { asError, MailerError } from "../../errors.ts";
import type { Disk } from "./disk.ts";

const MAGIC = 0x44524c4d;
const HEAD_BYTES = 12;
const FORMAT = 1;

/** A document and its version. */
export interface Held {
  readonly bytes: Uint8Array;
  readonly version: string;
}

/** All documents. */
export interface Documents {
  /** How many commits there have been; the versions of documents are these numbers, so none comes twice. */
  readonly commits: number;
  readonly byName: ReadonlyMap<string, Held>;
}

/** What the file of documents is called while it is written. */
export function temporaryOf(path: string): string {
  return `${path}.new`;
}

/** Writes the documents beside the file, so that a rename puts them in its place. */
export async function writeTemporary(disk: Disk, path: string, documents: Documents): Promise<void> {
  const file = (await disk.open(temporaryOf(path), true))!;
  try {
    const bytes = encoded(documents);
    await file.truncate(0);
    await file.write(bytes, 0);
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Reads the documents; `undefined` where the file is not there.
 *
 * @throws {MailerError} `documents_corrupt`, `documents_newer`
 */
export async function readDocuments(disk: Disk, path: string): Promise<Documents | undefined> {
  const file = await disk.open(path, false);
  if (file === undefined) return undefined;
  try {
    const bytes = new Uint8Array(await file.size());
    const length = await file.read(bytes, 0);
    return decoded(path, bytes.subarray(0, length));
  } finally {
    await file.close();
  }
}

/** The error of a file of documents that cannot be used. */
export function documentsCorrupt(path: string, what: string, cause?: unknown): MailerError {
  return new MailerError("documents_corrupt", `state: the documents in "${path}" are damaged: ${what}`, {
    hint: "put back the whole folder from a copy, or remove all of it to begin without state",
    ...(cause === undefined ? {} : { cause }),
  });
}

interface Table {
  readonly format: number;
  readonly commits: number;
  readonly documents: readonly { readonly name: string; readonly version: string; readonly bytes: number }[];
}

function encoded({ commits, byName }: Documents): Uint8Array {
  const held = [...byName];
  const table: Table = {
    format: FORMAT,
    commits,
    documents: held.map(([name, { bytes, version }]) => ({ name, version, bytes: bytes.length })),
  };
  const json = new TextEncoder().encode(JSON.stringify(table));
  const start = HEAD_BYTES + json.length;
  const all = new Uint8Array(held.reduce((sum, [, { bytes }]) => sum + bytes.length, start));
  const view = new DataView(all.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(8, json.length, true);
  all.set(json, HEAD_BYTES);
  let at = start;
  for (const [, { bytes }] of held) {
    all.set(bytes, at);
    at += bytes.length;
  }
  view.setUint32(4, crc32(all.subarray(8)), true);
  return all;
}

function decoded(path: string, all: Uint8Array): Documents {
  if (all.length < HEAD_BYTES) throw documentsCorrupt(path, `it has ${all.length} bytes`);
  const view = new DataView(all.buffer, all.byteOffset, all.byteLength);
  if (view.getUint32(0, true) !== MAGIC) {
    throw documentsCorrupt(path, "it does not begin as such a file does");
  }
  if (view.getUint32(4, true) !== crc32(all.subarray(8))) {
    throw documentsCorrupt(path, "its checksum is not that of its content");
  }
  const start = HEAD_BYTES + view.getUint32(8, true);
  const { format, commits, documents } = tableIn(path, all.subarray(HEAD_BYTES, start));
  if (format !== FORMAT) {
    throw new MailerError(
      "documents_newer",
      `state: "${path}" has format ${format}, this can read ${FORMAT}`,
      {
        hint: "use the version of Mailer that wrote it, or a newer one",
      },
    );
  }
  const byName = new Map<string, Held>();
  let at = start;
  for (const { name, version, bytes } of documents) {
    byName.set(name, { bytes: all.slice(at, at += bytes), version });
  }
  if (at !== all.length) throw documentsCorrupt(path, `it has ${all.length} bytes, its table says ${at}`);
  return { commits, byName };
}

/** With the right checksum it is as it was written. */
function tableIn(path: string, json: Uint8Array): Table {
  try {
    return JSON.parse(new TextDecoder().decode(json)) as Table;
  } catch (error) {
    throw documentsCorrupt(path, asError(error).message, error);
  }
}
