/**
 * Reading of a flow's document by its descriptions: fields, nodes and settings, before they are seen together.
 *
 * R1 Every node is read on its own: what is wrong with one hides nothing of the others.
 *
 * @module
 */
import type { AnyFields } from "../../workflow/field_type.ts";
import { type Path, type Place, type Problems, TOP } from "../../workflow/problem.ts";
import { readField, readFields } from "../../workflow/read_field.ts";
import { childOf, kindFound, misshapen, type ReadContext } from "../../workflow/reader.ts";
import { applyRule } from "../../workflow/rules.ts";
import { Secrets } from "../../workflow/secrets.ts";
import { didYouMean } from "../../workflow/suggest.ts";
import type { DocumentNode, MapNode } from "../../workflow/tree.ts";
import { convertedFields, nodeOf } from "./convert.ts";
import { BUILT_IN_KINDS, builtInKind, TOKEN_PATTERN } from "./fields.ts";
import { FLOW, FLOW_FIELDS } from "./flow_fields.ts";
import { NODE, NODE_FIELDS, NODE_KINDS, nodeKind, type Values } from "./node_kinds.ts";
import type { FlowNode, NodeType } from "./types.ts";

/** A document as it was read; what could not be read is absent. */
export interface Draft {
  readonly root: MapNode;
  /** Fields of the flow, named and valued as in a definition. */
  readonly flow: Values;
  /** Whether all of them could be read. */
  readonly flowIsRight: boolean;
  /** By position in the document; `node` is absent where something is wrong with it. */
  readonly nodes: readonly DraftNode[];
}

/** A node of a document. */
export interface DraftNode {
  readonly path: Path;
  readonly place: Place;
  readonly map: MapNode | undefined;
  /** As written, if it is a text. */
  readonly id: string | undefined;
  readonly type: NodeType | undefined;
  readonly node: FlowNode | undefined;
}

const { nodes: _nodes, ...OTHER_FIELDS } = FLOW_FIELDS;

/** Reads a document's tree. `undefined` where it is no flow at all. */
export function readFlow(root: DocumentNode | undefined, problems: Problems): Draft | undefined {
  if (root === undefined || root.kind !== "map") {
    const isEmpty = root === undefined || (root.kind === "scalar" && root.value === null);
    const message = isEmpty
      ? "the document is empty"
      : `a flow is a block with name and nodes, found ${kindFound(root)}`;
    problems.add(root?.place ?? TOP, [], isEmpty ? "empty" : "wrong_type", message);
    return undefined;
  }
  if (isSomethingElse(root, problems)) return undefined;
  const context = contextOf(problems);
  const before = problems.size;
  const flow = readTop(root, context);
  const flowIsRight = problems.size === before;
  return { root, flow, flowIsRight, nodes: readNodes(root, context) };
}

function contextOf(problems: Problems): ReadContext {
  return {
    problems,
    secrets: new Secrets(),
    expressions: [],
    files: [],
    uncarried: [],
    allowUnset: false,
  };
}

/** Reports a document that is none of a flow: tests, or a workflow. */
function isSomethingElse(root: MapNode, problems: Problems): boolean {
  if (childOf(root, "nodes") !== undefined) return false;
  const has = (key: string) => childOf(root, key) !== undefined;
  if (has("cases") && has("flow")) {
    problems.add(TOP, [], "not_a_flow", "this document holds tests, and not a flow");
    return true;
  }
  if (has("pipeline") || ((has("source") || has("sources")) && (has("sink") || has("sinks")))) {
    const hint = `mailer validate ${problems.file} reads it`;
    problems.add(TOP, [], "not_a_flow", "this document is a workflow of streams, and not a flow", hint);
    return true;
  }
  return false;
}

function readTop(root: MapNode, context: ReadContext): Values {
  const { problems } = context;
  const entries = root.entries.filter(({ key }) => key !== "nodes").map((entry) => {
    // Who leaves the quotes away means the same.
    const isOne = entry.key === "version" && entry.value.kind === "scalar" && entry.value.value === 1;
    return isOne ? { ...entry, value: { ...entry.value, value: "1" } as DocumentNode } : entry;
  });
  const site = { node: root, path: [], at: TOP, secret: false };
  const map = { ...root, entries };
  const read = readFields(OTHER_FIELDS, map, site, context, (key) => {
    if (ofNodes.has(key)) return "it belongs to a node, under nodes:";
    return didYouMean(key, Object.keys(FLOW_FIELDS).filter((name) => childOf(root, name) === undefined));
  });
  if (FLOW.kind === "block") {
    for (const rule of FLOW.rules ?? []) applyRule(rule, read, map, site, context);
  }
  checkKeys(root, ["channels", "budget", "search_attributes"], problems);
  const expire = root.entries.find(({ key }) => key === "on_expire");
  if (expire !== undefined && !read.present.has("retention")) {
    problems.add(
      expire.place,
      ["on_expire"],
      "excluded",
      "on_expire does not fit: there is no retention",
      "add one",
    );
  }
  const flow = convertedFields(OTHER_FIELDS, read.values);
  return {
    channels: {},
    budget: {},
    searchAttributes: {},
    triggers: [],
    ...flow,
    ...(flow.maxSteps === 0 ? { maxSteps: FLOW_FIELDS.max_steps.default } : {}),
  };
}

const ofNodes: ReadonlySet<string> = new Set(
  NODE_KINDS.flatMap(({ fields }) => ["type", ...Object.keys(fields)]),
);

