/**
 * `${NAME}` in the texts of a document.
 *
 * I1 Every text value may hold references: `${NAME}`, `${NAME:-default}` where unset or empty; `$${` stands for `${`.
 * I2 Keys are never touched, and neither are `$` signs without a brace.
 * I3 A name without value is a problem at the text it stands in, unless the caller lets it pass.
 * I4 What was put in is remembered with the text, so that a secret can be hidden later. It is never quoted here.
 * I5 A name whose value may not be read (`resolveSecret` throws a {@link MailerError}) is a problem, too.
 *
 * @module
 */
import { MailerError } from "../errors.ts";
import type { Path, Problems } from "./problem.ts";
import type { DocumentNode, MapEntry, ScalarNode } from "./tree.ts";

/** Gives the value of a name, e.g. from the process environment. */
export type ResolveSecret = (name: string) => string | undefined;

/** How references are resolved. */
export interface InterpolateOptions {
  readonly resolveSecret: ResolveSecret;
  /** Lets names without a value pass: their texts stay as written and are not checked further. */
  readonly allowUnset: boolean;
  readonly problems: Problems;
}

/** The same tree with the references in its texts resolved. */
export function interpolate(root: DocumentNode, options: InterpolateOptions): DocumentNode {
  return walk(root, [], options);
}

function walk(node: DocumentNode, path: Path, options: InterpolateOptions): DocumentNode {
  switch (node.kind) {
    case "list":
      return { ...node, items: node.items.map((item, i) => walk(item, [...path, i], options)) };
    case "map":
      return {
        ...node,
        entries: node.entries.map((entry): MapEntry => ({
          ...entry,
          value: walk(entry.value, [...path, entry.key], options),
        })),
      };
    case "scalar":
      return typeof node.value === "string" && node.value.includes("${")
        ? resolve(node, path, options)
        : node;
  }
}

const UNREADABLE = Symbol("unreadable");

/** The value of a name; where it may not be read, that is a problem of the text. */
function lookUp(
  name: string,
  { place }: ScalarNode,
  path: Path,
  { resolveSecret, problems }: InterpolateOptions,
): string | undefined | typeof UNREADABLE {
  try {
    return resolveSecret(name);
  } catch (error) {
    if (!(error instanceof MailerError)) throw error;
    problems.add(place, path, error.code, `\${${name}}: ${error.message}`, error.hint);
    return UNREADABLE;
  }
}

const REFERENCE = /\$\$\{|\$\{(?:([A-Za-z_]\w*)(?::-([^}]*))?\})?/g;

function resolve(node: ScalarNode, path: Path, options: InterpolateOptions): ScalarNode {
  const written = node.value as string, values: string[] = [];
  let unset = false, value = "", behind = 0;
  for (const match of written.matchAll(REFERENCE)) {
    const [whole, name, fallback] = match;
    value += written.slice(behind, match.index);
    behind = match.index + whole.length;
    if (whole === "$${") {
      value += "${";
      continue;
    }
    if (name === undefined) {
      const hint = "write ${NAME} or ${NAME:-default}; $${ stands for a plain ${";
      options.problems.add(node.place, path, "bad_reference", "${ without a name and a closing brace", hint);
      unset = true;
      continue;
    }
    const found = lookUp(name, node, path, options);
    if (found === UNREADABLE) {
      unset = true;
      continue;
    }
    const used = (found === undefined || found === "") && fallback !== undefined ? fallback : found;
    if (used === undefined) {
      unset = true;
      if (!options.allowUnset) {
        const hint = `set it, or write \${${name}:-default}`;
        options.problems.add(node.place, path, "unset_variable", `\${${name}} is not set`, hint);
      }
      continue;
    }
    values.push(used);
    value += used;
  }
  value += written.slice(behind);
  return { ...node, value: unset ? written : value, reference: { written, values, unset } };
}
