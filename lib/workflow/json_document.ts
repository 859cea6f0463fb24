/**
 * `.json` documents: read as YAML, of which JSON is a part, and then held to being JSON.
 *
 * @module
 */
import { type Problems, TOP } from "./problem.ts";
import type { DocumentNode } from "./tree.ts";

/** Reports what is YAML but not JSON. */
export function checkJsonText(text: string, root: DocumentNode, problems: Problems): void {
  try {
    JSON.parse(text.startsWith("\uFEFF") ? text.slice(1) : text);
  } catch {
    // The parser's own message quotes the text, which may hold secrets.
    const place = firstOddity(root)?.place ?? TOP;
    const hint =
      "comments, trailing commas and texts without double quotes are YAML; name the file .yaml for them";
    problems.add(place, [], "not_json", "cannot be read as JSON", hint);
  }
}

/** The first scalar that JSON does not know. */
function firstOddity(node: DocumentNode): DocumentNode | undefined {
  switch (node.kind) {
    case "list":
      return firstOf(node.items);
    case "map":
      return firstOf(node.entries.map(({ value }) => value));
    case "scalar":
      return isJson(node.raw) ? undefined : node;
  }
}

function firstOf(nodes: readonly DocumentNode[]): DocumentNode | undefined {
  for (const node of nodes) {
    const odd = firstOddity(node);
    if (odd !== undefined) return odd;
  }
  return undefined;
}

function isJson(raw: string): boolean {
  try {
    JSON.parse(raw);
    return true;
  } catch {
    return false;
  }
}
