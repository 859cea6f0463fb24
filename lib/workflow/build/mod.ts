/**
 * From a validated workflow to a pipeline, through the same builder that the SDK has.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import { kv, memory, sqlite, type StateBackend } from "../../checkpoint/backend.ts";
import type { Clock } from "../../clock.ts";
import type { Sink, Source } from "../../connector.ts";
import type { Logger } from "../../log.ts";
import { boundedOutOfOrderness, type TimestampOf, type WatermarkStrategy } from "../../runtime/watermarks.ts";
import { createEnv, type Env, type SourceOptions } from "../../stream/env.ts";
import type { KeyedProcess } from "../../operators/process/context.ts";
import type { ProcessFunction } from "../../operators/process/stateless.ts";
import { KeyedStream, type WindowedStream } from "../../stream/keyed_stream.ts";
import type { CodeRef, KeyByBlock } from "../blocks.ts";
import type { Connectors, LoadCode } from "../registry.ts";
import { sideOutputsOf } from "../side_outputs.ts";
import type { InputRef, OperatorSpec, SinkSpec, SourceSpec, WorkflowSpec } from "../spec.ts";
import { conditionOf } from "./expression.ts";
import {
  buildAggregate,
  buildKeyBy,
  buildStateless,
  buildTimestamp,
  buildTopN,
  buildWindow,
  keepKey,
  keyed,
  optionsOf,
  timestampOf,
  type Values,
} from "./operators.ts";
import { type KeyPart, keyPart } from "./rows.ts";

/** What a workflow is built with. */
export interface BuildOptions {
  readonly connectors: Connectors;
  readonly loadCode: LoadCode;
  /** Folder that relative paths of the document are relative to. */
  readonly folder: string;
  /** Folder of state and checkpoints whose place the document does not say. Default `./data`. */
  readonly dataDir?: string;
  readonly clock?: Clock;
  readonly logger?: Logger;
  /** Stands in for what the document says a source, sink, side output or the dead-letter sink is: for tests. */
  readonly replace?: {
    source?(
      spec: SourceSpec,
    ): { readonly source: Source; readonly options: Partial<SourceOptions<unknown>> } | undefined;
    sink?(id: string): Sink | undefined;
  };
  /** Side outputs to read besides what the document reads, as `id.output`; each goes to `replace.sink`. */
  readonly alsoRead?: readonly InputRef[];
}

/**
 * Builds the pipeline of a workflow. Loads the code its `ref`s name; opens nothing else.
 *
 * @throws {MailerError} `not_carried` naming everything in the document that this build does not run.
 */
export async function buildWorkflow(spec: WorkflowSpec, options: BuildOptions): Promise<Env> {
  refuseUncarried(spec);
  const code = await loadAll(spec, options);
  return new Builder(spec, options, code).build();
}

function refuseUncarried({ uncarried }: WorkflowSpec): void {
  if (uncarried.length === 0) return;
  const list = uncarried.map(({ line, label, what }) => `  line ${line}: ${label}: ${what}`).join("\n");
  throw new MailerError("not_carried", `the workflow is valid, but this build does not carry yet:\n${list}`);
}

async function loadAll(spec: WorkflowSpec, options: BuildOptions): Promise<ReadonlyMap<string, unknown>> {
  const code = new Map<string, unknown>();
  for (const operator of spec.operators) {
    const ref = refOf(operator);
    if (ref !== undefined) code.set(operator.id, await options.loadCode(ref, { folder: options.folder }));
  }
  return code;
}

function refOf(operator: OperatorSpec): CodeRef | undefined {
  switch (operator.type) {
    case "filter":
      return operator.filter.ref;
    case "map":
      return operator.map.ref;
    case "flatMap":
      return operator.flatMap.ref;
    case "process":
      return operator.process.ref;
    default:
      return undefined;
  }
}

/**
 * Where a workflow keeps its state and checkpoints.
 *
 * @throws {MailerError} `two_folders` where state and checkpoints, which lie together, are given two.
 */
