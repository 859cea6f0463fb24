/**
 * Where in the document a character of a text stands, so that an error inside an expression is shown where it is.
 *
 * @module
 */
import type { Place } from "./problem.ts";
import type { ScalarNode } from "./tree.ts";

/** The place of the character at `offset` of a text's value; the text's start where that cannot be told. */
export function placeInScalar(node: ScalarNode, offset: number): Place {
  const text = node.value;
  if (typeof text !== "string" || node.reference !== undefined) return node.place;
  if (node.raw.includes("\n")) return placeInLines(node, text, offset) ?? node.place;
  const { line, column } = node.place;
  if (node.style === "single") return { line, column: column + quotedColumn(node.raw, offset, singleStep) };
  if (node.style === "double") return { line, column: column + quotedColumn(node.raw, offset, doubleStep) };
  return { line, column: column + offset };
}

/** Characters of a quoted text, in front of the one at `offset`, as written. `step` gives [written, meant] at an index. */
function quotedColumn(
  raw: string,
  offset: number,
  step: (raw: string, at: number) => [number, number],
): number {
  let at = 1, left = offset;
  while (left > 0 && at < raw.length - 1) {
    const [written, meant] = step(raw, at);
    at += written;
    left -= meant;
  }
  return at;
}

function singleStep(raw: string, at: number): [number, number] {
  return raw.startsWith("''", at) ? [2, 1] : [1, 1];
}

const ESCAPE_LENGTH: Readonly<Record<string, number>> = { x: 4, u: 6, U: 10 };

function doubleStep(raw: string, at: number): [number, number] {
  if (raw[at] !== "\\") return [1, 1];
  const letter = raw[at + 1]!;
  const written = ESCAPE_LENGTH[letter] ?? 2;
  const wide = letter === "U" && parseInt(raw.slice(at + 2, at + 10), 16) > 0xffff;
  return [written, wide ? 2 : 1];
}

/**
 * For texts over several lines: the lines' contents are found again in the value, one behind the other. Right for block
 * scalars and for quoted or plain texts without escapes.
 */
function placeInLines(node: ScalarNode, text: string, offset: number): Place | undefined {
  const lines = node.raw.split("\n");
  const isBlock = node.style === "literal" || node.style === "folded";
  let cursor = 0, place: Place | undefined;
  for (let i = isBlock ? 1 : 0; i < lines.length; i++) {
    const line = lines[i]!.replace(/\r$/, "");
    let from = line.length - line.trimStart().length, to = line.trimEnd().length;
    if (!isBlock && node.style !== "plain" && i === 0) from++;
    if (!isBlock && node.style !== "plain" && i === lines.length - 1) to--;
    const content = line.slice(from, to);
    if (content === "") continue;
    const start = text.indexOf(content, cursor);
    if (start === -1) return undefined;
    const column = i === 0 ? node.place.column : 1;
    // The nearest character at or behind the offset: what lies between two lines belongs to the end of the first.
    if (offset < start) return place ?? { line: node.place.line + i, column: column + from };
    place = { line: node.place.line + i, column: column + from + Math.min(offset - start, content.length) };
    if (offset < start + content.length) return place;
    cursor = start + content.length;
  }
  return place;
}
