/**
 * What the tests of exactly once with Kafka share: the pipeline they run, what has to come out of it, and a cluster in memory and a
 * state backend that crash.
 *
 * A crash here is one in the process: from one moment on nothing that the run still does has any effect.
 *
 * @module
 */
import type { StateBackend } from "../../lib/checkpoint/backend.ts";
import type { Sink, Source } from "../../lib/connector.ts";
import type { Duration } from "../../lib/duration.ts";
import type { Logger } from "../../lib/log.ts";
import type { KafkaClientFactory } from "../../connectors/kafka/client.ts";
import { FakeKafka } from "../../connectors/kafka/testing/fake_client.ts";
import {
  transactionalKafkaSink,
  type TransactionalKafkaSinkOptions,
} from "../../connectors/kafka/transactional_sink.ts";
import { systemClock } from "../../lib/clock.ts";
import { createEnv, type Env } from "../../mod.ts";
import { CrashPoint, type Sample } from "../durable/kit.ts";

/** Records by split. */
export type Splits = Readonly<Record<string, readonly Sample[]>>;

/** So many splits, each with keys of its own: then the rows of a run do not depend on how splits are interleaved. */
export function samples(splits: number, records: number): Splits {
  return Object.fromEntries(Array.from({ length: splits }, (_, split) => [
    `in/${split}`,
    Array.from({ length: records }, (_, i) => ({ key: `${split}-k${i % 5}`, at: i * 100, value: i })),
  ]));
}

/** The rows by definition: running sums by key. Sorted, for keys keep no order among each other. */
export function expectedRows(splits: Splits): string[] {
  const sums = new Map<string, number>(), rows: string[] = [];
  for (const { key, value } of Object.values(splits).flat()) {
    sums.set(key, (sums.get(key) ?? 0) + value);
    rows.push(`${key} ${sums.get(key)}`);
  }
  return rows.sort();
}

/**
 * A source of which no more than so many records are read without a checkpoint: so every run takes many.
 *
 * @param most Records without a checkpoint. @param batch Records a read.
 */
export function paced<T>(source: Source<T>, most = 24, batch = 4): Source<T> {
  return {
    ...source,
    async open(context) {
      const { signal } = context, reader = await source.open({ ...context, batchSize: batch });
      let unsafe = 0, wake = () => {};
      signal.addEventListener("abort", () => wake(), { once: true });
      return {
        splits: reader.splits,
        async read() {
          while (unsafe >= most && !signal.aborted) await new Promise<void>((resolve) => wake = resolve);
          signal.throwIfAborted();
          const read = await reader.read();
          if (read.kind === "records") unsafe += read.values.length;
          return read;
        },
        async checkpointed(positions) {
          unsafe = 0;
          wake();
          await reader.checkpointed?.(positions);
        },
        close: (outcome) => reader.close(outcome),
      };
    },
  };
}

/** How the pipeline is set up. */
export interface Setting {
  readonly source: Source<Sample>;
  /** Settings of the transactional sink; or a sink. */
  readonly sink: Partial<TransactionalKafkaSinkOptions> | Sink;
  readonly backend: StateBackend;
  readonly partitions: number;
  readonly log?: string[];
  readonly interval?: Duration;
}

const SINK: TransactionalKafkaSinkOptions = { brokers: ["fake:9092"], topic: "out", transactionalId: "sums" };

