/**
 * Reading of a whole document into its nodes, each by its description, before anything is wired.
 *
 * @module
 */
import { ENV, NAME } from "./components/mod.ts";
import type { EnvBlock } from "./blocks.ts";
import { type AnyFields, types } from "./field_type.ts";
import { type DraftNode, readNode } from "./node.ts";
import { type Path, type Place, TOP } from "./problem.ts";
import { blockKeys } from "./node.ts";
import { readField, readFields } from "./read_field.ts";
import { childOf, misshapen, type ReadContext } from "./reader.ts";
import { didYouMean } from "./suggest.ts";
import type { DocumentNode, MapEntry, MapNode } from "./tree.ts";

/** A document as it was read; what could not be read is absent. */
export interface Draft {
  readonly root: MapNode;
  readonly name: string | undefined;
  readonly env: EnvBlock | undefined;
  readonly sources: readonly DraftNode[];
  /** By position in the document; `undefined` for an element that is no block. */
  readonly operators: readonly (DraftNode | undefined)[];
  readonly sinks: readonly DraftNode[];
  readonly dlq: DraftNode | undefined;
}

/** Fields at the top that are no nodes. */
export const TOP_FIELDS: AnyFields = {
  name: {
    type: types.matching(
      /^[A-Za-z0-9][A-Za-z0-9_.-]*$/,
      "letters, digits, _ . and -, the first a letter or digit",
    ),
    summary: "Name of the workflow; its state and checkpoints are kept under it",
    required: true,
    example: "order-totals",
  },
  version: {
    type: types.oneOfWith(["1"], { same: { "": "1" } }),
    summary: "Version of the format",
    default: "1",
  },
  env: ENV,
};

/** Keys at the top that hold nodes, with their summaries. */
export const NODE_KEYS: Readonly<Record<string, string>> = {
  source: "Where records enter",
  sources: "Several sources by name, instead of source",
  pipeline: "Operators; each reads the one before it unless from says otherwise",
  sink: "Where records leave",
  sinks: "Several sinks, instead of sink",
  dlq: "Where records go that failed under onError: dlq",
};

/** Reads all of a document; problems go to the context. */
export function readDocument(root: DocumentNode | undefined, context: ReadContext): Draft | undefined {
  if (root === undefined || root.kind !== "map") {
    const empty = root === undefined || (root.kind === "scalar" && root.value === null);
    const message = empty
      ? "the document is empty"
      : "a workflow is a block with name, source, pipeline and sink";
    context.problems.add(root?.place ?? TOP, [], empty ? "empty" : "wrong_type", message);
    return undefined;
  }
  if (isTests(root)) {
    const message = "this document holds tests, and not a workflow";
    context.problems.add(
      TOP,
      [],
      "not_a_workflow",
      message,
      `mailer test ${context.problems.file} runs them`,
    );
    return undefined;
  }
  const top = readTop(root, context);
  return {
    root,
    name: top.name as string | undefined,
    env: top.env as EnvBlock | undefined,
    sources: readSources(root, context),
    operators: readPipeline(root, context),
    sinks: readSinks(root, context),
    dlq: readSingle(root, "dlq", "dlq", context),
  };
}

/** Whether nothing of a workflow is there, and something of its tests. */
function isTests(root: MapNode): boolean {
  if (root.entries.some(({ key }) => key === "name" || Object.hasOwn(NODE_KEYS, key))) return false;
  return childOf(root, "cases") !== undefined || childOf(root, "workflow")?.kind === "scalar";
}

function readTop(root: MapNode, context: ReadContext): Readonly<Record<string, unknown>> {
  const entries = root.entries.filter(({ key, value }) => {
    if (Object.hasOwn(NODE_KEYS, key)) return false;
    return !(key === "env" && value.kind === "scalar" && value.value === null);
  });
  const known = [...Object.keys(TOP_FIELDS), ...Object.keys(NODE_KEYS)];
  const site = { node: root, path: [], at: TOP, secret: false };
  return readFields(TOP_FIELDS, { ...root, entries }, site, context, (key) => {
    if (key === "kind") return "a document with kind is a job manifest of another program, not a workflow";
    if (blockKeys(ENV.type).has(key)) return "it belongs under env:";
    return didYouMean(key, known.filter((name) => childOf(root, name) === undefined));
  }).values;
}

function entryOf(root: MapNode, key: string): MapEntry | undefined {
  return root.entries.find((entry) => entry.key === key);
}

function readSingle(
  root: MapNode,
  key: string,
  role: DraftNode["role"],
  context: ReadContext,
): DraftNode | undefined {
  const entry = entryOf(root, key);
  return entry && readNode(entry.value, { role, path: [key], at: entry.place }, context);
}

