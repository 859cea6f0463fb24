/**
 * From the text of a workflow to its spec, or to everything that is wrong with it.
 *
 * V1 All problems at once, in document order; nothing is opened or created, and nothing is thrown for a bad document.
 * V2 A spec comes out if and only if there is no problem.
 * V3 No message and no hint holds a value of a secret field.
 *
 * @module
 */
import { assemble } from "./assemble.ts";
import { type Draft, readDocument } from "./document.ts";
import {
  type CheckExpression,
  checkExpressions,
  checkStreamExpression,
  streamVariables,
} from "./expressions.ts";
import { checkFiles, type ReadFile } from "./files.ts";
import { checkExactlyOnce } from "./guarantee.ts";
import { interpolate, type ResolveSecret } from "./interpolate.ts";
import { checkJsonText } from "./json_document.ts";
import { checkOrder, checkResultNames, flowInto, type Flows } from "./ordering.ts";
import { checkPolicies } from "./policies.ts";
import { type Problem, Problems, TOP } from "./problem.ts";
import { childOf, type ReadContext } from "./reader.ts";
import { maskOf, Secrets } from "./secrets.ts";
import type { WorkflowSpec } from "./spec.ts";
import { wire, type Wiring } from "./wiring.ts";
import type { DocumentNode } from "./tree.ts";
import { parseTree } from "./yaml.ts";

/** How a document is read. */
export interface ParseOptions {
  /** Its name, for messages; the extension says what it is: `.yaml`, `.yml` or `.json`. */
  readonly file: string;
  /** Value of a `${NAME}`. */
  readonly resolveSecret: ResolveSecret;
  /** Lets names without a value pass; such a document can be looked at, but not run. */
  readonly allowUnset?: boolean;
  /** Reads a file named by `schema` or `ref`, relative to the document; without it they are not looked at. */
  readonly readFile?: ReadFile;
  /** Checks expressions; those of the streams unless given. */
  readonly checkExpression?: CheckExpression;
}

/** What reading a document gave. */
export interface ParsedWorkflow {
  /** There if and only if there are no problems. */
  readonly spec: WorkflowSpec | undefined;
  readonly problems: readonly Problem[];
  /** Values of secret fields, to be masked wherever something of the workflow is shown. */
  readonly secrets: readonly string[];
  /** The document itself, with the places of all keys and values and its `${…}` resolved: it holds secrets. */
  readonly tree: DocumentNode | undefined;
}

/** A tree read under the rules all documents share, with the places problems go to. */
export interface OpenedDocument {
  readonly tree: DocumentNode | undefined;
  readonly problems: Problems;
}

/** Reads the text of any document: its extension, its syntax and its `${…}`. */
export function openDocument(text: string, options: ParseOptions): OpenedDocument {
  const problems = new Problems(options.file);
  const extension = /\.(ya?ml|json)$/i.exec(options.file)?.[1]?.toLowerCase();
  if (extension === undefined) {
    const message = "a document is a .yaml, .yml or .json file";
    problems.add(TOP, [], "unknown_extension", message, "name the file after what it holds");
    return { tree: undefined, problems };
  }
  const { root, problems: syntax } = parseTree(text);
  for (const { place, path, code, message, hint } of syntax) problems.add(place, path, code, message, hint);
  if (root === undefined) return { tree: undefined, problems };
  if (extension === "json") checkJsonText(text, root, problems);
  const { resolveSecret, allowUnset = false } = options;
  return { tree: interpolate(root, { resolveSecret, allowUnset, problems }), problems };
}

/** What a document is read with, empty as yet. */
export function readContext(problems: Problems, { allowUnset = false }: ParseOptions): ReadContext {
  return { problems, secrets: new Secrets(), expressions: [], files: [], uncarried: [], allowUnset };
}

/** Reads and validates a workflow. */
export function parseWorkflow(text: string, options: ParseOptions): ParsedWorkflow {
  const { tree, problems } = openDocument(text, options);
  const context = readContext(problems, options);
  const idOf = (list: string, index: number) => elementId(tree, list, index);
  problems.nameElements(idOf);
  const isRead = tree !== undefined || problems.size === 0;
  const draft = isRead ? readDocument(tree, context) : undefined;
  const graph = draft && check(draft, context, options);
  const secrets = context.secrets.list();
  // Values of secret fields are never quoted, so this is for texts that hold one by another way; masking very short
  // ones would garble places and words instead.
  const found = problems.list(maskOf(secrets.filter((secret) => secret.length >= 4)));
  const spec = found.length > 0 || draft === undefined || graph === undefined
    ? undefined
    : assemble({ file: options.file, draft, ...graph, context, idOf });
  return { spec, problems: found, secrets, tree };
}

/** Everything that concerns more than one node. */
function check(draft: Draft, context: ReadContext, options: ParseOptions): { wiring: Wiring; flows: Flows } {
  const { problems } = context;
  const wiring = wire(draft, problems);
  const flows = checkOrder(wiring, problems);
  checkResultNames(wiring, flows, problems);
  checkPolicies(draft, problems);
  checkExactlyOnce(draft, problems);
  for (const node of [...wiring.sources, ...wiring.operators, ...wiring.sinks]) {
    const rows = node.draft.role === "operator" && flowInto(node, flows).windowed ? "windowed" : "plain";
    const checker = options.checkExpression ?? checkStreamExpression;
    checkExpressions(node.draft.expressions, streamVariables(rows), checker, problems);
  }
  if (options.readFile !== undefined) checkFiles(context.files, options.readFile, problems);
  return { wiring, flows };
}

/** Id of an element of a list at the top, as written. */
function elementId(tree: DocumentNode | undefined, list: string, index: number): string | undefined {
  const node = tree?.kind === "map" ? childOf(tree, list) : undefined;
  const element = node?.kind === "list" ? node.items[index] : undefined;
  if (element?.kind !== "map") return undefined;
  const id = childOf(element, "id") ?? childOf(element, "name");
  const text = id?.kind === "scalar" && typeof id.value === "string" ? id.value : undefined;
  return text === undefined || text.length > 64 ? undefined : text;
}
