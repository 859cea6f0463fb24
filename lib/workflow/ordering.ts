/**
 * What follows from the order of the graph: where there is a key, where there are windows, and who needs them.
 *
 * O1 Keyed means: every way from a source passes a `keyBy`. A union has no key, whatever its inputs have.
 * O2 A window is followed directly by what makes rows of it.
 * O3 Nothing is said about nodes behind a reading that could not be resolved.
 *
 * @module
 */
import { parsePath } from "../path.ts";
import type { Problems } from "./problem.ts";
import { childOf, nodeAt } from "./reader.ts";
import { type Input, operatorOf, type Wired, type Wiring } from "./wiring.ts";

/** What is known of the records that leave a node. */
export interface Flow {
  /** The `keyBy` whose key they carry; `undefined` = none. */
  readonly keyedBy: Wired | undefined;
  /** Whether they may be rows of a window over time. */
  readonly windowed: boolean;
  /** Whether the key and the rest are known at all. */
  readonly known: boolean;
}

const UNKNOWN: Flow = { keyedBy: undefined, windowed: true, known: false };

/** What is known of each node's records; nodes in or behind a cycle are missing. */
export type Flows = ReadonlyMap<Wired, Flow>;

/** Checks the order of the graph, and tells what it says of each node's records. */
export function checkOrder(wiring: Wiring, problems: Problems): Flows {
  const flows = new Map<Wired, Flow>();
  for (const node of wiring.inOrder) {
    flows.set(node, flowOf(node, flows));
    if (node.draft.role === "operator" && !node.broken) checkNeeds(node, flows, problems);
  }
  for (const node of wiring.operators) {
    if (operatorOf(node)?.type === "window") checkReaders(node, wiring, problems);
  }
  return flows;
}

/** What is known of the records a node reads. */
export function flowInto(node: Wired, flows: Flows): Flow {
  const { inputs } = node, first = inputs[0] && flows.get(inputs[0].node);
  if (node.broken || first === undefined) return UNKNOWN;
  if (inputs.length === 1) return first;
  const all = inputs.map((input) => flows.get(input.node) ?? UNKNOWN);
  return {
    keyedBy: undefined,
    windowed: all.some((flow) => flow.windowed),
    known: all.every((flow) => flow.known),
  };
}

function flowOf(node: Wired, flows: Flows): Flow {
  if (node.draft.role === "source") return { keyedBy: undefined, windowed: false, known: !node.broken };
  const component = operatorOf(node);
  if (node.broken || component === undefined) return UNKNOWN;
  const into = flowInto(node, flows);
  switch (component.type) {
    case "keyBy":
      return { ...into, keyedBy: node, known: true };
    case "join": {
      const left = flows.get(node.inputs[0]!.node) ?? UNKNOWN;
      const block = node.draft.block as { readonly type?: string } | undefined;
      return { ...into, keyedBy: left.keyedBy, windowed: into.windowed || block?.type === "window" };
    }
    default:
      return component.endsWindow === true && windowOverTime(node) ? { ...into, windowed: true } : into;
  }
}

/** Whether a node reads a window over time directly. */
function windowOverTime(node: Wired): boolean {
  return node.inputs.some(({ node: input, output }) => {
    if (output !== undefined || operatorOf(input)?.type !== "window") return false;
    const block = input.draft.block as { readonly type: string } | undefined;
    return block === undefined || (block.type !== "count" && block.type !== "global");
  });
}

function isWindow({ node, output }: Input): boolean {
  return output === undefined && operatorOf(node)?.type === "window";
}

function checkNeeds(node: Wired, flows: Flows, problems: Problems): void {
  const component = operatorOf(node);
  if (component === undefined) return;
  const { path, typePlace } = node.draft, { type } = component;
  if (component.needsWindow === true && !node.inputs.some(isWindow)) {
    const message = `${type} needs a window directly in front of it`;
    problems.add(typePlace, path, "needs_window", message, "read a window");
    return;
  }
  if (type === "join") return checkJoin(node, flows, problems);
  if (component.needsKey !== true) return;
  const into = flowInto(node, flows);
  if (into.known && into.keyedBy === undefined) {
    const message = node.inputs.length > 1
      ? `${type} needs a keyBy in front of it: a union has no key`
      : `${type} needs a keyBy in front of it`;
    problems.add(typePlace, path, "needs_key", message, `put a keyBy in front of "${node.id}"`);
  } else if (type === "window") checkRunningResult(node, problems);
  else if (type === "reduce" || type === "aggregate") checkTtl(node, problems);
}

/** A join of nodes needs a key on both sides, or the keys that sources read with their records. */
function checkJoin(node: Wired, flows: Flows, problems: Problems): void {
  for (const input of node.inputs) {
    const flow = flows.get(input.node) ?? UNKNOWN;
    if (!flow.known || flow.keyedBy !== undefined || input.node.draft.role === "source") continue;
    const message = `join needs a keyBy in front of "${input.node.id}"`;
    problems.add(input.place, input.path, "needs_key", message, "both sides of a join have a key");
  }
}

