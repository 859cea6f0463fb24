/**
 * Builds the running form of a plan: operators with their joints, stages, edges, counters. Nothing is opened here.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import { PipelineError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { DEAD_LETTERS, type GraphNode, type OperatorNode } from "../plan/graph.ts";
import { groupsOf } from "../key.ts";
import type { Plan, PlannedEdge, PlannedStage } from "../plan/plan.ts";
import type { Batch, Channel, Marker } from "../record.ts";
import { AsyncStage } from "./async_stage.ts";
import { EdgeCounters, OperatorCounters, type SplitStatus, StageTimes } from "./counters.ts";
import { Edge } from "./edge.ts";
import { type FailureHandler, failureHandler } from "./failure.ts";
import type { Operator, OperatorContext, Receiver, StageEntry } from "./operator.ts";
import { StageOutputs } from "./outputs.ts";
import {
  AlignedMerge,
  CountedEntry,
  CountedOperator,
  Outbox,
  OutputPort,
  type OutputReader,
  UnionInput,
} from "./ports.ts";
import { KeyRouter, type Prefetch, RoundRobinRouter } from "./router.ts";
import { SinkTask } from "./sink_task.ts";
import { type Restored, SnapshotCollector } from "./snapshots.ts";
import { SourceTask } from "./source_task.ts";
import { FusedStage, type StageOperator, type Task } from "./stage.ts";
import { type Partition, type StateStore, volatileState } from "../state/log/mod.ts";

/** Settings of a run. */
export interface InstanceOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Records an edge holds. */
  readonly bufferSize: number;
  /** Bytes an edge holds. */
  readonly bufferBytes: number;
  readonly maxKeyGroups: number;
  /** Aborted when the run gives up on draining. */
  readonly signal: AbortSignal;
  /** Missing where no checkpoints are taken. */
  readonly checkpoints?: InstanceCheckpoints;
}

/** What a run that takes checkpoints works with. */
export interface InstanceCheckpoints {
  /** The state of a keyed operator. */
  readonly store: (operator: string) => StateStore;
  /** The highest number of a checkpoint so far. */
  readonly highest: number;
  /** What to go on from; undefined on a first run. */
  readonly restored: Restored | undefined;
  /** Time between checkpoints, ms. */
  readonly interval: number;
  /** Takes a checkpoint now; resolves when it is complete. */
  readonly request: () => Promise<void>;
}

/** Stands for the router of a stage where the number of a partition is asked for. */
const ROUTER = -1;

/** Channel groups of a pipeline. A union keeps apart what comes to it by different ways, and their number doubles with each pair. */
const MOST_GROUPS = 100_000;

/** Largest batch a source reads, whatever the buffer size. */
const LARGEST_BATCH = 1024;

/** Who reads an output, and by which edge where it is in another stage. */
interface Reader {
  readonly node: GraphNode;
  readonly output: string | undefined;
  readonly edge: PlannedEdge | undefined;
}

/** A plan with everything it needs to run. */
export class Instance {
  readonly sources: SourceTask[] = [];
  readonly sinks: SinkTask[] = [];
  /** All tasks, sources and sinks among them. */
  readonly tasks: Task[] = [];
  readonly edges: Edge[] = [];
  readonly operators: OperatorCounters[] = [];
  readonly stages: StageTimes[] = [];
  readonly edgeCounters: EdgeCounters[] = [];
  readonly splits: SplitStatus[] = [];
  /** The instances of each synchronous operator, by its id. */
  readonly running: Map<string, Operator[]> = new Map();
  readonly #plan: Plan;
  readonly #options: InstanceOptions;
  readonly #counters = new Map<GraphNode, OperatorCounters>();
  readonly #edges = new Map<PlannedEdge, Edge>();
  readonly #groups = new Map<GraphNode, readonly number[]>();
  readonly #unionGroups = new Map<GraphNode, ReadonlyMap<number, number>[]>();
  readonly #ownGroups = new Map<GraphNode, number>();
  readonly #readersOf = new Map<GraphNode, Reader[]>();
  readonly #userCode = new Map<GraphNode, boolean>();
  readonly #stores = new Map<GraphNode, StateStore>();
  /** Where the parts leave what a checkpoint is to know; undefined where none are taken. */
  readonly snapshots: SnapshotCollector | undefined;
  /** Operators by id and instance, with the state each has. */
  readonly #held: StageOperator[] = [];
  #nextGroup = 0;

