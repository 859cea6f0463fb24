/**
 * Many JSON texts in one call of `JSON.parse`: joined by commas between brackets. About a third faster than one by one
 * on records of 150 bytes, because the objects of one array share what the parser learned of their shape.
 *
 * Joining must never read the texts otherwise than one by one would: `1,2` is not two records, nor are `[1` and `2]` one.
 * So only texts are joined for which that is certain, by these conditions:
 *
 * B1 Every text starts with `{` and ends with `}`.
 * B2 No `{` inside a text has a comma before it, blanks between them or not.
 * B3 The joined text is JSON, an array of as many elements as there are texts.
 *
 * Why that is enough. Call a comma of a text *loose* if the parser takes it as a comma between two elements of the outer
 * array, and let the last loose comma of all be in the text t. What follows it in t starts an element e, and there is no
 * loose comma behind it in t.
 *  - e begins with `{`: against B2.
 *  - e ends within t: then e ends t, so by B1 it ends with `}`, so it is an object and begins with `{`: against B2.
 *  - e goes on into later texts: as it does not begin with `{` it is an array or a string, and ends with `]` or `"`. By B1
 *    that is not the end of a text, so in the text where it ends the array goes on behind it: with a loose comma (then t did
 *    not have the last one), or with the bracket that closes the outer array, behind which nothing may follow, against B3.
 * So there are no loose commas, and the elements are separated by the joining commas alone. By B3 there is one element
 * more than there are joining commas, so every joining comma separates two elements: each text is one element, whole.
 *
 * B4 Numbers are read as `parseExact` reads them: none loses a digit.
 *
 * @module
 */
import { parseExact } from "../json.ts";

const OPEN = 123, CLOSE = 125, COMMA = 44;
/** Above this the call itself costs nothing any more, and the copy does. */
const LONGEST = 1 << 16;

/** The values of the texts, or undefined where it is not certain that parsing them one by one gives the same. */
export function parseJoined(texts: readonly (string | undefined)[]): unknown[] | undefined {
  const starts: number[] = [];
  let joined = "[";
  for (const text of texts) {
    if (text === undefined || joined.length > LONGEST) return undefined;
    if (text.charCodeAt(0) !== OPEN || text.charCodeAt(text.length - 1) !== CLOSE) return undefined;
    if (starts.length > 0) joined += ",";
    starts.push(joined.length);
    joined += text;
  }
  if (hasInnerList(joined, starts)) return undefined;
  let list: unknown;
  try {
    list = parseExact(joined + "]");
  } catch {
    return undefined; // one by one will say which text it is, and why
  }
  return (list as unknown[]).length === texts.length ? list as unknown[] : undefined;
}

/** Whether B2 does not hold. */
function hasInnerList(joined: string, starts: readonly number[]): boolean {
  let next = 0;
  for (let at = joined.indexOf("{"); at !== -1; at = joined.indexOf("{", at + 1)) {
    if (at === starts[next]) next++;
    else if (isBehindComma(joined, at)) return true;
  }
  return false;
}

function isBehindComma(text: string, at: number): boolean {
  let before = text.charCodeAt(--at);
  while (before === 32 || (before <= 13 && before >= 9)) before = text.charCodeAt(--at);
  return before === COMMA;
}
