/**
 * Checking of the expressions in a flow: grammar, functions, and names.
 *
 * In flows a name that does not exist reads as null, so it is no mistake by itself:
 *
 * X1 A name that is nearly one that exists is taken for a mistake: `results.chrage` beside a node `charge`.
 * X2 Any other name that cannot exist is a warning, and so is an expression whose value is always of the wrong kind.
 *
 * @module
 */
import { ExpressionError, type NameRead } from "../../expr/mod.ts";
import type { AnyFields, FieldType } from "../../workflow/field_type.ts";
import type { Path, Problems } from "../../workflow/problem.ts";
import { childOf } from "../../workflow/reader.ts";
import { placeInScalar } from "../../workflow/scalar_place.ts";
import type { DocumentNode, MapNode, ScalarNode } from "../../workflow/tree.ts";
import { builtInKind, SHAPE, TEMPLATE } from "./fields.ts";
import { FLOW_FIELDS } from "./flow_fields.ts";
import { Meant } from "./near.ts";
import { nodeKind } from "./node_kinds.ts";
import { type Draft, type DraftNode, textAt } from "./read.ts";
import { compileFor, type Scope, VARIABLES } from "./scope.ts";
import { templateParts } from "./template.ts";

/** Names that members of a variable can have; absent where that is not known. */
type Known = Readonly<Record<string, ReadonlySet<string>>>;

const NAMES: Readonly<Record<Scope, ReadonlySet<string>>> = {
  input: new Set(VARIABLES.input),
  context: new Set(VARIABLES.context),
  item: new Set(VARIABLES.item),
};

/** Fields whose expression gives one of some kinds, by their names. */
const KINDS: ReadonlyMap<string, readonly string[]> = new Map([
  ["when", ["bool"]],
  ["over", ["list", "null"]],
  ["output", ["map", "null"]],
  ["input", ["map"]],
  ["until", ["text", "timestamp"]],
]);

/** Shortest name whose likeness to another is taken for a mistake. */
const SHORTEST_TYPO = 4;

/** Reports what is wrong with the expressions of a document, and what is only odd. */
export function checkExpressions(draft: Draft, problems: Problems, warnings: Problems): void {
  const checker = new Checker(namesOf(draft), problems, warnings);
  for (const { key, value } of draft.root.entries) {
    const field = Object.hasOwn(FLOW_FIELDS, key) ? FLOW_FIELDS[key as keyof typeof FLOW_FIELDS] : undefined;
    if (field === undefined || key === "nodes") continue;
    checker.value(field.type, value, [key], key === "search_attributes" ? "input" : "context");
  }
  for (const node of draft.nodes) {
    if (node.map !== undefined) checkNode(node, node.map, checker);
  }
}

function checkNode({ type, path }: DraftNode, map: MapNode, checker: Checker): void {
  const kind = nodeKind(type);
  if (kind === undefined) return;
  for (const { key, value } of map.entries) {
    const field = Object.hasOwn(kind.fields, key) ? kind.fields[key]! : undefined;
    if (field === undefined) continue;
    const scope = type === "map" && key !== "over" ? "item" : "context";
    const settings = key === "with" ? builtInKind(textAt(map, "kind"))?.settings : undefined;
    checker.value(settings ?? field.type, value, [...path, key], scope);
  }
}

/** What is known of members of the variables. */
function namesOf({ root, nodes }: Draft): Known {
  const ids = new Set(nodes.flatMap(({ id }) => id ?? []));
  const channels = childOf(root, "channels");
  const signals = nodes.flatMap(({ map }) => {
    const list = map && childOf(map, "signals");
    const several = list?.kind === "list" ? list.items : [];
    const texts = several.map((item) => item.kind === "scalar" ? item.value : undefined);
    return [map && textAt(map, "signal"), ...texts].filter((name) => typeof name === "string");
  });
  return {
    results: ids,
    visits: ids,
    branches: ids,
    errors: ids,
    signals: new Set(signals),
    ...(channels === undefined || channels.kind === "map"
      ? { channels: new Set(channels?.entries.map(({ key }) => key)) }
      : {}),
  };
}

class Checker {
  readonly #known: Known;
  readonly #problems: Problems;
  readonly #warnings: Problems;
  readonly #meant = new Meant();

  constructor(known: Known, problems: Problems, warnings: Problems) {
    this.#known = known;
    this.#problems = problems;
    this.#warnings = warnings;
  }

