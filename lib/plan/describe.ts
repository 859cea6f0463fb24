/**
 * A plan as data and as text.
 *
 * @module
 */
import { formatDuration } from "../duration.ts";
import type { GraphNode } from "./graph.ts";
import { outputName, type Plan } from "./plan.ts";

/** A part of the pipeline. */
export interface NodeDescription {
  /** Unique in the pipeline; metrics and errors go by it. */
  readonly id: string;
  /** What it is to the planner. */
  readonly kind: "source" | "operator" | "async" | "keyBy" | "union" | "sink";
  /** What kind of operator, source or sink, e.g. `filter` or `file`. */
  readonly type: string;
  /** Name for people; absent where none was given. */
  readonly label?: string;
  /** Outputs read, as `id` or `id.output`. */
  readonly from: readonly string[];
  /** Id of the stage it runs in. */
  readonly stage: string;
  /** Its failure policy: `fail`, `drop` or `dlq`. */
  readonly onError: string;
  /** Its settings; never a secret. */
  readonly config: Readonly<Record<string, unknown>>;
}

/** A pipeline as data. */
export interface Description {
  /** Name of the pipeline. */
  readonly name: string;
  /** Sources, operators and sinks, each behind those it reads. */
  readonly nodes: readonly NodeDescription[];
  /** What runs as plain calls: ids of the parts, and how many instances of them there are. */
  readonly stages: readonly {
    readonly id: string;
    readonly kind: string;
    readonly instances: number;
    readonly nodes: readonly string[];
  }[];
  /** The bounded streams between stages; `from` and `to` are ids of stages. */
  readonly edges: readonly { readonly name: string; readonly from: string; readonly to: string }[];
  /** How it survives a crash; absent where no checkpoints are taken. */
  readonly checkpoints?: Durability;
  /** What a crash does to the output. */
  readonly guarantee: Guarantee;
}

/** What a crash does to the output. */
export interface Guarantee {
  /** How often a record can show in the output. */
  readonly level: "at-most-once" | "at-least-once" | "exactly-once";
  /** Why it is this level, one sentence. */
  readonly reason: string;
}

/** How a pipeline survives a crash. */
export interface Durability {
  /** Time between checkpoints, ms. */
  readonly interval: number;
  /** Where state and checkpoints are. */
  readonly backend: Readonly<Record<string, unknown>>;
}

/** The plan as data. */
export function describePlan(name: string, plan: Plan, durability: Durability | undefined): Description {
  return {
    name,
    nodes: plan.nodes.map((node) => ({
      id: node.id,
      kind: node.kind,
      type: node.type,
      ...(node.label === undefined ? {} : { label: node.label }),
      from: node.inputs.map(outputName),
      stage: plan.stageOf(node).id,
      onError: node.onError,
      config: configOf(node),
    })),
    stages: plan.stages.map(({ id, kind, instances, nodes }) => ({
      id,
      kind,
      instances,
      nodes: nodes.map((node) => node.id),
    })),
    edges: plan.edges.map(({ name, from, to }) => ({ name, from: from.id, to: to.id })),
    ...(durability === undefined ? {} : { checkpoints: durability }),
    guarantee: guaranteeOf(plan, durability),
  };
}

/** What a crash does to the output, and why. */
function guaranteeOf(plan: Plan, durability: Durability | undefined): Guarantee {
  if (durability === undefined) {
    return {
      level: "at-most-once",
      reason:
        "there is no checkpointing: after a crash the sources start again as configured, and state is lost",
    };
  }
  const names = (nodes: readonly GraphNode[]): string => nodes.map(({ id }) => `"${id}"`).join(", ");
  const gone = plan.nodes.filter((node) => node.kind === "source" && node.source.replayable === false);
  if (gone.length > 0) {
    return {
      level: "at-most-once",
      reason: `${names(gone)} cannot be read again: what was under way at a crash is lost`,
    };
  }
  const twice = plan.nodes.filter((node) => node.kind === "sink" && node.sink.commits === undefined);
  if (twice.length > 0) {
    return {
      level: "at-least-once",
      reason: `${
        names(twice)
      } cannot commit with a checkpoint: after a crash records since the last one come again`,
    };
  }
  return {
    level: "exactly-once",
    reason: "sources go on from the last checkpoint, and every sink commits with it",
  };
}

function configOf(node: GraphNode): Readonly<Record<string, unknown>> {
  if (node.kind === "keyBy") return { partitions: node.partitions, ...node.config };
  if (node.kind === "operator" && node.parallelism > 1) {
    return { parallelism: node.parallelism, ...node.config };
  }
  if (node.kind === "source") return { ...node.config, watermarks: node.watermarks.name };
  return node.config;
}

/** The plan as text. */
export function explainPlan(name: string, plan: Plan, durability: Durability | undefined): string {
  const lines = [`pipeline ${name}`, ""];
  for (const stage of plan.stages) {
    const times = stage.instances === 1
      ? ""
      : stage.kind === "keyed"
      ? `, ${stage.instances} partitions`
      : `, ${stage.instances} instances`;
    lines.push(`stage ${stage.id} (${stage.kind}${times})`);
    for (const node of stage.nodes) {
      const from = node.inputs.map(outputName).join(", ");
      const label = node.label === undefined ? "" : ` "${node.label}"`;
      lines.push(`  ${node.id}${label}: ${node.type}${settings(node)}${from === "" ? "" : `  <- ${from}`}`);
    }
  }
  lines.push("", "edges");
  for (const edge of plan.edges) lines.push(`  ${edge.name}`);
  const { level, reason } = guaranteeOf(plan, durability);
  lines.push("");
  if (durability !== undefined) {
    const where = Object.entries(durability.backend).map(([key, value]) => `${key} ${value}`).join(", ");
    lines.push(`checkpoints: every ${formatDuration(durability.interval)}, ${where}`);
  }
  lines.push(`guarantee: ${level}: ${reason}`);
  for (const note of notes(plan)) lines.push(`note: ${note}`);
  return lines.join("\n");
}

function settings(node: GraphNode): string {
  const shown = Object.entries(configOf(node)).map(([key, value]) => {
    const isTime = typeof value === "number" && ["allowedLateness", "ttl", "per"].includes(key);
    return `${key} ${
      isTime ? formatDuration(value) : typeof value === "string" ? value : JSON.stringify(value)
    }`;
  });
  if (node.onError !== "fail") shown.push(`on error ${node.onError}`);
  return shown.length === 0 ? "" : ` (${shown.join(", ")})`;
}

function notes(plan: Plan): string[] {
  const found: string[] = [];
  for (const stage of plan.stages) {
    if (stage.kind === "stateless" && stage.instances > 1) {
      found.push(`stage "${stage.id}" has ${stage.instances} instances: order is not kept through it`);
    }
  }
  for (const node of plan.nodes) {
    if (node.kind !== "operator") continue;
    if (node.config["keeps"] === "records") {
      found.push(
        `"${node.id}" keeps every record of an open session: give its reduce a \`merge\` to keep one result instead`,
      );
    }
    const late = node.config["window"] !== undefined &&
      !plan.nodes.some((n) => n.inputs.some((i) => i.node === node && i.output === "late"));
    if (late) {
      found.push(
        `"${node.id}": records that come too late are dropped and counted; nobody reads its late output`,
      );
    }
  }
  return found;
}
