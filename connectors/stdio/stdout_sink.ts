/**
 * Sink `stdout`: one line a record to standard output.
 *
 * @module
 */
import { abortable } from "../../lib/abortable.ts";
import type { Sink, SinkContext, SinkWriter } from "../../lib/connector.ts";
import { asError, MailerError } from "../../lib/errors.ts";
import {
  encodeBatch,
  type Encoder,
  type Format,
  jsonFormat,
  linesOf,
  readyEncoder,
} from "../../lib/format/mod.ts";
import type { Batch } from "../../lib/record.ts";

/** Where bytes can be written. */
export interface Output {
  /** Writes some of the bytes, at least one, and returns how many. */
  write(bytes: Uint8Array): Promise<number>;
}

/** Settings of {@link stdoutSink}. */
export interface StdoutSinkOptions {
  /** How a record is written; default json. */
  readonly format?: Format;
  /** Written to in place of the process's standard output. */
  readonly output?: Output;
}

/**
 * Writes records to standard output, a batch at a time, held up while the reader is. A reader that has gone away
 * (`… | head -1`) ends the run with the error `stdout_closed`.
 */
export function stdoutSink<T = unknown>({ format = jsonFormat(), output }: StdoutSinkOptions = {}): Sink<T> {
  return {
    type: "stdout",
    describe: () => ({ format: format.name }),
    open: (context) => new StdoutWriter(readyEncoder(format, "stdout sink"), output ?? Deno.stdout, context),
  };
}

class StdoutWriter implements SinkWriter<unknown> {
  readonly #encoder: Encoder;
  readonly #output: Output;
  readonly #context: SinkContext;
  #hasHead = false;
  /** What is left of a batch: where a write has failed and is made again, no record is written, or rejected, twice. */
  #left: { readonly batch: Batch; bytes: Uint8Array } | undefined;

  constructor(encoder: Encoder, output: Output, context: SinkContext) {
    this.#encoder = encoder;
    this.#output = output;
    this.#context = context;
  }

  write(batch: Batch): void | Promise<void> {
    if (this.#left?.batch !== batch) this.#left = { batch, bytes: this.#lines(batch) };
    return this.#left.bytes.length === 0
      ? undefined
      : abortable(this.#writeAll(this.#left), this.#context.signal);
  }

  flush(): void {}
  close(): void {}

  #lines(batch: Batch): Uint8Array {
    const payloads = encodeBatch(this.#encoder, batch, this.#context.reject);
    if (payloads.length === 0) return new Uint8Array(0);
    const head = this.#hasHead ? undefined : this.#encoder.head?.();
    this.#hasHead = true;
    return linesOf(head === undefined ? payloads : [head, ...payloads]);
  }

  async #writeAll(left: { bytes: Uint8Array }): Promise<void> {
    try {
      while (left.bytes.length > 0) left.bytes = left.bytes.subarray(await this.#output.write(left.bytes));
    } catch (cause) {
      if (cause instanceof Deno.errors.BrokenPipe) {
        throw new MailerError("stdout_closed", "standard output was closed by its reader", { cause });
      }
      throw new MailerError("stdout_failed", `standard output: ${asError(cause).message}`, { cause });
    }
    this.#left = undefined;
  }
}
