/**
 * The nodes of a flow seen together.
 *
 * G1 Ids are unique, and every node that is named exists. Nothing leads straight to itself by `next` or `on_failure`.
 * G2 A fan-out leads to a join, and a join closes exactly one fan-out. Branches are tasks and subflows, each of one
 *    fan-out, with no way on of their own. Nothing else leads into a branch or a join.
 * G3 A join waits for branches of its fan-out, and for no more of them than there are.
 * G4 An execution begins at `start`, or at the one node that nothing leads to; never at a branch or a join.
 * G5 Every node can be reached from there, and from every node an end can be reached; a loop that has none needs a limit
 *    that somebody chose: `max_steps`, `budget` or `deadline`.
 * G6 What would only follow from another problem is not reported: G2 and G3 are looked at once G1 holds, G5 once all
 *    others do.
 *
 * @module
 */
import type { Path, Problems } from "../../workflow/problem.ts";
import { TOP } from "../../workflow/problem.ts";
import { childOf, nodeAt } from "../../workflow/reader.ts";
import { Meant } from "./near.ts";
import { neededOf } from "./node_kinds.ts";
import type { Draft, DraftNode } from "./read.ts";
import { END, type FlowNode, type JoinNode } from "./types.ts";

/** A way from one node to another: the field that names it. */
interface Way {
  /** Position of the node it begins at. */
  readonly from: number;
  readonly to: string;
  readonly field: Path;
}

/** Checks everything that concerns more than one node. Gives the start where that can be told. */
export function checkGraph(draft: Draft, problems: Problems): string | undefined {
  const { nodes, flow } = draft;
  const before = problems.size;
  const ids = checkIds(nodes, problems);
  const right = nodes.flatMap(({ node }, at) => node === undefined ? [] : [{ node, at }]);
  const ways = right.flatMap(({ node, at }) => waysOf(node).map((way) => ({ ...way, from: at })));
  const graph = new Graph(draft, ids, ways, problems);
  graph.checkNames();
  const start = typeof flow.start === "string" ? flow.start : undefined;
  if (start !== undefined && !ids.has(start)) graph.reportUnknown(start, ["start"]);
  if (problems.size > before || right.length < nodes.length || nodes.length === 0) return undefined;
  graph.checkBranches();
  graph.checkJoins();
  const begin = graph.checkStart(start);
  if (problems.size > before || begin === undefined) return undefined;
  graph.checkReach(begin);
  if (problems.size === before) graph.checkExits();
  return begin;
}

/** Positions by id; reports ids that stand there twice. */
function checkIds(nodes: readonly DraftNode[], problems: Problems): ReadonlyMap<string, number> {
  const ids = new Map<string, number>();
  nodes.forEach(({ id, place, path }, at) => {
    if (id === undefined) return;
    const first = ids.get(id);
    if (first === undefined) ids.set(id, at);
    else {
      const message = `there is a node "${id}" already, in line ${nodes[first]!.place.line}`;
      problems.add(place, [...path, "id"], "duplicate_id", message);
    }
  });
  return ids;
}

/** All ways out of a node. */
function waysOf(node: FlowNode): Omit<Way, "from">[] {
  const ways: Omit<Way, "from">[] = [];
  const add = (to: string | undefined, ...field: Path) => {
    if (to !== undefined && to !== END) ways.push({ to, field });
  };
  if (node.type === "choice") node.rules.forEach(({ to }, i) => add(to, "rules", i, "to"));
  else if (node.type !== "fail") add(node.next, "next");
  if (node.type === "fanout") node.branches.forEach((branch, i) => add(branch, "branches", i));
  if (node.type === "task") node.dynamic.forEach((to, i) => add(to, "dynamic", i));
  if (node.type === "await") add(node.onTimeout, "on_timeout");
  if ("onFailure" in node) add(node.onFailure, "on_failure");
  return ways;
}

class Graph {
  readonly #draft: Draft;
  readonly #ids: ReadonlyMap<string, number>;
  readonly #ways: readonly Way[];
  readonly #problems: Problems;
  readonly #names: ReadonlySet<string>;
  readonly #meant = new Meant();
  /** All nodes; to be read once it is known that each is right. */
  readonly #nodes: readonly FlowNode[];
  /** Fan-out of each branch, by id. */
  readonly #fanoutOf = new Map<string, string>();
  /** Fan-out closed by each join, by id. */
  readonly #closes = new Map<string, string>();

