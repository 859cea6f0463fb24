/**
 * Comparing rows with those expected.
 *
 * E1 Values are compared as JSON: numbers by exact decimal value, keys of objects in any order.
 * E2 Dead letters are compared by the fields that are given, at every depth.
 * E3 Rows are matched so that as many as can be find a partner, whichever way round they come.
 *
 * @module
 */
import { codeOf } from "../../errors.ts";
import { parseJson } from "../../json.ts";
import { isNumeric } from "../../numeric.ts";
import { canonicalText, sameJson as isSameJson } from "../../same_json.ts";

/** Whether an expected row and an actual one agree. */
export type Agree = (expected: unknown, actual: unknown) => boolean;

/** Equal as JSON. */
export const sameJson: Agree = isSameJson;

/** Whether a dead letter has the fields that are expected. Its `value`, a text, may be expected as what its JSON says. */
export const sameLetter: Agree = (expected, actual) => {
  if (!isObject(expected) || !isObject(actual)) return sameJson(expected, actual);
  return Object.keys(expected).every((key) =>
    Object.hasOwn(actual, key) &&
    (hasFields(expected[key], actual[key]) || (key === "value" && isTextOf(actual[key], expected[key])))
  );
};

function hasFields(expected: unknown, actual: unknown): boolean {
  if (!isObject(expected) || !isObject(actual)) return sameJson(expected, actual);
  return Object.keys(expected).every((key) =>
    Object.hasOwn(actual, key) && hasFields(expected[key], actual[key])
  );
}

function isTextOf(text: unknown, expected: unknown): boolean {
  if (typeof text !== "string" || typeof expected === "string") return false;
  try {
    return sameJson(expected, parseJson(text));
  } catch (error) {
    if (codeOf(error) !== "not_json") throw error;
    return false;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isNumeric(value);
}

/** Rows without a partner: indexes into both lists. */
export interface Unmatched {
  readonly missing: readonly number[];
  readonly unexpected: readonly number[];
}

/** Matches rows, in any order. */
export function unmatchedRows(
  expected: readonly unknown[],
  actual: readonly unknown[],
  agree: Agree,
): Unmatched {
  const partners = agree === sameJson
    ? equalPartners(expected, actual)
    : bestPartners(expected, actual, agree);
  const taken = new Set(partners.values());
  return {
    missing: [...expected.keys()].filter((i) => !partners.has(i)),
    unexpected: [...actual.keys()].filter((i) => !taken.has(i)),
  };
}

/** The actual row of each expected one, by their indexes. Equality is transitive, so the first that fits will do. */
function equalPartners(expected: readonly unknown[], actual: readonly unknown[]): Map<number, number> {
  const free = new Map<string, number[]>();
  for (const [i, row] of actual.entries()) {
    const text = canonicalText(row), same = free.get(text);
    if (same === undefined) free.set(text, [i]);
    else same.push(i);
  }
  const partners = new Map<number, number>();
  for (const [i, row] of expected.entries()) {
    const found = free.get(canonicalText(row))?.shift();
    if (found !== undefined) partners.set(i, found);
  }
  return partners;
}

/** The same where one row may fit several: a greatest matching, by augmenting paths. */
function bestPartners(
  expected: readonly unknown[],
  actual: readonly unknown[],
  agree: Agree,
): Map<number, number> {
  const fits = expected.map((row) => [...actual.keys()].filter((i) => agree(row, actual[i])));
  const owner = new Map<number, number>();
  const place = (row: number, tried: Set<number>): boolean => {
    for (const candidate of fits[row]!) {
      if (tried.has(candidate)) continue;
      tried.add(candidate);
      const before = owner.get(candidate);
      if (before === undefined || place(before, tried)) {
        owner.set(candidate, row);
        return true;
      }
    }
    return false;
  };
  for (const row of expected.keys()) place(row, new Set());
  return new Map([...owner].map(([candidate, row]) => [row, candidate]));
}

/** Index of the first row that is not the one expected there; undefined where all are, as far as there are rows. */
export function firstOutOfOrder(
  expected: readonly unknown[],
  actual: readonly unknown[],
  agree: Agree,
): number | undefined {
  const index = expected.findIndex((row, i) => i < actual.length && !agree(row, actual[i]));
  return index === -1 ? undefined : index;
}
