/**
 * `text.matches(pattern)`: RE2 patterns, found anywhere in the text, in time linear in its length.
 *
 * @module
 */
import { RE2JS, RE2JSException } from "re2js";
import { failure, type Part } from "./errors.ts";

/** Whether a text holds a match. */
export type Pattern = (text: string) => boolean;

/** The longest pattern: the machine grows with it. */
const MAX_LENGTH = 1000;

/** A pattern ready for use, or what is wrong with it. */
export function compilePattern(source: string): Pattern | { readonly problem: string } {
  if (source.length > MAX_LENGTH) return { problem: `the pattern is longer than ${MAX_LENGTH} characters` };
  try {
    const compiled = RE2JS.compile(source);
    return (text) => compiled.test(text);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    return { problem: `not an RE2 pattern: ${error.message}` };
  }
}

/** A matcher for patterns that are only known when evaluated; keeps the last one. */
export function patternCache(): (source: string, part: Part) => Pattern {
  let last = "", pattern: Pattern | undefined;
  return (source, part) => {
    if (pattern !== undefined && source === last) return pattern;
    const compiled = compilePattern(source);
    // What is wrong with it would show a piece of the record.
    if (typeof compiled !== "function") throw failure(`the pattern is too long or none of RE2 in ${part}`);
    last = source;
    return pattern = compiled;
  };
}
