/**
 * Feeds one sink from its edge.
 *
 * K1 Calls of the writer never overlap; while one is pending the edge fills and everything in front of it waits.
 * K2 A failed call is made again as the retry policy says, then it ends the run.
 * K3 At a barrier a sink that commits prepares, any other one flushes; what was prepared is committed when the checkpoint is durable,
 *    never while another call is pending.
 * K4 At a regular end the writer is flushed before it is closed; it is closed exactly once whatever happened.
 *
 * @module
 */
import { type Clock, delay } from "../clock.ts";
import type { Committable, RunOutcome, Sink, SinkCommits, SinkWriter } from "../connector.ts";
import { asError, codeOf, isFenced, MailerError, RecordError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { Batch } from "../record.ts";
import type { OperatorCounters, StageTimes } from "./counters.ts";
import type { Edge } from "./edge.ts";
import type { FailureHandler, RetryPolicy } from "./failure.ts";
import type { StageOutputs } from "./outputs.ts";
import type { SnapshotCollector, TaskSnapshot } from "./snapshots.ts";
import type { Task } from "./stage.ts";

/** What a sink task needs to know of its place in the run. */
export interface SinkTaskOptions {
  readonly id: string;
  readonly sink: Sink;
  readonly edge: Edge;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly counters: OperatorCounters;
  readonly times: StageTimes;
  readonly retry: RetryPolicy | undefined;
  readonly failed: FailureHandler;
  /** Where its dead letters go. */
  readonly outputs: StageOutputs;
  /** Aborted when the run gives up on draining. */
  readonly signal: AbortSignal;
  /** Missing where no checkpoints are taken. */
  readonly snapshots: SnapshotCollector | undefined;
  /** What was committed when the checkpoint that the run goes on from was taken. */
  readonly restored: Committable | undefined;
  /** Time between checkpoints, ms; undefined where none are taken. */
  readonly checkpointInterval: number | undefined;
}

/** Whether a sink has something to commit. */
export function commits({ commits }: Sink): boolean {
  return commits === "two-phase" || commits === "atomic";
}

/** The running sink. */
export class SinkTask implements Task {
  readonly name: string;
  readonly #options: SinkTaskOptions;
  #writer: SinkWriter | undefined;
  #isClosed = false;
  /** The call of the writer that was made last, and a commit that waits for it or is under way. */
  #calling: Promise<unknown> | undefined;
  #committing: Promise<void> | undefined;
  /** The batch being written, and its records that have been through the failure policy: a further try must not send them again. */
  #writing: Batch | undefined;
  readonly #rejected = new Set<number>();

  constructor(options: SinkTaskOptions) {
    this.name = options.id;
    this.#options = options;
  }

  /** How it commits, if it does. */
  get commits(): SinkCommits | undefined {
    return this.#options.sink.commits;
  }

  get isWaiting(): boolean {
    return this.#options.edge.isAwaited;
  }

  /** Opens the writer. Called once, before `run`. */
  async open(): Promise<void> {
    const { id, sink, clock, logger, signal, failed } = this.#options;
    const reject: FailureHandler = (batch, index, error) => {
      const isOfWriting = batch === this.#writing;
      if (isOfWriting && this.#rejected.has(index)) return;
      failed(batch, index, error);
      if (isOfWriting) this.#rejected.add(index);
    };
    const { restored, checkpointInterval: interval } = this.#options;
    const checkpoints = interval === undefined ? {} : { checkpoints: { restored, interval } };
    const writer = await sink.open({ id, clock, logger, signal, reject, ...checkpoints });
    if (this.#isClosed) await writer.close("failed"); // the run has given up meanwhile
    else this.#writer = writer;
  }

  async close(outcome: RunOutcome): Promise<void> {
    this.#isClosed = true;
    await this.#committing?.catch(() => {}); // whoever asked for it has its error
    const writer = this.#writer;
    this.#writer = undefined;
    await writer?.close(outcome);
  }

  async run(): Promise<void> {
    const { edge, clock, times, counters, outputs } = this.#options;
    const writer = this.#writer!;
    for (;;) {
      const waiting = clock.monotonic();
      const item = await edge.read();
      const started = clock.monotonic();
      times.idle += started - waiting;
      if (item instanceof Batch) {
        counters.recordsIn += item.length;
        this.#writing = item;
        if (this.#committing !== undefined) await this.#committing;
        try {
          const written = writer.write(item);
          if (written instanceof Promise) await (this.#calling = written);
        } catch (error) {
          await (this.#calling = this.#again(error, () => writer.write(item)));
        }
        counters.recordsOut += item.length - this.#rejected.size;
        this.#rejected.clear();
        this.#writing = undefined; // what a later call rejects is not told apart by its place in this batch
        times.busy += clock.monotonic() - started;
        await outputs.write();
      } else if (item.kind === "barrier" || item.kind === "end") {
        const snapshot = await this.#secure(item.kind === "barrier" ? item.checkpoint : undefined);
        times.busy += clock.monotonic() - started;
        if (item.kind === "barrier") this.#options.snapshots?.passed(this.name, item.checkpoint, snapshot);
        else this.#options.snapshots?.finished(this.name, snapshot);
        outputs.marker(item);
        await outputs.write();
        if (item.kind === "end") return;
      }
    }
  }

  /** Prepares or flushes what was written. `checkpoint` is missing at the end. */
  async #secure(checkpoint: number | undefined): Promise<TaskSnapshot> {
    const { sink, snapshots } = this.#options, writer = this.#writer!;
    if (this.#committing !== undefined) await this.#committing;
    if (snapshots === undefined || !commits(sink)) {
      await (this.#calling = this.#call(() => writer.flush()));
      return {};
    }
    if (writer.prepare === undefined || writer.commit === undefined) {
      throw new MailerError(
        "invalid_sink",
        `sink "${this.name}" says it commits (${sink.commits}), but its writer has no prepare and commit`,
      );
    }
    const number = checkpoint ?? snapshots.nextNumber();
    const preparing = this.#call(() => writer.prepare!(number));
    this.#calling = preparing;
    return { committable: await preparing };
  }

  /** Makes what was prepared for a checkpoint visible, behind the call under way. */
  async commit(committable: Committable): Promise<void> {
    const committing = this.#commit(committable, this.#committing);
    this.#committing = committing;
    try {
      await committing;
    } finally {
      if (this.#committing === committing) this.#committing = undefined;
    }
  }

  async #commit(committable: Committable, before: Promise<void> | undefined): Promise<void> {
    await before;
    await this.#calling?.catch(() => {}); // whoever made that call has its error
    await this.#call(async () => await this.#writer!.commit!(committable));
  }

  async #call<R>(call: () => R | Promise<R>): Promise<R> {
    try {
      return await call();
    } catch (error) {
      return await this.#again(error, call);
    }
  }

  async #again<R>(first: unknown, call: () => R | Promise<R>): Promise<R> {
    const { id, retry, clock, signal, counters, logger } = this.#options;
    let error = first;
    // A record error has been through the failure policy already, and what lasts would only come again.
    const isFinal = first instanceof RecordError || isFenced(first) ||
      (first instanceof MailerError && first.lasting);
    const attempts = isFinal ? 1 : retry?.attempts ?? 1;
    for (let attempt = 2; attempt <= attempts; attempt++) {
      counters.errors++;
      logger.log("warn", "sink failed, trying again", { sink: id, attempt, error: asError(error).message });
      await delay(clock, retry!.delay, signal);
      try {
        return await call();
      } catch (next) {
        error = next;
      }
    }
    if (error instanceof RecordError) throw error; // counted already
    counters.errors++;
    if (error instanceof MailerError) throw error;
    throw new MailerError(codeOf(error), `sink "${id}": ${asError(error).message}`, { cause: error });
  }
}
