/**
 * Sink `readable`: hands its values out as a Web Stream.
 *
 * H1 A write is held until the reader has room, so a slow reader slows the run down.
 * H2 A reader that cancels ends the run with the error `reader_cancelled`.
 * H3 The stream closes when the run comes to its regular end, and fails when the run ends otherwise.
 *
 * @module
 */
import { abortable } from "../abortable.ts";
import type { Sink, SinkContext, SinkWriter } from "../connector.ts";
import { MailerError } from "../errors.ts";
import type { Batch } from "../record.ts";

/** A sink and the stream its values come out of. */
export interface ReadableSink<T> {
  /** Takes the values. */
  readonly sink: Sink<T>;
  /** Gives them. */
  readonly readable: ReadableStream<T>;
}

/** Settings of {@link readableSink}. */
export interface ReadableSinkOptions {
  /** How many values may wait for the reader before a write is held; default 1024. */
  readonly highWaterMark?: number;
}

/** A sink for one run whose values are read from a stream. */
export function readableSink<T = unknown>(
  { highWaterMark = 1024 }: ReadableSinkOptions = {},
): ReadableSink<T> {
  const outlet = new Outlet<T>();
  const readable = new ReadableStream<T>(outlet, { highWaterMark });
  const sink: Sink<T> = {
    type: "readable",
    handsValuesOut: true,
    singleUse: true,
    describe: () => ({}),
    open: (context) => outlet.open(context),
  };
  return { sink, readable };
}

/** The end of the stream that values are put in at. */
class Outlet<T> implements UnderlyingDefaultSource<T> {
  #controller!: ReadableStreamDefaultController<T>;
  #isOpen = false;
  #isCancelled = false;
  #goOn: (() => void) | undefined;

  start(controller: ReadableStreamDefaultController<T>): void {
    this.#controller = controller;
  }

  pull(): void {
    this.#goOn?.();
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#goOn?.();
  }

  open(context: SinkContext): SinkWriter<T> {
    if (this.#isOpen) {
      throw new MailerError("readable_in_use", "readable sink: its stream belongs to a run already");
    }
    this.#isOpen = true;
    return {
      write: (batch) => this.#write(batch, context),
      flush: () => this.#check(),
      close: (outcome) => {
        if (this.#isCancelled) return;
        if (outcome === "done") this.#controller.close();
        else this.#controller.error(new MailerError("run_ended", "the run ended before its input did"));
      },
    };
  }

  #write(batch: Batch<T>, { signal }: SinkContext): void | Promise<void> {
    this.#check();
    for (const value of batch.values) this.#controller.enqueue(value);
    if (this.#controller.desiredSize! <= 0) return abortable(this.#room(), signal);
  }

  async #room(): Promise<void> {
    while (!this.#isCancelled && this.#controller.desiredSize! <= 0) {
      await new Promise<void>((resolve) => this.#goOn = resolve);
    }
    this.#check();
  }

  #check(): void {
    if (this.#isCancelled) {
      throw new MailerError("reader_cancelled", "readable sink: its reader wants no more");
    }
  }
}
