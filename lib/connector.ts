/**
 * The contracts of sources and sinks: what someone who writes a connector implements.
 *
 * `@mailer/core/testing` has a contract suite for each.
 *
 * @module
 */
import type { Clock } from "./clock.ts";
import type { Logger } from "./log.ts";
import type { Batch, Headers } from "./record.ts";

/** A JSON value that says how far a split has been read; what it means is the source's own affair. */
export type Position = unknown;

/** Where records enter. One object describes; each run opens a reader of its own. */
export interface Source<T = unknown> {
  /** Kind of the source, e.g. `file`. */
  readonly type: string;
  /** Set where what has been read cannot be read again, e.g. from standard input. */
  readonly replayable?: false;
  /** Set where it can be opened once only: a run that fails is then not started again. */
  readonly singleUse?: true;
  /** Settings for `describe` and the dashboard; never a secret. */
  describe(): Readonly<Record<string, unknown>>;
  /** Looks whether a run could start, and changes nothing; see {@link Finding}. */
  check?(context: CheckContext): Promise<readonly Finding[]>;
  /** Starts reading. Called once a run; nothing may be opened before. */
  open(context: SourceContext): SourceReader<T> | Promise<SourceReader<T>>;
}

/** What the runtime hands a source when it opens it. */
export interface SourceContext {
  /** Id of the source in its pipeline. */
  readonly id: string;
  /** The most records a read should return. */
  readonly batchSize: number;
  /** The pipeline's clock: the only time a connector goes by. */
  readonly clock: Clock;
  /** Where to report what is no error; never a secret. */
  readonly logger: Logger;
  /** Aborted when the run stops: a pending `read` should then settle (either way) soon. */
  readonly signal: AbortSignal;
  /** Positions to go on from, by split; they win over anything else. Undefined on a first run. */
  readonly restored: ReadonlyMap<string, Position> | undefined;
  /** Missing where the pipeline takes no checkpoints. */
  readonly checkpoints?: SourceCheckpoints;
  /** Whether the pipeline keeps state by key. Records of a key then have to come to the same process, with what it holds of the key. */
  readonly keepsState: boolean;
}

/** What a source may ask of the checkpoints of its pipeline. */
export interface SourceCheckpoints {
  /**
   * Takes a checkpoint now, behind the one under way: of everything that was read before. May be called while a read is pending.
   * Resolves when it is complete and the reader has been told; rejects where it fails, and when the run is over.
   */
  request(): Promise<void>;
}

/**
 * Reads the splits of one source.
 *
 * The runtime calls `read` again only after the last one settled, and `close` exactly once, after the last `read`.
 * A rejected `read` ends the run with that error.
 */
export interface SourceReader<T = unknown> {
  /** Splits known when opened, in the order they will be read. Unread ones hold the watermark back. */
  readonly splits: readonly string[];
  /** The next piece of input; waits while there is none. Resolving at once, not in a promise, is allowed and cheaper. */
  read(): SourceRead<T> | Promise<SourceRead<T>>;
  /**
   * A checkpoint is complete: whatever lies in front of these positions, by split, has been worked through and committed, and will
   * never be asked for again. May be called while a read is pending, and after the last one. A failure is logged; it ends nothing.
   */
  checkpointed?(positions: ReadonlyMap<string, Position>): void | Promise<void>;
  /** How much of a bounded input is behind us, in any unit. */
  progress?(): { readonly done: number; readonly total: number } | undefined;
  /** How many records of each split have not been read yet, as far as is known; for metrics. */
  lag?(): Iterable<SplitLag>;
  /**
   * Gives everything back. Called once, also when opening went well and no read came.
   *
   * @param outcome `done`: what was read has been worked through.
   */
  close(outcome: RunOutcome): void | Promise<void>;
}

/** How far a split has been read behind its end. */
export interface SplitLag {
  /** Name of the split. */
  readonly split: string;
  /** Records (offsets) up to the end. */
  readonly end: number;
  /** Records up to the first that is not certain yet, e.g. in an open transaction; `end` where there is no such thing. */
  readonly stable: number;
}

