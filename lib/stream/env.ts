/**
 * The environment: where a pipeline begins, how it is set up, and how it is run.
 *
 * @module
 */
import { memory, type StateBackend } from "../checkpoint/backend.ts";
import type { CheckpointSettings, CheckpointStep } from "../checkpoint/coordinator.ts";
import { Execution } from "../checkpoint/execution.ts";
import { checkRestart, type RestartSettings } from "../checkpoint/restart.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { Sink, Source } from "../connector.ts";
import { type Duration, parseDuration } from "../duration.ts";
import { MailerError } from "../errors.ts";
import { type Logger, silentLogger } from "../log.ts";
import { describePlan, type Description, type Durability, explainPlan } from "../plan/describe.ts";
import type { SinkNode, SourceNode } from "../plan/graph.ts";
import { type Plan, plan } from "../plan/plan.ts";
import type { PipelineMetrics } from "../observe/metrics.ts";
import type { RecordContext } from "../record.ts";
import { boundedOutOfOrderness, type TimestampOf, type WatermarkStrategy } from "../runtime/watermarks.ts";
import { GraphBuilder, type OperatorOptions, retryPolicy } from "./graph_builder.ts";
import { RunHandle } from "./handle.ts";
import { readableSource } from "./readable_source.ts";
import { type CheckedPart, checkParts } from "./check.ts";
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

/** Settings of checkpoints. */
export interface CheckpointOptions {
  /** At least so long from the end of one to the start of the next. Default 0. */
  readonly minPause?: Duration;
  /** Completed checkpoints that are kept. Default 3. */
  readonly retain?: number;
  /** Failed checkpoints in a row that a run survives. Default 3. A page of keyed state that cannot be written ends the run at once. */
  readonly tolerableFailures?: number;
  /**
   * How long its barrier may be on the way before it is given up. Default: as long as it takes; behind a throttle, a barrier waits for
   * all that is queued in front of it.
   */
  readonly timeout?: Duration;
}

/** How a failed run is started again. */
export interface RestartOptions {
  /** Restarts in a row. Default: without end. A run that has been healthy for longer than `maxDelay` begins counting anew. */
  readonly attempts?: number;
  /** Wait before the first, doubled each time. Default 1 s. */
  readonly delay?: Duration;
  /** The longest wait. Default 1 min. */
  readonly maxDelay?: Duration;
}

/** Where a run starts. */
export interface StartOptions {
  /** Savepoint to go on from, instead of the newest checkpoint. */
  readonly fromSavepoint?: string;
  /** Whether state of parts that the pipeline does not have any more may be left behind. Default false: it is an error. */
  readonly allowUnmatchedState?: boolean;
  /** @ignore For tests that crash at a step of a checkpoint. */
  readonly onCheckpointStep?: (step: CheckpointStep, number: number) => void | Promise<void>;
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
  #execution: Execution | undefined;
  #checkpoints: CheckpointSettings | undefined;
  #backend: StateBackend = memory();
  #restart: RestartSettings | undefined;
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

  /**
   * Takes checkpoints, from which a later run goes on. Default: none are taken; a run starts from the beginning.
   *
   * @param interval From the start of one to the start of the next.
   */
  withCheckpointing(interval: Duration, options: CheckpointOptions = {}): this {
    const { minPause = 0, retain = 3, tolerableFailures = 3, timeout } = options;
    const settings: CheckpointSettings = {
      interval: parseDuration(interval),
      minPause: parseDuration(minPause),
      retain,
      tolerated: tolerableFailures,
      timeout: timeout === undefined ? Infinity : parseDuration(timeout),
    };
    if (
      !(settings.interval > 0) || settings.minPause < 0 || !(Number.isInteger(retain) && retain >= 1) ||
      !(tolerableFailures >= 0) || !(settings.timeout > 0)
    ) {
      throw new MailerError(
        "invalid_option",
        "checkpointing: interval and timeout are more than 0, minPause and tolerableFailures not less, retain at least 1",
      );
    }
    this.#checkpoints = settings;
    return this;
  }

  /** Where keyed state and checkpoints are. Default: state in memory, checkpoints as files in `./data`. */
  withStateBackend(backend: StateBackend): this {
    this.#backend = backend;
    return this;
  }

