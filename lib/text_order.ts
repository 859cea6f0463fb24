/**
 * The order of texts: by code point, as UTF-8 bytes would have it. JavaScript's own goes by UTF-16 units, in which the halves of
 * a surrogate pair come before U+E000 and what follows it.
 *
 * @module
 */

/** −1, 0 or 1, as `a` comes before, is, or comes behind `b`. */
export function compareTexts(a: string, b: string): -1 | 0 | 1 {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i), y = b.charCodeAt(i);
    if (x !== y) return codePointRank(x) < codePointRank(y) ? -1 : 1;
  }
  return a.length < b.length ? -1 : 1;
}

/** Surrogates stand for code points behind all others. */
function codePointRank(unit: number): number {
  return unit < 0xd800 || unit > 0xdfff ? unit : unit + 0x10000;
}
