/**
 * Exactly once from Kafka to Kafka while brokers are killed one after the other: those that lead partitions, and those that
 * coordinate transactions.
 *
 * @module
 */
import assert from "node:assert/strict";
import { kafkaSource } from "../../connectors/kafka/kafka_source.ts";
import { delay, systemClock } from "../../lib/clock.ts";
import type { Source } from "../../lib/connector.ts";
import { CrashPoint, lastingBackend, newPages, type Sample } from "../durable/kit.ts";
import { kafkaService, serviceTest } from "../services/mod.ts";
import { expectedRows, samples, sums } from "./kit.ts";

const text = new TextDecoder();
/** Rows have the event time of their records, long past: a broker would soon delete them for that. */
const FOR_EVER = { "retention.ms": "-1" };

/** A source that goes on reading, slowly, until it may end. */
function slowly<T>(source: Source<T>, pauseMs: number): Source<T> {
  return {
    ...source,
    async open(context) {
      const reader = await source.open({ ...context, batchSize: 10 });
      const paused: typeof reader = {
        splits: reader.splits,
        async read() {
          await delay(systemClock, pauseMs, context.signal);
          return await reader.read();
        },
        close: (outcome) => reader.close(outcome),
      };
      return paused;
    },
  };
}

serviceTest(
  "brokers are killed one after the other while the pipeline runs: every row once",
  ["own kafka"],
  async () => {
    await using kafka = await kafkaService({ brokers: 3 });
    const input = await kafka.java.createTopic("brokers-in", { partitions: 3 });
    const output = await kafka.java.createTopic("brokers-out", { partitions: 3, configs: FOR_EVER });
    const splits = samples(3, 2500);
    for (const [partition, records] of Object.values(splits).entries()) {
      await kafka.java.produce(
        input,
        records.map((record) => ({ partition, key: record.key, value: JSON.stringify(record) })),
      );
    }
    const { brokers } = kafka, log: string[] = [];
    const source = kafkaSource<Sample>({ brokers, topics: [input], until: "end" });
    const handle = sums({
      source: slowly(source, 40),
      sink: { brokers, topic: output, transactionalId: output },
      backend: lastingBackend(newPages(), new CrashPoint()),
      partitions: 2,
      log,
      interval: "200ms",
    }).withRestart({ delay: "200ms" }).start();
    let isOver = false;
    handle.done.then(() => isOver = true, () => isOver = true);
    await handle.running;
    for (const broker of [1, 2, 3]) {
      await delay(systemClock, 1500);
      assert.equal(isOver, false, "the run was over too soon");
      await kafka.kill(broker);
      await delay(systemClock, 2500);
      await kafka.start(broker);
      // The next is not killed before all have caught up: of three copies two have to be there.
      for (const topic of [input, output, `${output}.checkpoints`]) await kafka.java.whole(topic);
    }
    await handle.done;
    const rows = (await kafka.java.records(output)).map(({ value }) =>
      JSON.parse(text.decode(value!)) as string
    );
    const counts = new Map<string, number>();
    for (const row of rows) counts.set(row, (counts.get(row) ?? 0) + 1);
    const expected = new Set(expectedRows(splits));
    const wrong = {
      missing: [...expected].filter((row) => !counts.has(row)),
      doubled: [...counts].filter(([, count]) => count > 1),
      unexpected: rows.filter((row) => !expected.has(row)),
    };
    const nothing: unknown[] = [];
    assert.deepEqual(wrong, { missing: nothing, doubled: nothing, unexpected: nothing }, log.join("\n"));
    for (const { stable, end } of await kafka.java.offsets(output)) assert.equal(stable, end);
  },
);
