/**
 * Checking of the expressions in a document.
 *
 * @module
 */
import { compileExpression, ExpressionError, type Kind, nearest } from "../expr/mod.ts";
import type { Problems } from "./problem.ts";
import type { ExpressionSite } from "./reader.ts";
import { placeInScalar } from "./scalar_place.ts";

/** What is wrong with an expression, and what is known of its value. */
export interface ExpressionReport {
  readonly problems: readonly {
    readonly message: string;
    /** Index into the text. */
    readonly offset: number;
    readonly hint?: string | undefined;
  }[];
  /** Kind of the value as far as it is known: `any` where it is not. */
  readonly kind: string;
}

/** Checks one expression against the variables it may name. */
export type CheckExpression = (text: string, variables: Readonly<Record<string, Kind>>) => ExpressionReport;

const VARIABLES: Readonly<Record<string, Kind>> = {
  value: "any",
  key: "any",
  timestamp: "timestamp",
  headers: "map",
  source: "text",
  split: "text",
  offset: "any",
};

/** Variables of an expression in a workflow; `window` only where records are rows of one. */
export function streamVariables(rows: "windowed" | "plain"): Readonly<Record<string, Kind>> {
  return rows === "windowed" ? { ...VARIABLES, window: "map" } : VARIABLES;
}

/** The expressions of the streams. */
export const checkStreamExpression: CheckExpression = (text, variables) => {
  try {
    return { problems: [], kind: compileExpression(text, { dialect: "streams", variables }).kind };
  } catch (error) {
    if (!(error instanceof ExpressionError)) throw error;
    return { problems: error.problems, kind: "any" };
  }
};

/** Reports what is wrong with the expressions of a node whose records are what `variables` says. */
export function checkExpressions(
  sites: readonly ExpressionSite[],
  variables: Readonly<Record<string, Kind>>,
  check: CheckExpression,
  problems: Problems,
): void {
  for (const { node, path, text, gives } of sites) {
    const report = check(text, variables);
    for (const { message, offset, hint } of report.problems) {
      const place = placeInScalar(node, offset);
      const help = /\bwindow\b/.test(message) && !("window" in variables)
        ? "window is known behind a window only"
        : hint ?? functionMeant(message);
      problems.add(place, path, "invalid_expression", message, help);
    }
    if (
      report.problems.length === 0 && gives !== undefined && report.kind !== "any" && report.kind !== gives
    ) {
      const message = `the expression gives ${article(report.kind)}, expected ${article(gives)}`;
      problems.add(node.place, path, "wrong_kind", message);
    }
  }
}

/** Functions of the language by what they are called elsewhere. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  length: "size",
  count: "size",
  number: "double",
  float: "double",
  integer: "int",
  text: "string",
  boolean: "bool",
  date: "timestamp",
  includes: "contains",
  some: "exists",
  every: "all",
  regex: "matches",
  typeof: "type",
};

/** The function that somebody means who knows it, rightly or wrongly spelled, from another language. */
function functionMeant(message: string): string | undefined {
  const name = /^there is no (?:function|method) "(\w+)"$/.exec(message)?.[1];
  const other = name === undefined ? undefined : nearest(name, Object.keys(ELSEWHERE));
  return other === undefined ? undefined : `did you mean "${ELSEWHERE[other]!}"?`;
}

function article(kind: string): string {
  return kind === "null" ? kind : `${/^[aeiou]/.test(kind) ? "an" : "a"} ${kind}`;
}
