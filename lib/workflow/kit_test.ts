/**
 * What the tests of documents share.
 *
 * @module
 */
import assert from "node:assert/strict";
import { problemText } from "./problem.ts";
import type { WorkflowSpec } from "./spec.ts";
import { type ParsedWorkflow, parseWorkflow } from "./validate.ts";

/** Reads a document with an environment of its own. */
export function parsed(
  text: string,
  options: { file?: string; env?: Record<string, string>; allowUnset?: boolean } = {},
): ParsedWorkflow {
  const { file = "flow.yaml", env = {}, allowUnset = false } = options;
  const resolveSecret = (name: string) => Object.hasOwn(env, name) ? env[name] : undefined;
  return parseWorkflow(text, { file, resolveSecret, allowUnset });
}

/** Problems of a document as `line path code`. */
export function problemsOf(text: string, options: Parameters<typeof parsed>[1] = {}): string[] {
  return parsed(text, options).problems.map(({ line, path, code }) => `${line} ${path} ${code}`);
}

/** The spec of a document that has to be right. */
export function specOf(text: string, options: Parameters<typeof parsed>[1] = {}): WorkflowSpec {
  const { spec, problems } = parsed(text, options);
  assert.ok(spec, problems.map(problemText).join("\n"));
  return spec;
}

/** A document with a slice source and stdout, and these lines as its pipeline, the first in line 4. */
export function pipeline(...lines: string[]): string {
  return `name: t
source: { type: slice, records: [ { key: a, value: '{"a":1}' } ], timestamp: { field: at } }
pipeline:
${lines.join("\n")}
sink: { type: stdout }
`;
}
