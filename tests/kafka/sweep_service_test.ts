/**
 * Exactly once from Kafka to Kafka with a real broker: a crash at every named step of a checkpoint. Kafka's Java consumer judges
 * what a `read_committed` reader sees in the end.
 *
 * @module
 */
import assert from "node:assert/strict";
import { kafkaSource } from "../../connectors/kafka/kafka_source.ts";
import { kafkaClient } from "../../connectors/kafka/kafkajs/mod.ts";
import type { StateBackend } from "../../lib/checkpoint/backend.ts";
import type { CheckpointStep } from "../../lib/checkpoint/coordinator.ts";
import { kv, memory } from "../../mod.ts";
import { CrashPoint, type Sample } from "../durable/kit.ts";
import { type Kafka, kafkaService, serviceTest } from "../services/mod.ts";
import {
  crashing,
  crashingClient,
  expectedRows,
  paced,
  restoredFrom,
  samples,
  type Setting,
  sums,
} from "./kit.ts";

const STEPS: readonly CheckpointStep[] = [
  "barrier",
  "collected",
  "persisted",
  "prepared",
  "committed",
  "completed",
  "swept",
];
const text = new TextDecoder();
/** Rows have the event time of their records, long past: a broker would soon delete them for that. */
const FOR_EVER = { "retention.ms": "-1" };

/** What outlives processes. */
interface World {
  readonly kafka: Kafka;
  readonly input: string;
  readonly output: string;
  readonly partitions: number;
  readonly backend: StateBackend;
}

function setting(world: World, point: CrashPoint, log: string[] = []): Setting {
  const { kafka: { brokers }, input, output, partitions } = world;
  const client = crashingClient(kafkaClient, point);
  const source = kafkaSource<Sample>({ brokers, topics: [input], until: "end", fetchMaxWait: 50, client });
  return {
    source: paced(source, 60, 10),
    sink: { brokers, topic: output, transactionalId: output, client },
    backend: crashing(world.backend, point),
    partitions,
    log,
    interval: "5ms",
  };
}

async function crashAt(world: World, step: CheckpointStep, place: number): Promise<void> {
  const point = new CrashPoint(), numbers = new Set<number>();
  const handle = sums(setting(world, point)).start({
    onCheckpointStep(current, number) {
      numbers.add(number);
      if (current !== step || numbers.size < place || point.crashed) return;
      point.crashed = true;
      handle.abort(new Error("crashed"));
      throw new Error("crashed");
    },
  });
  const failed = await handle.done.then(() => undefined, (error: Error) => error);
  assert.equal(failed?.message, "crashed", `${step}, ${numbers.size} checkpoints: ${failed}`);
}

for (const partitions of [1, 3]) {
  for (const [name, open] of Object.entries({ memory, kv })) {
    serviceTest(`crash behind every step, Kafka to Kafka, ${partitions} partitions, state in ${name}`, [
      "kafka",
    ], async (test) => {
      await using kafka = await kafkaService();
      const input = await kafka.java.createTopic("sweep-in", { partitions });
      const splits = samples(partitions, 300);
      for (const [partition, records] of Object.values(splits).entries()) {
        await kafka.java.produce(
          input,
          records.map((record) => ({ partition, key: record.key, value: JSON.stringify(record) })),
        );
      }
      const expected = expectedRows(splits);
      for (const step of STEPS) {
        for (const place of [1, 3]) {
          const when = place === 1 ? "the first checkpoint" : "a later one";
          await test.step(`"${step}" of ${when}`, async () => {
            const folder = await Deno.makeTempDir({ prefix: "mailer-sweep-" });
            try {
              const output = await kafka.java.createTopic("sweep-out", { partitions, configs: FOR_EVER });
              const world: World = { kafka, input, output, partitions, backend: open(folder) };
              await crashAt(world, step, place);
              const log: string[] = [];
              await sums(setting(world, new CrashPoint(), log)).execute();
              const rows = (await kafka.java.records(output)).map(({ value }) =>
                JSON.parse(text.decode(value!))
              );
              assert.deepEqual(rows.sort(), expected, `went on from ${restoredFrom(log)}`);
              for (const topic of [output, `${output}.checkpoints`]) {
                for (const { stable, end } of await kafka.java.offsets(topic)) {
                  assert.equal(stable, end, "an open transaction holds readers back");
                }
              }
              if (place > 1) assert.ok(restoredFrom(log) !== undefined, "it did not go on from a checkpoint");
            } finally {
              await Deno.remove(folder, { recursive: true });
            }
          });
        }
      }
    });
  }
}
