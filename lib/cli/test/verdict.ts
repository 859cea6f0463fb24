/**
 * What a test case came to, and how it is shown.
 *
 * @module
 */
import { stringifyJson } from "../../json.ts";
import type { TestCase, TestExpectation } from "../../workflow/mod.ts";
import { type Agree, firstOutOfOrder, sameJson, sameLetter, unmatchedRows } from "./compare.ts";

/** One thing that is not as expected. */
export interface CaseProblem {
  /** Sink or side output; absent where the run itself failed. */
  readonly output?: string;
  /** Line of the test document. */
  readonly line: number;
  readonly path: string;
  readonly message: string;
  readonly missing: readonly { readonly line: number; readonly value: unknown }[];
  readonly unexpected: readonly unknown[];
}

/** What came of a case: good where there are no problems. */
export interface Verdict {
  readonly file: string;
  readonly test: TestCase;
  readonly problems: readonly CaseProblem[];
}

/** The problem of a run that failed. */
export function failedRun({ place, path }: TestCase, message: string): CaseProblem {
  return { line: place.line, path, message: `the run failed: ${message}`, missing: [], unexpected: [] };
}

/** Compares what came out at one place. */
export function judge(expectation: TestExpectation, actual: readonly unknown[]): CaseProblem | undefined {
  const { name, mode, rows, place, path } = expectation;
  const agree: Agree = name === "dlq" ? sameLetter : sameJson;
  const expected = rows.map(({ value }) => value);
  const unmatched = unmatchedRows(expected, actual, agree);
  const missing = unmatched.missing.map((i) => ({ line: rows[i]!.place.line, value: expected[i] }));
  const unexpected = mode === "contains" ? [] : unmatched.unexpected.map((i) => actual[i]);
  const common = { output: name, line: place.line, path, missing, unexpected };
  if (missing.length > 0 || unexpected.length > 0) {
    const wanted = mode === "contains" ? `expected among them ${rows.length}` : `expected ${rows.length}`;
    return { ...common, message: `${actual.length === 1 ? "1 row" : `${actual.length} rows`}, ${wanted}` };
  }
  const at = mode === "inOrder" ? firstOutOfOrder(expected, actual, agree) : undefined;
  if (at === undefined) return undefined;
  const message = `the rows are those expected, in another order: row ${at + 1} should be ${
    shown(expected[at])
  }, is ${shown(actual[at])}`;
  return { ...common, line: rows[at]!.place.line, message };
}

/** Most rows shown of one kind. */
const MOST_ROWS = 10;
const MOST_CHARACTERS = 500;

/** A verdict for people. */
export function verdictText({ file, test, problems }: Verdict): string {
  if (problems.length === 0) return `  ok      ${test.name}\n`;
  const lines = [`  FAILED  ${test.name}`];
  for (const { output, line, message, missing, unexpected } of problems) {
    lines.push(`    ${file}:${line}: ${output === undefined ? "" : `${output}: `}${message}`);
    lines.push(
      ...listed(
        missing.map(({ line: at, value }) => `      - ${shown(value)}   (line ${at}) missing`),
        "missing",
      ),
    );
    lines.push(...listed(unexpected.map((value) => `      + ${shown(value)}   unexpected`), "unexpected"));
  }
  return lines.map((line) => `${line}\n`).join("");
}

function listed(lines: readonly string[], what: string): string[] {
  const rest = lines.length - MOST_ROWS;
  return rest <= 0 ? [...lines] : [...lines.slice(0, MOST_ROWS), `        … and ${rest} more ${what}`];
}

function shown(value: unknown): string {
  const text = stringifyJson(value);
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}

/** A verdict as one line of JSON. */
export function verdictJson({ file, test, problems }: Verdict): string {
  return `${
    stringifyJson({ file, case: test.name, line: test.place.line, ok: problems.length === 0, problems })
  }\n`;
}
