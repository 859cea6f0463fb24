/**
 * Frames of a zstd stream. The decoder at hand stops in silence at the end of a frame, and in the middle of one where the
 * file ends; so the frames are counted here (RFC 8878, §3.1).
 *
 * Z1 No piece of input given out crosses the end of a frame.
 * Z2 A stream that ends within a frame, or has no frame at all, is an error.
 * Z3 Where all frames state the size of their content, it is known in all.
 *
 * @module
 */

const MAGIC = 0xfd2fb528, SKIPPABLE = 0x184d2a50;

/** What comes next in the stream. */
type Part = "magic" | "descriptor" | "header" | "block" | "skippable";

/** Follows the frames of one stream. */
export class ZstdFrames {
  #part: Part = "magic";
  /** Bytes of the part at hand, and how many it needs. */
  readonly #held: number[] = [];
  #needed = 4;
  /** Bytes that pass without a look: what is in blocks, and checksums. */
  #passing = 0;
  #descriptor = 0;
  #frames = 0;
  #content: number | undefined = 0;

  /** Bytes of content in all frames so far, where they all state it. */
  get content(): number | undefined {
    return this.#content;
  }

  /** The parts of `bytes` to decode: the first up to the end of a frame and so on. @throws {Error} where they are no zstd. */
  pieces(bytes: Uint8Array): Uint8Array[] {
    const pieces: Uint8Array[] = [];
    let from = 0, at = 0;
    while (at < bytes.length) {
      if (this.#passing > 0) {
        const passed = Math.min(this.#passing, bytes.length - at);
        at += passed;
        this.#passing -= passed;
      } else {
        this.#held.push(bytes[at++]!);
        if (this.#held.length < this.#needed) continue;
        this.#advance();
        this.#held.length = 0;
      }
      if (this.#part === "magic" && this.#passing === 0) { // the end of a frame
        pieces.push(bytes.subarray(from, at));
        from = at;
      }
    }
    if (at > from) pieces.push(bytes.subarray(from, at));
    return pieces;
  }

  /** @throws {Error} where the stream may not end here. */
  end(): void {
    if (this.#part !== "magic" || this.#passing > 0 || this.#held.length > 0) {
      throw new Error("it ends within a frame");
    }
    if (this.#frames === 0) throw new Error("it is empty");
  }

  #number(from: number, to: number): number {
    let number = 0;
    for (let i = to - 1; i >= from; i--) number = number * 256 + this.#held[i]!;
    return number;
  }

  #expect(part: Part, needed: number): void {
    this.#part = part;
    this.#needed = needed;
  }

  #advance(): void {
    switch (this.#part) {
      case "magic": {
        const magic = this.#number(0, 4);
        if (magic === MAGIC) {
          this.#frames++;
          return this.#expect("descriptor", 1);
        }
        if (magic - (magic % 16) !== SKIPPABLE) {
          throw new Error("a frame was expected, and something else is there");
        }
        this.#frames++;
        return this.#expect("skippable", 4);
      }
      case "skippable":
        this.#passing = this.#number(0, 4);
        return this.#expect("magic", 4);
      case "descriptor": {
        const descriptor = this.#descriptor = this.#held[0]!;
        const window = descriptor & 32 ? 0 : 1, dictionary = [0, 1, 2, 4][descriptor & 3]!;
        const needed = window + dictionary + this.#contentBytes();
        return needed === 0 ? this.#expect("block", 3) : this.#expect("header", needed);
      }
      case "header": {
        const size = this.#contentBytes(), { length } = this.#held;
        if (size === 0) this.#content = undefined;
        else if (this.#content !== undefined) {
          this.#content += this.#number(length - size, length) + (size === 2 ? 256 : 0);
        }
        return this.#expect("block", 3);
      }
      case "block": {
        const head = this.#number(0, 3), kind = (head >> 1) & 3;
        if (kind === 3) throw new Error("a block is of no known kind");
        this.#passing = kind === 1 ? 1 : head >> 3;
        if ((head & 1) === 0) return this.#expect("block", 3);
        if (this.#descriptor & 4) this.#passing += 4;
        return this.#expect("magic", 4);
      }
    }
  }

  #contentBytes(): number {
    const flag = this.#descriptor >> 6;
    return flag === 0 ? (this.#descriptor & 32 ? 1 : 0) : 1 << flag;
  }
}
