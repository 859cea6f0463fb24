/**
 * Source `readable`: records from a Web Stream.
 *
 * @module
 */
import { abortable } from "../abortable.ts";
import type { Source, SourceContext, SourceRead, SourceReader } from "../connector.ts";
import { asError, MailerError } from "../errors.ts";

/** Settings of {@link readableSource}. */
export interface ReadableSourceOptions {
  /** Name of its one split; default `readable`. */
  readonly name?: string;
}

/**
 * Records from a stream whose chunks are values or, much faster, arrays of values. So values that are arrays themselves must
 * come in arrays.
 *
 * The stream can be read by one run only. When the run ends before the stream does, the stream is cancelled. It cannot be
 * replayed: a run that is restored goes on with what the new stream has, and logs a warning.
 */
export function readableSource<T>(
  readable: ReadableStream<T | readonly T[]>,
  { name = "readable" }: ReadableSourceOptions = {},
): Source<T> {
  let isUsed = false;
  return {
    type: "readable",
    replayable: false,
    singleUse: true,
    describe: () => ({}),
    open(context) {
      if (isUsed || readable.locked) {
        throw new MailerError(
          "readable_in_use",
          "readable source: the stream is being read, or was read by another run",
        );
      }
      isUsed = true;
      return new ReadableReader(readable.getReader(), name, context);
    },
  };
}

class ReadableReader<T> implements SourceReader<T> {
  readonly splits: readonly string[];
  readonly #reader: ReadableStreamDefaultReader<T | readonly T[]>;
  readonly #context: SourceContext;
  #chunk: readonly T[] = [];
  #at = 0;
  #offset = 0;
  #state: "reading" | "ended" | "over" = "reading";

  constructor(reader: ReadableStreamDefaultReader<T | readonly T[]>, name: string, context: SourceContext) {
    this.splits = [name];
    this.#reader = reader;
    this.#context = context;
    const position = context.restored?.get(name);
    if (typeof position === "number") {
      this.#offset = position;
      context.logger.log(
        "warn",
        "readable source: a stream cannot be read again, going on with the new one",
        {
          source: context.id,
        },
      );
    }
  }

  read(): SourceRead<T> | Promise<SourceRead<T>> {
    if (this.#at < this.#chunk.length) return this.#records();
    if (this.#state === "over") return { kind: "end" };
    if (this.#state === "ended") {
      this.#state = "over";
      return { kind: "ended", split: this.splits[0]! };
    }
    return abortable(this.#more(), this.#context.signal);
  }

  async close(): Promise<void> {
    try {
      if (this.#state === "reading") await this.#reader.cancel(this.#context.signal.reason);
    } finally {
      this.#state = "over";
      this.#reader.releaseLock();
    }
  }

  async #more(): Promise<SourceRead<T>> {
    for (;;) {
      let next: ReadableStreamReadResult<T | readonly T[]>;
      try {
        next = await this.#reader.read();
      } catch (cause) {
        this.#state = "over";
        throw new MailerError("readable_failed", `readable source: ${asError(cause).message}`, { cause });
      }
      if (next.done) {
        this.#state = "over";
        return { kind: "ended", split: this.splits[0]! };
      }
      this.#chunk = Array.isArray(next.value) ? next.value : [next.value as T];
      this.#at = 0;
      if (this.#chunk.length > 0) return this.#records();
    }
  }

  #records(): SourceRead<T> {
    const values = this.#chunk.slice(this.#at, this.#at + this.#context.batchSize),
      firstOffset = this.#offset;
    this.#at += values.length;
    this.#offset += values.length;
    return { kind: "records", split: this.splits[0]!, values, firstOffset, position: this.#offset };
  }
}
