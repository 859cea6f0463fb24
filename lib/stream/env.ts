/**
 * The environment: where a pipeline begins, how it is set up, and how it is run.
 *
 * @module
 */
import { type Clock, systemClock } from "../clock.ts";
import type { Sink, Source } from "../connector.ts";
import { type Duration, parseDuration } from "../duration.ts";
import { MailerError } from "../errors.ts";
import { type Logger, silentLogger } from "../log.ts";
import { describePlan, type Description, explainPlan } from "../plan/describe.ts";
import type { SinkNode, SourceNode } from "../plan/graph.ts";
import { type Plan, plan } from "../plan/plan.ts";
import type { PipelineMetrics } from "../observe/metrics.ts";
import { Run } from "../runtime/run.ts";
import type { RecordContext } from "../record.ts";
import { boundedOutOfOrderness, type TimestampOf, type WatermarkStrategy } from "../runtime/watermarks.ts";
import { GraphBuilder, type OperatorOptions, retryPolicy } from "./graph_builder.ts";
import { RunHandle } from "./handle.ts";
import { readableSource } from "./readable_source.ts";
import { KeyedStream } from "./keyed_stream.ts";
import { type SinkOptions, Stream, type StreamScope } from "./stream.ts";

/** Settings of a source. */
export interface SourceOptions<T> extends OperatorOptions {
  /** Event time of a record, ms since the epoch. Default: the source's own; the time of reading where it has none. */
  readonly timestamp?: (value: T, record: RecordContext) => number;
  /** Name its records carry as their source. Default: the id. */
  readonly sourceName?: string;
  /** Where watermarks come from. Default: the greatest timestamp seen, per split. */
  readonly watermarks?: WatermarkStrategy<T>;
}

/** Settings of an environment. */
export interface EnvOptions {
  /** Name of the pipeline. Default `pipeline`. */
  readonly name?: string;
}

/** Number of key groups: the most partitions a keyed stage can ever have. */
const MAX_KEY_GROUPS = 128;

/** Describes and runs one pipeline. */
export class Env {
  /** Name of the pipeline: a label of its metrics, and what `describe` and `explain` call it. */
  readonly name: string;
  readonly #graph = new GraphBuilder();
  #bufferSize = 1024;
  #bufferBytes = 8 * 1024 * 1024;
  #shutdownTimeout = 30_000;
  #parallelism = 4;
  #clock: Clock = systemClock;
  #logger: Logger = silentLogger;
  #deadLetters: SinkNode | undefined;
  #run: Run | undefined;
  #metrics: PipelineMetrics | undefined;

  /** {@link createEnv} does the same. */
  constructor(options: EnvOptions = {}) {
    this.name = options.name ?? "pipeline";
  }

  /** Records that may wait between two stages. Default 1024. */
  withBufferSize(records: number): this {
    if (!(Number.isInteger(records) && records >= 1)) {
      throw new MailerError(
        "invalid_option",
        `the buffer size must be a whole number from 1, not ${records}`,
      );
    }
    this.#bufferSize = records;
    return this;
  }

  /** Bytes that may wait between two stages, as far as sources know them. Default 8 MiB. */
  withBufferBytes(bytes: number): this {
    if (!(bytes >= 1)) {
      throw new MailerError("invalid_option", `the buffer must hold at least 1 byte, not ${bytes}`);
    }
    this.#bufferBytes = bytes;
    return this;
  }

  /** How long draining may take after a stop. Default 30 s. */
  withShutdownTimeout(timeout: Duration): this {
    this.#shutdownTimeout = parseDuration(timeout);
    return this;
  }

  /** Partitions of a `keyBy` that does not say. Default 4. */
  withParallelism(parallelism: number): this {
    this.#parallelism = parallelism;
    return this;
  }

  /** The clock everything goes by that is not event time. Default: the machine's. */
  withClock(clock: Clock): this {
    this.#clock = clock;
    return this;
  }

  /** Where the run reports what happens. Default: nowhere. */
  withLogger(logger: Logger): this {
    this.#logger = logger;
    return this;
  }