export function stateBackend(
  { env: { state, checkpointing } }: WorkflowSpec,
  { folder, dataDir = "./data" }: Pick<BuildOptions, "folder" | "dataDir">,
): StateBackend {
  const backend = state?.backend ?? "memory",
    dirs = [state?.dir, checkpointing?.dir].flatMap((dir) => dir ?? []);
  if (dirs.length === 2 && dirs[0] !== dirs[1]) {
    throw new MailerError(
      "two_folders",
      `state and checkpoints lie together, but env.state.dir is "${dirs[0]}" and env.checkpointing.dir "${
        dirs[1]
      }"`,
      { hint: "leave one of them out" },
    );
  }
  const isOutside = dirs.length === 0 || /^(\/|https?:)/.test(dirs[0]!) || folder === "";
  const place = dirs.length === 0 ? dataDir : isOutside ? dirs[0]! : `${folder}/${dirs[0]}`;
  return { memory, kv, sqlite }[backend](place);
}

class Builder {
  readonly #spec: WorkflowSpec;
  readonly #options: BuildOptions;
  readonly #code: ReadonlyMap<string, unknown>;
  readonly #env: Env;
  readonly #operators: ReadonlyMap<string, OperatorSpec>;
  readonly #built = new Map<string, Values>();
  readonly #windows = new Map<string, WindowedStream<unknown, unknown>>();

  constructor(spec: WorkflowSpec, options: BuildOptions, code: ReadonlyMap<string, unknown>) {
    this.#spec = spec;
    this.#options = options;
    this.#code = code;
    this.#env = createEnv({ name: spec.name });
    this.#operators = new Map(spec.operators.map((operator) => [operator.id, operator]));
  }

  build(): Env {
    const env = this.#env, { env: settings, sources, operators, sinks, dlq } = this.#spec;
    const { clock, logger, connectors, folder, replace, alsoRead } = this.#options;
    env.withBufferSize(settings.bufferSize).withShutdownTimeout(settings.shutdownTimeout);
    if (settings.bufferBytes !== undefined) env.withBufferBytes(settings.bufferBytes);
    if (clock !== undefined) env.withClock(clock);
    if (logger !== undefined) env.withLogger(logger);
    this.#durability(env);
    if (dlq !== undefined) {
      env.withDeadLetters(
        replace?.sink?.("dlq") ?? connectors.sink(dlq, { folder, workflow: this.#spec.name }),
        { id: dlq.id },
      );
    }
    for (const source of sources) this.#built.set(source.id, this.#source(source));
    for (const operator of operators) if (operator.type !== "window") this.#node(operator.id);
    for (const sink of sinks) this.#sink(sink);
    for (const output of alsoRead ?? []) {
      const id = `${output.node}.${output.output}`;
      this.#output(output).toSink(replace!.sink!(id)!, { id });
    }
    return env;
  }

  #durability(env: Env): void {
    const { checkpointing, restart } = this.#spec.env;
    if (restart !== undefined) env.withRestart(restart);
    if (checkpointing === undefined) return;
    const { interval, retainCompleted } = checkpointing;
    env.withCheckpointing(interval, { retain: retainCompleted })
      .withStateBackend(stateBackend(this.#spec, this.#options));
  }

  #source(spec: SourceSpec): Values {
    const { connectors, folder, replace } = this.#options;
    const replaced = replace?.source?.(spec);
    const { maxOutOfOrderness, idleTimeout } = spec.watermark;
    const watermarks = boundedOutOfOrderness(
      maxOutOfOrderness,
      idleTimeout === undefined ? {} : { idleTimeout },
    );
    return this.#env.fromSource<unknown>(
      replaced?.source ?? connectors.source(spec, { folder, workflow: this.#spec.name }),
      {
        id: spec.id,
        onError: spec.onError,
        watermarks: watermarks as WatermarkStrategy<unknown>,
        ...(spec.timestamp === undefined
          ? {}
          : { timestamp: timestampOf(spec.timestamp) as TimestampOf<unknown> }),
        ...(spec.type === "file" && spec.file.source !== undefined ? { sourceName: spec.file.source } : {}),
        ...replaced?.options,
      },
    );
  }

  #sink(spec: SinkSpec): void {
    const { connectors, folder, replace } = this.#options;
    this.#input(spec.from).toSink(
      replace?.sink?.(spec.id) ?? connectors.sink(spec, { folder, workflow: this.#spec.name }),
      {
        id: spec.id,
        onError: spec.onError,
        ...(spec.retry === undefined ? {} : { retry: spec.retry }),
      },
    );
  }

  /** One input, or several through a union. */
  #input(from: readonly InputRef[]): Values {
    const [first, ...others] = from.map((ref) => this.#output(ref));
    return others.length === 0 ? first! : first!.union(...others);
  }

  #output({ node, output }: InputRef): Values {
    if (output === undefined) return this.#node(node);
    const operator = this.#operators.get(node);
    if (operator?.type !== "window") return this.#side(this.#node(node), output);
    // The late records of a window leave by the operator that makes its rows.
    const reader = this.#spec.operators.find(({ from }) =>
      from.some((ref) => ref.node === node && ref.output === undefined)
    );
    return this.#side(this.#node(reader!.id), output);
  }

  #side(stream: Values, output: string): Values {
    return stream.sideOutput<unknown>(output);
  }

