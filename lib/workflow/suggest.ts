/**
 * Hints for names that are not known.
 *
 * @module
 */
import { nearest } from "../expr/mod.ts";

/** Most names a hint lists. */
const LISTED = 12;

/** `did you mean "path"?`, or what there is where that is not much, or nothing. */
export function didYouMean(word: string, candidates: Iterable<string>): string | undefined {
  const all = [...candidates];
  const near = word.length > 100 ? undefined : nearest(word, all);
  if (near !== undefined) return `did you mean "${near}"?`;
  return all.length > 0 && all.length <= LISTED ? `one of: ${all.join(", ")}` : undefined;
}