/** What one `read` found. */
export type SourceRead<T = unknown> =
  | RecordsRead<T>
  /** A fetch for this split came back empty: the only ground on which it may be called idle. */
  | { readonly kind: "empty"; readonly split: string }
  /** The split has been read up to here without a record, as where there are only records that are hidden. It neither wakes it nor is it idle. */
  | { readonly kind: "position"; readonly split: string; readonly position: Position }
  /** The source itself knows that event time of the split has reached `time`, ms. It counts beside the pipeline's own strategy. */
  | { readonly kind: "watermark"; readonly split: string; readonly time: number }
  /** More splits have appeared. */
  | { readonly kind: "added"; readonly splits: readonly string[] }
  /** The split is complete. */
  | { readonly kind: "ended"; readonly split: string }
  /** Others read these splits from now on. Their positions are forgotten; they may be added again. */
  | { readonly kind: "removed"; readonly splits: readonly string[] }
  /** All splits are complete and no more will come. */
  | { readonly kind: "end" };

/** Records of one split, in order. Columns have one entry a value; the runtime takes all arrays over. */
export interface RecordsRead<T = unknown> {
  /** Tells it from the other reads. */
  readonly kind: "records";
  /** A split that was announced and has not ended. */
  readonly split: string;
  /** The decoded values, in the order of the split. */
  readonly values: T[];
  /** Offset of the first value where offsets count up by one; else give `offsets`. */
  readonly firstOffset?: number;
  /** Offsets one by one, rising, where they do not count up. */
  readonly offsets?: Float64Array;
  /** The source's own timestamps, ms since the epoch; without them records have the time of reading. */
  readonly timestamps?: Float64Array;
  /** Keys the records came with; a `keyBy` behind the source chooses others. */
  readonly keys?: readonly unknown[];
  /** Headers the records came with. */
  readonly headers?: readonly (Headers | undefined)[];
  /** The records as they came, for dead letters. */
  readonly texts?: readonly (string | Uint8Array)[];
  /** Records that could not be decoded, in order; subject to the source's failure policy. */
  readonly failures?: readonly ReadFailure[];
  /** Bytes read, for bounding memory. */
  readonly bytes?: number;
  /** Where to go on behind these records (and failures). */
  readonly position: Position;
}

/** A record that could not be decoded. */
export interface ReadFailure {
  /** Number of values of the same read that come before it. */
  readonly before: number;
  /** Offset of the record in its split, where there is one. */
  readonly offset: number | undefined;
  /** What was read. */
  readonly text: string | Uint8Array;
  /** The key it came with. */
  readonly key?: unknown;
  /** The headers it came with. */
  readonly headers?: Headers;
  /** Why it could not be decoded. */
  readonly error: Error;
}

/** Where records leave. One object describes; each run opens a writer of its own. */
export interface Sink<T = unknown> {
  /** Kind of the sink, e.g. `file`. */
  readonly type: string;
  /** Settings for `describe` and the dashboard; never a secret. */
  describe(): Readonly<Record<string, unknown>>;
  /** Set where the values reach code that may change them: then they are not shared with other readers of the same output. */
  readonly handsValuesOut?: true;
  /** Set where it can be opened once only: a run that fails is then not started again. */
  readonly singleUse?: true;
  /** How what it writes becomes visible exactly once. Default: it does not; after a crash records may come twice. */
  readonly commits?: SinkCommits;
  /**
   * Sinks that commit: called before `open` by a run that goes on from a checkpoint which was durable, but of which it is not known
   * that it was committed. Commits it where it can. May be called again for the same committable.
   *
   * @returns Whether it is committed now, or lost for ever; the run then goes on from the checkpoint before.
   * @throws Where neither can be told: the run does not start.
   */
  recover?(committable: Committable, context: SinkRecovery): Recovered | Promise<Recovered>;
  /** Looks whether a run could start, and changes nothing; see {@link Finding}. */
  check?(context: CheckContext): Promise<readonly Finding[]>;
  /** Called once a run, before any source is read. */
  open(context: SinkContext): SinkWriter<T> | Promise<SinkWriter<T>>;
}

/** What a source or sink is handed to check itself. */
export interface CheckContext extends Pick<SinkContext, "id" | "clock" | "logger" | "signal"> {
  /** Time between checkpoints, ms; undefined where the pipeline takes none. */
  readonly checkpointInterval: number | undefined;
}

