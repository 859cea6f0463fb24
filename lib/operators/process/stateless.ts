/**
 * `process` without keys: a function of the user's that may emit any number of records, to several outputs, and change key,
 * time and headers.
 *
 * @module
 */
import { MailerError } from "../../errors.ts";
import {
  Batch,
  type Headers,
  type Marker,
  type Origin,
  type RecordContext,
  RecordView,
} from "../../record.ts";
import type { Operator, OperatorContext, Receiver } from "../../runtime/operator.ts";
import { isTimestamp } from "../../runtime/watermarks.ts";

/** What an emitted record has other than the one it comes from. */
export interface StatelessEmitOptions {
  /** Default: the key of the record it comes from. */
  readonly key?: unknown;
  /** Event time, ms. It must not be behind the watermark, or the record is late downstream. */
  readonly timestamp?: number;
  /** Default: those of the record it comes from. */
  readonly headers?: Headers;
}

/** The record being worked on, and the ways out. Valid during the call only. */
export interface ProcessContext<Out = unknown> extends RecordContext {
  /** Emits to the main output; time, key and headers are the record's unless given. */
  emit(value: Out, options?: StatelessEmitOptions): void;
  /** Emits to a side output. */
  output(tag: string, value: unknown, options?: StatelessEmitOptions): void;
}

/** A stateless process function. A thrown error is a record error: then nothing of what it emitted goes out. */
export type ProcessFunction<T, Out> = (value: T, context: ProcessContext<Out>) => void;

interface Emitted {
  readonly value: unknown;
  readonly index: number;
  readonly options: StatelessEmitOptions | undefined;
}

/** Runs a stateless process function. */
export class ProcessOperator implements Operator {
  readonly #view: ProcessView;
  readonly #emitted = new Map<string | undefined, Emitted[]>();

  constructor(
    private readonly fn: ProcessFunction<unknown, unknown>,
    private readonly context: OperatorContext,
  ) {
    this.#view = new ProcessView((tag, value, options) => {
      const timestamp: unknown = options?.timestamp;
      if (timestamp !== undefined && !isTimestamp(timestamp)) {
        throw new MailerError(
          "no_timestamp",
          `emit: expected milliseconds since the epoch, got ${String(timestamp)}`,
        );
      }
      let list = this.#emitted.get(tag);
      if (list === undefined) {
        context.output(tag); // an output that nobody declared is an error at once
        this.#emitted.set(tag, list = []);
      }
      list.push({ value, index: this.#view.index, options });
    });
  }

  batch(batch: Batch): void {
    const view = this.#view, { values } = batch;
    view.batch = batch;
    for (let i = 0; i < values.length; i++) {
      view.index = i;
      const before = new Map([...this.#emitted].map(([tag, list]) => [tag, list.length]));
      try {
        this.fn(values[i], view);
      } catch (error) {
        // A record emits everything or nothing.
        for (const [tag, list] of this.#emitted) list.length = before.get(tag) ?? 0;
        this.context.failed(batch, i, error);
      }
    }
    for (const [tag, list] of this.#emitted) {
      if (list.length > 0) handOn(this.context.output(tag), batch, list);
      list.length = 0;
    }
  }
  marker(marker: Marker): void {
    this.context.output().marker(marker);
  }
}

class ProcessView extends RecordView implements ProcessContext {
  readonly #send: (tag: string | undefined, value: unknown, options?: StatelessEmitOptions) => void;

  constructor(send: (tag: string | undefined, value: unknown, options?: StatelessEmitOptions) => void) {
    super();
    this.#send = send;
  }
  emit(value: unknown, options?: StatelessEmitOptions): void {
    this.#send(undefined, value, options);
  }
  output(tag: string, value: unknown, options?: StatelessEmitOptions): void {
    this.#send(tag, value, options);
  }
}

function handOn(out: Receiver, batch: Batch, emitted: readonly Emitted[]): void {
  const values = emitted.map(({ value }) => value);
  const changed = emitted.some(({ options }) => options !== undefined);
  if (!changed) {
    const rows = Int32Array.from(emitted, ({ index }) => batch.row(index));
    const keys = batch.keys === undefined ? undefined : emitted.map(({ index }) => batch.keys![index]);
    return out.batch(new Batch(values, batch.origin, rows, keys, false));
  }
  const { origin } = batch;
  const changedOrigin: Origin = {
    ...origin,
    timestamps: Float64Array.from(
      emitted,
      ({ index, options }) => options?.timestamp ?? batch.timestamp(index),
    ),
    watermarks: Float64Array.from(emitted, ({ index }) => batch.watermark(index)),
    firstOffset: undefined,
    offsets: batch.offset(0) === undefined
      ? undefined
      : Float64Array.from(emitted, ({ index }) => batch.offset(index)!),
    headers: emitted.map(({ index, options }) => options?.headers ?? batch.headers(index)),
    keys: emitted.map(({ index, options }) =>
      options !== undefined && "key" in options ? options.key : batch.key(index)
    ),
    texts: undefined,
    windows: emitted.map(({ index }) => batch.window(index)),
  };
  // In a keyed stage the key is the stage's: only another keyBy changes it.
  const keys = batch.keys === undefined ? undefined : emitted.map(({ index }) => batch.keys![index]);
  out.batch(new Batch(values, changedOrigin, undefined, keys, false));
}
