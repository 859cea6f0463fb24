/**
 * Bytes of many payloads to texts, with few calls: copied together, looked at and read as one, then cut apart.
 *
 * @module
 */
import { Buffer, isUtf8 } from "node:buffer";
import type { Payload } from "./format.ts";
import { asciiText, encodingOf, validUtf8Text } from "./utf8.ts";

/** Above this many bytes together, copying costs more than calls do. */
const MOST_TOGETHER = 1 << 17;

/** Reads groups of payloads. Each decoder has one of its own, for its memory. */
export class ByteTexts {
  #scratch: Uint8Array | undefined;

  /**
   * Texts of the payloads `from` to `to`; undefined for one that is not UTF-8.
   * They may share one large text: for parsing, not for keeping.
   */
  read(payloads: readonly Payload[], from: number, to: number): (string | undefined)[] {
    const together = to - from > 1 ? this.#together(payloads, from, to) : undefined;
    const texts: (string | undefined)[] = [];
    let at = 0;
    for (let i = from; i < to; i++) {
      const payload = payloads[i]!;
      if (typeof payload === "string") texts.push(payload);
      else if (together !== undefined) texts.push(together.slice(at, at += payload.length));
      else texts.push(isUtf8(payload) ? validUtf8Text(payload, 0, payload.length) : undefined);
    }
    return texts;
  }

  /** One text of all byte payloads, where each of its characters is one byte. */
  #together(payloads: readonly Payload[], from: number, to: number): string | undefined {
    const scratch = this.#scratch ??= Buffer.allocUnsafeSlow(MOST_TOGETHER);
    let end = 0;
    for (let i = from; i < to; i++) {
      const payload = payloads[i]!;
      if (typeof payload === "string") continue;
      if (end + payload.length > MOST_TOGETHER) return undefined;
      scratch.set(payload, end);
      end += payload.length;
    }
    return encodingOf(scratch.subarray(0, end)) === "ascii" ? asciiText(scratch, 0, end) : undefined;
  }
}