  /** Checks all expressions in a value of a type. `field` is the field it is of; empty where the user named it. */
  value(
    type: FieldType,
    node: DocumentNode,
    path: Path,
    scope: Scope,
    field: string = String(path.at(-1)),
  ): void {
    if (type === TEMPLATE) this.#template(node, path, scope);
    else if (type === SHAPE) this.#shape(node, path, scope);
    else if (type.kind === "expression") this.#text(node, path, scope, field);
    else if (type.kind === "list" && node.kind === "list") {
      node.items.forEach((item, i) => this.value(type.of, item, [...path, i], scope));
    } else if (type.kind === "map" && node.kind === "map") {
      for (const { key, value } of node.entries) this.value(type.of, value, [...path, key], scope, "");
    } else if (type.kind === "block" && node.kind === "map") this.#block(type.fields, node, path, scope);
  }

  #block(fields: AnyFields, map: MapNode, path: Path, scope: Scope): void {
    for (const { key, value } of map.entries) {
      if (Object.hasOwn(fields, key)) this.value(fields[key]!.type, value, [...path, key], scope);
    }
  }

  #template(node: DocumentNode, path: Path, scope: Scope): void {
    if (node.kind !== "scalar" || typeof node.value !== "string") return;
    const text = node.value;
    this.#reporting(node, path, 0, () => {
      for (const part of templateParts(text, scope)) {
        if ("expression" in part) this.#expression(part.expression, node, path, scope, part.offset, "");
      }
    });
  }

  #shape(node: DocumentNode, path: Path, scope: Scope): void {
    if (node.kind === "list") node.items.forEach((item, i) => this.#shape(item, [...path, i], scope));
    else if (node.kind === "map") {
      for (const { key, value } of node.entries) this.#shape(value, [...path, key], scope);
    } else this.#text(node, path, scope, "");
  }

  #text(node: DocumentNode, path: Path, scope: Scope, field: string): void {
    if (node.kind !== "scalar" || typeof node.value !== "string") return;
    if (node.value.trim() === "" && path.at(-1) !== undefined && !path.includes("with")) return; // reported as no text
    this.#expression(node.value, node, path, scope, 0, field);
  }

  #expression(text: string, node: ScalarNode, path: Path, scope: Scope, offset: number, field: string): void {
    this.#reporting(node, path, offset, () => {
      const { names, kind } = compileFor(text, scope);
      for (const name of names) this.#name(name, node, path, scope, offset);
      const wanted = KINDS.get(field);
      if (wanted !== undefined && kind !== "any" && !wanted.includes(kind)) {
        const message = `the expression gives ${kind}, expected ${wanted.join(" or ")}`;
        this.#warnings.add(node.place, path, "wrong_kind", message);
      }
    });
  }

  /** Reports the mistakes that `check` throws; they are in a text that begins at `offset`. */
  #reporting(node: ScalarNode, path: Path, offset: number, check: () => void): void {
    try {
      check();
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error;
      for (const problem of error.problems) {
        const place = placeInScalar(node, offset + problem.offset);
        this.#problems.add(place, path, "invalid_expression", problem.message, problem.hint);
      }
    }
  }

  #name(read: NameRead, node: ScalarNode, path: Path, scope: Scope, offset: number): void {
    const { variable, name } = read;
    const known = variable === undefined
      ? NAMES[scope]
      : Object.hasOwn(this.#known, variable)
      ? this.#known[variable]!
      : undefined;
    if (known === undefined || known.has(name)) return;
    const place = placeInScalar(node, offset + read.offset);
    const whole = variable === undefined ? name : `${variable}.${name}`;
    const shown = whole.length > 80 ? `${whole.slice(0, 79)}…` : whole;
    if (variable === undefined && NAMES.item.has(name)) {
      this.#misplaced(name, place, path, scope);
      return;
    }
    const meant = name.length < SHORTEST_TYPO || name.length > 100
      ? undefined
      : this.#meant.nearest(name, known);
    const message = `there is no ${shown} here`;
    if (meant !== undefined) {
      const full = variable === undefined ? meant : `${variable}.${meant}`;
      this.#problems.add(place, path, "unknown_name", message, `did you mean "${full}"?`);
    } else this.#warnings.add(place, path, "unknown_name", `${message}: it reads as null`);
  }

  /** A variable that exists elsewhere. */
  #misplaced(name: string, place: ScalarNode["place"], path: Path, scope: Scope): void {
    if (scope === "input") {
      this.#problems.add(
        place,
        path,
        "unknown_name",
        `${name} is not known yet when an execution starts`,
        "only input is",
      );
    } else {
      const message = `${name} is null here: only what a map says of its items knows it`;
      this.#warnings.add(place, path, "unknown_name", message);
    }
  }
}