  constructor(draft: Draft, ids: ReadonlyMap<string, number>, ways: readonly Way[], problems: Problems) {
    this.#draft = draft;
    this.#ids = ids;
    this.#names = new Set(ids.keys());
    this.#ways = ways;
    this.#problems = problems;
    this.#nodes = draft.nodes.map(({ node }) => node!);
  }

  #node(id: string): FlowNode {
    return this.#nodes[this.#ids.get(id)!]!;
  }

  /** Reports at a field of a node, or at what is around it where that is not there. */
  #report(at: number | string, field: Path, code: string, message: string, hint?: string): void {
    const draft = this.#draft.nodes[typeof at === "number" ? at : this.#ids.get(at)!]!;
    const place = nodeAt(draft.map, field)?.place ?? draft.place;
    this.#problems.add(place, [...draft.path, ...field], code, message, hint);
  }

  /** G1 */
  checkNames(): void {
    for (const { from, to, field } of this.#ways) {
      if (!this.#ids.has(to)) this.reportUnknown(to, field, from);
      else if (to === this.#draft.nodes[from]!.id && NOT_TO_ITSELF.has(String(field[0]))) {
        this.#report(from, field, "self_route", `${String(field[0])} leads to the node itself`);
      }
    }
    this.#draft.nodes.forEach(({ node }, at) => {
      if (node?.type === "join") {
        node.waitFor?.forEach((branch, i) => {
          if (!this.#ids.has(branch)) this.reportUnknown(branch, ["wait_for", i], at);
        });
      }
    });
  }

  reportUnknown(name: string, field: Path, from?: number): void {
    const message = `there is no node "${name}"`;
    const hint = this.#meant.hint(name, this.#names);
    if (from !== undefined) this.#report(from, field, "unknown_node", message, hint);
    else {
      const place = nodeAt(this.#draft.root, field)?.place ?? TOP;
      this.#problems.add(place, field, "unknown_node", message, hint);
    }
  }

  /** G2, as far as it concerns branches */
  checkBranches(): void {
    this.#nodes.forEach((node, at) => {
      if (node.type !== "fanout") return;
      node.branches.forEach((branch, i) => {
        const other = this.#fanoutOf.get(branch);
        if (other !== undefined) {
          const message = `"${branch}" is a branch of "${other}" already`;
          this.#report(at, ["branches", i], "branch_twice", message, "make a node for each");
          return;
        }
        if (this.#checkBranch(branch, node.id, at, i)) this.#fanoutOf.set(branch, node.id);
      });
    });
  }

  /** Whether a node can be a branch at all. */
  #checkBranch(branch: string, fanout: string, at: number, i: number): boolean {
    const { type } = this.#node(branch);
    if (type !== "task" && type !== "subflow") {
      const message = `"${branch}" is ${article(type)}, a branch is a task or a subflow`;
      const hint = "put what the branch does into a flow of its own, and a subflow here";
      this.#report(at, ["branches", i], "bad_branch", message, hint);
      return false;
    }
    const { map } = this.#draft.nodes[this.#ids.get(branch)!]!;
    for (const field of ["next", "dynamic", "on_failure"]) {
      if (map === undefined || childOf(map, field) === undefined) continue;
      const message = `"${branch}" is a branch of "${fanout}", which has no ${field} of its own`;
      this.#report(branch, [field], "branch_route", message, "the join says how it goes on");
    }
    return true;
  }

  /** The rest of G2, and G3 */
  checkJoins(): void {
    this.#nodes.forEach((node, at) => {
      if (node.type !== "fanout") return;
      const join = this.#node(node.next);
      if (join.type !== "join") {
        this.#report(
          at,
          ["next"],
          "no_join",
          `"${join.id}" is ${article(join.type)}, a fan-out leads to a join`,
        );
        return;
      }
      const other = this.#closes.get(join.id);
      if (other !== undefined) {
        const message = `"${join.id}" closes "${other}" already`;
        this.#report(at, ["next"], "join_twice", message, "give each fan-out a join of its own");
      } else {
        this.#closes.set(join.id, node.id);
        this.#checkAwaited(join, node.id, node.branches);
      }
    });
    const led = new Set(this.#nodes.map((node) => node.type === "fanout" ? node.next : undefined));
    for (const node of this.#nodes) {
      if (node.type === "join" && !led.has(node.id)) {
        const message = `no fan-out leads to the join "${node.id}"`;
        this.#report(node.id, ["id"], "join_without_fanout", message, "name it as next of a fan-out");
      }
    }
    this.#checkWaysIn();
  }

  #checkAwaited(join: JoinNode, fanout: string, branches: readonly string[]): void {
    join.waitFor?.forEach((name, i) => {
      if (branches.includes(name)) return;
      const message = `"${name}" is no branch of "${fanout}"`;
      this.#report(
        join.id,
        ["wait_for", i],
        "unknown_branch",
        message,
        this.#meant.hint(name, new Set(branches)),
      );
    });
    const awaited = join.waitFor?.length ?? branches.length;
    const needed = neededOf(join.policy, awaited);
    if (needed > awaited) {
      const message = `${needed} branches have to succeed, and ${awaited} are waited for`;
      this.#report(join.id, ["policy"], "quorum_too_high", message);
    }
  }

  #checkWaysIn(): void {
    for (const { from, to, field } of this.#ways) {
      const branchOf = this.#fanoutOf.get(to);
      const how = String(field[0]);
      if (branchOf !== undefined && how !== "branches") {
        this.#report(
          from,
          field,
          "into_branch",
          `"${to}" is a branch of "${branchOf}": only that leads into it`,
        );
      } else if (
        this.#node(to).type === "join" && !(how === "next" && this.#nodes[from]!.type === "fanout")
      ) {
        if (how === "branches") continue; // reported as a bad branch
        this.#report(from, field, "into_join", `"${to}" is a join: only its fan-out leads into it`);
      }
    }
  }

  /** G4. The node executions begin with. */
  checkStart(start: string | undefined): string | undefined {
    if (start !== undefined) return this.#checkGivenStart(start);
    const led = new Set(this.#ways.map(({ to }) => to));
    // A join that nothing leads to has been reported.
    const candidates = this.#nodes.filter(({ id, type }) => !led.has(id) && type !== "join");
    if (candidates.length === 1) return candidates[0]!.id;
    const hint = "say which node it is: start: …";
    if (candidates.length > 1) {
      const names = candidates.map(({ id }) => `"${id}"`);
      const shown = names.length > 8 ? [...names.slice(0, 8), `${names.length - 8} more`] : names;
      const message = `it is not clear where it starts: nothing leads to ${shown.join(", ")}`;
      this.#problems.add(TOP, ["start"], "several_starts", message, hint);
    } else {
      const message = `it is not clear where it starts: something leads to every node (${this.#waysIn()})`;
      this.#problems.add(TOP, ["start"], "no_start", message, hint);
    }
    return undefined;
  }

  #waysIn(): string {
    const texts = this.#nodes.slice(0, 8).map(({ id }) => {
      const from = new Set(this.#ways.filter(({ to }) => to === id).map((way) => this.#nodes[way.from]!.id));
      return `${[...from].slice(0, 4).join(", ")} → ${id}`;
    });
    return this.#nodes.length > 8 ? `${texts.join("; ")}; …` : texts.join("; ");
  }

  #checkGivenStart(start: string): string | undefined {
    const place = childOf(this.#draft.root, "start")?.place ?? TOP;
    const branchOf = this.#fanoutOf.get(start);
    if (branchOf !== undefined) {
      const message = `"${start}" is a branch of "${branchOf}", it cannot start`;
      this.#problems.add(place, ["start"], "bad_start", message, `start: ${branchOf} begins all branches`);
    } else if (this.#node(start).type === "join") {
      this.#problems.add(place, ["start"], "bad_start", `"${start}" is a join, it cannot start`);
    } else return start;
    return undefined;
  }

  /** G5: nothing is out of reach. Of nodes out of reach that lead to each other, the first is named. */
  checkReach(start: string): void {
    const reached = this.#from([start]);
    const left = this.#nodes.filter(({ id }) => !reached.has(id));
    const roots = left.filter(({ id }) => {
      return !this.#ways.some((way) => way.to === id && !reached.has(this.#nodes[way.from]!.id));
    });
    const told = this.#from(roots.map(({ id }) => id));
    const report = (id: string) => {
      this.#report(id, ["id"], "unreachable", `nothing leads from the start "${start}" to "${id}"`);
    };
    roots.forEach(({ id }) => report(id));
    for (const { id } of left) {
      if (told.has(id)) continue;
      report(id);
      for (const other of this.#from([id])) told.add(other);
    }
  }

  /** All that can be reached from some nodes, with themselves. */
  #from(starts: readonly string[]): Set<string> {
    const reached = new Set(starts), open = [...starts];
    const ways = this.#waysByNode();
    for (let id = open.pop(); id !== undefined; id = open.pop()) {
      for (const to of ways.get(id) ?? []) {
        if (!reached.has(to)) open.push(to);
        reached.add(to);
      }
    }
    return reached;
  }

  #byNode: ReadonlyMap<string, readonly string[]> | undefined;
  #waysByNode(): ReadonlyMap<string, readonly string[]> {
    if (this.#byNode === undefined) {
      const byNode = new Map<string, string[]>();
      for (const { from, to } of this.#ways) {
        listAt(byNode, this.#nodes[from]!.id).push(to);
      }
      this.#byNode = byNode;
    }
    return this.#byNode;
  }

  /** G5: no loop without an exit. */
  checkExits(): void {
    const { root } = this.#draft;
    if (["max_steps", "budget", "deadline"].some((limit) => childOf(root, limit) !== undefined)) return;
    const stuck = this.#withoutExit();
    const told = new Set<string>();
    for (const { id } of this.#nodes) {
      if (!stuck.has(id) || told.has(id)) continue;
      const loop = this.#loopFrom(id, stuck);
      if (!loop.some((one) => told.has(one))) {
        const message = `the loop ${[...loop, loop[0]].slice(0, 9).join(" → ")} has no way out`;
        const hint = `lead out of it, or set max_steps, budget or deadline if it is to end by that`;
        this.#report(loop[0]!, ["id"], "no_exit", message, hint);
      }
      for (const one of [id, ...loop]) told.add(one);
    }
  }

  /** Nodes from which no end can be reached. */
  #withoutExit(): ReadonlySet<string> {
    const back = new Map<string, string[]>();
    const add = (from: string, to: string) => listAt(back, to).push(from);
    for (const { from, to } of this.#ways) add(this.#nodes[from]!.id, to);
    for (const [branch, fanout] of this.#fanoutOf) {
      const node = this.#node(fanout);
      if (node.type === "fanout") add(branch, node.next);
    }
    const ends = this.#nodes.filter((node) => this.#mayEnd(node)).map(({ id }) => id);
    const fine = new Set(ends);
    for (let id = ends.pop(); id !== undefined; id = ends.pop()) {
      for (const from of back.get(id) ?? []) {
        if (!fine.has(from)) ends.push(from);
        fine.add(from);
      }
    }
    return new Set(this.#nodes.map(({ id }) => id).filter((id) => !fine.has(id)));
  }

  /** Whether an execution may end at a node, as the author wants it. */
  #mayEnd(node: FlowNode): boolean {
    switch (node.type) {
      case "fail":
        return true;
      case "fanout":
        return false;
      case "choice":
        return node.rules.some(({ to }) => to === END);
      case "await":
        return node.next === undefined || node.onTimeout === undefined;
      default:
        return node.next === undefined && !this.#fanoutOf.has(node.id);
    }
  }

  /** A loop that can be reached from a node none of whose ways end; it begins with its first node in the document. */
  #loopFrom(id: string, stuck: ReadonlySet<string>): readonly string[] {
    const seen = new Set<string>();
    let at = id;
    while (!seen.has(at)) {
      seen.add(at);
      const branchOf = this.#fanoutOf.get(at);
      const ways = branchOf === undefined ? this.#waysByNode().get(at)! : this.#waysByNode().get(branchOf)!;
      at = ways.find((to) => stuck.has(to) && !this.#fanoutOf.has(to))!;
    }
    const walked = [...seen], loop = walked.slice(walked.indexOf(at));
    const first = loop.reduce((a, b) => this.#ids.get(a)! < this.#ids.get(b)! ? a : b);
    const cut = loop.indexOf(first);
    return [...loop.slice(cut), ...loop.slice(0, cut)];
  }
}

const NOT_TO_ITSELF: ReadonlySet<string> = new Set(["next", "on_failure"]);

function listAt(lists: Map<string, string[]>, key: string): string[] {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  return list;
}

function article(type: string): string {
  return /^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`;
}
