/**
 * The comparators of `filter`.
 *
 * C1 Of a missing field every comparison of values is false, `not_equals` too; null is present.
 * C2 Numbers compare by value, exactly, with numbers only; texts with texts only, by code units.
 * C3 A present value of another kind equals nothing: `not_equals` is true and every other comparison false.
 * C4 `contains` is a part of a text, or an element of a list.
 *
 * @module
 */
import { compareNumbers, isNumeric } from "../../numeric.ts";
import type { Comparator } from "../blocks.ts";

/** Whether a field's value (undefined = missing) passes. */
export type Test = (found: unknown) => boolean;

/** The test of a comparator against a constant. */
export function comparatorTest(operator: Comparator, constant: unknown): Test {
  switch (operator) {
    case "exists":
      return (found) => found !== undefined;
    case "not_exists":
      return (found) => found === undefined;
    case "equals":
      return (found) => equal(found, constant);
    case "not_equals":
      return (found) => found !== undefined && !equal(found, constant);
    case "greater_than":
      return ordered(constant, (sign) => sign > 0);
    case "greater_than_or_equal":
      return ordered(constant, (sign) => sign >= 0);
    case "less_than":
      return ordered(constant, (sign) => sign < 0);
    case "less_than_or_equal":
      return ordered(constant, (sign) => sign <= 0);
    case "contains":
      return (found) => {
        if (Array.isArray(found)) return found.some((element) => equal(element, constant));
        return typeof found === "string" && typeof constant === "string" && found.includes(constant);
      };
  }
}

function equal(found: unknown, constant: unknown): boolean {
  if (isNumeric(found)) return isNumeric(constant) && compareNumbers(found, constant) === 0;
  if (typeof found === "string" || typeof found === "boolean") return found === constant;
  return false; // null, lists and objects equal nothing
}

function ordered(constant: unknown, accepts: (sign: number) => boolean): Test {
  return (found) => {
    if (isNumeric(found)) return isNumeric(constant) && accepts(compareNumbers(found, constant));
    if (typeof found !== "string" || typeof constant !== "string") return false;
    return accepts(found < constant ? -1 : found > constant ? 1 : 0);
  };
}
