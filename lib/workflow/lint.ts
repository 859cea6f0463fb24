/**
 * What is allowed in a workflow and still worth a word. Only for documents without problems.
 *
 * @module
 */
import { type Path, pathText, type Place, type Problem, Problems } from "./problem.ts";
import { keyPlaceAt, nodeAt } from "./reader.ts";
import { sideOutputsOf } from "./side_outputs.ts";
import type { OperatorSpec, SinkSpec, SourceSpec, WorkflowSpec } from "./spec.ts";
import type { DocumentNode } from "./tree.ts";

/** Key groups: more partitions than these have nothing to do. */
const KEY_GROUPS = 128;

/** Things to think about, in document order, in the form of problems. */
export function lintWorkflow(spec: WorkflowSpec, tree: DocumentNode): readonly Problem[] {
  const problems = new Problems(spec.file);
  problems.nameElements((list, index) => idOf(spec, list, index));
  const linter = new Linter(spec, tree, problems);
  linter.lint();
  return problems.list((text) => text);
}

function idOf(spec: WorkflowSpec, list: string, index: number): string | undefined {
  const path = pathText([list, index]);
  return [...spec.operators, ...spec.sinks, ...spec.sources].find((node) => {
    return node.path === path || node.path === `${path}.source`;
  })?.id;
}

class Linter {
  readonly #spec: WorkflowSpec;
  readonly #tree: DocumentNode;
  readonly #problems: Problems;
  /** Names that are read: `id`, or `id.output`. */
  readonly #read: ReadonlySet<string>;
  readonly #byId: ReadonlyMap<string, OperatorSpec | SourceSpec>;

  constructor(spec: WorkflowSpec, tree: DocumentNode, problems: Problems) {
    this.#spec = spec;
    this.#tree = tree;
    this.#problems = problems;
    const refs = [...spec.operators, ...spec.sinks].flatMap(({ from }) => from);
    this.#read = new Set(refs.map(({ node, output }) => output === undefined ? node : `${node}.${output}`));
    this.#byId = new Map([...spec.sources, ...spec.operators].map((node) => [node.id, node]));
  }

  lint(): void {
    const { sources, operators, sinks } = this.#spec;
    for (const source of sources) this.#source(source);
    for (const operator of operators) this.#operator(operator);
    for (const sink of sinks) this.#sink(sink);
    this.#environment();
  }