  constructor(plan: Plan, options: InstanceOptions) {
    this.#plan = plan;
    this.#options = options;
    this.snapshots = options.checkpoints === undefined
      ? undefined
      : new SnapshotCollector(plan.stages.map(({ id }) => id), options.checkpoints.highest);
    this.#indexReaders();
    for (const node of plan.nodes) {
      const counters = new OperatorCounters(node.id, node.type, plan.stageOf(node).id);
      this.#counters.set(node, counters);
      if (node.kind !== "union") this.operators.push(counters);
      this.#groups.set(node, this.#groupsBehind(node));
    }
    for (const planned of plan.edges) {
      const edge = new Edge(planned.name, { maxRecords: options.bufferSize, maxBytes: options.bufferBytes });
      this.#edges.set(planned, edge);
      this.edges.push(edge);
    }
    for (const stage of plan.stages) this.tasks.push(this.#task(stage));
  }

  /** The channel groups that open in front of a node. */
  #inputGroups(node: GraphNode): readonly number[] {
    const { node: before, output } = node.inputs[0]!;
    const passed = output !== undefined && before.kind === "operator" && before.sideOutputs[output] !== "own";
    if (passed || output === DEAD_LETTERS) {
      return before.inputs.length === 0 ? this.#groups.get(before)! : this.#inputGroups(before);
    }
    return this.#groups.get(before)!;
  }

  /** The channel groups of a node's main output. */
  #groupsBehind(node: GraphNode): readonly number[] {
    if (node.kind === "source" || (node.kind === "operator" && node.ownRows)) {
      const group = this.#nextGroup++;
      this.#ownGroups.set(node, group);
      return [group];
    }
    if (node.kind !== "union") return this.#inputGroups(node);
    const maps = node.inputs.map((input) => {
      const groups = this.#inputGroups({ ...node, inputs: [input] });
      return new Map(groups.map((group) => [group, this.#nextGroup++]));
    });
    if (this.#nextGroup > MOST_GROUPS) {
      throw new PipelineError([
        `"${node.id}": the streams it brings together have branched and met again so often that there are more than ${MOST_GROUPS} ways through them`,
      ], {
        hint: "bring all branches together in one union, or put a window or keyBy with a window in between",
      });
    }
    this.#unionGroups.set(node, maps);
    return maps.flatMap((map) => [...map.values()]);
  }

  /** Brings operators to where they were: their keyed state into memory, and what else they gave. Before anything runs. */
  async restore(): Promise<void> {
    const restored = this.#options.checkpoints?.restored;
    if (restored === undefined) return;
    for (const { id, operator, state } of this.#held) {
      const snapshots = restored.operators.get(id);
      if (snapshots === undefined) continue; // an operator that is new
      await state?.load();
      operator.restore?.(snapshots);
    }
  }

  #task(stage: PlannedStage): Task {
    const times = new StageTimes(stage.id);
    this.stages.push(times);
    switch (stage.kind) {
      case "source":
        return this.#sourceTask(stage, times);
      case "sink":
        return this.#sinkTask(stage, times);
      case "async":
        return this.#asyncStage(stage, times);
      default:
        return this.#fusedStage(stage, times);
    }
  }

  #sourceTask(stage: PlannedStage, times: StageTimes): SourceTask {
    const node = stage.nodes[0]!;
    if (node.kind !== "source") throw new Error(`stage "${stage.id}" has no source`);
    const { clock, logger, bufferSize } = this.#options;
    const counters = this.#counters.get(node)!;
    const exits = this.#exits(stage, times);
    const main = this.#port(node, undefined, counters, exits, 0);
    const { failed } = this.#failures(node, exits, 0);
    const task = new SourceTask({
      id: node.id,
      source: node.source,
      sourceName: node.sourceName ?? node.id,
      group: this.#ownGroups.get(node)!,
      timestamp: node.timestamp,
      watermarks: node.watermarks,
      batchSize: Math.min(LARGEST_BATCH, bufferSize),
      clock,
      logger,
      counters,
      times,
      outputs: exits.outputs,
      emit: (batch) => main.batch(batch),
      failed,
      onSplit: (status) => this.splits.push(status),
      onRemoved: (status) => this.splits.splice(this.splits.indexOf(status), 1),
      snapshots: this.snapshots,
      restored: this.#options.checkpoints?.restored?.sources.get(node.id),
      requestCheckpoint: this.#options.checkpoints?.request,
      keepsState: this.#plan.nodes.some((node) => node.kind === "operator" && node.keyed),
    });
    this.sources.push(task);
    return task;
  }

