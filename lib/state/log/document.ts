/**
 * Manifests as bytes: any value the codec takes, with a version and a checksum.
 *
 * `MLR` and the version (4 bytes), crc32 of the rest (4), the value.
 *
 * @module
 */
import { crc32 } from "node:zlib";
import { MailerError } from "../../errors.ts";
import { ByteReader, ByteWriter } from "./bytes.ts";
import { decodeValue, encodeValue } from "./codec.ts";

const MAGIC = 0x4d4c52;
const FORMAT = 1;

/** Seals a value, such as the manifest of a checkpoint with the sections of its operators. @throws {MailerError} `not_storable` */
export function sealDocument(value: unknown): Uint8Array {
  const writer = new ByteWriter(256);
  writer.at = 8;
  encodeValue(writer, value);
  writer.view.setUint32(0, MAGIC * 256 + FORMAT);
  writer.view.setUint32(4, crc32(writer.bytes.subarray(8, writer.at)));
  return writer.taken();
}

/**
 * Opens what was sealed.
 *
 * @param name Names the document, for errors.
 * @throws {MailerError} `document_corrupt`, `document_format`
 */
export function openDocument(name: string, bytes: Uint8Array): unknown {
  const reader = new ByteReader(bytes, 8);
  const corrupt = (what: string): MailerError =>
    new MailerError("document_corrupt", `state: "${name}" is damaged: ${what}`, {
      hint: "go back to an older checkpoint",
    });
  if (bytes.length < 9 || reader.view.getUint32(0) >>> 8 !== MAGIC) {
    throw corrupt("it does not begin like a manifest");
  }
  if (bytes[3] !== FORMAT) {
    throw new MailerError(
      "document_format",
      `state: "${name}" has format ${bytes[3]}, this version reads format ${FORMAT}`,
      { hint: "run the version of Mailer that wrote it, or a newer one" },
    );
  }
  const expected = reader.view.getUint32(4), found = crc32(bytes.subarray(8));
  if (expected !== found) {
    throw corrupt(`its checksum should be ${expected.toString(16)} and is ${found.toString(16)}`);
  }
  return decodeValue(reader);
}
