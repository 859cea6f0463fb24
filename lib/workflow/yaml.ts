/**
 * YAML and JSON texts as a tree in which every key and value knows its place. The only file that imports `yaml`.
 *
 * Scalars are resolved here and not by the library, by the core schema of YAML 1.2:
 *
 * T1 Numbers lose no digit (the number model of `lib/json.ts`); `yes`, `on`, `1_000` and dates are text.
 * T2 No document is too deep, too repetitive or too odd to be refused in words: nesting and alias expansion are bounded.
 * T3 No message quotes the text of the document, which may hold secrets.
 * T4 A key named `__proto__` is a key like any other.
 *
 * @module
 */
import {
  Composer,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  Parser,
  type YAMLError,
} from "yaml";
import type { Path, Place } from "./problem.ts";
import { plainScalar } from "./plain_scalar.ts";
import type { DocumentNode, MapEntry, ScalarStyle } from "./tree.ts";

/** Something that keeps a text from being a tree. */
export interface SyntaxProblem {
  readonly place: Place;
  readonly path: Path;
  readonly code: string;
  readonly message: string;
  readonly hint?: string;
}

/** Most levels of lists and blocks inside each other. */
export const MAX_DEPTH = 100;
/** Most values that aliases may add to a document. */
export const MAX_ALIASED = 20_000;
const MAX_PROBLEMS = 20;

/** The tree of a text. Where there are problems, the tree is what could be made of the rest, or nothing. */
export function parseTree(
  text: string,
): { readonly root: DocumentNode | undefined; readonly problems: readonly SyntaxProblem[] } {
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text;
  const places = new Places(source);
  const { tokens, tooDeepAt } = tokensOf(source);
  if (tooDeepAt !== undefined) {
    const place = places.at(tooDeepAt);
    return { root: undefined, problems: [{ place, path: [], ...TOO_DEEP }] };
  }
  const composer = new Composer({
    schema: "failsafe",
    version: "1.2",
    uniqueKeys: false, // quadratic there; `Builder` looks for doubles itself
    prettyErrors: false,
    logLevel: "silent",
  });
  const documents = [...composer.compose(tokens, true, source.length)];
  const problems = documents.flatMap((document) => document.errors.map((e) => syntaxProblem(e, places)));
  const [first, second] = documents;
  if (second !== undefined) {
    problems.push({
      place: places.at(second.range[0]),
      path: [],
      code: "several_documents",
      message: "a file holds one document, here a second one begins",
      hint: "remove the --- line, or make two files",
    });
  }
  if (first?.directives.yaml.explicit === true && first.directives.yaml.version !== "1.2") {
    problems.push({
      place: { line: 1, column: 1 },
      path: [],
      code: "yaml_version",
      message: `documents are YAML 1.2, the %YAML line says ${first.directives.yaml.version}`,
      hint: "remove the %YAML line",
    });
  }
  const builder = new Builder(source, places, problems);
  const root = first === undefined || problems.length > 0 ? undefined : builder.document(first);
  return { root, problems: problems.slice(0, MAX_PROBLEMS) };
}

const TOO_DEEP = {
  code: "too_deep",
  message: `lists and blocks are nested more than ${MAX_DEPTH} levels deep`,
};

/** The library's tokens; stops where the nesting goes beyond what composing, which recurses, can bear. */
function tokensOf(source: string) {
  const parser = new Parser();
  const tokens: ReturnType<Parser["next"]> extends Generator<infer T> ? T[] : never = [];
  let offset = 0;
  for (const lexeme of new Lexer().lex(source)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    if (parser.stack.length > MAX_DEPTH + 10) return { tokens, tooDeepAt: offset };
    if (!CONTROL.has(lexeme)) offset += lexeme.length;
  }
  for (const token of parser.end()) tokens.push(token);
  return { tokens, tooDeepAt: undefined };
}

/** Lexemes that stand for no character: document start, flow error, plain scalar follows. */
const CONTROL: ReadonlySet<string> = new Set(["\u0002", "\u0018", "\u001f"]);

/** Makes the tree of a composed document. */
class Builder {
  readonly #source: string;
  readonly #places: Places;
  readonly #problems: SyntaxProblem[];
  /** Anchored nodes met so far; `undefined` while the node itself is being built. */
  readonly #anchors = new Map<string, unknown>();
  readonly #open = new Set<unknown>();
  #aliased = 0;
  #insideAlias = 0;

  constructor(source: string, places: Places, problems: SyntaxProblem[]) {
    this.#source = source;
    this.#places = places;
    this.#problems = problems;
  }

  document(document: Document.Parsed): DocumentNode | undefined {
    const root = this.#node(document.contents, [], 0, 0);
    return this.#problems.length > 0 ? undefined : root;
  }

