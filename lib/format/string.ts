/**
 * The format `string`: the record is its text.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { encodeJson } from "./json.ts";
import type { Decoded, Decoder, Encoder, Format, Payload } from "./format.ts";
import { utf8Text } from "./utf8.ts";

/**
 * Texts in UTF-8. Decoding fails (`not_utf8`) for other bytes. Encoding takes texts, and bytes that are UTF-8, as they are
 * (no quotes, line breaks stay), and any other value as its JSON.
 */
export function stringFormat(): Format<string> {
  return { name: "string", decoder: () => stringDecoder, encoder: () => stringEncoder };
}

const stringDecoder: Decoder<string> = {
  decode(payloads: readonly Payload[], into: Decoded<string>): void {
    for (const [index, payload] of payloads.entries()) {
      try {
        into.values.push(typeof payload === "string" ? payload : utf8Text(payload));
      } catch (error) {
        into.failures.push({ index, error: error as MailerError });
      }
    }
  },
};

const stringEncoder: Encoder = {
  encode(value: unknown): Payload {
    if (typeof value === "string") {
      if (value.isWellFormed()) return value;
      throw new MailerError("not_utf8", "the text holds half a surrogate pair, which UTF-8 cannot write");
    }
    return value instanceof Uint8Array ? utf8Text(value) : encodeJson(value);
  },
};
