/**
 * Feeds one sink from its edge.
 *
 * K1 Calls of the writer never overlap; while one is pending the edge fills and everything in front of it waits.
 * K2 A failed call is made again as the retry policy says, then it ends the run.
 * K3 At a regular end the writer is flushed before it is closed; it is closed exactly once whatever happened.
 *
 * @module
 */
import { type Clock, delay } from "../clock.ts";
import type { RunOutcome, Sink, SinkWriter } from "../connector.ts";
import { asError, codeOf, MailerError, RecordError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { Batch } from "../record.ts";
import type { OperatorCounters, StageTimes } from "./counters.ts";
import type { Edge } from "./edge.ts";
import type { FailureHandler, RetryPolicy } from "./failure.ts";
import type { StageOutputs } from "./outputs.ts";
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
}

/** The running sink. */
export class SinkTask implements Task {
  readonly name: string;
  readonly #options: SinkTaskOptions;
  #writer: SinkWriter | undefined;
  #isClosed = false;
  /** The batch being written, and its records that have been through the failure policy: a further try must not send them again. */
  #writing: Batch | undefined;
  readonly #rejected = new Set<number>();

  constructor(options: SinkTaskOptions) {
    this.name = options.id;
    this.#options = options;
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
    const writer = await sink.open({ id, clock, logger, signal, reject });
    if (this.#isClosed) await writer.close("failed"); // the run has given up meanwhile
    else this.#writer = writer;
  }

  async close(outcome: RunOutcome): Promise<void> {
    this.#isClosed = true;
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
        try {
          const written = writer.write(item);
          if (written instanceof Promise) await written;
        } catch (error) {
          await this.#again(error, () => writer.write(item));
        }
        counters.recordsOut += item.length - this.#rejected.size;
        this.#rejected.clear();
        times.busy += clock.monotonic() - started;
        await outputs.write();
      } else if (item.kind === "end") {
        try {
          await writer.flush();
        } catch (error) {
          await this.#again(error, () => writer.flush());
        }
        times.busy += clock.monotonic() - started;
        outputs.marker(item);
        await outputs.write();
        return;
      }
    }
  }

  async #again(first: unknown, call: () => void | Promise<void>): Promise<void> {
    const { id, retry, clock, signal, counters, logger } = this.#options;
    let error = first;
    // A record error has been through the failure policy already: writing it again changes nothing.
    const attempts = first instanceof RecordError ? 1 : retry?.attempts ?? 1;
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
