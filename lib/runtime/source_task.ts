/**
 * Reads one source: gives its records event time and watermarks, watches for idle splits, and feeds the stages behind it.
 *
 * T1 A split is idle only when fetches for it came back empty for the idle timeout. Time spent waiting for room downstream,
 *    or working, does not count.
 * T2 A record that cannot be decoded, or has no timestamp, goes to the failure policy in its place among the others.
 * T3 After `stop` at most the read under way is taken; what was read before goes on downstream, then the end.
 * T4 Whoever reads a split's markers knows when it is idle: a record that wakes it is announced to all, not only to those who
 *    get the record.
 * T5 A source that never waits gives timers, signals and sockets their turn all the same.
 * T6 A barrier goes out between two reads, also while one is waited for. The positions it stands for are those of all records in
 *    front of it. Restored positions win over anything else; an input that had been read to its end stays so.
 *
 * @module
 */
import type { Clock } from "../clock.ts";
import type {
  Position,
  ReadFailure,
  RecordsRead,
  RunOutcome,
  Source,
  SourceContext,
  SourceRead,
  SourceReader,
  SplitLag,
} from "../connector.ts";
import { asError, MailerError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { Batch, type Channel, type Marker, type Origin, RecordView } from "../record.ts";
import { setOwn } from "../value.ts";
import type { OperatorCounters, SplitStatus, StageTimes } from "./counters.ts";
import type { FailureHandler } from "./failure.ts";
import { yieldToEventLoop } from "../scheduling.ts";
import type { StageOutputs } from "./outputs.ts";
import type { SnapshotCollector, SourceSnapshot, SplitSnapshot } from "./snapshots.ts";
import type { Task } from "./stage.ts";
import { EventTime, isTimestamp, type TimestampOf, type WatermarkStrategy } from "./watermarks.ts";

/** What a source task needs to know of its place in the run. */
export interface SourceTaskOptions {
  readonly id: string;
  readonly source: Source;
  /** Name the records carry as their source. */
  readonly sourceName: string;
  readonly group: number;
  readonly timestamp: TimestampOf<unknown> | undefined;
  readonly watermarks: WatermarkStrategy;
  readonly batchSize: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly counters: OperatorCounters;
  readonly times: StageTimes;
  readonly outputs: StageOutputs;
  /** Hands a batch to the outboxes of its readers. */
  readonly emit: (batch: Batch) => void;
  readonly failed: FailureHandler;
  /** Called for every split that appears. */
  readonly onSplit: (status: SplitStatus) => void;
  /** Called for every split that others read from now on. */
  readonly onRemoved: (status: SplitStatus) => void;
  /** Missing where no checkpoints are taken. */
  readonly snapshots: SnapshotCollector | undefined;
  /** Where to go on. */
  readonly restored: SourceSnapshot | undefined;
  /** Takes a checkpoint; missing where none are taken. */
  readonly requestCheckpoint: (() => Promise<void>) | undefined;
  /** Whether the pipeline keeps state by key. */
  readonly keepsState: boolean;
}

/** Longest stretch of work, in ms and in reads, before timers and signals get their turn. */
const LONGEST_TURN_MS = 8;
const LONGEST_TURN_READS = 1024;

class SplitState {
  readonly channel: Channel;
  readonly eventTime: EventTime;
  readonly status: SplitStatus;
  /** Behind the last record read. */
  position: Position | undefined;
  /** Waiting time at which fetches began to come back empty. */
  emptySince: number | undefined;
  announced = -Infinity;

  constructor(
    source: string,
    split: string,
    group: number,
    strategy: WatermarkStrategy,
    restored: SplitSnapshot | undefined,
  ) {
    this.channel = { group, name: `${source}/${split}` };
    this.eventTime = new EventTime(strategy);
    this.status = { source, split, offset: undefined, watermark: -Infinity, idle: false, ended: false };
    if (restored === undefined) return;
    this.position = restored.position;
    this.eventTime.restore(restored.eventTime);
  }

  snapshot(): SplitSnapshot {
    return { position: this.position, ended: this.status.ended, eventTime: this.eventTime.snapshot() };
  }
}

/** The running source. */
export class SourceTask implements Task {
  readonly name: string;
  readonly #options: SourceTaskOptions;
  readonly #outputs: StageOutputs;
  readonly #stop = new AbortController();
  readonly #splits = new Map<string, SplitState>();
  /** What is known of splits from the checkpoint that the run goes on from. */
  readonly #restored: Map<string, SplitSnapshot>;
  readonly #view = new RecordView();
  #reader: SourceReader | undefined;
  #isClosed = false;
  /** Whether the input has been read to its end. */
  #isComplete: boolean;
  /** Barriers that are to go out. */
  readonly #barriers: number[] = [];
  /** Set while a read is waited for: interrupts the wait, so that a barrier can go out. */
  #interrupt: (() => void) | undefined;
  #lastTurn = 0;
  #readsOfTurn = 0;

  constructor(options: SourceTaskOptions) {
    this.name = options.id;
    this.#options = options;
    this.#outputs = options.outputs;
    this.#isComplete = options.restored?.complete ?? false;
    this.#restored = new Map(Object.entries(options.restored?.splits ?? {}));
  }

  /** Has the barrier of a checkpoint go out, unless the source is over: what it holds then stands for it. */
  barrier(checkpoint: number): void {
    this.#barriers.push(checkpoint);
    this.#interrupt?.();
  }

  /** Reads no more: what has been read drains, and the edges get their end. */
  stop(): void {
    this.#stop.abort(new MailerError("stopped", `source "${this.name}" was stopped`));
  }

  get progress(): { readonly done: number; readonly total: number } | undefined {
    return this.#reader?.progress?.();
  }

  /** How far it is behind the end of its splits, as far as is known. */
  get lag(): Iterable<SplitLag> {
    return this.#reader?.lag?.() ?? [];
  }

  get isWaiting(): boolean {
    return false;
  }

  /** Opens the reader. Called once, before `run`, when every sink is open. */
  async open(): Promise<void> {
    if (this.#isComplete) return;
    const { id, source, batchSize, clock, logger, restored, keepsState, requestCheckpoint } = this.#options;
    const context: SourceContext = {
      id,
      batchSize,
      clock,
      logger,
      signal: this.#stop.signal,
      restored: restored === undefined ? undefined : positionsOf(restored),
      keepsState,
      ...(requestCheckpoint === undefined ? {} : { checkpoints: { request: requestCheckpoint } }),
    };
    let reader: SourceReader;
    try {
      reader = await source.open(context);
    } catch (error) {
      if (this.#stop.signal.aborted) return; // stopped before it was open: there is nothing to drain
      throw error;
    }
    if (this.#isClosed) await reader.close("failed"); // the run has given up meanwhile
    else this.#reader = reader;
  }

  /** Tells the reader of a checkpoint that is complete. */
  async checkpointed(snapshot: SourceSnapshot): Promise<void> {
    try {
      await this.#reader?.checkpointed?.(positionsOf(snapshot));
    } catch (error) {
      const fields = { source: this.name, error: asError(error).message };
      this.#options.logger.log("warn", "a source could not take note of a checkpoint", fields);
    }
  }

  async close(outcome: RunOutcome): Promise<void> {
    this.#isClosed = true;
    const reader = this.#reader;
    this.#reader = undefined;
    await reader?.close(outcome);
  }

  async run(): Promise<void> {
    this.#lastTurn = this.#options.clock.monotonic();
    this.#addSplits(this.#reader?.splits ?? []);
    await this.#outputs.write();
    if (this.#reader !== undefined) await this.#readAll(this.#reader);
    // Behind a union other sources go on: the splits of this one must not hold them.
    for (const split of this.#isComplete ? this.#splits.values() : []) this.#end(split);
    this.#marker({ kind: "end", complete: this.#isComplete });
    this.#options.snapshots?.finished(this.name, { source: this.#snapshot() });
    await this.#outputs.write();
  }

  async #readAll(reader: SourceReader): Promise<void> {
    while (!this.#stop.signal.aborted) {
      if (this.#barriers.length > 0) await this.#passBarriers();
      const found = reader.read();
      const read = found instanceof Promise ? await this.#wait(found) : found;
      if (read === undefined) return;
      if (read.kind === "end") {
        this.#isComplete = true;
        return;
      }
      this.#take(read);
      const full = this.#outputs.write();
      if (full !== undefined) await full;
      if (
        ++this.#readsOfTurn >= LONGEST_TURN_READS ||
        this.#options.clock.monotonic() - this.#lastTurn >= LONGEST_TURN_MS
      ) {
        await this.#giveWay();
      }
    }
  }

  /** Waits for a read. Barriers that are asked for meanwhile go out. */
  async #passingBarriers(pending: Promise<SourceRead>): Promise<SourceRead> {
    let arrived = false, wake = (): void => {};
    const arrive = (): void => {
      arrived = true;
      wake();
    };
    pending.then(arrive, arrive); // once a read, however many barriers go by
    for (;;) {
      if (this.#barriers.length > 0) await this.#passBarriers();
      if (arrived) return await pending;
      await new Promise<void>((resolve) => wake = this.#interrupt = resolve);
    }
  }

  async #passBarriers(): Promise<void> {
    for (const checkpoint of this.#barriers.splice(0)) {
      this.#outputs.marker({ kind: "barrier", checkpoint });
      this.#options.snapshots?.passed(this.name, checkpoint, { source: this.#snapshot() });
    }
    await this.#outputs.write();
  }

  #snapshot(): SourceSnapshot {
    const splits: Record<string, SplitSnapshot> = {};
    // A split that has not been announced again is still where it was: the source may find it later.
    for (const [name, split] of this.#restored) setOwn(splits, name, split);
    for (const [name, split] of this.#splits) setOwn(splits, name, split.snapshot());
    return { splits, complete: this.#isComplete };
  }

  /** Waits for a read. Undefined when it was given up because of a stop. */
  async #wait(pending: Promise<SourceRead>): Promise<SourceRead | undefined> {
    const { clock, times, watermarks } = this.#options;
    const since = clock.monotonic();
    const only = this.#onlyOpenSplit();
    // A reader of one split that waits is a fetch that comes back empty; readers of several say so split by split.
    const alarm = watermarks.idleTimeout === undefined || only === undefined || only.status.idle
      ? undefined
      : clock.schedule(watermarks.idleTimeout, () => {
        if (this.#stop.signal.aborted) return; // the edges may be gone
        this.#setIdle(only);
        this.#outputs.write()?.catch(() => {}); // an edge refuses only when the run has ended: its error is the run's
      });
    try {
      if (this.#options.snapshots === undefined) return await pending;
      return await this.#passingBarriers(pending);
    } catch (error) {
      if (this.#stop.signal.aborted) return undefined;
      throw error;
    } finally {
      this.#interrupt = undefined;
      alarm?.cancel();
      times.idle += clock.monotonic() - since;
    }
  }

  #take(read: SourceRead): void {
    const { clock, times } = this.#options;
    const started = clock.monotonic();
    switch (read.kind) {
      case "records":
        this.#records(read);
        break;
      case "empty":
        this.#empty(this.#split(read.split));
        break;
      case "position":
        this.#split(read.split).position = read.position;
        break;
      case "watermark": {
        const split = this.#split(read.split);
        this.#wake(split);
        split.eventTime.raise(read.time);
        this.#announce(split);
        break;
      }
      case "added":
        this.#addSplits(read.splits);
        break;
      case "ended":
        this.#end(this.#split(read.split));
        break;
      case "removed":
        for (const split of read.splits) this.#remove(split);
        break;
      case "end":
        break;
    }
    times.busy += clock.monotonic() - started;
  }

  #records(read: RecordsRead): void {
    const { sourceName, counters, timestamp: timestampOf } = this.#options;
    const split = this.#split(read.split);
    this.#wake(split);
    const count = read.values.length;
    counters.recordsIn += count + (read.failures?.length ?? 0);
    const origin: Origin & { timestamps: Float64Array; watermarks: Float64Array } = {
      channel: split.channel,
      source: sourceName,
      split: read.split,
      timestamps: read.timestamps ?? new Float64Array(count),
      watermarks: new Float64Array(count),
      firstOffset: read.firstOffset,
      offsets: read.offsets,
      headers: read.headers,
      keys: read.keys,
      texts: read.texts,
      windows: undefined,
      bytes: read.bytes ?? 0,
    };
    let batch = new Batch(read.values, origin);
    if (timestampOf === undefined && read.timestamps === undefined) {
      split.eventTime.stampAll(read.values, this.#options.clock.now(), origin.timestamps, origin.watermarks);
    } else {
      if (timestampOf !== undefined || !origin.timestamps.every(isTimestamp)) {
        batch = this.#timed(batch, timestampOf ?? OWN_TIMESTAMP, read.timestamps !== undefined);
      }
      this.#stamp(split, batch);
    }
    const last = batch.length === 0 ? undefined : batch.offset(batch.length - 1);
    if (last !== undefined) split.status.offset = last;
    split.position = read.position;
    if (read.failures === undefined) this.#options.emit(batch);
    else this.#withFailures(batch, read.failures, split);
    this.#announce(split);
  }

  /** Sets and checks the timestamps. Records without one go to the failure policy, and are not in the batch any more. */
  #timed(batch: Batch, timestampOf: TimestampOf<unknown>, hadOne: boolean): Batch {
    const { values, origin } = batch, view = this.#view;
    view.batch = batch;
    let bad: Map<number, unknown> | undefined;
    for (let i = 0; i < values.length; i++) {
      view.index = i;
      try {
        const timestamp: unknown = timestampOf(values[i], view);
        if (!isTimestamp(timestamp)) throw noTimestamp(timestamp);
        origin.timestamps[i] = timestamp;
      } catch (error) {
        if (!hadOne) origin.timestamps[i] = NaN;
        (bad ??= new Map()).set(i, error);
      }
    }
    if (bad === undefined) return batch;
    const rows = Int32Array.from(values.keys()).filter((i) => !bad.has(i));
    const kept = new Batch(Array.from(rows, (i) => values[i]), origin, rows);
    for (const [index, error] of bad) this.#options.failed(batch, index, error);
    return kept;
  }

  #stamp(split: SplitState, batch: Batch): void {
    const { origin, rows } = batch;
    if (rows === undefined) return split.eventTime.stamp(batch.values, origin.timestamps, origin.watermarks);
    // Some rows are gone: stamp the others, and put the columns back in their places.
    const timestamps = Float64Array.from(rows, (row) => origin.timestamps[row]!);
    const watermarks = new Float64Array(rows.length);
    split.eventTime.stamp(batch.values, timestamps, watermarks);
    rows.forEach((row, i) => origin.watermarks[row] = watermarks[i]!);
  }

  /** Emits the batch with the failures of its read in their places. */
  #withFailures(batch: Batch, failures: readonly ReadFailure[], split: SplitState): void {
    let from = 0;
    for (const failure of failures) {
      const next = batch.rows === undefined
        ? failure.before
        : batch.rows.findIndex((row) => row >= failure.before);
      const to = next === -1 ? batch.length : next;
      if (to > from) {
        this.#options.emit(slice(batch, from, to));
        from = to;
      }
      this.#options.failed(this.#failed(failure, split), 0, failure.error);
    }
    if (batch.length > from) this.#options.emit(slice(batch, from, batch.length));
  }

  #failed(failure: ReadFailure, split: SplitState): Batch {
    return new Batch<unknown>([failure.text], {
      channel: split.channel,
      source: this.#options.sourceName,
      split: split.status.split,
      timestamps: Float64Array.of(NaN),
      watermarks: Float64Array.of(split.eventTime.current),
      firstOffset: failure.offset,
      offsets: undefined,
      headers: failure.headers === undefined ? undefined : [failure.headers],
      keys: [failure.key],
      texts: [failure.text],
      windows: undefined,
      bytes: 0,
    });
  }

  #empty(split: SplitState): void {
    const { idleTimeout } = this.#options.watermarks;
    if (idleTimeout === undefined || split.status.idle) return;
    const { busy, blocked } = this.#options.times;
    const waited = this.#options.clock.monotonic() - busy - blocked;
    split.emptySince ??= waited;
    if (waited - split.emptySince >= idleTimeout) this.#setIdle(split);
  }

  /** The split has something to say again. */
  #wake(split: SplitState): void {
    split.emptySince = undefined;
    if (!split.status.idle) return;
    split.status.idle = false;
    this.#marker({ kind: "watermark", channel: split.channel, time: split.announced });
    split.announced = -Infinity; // to be said again when all have heard that it is awake
  }

  #end(split: SplitState): void {
    if (split.status.ended) return;
    split.status.ended = true;
    this.#marker({ kind: "ended", channel: split.channel });
  }

  /** Nobody waits for the split any more, and no checkpoint names it. */
  #remove(name: string): void {
    this.#restored.delete(name);
    const split = this.#splits.get(name);
    if (split === undefined) return;
    this.#end(split);
    this.#splits.delete(name);
    this.#options.onRemoved(split.status);
  }

  #setIdle(split: SplitState): void {
    split.status.idle = true;
    this.#marker({ kind: "idle", channel: split.channel });
  }

  /** Sends the split's watermark on where it has risen. */
  #announce(split: SplitState): void {
    const time = split.eventTime.current;
    if (time <= split.announced) return;
    split.announced = split.status.watermark = time;
    this.#marker({ kind: "watermark", channel: split.channel, time });
  }

  #addSplits(names: readonly string[]): void {
    const { id, group, watermarks, onSplit } = this.#options;
    const added: Channel[] = [];
    for (const name of names) {
      if (this.#splits.has(name)) {
        throw new MailerError("duplicate_split", `source "${id}" announced split "${name}" twice`);
      }
      const split = new SplitState(id, name, group, watermarks, this.#restored.get(name));
      this.#splits.set(name, split);
      added.push(split.channel);
      onSplit(split.status);
    }
    this.#marker({ kind: "open", group, channels: added });
    for (const name of names) this.#announce(this.#splits.get(name)!); // of those that were restored
  }

  #split(name: string): SplitState {
    const split = this.#splits.get(name);
    if (split === undefined) {
      throw new MailerError(
        "unknown_split",
        `source "${this.name}" read from split "${name}", which it never announced`,
      );
    }
    if (split.status.ended) {
      throw new MailerError(
        "ended_split",
        `source "${this.name}" read from split "${name}" after it had ended`,
      );
    }
    return split;
  }

  #onlyOpenSplit(): SplitState | undefined {
    let only: SplitState | undefined;
    for (const split of this.#splits.values()) {
      if (split.status.ended) continue;
      if (only !== undefined) return undefined;
      only = split;
    }
    return only;
  }

  #marker(marker: Marker): void {
    this.#outputs.marker(marker);
  }

  /** Lets timers, signals and sockets have their turn now and then: a fast source would keep them waiting for ever. */
  async #giveWay(): Promise<void> {
    await yieldToEventLoop();
    this.#lastTurn = this.#options.clock.monotonic();
    this.#readsOfTurn = 0;
  }
}

const OWN_TIMESTAMP: TimestampOf<unknown> = (_, record) => record.timestamp;

function positionsOf({ splits }: SourceSnapshot): Map<string, Position> {
  const known = Object.entries(splits).filter(([, { position }]) => position !== undefined);
  return new Map(known.map(([split, { position }]) => [split, position]));
}

function slice(batch: Batch, from: number, to: number): Batch {
  const rows = batch.rows?.subarray(from, to) ?? Int32Array.from({ length: to - from }, (_, i) => from + i);
  return new Batch(batch.values.slice(from, to), batch.origin, rows);
}

function noTimestamp(found: unknown): MailerError {
  return new MailerError(
    "no_timestamp",
    `the record has no timestamp: expected milliseconds since the epoch, got ${String(found)}`,
  );
}
