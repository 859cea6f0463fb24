/**
 * Source `stdin`: records from standard input.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import type { Source, SourceContext, SourceRead, SourceReader } from "../../lib/connector.ts";
import { asError, MailerError } from "../../lib/errors.ts";
import {
  checkedTextOptions,
  type TextOptions,
  type TextPosition,
  type TextReader,
  textReader,
} from "../../lib/format/mod.ts";

/** Settings of {@link stdinSource}. */
export interface StdinSourceOptions extends TextOptions {
  /** Read in place of the process's standard input. */
  readonly input?: ReadableStream<Uint8Array>;
}

const SPLIT = "stdin";

/**
 * Records from standard input, formats and rules as for files. It cannot be replayed: a run that is restored goes on with
 * what comes in now, and logs a warning.
 *
 * @throws {MailerError} `invalid_text_options`, `invalid_csv_options`
 */
export function stdinSource<T = unknown>(options: StdinSourceOptions = {}): Source<T> {
  const text = checkedTextOptions(options);
  return {
    type: "stdin",
    replayable: false,
    describe: () => ({ format: text.format }),
    open(context) {
      const restored = context.restored?.get(SPLIT) as TextPosition | undefined;
      if (restored !== undefined) {
        context.logger.log("warn", "standard input cannot be read again, going on with what comes in now", {
          source: context.id,
        });
      }
      const input = options.input ?? Deno.stdin.readable;
      if (input.locked) {
        throw new MailerError("stdin_in_use", "standard input is being read by another source");
      }
      const reader = textReader(text, { bytes: 0, record: restored?.record ?? 0 });
      return new StdinReader(input.getReader(), reader, context) as SourceReader<T>;
    },
  };
}

class StdinReader implements SourceReader {
  readonly splits: readonly string[] = [SPLIT];
  readonly #input: ReadableStreamDefaultReader<Uint8Array>;
  readonly #text: TextReader;
  readonly #context: SourceContext;
  #state: "reading" | "ended" | "over" = "reading";

  constructor(input: ReadableStreamDefaultReader<Uint8Array>, text: TextReader, context: SourceContext) {
    this.#input = input;
    this.#text = text;
    this.#context = context;
  }

  read(): SourceRead | Promise<SourceRead> {
    const records = this.#records();
    if (records !== undefined) return records;
    if (this.#state === "reading") return abortable(this.#more(), this.#context.signal);
    if (this.#state === "over") return { kind: "end" };
    this.#state = "over";
    return { kind: "ended", split: SPLIT };
  }

  async close(): Promise<void> {
    try {
      if (this.#state === "reading") await this.#input.cancel();
    } finally {
      this.#input.releaseLock();
    }
  }

  async #more(): Promise<SourceRead> {
    for (;;) {
      let next: ReadableStreamReadResult<Uint8Array>;
      try {
        next = await this.#input.read();
      } catch (cause) {
        this.#state = "over";
        throw new MailerError("stdin_failed", `standard input: ${asError(cause).message}`, { cause });
      }
      if (next.done) {
        this.#state = "ended";
        this.#text.end();
      } else this.#text.push(next.value);
      const records = this.#records();
      if (records !== undefined) return records;
      if (next.done) {
        this.#state = "over";
        return { kind: "ended", split: SPLIT };
      }
    }
  }

  #records(): SourceRead | undefined {
    const read = this.#text.next(this.#context.batchSize);
    return read === undefined ? undefined : { kind: "records", split: SPLIT, ...read };
  }
}
