/**
 * Web Streams at the ends of a pipeline.
 *
 * @module
 */
import type { Sink, Source, SourceContext, SourceRead, SourceReader } from "../connector.ts";
import { MailerError } from "../errors.ts";
import type { Batch } from "../record.ts";

/**
 * Reads a Web Stream. Chunks are values or lists of values; lists travel as they are and are much faster.
 *
 * A Web Stream cannot be read twice, so neither can the source.
 */
export function readableSource<T>(readable: ReadableStream<T | readonly T[]>): Source<T> {
  return {
    type: "readable",
    describe: () => ({}),
    open: (context) => new ReadableReader<T>(readable.getReader(), context),
  };
}

class ReadableReader<T> implements SourceReader<T> {
  readonly splits = ["0"];
  #offset = 0;
  #rest: readonly T[] = [];

  constructor(
    private readonly reader: ReadableStreamDefaultReader<T | readonly T[]>,
    private readonly context: SourceContext,
  ) {
    // A pending read of a Web Stream settles only when its reader is cancelled.
    context.signal.addEventListener("abort", () => void reader.cancel(context.signal.reason).catch(() => {}), { once: true });
  }

  async read(): Promise<SourceRead<T>> {
    if (this.#rest.length === 0) {
      const { value, done } = await this.reader.read();
      if (done) return { kind: "end" };
      this.#rest = Array.isArray(value) ? value : [value as T];
    }
    const values = this.#rest.slice(0, this.context.batchSize);
    this.#rest = this.#rest.slice(values.length);
    const firstOffset = this.#offset;
    this.#offset += values.length;
    return { kind: "records", split: "0", values, firstOffset, position: this.#offset };
  }

  close(): void {
    this.reader.releaseLock();
  }
}

/** A sink whose values come out of a Web Stream. */
export function readableOf<T>(): { readonly sink: Sink<T>; readonly readable: ReadableStream<T> } {
  let controller!: ReadableStreamDefaultController<T>;
  let room = Promise.withResolvers<void>();
  let cancelled: MailerError | undefined;
  const readable = new ReadableStream<T>({
    start: (c) => {
      controller = c;
    },
    pull: () => room.resolve(),
    cancel: (reason) => {
      cancelled = new MailerError("reader_cancelled", `the reader of the pipeline's output stopped: ${String(reason)}`);
      room.reject(cancelled);
      room.promise.catch(() => {}); // nobody waits for room when nothing is being written
    },
  }, { highWaterMark: 1 });
  let finished = false;
  const sink: Sink<T> = {
    type: "readable",
    handsValuesOut: true,
    describe: () => ({}),
    open: ({ signal }) => {
      signal.addEventListener("abort", () => {
        room.reject(signal.reason);
        room.promise.catch(() => {});
      }, { once: true });
      return {
        async write(batch: Batch<T>) {
          for (const value of batch.values) {
            if (cancelled !== undefined) throw cancelled;
            if (controller.desiredSize! <= 0) {
              room = Promise.withResolvers<void>();
              await room.promise;
            }
            controller.enqueue(value);
          }
        },
        flush() {
          finished = true;
        },
        close() {
          if (cancelled !== undefined) return;
          if (finished) controller.close();
          else controller.error(signal.aborted ? signal.reason : new MailerError("aborted", "the pipeline ended early"));
        },
      };
    },
  };
  return { sink, readable };
}
