/**
 * The planner: which operators run as one stage, and which edges lie between.
 *
 * P1 Consecutive stateless operators of equal parallelism are one stage and call each other directly, branches included.
 * P2 A keyBy begins a keyed stage, which takes in everything behind it up to the next keyBy, union, sink, waiting operator
 *    or explicit parallelism.
 * P3 Sources, sinks and operators that wait are stages of their own. A union begins a stage.
 *
 * @module
 */
import { PipelineError } from "../errors.ts";
import { DEAD_LETTERS, type GraphNode, type NodeOutput, type SinkNode, type UnionNode } from "./graph.ts";

/** Operators that run as plain calls. */
export interface PlannedStage {
  readonly id: string;
  readonly kind: "source" | "stateless" | "keyed" | "async" | "sink";
  readonly nodes: GraphNode[];
  /** Instances: partitions of a keyed stage, parallelism of a stateless one. */
  readonly instances: number;
}

/** A bounded stream from an output of one stage to another stage. */
export interface PlannedEdge {
  readonly name: string;
  readonly from: PlannedStage;
  readonly output: NodeOutput;
  readonly to: PlannedStage;
  readonly reader: GraphNode;
  /** Which input of the reader it is. */
  readonly input: number;
}

/** The physical plan. */
export interface Plan {
  readonly nodes: readonly GraphNode[];
  readonly stages: readonly PlannedStage[];
  readonly edges: readonly PlannedEdge[];
  stageOf(node: GraphNode): PlannedStage;
}

/** How a pipeline is planned. */
export interface PlanOptions {
  /** Where dead letters go. */
  readonly deadLetters: SinkNode | undefined;
  readonly maxKeyGroups: number;
  /** Whether checkpoints are taken. */
  readonly checkpointing?: boolean;
}

/**
 * Plans a graph.
 *
 * @param nodes All nodes, each behind the ones it reads.
 * @throws {PipelineError} with everything that is wrong with the graph.
 */
export function plan(nodes: readonly GraphNode[], options: PlanOptions): Plan {
  const all = withDeadLetters(nodes, options.deadLetters);
  const problems = check(all, options);
  if (problems.length > 0) throw new PipelineError(problems);
  const stageOf = new Map<GraphNode, PlannedStage>();
  const stages: PlannedStage[] = [];
  const edges: PlannedEdge[] = [];
  for (const node of all) {
    const stage = fusedInto(node, stageOf) ?? newStage(node, stages);
    stage.nodes.push(node);
    stageOf.set(node, stage);
    node.inputs.forEach((output, input) => {
      const from = stageOf.get(output.node)!;
      if (from === stage) return;
      const name = `${outputName(output)}->${node.id}`;
      edges.push({ name, from, output, to: stage, reader: node, input });
    });
  }
  return { nodes: all, stages, edges, stageOf: (node) => stageOf.get(node)! };
}

/** `id` or `id.output`. */
export function outputName({ node, output }: NodeOutput): string {
  return output === undefined ? node.id : `${node.id}.${output}`;
}

function fusedInto(node: GraphNode, stageOf: ReadonlyMap<GraphNode, PlannedStage>): PlannedStage | undefined {
  if (node.kind !== "operator") return undefined;
  const before = stageOf.get(node.inputs[0]!.node)!;
  if (before.kind === "keyed") return node.keyed || node.parallelism === 1 ? before : undefined;
  return before.kind === "stateless" && before.instances === node.parallelism ? before : undefined;
}

function newStage(node: GraphNode, stages: PlannedStage[]): PlannedStage {
  const stage: PlannedStage = {
    id: node.id,
    kind: node.kind === "keyBy"
      ? "keyed"
      : node.kind === "operator" || node.kind === "union"
      ? "stateless"
      : node.kind,
    nodes: [],
    instances: node.kind === "keyBy" ? node.partitions : node.kind === "operator" ? node.parallelism : 1,
  };
  stages.push(stage);
  return stage;
}

/** Adds the dead-letter sink behind every node that sends there. */
function withDeadLetters(nodes: readonly GraphNode[], sink: SinkNode | undefined): readonly GraphNode[] {
  const senders = nodes.filter((node) => node.onError === "dlq");
  if (senders.length === 0 || sink === undefined) return nodes;
  const inputs = senders.map((node) => ({ node, output: DEAD_LETTERS }));
  const union: UnionNode = {
    kind: "union",
    id: `${sink.id}.all`,
    type: "union",
    inputs,
    onError: "fail",
    config: {},
  };
  return [...nodes, union, { ...sink, inputs: [{ node: union, output: undefined }] }];
}

function check(nodes: readonly GraphNode[], options: PlanOptions): string[] {
  const problems: string[] = [];
  const atomic = nodes.filter((node) => node.kind === "sink" && node.sink.commits === "atomic");
  if (options.checkpointing === true && atomic.length > 1) {
    const names = atomic.map(({ id }) => `"${id}"`).join(" and ");
    problems.push(
      `${names} each commit in a transaction of their own: a crash between the two would leave one without the other. ` +
        "One of them to a pipeline; files may stand beside it",
    );
  }
  const ids = new Set<string>();
  const keyed = new Map<GraphNode, boolean>();
  const sources = nodes.filter((node) => node.kind === "source");
  const sinks = nodes.filter((node) => node.kind === "sink" && node.id !== options.deadLetters?.id);
  if (sources.length === 0) problems.push("there is no source: begin with fromSource or fromReadable");
  if (sinks.length === 0) problems.push("there is no sink: end with toSink or toReadable");
  for (const node of nodes) {
    if (ids.has(node.id)) problems.push(`two parts are called "${node.id}": ids must be unique`);
    ids.add(node.id);
    if (node.onError === "dlq" && options.deadLetters === undefined) {
      problems.push(`"${node.id}" sends failed records to the dead-letter sink, but the pipeline has none`);
    }
    const behindKey = node.inputs.length > 0 &&
      node.inputs.every(({ node: before }) => keyed.get(before) === true);
    keyed.set(
      node,
      node.kind === "keyBy" || (node.kind === "operator" && behindKey && node.parallelism === 1),
    );
    if (node.kind === "keyBy") checkPartitions(node.id, node.partitions, options.maxKeyGroups, problems);
    if (node.kind === "operator") {
      if (node.keyed && !behindKey) {
        problems.push(`"${node.id}" (${node.type}) keeps state by key: put a keyBy in front of it`);
      }
      if (!(Number.isInteger(node.parallelism) && node.parallelism >= 1)) {
        problems.push(`"${node.id}": parallelism must be a whole number from 1, not ${node.parallelism}`);
      }
      if (node.keyed && node.parallelism !== 1) {
        problems.push(
          `"${node.id}": the parallelism of a keyed operator is that of its keyBy: set \`partitions\` there`,
        );
      }
    }
  }
  return problems;
}

function checkPartitions(id: string, partitions: number, maxKeyGroups: number, problems: string[]): void {
  if (Number.isInteger(partitions) && partitions >= 1 && partitions <= maxKeyGroups) return;
  problems.push(
    `"${id}": partitions must be a whole number from 1 to ${maxKeyGroups} (the number of key groups), not ${partitions}`,
  );
}
