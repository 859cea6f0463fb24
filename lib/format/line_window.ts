/**
 * The part of a stream of bytes that is in memory: whole lines, and the beginning of the one that is still to come.
 *
 * L1 What the lines are does not depend on how the bytes were pushed.
 * L2 A byte order mark at the very start is dropped; `position` counts it.
 * L3 No more is held than the longest line allowed, what was pushed last, and for a longer line its first bytes.
 *
 * @module
 */

const EMPTY = new Uint8Array(0);
/** What is kept of a line that is too long. */
export function keptBytes(maxLineBytes: number): number {
  return Math.min(maxLineBytes, 1 << 16);
}

/** See the head of this file. */
export class LineWindow {
  readonly #maxLineBytes: number;
  #buffer: Uint8Array = EMPTY;
  #from = 0;
  #to = 0;
  /** Behind the last LF in the buffer. */
  #linesEnd = 0;
  /** Where in the stream the buffer begins. */
  #base: number;
  #ended = false;
  /** 1 where an LF was added behind the last line. */
  #added = 0;
  #markPossible: boolean;
  #long: { readonly start: Uint8Array; complete: boolean } | undefined;

  /** @param position Where in the stream the bytes begin; behind the start there is no byte order mark. */
  constructor(maxLineBytes: number, position: number) {
    this.#maxLineBytes = maxLineBytes;
    this.#base = position;
    this.#markPossible = position === 0;
  }

  /** Bytes of the stream that have been taken. */
  get position(): number {
    const position = this.#base + this.#from;
    return this.#ended && this.#from === this.#to ? position - this.#added : position;
  }

  get ended(): boolean {
    return this.#ended;
  }

  /** The whole lines that have not been taken, each with its LF. Valid until the next `push`. */
  lines(): Uint8Array {
    return this.#from >= this.#linesEnd ? EMPTY : this.#buffer.subarray(this.#from, this.#linesEnd);
  }

  /** Takes bytes off the front of {@link lines}. */
  take(bytes: number): void {
    this.#from += bytes;
  }

  /** Takes the beginning of a line that was too long, once it has come to its end. It comes before {@link lines}. */
  takeLongLine(): Uint8Array | undefined {
    if (this.#long?.complete !== true) return undefined;
    const { start } = this.#long;
    this.#long = undefined;
    return start;
  }

  /** Adds bytes, which are copied. To be called only when {@link lines} holds no record that is complete. */
  push(bytes: Uint8Array): void {
    let rest = bytes;
    if (this.#long !== undefined) {
      const end = rest.indexOf(10);
      this.#base += end === -1 ? rest.length : end + 1;
      if (end === -1) return;
      this.#long.complete = true;
      rest = rest.subarray(end + 1);
    }
    this.#append(rest);
    if (this.#markPossible) this.#dropMark();
    const last = rest.lastIndexOf(10);
    if (last !== -1) this.#linesEnd = this.#to - rest.length + last + 1;
    const isPart = this.#linesEnd <= this.#from && this.#long === undefined;
    // One more than allowed may be the CR of the line break.
    if (isPart && this.#to - this.#from > this.#maxLineBytes + 1) this.#skipLine();
  }

  /** Says that no bytes follow: what is there of the last line is the line. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#markPossible = false;
    if (this.#long !== undefined && !this.#long.complete) this.#long.complete = true;
    else if (this.#to > Math.max(this.#from, this.#linesEnd)) {
      this.#append(Uint8Array.of(10));
      this.#added = 1;
      this.#linesEnd = this.#to;
    }
  }

  #append(bytes: Uint8Array): void {
    if (this.#from > 0) {
      this.#buffer.copyWithin(0, this.#from, this.#to);
      this.#base += this.#from;
      this.#to -= this.#from;
      this.#linesEnd -= this.#from;
      this.#from = 0;
    }
    const needed = this.#to + bytes.length;
    if (needed > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(needed, Math.min(2 * needed, needed + (1 << 20))));
      larger.set(this.#buffer.subarray(0, this.#to));
      this.#buffer = larger;
    }
    this.#buffer.set(bytes, this.#to);
    this.#to = needed;
  }

  #dropMark(): void {
    const held = this.#buffer.subarray(0, Math.min(3, this.#to));
    if (![0xef, 0xbb, 0xbf].slice(0, held.length).every((byte, i) => held[i] === byte)) {
      this.#markPossible = false;
    } else if (held.length === 3) {
      this.#markPossible = false;
      this.#from = 3;
    }
  }

  /** Lets go of the beginning of a line that is too long. */
  #skipLine(): void {
    const start = this.#buffer.slice(this.#from, this.#from + keptBytes(this.#maxLineBytes));
    this.#long = { start, complete: false };
    this.#base += this.#to;
    this.#from = this.#to = this.#linesEnd = 0;
    this.#buffer = EMPTY;
  }
}
