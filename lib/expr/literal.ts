/**
 * What stands between the quotes of a text or bytes literal, with its escapes resolved.
 *
 * @module
 */
import { ExpressionError, problemAt } from "./errors.ts";

/** The inside of a literal: `[from, to)` of the expression's text. `raw`: a backslash is a backslash. */
export interface LiteralSource {
  readonly text: string;
  readonly from: number;
  readonly to: number;
  readonly raw: boolean;
}

/** One escape: a letter or sign, code points in hex or octal, or something that is none. */
const ESCAPE =
  /\\(?:([abfnrtv\\?"'`])|[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|)/g;
const SIGNS: Readonly<Record<string, string>> = {
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/**
 * @throws {ExpressionError} for an unknown escape or a code point that is none.
 */
export function literalText(source: LiteralSource): string {
  const { text, from, to, raw } = source;
  const inside = text.slice(from, to);
  if (raw || !inside.includes("\\")) return inside;
  return inside.replace(ESCAPE, (whole, sign, hex, octal, short, long, at: number) => {
    if (sign !== undefined) return SIGNS[sign] ?? sign;
    if (octal !== undefined) return String.fromCodePoint(parseInt(octal, 8));
    const code = parseInt(hex ?? short ?? long ?? "", 16);
    if (Number.isNaN(code)) throw unknownEscape(source, at);
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
      throw new ExpressionError([problemAt(text, from + at, `${whole} is not a Unicode character`)]);
    }
    return String.fromCodePoint(code);
  });
}

/**
 * Bytes of a literal: characters in UTF-8, `\x` and octal escapes as the byte itself.
 *
 * @throws {ExpressionError} for an unknown escape; `\u` and `\U` are none here.
 */
export function literalBytes(source: LiteralSource): Uint8Array {
  const { text, from, to, raw } = source;
  const encoder = new TextEncoder();
  const inside = text.slice(from, to);
  if (raw || !inside.includes("\\")) return encoder.encode(inside);
  const bytes: number[] = [];
  const characters = (piece: string): void => {
    for (const byte of encoder.encode(piece)) bytes.push(byte);
  };
  let done = 0;
  for (const escape of inside.matchAll(ESCAPE)) {
    characters(inside.slice(done, escape.index));
    const [whole, sign, hex, octal] = escape;
    if (sign !== undefined) bytes.push((SIGNS[sign] ?? sign).charCodeAt(0));
    else if (hex !== undefined) bytes.push(parseInt(hex, 16));
    else if (octal !== undefined) bytes.push(parseInt(octal, 8));
    else throw unknownEscape(source, escape.index);
    done = escape.index + whole.length;
  }
  characters(inside.slice(done));
  return Uint8Array.from(bytes);
}

function unknownEscape(source: LiteralSource, at: number): ExpressionError {
  const offset = source.from + at;
  const escape = source.text.slice(offset, offset + 2);
  return new ExpressionError([
    problemAt(source.text, offset, `${escape} is no escape here`, {
      hint: String.raw`write a backslash as \\, or put an r in front of the text to keep every backslash`,
    }),
  ]);
}
