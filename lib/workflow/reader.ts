/**
 * What reading a document by its description shares: where problems and findings go, and words for what was found.
 *
 * @module
 */
import { setOwn } from "../value.ts";
import type { Path, Place, Problems } from "./problem.ts";
import type { Secrets } from "./secrets.ts";
import type { DocumentNode, MapNode, ScalarNode } from "./tree.ts";

/** An expression of a document, to be checked once it is known what it can name. */
export interface ExpressionSite {
  readonly node: ScalarNode;
  readonly path: Path;
  readonly text: string;
  /** What its value has to be; anything where absent. */
  readonly gives: "bool" | "list" | "text" | undefined;
}

/** A file a document names. */
export interface FileSite {
  readonly place: Place;
  readonly path: Path;
  /** As written, relative to the document. */
  readonly file: string;
  readonly use: "schema" | "ref";
  /** Which kind of schema, where it is no JSON Schema. */
  readonly what?: string | undefined;
}

/** Where reading puts what it finds. */
export interface ReadContext {
  readonly problems: Problems;
  readonly secrets: Secrets;
  readonly expressions: ExpressionSite[];
  readonly files: FileSite[];
  /** What to say of a key inside a node's block that may have been meant for around it. */
  readonly outside?: (key: string) => string | undefined;
  /** Whether names without a value pass, their texts unchecked. */
  readonly allowUnset: boolean;
  /** Fields with `carried: false`, and values this build does not run. */
  readonly uncarried: { readonly place: Place; readonly path: Path; readonly what: string }[];
}

/** A value that is being read. */
export interface Site {
  readonly node: DocumentNode;
  readonly path: Path;
  /** Place of its key, or of the value itself in a list: where a thing missing inside it is reported. */
  readonly at: Place;
  /** Nothing of it may be shown. */
  readonly secret: boolean;
}

/** What a node is, for "found …". */
export function kindFound(node: DocumentNode): string {
  if (node.kind !== "scalar") return node.kind === "list" ? "a list" : "a block";
  const { value } = node;
  if (value === null) return "nothing";
  return typeof value === "string" ? "a text" : typeof value === "boolean" ? "true or false" : "a number";
}

/** The same with the value itself where it is short, scalar and no secret, as it is written. */
export function found({ node, secret }: Site): string {
  if (node.kind !== "scalar" || node.value === null || secret) return kindFound(node);
  const text = node.reference?.written ?? (typeof node.value === "string" ? node.value : node.raw);
  if (text.length > 60 || text.includes("\n")) return kindFound(node);
  return typeof node.value === "string" ? JSON.stringify(text) : text;
}

/** Reports that a value is not what it should be. */
export function mismatch(site: Site, context: ReadContext, expected: string, hint?: string): undefined {
  context.problems.add(
    site.node.place,
    site.path,
    "wrong_type",
    `expected ${expected}, found ${found(site)}`,
    hint,
  );
  return undefined;
}

/** Reports that a value has another shape than it should: what it is must not be shown, since nobody knows what it is. */
export function misshapen(site: Site, context: ReadContext, expected: string, hint?: string): undefined {
  const message = `expected ${expected}, found ${kindFound(site.node)}`;
  context.problems.add(site.node.place, site.path, "wrong_type", message, hint);
  return undefined;
}

/** The value under a key, if it is there. */
export function childOf(map: MapNode, key: string): DocumentNode | undefined {
  return map.entries.find((entry) => entry.key === key)?.value;
}

/** The node at a path, if there is one. */
export function nodeAt(root: DocumentNode | undefined, path: Path): DocumentNode | undefined {
  let node = root;
  for (const step of path) {
    if (node === undefined) return undefined;
    if (node.kind === "list" && typeof step === "number") node = node.items[step];
    else if (node.kind === "map" && typeof step === "string") node = childOf(node, step);
    else return undefined;
  }
  return node;
}

/** The place of the key at a path, or of the value in a list; of the nearest thing around it that is there otherwise. */
export function keyPlaceAt(root: DocumentNode, path: Path): Place {
  let node = root, place = root.place;
  for (const step of path) {
    if (node.kind === "list" && typeof step === "number") {
      const item = node.items[step];
      if (item === undefined) return place;
      [node, place] = [item, item.place];
    } else if (node.kind === "map") {
      const entry = node.entries.find(({ key }) => key === step);
      if (entry === undefined) return place;
      [node, place] = [entry.value, entry.place];
    } else return place;
  }
  return place;
}

/** The JSON value of a node; keys are own properties whatever their names. */
export function valueOf(node: DocumentNode): unknown {
  switch (node.kind) {
    case "scalar":
      return node.value;
    case "list":
      return node.items.map(valueOf);
    case "map":
      return objectOf(node.entries.map(({ key, value }) => [key, valueOf(value)]));
  }
}

/** An object of entries, among which `__proto__` is one like any other. */
export function objectOf<T>(entries: Iterable<readonly [string, T]>): Record<string, T> {
  const object: Record<string, T> = {};
  for (const [key, value] of entries) setOwn(object, key, value);
  return object;
}

/** A tree of a JSON value, all of it at one place: for defaults, which are written as values. */
export function nodeOf(value: unknown, place: Place): DocumentNode {
  if (Array.isArray(value)) return { kind: "list", place, items: value.map((item) => nodeOf(item, place)) };
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).map(([key, item]) => ({ key, place, value: nodeOf(item, place) }));
    return { kind: "map", place, entries };
  }
  const scalar = value as string | number | boolean | null;
  return { kind: "scalar", place, value: scalar, style: "plain", raw: String(scalar) };
}
