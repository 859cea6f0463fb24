/**
 * Reading of one node of a document: a source, an operator, a sink or the dlq.
 *
 * @module
 */
import type { Component, ComponentKind } from "./component.ts";
import {
  COMPONENTS,
  componentsOf,
  DLQ_FIELDS,
  DLQ_SINKS,
  OPERATOR_FIELDS,
  SINK_FIELDS,
  SOURCE_FIELDS,
} from "./components/mod.ts";
import type { AnyFields, Field, FieldType } from "./field_type.ts";
import type { Path, Place } from "./problem.ts";
import { type Elsewhere, readFields, reportOpenChoice } from "./read_field.ts";
import { childOf, type ExpressionSite, found, mismatch, misshapen, type ReadContext } from "./reader.ts";
import { didYouMean } from "./suggest.ts";
import type { DocumentNode, MapNode } from "./tree.ts";

/** What a node is in a document. */
export type Role = ComponentKind | "dlq";

/** A node as it was read, before anything is known about its neighbours. */
export interface DraftNode {
  readonly role: Role;
  readonly path: Path;
  readonly map: MapNode;
  /** Where it begins: its key, or its first key in a list. */
  readonly place: Place;
  /** Where its type stands, for problems of the node as a whole. */
  readonly typePlace: Place;
  readonly id: string | undefined;
  /** `undefined` where the type is missing or unknown. */
  readonly component: Component | undefined;
  /** Fields beside `type` and the block that could be read. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** The block; `undefined` where it could not be read. */
  readonly block: Readonly<Record<string, unknown>> | undefined;
  /** Expressions inside it. */
  readonly expressions: readonly ExpressionSite[];
}

/** How a node is read. */
export interface NodeOptions {
  readonly role: Role;
  readonly path: Path;
  /** Its key, or the place of the list element. */
  readonly at: Place;
}

/** Reads a node; `undefined` where it is no block at all. */
export function readNode(
  node: DocumentNode,
  options: NodeOptions,
  context: ReadContext,
): DraftNode | undefined {
  const { role, path, at } = options;
  if (node.kind !== "map") {
    return misshapen({ node, path, at, secret: false }, context, "a block with a type");
  }
  const typeNode = childOf(node, "type");
  const component = componentOf(node, typeNode, options, context);
  const own: ReadContext = { ...context, expressions: [] };
  const common = commonFields(options);
  const draft = {
    role,
    path,
    map: node,
    place: at,
    typePlace: typeNode?.place ?? at,
    component,
  };
  const site = { node, path, at, secret: false };
  if (component === undefined) {
    // Only what every node of the role has can be judged.
    const entries = node.entries.filter(({ key }) => Object.hasOwn(common, key));
    const { values } = readFields(withoutRequired(common), { ...node, entries }, site, own);
    return {
      ...draft,
      id: values.id as string | undefined,
      fields: values,
      block: undefined,
      expressions: [],
    };
  }
  const type = component.type;
  const fields: Record<string, Field> = { ...common, type: typeField(type), ...component.outer };
  if (component.block !== undefined) {
    const optional = component.blockRequired === false;
    fields[type] = {
      type: component.block,
      summary: component.summary,
      ...(optional ? { default: {} } : { required: true }),
    };
  }
  const before = context.problems.size;
  const outside = (key: string) =>
    Object.hasOwn(common, key) ? `it belongs beside ${type}:, not inside` : undefined;
  const { values } = readFields(fields, node, site, { ...own, outside }, misplaced(component, common));
  if (!component.carried) {
    context.uncarried.push({ place: draft.typePlace, path, what: `${role} ${type}` });
  }
  const whole = component.block === undefined ? values.records === undefined ? undefined : {} : values[type];
  return {
    ...draft,
    id: values.id as string | undefined,
    fields: values,
    block: context.problems.size > before && whole === undefined ? undefined : whole as DraftNode["block"],
    expressions: own.expressions,
  };
}

