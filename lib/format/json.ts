/**
 * The format `json`: one JSON text a record, without losing a digit.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import { Decimal, parseJson, stringifyJson } from "../json.ts";
import { formatPath, type PathPart } from "../path.ts";
import { ByteTexts } from "./byte_texts.ts";
import type { Decoded, Decoder, Encoder, Format, Payload } from "./format.ts";
import { parseJoined } from "./json_batch.ts";
import { notUtf8 } from "./utf8.ts";

/**
 * JSON texts. Numbers keep their exact decimal value, see `lib/json.ts`.
 *
 * Decoding fails (`not_json`, `not_utf8`) for what is not exactly one JSON text in UTF-8. Encoding fails
 * (`not_json_number`) for NaN and infinities, which JSON would turn into `null`.
 */
export function jsonFormat<T = unknown>(): Format<T> {
  return { name: "json", decoder: () => new JsonDecoder<T>(), encoder: () => jsonEncoder };
}

/** One compact line of JSON. -0 is written as 0, `undefined` at the top as `null`. */
export function encodeJson(value: unknown): string {
  const text = stringifyJson(value);
  // NaN and infinities come out as `null`, so only a text with a `null` can hide one.
  if (text.includes("null")) {
    const found = nonFinite(value);
    if (found !== undefined) {
      const at = found.path.length === 0 ? "" : ` at ${formatPath(found.path)}`;
      throw new MailerError("not_json_number", `${found.number}${at} cannot be written as JSON`, {
        hint: "JSON has no NaN and no infinities: replace them, e.g. by null, before the sink",
      });
    }
  }
  return text;
}

const jsonEncoder: Encoder = { encode: encodeJson };

/** A number that JSON cannot write, and the way to it. */
interface NonFinite {
  readonly number: number;
  readonly path: readonly PathPart[];
}

/** The first number in `value` that JSON cannot write. */
function nonFinite(value: unknown): NonFinite | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : { number: value, path: [] };
  if (typeof value !== "object" || value === null || value instanceof Decimal) return undefined;
  if (value instanceof Number) return nonFinite(value.valueOf());
  if ("toJSON" in value && typeof value.toJSON === "function") {
    const written: unknown = value.toJSON();
    return written === value ? undefined : nonFinite(written);
  }
  for (const key in value) {
    const found = nonFinite((value as Record<string, unknown>)[key]);
    if (found !== undefined && Object.hasOwn(value, key)) {
      const step = Array.isArray(value) ? Number(key) : key;
      return { number: found.number, path: [step, ...found.path] };
    }
  }
  return undefined;
}

/** Most payloads to parse as one text. */
const GROUP = 64;
/** Most groups to parse one by one after a group that could not be joined. */
const LONGEST_PAUSE = 64;

/**
 * Parses groups of payloads as one array where that is certain to give the same, else one by one. Where groups keep being
 * no good for it, fewer and fewer are tried.
 */
class JsonDecoder<T> implements Decoder<T> {
  readonly #bytes = new ByteTexts();
  #pause = 0;
  #paused = 0;

  decode(payloads: readonly Payload[], into: Decoded<T>): void {
    for (let from = 0; from < payloads.length; from += GROUP) {
      const texts = this.#bytes.read(payloads, from, Math.min(from + GROUP, payloads.length));
      const list = this.#joined(texts);
      if (list === undefined) oneByOne(payloads, from, texts, into);
      else for (let i = 0; i < list.length; i++) into.values.push(list[i] as T);
    }
  }

  #joined(texts: readonly (string | undefined)[]): unknown[] | undefined {
    if (texts.length < 2 || this.#paused-- > 0) return undefined;
    const list = parseJoined(texts);
    this.#paused = this.#pause = list === undefined ? Math.min(2 * this.#pause + 1, LONGEST_PAUSE) : 0;
    return list;
  }
}

function oneByOne<T>(
  payloads: readonly Payload[],
  from: number,
  texts: readonly (string | undefined)[],
  into: Decoded<T>,
): void {
  for (const [i, text] of texts.entries()) {
    try {
      if (text === undefined) throw notUtf8(payloads[from + i] as Uint8Array);
      into.values.push(parseJson(text) as T);
    } catch (error) {
      into.failures.push({ index: from + i, error: error as Error });
    }
  }
}