  /** Where failed records of parts with `onError: "dlq"` go, as {@link DeadLetter} values. */
  withDeadLetters(sink: Sink, options: SinkOptions = {}): this {
    this.#deadLetters = {
      kind: "sink",
      id: options.id ?? "dlq",
      type: sink.type,
      inputs: [],
      onError: "fail",
      ...(options.retry === undefined ? {} : { retry: retryPolicy(options.retry) }),
      config: sink.describe(),
      sink,
    };
    return this;
  }

  /** A stream of what a source reads. */
  fromSource<T>(source: Source<T>, options: SourceOptions<T> = {}): Stream<T> {
    const node = this.#graph.add<SourceNode>({
      kind: "source",
      id: options.id ?? this.#graph.newId("source"),
      type: source.type,
      inputs: [],
      onError: options.onError ?? "fail",
      config: source.describe(),
      source: source as Source,
      ...(options.sourceName === undefined ? {} : { sourceName: options.sourceName }),
      timestamp: options.timestamp as TimestampOf<unknown> | undefined,
      watermarks: (options.watermarks ?? boundedOutOfOrderness(0)) as WatermarkStrategy,
    });
    return new Stream<T>(this.#scope, { node, output: undefined });
  }

  /** A stream of what a Web Stream gives. Its chunks are values or, much faster, lists of values. */
  fromReadable<T>(readable: ReadableStream<T | readonly T[]>, options: SourceOptions<T> = {}): Stream<T> {
    return this.fromSource<T>(readableSource<T>(readable), options);
  }

  /** Several streams of this environment as one. */
  union<T>(first: Stream<T>, ...others: readonly Stream<T>[]): Stream<T> {
    return first.union(...others);
  }

  /** The pipeline as data: sources, operators, sinks, settings. No secrets. */
  describe(): Description {
    return describePlan(this.name, this.#plan());
  }

  /** The pipeline for people: stages, edges, guarantee, and what is worth knowing. */
  explain(): string {
    return explainPlan(this.name, this.#plan());
  }

  /** Metrics in the Prometheus text format. */
  async metrics(): Promise<string> {
    return await (await this.pipelineMetrics()).text();
  }

  /** Runs to the end. A signal stops the run as {@link RunHandle.stop} does; that is no error. */
  async execute(options: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const { signal } = options;
    signal?.throwIfAborted();
    const handle = this.start();
    const stop = () => void handle.stop().catch(() => {}); // awaited below through `done`
    signal?.addEventListener("abort", stop, { once: true });
    try {
      await handle.done;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /** Starts the run and returns at once. */
  start(): RunHandle {
    if (
      this.#run !== undefined && this.#run.phase !== "finished" && this.#run.phase !== "stopped" &&
      this.#run.phase !== "failed"
    ) {
      throw new MailerError("already_running", `pipeline "${this.name}" is running already`);
    }
    this.#run = new Run(this.#plan(), {
      clock: this.#clock,
      logger: this.#logger,
      bufferSize: this.#bufferSize,
      bufferBytes: this.#bufferBytes,
      maxKeyGroups: MAX_KEY_GROUPS,
      shutdownTimeout: this.#shutdownTimeout,
    });
    return new RunHandle(this.name, this.#run, this.#deadLetters?.id);
  }

  /** @ignore The registry of this pipeline. It is made when somebody asks: loading the client costs a start 20 ms. */
  async pipelineMetrics(): Promise<PipelineMetrics> {
    const { PipelineMetrics } = await import("../observe/metrics.ts");
    return this.#metrics ??= new PipelineMetrics(this.name, () => this.#run);
  }

  #plan(): Plan {
    return plan(this.#graph.nodes, { deadLetters: this.#deadLetters, maxKeyGroups: MAX_KEY_GROUPS });
  }

  readonly #scope: StreamScope = {
    graph: this.#graph,
    defaultPartitions: () => this.#parallelism,
    keyed: (scope, origin) => new KeyedStream(scope, origin),
  };
}

/** Begins a pipeline. */
export function createEnv(options?: EnvOptions): Env {
  return new Env(options);
}
