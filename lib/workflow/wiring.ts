/**
 * Wiring of a document's nodes: ids, what reads what, cycles, and what follows from the order of the graph.
 *
 * W1 Order in the document is free: a node may read one that is written behind it.
 * W2 A reading that cannot be resolved is reported once, and silences every rule that would follow from it.
 * W3 A cycle is reported once, at the first `from` of it in the document.
 *
 * @module
 */
import type { OperatorComponent } from "./component.ts";
import { type Draft, idPlace } from "./document.ts";
import type { DraftNode } from "./node.ts";
import type { Path, Place, Problems } from "./problem.ts";
import { childOf } from "./reader.ts";
import { didYouMean } from "./suggest.ts";
import type { DocumentNode } from "./tree.ts";

/** A node with what it reads. */
export interface Wired {
  readonly draft: DraftNode;
  readonly id: string;
  /** What it reads, in the order of the document. */
  inputs: readonly Input[];
  /** Something it reads is not known, or it is in or behind a cycle. */
  broken: boolean;
  /** Nodes that read it. */
  readonly readers: { readonly node: Wired; readonly input: Input }[];
}

/** A reading of a node. */
export interface Input {
  readonly node: Wired;
  readonly output: string | undefined;
  readonly place: Place;
  readonly path: Path;
}

/** All nodes, wired. */
export interface Wiring {
  readonly sources: readonly Wired[];
  readonly operators: readonly Wired[];
  readonly sinks: readonly Wired[];
  /** Sources and operators so that each comes behind what it reads; without those in or behind a cycle. */
  readonly inOrder: readonly Wired[];
  /** Whether every reading of the document could be resolved. */
  readonly whole: boolean;
}

/** The component of an operator, where it is one and its type is known. */
export function operatorOf({ draft }: Wired): OperatorComponent | undefined {
  return draft.component?.kind === "operator" ? draft.component : undefined;
}

/** Names of side outputs of a node; `undefined` where they cannot be known. */
export function sideOutputsOf(node: Wired): readonly string[] | undefined {
  const operator = operatorOf(node);
  if (operator === undefined) return node.draft.role === "operator" ? undefined : [];
  if (operator.sideOutputs === undefined) return [];
  // The outputs of a window do not hang on its block.
  if (node.draft.block === undefined && operator.type !== "window") return undefined;
  return operator.sideOutputs(node.draft.block ?? {});
}

/** Wires the nodes of a draft. */
export function wire(draft: Draft, problems: Problems): Wiring {
  return new Wirer(draft, problems).wire();
}

class Wirer {
  readonly #draft: Draft;
  readonly #problems: Problems;
  readonly #byId = new Map<string, Wired>();
  #whole = true;

  constructor(draft: Draft, problems: Problems) {
    this.#draft = draft;
    this.#problems = problems;
  }

