/**
 * Moving a running execution to another version of its flow.
 *
 * Everything that is open has to mean the same there: nodes of the same type, under the same or a mapped name. What does
 * not fit is said before anything happens.
 *
 * @module
 */
import type { Channel, CompiledFlow, FlowNode } from "../definition/types.ts";
import type { CommandOf } from "./commands.ts";
import { Decision } from "./decision.ts";
import { type NodeNames, renamed } from "./rename.ts";
import { hasEnded, type State } from "./state.ts";
import { refused, type Verdict, wrongVersion } from "./verdict.ts";

/**
 * What keeps an execution from going on by another version; empty where nothing does.
 *
 * @param from Version it runs on.
 * @param to Version it is to run on.
 */
export function migrationProblems(
  from: CompiledFlow,
  to: CompiledFlow,
  state: State,
  names: NodeNames = {},
): string[] {
  if (from.definition.name !== to.definition.name) {
    return [`"${to.definition.name}" is another flow than "${from.definition.name}"`];
  }
  const nameProblems = Object.entries(names).flatMap(([old, name]) => nameProblem(from, to, old, name));
  if (nameProblems.length > 0) return nameProblems;
  return [
    ...channelProblems(from, to, state),
    ...openNodes(state).flatMap((id) => nodeProblems(from, to, id, names)),
    ...state.held.flatMap((id) =>
      id === "$end" || to.nodes.has(renamed(names, id))
        ? []
        : [`the way on leads to "${id}", which is not there`]
    ),
  ];
}

/**
 * Decides a migration.
 *
 * @param now ms since the epoch.
 */
export function decideMigration(
  from: CompiledFlow,
  to: CompiledFlow,
  state: State,
  command: CommandOf<"migrate">,
  now: number,
): Verdict {
  const { flow_hash, nodes } = command.data;
  if (flow_hash !== to.hash) return refused("invalid", `the version "${flow_hash}" is not the one given`);
  if (hasEnded(state)) return refused("rejected", `"${state.execId}" has ended`);
  const wrong = wrongVersion(state.flowHash === to.hash ? to : from, state);
  if (wrong !== undefined) return wrong;
  const decision = new Decision(to, state, command, now);
  if (state.flowHash === to.hash) return decision.outcome();
  const problems = migrationProblems(from, to, state, nodes);
  if (problems.length > 0) return refused("rejected", problems.join("; "));
  decision.emit("ExecutionMigrated", { flow_hash, ...(nodes === undefined ? {} : { nodes }) });
  return decision.outcome();
}

function nameProblem(from: CompiledFlow, to: CompiledFlow, old: string, name: string): string[] {
  if (!from.nodes.has(old)) return [`there is no node "${old}" to rename`];
  return to.nodes.has(name) ? [] : [`there is no node "${name}" to become of "${old}"`];
}

function channelProblems(from: CompiledFlow, to: CompiledFlow, state: State): string[] {
  return state.channels.keys().flatMap((name) => {
    const before = channelOf(from, name), after = channelOf(to, name);
    if (after === undefined) return [`the channel "${name}" is not there`];
    return before?.reducer === after.reducer ? [] : [`the channel "${name}" has another reducer`];
  });
}

function channelOf({ definition: { channels } }: CompiledFlow, name: string): Channel | undefined {
  return Object.hasOwn(channels, name) ? channels[name] : undefined;
}

function openNodes(state: State): string[] {
  const { tasks, children, fans, maps, awaits, sleeps } = state;
  const open = [
    ...tasks.values(),
    ...children.values(),
    ...fans.values(),
    ...maps.values(),
    ...awaits.values(),
    ...sleeps.values(),
  ];
  return [...new Set(open.map((each) => each.node))].sort();
}

function nodeProblems(from: CompiledFlow, to: CompiledFlow, id: string, names: NodeNames): string[] {
  const before = from.nodes.get(id)?.node, name = renamed(names, id), after = to.nodes.get(name)?.node;
  if (before === undefined || after === undefined) {
    return [`the node "${id}" is open, and there is no "${name}"`];
  }
  const difference = differenceOf(before, after, names);
  return difference === undefined
    ? []
    : [`the node "${id}" is open, and "${name}" has another ${difference}`];
}

/** What of an open node must not change. */
function differenceOf(before: FlowNode, after: FlowNode, names: NodeNames): string | undefined {
  if (before.type !== after.type) return "type";
  if (before.type === "fanout" && after.type === "fanout") {
    const branches = before.branches.map((id) => renamed(names, id)).sort();
    if (branches.join() !== after.branches.toSorted().join()) return "set of branches";
    if (renamed(names, before.next) !== after.next) return "join";
  }
  if (before.type === "await" && after.type === "await") {
    if (before.policy !== after.policy) return "policy";
    if (before.signals.toSorted().join() !== after.signals.toSorted().join()) return "set of signals";
  }
  const work = ["kind", "flow"] as const;
  return work.find((field) => read(before, field) !== read(after, field));
}

function read(node: FlowNode, field: "kind" | "flow"): unknown {
  return field in node ? (node as { readonly [K in typeof field]?: unknown })[field] : undefined;
}