  #node(id: string): Values {
    const known = this.#built.get(id);
    if (known !== undefined) return known;
    const made = this.#operator(this.#operators.get(id)!);
    this.#built.set(id, made);
    return made;
  }

  #window(id: string): WindowedStream<unknown, unknown> | undefined {
    const operator = this.#operators.get(id);
    if (operator?.type !== "window") return undefined;
    let windowed = this.#windows.get(id);
    if (windowed === undefined) {
      windowed = buildWindow(this.#input(operator.from), operator.window);
      this.#windows.set(id, windowed);
    }
    return windowed;
  }

  #operator(spec: OperatorSpec): Values {
    const [first] = spec.from;
    const windowed = spec.from.length === 1 && first!.output === undefined
      ? this.#window(first!.node)
      : undefined;
    switch (spec.type) {
      case "reduce":
      case "aggregate":
        return buildAggregate(spec, windowed ?? this.#input(spec.from), this.#keyPart(spec));
      case "topN":
        return buildTopN(spec, windowed!);
      case "process":
        return this.#process(spec, windowed);
      case "keyBy":
        return buildKeyBy(spec, this.#input(spec.from));
      case "timestamp":
        return buildTimestamp(spec, this.#input(spec.from));
      case "dedupe": {
        const { ttl } = spec.dedupe;
        return keyed(this.#input(spec.from)).dedupe({ ...optionsOf(spec), ttl });
      }
      case "route":
        return this.#route(spec);
      case "sample": {
        const input = this.#input(spec.from);
        const sampled = input.sample(spec.sample.ratio, { ...optionsOf(spec), seed: spec.sample.seed });
        return input.sibling<unknown>(sampled.origin);
      }
      case "throttle": {
        const input = this.#input(spec.from), { rate, per } = spec.throttle;
        return keepKey(input, input.throttle(rate, { ...optionsOf(spec), per }), spec.id);
      }
      default:
        return buildStateless(spec, { input: this.#input(spec.from), code: this.#code.get(spec.id) });
    }
  }

  #keyPart(spec: OperatorSpec): KeyPart {
    const keyBy = this.#operators.get(spec.keyedBy!) as OperatorSpec & { readonly keyBy: KeyByBlock };
    return keyPart(keyBy.keyBy);
  }

  #route(spec: OperatorSpec & { readonly type: "route" }): Values {
    const { routes, default: fallback } = spec.route;
    const rows = spec.windowed ? "windowed" : "plain";
    const input = this.#input(spec.from);
    const list = routes.map(({ name, when }) => ({ name, when: conditionOf(when, rows) }));
    const options = { ...optionsOf(spec), userCode: false };
    const streams = fallback === undefined
      ? input.route(list, options)
      : input.route(list, { ...options, fallback });
    const { node } = Object.values(streams)[0]!.origin;
    return input.sibling<unknown>({ node, output: undefined });
  }

  #process(
    spec: OperatorSpec & { readonly type: "process" },
    windowed: WindowedStream<unknown, unknown> | undefined,
  ): Values {
    const code = this.#code.get(spec.id);
    const outputs = sideOutputsOf(spec) ?? [];
    const options = { ...optionsOf(spec), outputs };
    if (windowed !== undefined) {
      return windowed.process(code as Parameters<typeof windowed.process>[0], optionsOf(spec));
    }
    const input = this.#input(spec.from);
    if (input instanceof KeyedStream) {
      return input.processKeyed(code as KeyedProcess<unknown, unknown, unknown>, options);
    }
    if (typeof code !== "function") {
      throw new MailerError("invalid_ref", `"${spec.id}": the ref of a process must name a function`);
    }
    const made = input.process(code as ProcessFunction<unknown, unknown>, options);
    return spec.parallelism > 1 ? made.withParallelism(spec.parallelism) : made;
  }
}
