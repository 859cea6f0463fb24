/**
 * Flows in TypeScript: the same definition, and the same hash, as the document that says the same.
 *
 * ```ts
 * const saga = defineFlow({
 *   name: "saga",
 *   nodes: {
 *     reserve: { type: "task", kind: "reserve", next: "charge" },
 *     charge: { type: "task", kind: "charge", timeout: "30s", onFailure: "refused" },
 *     refused: { type: "fail", message: "order refused" },
 *   },
 * });
 * saga.hash; // the hash of the same flow in YAML
 * ```
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { Decimal, exactNumber } from "../../json.ts";
import type { AnyFields, FieldType } from "../../workflow/field_type.ts";
import { type Path, pathText, type Place, type Problem, Problems, TOP } from "../../workflow/problem.ts";
import type { DocumentNode, MapEntry, MapNode, ScalarNode } from "../../workflow/tree.ts";
import { MAX_DEPTH } from "../../workflow/yaml.ts";
import { durationText } from "./canonical.ts";
import { camelOf, snakeOf } from "./convert.ts";
import { builtInKind } from "./fields.ts";
import { FLOW_FIELDS } from "./flow_fields.ts";
import { NODE_FIELDS, nodeKind } from "./node_kinds.ts";
import { flowOf } from "./parse.ts";
import type { Flow } from "./types.ts";
import type { FlowSpec } from "./builder_types.ts";

/** A flow whose input and output have types. At run time it is a {@link Flow}. */
export interface TypedFlow<Input = unknown, Output = unknown> extends Flow {
  /** There for the compiler only. */
  readonly "~types"?: { readonly input: Input; readonly output: Output };
}

/** A flow that is not right: all that is wrong with it (code `invalid_flow`). */
export class FlowError extends MailerError {
  /** At least one, in the order of the flow. */
  readonly problems: readonly Problem[];

  /** An error of at least one problem. */
  constructor(name: string, problems: readonly Problem[], options: { readonly hint?: string } = {}) {
    const lines = problems.map(({ label, message, hint }) => {
      return `${label === "" ? "" : `${label}: `}${message}${hint === undefined ? "" : ` (${hint})`}`;
    });
    const list = lines.length === 1 ? lines[0] : `\n${lines.map((line) => `  - ${line}`).join("\n")}`;
    super("invalid_flow", `flow ${JSON.stringify(name)}: ${list}`, options);
    this.problems = problems;
  }
}

/**
 * A flow. Ids of nodes are the keys of `nodes`, in their order; names of nodes are checked by the compiler too.
 * Durations are milliseconds or text such as `30s`. `types` gives input and output a type: `types: {} as { input: Order;
 * output: Receipt }`.
 *
 * @throws {FlowError} `invalid_flow` with everything that is wrong.
 */
export function defineFlow<Id extends string, Input = unknown, Output = unknown>(
  spec: FlowSpec<Id, Input, Output>,
): TypedFlow<Input, Output> {
  const name = typeof spec.name === "string" ? spec.name : "?";
  const problems = new Problems(`flow ${name}`);
  const ids = Object.keys(spec.nodes ?? {});
  problems.nameElements((list, at) => list === "nodes" ? ids[at] : undefined);
  const root = new TreeMaker(problems).flow(spec as unknown as Readonly<Record<string, unknown>>);
  const { flow, problems: found } = flowOf(root, problems);
  if (flow === undefined) throw new FlowError(name, found.map(inCode));
  return flow;
}

/** A problem whose place is named as it is in code. */
function inCode(problem: Problem): Problem {
  const path = problem.label.replace(/^nodes\[\d+\] "([^"]*)"/, "nodes.$1")
    .replace(/(^|\.)([a-z]+(?:_[a-z]+)+)/g, (_, dot: string, field: string) => dot + camelOf(field));
  return { ...problem, ...TOP, path, label: path };
}

/** Makes the tree of a document of what is written in code. Places count on, so that problems come in its order. */
class TreeMaker {
  readonly #problems: Problems;
  #line = 0;

  constructor(problems: Problems) {
    this.#problems = problems;
  }