  /** `near` is an offset to report at where the node has none of its own. */
  #node(node: unknown, path: Path, depth: number, near: number): DocumentNode {
    const at = rangeOf(node)?.[0] ?? near;
    const place = this.#places.at(at);
    const nothing: DocumentNode = { kind: "scalar", place, value: null, style: "plain", raw: "" };
    if (this.#problems.length >= MAX_PROBLEMS) return nothing;
    if (this.#insideAlias > 0 && ++this.#aliased > MAX_ALIASED) {
      if (this.#aliased === MAX_ALIASED + 1) {
        const message = `aliases repeat more than ${MAX_ALIASED} values`;
        this.#fail(place, path, "too_many_aliases", message, "write less by alias, or generate the document");
      }
      return nothing;
    }
    if (depth >= MAX_DEPTH && (isMap(node) || isSeq(node))) {
      this.#fail(place, path, TOO_DEEP.code, TOO_DEEP.message);
      return nothing;
    }
    if (isAlias(node)) return this.#alias(node.source, path, depth, place, at) ?? nothing;
    if (isScalar(node) || isMap(node) || isSeq(node)) {
      if (node.anchor !== undefined) this.#anchors.set(node.anchor, node);
      if (node.tag !== undefined) {
        const hint = "write texts in quotes and everything else as JSON would";
        this.#fail(place, path, "yaml_tag", "tags (!…) are not part of the format", hint);
        return nothing;
      }
    }
    this.#open.add(node);
    try {
      if (isSeq(node)) {
        const items = node.items.map((item, i) => this.#node(item, [...path, i], depth + 1, at));
        return { kind: "list", place, items };
      }
      if (isMap(node)) return { kind: "map", place, entries: this.#entries(node.items, path, depth, at) };
      return isScalar(node) ? this.#scalar(node, place, path) : nothing;
    } finally {
      this.#open.delete(node);
    }
  }

  #alias(name: string, path: Path, depth: number, place: Place, at: number): DocumentNode | undefined {
    const target = this.#anchors.get(name);
    if (target === undefined) {
      // The name is not shown: it may be a password that begins with a star.
      const message =
        "a text that begins with * is an alias, and there is no anchor of its name in front of it";
      this.#fail(place, path, "unknown_alias", message, "put the text in quotes");
    } else if (this.#open.has(target)) {
      this.#fail(place, path, "endless_alias", "the alias stands inside what it repeats");
    } else {
      this.#insideAlias++;
      try {
        return this.#node(target, path, depth, at);
      } finally {
        this.#insideAlias--;
      }
    }
    return undefined;
  }

  #entries(
    pairs: readonly { readonly key: unknown; readonly value: unknown }[],
    path: Path,
    depth: number,
    at: number,
  ): MapEntry[] {
    const entries: MapEntry[] = [], seen = new Set<string>();
    for (const { key: keyNode, value } of pairs) {
      const keyAt = rangeOf(keyNode)?.[0] ?? at;
      const place = this.#places.at(keyAt);
      if (!isScalar(keyNode) || keyNode.tag !== undefined) {
        this.#fail(place, path, "bad_key", "a key is a plain or quoted text");
        continue;
      }
      if (keyNode.anchor !== undefined) this.#anchors.set(keyNode.anchor, keyNode);
      const key = String(keyNode.value);
      const keyPath = [...path, key];
      if (seen.has(key)) {
        this.#fail(place, keyPath, "duplicate_key", `the key "${key}" stands here a second time`);
        continue;
      }
      seen.add(key);
      if (key === "<<" && keyNode.type === "PLAIN") {
        const hint = "repeat the fields, or use an alias for a whole block";
        this.#fail(place, keyPath, "merge_key", "merge keys (<<) are not part of YAML 1.2", hint);
        continue;
      }
      entries.push({ key, place, value: this.#node(value, keyPath, depth + 1, keyAt) });
    }
    return entries;
  }

  #scalar(node: { value: unknown; type?: string; range?: unknown }, place: Place, path: Path): DocumentNode {
    const style = STYLES[node.type ?? "PLAIN"] ?? "plain";
    const [from, to] = rangeOf(node) ?? [0, 0];
    const text = String(node.value ?? "");
    const raw = this.#source.slice(from, to);
    if (style !== "plain") return { kind: "scalar", place, value: text, style, raw };
    const { value, problem } = plainScalar(text);
    if (problem !== undefined) this.#fail(place, path, problem.code, problem.message, problem.hint);
    return { kind: "scalar", place, value, style, raw };
  }

  #fail(place: Place, path: Path, code: string, message: string, hint?: string): void {
    this.#problems.push({ place, path, code, message, ...(hint === undefined ? {} : { hint }) });
  }
}

const STYLES: Readonly<Record<string, ScalarStyle>> = {
  PLAIN: "plain",
  QUOTE_SINGLE: "single",
  QUOTE_DOUBLE: "double",
  BLOCK_LITERAL: "literal",
  BLOCK_FOLDED: "folded",
};

function rangeOf(node: unknown): readonly [number, number] | undefined {
  const range = (node as { range?: readonly [number, number, number] | null } | null | undefined)?.range;
  return range === null || range === undefined ? undefined : [range[0], range[1]];
}

const HINTS: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: "indent with spaces",
  BAD_INDENT: "lines of one block start in the same column",
  BLOCK_AS_IMPLICIT_KEY: "put texts with a colon in quotes, or start a new line",
  BAD_SCALAR_START: "put the text in quotes",
  BAD_DQ_ESCAPE: "use single quotes where backslashes should stay as they are",
  MULTILINE_IMPLICIT_KEY: "a key and its colon stand on one line",
};

/** A problem the library found, in its words as far as they do not quote the document (T3). */
function syntaxProblem(error: YAMLError, places: Places): SyntaxProblem {
  const words = error.message.replace(/: ".*$/s, "").replace(/\s+/g, " ");
  const hint = HINTS[error.code];
  return {
    place: places.at(error.pos[0]),
    path: [],
    code: "syntax",
    message: `cannot be read as YAML: ${words}`,
    ...(hint === undefined ? {} : { hint }),
  };
}

/** Lines and columns of offsets. */
class Places {
  readonly #starts: number[] = [0];

  constructor(text: string) {
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) this.#starts.push(at + 1);
  }

  at(offset: number): Place {
    let low = 0, high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - this.#starts[low]! + 1 };
  }
}