  #say(
    node: { readonly path: string; readonly place: Place },
    field: Path,
    code: string,
    text: string,
    hint: string,
  ) {
    const path = [...pathOf(node.path), ...field];
    const place = field.length === 0 ? node.place : keyPlaceAt(this.#tree, path);
    this.#problems.add(place, path, code, text, hint);
  }

  #source(source: SourceSpec): void {
    if (!this.#read.has(source.id)) {
      this.#say(source, [], "unread", `nothing reads "${source.id}"`, "read it with from, or remove it");
    }
    if (source.type === "kafka" && this.#spec.env.checkpointing === undefined) {
      const text = "without checkpointing a crash loses state and what was under way";
      this.#say(source, [], "no_checkpointing", text, "env: { checkpointing: { interval: 30s } }");
    }
    if (source.type === "kafka" && source.hasEventTime && source.watermark.idleTimeout === undefined) {
      const text = "a partition without records holds all windows open";
      this.#say(source, ["watermark"], "no_idle_timeout", text, "set watermark.idleTimeout");
    }
    const block = [["watermark"], ["kafka", "watermark"]].find((way) => {
      return nodeAt(this.#tree, [...pathOf(source.path), ...way, "interval"]) !== undefined;
    });
    if (block !== undefined) {
      const text = "watermark.interval has no effect: a watermark travels with every record";
      this.#say(source, [...block, "interval"], "unused", text, "remove it");
    }
    if (source.onError === "drop") this.#dropping(source);
  }

  #dropping(node: { readonly path: string; readonly place: Place }): void {
    const text = "records that fail are dropped, and only counted";
    this.#say(node, ["onError"], "drops", text, "onError: dlq keeps them");
  }

  #operator(operator: OperatorSpec): void {
    this.#outputs(operator);
    if (operator.onError === "drop") this.#dropping(operator);
    if (operator.parallelism > 1) {
      const text = "beyond 1 the order of records is lost";
      const own = nodeAt(this.#tree, [...pathOf(operator.path), "parallelism"]) !== undefined;
      const field = own ? ["parallelism"] : [operator.type, "parallelism"];
      this.#say(operator, field, "loses_order", text, "keep it where order does not matter");
    }
    switch (operator.type) {
      case "window":
        return this.#window(operator);
      case "keyBy":
        if (operator.keyBy.partitions > KEY_GROUPS) {
          const text = `there are ${KEY_GROUPS} key groups, so the partitions beyond them get no keys`;
          this.#say(operator, ["keyBy", "partitions"], "many_partitions", text, `${KEY_GROUPS} or fewer`);
        }
        return;
      case "filter": {
        const { operator: comparator } = operator.filter;
        if (comparator !== "exists" && comparator !== "not_exists") return;
        if (nodeAt(this.#tree, [...pathOf(operator.path), "filter", "value"]) === undefined) return;
        this.#say(operator, ["filter", "value"], "unused", `${comparator} looks at no value`, "remove it");
        return;
      }
      case "reduce":
        if (operator.reduce.function === "count" && operator.reduce.field !== undefined) {
          const text = "count counts records, whatever the field holds";
          this.#say(operator, ["reduce", "field"], "unused", text, "put a filter in front, or remove it");
        }
        return;
      case "route":
        if (operator.route.default === undefined) {
          const text = "records that no route takes are dropped and counted";
          this.#say(operator, ["route"], "no_default", text, "default: name keeps them");
        }
    }
  }

  #outputs(operator: OperatorSpec): void {
    const { id, type } = operator;
    for (const output of sideOutputsOf(operator) ?? []) {
      if (this.#read.has(`${id}.${output}`) || type === "window") continue; // a window's is spoken of there
      const text = `nothing reads "${id}.${output}"`;
      this.#say(operator, [], "unread_output", text, `a sink with from: ${id}.${output}`);
    }
    if (type === "route" || this.#read.has(id)) return;
    this.#say(operator, [], "unread", `nothing reads "${id}"`, "read it with from, or remove it");
  }

  #window(operator: Extract<OperatorSpec, { type: "window" }>): void {
    const { window } = operator;
    if (window.type === "count") return;
    if (window.type === "global") {
      if (window.trigger === undefined) {
        const text = "it gives rows at the end of the input only";
        this.#say(operator, ["window"], "no_trigger", text, "trigger: { every: 100 } gives rows before");
      }
      return;
    }
    const eventTime = window.time === "event";
    if (window.idleTimeout !== undefined && eventTime) {
      const text = "idleTimeout closes no window of event time early";
      this.#say(
        operator,
        ["window", "idleTimeout"],
        "idle_timeout",
        text,
        "set it on the source: watermark.idleTimeout",
      );
    }
    if (!eventTime && window.allowedLateness > 0) {
      const text = "in processing time no record is late";
      this.#say(operator, ["window", "allowedLateness"], "unused", text, "remove it");
    }
    if (!eventTime) return;
    if (!this.#read.has(`${operator.id}.late`)) {
      const given = nodeAt(this.#tree, [...pathOf(operator.path), "window", "allowedLateness"]) !== undefined;
      const dropped = `records too late are dropped and counted: nothing reads "${operator.id}.late"`;
      if (given) this.#say(operator, [], "unread_output", dropped, `a sink with from: ${operator.id}.late`);
      else {
        const text = `allowedLateness is 0, and ${dropped}`;
        this.#say(operator, ["window"], "no_lateness", text, "set allowedLateness, or read the late output");
      }
    }
    this.#eventTime(operator);
  }

  /** Whether event time is set on every way to a window. */
  #eventTime(window: OperatorSpec): void {
    const seen = new Set<string>(), ways = window.from.map(({ node }) => node);
    for (const id of ways) {
      const node = this.#byId.get(id);
      if (node === undefined || seen.has(id)) continue;
      seen.add(id);
      if ("from" in node) {
        if (node.type !== "timestamp") ways.push(...node.from.map((input) => input.node));
      } else if (!node.hasEventTime) {
        const text = `event time of "${id}" is not said: it is the source's own, else the time of reading`;
        this.#say(window, [], "no_event_time", text, `set timestamp and watermark on "${id}"`);
      }
    }
  }

  #sink(sink: SinkSpec): void {
    if (sink.onError === "drop") this.#dropping(sink);
  }

  #environment(): void {
    const { env, dlq, sources, operators, sinks } = this.#spec;
    const top = { path: "", place: { line: 1, column: 1 } };
    const state = nodeAt(this.#tree, ["env", "state", "backend"]);
    if (state?.kind === "scalar" && state.value === "pebble") {
      this.#say(top, ["env", "state", "backend"], "pebble", "pebble means kv here", "backend: kv");
    }
    if (env.state !== undefined && env.state.backend !== "memory" && env.checkpointing === undefined) {
      const text = `state in ${env.state.backend} is not restored without checkpointing`;
      this.#say(top, ["env", "state"], "no_checkpointing", text, "env: { checkpointing: { interval: 30s } }");
    }
    const senders = [...sources, ...operators, ...sinks].some(({ onError }) => onError === "dlq");
    if (dlq !== undefined && !senders) {
      this.#say(
        dlq,
        [],
        "unused_dlq",
        "nothing sends records to the dlq",
        "onError: dlq on sources, operators or sinks",
      );
    }
  }
}

/** Steps of a path as {@link pathText} wrote it for a node. */
function pathOf(text: string): Path {
  return [...text.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([step, index]) =>
    index === undefined ? step : Number(index)
  );
}
