/**
 * Text of an expression → tokens.
 *
 * @module
 */
import { ExpressionError, problemAt, quoted } from "./errors.ts";
import { literalBytes, literalText } from "./literal.ts";

/** `name`, `quoted` (between backticks), a literal, an `operator` or bracket, or the `end` of the text. */
export type Token =
  | { readonly kind: "name" | "quoted" | "text" | "operator" | "end"; readonly text: string } & Span
  | { readonly kind: "int" | "uint"; readonly magnitude: bigint } & Span
  | { readonly kind: "double"; readonly number: number } & Span
  | { readonly kind: "bytes"; readonly bytes: Uint8Array } & Span;
interface Span {
  readonly start: number;
  readonly end: number;
}

const SPACE = /(?:[ \t\r\n\f]+|\/\/[^\n]*)+/y;
const NAME = /[A-Za-z_][A-Za-z0-9_]*/y;
const NUMBER = /0[xX][0-9a-fA-F]+[uU]?|(?:\d+\.\d+|\.\d+|\d+)(?:[eE][+-]?\d+)?[uU]?/y;
const QUOTE = /([rR]?[bB]?|[bB][rR])("""|'''|"|')/y;
const QUOTED = /`[^`\n]*`/y;
const OPERATOR = /&&|\|\||[=!<>]=|\?\.(?!\d)|[-+*/%<>!?:.,()[\]{}]/y;
/** A character someone took for an operator, and the operator. */
const INSTEAD: Readonly<Record<string, string>> = { "=": "==", "&": "&&", "|": "||" };

/**
 * All tokens of a text, the last one of kind `end`.
 *
 * @throws {ExpressionError} at the first character that begins no token.
 */
export function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(text);
  };
  const fail = (offset: number, message: string, suggestion?: string): never => {
    throw new ExpressionError([problemAt(text, offset, message, { suggestion })]);
  };
  while (true) {
    at = match(SPACE) === null ? at : SPACE.lastIndex;
    const start = at;
    if (at >= text.length) {
      tokens.push({ kind: "end", text: "", start, end: at });
      return tokens;
    }
    let found = match(QUOTE);
    if (found !== null) {
      const [opening, prefix, quote] = found;
      const from = at + opening.length, to = closing(text, from, quote!);
      if (to === -1) fail(start, `this text has no closing ${quote}`);
      at = to + quote!.length;
      const literal = { text, from, to, raw: /r/i.test(prefix!) };
      if (/b/i.test(prefix!)) tokens.push({ kind: "bytes", bytes: literalBytes(literal), start, end: at });
      else tokens.push({ kind: "text", text: literalText(literal), start, end: at });
    } else if ((found = match(NAME)) !== null) {
      at = NAME.lastIndex;
      tokens.push({ kind: "name", text: found[0], start, end: at });
    } else if ((found = match(NUMBER)) !== null) {
      at = NUMBER.lastIndex;
      NAME.lastIndex = at;
      if (NAME.test(text)) fail(start, `${quoted(text.slice(start, NAME.lastIndex))} is not a number`);
      const number = numberToken(found[0], start);
      if (number === undefined) fail(start, `${quoted(found[0])} is not a number`);
      else tokens.push(number);
    } else if ((found = match(OPERATOR)) !== null) {
      at = OPERATOR.lastIndex;
      tokens.push({ kind: "operator", text: found[0], start, end: at });
    } else if ((found = match(QUOTED)) !== null) {
      at = QUOTED.lastIndex;
      tokens.push({ kind: "quoted", text: found[0].slice(1, -1), start, end: at });
    } else {
      const character = String.fromCodePoint(text.codePointAt(at)!);
      fail(at, `unexpected ${JSON.stringify(character)}`, INSTEAD[character]);
    }
  }
}

/** Where the quote that ends a text stands, or -1. One-line texts end at the line, raw ones too. */
function closing(text: string, from: number, quote: string): number {
  for (let at = from; at < text.length; at++) {
    const character = text[at];
    if (character === "\\") at++; // also in raw texts: the next character does not end it
    else if (quote.length === 1 && (character === "\n" || character === "\r")) return -1;
    else if (text.startsWith(quote, at)) return at;
  }
  return -1;
}

function numberToken(word: string, start: number): Token | undefined {
  const end = start + word.length;
  const unsigned = /[uU]$/.test(word);
  const digits = unsigned ? word.slice(0, -1) : word;
  if (/^(0[xX]|\d+$)/.test(digits)) {
    return { kind: unsigned ? "uint" : "int", magnitude: BigInt(digits), start, end };
  }
  const number = Number(digits);
  return unsigned || !Number.isFinite(number) ? undefined : { kind: "double", number, start, end };
}
