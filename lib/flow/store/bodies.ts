/**
 * Texts as cells: sealed by the codec, and cut into parts where they are large.
 *
 * B1 Parts are never changed: another text is another set of parts.
 * B2 A cell names its parts; where the cell goes, whoever removes it removes them.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { type Cells, cellsIn, type Write } from "./cells.ts";
import * as keys from "./keys.ts";
import type { Codec } from "./port.ts";

/** Most sealed bytes that lie in the cell itself. */
export const LARGEST_INLINE = 48_000;
const PART_BYTES = 60_000;
/** Characters that surely are no more bytes than {@link LARGEST_INLINE}. */
const LONGEST_SHORT = 16_000;
const INLINE = 0;
const IN_PARTS = 1;

/** Parts of a text. */
export interface Blob {
  /** Whose they are: `x/EXEC`, or the key of the cell. */
  readonly owner: string;
  readonly id: string;
  readonly parts: number;
}

/** A text on its way into a cell. */
export interface Packed {
  /** What the cell holds. */
  readonly bytes: Uint8Array;
  /** Where it is in parts. */
  readonly blob?: Blob;
  /** The parts, to be written with the cell or before. */
  readonly writes: readonly Write[];
}

const NO_WRITES: readonly Write[] = Object.freeze([]);
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Packs and unpacks texts. */
export class Bodies {
  readonly #cells: Cells;
  readonly #codec: Codec | undefined;
  readonly #newId: () => string;

  /** @param newId Ids no other process gives. */
  constructor(cells: Cells, codec: Codec | undefined, newId: () => string) {
    this.#cells = cells;
    this.#codec = codec;
    this.#newId = newId;
  }

  /** @param owner Whose the parts are, if it has any. */
  pack(text: string, owner: string): Packed | Promise<Packed> {
    if (this.#codec === undefined) {
      const bytes = shortCell(text);
      if (bytes !== undefined) return { bytes, writes: NO_WRITES };
    }
    const plain = encoder.encode(text);
    if (this.#codec === undefined) return this.#packed(plain, owner);
    const sealed = this.#codec.encode(plain);
    return sealed instanceof Promise
      ? sealed.then((bytes) => this.#packed(bytes, owner))
      : this.#packed(sealed, owner);
  }

  #packed(sealed: Uint8Array, owner: string): Packed {
    if (sealed.length <= LARGEST_INLINE) {
      const bytes = new Uint8Array(sealed.length + 1);
      bytes[0] = INLINE;
      bytes.set(sealed, 1);
      return { bytes, writes: NO_WRITES };
    }
    const id = this.#newId(), writes: Write[] = [];
    for (let at = 0; at < sealed.length; at += PART_BYTES) {
      writes.push({ key: keys.part(owner, id, writes.length), bytes: sealed.slice(at, at + PART_BYTES) });
    }
    const pointer = encoder.encode(JSON.stringify([owner, id, writes.length, sealed.length]));
    const bytes = new Uint8Array(pointer.length + 1);
    bytes[0] = IN_PARTS;
    bytes.set(pointer, 1);
    return { bytes, blob: { owner, id, parts: writes.length }, writes };
  }

  /** {@link pack} for a text that must fit a cell. */
  async packSmall(text: string, what: string): Promise<Uint8Array> {
    const packed = this.pack(text, ""), { bytes, blob } = packed instanceof Promise ? await packed : packed;
    if (blob !== undefined) {
      throw new MailerError("text_too_large", `flows: ${what} is larger than ${LARGEST_INLINE} bytes`, {
        hint: "store what it holds elsewhere, and name it here",
      });
    }
    return bytes;
  }

  /** The text of a cell. */
  unpack(bytes: Uint8Array): string | Promise<string> {
    if (bytes[0] === IN_PARTS) return this.#collect(bytes);
    const sealed = bytes.subarray(1);
    if (this.#codec === undefined) return decoder.decode(sealed);
    const plain = this.#codec.decode(sealed);
    return plain instanceof Promise ? plain.then((done) => decoder.decode(done)) : decoder.decode(plain);
  }

  /** Parts that a cell names. */
  blobOf(bytes: Uint8Array): Blob | undefined {
    if (bytes[0] !== IN_PARTS) return undefined;
    const [owner, id, parts] = pointerOf(bytes);
    return { owner, id, parts };
  }

  async #collect(bytes: Uint8Array): Promise<string> {
    const [owner, id, parts, size] = pointerOf(bytes);
    const sealed = new Uint8Array(size);
    let at = 0, count = 0;
    for await (const page of cellsIn(this.#cells, keys.parts(owner, id), 64)) {
      for (const { bytes } of page) {
        if (at + bytes.length <= size) sealed.set(bytes, at);
        at += bytes.length;
        count++;
      }
    }
    if (count !== parts || at !== size) {
      throw new MailerError(
        "text_missing",
        `flows: a text of ${size} bytes in ${this.#cells.where}, of ${owner}, has ${count} of ${parts} parts`,
        { hint: "it was deleted while it was read, or the store was changed by something else" },
      );
    }
    return decoder.decode(this.#codec === undefined ? sealed : await this.#codec.decode(sealed));
  }
}

/** Where texts are encoded that fit a cell for sure; the first byte is {@link INLINE}. */
const scratch = new Uint8Array(1 + LARGEST_INLINE);
const behindTag = scratch.subarray(1);

/** Cell of a text that is short enough, whatever its characters: the usual case, in one step. */
function shortCell(text: string): Uint8Array | undefined {
  if (text.length > LONGEST_SHORT) return undefined;
  return scratch.slice(0, 1 + encoder.encodeInto(text, behindTag).written);
}

/** Writes that remove the parts of a text. */
export function removing(blob: Blob | undefined): Write[] {
  if (blob === undefined) return [];
  return Array.from(
    { length: blob.parts },
    (_, n) => ({ key: keys.part(blob.owner, blob.id, n), bytes: null }),
  );
}

function pointerOf(bytes: Uint8Array): [owner: string, id: string, parts: number, size: number] {
  return JSON.parse(decoder.decode(bytes.subarray(1)));
}
