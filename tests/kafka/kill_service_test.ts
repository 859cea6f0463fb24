/**
 * A process that is killed while it runs a pipeline from Kafka to Kafka: readers of committed records see each row once. More
 * rounds: `deno run -A tests/kafka/kill_rounds.ts 50`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { kafkaService, serviceTest } from "../services/mod.ts";
import { killRound, writeInput } from "./kill_rounds.ts";

const ROUNDS = 5;

for (const [i, backend] of (["memory", "kv"] as const).entries()) {
  serviceTest(
    `kill -9 at random instants, Kafka to Kafka, state in ${backend}: every row once`,
    ["kafka"],
    async () => {
      await using kafka = await kafkaService();
      const input = await writeInput(kafka);
      let kills = 0, restored = 0;
      for (let round = 0; round < ROUNDS; round++) {
        const { kills: more, restored: again } = await killRound(
          kafka,
          input,
          backend,
          100 * (i + 1) + round,
        );
        kills += more;
        restored += again;
      }
      assert.ok(kills >= ROUNDS, "no process was killed");
      assert.ok(restored >= ROUNDS, `${restored} runs went on from a checkpoint`);
    },
  );
}
