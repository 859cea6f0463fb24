/**
 * A process that is killed while it runs a workflow with the file sink: its output is that of the run that was not.
 * More rounds: `deno run -A tests/durable/kill_rounds.ts 200`.
 *
 * @module
 */
import assert from "node:assert/strict";
import { BACKENDS, killRound } from "./kill_rounds.ts";

for (const backend of BACKENDS) {
  Deno.test(`kill -9 at random instants, state in ${backend}: every record once`, async () => {
    let kills = 0, restored = 0;
    for (let seed = 11; seed < 20 && restored < 2; seed++) { // where the machine is busy, many are killed too early
      const round = await killRound(backend, seed);
      kills += round.kills;
      restored += round.restored;
    }
    assert.ok(kills > 0, "no process was killed");
    assert.ok(restored > 0, "no run went on from a checkpoint");
  });
}