  #sinkTask(stage: PlannedStage, times: StageTimes): SinkTask {
    const node = stage.nodes[0]!;
    if (node.kind !== "sink") throw new Error(`stage "${stage.id}" has no sink`);
    const { clock, logger, signal } = this.#options;
    const counters = this.#counters.get(node)!;
    const exits = this.#exits(stage, times);
    const { failed } = this.#failures(node, exits, 0);
    const task = new SinkTask({
      id: node.id,
      sink: node.sink,
      edge: this.#edgesTo(stage)[0]!,
      clock,
      logger,
      counters,
      times,
      retry: node.retry,
      failed,
      outputs: exits.outputs,
      signal,
      snapshots: this.snapshots,
      restored: this.#options.checkpoints?.restored?.committables.get(node.id),
      checkpointInterval: this.#options.checkpoints?.interval,
    });
    this.sinks.push(task);
    return task;
  }

  #asyncStage(stage: PlannedStage, times: StageTimes): Task {
    const node = stage.nodes[0]!;
    if (node.kind !== "async") throw new Error(`stage "${stage.id}" has no waiting operator`);
    const { clock, logger, signal } = this.#options;
    const counters = this.#counters.get(node)!;
    const exits = this.#exits(stage, times);
    const { failed } = this.#failures(node, exits, 0);
    const operator = node.create({
      id: node.id,
      clock,
      logger,
      signal,
      failed,
      dropped: (reason, count) => counters.drop(reason, count),
    });
    const main = this.#port(node, undefined, counters, exits, 0);
    return new AsyncStage(
      stage.id,
      this.#edgesTo(stage)[0]!,
      operator,
      main,
      exits.outputs,
      counters,
      times,
      clock,
      this.snapshots,
    );
  }

  #fusedStage(stage: PlannedStage, times: StageTimes): FusedStage {
    const { clock } = this.#options;
    const exits = this.#exits(stage, times);
    const operators: StageOperator[] = [];
    const made: { stage?: FusedStage } = {}; // operators ask for ticks of the stage that is made of them
    const wakeAt = (time: number) => made.stage!.wakeAt(time);
    const root = stage.nodes[0]!;
    const inner = root.kind === "keyBy" || root.kind === "union" ? stage.nodes.slice(1) : stage.nodes;
    const heads: Receiver[] = [];
    for (let partition = 0; partition < stage.instances; partition++) {
      const built = new Map<GraphNode, Receiver>();
      for (const node of inner.toReversed()) {
        if (node.kind !== "operator") throw new Error(`"${node.id}" (${node.kind}) cannot be fused`);
        const state = node.keyed ? this.#state(node, partition, stage.instances) : undefined;
        const { receiver, operator } = this.#operator(node, partition, stage, state, exits, built, wakeAt);
        built.set(node, receiver);
        operators.push({ id: node.id, partition, operator, state });
      }
      heads.push(
        inner.length > 0 && root === inner[0]
          ? built.get(root)!
          : this.#port(root, undefined, this.#counters.get(root)!, exits, partition, built),
      );
    }
    const edges = this.#plan.edges.filter((edge) => edge.to === stage);
    let inputs: { edge: Edge; receiver: StageEntry }[];
    if (root.kind === "union") {
      const union = new UnionInput(this.#unionGroups.get(root)!, heads[0]!);
      inputs = edges.map((edge) => ({ edge: this.#edges.get(edge)!, receiver: union.port(edge.input) }));
    } else {
      const entry = root.kind === "keyBy"
        ? this.#keyRouter(root, heads, exits, prefetchOf(operators, stage.instances))
        : heads.length > 1
        ? new RoundRobinRouter(heads)
        : heads[0]!;
      inputs = [{ edge: this.#edges.get(edges[0]!)!, receiver: entry }];
    }
    operators.reverse();
    this.#held.push(...operators);
    return made.stage = new FusedStage({
      name: stage.id,
      inputs,
      outputs: exits.outputs,
      operators,
      times,
      clock,
      snapshots: this.snapshots,
    });
  }

  #keyRouter(
    node: GraphNode & { kind: "keyBy" },
    heads: readonly Receiver[],
    exits: Exits,
    prefetch: readonly (readonly Prefetch[])[],
  ): StageEntry {
    const counters = this.#counters.get(node)!;
    const { dead, failed } = this.#failures(node, exits, ROUTER);
    const router = new KeyRouter(node.keyOf, heads, this.#options.maxKeyGroups, failed, prefetch);
    return new CountedEntry(router, [dead], counters);
  }

  #operator(
    node: OperatorNode,
    partition: number,
    stage: PlannedStage,
    state: Partition | undefined,
    exits: Exits,
    built: ReadonlyMap<GraphNode, Receiver>,
    wakeAt: (time: number) => void,
  ): { receiver: Receiver; operator: Operator } {
    const { clock, logger, maxKeyGroups } = this.#options;
    const counters = this.#counters.get(node)!;
    const main = this.#port(node, undefined, counters, exits, partition, built);
    const sides = new Map<string, OutputPort>();
    const passed: OutputPort[] = [], own: OutputPort[] = [];
    for (const [name, kind] of Object.entries(node.sideOutputs)) {
      const port = this.#port(node, name, counters, exits, partition, built);
      sides.set(name, port);
      (kind === "passed" && node.ownRows ? passed : own).push(port);
    }
    const { dead, failed } = this.#failures(node, exits, partition);
    (node.ownRows ? passed : own).push(dead);
    const mainAndOwn = withFollowers(main, own);
    const gauges = { stateEntries: 0, timers: 0, late: 0, maxLateness: 0 };
    counters.gauges.push(gauges);
    const channel: Channel = { group: this.#ownGroups.get(node) ?? -1, name: `${node.id}/${partition}` };
    const context: OperatorContext = {
      id: node.id,
      partition,
      partitions: stage.instances,
      maxKeyGroups,
      clock,
      logger,
      state,
      paged: state?.tracked === true && hasDoorKeys(node),
      inputGroups: this.#inputGroups(node),
      channel,
      output: (name) => {
        if (name === undefined) return mainAndOwn;
        const port = sides.get(name);
        if (port === undefined) throw new Error(`operator "${node.id}" has no side output "${name}"`);
        return port;
      },
      isRead: (name) => this.#readers(node, name).length > 0,
      failed,
      dropped: (reason, count) => counters.drop(reason, count),
      wakeAt,
      gauges,
    };
    const operator = node.create(context);
    this.running.set(node.id, [...(this.running.get(node.id) ?? []), operator]);
    return { receiver: new CountedOperator(withFollowers(operator, passed), counters), operator };
  }

  /** The keyed state of one partition of an operator. */
  #state(node: OperatorNode, partition: number, partitions: number): Partition {
    const { maxKeyGroups } = this.#options;
    let store = this.#stores.get(node);
    if (store === undefined) {
      store = this.#options.checkpoints?.store(node.id) ?? volatileState(node.id, maxKeyGroups);
      this.#stores.set(node, store);
    }
    return store.partition(...groupsOf(partition, partitions, maxKeyGroups));
  }

  /** The port of an output, connected to its readers in the stage and to its edges. */
  #port(
    node: GraphNode,
    output: string | undefined,
    counters: OperatorCounters,
    exits: Exits,
    partition: number,
    built?: ReadonlyMap<GraphNode, Receiver>,
  ): OutputPort {
    const port = new OutputPort(counters);
    const readers = this.#readers(node, output);
    const copying = readers.filter((reader) => this.#reachesUserCode(reader.node));
    const spare = copying.length === readers.length ? copying.at(-1) : undefined; // the last may have the originals
    for (const reader of readers) {
      const copies = readers.length > 1 && copying.includes(reader) && reader !== spare;
      const inside = built?.get(reader.node);
      const receiver: OutputReader["receiver"] = inside ?? exits.entry(reader.edge!, partition);
      port.connect({ receiver, copies });
    }
    return port;
  }

  #readers(node: GraphNode, output: string | undefined): readonly Reader[] {
    return this.#readersOf.get(node)?.filter((reader) => reader.output === output) ?? [];
  }

  /** Who reads what, found once: every port of every partition asks. */
  #indexReaders(): void {
    const edges = new Map<GraphNode, PlannedEdge[]>();
    for (const edge of this.#plan.edges) edges.set(edge.reader, [...(edges.get(edge.reader) ?? []), edge]);
    for (const reader of this.#plan.nodes) {
      reader.inputs.forEach(({ node, output }, index) => {
        const edge = edges.get(reader)?.find(({ input }) => input === index);
        this.#readersOf.set(node, [...(this.#readersOf.get(node) ?? []), { node: reader, output, edge }]);
      });
    }
  }

  /** Whether values of a node come to code of the user's. Remembered: the ways through branches and unions are many. */
  #reachesUserCode(node: GraphNode): boolean {
    let reaches = this.#userCode.get(node);
    if (reaches === undefined) this.#userCode.set(node, reaches = this.#findUserCode(node));
    return reaches;
  }

  #findUserCode(node: GraphNode): boolean {
    if (node.kind === "sink") return node.sink.handsValuesOut === true;
    if (node.kind === "keyBy" || ((node.kind === "operator" || node.kind === "async") && node.userCode)) {
      return true;
    }
    return this.#readersOf.get(node)?.some((reader) => this.#reachesUserCode(reader.node)) ?? false;
  }

  /** The failure policy of a node, and the port that its dead letters leave by. */
  #failures(node: GraphNode, exits: Exits, partition: number): { dead: OutputPort; failed: FailureHandler } {
    const uncounted = new OperatorCounters(node.id, node.type, this.#plan.stageOf(node).id);
    const dead = this.#port(node, DEAD_LETTERS, uncounted, exits, partition);
    const { clock } = this.#options;
    return {
      dead,
      failed: failureHandler(node.id, node.onError, this.#counters.get(node)!, clock, () => dead),
    };
  }

  #edgesTo(stage: PlannedStage): Edge[] {
    return this.#plan.edges.filter((edge) => edge.to === stage).map((edge) => this.#edges.get(edge)!);
  }

  #exits(stage: PlannedStage, times: StageTimes): Exits {
    const edges = this.#plan.edges.filter((edge) => edge.from === stage);
    const own = new Set(stage.nodes.flatMap((node) => this.#ownGroups.get(node) ?? []));
    const exits = new Exits(stage.instances, own, times, this.#options.clock);
    for (const planned of edges) {
      const edge = this.#edges.get(planned)!;
      const counters = new EdgeCounters(edge.name, edge.limits.maxRecords, () => edge.queued);
      this.edgeCounters.push(counters);
      exits.add(planned, edge, counters);
    }
    exits.close();
    return exits;
  }
}

/** Where a stage's partitions come together and leave by its edges. */
class Exits {
  outputs!: StageOutputs;
  readonly #list: { outbox: Outbox; edge: Edge; counters: EdgeCounters }[] = [];
  readonly #merges = new Map<PlannedEdge, { outbox: Outbox; merge: AlignedMerge | undefined }>();

  constructor(
    readonly instances: number,
    readonly own: ReadonlySet<number>,
    readonly times: StageTimes,
    readonly clock: Clock,
  ) {}

  add(planned: PlannedEdge, edge: Edge, counters: EdgeCounters): void {
    const outbox = new Outbox();
    this.#list.push({ outbox, edge, counters });
    const merge = this.instances > 1 ? new AlignedMerge(this.instances, outbox) : undefined;
    this.#merges.set(planned, { outbox, merge });
  }
  close(): void {
    this.outputs = new StageOutputs(this.#list, this.times, this.clock);
  }
  entry(planned: PlannedEdge, partition: number): Receiver {
    const { outbox, merge } = this.#merges.get(planned)!;
    // What a router itself hands out (dead letters) is not one of the partitions and needs no alignment.
    return merge === undefined || partition === ROUTER ? outbox : merge.entry(this.own);
  }
}

/** Whether a keyed operator gets only records that came through the door of its stage: then their keys are known there. */
function hasDoorKeys(node: GraphNode): boolean {
  const before = node.inputs[0]!.node;
  if (before.kind === "keyBy") return true;
  return before.kind === "operator" && !before.ownRows && hasDoorKeys(before);
}

/** What brings keys into memory, by partition. */
function prefetchOf(operators: readonly StageOperator[], partitions: number): Prefetch[][] {
  return Array.from({ length: partitions }, (_, partition) =>
    operators.flatMap((one) => {
      const { prefetch } = one.operator;
      return prefetch === undefined || one.partition !== partition || one.state?.tracked !== true
        ? []
        : [prefetch.bind(one.operator)];
    }));
}

/** A receiver whose markers others are to have as well. */
function withFollowers(first: Receiver, followers: readonly Receiver[]): Receiver {
  if (followers.length === 0) return first;
  return {
    batch: (batch: Batch) => first.batch(batch),
    marker: (marker: Marker) => {
      first.marker(marker);
      for (const follower of followers) follower.marker(marker);
    },
  };
}