  wire(): Wiring {
    const { sources, operators, sinks, dlq } = this.#draft;
    const wiredSources = sources.map((node) => this.#register(node, "source"));
    const wiredOperators = operators.map((node) => node && this.#register(node, undefined));
    const wiredSinks = sinks.map((node) =>
      this.#register(node, node.path[0] === "sinks" ? undefined : "sink")
    );
    if (dlq !== undefined) this.#register(dlq, "dlq");
    wiredOperators.forEach((node, i) => {
      if (node === undefined) return;
      const before = i === 0 ? wiredSources : [wiredOperators[i - 1]];
      this.#connect(node, before);
    });
    const last = wiredOperators.length > 0 ? [wiredOperators.at(-1)] : wiredSources;
    for (const sink of wiredSinks) this.#connect(sink, last);
    const known = wiredOperators.filter((node) => node !== undefined);
    const inOrder = this.#order([...wiredSources, ...known]);
    return { sources: wiredSources, operators: known, sinks: wiredSinks, inOrder, whole: this.#whole };
  }

  #register(draft: DraftNode, defaultId: string | undefined): Wired {
    const id = draft.id ?? defaultId;
    const node: Wired = { draft, id: id ?? "", inputs: [], broken: false, readers: [] };
    if (id === undefined) return node; // reported when it was read
    const other = this.#byId.get(id);
    if (other === undefined) this.#byId.set(id, node);
    else {
      const { place, path } = idPlace(draft, this.#draft.root);
      const where = `${other.draft.role} in line ${other.draft.place.line}`;
      this.#problems.add(place, path, "duplicate_id", `the id "${id}" is taken by the ${where}`);
    }
    return node;
  }

  /** Finds what a node reads: what it says, else what stands before it. */
  #connect(node: Wired, before: readonly (Wired | undefined)[]): void {
    const { draft } = node;
    const ways = this.#namedInputs(node);
    if (ways === undefined) this.#break(node);
    else if (ways.length > 0) {
      const inputs = ways.map(({ at, path }) => this.#resolve(node, at, path));
      node.inputs = inputs.filter((input) => input !== undefined);
      if (node.inputs.length < inputs.length) this.#break(node);
    } else if (before.length > 1) {
      const names = before.map((one) => one?.id).join(", ");
      const message = "there are several sources, so it has to say which it reads";
      this.#problems.add(
        draft.typePlace,
        [...draft.path, "from"],
        "missing",
        message,
        `from: one of ${names}`,
      );
      this.#break(node);
    } else {
      const [input] = before;
      if (input === undefined) this.#break(node);
      else {
        const path = [...draft.path, "from"];
        if (this.#readsRouteItself(input, draft.typePlace, path)) this.#break(node);
        else node.inputs = [{ node: input, output: undefined, place: draft.typePlace, path }];
      }
    }
    for (const input of node.inputs) input.node.readers.push({ node, input });
  }

  #break(node: Wired): void {
    node.broken = true;
    this.#whole = false;
  }

  /** Texts that name inputs; none = the default; `undefined` where they could not be read. */
  #namedInputs({ draft }: Wired): readonly { readonly at: DocumentNode; readonly path: Path }[] | undefined {
    const from = childOf(draft.map, "from"), fromPath = [...draft.path, "from"];
    if (operatorOf({ draft } as Wired)?.type === "join") return this.#joinInputs(draft, from);
    if (from === undefined) return [];
    if (draft.fields.from === undefined) return undefined;
    if (from.kind !== "list") return [{ at: from, path: fromPath }];
    return from.items.map((at, i) => ({ at, path: [...fromPath, i] }));
  }

  #joinInputs(
    draft: DraftNode,
    from: DocumentNode | undefined,
  ): readonly { readonly at: DocumentNode; readonly path: Path }[] | undefined {
    const { block, path } = draft;
    const written = childOf(draft.map, "join");
    if (block === undefined || written?.kind !== "map") return undefined;
    const names = block.left === undefined ? ["leftSource", "rightSource"] : ["left", "right"];
    // The older format may name sources that records carry, and not nodes; then it reads what every operator reads.
    const ofRecords = block.left === undefined && !names.some((name) => this.#byId.has(String(block[name])));
    if (ofRecords) return from === undefined ? [] : [{ at: from, path: [...path, "from"] }];
    if (from !== undefined) {
      const message = "a join names its inputs itself, as left and right";
      this.#problems.add(from.place, [...path, "from"], "excluded", message);
    }
    return names.map((name) => ({ at: childOf(written, name)!, path: [...path, "join", name] }));
  }

  #resolve(node: Wired, at: DocumentNode, path: Path): Input | undefined {
    if (at.kind !== "scalar" || typeof at.value !== "string" || at.reference?.unset === true) {
      return undefined;
    }
    const text = at.value, place = at.place, point = text.lastIndexOf(".");
    const whole = this.#byId.get(text);
    const target = whole ?? (point === -1 ? undefined : this.#byId.get(text.slice(0, point)));
    const output = whole !== undefined || target === undefined ? undefined : text.slice(point + 1);
    if (target === undefined) {
      const hint = didYouMean(text, this.#readable(node));
      this.#problems.add(place, path, "unknown_node", `there is no source or operator "${text}"`, hint);
      return undefined;
    }
    if (target.draft.role === "sink" || target.draft.role === "dlq") {
      const message = `"${text}" is a ${target.draft.role}, which nothing can read`;
      this.#problems.add(place, path, "not_readable", message);
      return undefined;
    }
    if (output === undefined) {
      if (this.#readsRouteItself(target, place, path)) return undefined;
    } else {
      const outputs = sideOutputsOf(target);
      if (outputs !== undefined && !outputs.includes(output)) {
        const own = outputs.map((name) => `${target.id}.${name}`);
        const message = `"${target.id}" has no output "${output}"`;
        const hint = outputs.length === 0 ? `read "${target.id}" itself` : didYouMean(text, own);
        this.#problems.add(place, path, "unknown_output", message, hint ?? `one of: ${own.join(", ")}`);
        return undefined;
      }
    }
    return { node: target, output, place, path };
  }

  #readsRouteItself(target: Wired, place: Place, path: Path): boolean {
    if (operatorOf(target)?.namedOutputsOnly !== true) return false;
    const outputs = (sideOutputsOf(target) ?? []).map((name) => `${target.id}.${name}`);
    const hint = outputs.length === 0 ? undefined : `from: ${outputs.join(" or ")}`;
    const message = `the route "${target.id}" has only named outputs`;
    this.#problems.add(place, path, "reads_route", message, hint);
    return true;
  }

  /** Everything a node may read, for suggestions. */
  #readable(node: Wired): string[] {
    const names: string[] = [];
    for (const [id, other] of this.#byId) {
      if (other === node || other.draft.role === "sink" || other.draft.role === "dlq") continue;
      if (operatorOf(other)?.namedOutputsOnly !== true) names.push(id);
      for (const output of sideOutputsOf(other) ?? []) names.push(`${id}.${output}`);
    }
    return names;
  }

  /** Nodes in the order of the graph; reports cycles, and marks what is in or behind one. */
  #order(nodes: readonly Wired[]): readonly Wired[] {
    const waiting = new Map(nodes.map((node) => [node, node.inputs.length]));
    const inOrder = nodes.filter((node) => node.inputs.length === 0);
    for (const node of inOrder) { // grows as nodes become ready
      waiting.delete(node);
      for (const { node: reader } of node.readers) {
        const left = waiting.get(reader);
        if (left === undefined) continue;
        waiting.set(reader, left - 1);
        if (left === 1) inOrder.push(reader);
      }
    }
    const stuck = new Set(nodes.filter((node) => waiting.has(node)));
    for (const node of stuck) node.broken = true;
    if (stuck.size > 0) this.#whole = false;
    this.#reportCycles(stuck);
    return inOrder;
  }

