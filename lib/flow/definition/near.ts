/**
 * "Did you mean" for documents of any size.
 *
 * @module
 */
import { nearest } from "../../expr/mod.ts";
import { didYouMean } from "../../workflow/suggest.ts";

/** Most names that unknown ones of one document are compared with. */
const MOST_COMPARED = 200_000;

/** Finds names that were probably meant, until so many were compared that the rest of the document has to do without. */
export class Meant {
  #left = MOST_COMPARED;

  /** The nearest name, if it is near enough. */
  nearest(name: string, known: ReadonlySet<string>): string | undefined {
    return this.#mayCompare(known.size) ? nearest(name, known) : undefined;
  }

  /** The same as a hint, or what there is where that is not much. */
  hint(name: string, known: ReadonlySet<string>): string | undefined {
    return this.#mayCompare(known.size) ? didYouMean(name, known) : undefined;
  }

  #mayCompare(count: number): boolean {
    if (this.#left < count) return false;
    this.#left -= count;
    return true;
  }
}