/** Keys of some blocks are names. */
function checkKeys(root: MapNode, blocks: readonly string[], problems: Problems): void {
  for (const block of blocks) {
    const node = childOf(root, block);
    if (node?.kind !== "map") continue;
    for (const { key, place } of node.entries) {
      if (TOKEN_PATTERN.test(key)) continue;
      const message = "a name has up to 128 letters, digits, _ and -";
      problems.add(place, [block, key], "invalid_name", message);
    }
  }
}

function readNodes(root: MapNode, context: ReadContext): readonly DraftNode[] {
  const entry = root.entries.find(({ key }) => key === "nodes");
  if (entry === undefined) {
    context.problems.add(TOP, ["nodes"], "missing", "needs nodes", "a flow has at least one node");
    return [];
  }
  const { value, place } = entry;
  if (value.kind !== "list") {
    const hint = value.kind === "map" ? "write each node as - id: …" : undefined;
    misshapen({ node: value, path: ["nodes"], at: place, secret: false }, context, "a list of nodes", hint);
    return [];
  }
  if (value.items.length === 0) {
    context.problems.add(value.place, ["nodes"], "too_few", "expected at least one node, found none");
  }
  return value.items.map((item, i) => readNode(item, ["nodes", i], context));
}

function readNode(item: DocumentNode, path: Path, context: ReadContext): DraftNode {
  const map = item.kind === "map" ? item : undefined;
  const id = map && textAt(map, "id");
  const type = nodeKind(map && textAt(map, "type"))?.type;
  const site = { node: item, path, at: item.place, secret: false };
  const place = (map && childOf(map, "id")?.place) ?? item.place;
  const draft = { path, place, map, id, type };
  if (map === undefined) {
    return { ...draft, node: misshapen(site, context, "a node: a block with id and type") };
  }
  const { problems } = context, before = problems.size;
  const values = readField(NODE, site, context) as Values | undefined;
  const settings = type === undefined ? undefined : readSettings(map, path, context);
  if (values === undefined || type === undefined || problems.size > before) {
    return { ...draft, node: undefined };
  }
  const { fields } = nodeKind(type)!;
  return { ...draft, node: nodeOf(type, { ...NODE_FIELDS, ...fields }, values, settings) };
}

/** The `with` of a node, by its kind. */
function readSettings(map: MapNode, path: Path, context: ReadContext): Values | undefined {
  const entry = map.entries.find(({ key }) => key === "with");
  const kind = textAt(map, "kind");
  if (entry === undefined || kind === undefined || entry.value.kind !== "map") return undefined;
  const inside = [...path, "with"];
  const known = builtInKind(kind);
  if (known === undefined) {
    const names = BUILT_IN_KINDS.map((one) => one.kind);
    const message = `with does not fit: ${JSON.stringify(kind)} is no built-in kind`;
    const near = didYouMean(kind, names);
    const hint = near?.startsWith("did") === true ? near : "data for workers of your own goes into meta";
    context.problems.add(entry.place, inside, "excluded", message, hint);
    return undefined;
  }
  const site = { node: entry.value, path: inside, at: entry.place, secret: false };
  const values = readField(known.settings, site, context) as Values | undefined;
  if (values === undefined) return undefined;
  return settingsOf(kind, known.settings.fields, values);
}

function settingsOf(kind: string, fields: AnyFields, values: Values): Values {
  const settings = convertedFields(fields, values);
  return kind === "http" ? { headers: {}, expect: [], ...settings } : settings;
}

/** The text under a key. */
export function textAt(map: MapNode, key: string): string | undefined {
  const node = childOf(map, key);
  return node?.kind === "scalar" && typeof node.value === "string" ? node.value : undefined;
}

/** JSON documents may give durations as whole nanoseconds: a tree in which these are texts. */
export function withDurationTexts(root: DocumentNode): DocumentNode {
  return root.kind === "map" ? inBlock(root, FLOW_FIELDS) : root;
}

function inBlock(map: MapNode, fields: AnyFields): MapNode {
  const entries = map.entries.map((entry) => {
    const field = Object.hasOwn(fields, entry.key) ? fields[entry.key] : undefined;
    return field === undefined ? entry : { ...entry, value: inValue(entry.value, field.type) };
  });
  return { ...map, entries };
}

function inValue(node: DocumentNode, type: AnyFields[string]["type"]): DocumentNode {
  switch (type.kind) {
    case "duration":
      if (node.kind !== "scalar" || (typeof node.value !== "number" && typeof node.value !== "bigint")) {
        return node;
      }
      return Number.isInteger(Number(node.value)) ? { ...node, value: `${node.value}ns` } : node;
    case "list":
      return node.kind === "list"
        ? { ...node, items: node.items.map((item) => inValue(item, type.of)) }
        : node;
    case "block":
      return node.kind === "map" ? inBlock(node, type.fields) : node;
    case "variants": {
      const kind = node.kind === "map" ? nodeKind(textAt(node, "type")) : undefined;
      return node.kind === "map" && kind !== undefined ? inBlock(node, kind.fields) : node;
    }
    default:
      return node;
  }
}

/** Name of an element of a list, for messages. */
export function elementName(root: DocumentNode | undefined, list: string, index: number): string | undefined {
  const node = root?.kind === "map" ? childOf(root, list) : undefined;
  const element = node?.kind === "list" ? node.items[index] : undefined;
  const id = element?.kind === "map" ? textAt(element, "id") : undefined;
  return id === undefined || id.length > 64 ? undefined : id;
}