  /** Walks from each stuck node to what it reads until a node comes again. */
  #reportCycles(stuck: ReadonlySet<Wired>): void {
    const done = new Set<Wired>();
    for (const start of stuck) {
      const walk: Wired[] = [], onWalk = new Map<Wired, number>();
      let node: Wired | undefined = start;
      while (node !== undefined && !done.has(node) && !onWalk.has(node)) {
        onWalk.set(node, walk.length);
        walk.push(node);
        node = node.inputs.find((input) => stuck.has(input.node))?.node;
      }
      for (const one of walk) done.add(one);
      const from = node === undefined ? undefined : onWalk.get(node);
      if (from !== undefined) this.#reportCycle(walk.slice(from));
    }
  }

  #reportCycle(members: readonly Wired[]): void {
    const inside = new Set(members);
    const inputs = members.flatMap((node) => node.inputs.filter((input) => inside.has(input.node)));
    const [first] = inputs.toSorted((a, b) => a.place.line - b.place.line || a.place.column - b.place.column);
    const reader = members.find((node) => node.inputs.includes(first!))!;
    const at = members.indexOf(reader);
    const ring = [...members.slice(at), ...members.slice(0, at), reader].map((node) => `"${node.id}"`);
    const message = ring.length === 2 ? `${ring[0]} reads itself` : `a cycle: ${ring.join(" reads ")}`;
    this.#problems.add(first!.place, first!.path, "cycle", message);
  }
}
