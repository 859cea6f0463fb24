/**
 * Reading of any field: lists, blocks and their rules.
 *
 * B1 Every problem of a block is found in one reading: unknown keys, missing fields, values, then rules and checks.
 * B2 What a rule needs to know and could not be read makes the rule silent: one mistake is one problem.
 * B3 The form of a block with variants is chosen first, so only that form's fields are spoken of.
 *
 * @module
 */
import type { AnyFields, Field, FieldType, Rule } from "./field_type.ts";
import { type Path, type Place, Problems } from "./problem.ts";
import {
  childOf,
  mismatch,
  misshapen,
  nodeAt,
  nodeOf,
  objectOf,
  type ReadContext,
  type Site,
  valueOf,
} from "./reader.ts";
import { readScalar } from "./read_scalar.ts";
import { applyRule, type ReadFields } from "./rules.ts";
import { Secrets } from "./secrets.ts";
import { didYouMean } from "./suggest.ts";
import type { DocumentNode, MapNode } from "./tree.ts";
import { wordsOf } from "./words.ts";
import { parsePath } from "../path.ts";

/** The value of a field; `undefined` after a problem was reported. */
export function readField(type: FieldType, site: Site, context: ReadContext): unknown {
  const { node } = site;
  switch (type.kind) {
    case "any":
      return valueOf(node);
    case "list":
      return readList(type, site, context);
    case "map":
      return readMap(type, site, context);
    case "block":
    case "variants":
      return node.kind === "map" ? readBlock(type, node, site, context) : misshapen(site, context, "a block");
    case "from":
      return readFrom(site, context);
    case "schema":
      return readSchema(type, site, context);
    default:
      return readScalar(type, site, context);
  }
}

function readList(type: Extract<FieldType, { kind: "list" }>, site: Site, context: ReadContext): unknown {
  const { node, path, secret } = site;
  if (node.kind !== "list") return misshapen(site, context, "a list", asList(type, site));
  if (node.items.length < (type.min ?? 0)) {
    context.problems.add(node.place, path, "too_few", "expected at least one element, found none");
    return undefined;
  }
  const values = node.items.map((item, i) => {
    return readField(type.of, { node: item, path: [...path, i], at: item.place, secret }, context);
  });
  return values.includes(undefined) ? undefined : values;
}

/** How a single text would be written as a list; nothing where it may be secret, or was not meant as an element. */
function asList(
  { of }: Extract<FieldType, { kind: "list" }>,
  { node, path, secret }: Site,
): string | undefined {
  if (secret || node.kind !== "scalar" || typeof node.value !== "string") return undefined;
  if (!["text", "path", "enum"].includes(of.kind)) return undefined;
  const text = node.reference?.written ?? node.value, name = path.at(-1);
  if (typeof name !== "string" || !/^[\w.:${}-]+(?:, ?[\w.:${}-]+)*$/.test(text) || text.length > 60) {
    return undefined;
  }
  return `write ${name}: [${node.style === "plain" ? text : JSON.stringify(text)}]`;
}

function readMap(type: Extract<FieldType, { kind: "map" }>, site: Site, context: ReadContext): unknown {
  const { node, path, secret } = site;
  if (node.kind !== "map") return misshapen(site, context, "a block");
  if (node.entries.length < (type.min ?? 0)) {
    context.problems.add(site.at, path, "too_few", "expected at least one entry, found none");
    return undefined;
  }
  const entries: [string, unknown][] = [];
  for (const { key, place, value } of node.entries) {
    const keyPath = [...path, key];
    const read = readField(type.of, { node: value, path: keyPath, at: place, secret }, context);
    if (type.keys === "path" && !isFieldPath(key)) {
      context.problems.add(place, keyPath, "invalid_path", `"${key}" is no field path`);
    } else if (read !== undefined) entries.push([key, read]);
  }
  return entries.length === node.entries.length ? objectOf(entries) : undefined;
}