/** The state of a window ends with the window. */
function checkTtl(node: Wired, problems: Problems): void {
  const { block, map, path, typePlace } = node.draft, { type } = operatorOf(node)!;
  if (block?.ttl === undefined || !node.inputs.some(isWindow)) return;
  const message = `${type} takes no ttl behind a window, which is forgotten when it closes`;
  const place = nodeAt(map, [type, "ttl"])?.place ?? typePlace;
  problems.add(place, [...path, type, "ttl"], "ttl_behind_window", message, "leave it out");
}

/** A window over running results would count every intermediate row; it needs a key of its own. */
function checkRunningResult(window: Wired, problems: Problems): void {
  let node = window;
  while (node.inputs.length === 1) {
    const { node: before } = node.inputs[0]!;
    const type = operatorOf(before)?.type;
    if (type === "reduce" || type === "aggregate") {
      if (before.inputs.some(isWindow)) return;
      const message =
        `a window cannot follow the running results of ${type} "${before.id}" under the same key`;
      const hint = `put the window in front of "${before.id}", or a keyBy behind it`;
      problems.add(window.draft.typePlace, window.draft.path, "window_after_reduce", message, hint);
      return;
    }
    if (type === undefined || type === "keyBy") return;
    node = before;
  }
}

function checkReaders(window: Wired, wiring: Wiring, problems: Problems): void {
  const readers = window.readers.filter(({ input }) => input.output === undefined);
  for (const { node } of readers) {
    const component = operatorOf(node);
    if (node.draft.role === "operator" && (component === undefined || component.endsWindow === true)) {
      continue;
    }
    const what = node.draft.component?.type ?? node.draft.role;
    const message = `${what} cannot stand directly behind the window "${window.id}"`;
    const hint = node.draft.role === "sink" ? readInstead(window) : undefined;
    problems.add(node.draft.typePlace, node.draft.path, "after_window", message, hint ?? FOLLOWS_WINDOW);
  }
  if (readers.length === 0 && wiring.whole) {
    const message = "a window needs reduce, aggregate, topN or process behind it";
    problems.add(window.draft.typePlace, window.draft.path, "window_without_result", message);
  }
}

const FOLLOWS_WINDOW =
  "reduce, aggregate, topN or process follows a window; filter and map go in front of it";

/** What a sink reads that means the rows of a window: the operators that make them, where there are any. */
function readInstead(window: Wired): string | undefined {
  const makers = window.readers.filter(({ node, input }) => {
    return input.output === undefined && operatorOf(node)?.endsWindow === true;
  });
  if (makers.length === 0) return undefined;
  const names = makers.map(({ node }) => node.id).join(" or ");
  return `a window has no rows of its own: from: ${names} reads those made in it`;
}

/** Names that rows of an aggregation have besides its results. */
export function checkResultNames(wiring: Wiring, flows: Flows, problems: Problems): void {
  for (const node of wiring.operators) {
    const { block, map, path } = node.draft, type = operatorOf(node)?.type;
    if (block === undefined || (type !== "reduce" && type !== "aggregate")) continue;
    const written = childOf(map, type)!;
    const taken = [{ name: "window", what: "the row's window" }, ...keyNames(node, flows)];
    const single = type === "reduce";
    const results = single ? [block] : block.functions as readonly Readonly<Record<string, unknown>>[];
    results.forEach((result, i) => {
      const name = result.as as string;
      const other = taken.find((one) => overlap(one.name, name));
      taken.push({ name, what: "another result" });
      if (other === undefined) return;
      const functions = single ? undefined : childOf(written.kind === "map" ? written : map, "functions");
      const at = functions?.kind === "list" ? functions.items[i]! : written;
      const asNode = at.kind === "map" ? childOf(at, "as") ?? childOf(at, "function") : undefined;
      const asPath = single ? [...path, type, "as"] : [...path, type, "functions", i, "as"];
      const message = `the result "${name}" has the name of ${other.what}${
        other.name === name ? "" : ` "${other.name}"`
      }`;
      problems.add(asNode?.place ?? at.place, asPath, "name_taken", message, "give it another name with as");
    });
  }
}

function keyNames(node: Wired, flows: Flows): { name: string; what: string }[] {
  const { keyedBy } = flowInto(node, flows);
  const block = keyedBy?.draft.block as { field?: string; fields?: readonly string[] } | undefined;
  if (block === undefined) return [];
  const names = block.field !== undefined ? [block.field] : block.fields ?? ["key"];
  return names.map((name) => ({ name, what: "the key" }));
}

/** Whether two field paths name the same field, or one inside the other. */
function overlap(a: string, b: string): boolean {
  const [left, right] = [parsePath(a), parsePath(b)];
  const shared = Math.min(left.length, right.length);
  return left.slice(0, shared).every((step, i) => step === right[i]);
}
