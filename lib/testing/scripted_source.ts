/**
 * A source that does what a test says, step by step: records, watermarks, empty fetches, new splits, a pause, a crash, the end.
 *
 * @module
 */
import type { Source, SourceContext, SourceRead, SourceReader } from "../connector.ts";
import type { Headers } from "../record.ts";

/** One step of a script. Steps without a `split` are about the first one. */
export type ScriptStep<T> =
  | {
    readonly do: "records";
    readonly values: readonly T[];
    readonly split?: string;
    /** One a value, ms; without them records have the time of reading (or what the pipeline's `timestamp` says). */
    readonly timestamps?: readonly number[];
    readonly keys?: readonly unknown[];
    readonly headers?: readonly (Headers | undefined)[];
  }
  | { readonly do: "watermark"; readonly time: number; readonly split?: string }
  | { readonly do: "empty"; readonly split?: string }
  | { readonly do: "endSplit"; readonly split: string }
  | { readonly do: "addSplits"; readonly splits: readonly string[] }
  /** Waits until the script is resumed (or the run stops). */
  | { readonly do: "pause" }
  /** The read rejects with this error. */
  | { readonly do: "crash"; readonly error: Error }
  | { readonly do: "end" };

/** Controls a scripted source. */
export interface ScriptedSource<T> {
  /** Hand it to `fromSource`. */
  readonly source: Source<T>;
  /** Adds steps; a source that has run out of steps waits for more. */
  add(...steps: readonly ScriptStep<T>[]): void;
  /** Goes on behind a `pause`. */
  resume(): void;
  /** Steps read so far. */
  readonly read: number;
  /** Times the source was opened and closed. */
  readonly opened: number;
  /** Times a reader was closed. */
  readonly closed: number;
}

/**
 * Makes a scripted source.
 *
 * @param steps What it does first. Add more with `add`; without an `end` it waits for them.
 * @param options `splits`: those known at the start, default `["0"]`.
 */
export function scriptedSource<T>(
  steps: readonly ScriptStep<T>[] = [],
  options: { readonly splits?: readonly string[] } = {},
): ScriptedSource<T> {
  const script = [...steps];
  const splits = options.splits ?? ["0"];
  let wake = Promise.withResolvers<void>();
  let resumed = 0, read = 0, opened = 0, closed = 0;
  const signalAll = () => {
    wake.resolve();
    wake = Promise.withResolvers<void>();
  };

  class ScriptedReader implements SourceReader<T> {
    readonly splits = splits;
    readonly #offsets = new Map<string, number>();
    #paused = 0;

    constructor(private readonly context: SourceContext) {
      context.signal.addEventListener("abort", signalAll, { once: true });
    }

    async read(): Promise<SourceRead<T>> {
      for (;;) {
        this.context.signal.throwIfAborted();
        const step = script[read];
        if (step === undefined || (step.do === "pause" && this.#paused >= resumed)) {
          await wake.promise;
          continue;
        }
        read++;
        if (step.do === "pause") {
          this.#paused++;
          continue;
        }
        return this.#take(step);
      }
    }

    #take(step: Exclude<ScriptStep<T>, { readonly do: "pause" }>): SourceRead<T> {
      const first = splits[0]!;
      switch (step.do) {
        case "crash":
          throw step.error;
        case "end":
          return { kind: "end" };
        case "addSplits":
          return { kind: "added", splits: step.splits };
        case "endSplit":
          return { kind: "ended", split: step.split };
        case "empty":
          return { kind: "empty", split: step.split ?? first };
        case "watermark":
          return { kind: "watermark", split: step.split ?? first, time: step.time };
        case "records": {
          const split = step.split ?? first, firstOffset = this.#offsets.get(split) ?? 0;
          const position = firstOffset + step.values.length;
          this.#offsets.set(split, position);
          return {
            kind: "records",
            split,
            values: [...step.values],
            firstOffset,
            position,
            ...(step.timestamps === undefined ? {} : { timestamps: Float64Array.from(step.timestamps) }),
            ...(step.keys === undefined ? {} : { keys: step.keys }),
            ...(step.headers === undefined ? {} : { headers: step.headers }),
          };
        }
      }
    }

    close(): void {
      closed++;
    }
  }

  return {
    source: {
      type: "scripted",
      describe: () => ({}),
      open: (context) => {
        opened++;
        return new ScriptedReader(context);
      },
    },
    add: (...more) => {
      script.push(...more);
      signalAll();
    },
    resume: () => {
      resumed++;
      signalAll();
    },
    get read() {
      return read;
    },
    get opened() {
      return opened;
    },
    get closed() {
      return closed;
    },
  };
}
