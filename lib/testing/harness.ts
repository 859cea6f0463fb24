/**
 * Drives a pipeline, or one operator of it, by hand: records and watermarks in, results and side outputs out, time by a virtual
 * clock. No broker, no file, no waiting.
 *
 * @module
 */
import type { Duration } from "../duration.ts";
import type { Headers } from "../record.ts";
import { noWatermarks, type WatermarkStrategy } from "../runtime/watermarks.ts";
import { createEnv, type Env } from "../stream/env.ts";
import type { RunHandle } from "../stream/handle.ts";
import type { Stream } from "../stream/stream.ts";
import { type Collected, type CollectingSink, collectingSink } from "./collect.ts";
import { scriptedSource } from "./scripted_source.ts";
import { settle, VirtualClock } from "./virtual_clock.ts";

/** What a pushed record has besides its value. */
export interface PushOptions {
  /** Event time, ms. Default: the clock's time of day. */
  readonly timestamp?: number;
  /** Key the source read with it; a `keyBy` chooses another. */
  readonly key?: unknown;
  /** Headers the source read with it. Default none. */
  readonly headers?: Headers;
  /** Split it comes from. Default the first. */
  readonly split?: string;
}

/** Settings of a harness. */
export interface HarnessOptions<In> {
  /** Splits of the source. Default one, `0`. */
  readonly splits?: readonly string[];
  /** Watermarks out of records. Default: none; only `watermark` moves event time. */
  readonly watermarks?: WatermarkStrategy<In>;
  /** Event time out of the value, ms; it wins over what `push` says. */
  readonly timestamp?: (value: In) => number;
  /** Changes the environment before the pipeline is built. */
  readonly env?: (env: Env) => void;
}

/** A pipeline under test. */
export interface Harness<In, Out> {
  /** Processing time; `advance` moves it. */
  readonly clock: VirtualClock;
  /** The run itself. */
  readonly handle: RunHandle;
  /** Values that have come out, in order. */
  readonly output: readonly Out[];
  /** What has come out, as whole records. */
  readonly records: readonly Collected<Out>[];
  /** Values of a side output named to {@link harness}. */
  side(name: string): readonly unknown[];
  /** Pushes one record and lets everything that follows happen. */
  push(value: In, options?: PushOptions): Promise<void>;
  /** Event time of the split has reached `time`, ms. */
  watermark(time: number, split?: string): Promise<void>;
  /** A fetch for the split came back empty. */
  empty(split?: string): Promise<void>;
  /** Moves the clock. */
  advance(by: Duration): Promise<void>;
  /** What a keyed process operator holds of a key. */
  state(operator: string, key: unknown): Readonly<Record<string, unknown>>;
  /** The input is complete: open windows close, the run ends. Rejects with the error that ended the run. */
  end(): Promise<void>;
  /** Stops the run: nothing fires early. */
  stop(): Promise<void>;
}

/**
 * Starts a pipeline under test.
 *
 * @param build Makes the pipeline out of its input; what it returns is collected. `sides` are side outputs of that stream's
 *   operator that are collected too.
 */
export async function harness<In, Out>(
  build: (stream: Stream<In>, env: Env) => Stream<Out>,
  options: HarnessOptions<In> & { readonly sides?: readonly string[] } = {},
): Promise<Harness<In, Out>> {
  const clock = new VirtualClock();
  const script = scriptedSource<In>([], options.splits === undefined ? {} : { splits: options.splits });
  const env = createEnv({ name: "test" }).withClock(clock);
  options.env?.(env);
  const stream = env.fromSource<In>(script.source, {
    watermarks: options.watermarks ?? noWatermarks(),
    ...(options.timestamp === undefined ? {} : { timestamp: options.timestamp }),
  });
  const main = collectingSink<Out>();
  const built = build(stream, env);
  built.toSink(main.sink, { id: "output" });
  const sides = new Map<string, CollectingSink<unknown>>();
  for (const name of options.sides ?? []) {
    const side = collectingSink<unknown>();
    built.sideOutput<unknown>(name).toSink(side.sink, { id: `output.${name}` });
    sides.set(name, side);
  }
  const handle = env.start();
  handle.done.catch(() => {}); // reported by `end` and `stop`
  await handle.running;
  await settle();
  const inSplit = (split: string | undefined) => split === undefined ? {} : { split };
  return {
    clock,
    handle,
    get output() {
      return main.values;
    },
    records: main.records,
    side: (name) => sides.get(name)?.values ?? [],
    async push(value, { timestamp = clock.now(), key, headers, split } = {}) {
      script.add({
        do: "records",
        values: [value],
        timestamps: [timestamp],
        ...(key === undefined ? {} : { keys: [key] }),
        ...(headers === undefined ? {} : { headers: [headers] }),
        ...inSplit(split),
      });
      await settle();
    },
    async watermark(time, split) {
      script.add({ do: "watermark", time, ...inSplit(split) });
      await settle();
    },
    async empty(split) {
      script.add({ do: "empty", ...inSplit(split) });
      await settle();
    },
    advance: (by) => clock.advance(by),
    state: (operator, key) => handle.inspect(operator, key),
    async end() {
      script.add({ do: "end" });
      await handle.done;
    },
    stop: () => handle.stop(),
  };
}