/** One thing that a check looked at. What is thrown instead counts as one that is not well. */
export interface Finding {
  /** Whether a run can do with it. */
  readonly ok: boolean;
  /** What was looked at, and how it is; never a secret. */
  readonly text: string;
  /** What to do, where it is not well. */
  readonly hint?: string;
}

/** What became of a committable. */
export type Recovered = "committed" | "lost";

/** What the runtime hands a sink to recover a committable. */
export type SinkRecovery = Pick<SinkContext, "id" | "clock" | "logger" | "signal">;

/** What the runtime hands a sink when it opens it. */
export interface SinkContext {
  /** Id of the sink in its pipeline. */
  readonly id: string;
  /** The pipeline's clock: the only time a connector goes by. */
  readonly clock: Clock;
  /** Where to report what is no error; never a secret. */
  readonly logger: Logger;
  /** Aborted when the run gives up on draining: a pending `write` or `flush` should then reject soon. */
  readonly signal: AbortSignal;
  /** What is known of earlier runs; missing where the pipeline takes no checkpoints. */
  readonly checkpoints?: SinkCheckpoints;
  /**
   * Hands one record to the sink's failure policy, e.g. one that cannot be encoded. Throws where the policy is to fail;
   * after a return the writer leaves the record out and goes on.
   */
  reject(batch: Batch, index: number, error: Error): void;
}

/**
 * How a sink makes records visible exactly once.
 *
 * - `two-phase`: `prepare` makes everything written since the last barrier durable but not visible, `commit` makes it visible. What
 *   has been prepared can always be committed, also by a later run.
 * - `atomic`: `commit` writes records and checkpoint in one transaction of the sink's own store. What was prepared is lost with the
 *   process; `recover` finds out whether it had been committed.
 * - `idempotent`: writing the same records again changes nothing. Neither `prepare` nor `commit` is called.
 */
export type SinkCommits = "two-phase" | "atomic" | "idempotent";

/** What a `prepare` says of what is to be committed: a JSON value that means something to the sink alone. */
export type Committable = unknown;

/** What a sink is told of checkpoints when it is opened. */
export interface SinkCheckpoints {
  /**
   * The committable of the checkpoint the run goes on from; it has been committed. Whatever an earlier run prepared or wrote
   * behind it is to be discarded: its records come again. Undefined on a first run.
   */
  readonly restored: Committable | undefined;
  /** From the start of one to the start of the next, ms. */
  readonly interval: number;
}

/**
 * Writes the records of one sink.
 *
 * A sink that commits (`two-phase`, `atomic`) has `prepare` and `commit`. At a barrier `prepare` is called in the place of `flush`;
 * when the checkpoint is durable `commit` is called with what it gave, once for each checkpoint, in their order; writes for the next
 * checkpoint may come in between. Of a checkpoint that failed nothing is committed: what it prepared belongs to the next one.
 * At a regular end the last `prepare` and `commit` come before `close`. Where the pipeline takes no checkpoints, neither is called,
 * and what is written becomes visible as soon as the sink can.
 *
 * Calls never overlap. A pending `write` holds everything behind it back; a rejected call ends the run with that error
 * (unless the sink has a retry policy). `flush` comes at every barrier and before `close` at a regular end: after it,
 * every record written so far is as safe as the sink can make it. `close` comes exactly once, whatever happened, and says
 * whether the run came to a regular end (`done`: the input ended, or was stopped and has drained) or not (`failed`).
 */
export interface SinkWriter<T = unknown> {
  /** Takes the values of a batch, in order. It may keep them, but must not change the batch. */
  write(batch: Batch<T>): void | Promise<void>;
  /** Makes everything written so far as safe as the sink can. */
  flush(): void | Promise<void>;
  /** Ends what was written since the last barrier and makes it ready to be committed. */
  prepare?(checkpoint: number): Committable | Promise<Committable>;
  /** Makes visible what was prepared, and all that was prepared before. */
  commit?(committable: Committable): void | Promise<void>;
  /** Gives everything back. What was written and not flushed may be lost when `outcome` is `failed`. */
  close(outcome: RunOutcome): void | Promise<void>;
}

/** How a run ended. */
export type RunOutcome = "done" | "failed";