/** Elements of a list at the top; an empty one has none. */
function elementsOf(entry: MapEntry, context: ReadContext): readonly DocumentNode[] {
  const { key, place, value } = entry;
  if (value.kind === "list") return value.items;
  if (key === "pipeline" && value.kind === "scalar" && value.value === null) return [];
  misshapen({ node: value, path: [key], at: place, secret: false }, context, "a list");
  return [];
}

/** One of two keys; reports both and neither. */
function either(root: MapNode, one: string, several: string, context: ReadContext): MapEntry | undefined {
  const [single, list] = [entryOf(root, one), entryOf(root, several)];
  if (single === undefined && list === undefined) {
    context.problems.add(TOP, [one], "missing", `needs ${one} or ${several}`);
  } else if (single !== undefined && list !== undefined) {
    const later = root.entries.indexOf(single) > root.entries.indexOf(list) ? single : list;
    const message = `"${later.key}" cannot stand beside "${later === single ? several : one}"`;
    context.problems.add(later.place, [later.key], "excluded", message);
  }
  return list ?? single;
}

function readSources(root: MapNode, context: ReadContext): readonly DraftNode[] {
  const entry = either(root, "source", "sources", context);
  if (entry === undefined) return [];
  if (entry.key === "source") return [readSingle(root, "source", "source", context)].filter(isThere);
  const elements = elementsOf(entry, context);
  if (entry.value.kind === "list" && elements.length === 0) noElements(entry, context);
  return elements.map((node, i) => readNamedSource(node, ["sources", i], context)).filter(isThere);
}

function readNamedSource(node: DocumentNode, path: Path, context: ReadContext): DraftNode | undefined {
  const site = { node, path, at: node.place, secret: false };
  if (node.kind !== "map") return misshapen(site, context, "a block with name and source");
  for (const { key, place } of node.entries) {
    if (key === "name" || key === "source") continue;
    const hint = key === "type" || Object.hasOwn(TOP_FIELDS, key) ? "it belongs under source:" : undefined;
    const near = hint ??
      didYouMean(key, ["name", "source"].filter((name) => childOf(node, name) === undefined));
    context.problems.add(place, [...path, key], "unknown_key", `"${key}" is not known here`, near);
  }
  const missing = (key: string): undefined => {
    context.problems.add(node.place, [...path, key], "missing", `needs ${key}`);
  };
  const nameNode = childOf(node, "name"), source = entryOf(node, "source");
  const named = nameNode === undefined
    ? missing("name")
    : readField(NAME, { ...site, node: nameNode, path: [...path, "name"] }, context) as string | undefined;
  if (source === undefined) return missing("source");
  const draft = readNode(source.value, {
    role: "source",
    path: [...path, "source"],
    at: source.place,
  }, context);
  return draft && { ...draft, place: node.place, id: named };
}

function readPipeline(root: MapNode, context: ReadContext): readonly (DraftNode | undefined)[] {
  const entry = entryOf(root, "pipeline");
  if (entry === undefined) return [];
  return elementsOf(entry, context).map((node, i) => {
    return readNode(node, { role: "operator", path: ["pipeline", i], at: node.place }, context);
  });
}

function readSinks(root: MapNode, context: ReadContext): readonly DraftNode[] {
  const entry = either(root, "sink", "sinks", context);
  if (entry === undefined) return [];
  if (entry.key === "sink") return [readSingle(root, "sink", "sink", context)].filter(isThere);
  const elements = elementsOf(entry, context);
  if (entry.value.kind === "list" && elements.length === 0) noElements(entry, context);
  return elements.map((node, i) => {
    return readNode(node, { role: "sink", path: ["sinks", i], at: node.place }, context);
  }).filter(isThere);
}

function noElements({ key, value }: MapEntry, context: ReadContext): void {
  context.problems.add(value.place, [key], "too_few", "expected at least one element, found none");
}

function isThere<T>(value: T | undefined): value is T {
  return value !== undefined;
}

/** Place of a node's id, or of the node where it has none of its own. */
export function idPlace({ map, place, path, role }: DraftNode, root: MapNode): { place: Place; path: Path } {
  if (role === "source" && path[0] === "sources") {
    const outer = path.slice(0, -1);
    const list = childOf(root, "sources");
    const element = list?.kind === "list" ? list.items[Number(path[1])] : undefined;
    const name = element?.kind === "map" ? childOf(element, "name") : undefined;
    return { place: name?.place ?? place, path: [...outer, "name"] };
  }
  return { place: childOf(map, "id")?.place ?? place, path: [...path, "id"] };
}