/** Running sums by key, to the topic `out` unless said otherwise. */
export function sums({ source, sink, backend, partitions, log = [], interval = "1ms" }: Setting): Env {
  const logger: Logger = {
    log: (level, message, fields) => log.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`),
  };
  const env = createEnv({ name: "sums" }).withBufferSize(16).withLogger(logger)
    .withCheckpointing(interval, { retain: 3 }).withStateBackend(backend);
  env.fromSource(source, { id: "in", timestamp: ({ at }) => at })
    .keyBy(({ key }) => key, { partitions })
    .reduce((sum: number | undefined, { value }) => (sum ?? 0) + value, { id: "sum" })
    .map((sum, { key }) => `${key} ${sum}`, { id: "row" })
    .toSink("open" in sink ? sink : transactionalKafkaSink({ ...SINK, ...sink }), { id: "out" });
  return env;
}

/** Calls that change something in the cluster. */
const EFFECTS: ReadonlySet<string> = new Set(["send", "commit", "abort", "initTransactions", "admin"]);

/** A cluster that a process loses when it crashes. */
export class CrashingKafka extends FakeKafka {
  point: CrashPoint = new CrashPoint();

  constructor(partitions: number) {
    super(systemClock);
    this.createTopic("out", partitions);
  }

  override call<R>(
    call: Parameters<FakeKafka["call"]>[0],
    what: string,
    signal: AbortSignal | undefined,
    work: () => R | Promise<R>,
  ): Promise<R> {
    const { point } = this; // that of the process which calls
    return super.call(call, what, signal, () => {
      if (EFFECTS.has(call)) return point.pass(work);
      if (point.crashed) throw new Error("crashed");
      return work();
    });
  }

  /** What readers see, sorted. */
  get rows(): string[] {
    return this.texts("out").map((text) => JSON.parse(text!) as string).sort();
  }

  /** Whether no transaction holds readers back. */
  get isQuiet(): boolean {
    return ["out", "out.checkpoints"].every((topic) =>
      this.topic(topic).partitions.every(({ stable, end }) => stable === end)
    );
  }
}

/** A client that a process loses when it crashes. What is under way then may still come to the broker. */
export function crashingClient(connect: KafkaClientFactory, point: CrashPoint): KafkaClientFactory {
  return (connection, context) => losing(connect(connection, context), point);
}

/** Calls of `part`, and of all it gives, fail from the crash on; closing works. */
function losing<T extends object>(part: T, point: CrashPoint): T {
  return new Proxy(part, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member === "object" && member !== null) return losing(member, point);
      if (typeof member !== "function" || name === "close") {
        return typeof member === "function" ? member.bind(target) : member;
      }
      return (...args: unknown[]) => {
        if (point.crashed) throw new Error("crashed");
        const result: unknown = Reflect.apply(member, target, args);
        const isPart = (value: unknown): value is object =>
          typeof value === "object" && value !== null && "close" in value;
        if (result instanceof Promise) {
          return result.then((value) => isPart(value) ? losing(value, point) : value);
        }
        return isPart(result) ? losing(result, point) : result;
      };
    },
  });
}

/** A backend whose store is of no use any more when the process has crashed. */
export function crashing(backend: StateBackend, point: CrashPoint): StateBackend {
  return {
    ...backend,
    async open(pipeline, clock) {
      const store = await backend.open(pipeline, clock);
      return {
        write: (run, first, pages) => point.pass(() => store.write(run, first, pages)),
        read: (refs) => store.read(refs),
        list: (kind, prefix) => store.list(kind, prefix),
        deleteRuns: (runs) => point.pass(() => store.deleteRuns(runs)),
        commit: (changes) => point.pass(() => store.commit(changes)),
        [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
      };
    },
  };
}

/** Whether the sink had something to commit with a checkpoint: there is a marker of it, be it visible or not. */
export function hasMarker(kafka: FakeKafka, checkpoint: number): boolean {
  return kafka.texts("out.checkpoints", "read_uncommitted").some((text) =>
    (JSON.parse(text!) as { checkpoint: number }).checkpoint === checkpoint
  );
}

/** Number of the checkpoint that the last run went on from, as it has logged; undefined where there was none. */
export function restoredFrom(log: readonly string[]): number | undefined {
  const last = log.slice(log.findLastIndex((line) => line.includes("run failed, starting again")) + 1);
  const line = last.find((line) => /^\w+ (restored|all input had been read already) /.test(line));
  return line === undefined ? undefined : Number(/"checkpoint":(\d+)/.exec(line)![1]);
}