function isFieldPath(text: string): boolean {
  try {
    parsePath(text);
    return true;
  } catch {
    return false;
  }
}

function readFrom(site: Site, context: ReadContext): readonly string[] | undefined {
  const { node, path } = site;
  const items = node.kind === "list" ? node.items : [node];
  if (items.length === 0) return mismatch(site, context, wordsOf({ kind: "from" }));
  const names: string[] = [];
  items.forEach((item, i) => {
    const itemPath = node.kind === "list" ? [...path, i] : path;
    const name = readScalar({ kind: "text" }, { ...site, node: item, path: itemPath }, context) as
      | string
      | undefined;
    if (name === undefined) return;
    if (names.includes(name)) {
      context.problems.add(item.place, itemPath, "duplicate", `"${name}" is already read here`);
    } else names.push(name);
  });
  return names.length === items.length ? names : undefined;
}

function readSchema(
  type: Extract<FieldType, { kind: "schema" }>,
  site: Site,
  context: ReadContext,
): unknown {
  const { node, path } = site;
  if (node.kind === "map") return valueOf(node);
  if (node.kind === "list" || typeof node.value !== "string" || node.value === "") {
    return mismatch(site, context, wordsOf(type));
  }
  if (node.reference?.unset !== true) {
    context.files.push({ place: node.place, path, file: node.value, use: "schema", what: type.what });
  }
  return node.value;
}

/** How an unknown key might have been meant, by whoever knows what is around the block. */
export type Elsewhere = (key: string) => string | undefined;

function readBlock(
  type: Extract<FieldType, { kind: "block" | "variants" }>,
  map: MapNode,
  site: Site,
  context: ReadContext,
): unknown {
  const before = context.problems.size;
  const form = type.kind === "block"
    ? { fields: type.fields, rules: [] }
    : chooseVariant(type, map, site, context);
  if (form === undefined) return undefined;
  const read = readFields(form.fields, map, site, context, (key) => {
    return type.kind === "variants" ? belongsTo(type, key) : undefined;
  });
  for (const rule of [...(type.rules ?? []), ...form.rules]) applyRule(rule, read, map, site, context);
  if (context.problems.size > before || !read.complete) return undefined;
  if (read.unsure.size === 0) {
    type.check?.(read.values, (field, code, message, hint) => {
      const place = field.length === 0 ? site.at : nodeAt(map, field)?.place ?? site.at;
      context.problems.add(place, [...site.path, ...field], code, message, hint);
    });
  }
  if (context.problems.size > before) return undefined;
  return type.finish === undefined ? read.values : type.finish(read.values);
}

type Variants = Extract<FieldType, { kind: "variants" }>;

function chooseVariant(
  type: Variants,
  map: MapNode,
  site: Site,
  context: ReadContext,
): { readonly fields: AnyFields; readonly rules: readonly Rule[] } | undefined {
  const chooser = chooserOf(type), path = [...site.path, type.by];
  const node = childOf(map, type.by);
  let name = type.default;
  if (node !== undefined) {
    if (node.kind === "scalar" && node.reference?.unset === true) {
      return reportOpenChoice(node, path, context);
    }
    name = readScalar(chooser, { node, path, at: site.at, secret: false }, context) as string | undefined;
  } else if (name === undefined) {
    const hint = `one of: ${Object.keys(type.variants).join(", ")}`;
    context.problems.add(site.at, path, "missing", `needs ${type.by}`, hint);
  }
  if (name === undefined) return undefined;
  const variant = type.variants[name]!;
  const by: Field = {
    type: chooser,
    summary: type.summary,
    ...(type.default === undefined ? {} : { default: type.default }),
  };
  return { fields: { [type.by]: by, ...type.common, ...variant.fields }, rules: variant.rules ?? [] };
}

/** With unset names allowed to pass, a form that hangs on one is still a problem: nothing else could be checked. */
export function reportOpenChoice(node: DocumentNode, path: Path, context: ReadContext): undefined {
  if (!context.allowUnset) return; // reported already, with the name
  context.problems.add(
    node.place,
    path,
    "unset_variable",
    "the form of this block hangs on a name that is not set",
  );
}

