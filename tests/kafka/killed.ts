/**
 * The program that `kill_rounds.ts` kills: counts and sums by key, from a topic to a topic, exactly once. Without a consumer group:
 * who is killed does not leave it, and who comes after would wait for that.
 *
 * @module
 */
// deno-lint-ignore-file no-console -- a program prints
import { kafkaSource } from "../../connectors/kafka/kafka_source.ts";
import { transactionalKafkaSink } from "../../connectors/kafka/transactional_sink.ts";
import { createEnv, kv, memory, sqlite } from "../../mod.ts";

/** What the program is told, as JSON. */
export interface Orders {
  readonly brokers: readonly string[];
  readonly input: string;
  readonly output: string;
  readonly backend: "memory" | "kv" | "sqlite";
  readonly folder: string;
  /** Records a second. */
  readonly rate: number;
}

/** The rows of the program. */
export interface Row {
  readonly k: string;
  readonly n: number;
  readonly sum: number;
}

if (import.meta.main) {
  const { brokers, input, output, backend, folder, rate } = JSON.parse(Deno.args[0]!) as Orders;
  const env = createEnv({ name: "killed" }).withCheckpointing("40ms")
    .withStateBackend({ memory, kv, sqlite }[backend](folder))
    .withLogger({ log: (_, message, fields) => console.error(message, JSON.stringify(fields ?? {})) });
  env.fromSource(kafkaSource<{ readonly k: string; readonly v: number }>({ brokers, topics: [input] }), {
    id: "in",
  })
    .throttle(rate, { id: "slow" })
    .keyBy(({ k }) => k, { partitions: 4 })
    .reduce(
      (row: Row | undefined, { k, v }): Row => ({ k, n: (row?.n ?? 0) + 1, sum: (row?.sum ?? 0) + v }),
      {
        id: "totals",
      },
    )
    .toSink(transactionalKafkaSink({ brokers, topic: output, transactionalId: output }), { id: "out" });
  const handle = env.start();
  const stop = () => void handle.stop().catch(() => {}); // its error is that of `done`
  Deno.addSignalListener("SIGTERM", stop);
  await handle.running;
  console.error("running");
  await handle.done;
  Deno.removeSignalListener("SIGTERM", stop);
}