  flow({ types: _, nodes, ...rest }: Readonly<Record<string, unknown>>): MapNode {
    const map = this.#block(FLOW_FIELDS, rest, []);
    if (nodes === undefined) return map;
    return { ...map, entries: [...map.entries, this.#entry("nodes", () => this.#nodes(nodes))] };
  }

  #nodes(nodes: unknown): DocumentNode {
    if (!isObject(nodes)) return this.#free(nodes, ["nodes"]);
    const items = Object.entries(nodes).map(([id, node], i) => {
      const path = ["nodes", i];
      if (/^(?:0|[1-9]\d*)$/.test(id)) {
        const message = `"${id}" would lose its place: keys that are numbers come first in an object`;
        this.#problems.add(
          this.#place(),
          [...path, "id"],
          "invalid_name",
          message,
          "begin the id with a letter",
        );
      }
      if (!isObject(node)) return this.#free(node, path);
      const { kind, with: settings, ...rest } = node;
      const { fields } = nodeKind(node.type) ?? { fields: {} };
      const all = kind === undefined ? rest : { ...rest, kind };
      const map = this.#block({ ...NODE_FIELDS, ...fields }, { id, ...all }, path);
      if (settings === undefined) return map;
      return {
        ...map,
        entries: [
          ...map.entries,
          this.#entry("with", () => this.#settings(kind, settings, [...path, "with"])),
        ],
      };
    });
    return { kind: "list", place: this.#place(), items };
  }

  #settings(kind: unknown, settings: unknown, path: Path): DocumentNode {
    const known = builtInKind(kind)?.settings;
    return known !== undefined && isObject(settings)
      ? this.#block(known.fields, settings, path)
      : this.#free(settings, path);
  }

  #block(fields: AnyFields, values: Readonly<Record<string, unknown>>, path: Path): MapNode {
    const entries = Object.entries(values).filter(([, value]) => value !== undefined).map(([key, value]) => {
      const name = snakeOf(key);
      const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
      const inside = [...path, name];
      return this.#entry(
        name,
        () => field === undefined ? this.#free(value, inside) : this.#value(field.type, value, inside),
      );
    });
    return { kind: "map", place: this.#place(), entries };
  }

  #value(type: FieldType, value: unknown, path: Path): DocumentNode {
    if (type.kind === "duration" && typeof value === "number" && value >= 0 && Number.isFinite(value)) {
      return this.#scalar(durationText(Math.ceil(value)));
    }
    if (type.kind === "list" && Array.isArray(value)) {
      return {
        kind: "list",
        place: this.#place(),
        items: value.map((item, i) => this.#value(type.of, item, [...path, i])),
      };
    }
    if (type.kind === "map" && isObject(value)) {
      const entries = Object.entries(value).filter(([, item]) => item !== undefined)
        .map(([key, item]) => this.#entry(key, () => this.#value(type.of, item, [...path, key])));
      return { kind: "map", place: this.#place(), entries };
    }
    if (type.kind === "block" && isObject(value)) return this.#block(type.fields, value, path);
    return this.#free(value, path);
  }

  /** A JSON value; reports what is none. */
  #free(value: unknown, path: Path): DocumentNode {
    if (path.length > MAX_DEPTH) return this.#refuse(path, "values are nested too deeply, or in themselves");
    if (Array.isArray(value)) {
      return {
        kind: "list",
        place: this.#place(),
        items: value.map((item, i) => this.#free(item, [...path, i])),
      };
    }
    if (isObject(value)) {
      const entries = Object.entries(value).filter(([, item]) => item !== undefined)
        .map(([key, item]) => this.#entry(key, () => this.#free(item, [...path, key])));
      return { kind: "map", place: this.#place(), entries };
    }
    if (value === null || typeof value === "string" || typeof value === "boolean") return this.#scalar(value);
    if (typeof value === "bigint" || value instanceof Decimal || Number.isFinite(value)) {
      return this.#scalar(exactNumber(String(value))); // as the text of a document is read; −0 is 0 there
    }
    return this.#refuse(path, `${pathText(path.slice(-1))} is no JSON value`);
  }

  #refuse(path: Path, message: string): DocumentNode {
    this.#problems.add(this.#place(), path, "not_json", message);
    return this.#scalar(null);
  }

  #entry(key: string, make: () => DocumentNode): MapEntry {
    return { key, place: this.#place(), value: make() };
  }

  #scalar(value: ScalarNode["value"]): ScalarNode {
    return { kind: "scalar", place: this.#place(), value, style: "plain", raw: String(value) };
  }

  #place(): Place {
    return { line: ++this.#line, column: 1 };
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
