/**
 * From the text of a flow to its definition, or to everything that is wrong with it.
 *
 * V1 All problems at once, in the order of the document; nothing is opened, and nothing is thrown for a bad document.
 * V2 A flow comes out if and only if there is no problem; warnings hinder nothing.
 *
 * @module
 */
import { checkJsonText } from "../../workflow/json_document.ts";
import { type Problem, Problems, TOP } from "../../workflow/problem.ts";
import type { DocumentNode } from "../../workflow/tree.ts";
import { parseTree } from "../../workflow/yaml.ts";
import { canonicalForm, hashOf } from "./canonical.ts";
import { frozen } from "./convert.ts";
import { checkExpressions } from "./expressions.ts";
import { checkGraph } from "./graph.ts";
import { checkOutputSchemas } from "./output_schema.ts";
import { elementName, readFlow, withDurationTexts } from "./read.ts";
import type { Flow, FlowDefinition } from "./types.ts";

/** What reading a document gave. */
export interface ParsedFlow {
  /** There if and only if there are no problems. */
  readonly flow: Flow | undefined;
  /** All that is wrong. */
  readonly problems: readonly Problem[];
  /** What is allowed and probably not meant. */
  readonly warnings: readonly Problem[];
}

/** How a document is read. */
export interface ParseFlowOptions {
  /** Its name, for messages; the extension says what it is: `.yaml`, `.yml` or `.json`. */
  readonly file: string;
}

/** Reads and validates a flow. */
export function parseFlow(text: string, options: ParseFlowOptions): ParsedFlow {
  const problems = new Problems(options.file);
  const extension = /\.(ya?ml|json)$/i.exec(options.file)?.[1]?.toLowerCase();
  if (extension === undefined) {
    const message = "a document is a .yaml, .yml or .json file";
    problems.add(TOP, [], "unknown_extension", message, "name the file after what it holds");
    return { flow: undefined, problems: problems.list(asIs), warnings: [] };
  }
  const { root, problems: syntax } = parseTree(text);
  for (const { place, path, code, message, hint } of syntax) problems.add(place, path, code, message, hint);
  if (root === undefined && problems.size > 0) {
    return { flow: undefined, problems: problems.list(asIs), warnings: [] };
  }
  const isJson = extension === "json";
  if (root !== undefined && isJson) checkJsonText(text, root, problems);
  return flowOf(root !== undefined && isJson ? withDurationTexts(root) : root, problems);
}

/** Reads and validates the tree of a flow. */
export function flowOf(root: DocumentNode | undefined, problems: Problems): ParsedFlow {
  const warnings = new Problems(problems.file);
  for (const list of [problems, warnings]) list.nameElements((name, index) => elementName(root, name, index));
  const draft = readFlow(root, problems);
  if (draft === undefined) return { flow: undefined, problems: problems.list(asIs), warnings: [] };
  checkExpressions(draft, problems, warnings);
  checkOutputSchemas(draft, problems);
  const start = checkGraph(draft, problems);
  const found = { problems: problems.list(asIs), warnings: warnings.list(asIs) };
  if (problems.size > 0 || start === undefined) return { flow: undefined, ...found };
  const nodes = draft.nodes.map(({ node }) => node!);
  return { flow: finished({ ...draft.flow, start, nodes } as unknown as FlowDefinition), ...found };
}

function finished(definition: FlowDefinition): Flow {
  const canonical = canonicalForm(definition);
  return frozen({ name: definition.name, hash: hashOf(canonical), definition, canonical });
}

function asIs(text: string): string {
  return text;
}