function commonFields({ role, path }: NodeOptions): AnyFields {
  switch (role) {
    case "source": {
      return path[0] === "sources" ? NAMED_SOURCE_FIELDS : SOURCE_FIELDS;
    }
    case "operator":
      return OPERATOR_FIELDS;
    case "sink":
      return path[0] === "sinks" ? LISTED_SINK_FIELDS : SINK_FIELDS;
    case "dlq":
      return DLQ_FIELDS;
  }
}

const { id: _fromName, ...NAMED } = SOURCE_FIELDS;
const { default: _one, ...SINK_ID } = SINK_FIELDS.id!;

/** Fields of a source that has its id from the `name` beside it. */
export const NAMED_SOURCE_FIELDS: AnyFields = NAMED;

/** Fields of a sink in a list, where each needs an id of its own. */
export const LISTED_SINK_FIELDS: AnyFields = {
  ...SINK_FIELDS,
  id: { ...SINK_ID, required: true, example: "totals" },
};

function withoutRequired(fields: AnyFields): AnyFields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, { required: _any, ...field }]) => [name, field]),
  );
}

function typeField(type: string): Field {
  return { type: { kind: "enum", values: [type] } as FieldType, summary: "Which one it is", required: true };
}

/** Components a role can have. */
export function componentsFor(role: Role): readonly Component[] {
  return role === "dlq" ? DLQ_SINKS : componentsOf(role);
}

function componentOf(
  map: MapNode,
  node: DocumentNode | undefined,
  { role, path, at }: NodeOptions,
  context: ReadContext,
): Component | undefined {
  const known = componentsFor(role), names = known.map(({ type }) => type), typePath = [...path, "type"];
  if (node === undefined) {
    const meant = map.entries.find(({ key }) => names.includes(key))?.key;
    const hint = meant === undefined ? `one of: ${names.join(", ")}` : `write type: ${meant}`;
    context.problems.add(at, typePath, "missing", `needs type: which ${role} it is`, hint);
    return undefined;
  }
  if (node.kind !== "scalar" || typeof node.value !== "string") {
    const site = { node, path: typePath, at, secret: false };
    return mismatch(site, context, `the type of a ${role}`, `one of: ${names.join(", ")}`);
  }
  if (node.reference?.unset === true) return reportOpenChoice(node, typePath, context);
  const name = node.value, component = known.find(({ type }) => type === name);
  if (component !== undefined) return component;
  const elsewhere = COMPONENTS.find(({ type, kind }) => type === name && kind !== role);
  const message = `${found({ node, path: typePath, at, secret: false })} is no ${role}`;
  const hint = elsewhere === undefined || role === "dlq"
    ? didYouMean(name, names)
    : `it is a ${elsewhere.kind}`;
  context.problems.add(node.place, typePath, "unknown_type", message, hint ?? `one of: ${names.join(", ")}`);
  return undefined;
}

/** What to say of a key that stands on the wrong level, or beside the wrong type. */
function misplaced(component: Component, common: AnyFields): Elsewhere {
  return (key) => {
    if (component.block !== undefined && blockKeys(component.block).has(key)) {
      return `it belongs under ${component.type}:`;
    }
    if (COMPONENTS.some(({ kind, type }) => kind === component.kind && type === key)) {
      return `the block of type: ${component.type} is ${component.type}:, this one is for type: ${key}`;
    }
    const candidates = [...Object.keys(common), component.type, ...Object.keys(component.outer ?? {})];
    return didYouMean(key, candidates);
  };
}

/** Names of all fields a block can have. */
export function blockKeys(type: FieldType): Set<string> {
  if (type.kind === "block") return new Set(Object.keys(type.fields));
  if (type.kind !== "variants") return new Set();
  const variants = Object.values(type.variants).flatMap(({ fields }) => Object.keys(fields));
  return new Set([type.by, ...Object.keys(type.common), ...variants]);
}