  /** Starts again after a failure, from the last checkpoint where there is one. Default: a failure is the end. */
  withRestart(policy: RestartOptions = {}): this {
    this.#restart = checkRestart({
      attempts: policy.attempts ?? Infinity,
      delay: parseDuration(policy.delay ?? "1s"),
      maxDelay: parseDuration(policy.maxDelay ?? "1m"),
    });
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
    return describePlan(this.name, this.#plan(), this.#durability());
  }

  /** The pipeline for people: stages, edges, guarantee, and what is worth knowing. */
  explain(): string {
    return explainPlan(this.name, this.#plan(), this.#durability());
  }

  /**
   * Has all sources and sinks look whether a run could start: whether they reach what they talk to, and may do what they are to do.
   * Changes nothing.
   *
   * @returns What each part found, in the order of the pipeline; empty where there is nothing to look at.
   */
  async check(options: { readonly signal?: AbortSignal } = {}): Promise<readonly CheckedPart[]> {
    return await checkParts(this.#plan(), {
      clock: this.#clock,
      logger: this.#logger,
      signal: options.signal ?? new AbortController().signal,
      checkpointInterval: this.#checkpoints?.interval,
    });
  }

  /** Metrics in the Prometheus text format. */
  async metrics(): Promise<string> {
    return await (await this.pipelineMetrics()).text();
  }

  /** Runs to the end. A signal stops the run as {@link RunHandle.stop} does; that is no error. */
  async execute(options: { readonly signal?: AbortSignal } & StartOptions = {}): Promise<void> {
    const { signal } = options;
    signal?.throwIfAborted();
    const handle = this.start(options);
    const stop = () => void handle.stop().catch(() => {}); // awaited below through `done`
    signal?.addEventListener("abort", stop, { once: true });
    try {
      await handle.done;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  }

  /**
   * Starts the run and returns at once. With checkpointing it goes on where the last run ended, or from a savepoint.
   *
   * @throws {MailerError} `already_running`, `no_checkpointing`
   */
  start(options: StartOptions = {}): RunHandle {
    const phase = this.#execution?.phase ?? "finished";
    if (phase !== "finished" && phase !== "stopped" && phase !== "failed") {
      throw new MailerError("already_running", `pipeline "${this.name}" is running already`);
    }
    const { fromSavepoint, allowUnmatchedState = false, onCheckpointStep } = options;
    if (fromSavepoint !== undefined && this.#checkpoints === undefined) {
      throw new MailerError("no_checkpointing", `pipeline "${this.name}" takes no checkpoints`, {
        hint: "starting from a savepoint needs checkpointing: switch it on with an interval",
      });
    }
    this.#execution = new Execution({
      name: this.name,
      plan: this.#plan(),
      run: {
        clock: this.#clock,
        logger: this.#logger,
        bufferSize: this.#bufferSize,
        bufferBytes: this.#bufferBytes,
        maxKeyGroups: MAX_KEY_GROUPS,
        shutdownTimeout: this.#shutdownTimeout,
      },
      durable: this.#checkpoints === undefined ? undefined : {
        backend: this.#backend,
        checkpoints: this.#checkpoints,
        fromSavepoint,
        allowUnmatched: allowUnmatchedState,
        ...(onCheckpointStep === undefined ? {} : { onStep: onCheckpointStep }),
      },
      restart: this.#restart,
    });
    return new RunHandle(this.name, this.#execution, this.#deadLetters?.id);
  }

  /** @ignore The registry of this pipeline. It is made when somebody asks: loading the client costs a start 20 ms. */
  async pipelineMetrics(): Promise<PipelineMetrics> {
    const { PipelineMetrics } = await import("../observe/metrics.ts");
    return this.#metrics ??= new PipelineMetrics(this.name, () => this.#execution);
  }

  #durability(): Durability | undefined {
    if (this.#checkpoints === undefined) return undefined;
    const { type, ...config } = { type: this.#backend.type, ...this.#backend.describe() };
    return { interval: this.#checkpoints.interval, backend: { state: type, ...config } };
  }

  #plan(): Plan {
    return plan(this.#graph.nodes, {
      deadLetters: this.#deadLetters,
      maxKeyGroups: MAX_KEY_GROUPS,
      checkpointing: this.#checkpoints !== undefined,
    });
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