function chooserOf(type: Variants): Extract<FieldType, { kind: "enum" }> {
  return { kind: "enum", values: Object.keys(type.variants) };
}

function belongsTo(type: Variants, key: string): string | undefined {
  const owners = Object.entries(type.variants).filter(([, variant]) => Object.hasOwn(variant.fields, key));
  return owners.length === 0
    ? undefined
    : `it belongs to ${type.by}: ${owners.map(([name]) => name).join(", ")}`;
}

/** Reads the fields of a block: unknown keys, missing ones and values. */
export function readFields(
  fields: AnyFields,
  map: MapNode,
  site: Site,
  context: ReadContext,
  elsewhere: Elsewhere = () => undefined,
): ReadFields {
  const present = new Set<string>(), unsure = new Set<string>();
  const values: Record<string, unknown> = {};
  let complete = true;
  for (const { key, place } of map.entries) {
    if (Object.hasOwn(fields, key)) present.add(key);
    else {
      const known = Object.keys(fields);
      const hint = elsewhere(key) ?? context.outside?.(key) ??
        didYouMean(key, known.filter((name) => childOf(map, name) === undefined));
      context.problems.add(place, [...site.path, key], "unknown_key", `"${key}" is not known here`, hint);
      complete = false;
    }
  }
  for (const [name, field] of Object.entries(fields)) {
    const entry = map.entries.find(({ key }) => key === name);
    if (entry === undefined) {
      if (field.required === true) {
        complete = false;
        const path = [...site.path, name];
        context.problems.add(site.at, path, "missing", `needs ${name}`, exampleHint(name, field));
      } else if (field.default !== undefined) values[name] = defaultOf(field);
      continue;
    }
    const inside: Site = {
      node: entry.value,
      path: [...site.path, name],
      at: entry.place,
      secret: site.secret || field.secret === true,
    };
    if (field.secret === true) noteSecrets(entry.value, context);
    const value = readField(field.type, inside, context);
    if (entry.value.kind === "scalar" && entry.value.reference?.unset === true) unsure.add(name);
    if (value === undefined) {
      unsure.add(name);
      complete = false;
    } else values[name] = value;
    if (field.carried === false) {
      context.uncarried.push({ place: entry.place, path: inside.path, what: name });
    }
  }
  return { values, present, unsure, complete };
}

/** Everything written under a secret field is secret, whatever its shape. */
function noteSecrets(node: DocumentNode, context: ReadContext): void {
  if (node.kind === "list") node.items.forEach((item) => noteSecrets(item, context));
  else if (node.kind === "map") node.entries.forEach(({ value }) => noteSecrets(value, context));
  else if (node.value !== null && node.reference?.unset !== true) {
    context.secrets.add(typeof node.value === "string" ? node.value : node.raw, node.reference?.values);
  }
}

function exampleHint(name: string, { type, example, secret }: Field): string {
  if (example === undefined || secret === true) return `${name} is ${wordsOf(type)}`;
  return `for example ${name}: ${typeof example === "string" ? example : JSON.stringify(example)}`;
}

const defaults = new WeakMap<Field, unknown>();

/** The value of a field's default. Defaults are descriptions of ours: one that cannot be read is a defect. */
export function defaultOf(field: Field): unknown {
  if (!defaults.has(field)) {
    const place: Place = { line: 1, column: 1 };
    const problems = new Problems("default");
    const context: ReadContext = {
      problems,
      secrets: new Secrets(),
      expressions: [],
      files: [],
      uncarried: [],
      allowUnset: false,
    };
    const value = readField(field.type, {
      node: nodeOf(field.default, place),
      path: [],
      at: place,
      secret: false,
    }, context);
    if (problems.size > 0) throw new TypeError(`bad default: ${problems.list((text) => text)[0]!.message}`);
    defaults.set(field, value);
  }
  return defaults.get(field);
}
